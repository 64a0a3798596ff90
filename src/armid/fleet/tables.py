"""A fleet's findings as the entries of its result file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.fleet.day import ArmDay
from armid.fleet.days import Days
from armid.fleet.description import Fleet
from armid.fleet.hierarchy import UNSEEN
from armid.fleet.judge import said_exchanged, told_findings
from armid.fleet.result import FleetResult, plain
from armid.fleet.survey import ArmSurvey, Survey
from armid.fleet.watch import (
    WRONG,
    Watch,
    change_entries,
    exchanged_entries,
    exchanged_words,
    finding_entries,
    misfit_entries,
    misfit_words,
    reversal_entry,
    torque_entries,
    unfit_entry,
    unusual_entry,
)
from armid.torque.model import TorqueModel

SILENT = 1e-100  # [N m] noise of a joint that never moved is not known


@dataclass(frozen=True)
class Outcome:
    """Of an arm's own fit: its file, the hash of what it was made from, and why it is impossible, if it is."""

    file: str
    key: str
    impossible: tuple[str, ...]


def entries_of(fleet: Fleet, name: str, days: Days, survey: Survey) -> list[Watch]:
    """All reasons to look at one arm."""
    everything = days(name)
    dates = [day.date for day in everything]
    entries = finding_entries(name, told_findings(everything, list(fleet.robot.joint_names)), dates)
    arm = survey.arms.get(name)
    if arm is None:
        return entries
    entries += torque_entries(name, arm.wrong, dates)
    exchanged, unexplained = _misfits(arm, everything, fleet.robot.joint_names)
    for joints, on in exchanged.items():
        entries += exchanged_entries(name, joints, on, dates)
    entries += misfit_entries(name, unexplained, dates)
    entries += [unfit_entry(name, *arm.unfit)] if arm.unfit is not None else []
    entries += change_entries(name, arm.changes, survey.watched, list(np.array(arm.dates)[arm.used]))
    entries += [reversal_entry(name, one, since) for one, since in arm.reversals]
    own = survey.estimate.arms.get(name)
    if own is not None and own.unusual:
        index = {one: i for i, one in enumerate(survey.estimate.names)}
        entries.append(unusual_entry(name, own.unusual, [float(own.deviation[index[one]]) for one in own.unusual]))
    return entries


def _misfits(
    arm: ArmSurvey, days: Sequence[ArmDay], joints: Sequence[str]
) -> tuple[dict[tuple[str, ...], list[str]], dict[str, tuple[int, float]]]:
    """Days whose torques are one another's, by joints; and days that nothing explains, which do not count either."""
    exchanged = {tuple(joints[i] for i in some): list(on) for some, on in arm.exchanged.items()}
    said = {day.date: tuple(joints[i] for i in said_exchanged(day, joints)) for day in days}
    for date in arm.misfits:
        if said.get(date):
            exchanged.setdefault(said[date], []).append(date)
    return exchanged, {date: one for date, one in arm.misfits.items() if not said.get(date)}


def result_of(
    fleet: Fleet,
    model: TorqueModel,
    days: Days,
    survey: Survey,
    outcomes: Mapping[str, Outcome],
    entries: Sequence[Watch],
    false_alarms: float,
) -> FleetResult:
    """All that was found, for the file."""
    dates = sorted({fact["date"] for facts in days.facts.values() for fact in facts})
    looked = {one.arm for one in entries}
    problems = [*_problems(fleet, days, survey), *days.twice]
    facts = [fact for some in days.facts.values() for fact in some]
    arms = tuple(_arm_data(name, days, survey, outcomes.get(name), dates, name in looked) for name in sorted(days.keys))
    return FleetResult(
        robot={
            "name": fleet.robot.name,
            "title": fleet.robot.title,
            "source": fleet.robot.source,
            "joints": list(fleet.robot.joint_names),
        },
        dates=tuple(dates),
        parameters=_parameters(model, survey),
        watched=_watched(survey),
        arms=arms,
        watch=tuple(one.to_data() for one in entries),
        problems=tuple(sorted(problems, key=lambda p: (p["robot"], p["date"], p["file"]))),
        false_alarms=false_alarms,
        threshold=plain(survey.threshold),
        summary_data={
            "arms": len(days.keys),
            "arm_days": days.total,
            "used": int(sum(arm.used.sum() for arm in survey.arms.values())),
            "misfit_days": sum(len(arm.misfits) for arm in survey.arms.values()),
            "samples": int(sum(fact["samples"] for fact in facts)),
            "seconds": plain(sum(fact["seconds"] for fact in facts)),
            "problems": len(problems),
            "watch": len(entries),
        },
    )


def _problems(fleet: Fleet, days: Days, survey: Survey) -> list[dict[str, Any]]:
    """Recordings that were not used: files that are bad, and days that are not what they say or fit nothing."""
    found = []
    for name in days.keys:
        everything = days(name)
        for day in everything:
            for one in day.problems:
                reason = clean_reason(one["file"], one["reason"])
                found.append({"robot": name, "date": day.date, "file": one["file"], "reason": reason})
        arm = survey.arms.get(name)
        if arm is None:
            continue
        exchanged, unexplained = _misfits(arm, everything, fleet.robot.joint_names)
        whole = [(WRONG[kind].format(joint + 1), on) for (kind, joint), on in arm.wrong.items()]
        whole += [(exchanged_words(joints), on) for joints, on in exchanged.items()]
        whole += [(misfit_words(joint), [date]) for date, (joint, _) in unexplained.items()]
        found += [{"robot": name, "date": date, "file": "all", "reason": reason} for reason, on in whole for date in on]
    return found


def clean_reason(file: str, reason: str) -> str:
    """Why a file was not used, without what is said elsewhere: its name and place, and codes of findings."""
    reason = re.sub(rf"^(?:.*[/\\])?{re.escape(file)}: ", "", reason)
    reason = re.sub(r"^[a-z]+(?:-[a-z]+)+: (?=[A-Z])", "", reason)
    return re.sub(r"(?<= )-0(?= in all rows)", "0", reason)


def _parameters(model: TorqueModel, survey: Survey) -> tuple[dict[str, Any], ...]:
    base = model.model.base
    expressions = dict(zip(base.kept, (group.expression for group in base.groups), strict=True))
    estimate = survey.estimate
    sigma = np.sqrt(np.maximum(np.diag(estimate.mean_covariance), 0.0))
    spread = np.sqrt(np.maximum(np.diag(estimate.spread), 0.0))
    unseen = spread > 0.5 * UNSEEN
    mean, sigma, spread = (np.where(unseen, np.nan, one) for one in (estimate.mean, sigma, spread))
    return tuple(
        {
            "name": name,
            "expression": expressions.get(name, name),
            "unit": unit,
            "mean": plain(mean[i]),
            "sigma": plain(sigma[i]),
            "spread": plain(spread[i]) if estimate.told else None,
        }
        for i, (name, unit) in enumerate(zip(model.labels, model.units, strict=True))
    )


def _watched(survey: Survey) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "name": one.name,
            "what": one.what,
            "joint": None if one.joint is None else one.joint + 1,
            "unit": one.unit,
            "relative": one.relative,
            "day_to_day": plain(survey.usual.day_to_day[k]),
            "per_degree": plain(survey.usual.per_degree[k]),
            "reference": plain(survey.usual.reference[k], 4),
        }
        for k, one in enumerate(survey.watched)
    )


def _arm_data(
    name: str, days: Days, survey: Survey, outcome: Outcome | None, dates: Sequence[str], look: bool
) -> dict[str, Any]:
    arm = survey.arms.get(name)
    known = arm is not None and bool(arm.used.any())
    own = survey.estimate.arms[name] if known else None
    facts = days.facts[name]

    def numbers(what: Array | None) -> Any:
        return None if what is None else plain(what)

    return {
        "name": name,
        "state": "look" if look else "good" if known else "no data",
        "days": int(arm.used.sum()) if arm is not None else 0,
        "samples": int(sum(fact["samples"] for fact in facts)),
        "seconds": plain(sum(fact["seconds"] for fact in facts)),
        "noise": numbers(np.where(arm.noise > SILENT, arm.noise, np.nan) if arm is not None and known else None),
        "values": numbers(None if own is None else np.where(own.sigma > 0.5 * UNSEEN, np.nan, own.values)),
        "sigma": numbers(None if own is None else np.where(own.sigma > 0.5 * UNSEEN, np.nan, own.sigma)),
        "own": numbers(None if own is None else own.own_share),
        "deviation": numbers(None if own is None else own.deviation),
        "unusual": [] if own is None else list(own.unusual),
        "possible": None if outcome is None else not outcome.impossible,
        "impossible": [] if outcome is None else list(outcome.impossible),
        "fit": None if outcome is None else outcome.file,
        "key": None if outcome is None else outcome.key,
        "series": None if arm is None or arm.series is None else _series(arm, survey, dates),
    }


def _series(arm: ArmSurvey, survey: Survey, dates: Sequence[str]) -> dict[str, Any]:
    assert arm.series is not None
    index = {date: i for i, date in enumerate(dates)}
    names = [one.name for one in survey.watched]
    sigma = np.sqrt(arm.series.variance)
    return {
        "days": [index[date] for date in np.array(arm.dates)[arm.used].tolist()],
        "temperature": plain(arm.temperature, 4),
        "deviation": {name: plain(arm.series.values[:, k], 4) for k, name in enumerate(names)},
        "deviation_sigma": {name: plain(sigma[:, k], 3) for k, name in enumerate(names)},
    }
