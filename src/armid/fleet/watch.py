"""The watch list: which arms to look at, and why; and the days that were not used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from math import hypot
from typing import Any

import numpy as np
from msgspec.structs import replace

from armid.fleet.changes import Change
from armid.fleet.day import ALL, ArmDay, UnusedRecording
from armid.fleet.result import WatchEntry, rounded
from armid.fleet.survey import Survey
from armid.fleet.usual import PAYLOAD, Watched
from armid.fleet.wrong_days import ExcludedDay
from armid.notes import note

ORDER = ("sign", "dead", "payload", "misfit", "data", "friction", "load", "offset", "reversal", "unusual")
PUT_DOWN, PUT_DOWN_SIGMA = 0.2, 3.0  # of a mass that is left; or of its standard deviation: then it was put down again
#: Findings that are reported, by code: kind of entry.
REPORTED = {
    **dict.fromkeys(("dead-channel", "mostly-zero"), "dead"),
    **dict.fromkeys(("degrees", "time-unit", "rate-differs", "clock-jump", "copied-file"), "data"),
}


def ordered(entries: Sequence[WatchEntry]) -> list[WatchEntry]:
    """The most pressing first: what makes data wrong, then changes by how sure they are."""
    return sorted(entries, key=lambda one: (ORDER.index(one.kind), -(one.score or 0.0), one.robot, one.since or ""))


def entries_of(name: str, days: Sequence[ArmDay], survey: Survey, joints: Sequence[str]) -> list[WatchEntry]:
    """All reasons to look at one arm."""
    dates = [day.date for day in days]
    entries = finding_entries(name, days, joints)
    arm = survey.arms.get(name)
    if arm is None:
        return entries
    reasons: dict[tuple[Any, ...], list[ExcludedDay]] = {}
    for one in arm.excluded:
        reasons.setdefault((one.code, *(() if one.code == "misfit" else one.joints)), []).append(one)
    for some in reasons.values():
        for since, until in runs([one.date for one in some], dates):
            within = [one for one in some if since <= one.date <= (until or dates[-1])]
            entries.append(_excluded(name, within, since, until, joints))
    if (worst := arm.loud or arm.unfit) is not None:  # its days count all the same: none is better than the others
        code, (joint, times) = "loud" if arm.loud else "unfit", worst
        entries.append(WatchEntry(name, "misfit", code, joint=joint + 1, size=rounded(times, 4), unit="1"))
    entries += change_entries(name, arm.changes, survey.watched, np.array(arm.dates)[arm.used].tolist())
    for change in arm.reversals:
        joint = change.watched + 1
        entries.append(_entry(name, "reversal", "reversal", change, joint, f"reversal{joint}", "1"))
    own = survey.estimate.arms.get(name)
    if own is not None and own.unusual:
        place = {one: i for i, one in enumerate(survey.estimate.names)}
        far = [float(own.deviation[place[one]]) for one in own.unusual]
        entries.append(unusual_entry(name, own.unusual, far, survey.watched))
    return entries


def unused_days(name: str, days: Sequence[ArmDay], survey: Survey, joints: Sequence[str]) -> list[UnusedRecording]:
    """Recordings of an arm that were not used: bad files, and days that are not what they say or fit nothing."""
    found = [UnusedRecording(name, day.date, one.file, one.reason) for day in days for one in day.problems]
    arm = survey.arms.get(name)
    if arm is None:
        return found
    reasons: dict[str, list[str]] = {}
    for one in arm.excluded:
        why = note(f"fleet.{one.code}", joint=one.joints[0] + 1, names=[joints[j] for j in one.joints])
        reasons.setdefault(one.date, []).append(str(why))
    return found + [UnusedRecording(name, date, ALL, "; ".join(some)) for date, some in reasons.items()]


def _excluded(
    arm: str, some: Sequence[ExcludedDay], since: str, until: str | None, joints: Sequence[str]
) -> WatchEntry:
    """Days in a row that do not count for one reason."""
    worst = max(some, key=lambda one: one.times or 0.0)
    code, joint = worst.code, worst.joints[0] + 1
    if code in ("exchanged", "motion"):
        return WatchEntry(arm, "misfit", code, since, until, values={"names": [joints[j] for j in worst.joints]})
    if worst.times is None:
        return WatchEntry(arm, code, code, since, until, joint)
    values = {"days": len(some)}
    return WatchEntry(arm, code, code, since, until, joint, size=rounded(worst.times, 4), unit="1", values=values)


def _entry(arm: str, kind: str, code: str, change: Change, *place: Any, **values: Any) -> WatchEntry:
    """A change of what `place` says: joint, parameter, unit; a payload's mass is better known than its change says."""
    size, sigma = (change.size, change.sigma) if change.carried is None else (change.carried.mass, change.carried.sigma)
    joint, parameter, unit = place
    size, sigma, score = (rounded(one, 4) for one in (size, sigma, change.score))
    span = change.since, None
    return WatchEntry(arm, kind, code, *span, joint, parameter, change.shape, size, sigma, unit, score, values)


def change_entries(
    arm: str, changes: Sequence[Change], watched: Sequence[Watched], dates: Sequence[str]
) -> list[WatchEntry]:
    """All changes of an arm; a payload that is put down again is one entry, with its last day."""
    entries = []
    for change in changes:
        one = watched[change.watched]
        if one.name == PAYLOAD:
            code = PAYLOAD if change.shape == "step" else "payload_ramp"
            entries.append(_entry(arm, PAYLOAD, code, change, None, one.name, one.unit))
        else:
            joint = None if one.joint is None else one.joint + 1
            unit = "1" if one.relative and not change.in_unit else one.unit
            entries.append(_entry(arm, one.kind, change.shape, change, joint, one.name, unit, what=one.what))
    loads = sorted((one for one in entries if one.code == PAYLOAD), key=lambda one: str(one.since))
    for up, down in pairwise(loads):
        if up in entries and _put_down(up, down):
            last = max(date for date in dates if date < str(down.since))
            entries[entries.index(up)] = replace(up, until=last, values={"put_down": True})
            entries.remove(down)
    return entries


def _put_down(up: WatchEntry, down: WatchEntry) -> bool:
    """Whether about nothing is left of a payload after the second change."""
    first, second = float(up.size or 0.0), float(down.size or 0.0)
    error = hypot(up.size_sigma or 0.0, down.size_sigma or 0.0)
    return first > 0.0 > second and abs(first + second) < max(PUT_DOWN * first, PUT_DOWN_SIGMA * error)


def finding_entries(arm: str, days: Sequence[ArmDay], joints: Sequence[str]) -> list[WatchEntry]:
    """What the log doctor said that belongs into the watch list; days in a row are one entry."""
    found: dict[str, tuple[WatchEntry, list[str]]] = {}
    for day in days:
        for one in day.findings:
            if one.code not in REPORTED or (one.severity != "error" and one.code != "clock-jump"):
                continue
            number = joints.index(one.joint) + 1 if one.joint in joints else None
            channel = {"effort": "torque", None: "channel"}.get(one.values.get("channel"), one.values.get("channel"))
            values = {"file": one.file, **one.values, "channel": channel, "joint": number or "?"}
            entry = WatchEntry(arm, REPORTED[one.code], one.code, joint=number, values=values)
            _, on = found.setdefault(f"{number} {entry.what}", (entry, []))
            if day.date not in on:
                on.append(day.date)
    dates = [day.date for day in days]
    return [replace(one, since=s, until=u) for one, on in found.values() for s, u in runs(on, dates)]


def unusual_entry(
    arm: str, names: Sequence[str], deviations: Sequence[float], watched: Sequence[Watched]
) -> WatchEntry:
    """An arm that is not like the others."""
    values: dict[str, Any] = {"names": list(names), "deviations": [rounded(one, 4) for one in deviations]}
    values["watched"] = {one.name: one.what for one in watched if one.name in names}
    score = rounded(abs(deviations[0]), 4)
    return WatchEntry(arm, "unusual", "unusual", parameter=names[0], score=score, values=values)


def runs(on: Sequence[str], dates: Sequence[str]) -> list[tuple[str, str | None]]:
    """Stretches of days of an arm on which something holds: first day, and last day or None if it lasts."""
    found: list[tuple[str, str | None]] = []
    for holds, some in groupby(dates, set(on).__contains__):
        days = list(some)
        if holds:
            found.append((days[0], None if days[-1] == dates[-1] else days[-1]))
    return found
