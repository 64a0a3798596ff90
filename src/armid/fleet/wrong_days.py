"""Days that are not what they say: torques of the wrong sign, dead, exchanged, motion exchanged, and misfits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.estimation.linear import residual_squares
from armid.fleet.day import ArmDay
from armid.fleet.reduce import SUSPECT

REVERSED = 0.25, 0.05  # squared residual with the torque's sign changed over that without: below, the sign is wrong
SILENT = 0.1  # squared torque over that of the arm's type, below which a torque channel may be dead
ALIVE = 0.5  # correlation with the expected torque from which on a small torque is not dead: little friction, a gain
LEAST_ROWS = 20, 5  # of a joint, from which on its torque is judged; from the second on only by the second limit
ENOUGH_ROWS = 50  # with fewer, a single reversal decides how well a day fits
LOUD = 3.0  # times the usual noise of the fleet's arms, above which motion that looks exchanged is taken for it
UNRELATED = 0.5  # squared residual over the squares of measured and expected torque: 1 if they have nothing in common


class ExcludedDay(NamedTuple):
    """Why a day does not count.

    Attributes:
        date: of the day.
        code: ``sign``, ``dead`` or ``exchanged`` torques, exchanged ``motion``, or a ``misfit`` that nothing explains.
        joints: whose torques or motion, indices.
        times: residuals of a misfit over the usual noise.
    """

    date: str
    code: str
    joints: tuple[int, ...]
    times: float | None = None


def suspect(day: ArmDay) -> bool:
    """Whether the log doctor saw something that would spoil an arm's sums."""
    return any(one.code in SUSPECT and one.severity == "error" for one in day.findings)


def wrong_channels(day: ArmDay, values: Array, noise: Array, joints: Sequence[str]) -> list[ExcludedDay]:
    """Torques that have the wrong sign, are dead or one another's on a day, seen from the parameters of the type.

    So is motion that is another joint's, where the log doctor says so and no parameters make the torques of these
    joints fit, seen from the usual noise of the fleet's arms. Then nothing can be said of single torques.

    The factor holds all that is needed: the squares of tau - W x, tau + W x, W x and tau itself. Torques are exchanged
    where the log doctor says so and none of them is anything like what it should be. A small torque that goes with the
    expected one is alive: the friction of last joints, which is most of their torque, varies from arm to arm.
    """
    assert day.factor is not None
    moved = said_exchanged(day, joints, "motion")
    if moved and all(day.rms[joint] > LOUD * noise[joint] for joint in moved):
        return [ExcludedDay(day.date, "motion", moved)]
    found, unlike = [], set()
    for joint, columns in enumerate(day.factor.columns):
        rows = day.factor.counts[joint]
        if rows < LEAST_ROWS[1]:
            continue
        expected, cross, power = _squares(day.factor, joint, values[columns])
        error, reversed_error = expected - 2.0 * cross + power, expected + 2.0 * cross + power
        few = rows < LEAST_ROWS[0]
        if error >= UNRELATED * (expected + power) and not few:
            unlike.add(joint)
        if power < SILENT * expected and cross <= ALIVE * np.sqrt(expected * power) and not few:
            found.append(ExcludedDay(day.date, "dead", (joint,)))
        elif reversed_error < REVERSED[few] * error:
            found.append(ExcludedDay(day.date, "sign", (joint,)))
    said = said_exchanged(day, joints)
    if said and unlike.issuperset(said):
        found = [ExcludedDay(day.date, "exchanged", said), *(one for one in found if one.joints[0] not in said)]
    return found


def _squares(factor: CompactFactor, joint: int, x: Array) -> tuple[float, float, float]:
    """Of the expected torque, its product with the measured one, and of the measured one."""
    gram = factor.gram(joint)
    return float(x @ gram[:-1, :-1] @ x), float(gram[:-1, -1] @ x), float(gram[-1, -1])


def said_exchanged(day: ArmDay, joints: Sequence[str], of: str = "effort") -> tuple[int, ...]:
    """Joints whose torques (or motion) the log doctor takes for one another's; empty if there are none."""
    said = {
        one.joint
        for one in day.findings
        if one.code == "swapped-joints" and one.severity == "error" and one.values.get("of") == of
    }
    return tuple(index for index, joint in enumerate(joints) if joint in said)


def misfit(day: ArmDay, values: Array, noise: Array) -> Array:
    """Rms of a day's residuals at given values over the usual noise, per joint; 0 where the day has few rows."""
    assert day.factor is not None
    counts = np.array(day.factor.counts)
    rms = np.sqrt(residual_squares(day.factor, values) / np.maximum(counts, 1))
    return np.where(counts >= ENOUGH_ROWS, rms / noise, 0.0)
