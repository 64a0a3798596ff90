"""Identification of a fleet: from partitions to arm-days, to fits, to the list of arms to look at."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.errors import ArmidError
from armid.estimation.fit import Fit
from armid.fleet.days import Days
from armid.fleet.description import Fleet
from armid.fleet.engine import Clock, Engine, Tell, arm_days, engine
from armid.fleet.fits import arm_fit, possible_fit
from armid.fleet.page import save_fleet_page
from armid.fleet.partitions import find_partitions
from armid.fleet.result import FleetResult
from armid.fleet.store import Store
from armid.fleet.survey import ArmSurvey, Survey, Surveyor
from armid.fleet.tables import Outcome, entries_of, result_of
from armid.fleet.watch import ordered
from armid.torque.model import TorqueModel, model_of

FALSE_ALARMS = 1e-3  # per arm and day
RESULT, PAGE, ROBOTS, FACTORS = "fleet.json", "fleet.html", "robots", "factors"


def identify_fleet(
    fleet: Fleet,
    folder: str | Path,
    *,
    workers: int = 0,
    scheduler: str | None = None,
    progress: Tell | None = None,
    false_alarms: float = FALSE_ALARMS,
) -> FleetResult:
    """Identify all arms of a fleet.

    Writes ``fleet.json``, ``fleet.html``, ``robots/NAME/fit.json`` and ``factors/*.npz`` into `folder`. What is in
    ``factors`` already is not read from the logs again; an interrupted run goes on where it stopped. Fits of arms that
    are no longer in the logs are removed; ``factors`` is a cache, in which what no log needs any more may stay.

    Args:
        fleet: what all arms share.
        folder: of the results.
        workers: processes to start on this machine; 0 to work in this process.
        scheduler: address of a Dask scheduler to use instead.
        progress: told after each arm-day and each arm.
        false_alarms: promised rate of false alarms per arm and day, for all tests together.

    Raises:
        ArmidError: nothing can be done at all; recordings that cannot be used are named in the result instead.
    """
    if not 0.0 < false_alarms < 1.0:
        raise ArmidError(
            f"false_alarms is {false_alarms:g}; give a rate per arm and day between 0 and 1, such as 0.001"
        )
    began, folder = time.monotonic(), Path(folder)
    store = Store(folder / FACTORS)
    Store(folder / ROBOTS)  # found out now whether it can be written, not after the work
    partitions = find_partitions(fleet)
    with engine(workers, scheduler) as place:
        keys, kept = arm_days(fleet, partitions, store, place, progress)
        arms: dict[str, list[str]] = {}
        for partition, key in zip(partitions, keys, strict=True):
            arms.setdefault(partition.robot, []).append(key)
        days = Days(arms, store)
        model = TorqueModel(
            fleet.robot,
            terms=() if fleet.fit is None else fleet.fit.terms,
            load_values=None if fleet.fit is None else fleet.fit.load_values,
            model=model_of(fleet.robot),
        )
        surveyor, survey = _surveyed(model, days, false_alarms)
        outcomes = _fits(fleet, folder, surveyor, survey, days, place, progress)
    entries = [one for name in days.keys for one in entries_of(fleet, name, days, survey)]
    result = result_of(fleet, model, days, survey, outcomes, ordered(entries), false_alarms)
    counts = {**result.summary_data, "kept": kept, "work_s": round(time.monotonic() - began, 2)}
    result = replace(result, summary_data=counts)
    result.save(folder / RESULT)
    save_fleet_page(result.to_data(), folder / PAGE)
    _forget(folder / ROBOTS, set(outcomes))
    return result


def _surveyed(model: TorqueModel, days: Days, false_alarms: float) -> tuple[Surveyor, Survey]:
    names = [name for name in days.keys if days.usable(name)]
    if not names:
        first = next((p for name in days.keys for day in days(name) for p in day.problems), {"reason": "no data"})
        raise ArmidError(f"no recording of the fleet can be used; the first problem is: {first['reason']}")
    surveyor = Surveyor(model, names, days, days.total, false_alarms)
    return surveyor, surveyor.survey()


def _fits(
    fleet: Fleet,
    folder: Path,
    surveyor: Surveyor,
    survey: Survey,
    days: Days,
    place: Engine,
    progress: Tell | None,
) -> dict[str, Outcome]:
    """Each arm's own fit; those whose days are the same as in the last run are kept."""
    before = _before(folder)
    done: dict[str, Outcome] = {}
    todo: list[tuple[str, str]] = []
    for name, arm in survey.arms.items():
        if not arm.used.any():
            continue
        key = _fit_key(fleet, surveyor, survey, arm)
        if name in before and before[name].key == key and (folder / before[name].file).is_file():
            done[name] = before[name]
        else:
            todo.append((name, key))
    clock = Clock("estimating arms", len(done) + len(todo), len(done), progress)
    free = _Lazy(lambda item: _free_fit(fleet, surveyor, survey, item[0]), todo)
    for index, (fit, reasons) in place.each(_possible, fleet, free):
        name, key = todo[index]
        file = f"{ROBOTS}/{name}/fit.json"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        fit.save(folder / file)
        done[name] = Outcome(file, key, reasons)
        clock.tell(name)
    return done


def _forget(folder: Path, current: set[str]) -> None:
    """Remove fits of an earlier run whose arms have none in this one."""
    for path in folder.glob("*/fit.json"):
        if path.parent.name not in current:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


class _Lazy(Sequence[Any]):
    """Items that are made when they are handed out, not all at once."""

    def __init__(self, make: Any, items: Sequence[Any]) -> None:
        self._make, self._items = make, items

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: Any) -> Any:
        return self._make(self._items[index])


def _healthy_days(surveyor: Surveyor, arm: ArmSurvey) -> tuple[str, list[str]]:
    """First date that does not count for the arm's own fit, and why."""
    since = min((date for _, date, _ in arm.changes), default="")
    if not since or sum(date < since for date in np.array(arm.dates)[arm.used]) < 1:
        return "", []
    what = " and ".join(surveyor.watched[change.watched].what for change, date, _ in arm.changes if date == since)
    return since, [f"Days from {since} on are left out: {what} changed on that day."]


def _free_fit(fleet: Fleet, surveyor: Surveyor, survey: Survey, name: str) -> Fit:
    arm, history = survey.arms[name], surveyor.used(name)
    since, notes = _healthy_days(surveyor, arm)
    if since:
        history = history.only(np.array([day.date < since for day in history.days]))
    return arm_fit(fleet, history, surveyor.day_to_day(name, survey), notes)


def _possible(fleet: Fleet, fit: Fit) -> tuple[Fit, tuple[str, ...]]:
    return possible_fit(replace(fit, robot=fleet.robot))


def _fit_key(fleet: Fleet, surveyor: Surveyor, survey: Survey, arm: ArmSurvey) -> str:
    """Hash of all that an arm's own fit is made from."""
    since, _ = _healthy_days(surveyor, arm)
    used = [day.key for day in surveyor.used(arm.name).days if not since or day.date < since]
    numbers = [arm.scatter, *surveyor.day_to_day(arm.name, survey).ravel().tolist()]
    return hashlib.sha256(json.dumps([fleet.key(), used, numbers]).encode()).hexdigest()


def _before(folder: Path) -> dict[str, Outcome]:
    """Fits of the last run."""
    if not (folder / RESULT).is_file():
        return {}
    try:
        arms = FleetResult.load(folder / RESULT).arms
        return {one["name"]: Outcome(one["fit"], one["key"], tuple(one["impossible"])) for one in arms if one["fit"]}
    except (ArmidError, KeyError, TypeError):
        return {}
