"""Identification of a fleet: from partitions to arm-days, to fits, to the list of arms to look at."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.consistent.log_det import NotConsistentError
from armid.estimation.fit import Fit
from armid.estimation.identifiability import identifiability, judged_again
from armid.estimation.linear import Solution, residual_squares, solve
from armid.estimation.problem import EstimationError
from armid.files import file_hash
from armid.fleet.day import Days, Store
from armid.fleet.description import Fleet
from armid.fleet.engine import Engine, arm_days, engine, tell_part
from armid.fleet.first_days import with_type
from armid.fleet.hierarchy import UNSEEN
from armid.fleet.page import save_fleet_page
from armid.fleet.partitions import find_partitions
from armid.fleet.result import (
    ArmCourse,
    ArmResult,
    FleetCounts,
    FleetResult,
    RobotType,
    TypeParameter,
    WatchedQuantity,
    WatchEntry,
    rounded,
)
from armid.fleet.survey import ArmSurvey, Survey, Surveyor
from armid.fleet.type_model import RANK
from armid.fleet.watch import entries_of, ordered, unused_days
from armid.notes import Note, note
from armid.torque.model import TorqueModel
from armid.validation.auditing import audit

FALSE_ALARMS = 1e-3  # per arm and day
RESULT, PAGE, ROBOTS, FACTORS = "fleet.json", "fleet.html", "robots", "factors"
METHOD = "fleet"
SAME = 1e-3  # growth of the weighted squares, whose noise is 1, up to which two fits are the same


class SavedFit(NamedTuple):
    """Of an arm's own fit: file, its hash, the hash of what it was made from, and why it is impossible, if it is."""

    file: str
    sha256: str
    key: str
    impossible: tuple[str, ...]


def identify_fleet(
    fleet: Fleet,
    folder: str | Path,
    *,
    workers: int = 0,
    scheduler: str | None = None,
    false_alarms: float = FALSE_ALARMS,
) -> FleetResult:
    """Identify all arms of a fleet.

    Writes ``fleet.json``, ``fleet.html``, ``robots/NAME/fit.json`` and ``factors/*.npz`` into `folder`. What is in
    ``factors`` already is not read from the logs again; an interrupted run goes on where it stopped. Fits of arms that
    are no longer in the logs are removed; ``factors`` is a cache, in which what no log needs any more may stay.
    Progress is reported after each arm-day and each arm.

    Args:
        fleet: what all arms share.
        folder: of the results.
        workers: processes to start on this machine; 0 to work in this process.
        scheduler: address of a Dask scheduler to use instead.
        false_alarms: promised rate of false alarms per arm and day, for all tests together.

    Raises:
        ArmidError: nothing can be done at all; recordings that cannot be used are named in the result instead.
    """
    if not 0.0 < false_alarms < 1.0:
        raise ArmidError(
            f"false_alarms is {false_alarms:g}; give a rate per arm and day between 0 and 1, such as 0.001"
        )
    began, folder = time.monotonic(), Path(folder)
    _check_output(folder)
    there = folder.exists()
    try:
        store = Store(folder / FACTORS)
        Store(folder / ROBOTS)  # found out now whether it can be written, not after the work
        partitions = find_partitions(fleet)
        with engine(workers, scheduler) as place:
            fleet = with_type(fleet, partitions, folder)
            keys, kept = arm_days(fleet, partitions, store, place)
            arms: dict[str, list[str]] = {}
            for partition, key in zip(partitions, keys, strict=True):
                arms.setdefault(partition.robot, []).append(key)
            days = Days(arms, store)
            _check_usable(fleet, days, store)
            surveyor = Surveyor(fleet.model, [name for name in days.keys if days.usable(name)], days, false_alarms)
            survey = surveyor.survey()
            fits = _fits(fleet, folder, surveyor, survey, days, place)
    except ArmidError:
        for path in (folder / FACTORS, folder / ROBOTS, *(() if there else (folder,))):
            with suppress(OSError):  # what is not empty stays
                path.rmdir()
        raise
    result = result_of(fleet, surveyor.model, days, survey, fits)
    counts = msgspec.structs.replace(result.counts, kept=kept, work_s=round(time.monotonic() - began, 2))
    result = msgspec.structs.replace(result, counts=counts)
    result.save(folder / RESULT)
    save_fleet_page(result, folder / PAGE)
    _forget(folder / ROBOTS, set(fits))
    return result


def _check_output(folder: Path) -> None:
    """Whether results can be written under their names; found out before the work."""
    for name in (RESULT, PAGE):
        if (folder / name).is_dir():
            raise ArmidError(f"{folder / name}: is a folder where a file is written; rename it, or choose another -o")
    robots = folder / ROBOTS
    for entry in sorted(robots.iterdir()) if robots.is_dir() else ():
        if not entry.is_dir() and not entry.name.startswith("."):
            raise ArmidError(f"{entry}: is a file where folders of arms are written; move it, or choose another -o")


def _check_usable(fleet: Fleet, days: Days, store: Store) -> None:
    """Whether there is anything to work with; if not, nothing is kept."""
    if any(days.usable(name) for name in days.keys):
        return
    problems = ((day, one) for name in days.keys for day in days(name) for one in day.problems)
    reasons = (f"{day.robot} {day.date}, {one.file}: {one.reason}" for day, one in problems)
    first = next(reasons, "there is no data")
    for keys in days.keys.values():
        for key in keys:
            store.remove(key)
    raise ArmidError(f"{fleet.source}: no recording of the fleet can be used; the first problem is {first}")


def _fits(
    fleet: Fleet, folder: Path, surveyor: Surveyor, survey: Survey, days: Days, place: Engine
) -> dict[str, SavedFit]:
    """Each arm's own fit; those whose days are the same as in the last run are kept."""
    fleet = replace(fleet, type=surveyor.type)  # how much curves differ is known now
    before, done = _before(folder), {}
    todo: list[tuple[str, str]] = []
    for name, arm in survey.arms.items():
        if not arm.used.any():
            continue
        key = _fit_key(fleet, surveyor, survey, arm)
        if name in before and before[name].key == key and _is_whole(folder, before[name]):
            done[name] = before[name]
        else:
            todo.append((name, key))
    total = len(done) + len(todo)
    sums = (_sums(surveyor, survey, name) for name, _ in todo)  # made when they are handed out
    for count, (index, (fit, reasons)) in enumerate(place.each(arm_fit, fleet, sums), start=1):
        name, key = todo[index]
        file = f"{ROBOTS}/{name}/fit.json"
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        fit.save(folder / file)
        done[name] = SavedFit(file, file_hash(folder / file), key, reasons)
        tell_part("estimating arms", count, len(todo), total, name)
    return done


def _forget(folder: Path, current: set[str]) -> None:
    """Remove fits of an earlier run whose arms have none in this one."""
    for path in folder.glob("*/fit.json"):
        if path.parent.name not in current:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


def _healthy_days(surveyor: Surveyor, arm: ArmSurvey) -> tuple[str, list[Note]]:
    """First date that does not count for the arm's own fit, and why."""
    since = min((one.since for one in arm.changes), default="")
    if not since or sum(date < since for date in np.array(arm.dates)[arm.used]) < 1:
        return "", []
    what = " and ".join(surveyor.watched[one.watched].what for one in arm.changes if one.since == since)
    return since, [note("fleet.left-out", since=since, what=what)]


class ArmSums(NamedTuple):
    """All that an arm's own fit is made from: name, the days that count, their sum, and what it is worth.

    `daily` is what usual changes from day to day do to the right side of the normal equations, the covariance.
    """

    name: str
    dates: list[str]
    hashes: list[str]
    factor: CompactFactor
    weights: Array
    daily: Array
    notes: Sequence[Note]


def _sums(surveyor: Surveyor, survey: Survey, name: str) -> ArmSums:
    arm, history = survey.arms[name], surveyor.used(name)
    since, notes = _healthy_days(surveyor, arm)
    if since:
        history = history.only(np.array([day.date < since for day in history.days]))
    changes, weights = surveyor.day_to_day(name, survey), 1.0 / (history.noise**2 * history.inflation)
    factors = [day.factor for day in history.days if day.factor is not None]
    with one_blas_thread():
        halves = (factor.normal_equations(weights)[0][:, : len(changes)] for factor in factors)
        daily = reduce(add, (half @ changes @ half.T for half in halves))
    return ArmSums(
        name,
        [day.date for day in history.days],
        [sha for day in history.days for sha in day.files_sha256.values()],
        reduce(add, factors),
        weights,
        daily,
        notes,
    )


def arm_fit(fleet: Fleet, sums: ArmSums) -> tuple[Fit, tuple[str, ...]]:
    """An arm's own physically consistent fit, the object that `armid identify` writes, and why its free one is not.

    Its friction curve is an unknown, in the light of the type's: all of its friction must brake, not the line alone.
    Changes from day to day and errors of the type's curve count for all intervals.
    """
    model, weights, count = fleet.model, sums.weights, len(fleet.model.followed.names)
    believed = model.with_prior(sums.factor, weights)
    solution = solve(believed, weights, rank_tolerance=RANK)
    of_type = solution.inverse[:, count:] @ model.prior_error
    beyond = solution.inverse @ sums.daily @ solution.inverse + of_type @ of_type.T
    found, reasons = _consistent(_free_fit(fleet, sums, believed, solution))
    rms = np.sqrt(residual_squares(sums.factor, found.values) / np.maximum(sums.factor.counts, 1))
    covariance = found.covariance + beyond
    judged = judged_again(found.identifiability, found.values, np.sqrt(np.maximum(np.diag(covariance), 0.0)))
    fit = replace(found, factor=sums.factor, residual_rms=rms, covariance=covariance, identifiability=judged)
    return fit, reasons


def _free_fit(fleet: Fleet, sums: ArmSums, factor: CompactFactor, solution: Solution) -> Fit:
    """A solution as a fit, from the sum of an arm's factors without any data."""
    model, dates = fleet.model.torque, sums.dates
    sigma = np.sqrt(np.maximum(np.diag(solution.inverse), 0.0))
    return Fit(
        robot=fleet.robot,
        columns=model.names,
        values=solution.values,
        covariance=solution.inverse,
        terms=model.terms,
        load_values=model.load_values,
        known_torque=None,
        delay_s=fleet.model.delay_s,
        residual_rms=np.sqrt(solution.squares / np.maximum(solution.counts, 1)),
        noise=None,
        standard_parameters=None,
        factor=factor,
        weights=sums.weights,
        identifiability=identifiability(model.labels, solution, sigma, model.terms),
        method=METHOD,
        options={"arm": sums.name, "dates": dates, "slow_floor": fleet.slow_floor},
        pipeline=tuple(fleet.pipeline.to_data()),
        notes=(note("fleet.days", days=len(dates), first=dates[0], last=dates[-1]), *sums.notes),
        history={"armid": __version__, "data_sha256": sums.hashes, "data": []},
    )


def _consistent(fit: Fit) -> tuple[Fit, tuple[str, ...]]:
    """The physically consistent fit to the same factors, and the audit's reasons why the free one is not.

    An arm whose consistent fit is the free one needs no audit.
    """
    try:
        found = consistent_fit(fit)
    except NotConsistentError as error:
        return fit.with_notes(note("fleet.not-consistent", error=str(error))), _reasons(fit)
    growth = fit.weights @ (residual_squares(fit.factor, found.values) - residual_squares(fit.factor, fit.values))
    return found, () if float(growth) < SAME else _reasons(fit)


def _reasons(fit: Fit) -> tuple[str, ...]:
    """Why an arm cannot have these values, to which no consistent ones were found equal; none if it can after all."""
    try:
        verdict = audit(fit)[0]
    except EstimationError as error:
        return (f"no consistent values equal to these were found; the audit fails: {error}",)
    return () if verdict.possible else verdict.certificates or ("no arm can have these values",)


def _fit_key(fleet: Fleet, surveyor: Surveyor, survey: Survey, arm: ArmSurvey) -> str:
    """Hash of all that an arm's own fit is made from."""
    since, _ = _healthy_days(surveyor, arm)
    history, changes = surveyor.used(arm.name), surveyor.day_to_day(arm.name, survey)
    used = [day.key for day in history.days if not since or day.date < since]
    numbers = np.concatenate([history.noise, history.inflation, changes.ravel()])
    return hashlib.sha256(json.dumps([fleet.key(), used, numbers.tolist()]).encode()).hexdigest()


def _before(folder: Path) -> dict[str, SavedFit]:
    """Fits of the last run."""
    try:
        arms = FleetResult.load(folder / RESULT).arms
    except ArmidError:
        return {}
    return {
        one.name: SavedFit(one.fit, one.fit_sha256, one.key, one.impossible)
        for one in arms
        if one.fit and one.fit_sha256 and one.key
    }


def _is_whole(folder: Path, fit: SavedFit) -> bool:
    """Whether the file of a fit is as it was written."""
    file = folder / fit.file
    return file.is_file() and file_hash(file) == fit.sha256


def result_of(
    fleet: Fleet,
    model: TorqueModel,
    days: Days,
    survey: Survey,
    fits: Mapping[str, SavedFit],
) -> FleetResult:
    """All that was found, for the file."""
    robot, joints = fleet.robot, fleet.robot.joint_names
    dates = sorted({fact.date for facts in days.facts.values() for fact in facts})
    watch, problems = [], list(days.problems)
    for name in days.keys:
        its_days = days(name)
        watch += entries_of(name, its_days, survey, joints)
        problems += unused_days(name, its_days, survey, joints)
    arms = tuple(_arm_result(name, days, survey, fits.get(name), dates, watch) for name in sorted(days.keys))
    counts = FleetCounts(
        arms=len(arms),
        arm_days=days.total,
        used=sum(arm.days for arm in arms),
        misfit_days=sum(one.code == "misfit" for arm in survey.arms.values() for one in arm.excluded),
        samples=sum(arm.samples for arm in arms),
        seconds=rounded(sum(fact.seconds for some in days.facts.values() for fact in some)),
        problems=len(problems),
        watch=len(watch),
    )
    return FleetResult(
        robot=RobotType(robot.name, robot.title, robot.source, tuple(joints)),
        dates=tuple(dates),
        counts=counts,
        watch=tuple(ordered(watch)),
        problems=tuple(sorted(problems, key=lambda one: (one.robot, one.date, one.file))),
        promise=survey.promise,
        parameters=_parameters(model, survey),
        watched=_watched(survey),
        arms=arms,
    )


def _parameters(model: TorqueModel, survey: Survey) -> tuple[TypeParameter, ...]:
    base, estimate = model.model.base, survey.estimate
    expressions = dict(zip(base.labels, (group.expression for group in base.groups), strict=True))
    spread = np.sqrt(np.maximum(np.diag(estimate.spread), 0.0))
    sigma = np.sqrt(np.maximum(np.diag(estimate.mean_covariance) + estimate.mean_doubt, 0.0))
    numbers = np.where(spread > 0.5 * UNSEEN, np.nan, [estimate.mean, sigma, spread]).T
    return tuple(
        TypeParameter(
            *(name, expressions.get(name, name), unit, rounded(mean), rounded(error)),
            rounded(between) if estimate.told else None,
        )
        for name, unit, (mean, error, between) in zip(model.labels, model.units, numbers, strict=True)
    )


def _watched(survey: Survey) -> tuple[WatchedQuantity, ...]:
    usual = survey.usual
    numbers = zip(usual.day_to_day, usual.per_degree, usual.reference, survey.least, strict=True)
    return tuple(
        WatchedQuantity(
            *(one.name, one.what, None if one.joint is None else one.joint + 1, one.unit, one.relative),
            *(rounded(daily), rounded(slope), rounded(reference, 4), rounded(least, 3)),
        )
        for one, (daily, slope, reference, least) in zip(survey.watched, numbers, strict=True)
    )


def _arm_result(
    name: str,
    days: Days,
    survey: Survey,
    fit: SavedFit | None,
    dates: Sequence[str],
    watch: Sequence[WatchEntry],
) -> ArmResult:
    arm, facts = survey.arms.get(name), days.facts[name]
    known = arm is not None and bool(arm.used.any())
    look = any(one.robot == name for one in watch)
    result = ArmResult(
        name=name,
        state="look" if look else "good" if known else "no data",
        days=0 if arm is None else int(arm.used.sum()),
        samples=sum(fact.samples for fact in facts),
        seconds=rounded(sum(fact.seconds for fact in facts)),
        possible=None if fit is None else not fit.impossible,
        impossible=() if fit is None else fit.impossible,
        fit=None if fit is None else fit.file,
        fit_sha256=None if fit is None else fit.sha256,
        key=None if fit is None else fit.key,
    )
    if arm is None or not known:
        return result
    own = survey.estimate.arms[name]
    shown = own.sigma <= 0.5 * UNSEEN
    return msgspec.structs.replace(
        result,
        noise=rounded(arm.noise),
        values=rounded(np.where(shown, own.values, np.nan)),
        sigma=rounded(np.where(shown, own.sigma, np.nan)),
        own=rounded(own.own_share),
        deviation=rounded(own.deviation),
        unusual=own.unusual,
        series=_course(arm, survey, dates),
    )


def _course(arm: ArmSurvey, survey: Survey, dates: Sequence[str]) -> ArmCourse | None:
    if arm.series is None:
        return None
    place = {date: i for i, date in enumerate(dates)}
    names, sigma = [one.name for one in survey.watched], np.sqrt(arm.series.variance)
    return ArmCourse(
        days=tuple(place[date] for date in np.array(arm.dates)[arm.used].tolist()),
        temperature=rounded(arm.temperature, 4),
        deviation={name: rounded(arm.series.values[:, k], 4) for k, name in enumerate(names)},
        deviation_sigma={name: rounded(sigma[:, k], 3) for k, name in enumerate(names)},
    )
