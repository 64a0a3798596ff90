"""Days that are not what they say: torques of the wrong sign, dead, exchanged, motion exchanged, and misfits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armid.arrays import Array, Mask
from armid.dynamics.factor import CompactFactor
from armid.estimation.linear import residual_squares
from armid.fleet.changes import ArmChanges
from armid.fleet.day import ArmDay
from armid.fleet.hierarchy import told_noise
from armid.fleet.reduce import SUSPECT
from armid.fleet.type_model import TypeModel
from armid.fleet.usual import CENTRE

REVERSED = 0.25, 0.05  # squared residual with the torque's sign changed over that without: below, the sign is wrong
SILENT = 0.1  # squared torque over that of the arm's type, below which a torque channel may be dead
ALIVE = 0.5  # correlation with the expected torque from which on a small torque is not dead: little friction, a gain
LEAST_ROWS = 20, 5  # of a joint, from which on its torque is judged; from the second on only by the second limit
ENOUGH_ROWS = 50  # with fewer, a single reversal decides how well a day fits
LOUD = 3.0  # times the usual noise of the fleet's arms, above which an arm's own may come from days that are wrong
MOSTLY, REST = 0.5, 0.1  # share of squares beyond the noise that a change may leave of days that it explains, of one
TOGETHER = 0.7  # of the worst misfit of an arm's days, above which others are left out with that day
ALIKE = 4.0  # times the squares that it leaves of other days
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
    payload that is there or missing can balance or turn over the torque of a joint: no torque is wrong where a load in
    the hand explains all of them better.

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
    accused, unlike = {}, set()
    for joint, rows in enumerate(day.factor.counts):
        if rows < LEAST_ROWS[1]:
            continue
        code, related = _judged(day.factor, joint, values)
        if code:
            accused[joint] = code
        if not related and rows >= LEAST_ROWS[0]:
            unlike.add(joint)
    wrong = _no_load(day.factor, accused, values, noise, payload)
    found = [ExcludedDay(day.date, code, (joint,)) for joint, code in wrong.items()]
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


def _no_load(
    factor: CompactFactor, accused: dict[int, str], values: Array, noise: Array, payload: Array
) -> dict[int, str]:
    """The torques among those accused that no load in the hand explains better.

    That some are wrong and the others right is a hypothesis; so is that one less of them is. The best is looked for
    from all accused on, each with the load that fits it best.
    """
    wrong, left = dict(accused), _left(factor, accused, values, noise, payload)
    while wrong:
        fewer = {joint: {other: code for other, code in wrong.items() if other != joint} for joint in wrong}
        lefts = {joint: _left(factor, some, values, noise, payload) for joint, some in fewer.items()}
        best = min(lefts, key=lambda joint: lefts[joint])
        if lefts[best] >= left:
            break
        wrong, left = fewer[best], lefts[best]
    return wrong


def _left(factor: CompactFactor, wrong: dict[int, str], values: Array, noise: Array, payload: Array) -> float:
    """Squares over those of the noise that are left of a day's torques, some of them wrong, with the load that fits.

    A priori its torques are about as large as the arm's own, and its centre lies within some decimetres.
    """
    adds = np.pad(payload, ((0, len(values) - len(payload)), (0, 0)))  # nothing to the friction curve
    A, b, left, own, seen = np.zeros((10, 10)), np.zeros(10), 0.0, 0.0, 0.0
    for joint, columns in enumerate(factor.columns):
        if not noise[joint] > 0.0:
            continue
        P, gram, code = adds[columns], factor.gram(joint) / noise[joint] ** 2, wrong.get(joint)
        expected, added = gram[:-1, :-1] @ values[columns], P.T @ gram[:-1, :-1] @ P
        own, seen, left = own + values[columns] @ expected, seen + added[0, 0], left + gram[-1, -1]
        if code != "dead":
            measured = -gram[:-1, -1] if code == "sign" else gram[:-1, -1]
            A, b = A + added, b + P.T @ (measured - expected)
            left += values[columns] @ (expected - 2.0 * measured)
    if not seen > 0.0:
        return float(left)
    spread = np.sqrt(own / seen) * np.array([1.0, *[CENTRE] * 3, *[CENTRE**2] * 6])  # of mass, first moments, inertia
    scaled = spread * b
    return float(left - scaled @ np.linalg.solve(np.eye(10) + A * np.outer(spread, spread), scaled))


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


def misfits(
    searcher: ArmChanges, model: TypeModel, typical: Array, *, changed: bool = True, brief: Sequence[int] = ()
) -> Array:
    """Rms of each day's residuals over the noise, (days, joints).

    Days of an arm that is much louder than the others are judged by the noise of these, or of its own quietest quarter:
    its usual noise may come from bad days.

    Args:
        searcher: of the arm, with its changes.
        model: of the type.
        typical: usual noise of the fleet's arms per joint [N m].
        changed: with the changes found so far, or without.
        brief: days that are judged as if they were like the day before.
    """
    values, history = searcher.fitted(changed=changed) + searcher.shift, searcher.history
    for day in brief:
        values[day] = values[day - 1]
    told = np.sort(told_noise(history.days, model), axis=0)  # NaN last
    quiet = np.take_along_axis(told, np.isfinite(told).sum(axis=0, keepdims=True) // 4, axis=0)[0]
    whole, noise = history.with_curve(values), np.fmin(history.noise, np.fmax(LOUD * typical, quiet))
    return np.array([misfit(day, one, noise) for day, one in zip(history.days, whole, strict=True)])


def odd_days(searcher: ArmChanges, model: TypeModel, typical: Array, limits: Array) -> Array:
    """Misfits that nothing explains, over what a day may have; 0 for all others, (days, joints).

    A change of something other than a load that the next day takes back explains nothing: the day is odd.
    """
    times, brief = misfits(searcher, model, typical), searcher.brief
    odd = times > limits
    if odd.any() and searcher.changes:
        before, onsets = misfits(searcher, model, typical, changed=False), {one.onset for one in searcher.changes}
        odd &= ~explained(odd, times, before, sorted(onsets))
    if brief:
        times[brief] = misfits(searcher, model, typical, brief=brief)[brief]
        odd[brief] = times[brief] > limits
    return np.where(odd, times / limits, 0.0)


def odd_day(day: ArmDay, times: Array, joints: Sequence[str]) -> ExcludedDay:
    """Why a day that nothing explains does not count, from its misfits, (joints,)."""
    said, joint = said_exchanged(day, joints), int(np.argmax(times))
    return (
        ExcludedDay(day.date, "exchanged", said)
        if said
        else ExcludedDay(day.date, "misfit", (joint,), float(times[joint]))
    )


def worst_days(odd: Array) -> Mask:
    """Of misfits over what a day may have, (days, joints), the worst day, and those about as bad.

    Days that a fit has in common with them may fit without them.
    """
    most = odd.max(axis=1)
    return np.asarray(most > TOGETHER * most.max())


def explained(odd: Mask, times: Array, before: Array, onsets: Sequence[int]) -> Mask:
    """Of which odd days and joints, (days, joints), changes explain the misfit, but for a small rest.

    The rest is small over what they explain of that joint's, or of all joints' if other days have it alike: friction in
    proportion to the load, for one, is known only roughly where a payload is not. All days before, or from, a change
    that explains most of their misfit are explained, too: without them it could not be seen.

    Args:
        odd: what is to be explained.
        times: misfits with the changes.
        before: without them.
        onsets: first days of the changes, in order.
    """
    excess, plain = (np.maximum(one**2 - 1.0, 0.0) for one in (times, before))
    alike = np.ones_like(odd)
    for days in np.split(np.arange(len(times)), onsets):
        for k in days if len(days) > 1 else ():
            alike[k] = excess[k] <= ALIKE * np.median(excess[days[days != k]], axis=0)
    small = excess < REST * plain.sum(axis=1, keepdims=True)
    found: Mask = np.array((excess < REST * plain) | (small & alike))
    for side in (some for onset in onsets for some in (np.s_[:onset], np.s_[onset:])):
        if np.asarray(odd.any(axis=1))[side].all() and excess[side].sum() < MOSTLY * plain[side].sum():
            found[side] = True
    return found
