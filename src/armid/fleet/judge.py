"""Days that are not what they say: judged by the fleet's knowledge of the arm, which one log alone does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.fleet.day import ArmDay

REVERSED = 0.25  # squared residual with the torque's sign changed over that without, below which the sign is wrong
SILENT = 0.1  # squared torque over that of the arm's type, below which a torque channel is dead
LEAST_ROWS = 20
ENOUGH_ROWS = 50  # with fewer, a single reversal decides how well a day fits
#: Findings of the log doctor that make a day suspect until the fleet has judged it.
SUSPECT = ("sign-flipped", "swapped-joints")
#: Findings that are told, by code: kind of entry in the watch list, and what to say.
TOLD = {
    "dead-channel": ("dead", "{channel} of joint {number} is dead"),
    "mostly-zero": ("dead", "{channel} of joint {number} is zero most of the time"),
    "degrees": ("data", "positions are in degrees, not in radians"),
    "time-unit": ("data", "time is in another unit"),
    "rate-differs": ("data", "the stated rate contradicts the timestamps"),
    "clock-jump": ("data", "{clock}"),
    "copied-file": ("data", "{what}"),
}
UNRELATED = 0.5  # squared residual over the squares of measured and expected torque: 1 if they have nothing in common
_OFF = re.compile(r"([+-]\d+) days? off")


def suspect(day: ArmDay) -> bool:
    """Whether the log doctor saw something that would spoil an arm's sums."""
    return any(one["code"] in SUSPECT and one["severity"] == "error" for one in day.findings)


def wrong_torques(day: ArmDay, values: Array) -> list[tuple[str, int]]:
    """Joints whose torque has the wrong sign or is dead on a day, seen from the parameters of the type.

    The factor holds all that is needed: the squares of tau - W x, tau + W x, W x and tau itself.
    """
    assert day.factor is not None
    found = []
    for joint, columns in enumerate(day.factor.columns):
        if day.factor.counts[joint] < LEAST_ROWS:
            continue
        expected, cross, power = _squares(day.factor, joint, values[columns])
        if power < SILENT * expected:
            found.append(("dead", joint))
        elif expected + 2.0 * cross + power < REVERSED * (expected - 2.0 * cross + power):
            found.append(("sign", joint))
    return found


def _squares(factor: CompactFactor, joint: int, x: Array) -> tuple[float, float, float]:
    """Of the expected torque, its product with the measured one, and of the measured one."""
    gram = factor.gram(joint)
    return float(x @ gram[:-1, :-1] @ x), float(gram[:-1, -1] @ x), float(gram[-1, -1])


def said_exchanged(day: ArmDay, joints: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torques the log doctor takes for one another's; empty if there are none."""
    said = {
        finding["joint"]
        for finding in day.findings
        if finding["code"] == "swapped-joints" and finding["severity"] == "error" and "effort of" in finding["what"]
    }
    return tuple(index for index, joint in enumerate(joints) if joint in said)


def exchanged_torques(day: ArmDay, values: Array, joints: Sequence[str]) -> tuple[int, ...]:
    """The same if the parameters of the type agree: none of these torques is anything like what it should be."""
    assert day.factor is not None
    said = said_exchanged(day, joints)
    for joint in said:
        expected, cross, power = _squares(day.factor, joint, values[day.factor.columns[joint]])
        few = day.factor.counts[joint] < LEAST_ROWS
        if few or expected - 2.0 * cross + power < UNRELATED * (expected + power):
            return ()
    return said


def misfit(day: ArmDay, values: Array, noise: Array) -> Array:
    """Rms of a day's residuals at given values over the usual noise, per joint; 0 where the day has few rows."""
    assert day.factor is not None
    result = np.zeros(len(noise))
    for joint, columns in enumerate(day.factor.columns):
        if day.factor.counts[joint] < ENOUGH_ROWS:
            continue
        ends = np.append(-values[columns], 1.0)
        squares = float(np.sum((day.factor.matrices[joint] @ ends) ** 2))
        result[joint] = np.sqrt(squares / max(day.factor.counts[joint], 1)) / noise[joint]
    return result


def told_findings(days: Sequence[ArmDay], joints: Sequence[str]) -> dict[tuple[str, int | None, str], list[str]]:
    """What the log doctor said that belongs into the watch list: dates by kind, joint and words."""
    found: dict[tuple[str, int | None, str], list[str]] = {}
    for day in days:
        for finding in day.findings:
            if finding["code"] not in TOLD or (finding["severity"] != "error" and finding["code"] != "clock-jump"):
                continue
            kind, words = TOLD[finding["code"]]
            joint = joints.index(finding["joint"]) if finding["joint"] in joints else None
            key = kind, joint, words.format(**_filled(finding, joint))
            if day.date not in found.setdefault(key, []):
                found[key].append(day.date)
    return found


def _filled(finding: Mapping[str, Any], joint: int | None) -> dict[str, Any]:
    channel = {"effort": "torque", None: "channel"}.get(finding.get("channel"), finding.get("channel"))
    said = {"what": finding["what"].rstrip("."), "clock": _clock(finding["what"])}
    return {"channel": channel, "number": "?" if joint is None else joint + 1, **said}


def _clock(what: str) -> str:
    """What is wrong with a clock, in words that are the same on all days on which it is as wrong."""
    found = _OFF.search(what)
    if found is None:
        return f"the recorder's clock is wrong ({what.rstrip('.')})"
    off = int(found[1])
    return f"the recorder's clock is {abs(off)} {'day' if abs(off) == 1 else 'days'} {'behind' if off < 0 else 'ahead'}"
