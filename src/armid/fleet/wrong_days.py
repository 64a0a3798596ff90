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
from armid.fleet.usual import CENTRE

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


def wrong_channels(
    day: ArmDay, values: Array, noise: Array, joints: Sequence[str], payload: Array
) -> list[ExcludedDay]:
    """Torques that have the wrong sign, are dead or one another's on a day, seen from the parameters of the type.

    So is motion that is another joint's, where the log doctor says so and no parameters make the torques of these
    joints fit, seen from the usual noise of the fleet's arms. Then nothing can be said of single torques.

    The factor holds all that is needed: the squares of tau - W x, tau + W x, W x and tau itself. Torques are exchanged
    where the log doctor says so and none of them is anything like what it should be. A small torque that goes with the
    expected one is alive: the friction of last joints, which is most of their torque, varies from arm to arm. A
    payload that is there or missing can balance or turn over the torque of a joint: what the other joints say is in
    the hand is expected, too.

    Args:
        day: the arm-day.
        values: parameters of the type, with its friction curve.
        noise: usual rms of residuals per joint [N m].
        joints: their names.
        payload: (parameters without the curve, 10) what a payload adds.
    """
    assert day.factor is not None
    moved = said_exchanged(day, joints, "motion")
    if moved and all(day.rms[joint] > LOUD * noise[joint] for joint in moved):
        return [ExcludedDay(day.date, "motion", moved)]
    found, unlike = [], set()
    for joint, rows in enumerate(day.factor.counts):
        if rows < LEAST_ROWS[1]:
            continue
        code, related = _judged(day.factor, joint, values)
        if code:
            code, _ = _judged(day.factor, joint, _with_load(day.factor, joint, values, noise, payload))
        if code:
            found.append(ExcludedDay(day.date, code, (joint,)))
        if not related and rows >= LEAST_ROWS[0]:
            unlike.add(joint)
    said = said_exchanged(day, joints)
    if said and unlike.issuperset(said):
        found = [ExcludedDay(day.date, "exchanged", said), *(one for one in found if one.joints[0] not in said)]
    return found


def _judged(factor: CompactFactor, joint: int, values: Array) -> tuple[str, bool]:
    """Whether a joint's torque is ``dead`` or has the wrong ``sign``, or neither; whether it is as expected at all."""
    few = factor.counts[joint] < LEAST_ROWS[0]
    expected, cross, power = _squares(factor, joint, values[factor.columns[joint]])
    error, reversed_error = expected - 2.0 * cross + power, expected + 2.0 * cross + power
    related = error < UNRELATED * (expected + power)
    if power < SILENT * expected and cross <= ALIVE * np.sqrt(expected * power) and not few:
        return "dead", related
    return "sign" if reversed_error < REVERSED[few] * error else "", related


def _with_load(factor: CompactFactor, joint: int, values: Array, noise: Array, payload: Array) -> Array:
    """Parameters of the type with what all joints but one say is in the hand, its centre within some decimetres.

    First the mass alone, at the tool's origin; what is known of centre and inertia follows from it.
    """
    adds = np.pad(payload, ((0, len(values) - len(payload)), (0, 0)))  # nothing to the friction curve
    A, b = np.zeros((10, 10)), np.zeros(10)
    for other, columns in enumerate(factor.columns):
        if other != joint and noise[other] > 0.0:
            P, gram = adds[columns], factor.gram(other) / noise[other] ** 2
            A += P.T @ gram[:-1, :-1] @ P
            b += P.T @ (gram[:-1, -1] - gram[:-1, :-1] @ values[columns])
    if not A[0, 0] > 0.0 or b[0] == 0.0:
        return values
    reach = CENTRE * abs(b[0]) / A[0, 0]
    spread = np.array([np.inf, *[reach] * 3, *[CENTRE * reach] * 6])  # of mass, first moments, inertia
    return np.asarray(values + adds @ np.linalg.solve(A + np.diag(spread**-2.0), b))


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
