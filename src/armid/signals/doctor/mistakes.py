"""Mistakes between log and description: joints exchanged or reversed, gravity, zero positions and gains that are wrong.

Each is undone in turn, and the model is fitted again. A mistake is named if the model then fits better than noise and
errors of the model let it, and if what it takes is the same in all parts of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from armid.arrays import Array, Mask
from armid.dynamics.factor import CompactFactor
from armid.dynamics.model import Model
from armid.robot.robot import inertial_names
from armid.signals.doctor.finding import Finding, found
from armid.signals.doctor.fit import (
    FitRows,
    column_names,
    factors,
    fit,
    jackknife,
    known_torque,
    late_friction,
    low_passed,
    model_columns,
    moved,
    solve,
    total,
    variance,
)

_ROUNDS = 3  # mistakes that are looked for, one after the other
# Undoing a mistake must lower the sum over joints of the log of the mean square residual by so much. On clean logs the
# best of a hundred exchanged and reversed joints gains 0.3, another gravity nothing; planted mistakes gain 2 to 20.
_GAINS = {"swap": 1.5, "flip": 1.5, "gravity": 0.5, "gain": 0.5, "zero": 0.1}
# Leaving out parts of the log tells how well the gain is known, or the zero that was estimated.
_SIGMAS = {"gravity": 3.0, "gain": 5.0, "zero": 5.0}
_LEAST_GAIN = 0.4  # logarithm of the factor; currents tell torque to 10 or 15 %
_LEAST_ZERO, _MOST_ZERO = 0.08, 0.7  # [rad or m]; real arms are off by a degree or two, and a wall is π/2
_FACTORS = 2.0 ** np.array([-2.0, -1.5, -1.0, 1.0, 1.5, 2.0])
_ZEROS = (0.0, -0.25, 0.25, -0.5, 0.5)  # where the search for a zero starts [rad or m]
_LOADED = 0.1  # weight of a joint over the largest, from which on its zero is looked for
_TURNS, _STEP, _NUDGE = 4, 0.5, 1e-4
_LEAST_TILT = 0.08  # [rad] between the gravity that fits best and one that is stated, or along an axis
_ALIKE = 0.95  # correlation of weights from which on the sign of gravity is told by where the links are


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake, and how well the model fits once it is undone.

    Attributes:
        kind: ``none``, ``swap``, ``flip``, ``gravity``, ``zero`` or ``gain``.
        joints: indices of the joints concerned.
        of: ``motion``, ``effort`` or ``both``.
        misfit: sum over joints of the log of the mean square residual over the variance of the effort.
        value: what undoes it: gravity [m/s^2], an offset of the position [rad or m], a factor of the effort.
        sigmas: value, or gain, over its standard error; None where it does not matter.
    """

    kind: str
    joints: tuple[int, ...] = ()
    of: str = "effort"
    misfit: float = 0.0
    value: Any = None
    sigmas: float | None = None

    def undone(self, model: Model, rows: FitRows) -> tuple[Model, FitRows]:
        """Robot and rows without it."""
        joints = rows.q.shape[1]
        order, sign, one = np.arange(joints), np.ones(joints), np.eye(joints)[list(self.joints)].sum(axis=0)
        if self.kind == "gravity":
            return Model(model.robot.with_gravity(self.value)), rows
        if self.kind == "zero":
            return model, replace(rows, q=rows.q + self.value * one, memory={"friction": late_friction(rows)})
        if self.kind == "gain":
            return model, replace(rows, effort=rows.effort * self.value**one)
        if self.kind == "swap":
            order[list(self.joints)] = self.joints[::-1]
        elif self.kind == "flip":
            sign = 1.0 - 2.0 * one
        if self.of != "effort":
            q, qd, qdd = (x[:, order] * sign for x in (rows.q, rows.qd, rows.qdd))
            rows = replace(rows, q=q, qd=qd, qdd=qdd, keep=rows.keep[:, order], memory={})
        return model, rows if self.of == "motion" else replace(rows, effort=rows.effort[:, order] * sign)


def examine_mistakes(model: Model, rows: FitRows, moving: Mask) -> tuple[list[Finding], Model, FitRows]:
    """What is wrong with order, signs, gravity, zeros and gains, and robot and rows without that.

    An effort that is late is moved first, where that explains more than any mistake does: a model with other zeros
    follows a late effort better, and a wrong gain looks late. Of efforts in the wrong order, or with wrong signs,
    nobody knows how late they are.
    """
    findings: list[Finding] = []
    raw = rows.thinned()
    late = fit(rows, model_columns(model, rows), known_torque(model, rows), shared=True).delay_s
    prompt = replace(rows, effort=moved(rows, rows.effort, np.where(moving, late, 0.0))).thinned()
    as_is, in_time = _Fitted(model, raw).misfit, _Fitted(model, prompt).misfit
    shown = [one for one in trials(model, raw, moving) if _shows(one, as_is)]
    better = any(one.kind in ("swap", "flip") or one.misfit < in_time for one in shown)
    few = raw if better or as_is < in_time else prompt
    for _ in range(_ROUNDS):
        as_is = _Fitted(model, few).misfit
        tried = [mistake for mistake in trials(model, few, moving) if _shows(mistake, as_is)]
        best = _best(tried)
        if best is None:
            break
        findings += mistaken(best, as_is - best.misfit, model)
        _, rows = best.undone(model, rows)
        model, few = best.undone(model, few)
    return findings, model, rows


def _best(tried: list[Mistake]) -> Mistake | None:
    """What explains most; instead of exchanging two joints, a gain of one of them that explains nearly as much.

    Of several drives with other gains, an exchange explains some; a true exchange leaves nothing but noise.
    """
    best = min(tried, key=lambda mistake: mistake.misfit, default=None)
    if best is None or best.kind != "swap":
        return best
    gains = [one for one in tried if one.kind == "gain" and one.joints[0] in best.joints]
    gain = min(gains, key=lambda mistake: mistake.misfit, default=best)
    return gain if gain.misfit < best.misfit + _GAINS["swap"] else best


def _shows(mistake: Mistake, as_is: float) -> bool:
    gain = as_is - mistake.misfit
    known = mistake.sigmas is None or mistake.sigmas > _SIGMAS[mistake.kind]
    return gain > _GAINS[mistake.kind] and known


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A fit of the model to rows; `extra` are columns that all joints share, `base` as in `column_names`."""

    model: Model
    rows: FitRows
    extra: Array | None = None
    base: bool = True
    parts: list[CompactFactor] = field(init=False)
    found: Array = field(init=False)
    misfit: float = field(init=False)
    ones: int = field(init=False)  # place of the column of ones

    def __post_init__(self) -> None:
        rows = self.rows
        if self.model not in rows.memory or not self.base:
            both = (model_columns(self.model, rows, base=self.base), known_torque(self.model, rows))
            rows.memory[self.model] = [low_passed(rows, x) for x in both]
        columns, known = rows.memory[self.model] if self.base else rows.memory.pop(self.model)
        if self.extra is not None:
            extra = self.extra.reshape(*columns.shape[:2], -1)
            columns = np.concatenate([columns, low_passed(rows, extra)], axis=2)
        parts = factors(columns, late_friction(rows), rows.effort - known, rows, shared=True)
        whole = total(parts)
        found, squares = solve(whole)
        misfit = np.log(np.maximum(squares / variance(whole, columns.shape[2]), 1e-12)).sum()
        for name, value in (("parts", parts), ("found", found), ("misfit", float(misfit)), ("ones", columns.shape[2])):
            object.__setattr__(self, name, value)

    def values(self) -> dict[str, float]:
        """The parameters, by name."""
        return dict(zip(column_names(self.model, base=self.base), self.found[0].tolist(), strict=False))

    def without_a_part(self) -> Iterator[tuple[Array, float]]:
        """Coefficients and misfit with each block of the log left out."""
        for left in self.parts:
            whole = total(part for part in self.parts if part is not left)
            found, squares = solve(whole)
            yield found[0], float(np.log(np.maximum(squares / variance(whole, self.ones), 1e-12)).sum())


def trials(model: Model, rows: FitRows, moving: Mask) -> Iterator[Mistake]:
    """Every single mistake undone."""
    movers = [int(j) for j in np.flatnonzero(moving)]
    wiring = [("flip", (j,)) for j in movers] + [("swap", pair) for pair in combinations(movers, 2)]
    for kind, joints in wiring:
        _, other = Mistake(kind, joints, "motion").undone(model, rows)
        effort = Mistake(kind, joints, "effort")
        for of, undone in (
            ("effort", effort.undone(model, rows)[1]),
            ("motion", other),
            ("both", effort.undone(model, other)[1]),
        ):
            yield replace(effort, of=of, misfit=_Fitted(model, undone).misfit)
    as_is = _Fitted(model, rows)
    if 2 * len(movers) > len(moving):
        yield from _gravities(as_is)
    weight = model.gravity_torque(rows.q, as_is.values()).std(axis=0)
    for j in movers:
        yield from _gain(as_is, j)
        if weight[j] > _LOADED * weight.max():
            yield from _zero(as_is, j)


def _gravities(as_is: _Fitted) -> Iterator[Mistake]:
    """Gravity along the axes of the base, its sign by where the links are where both signs fit alike; or oblique."""
    robot, best_of_all = as_is.model.robot, as_is
    size = float(np.linalg.norm(robot.gravity))
    for axis in size * np.eye(3) if size > 0.0 else ():
        pair = [_Fitted(Model(robot.with_gravity(sign * axis)), as_is.rows, base=False) for sign in (-1.0, 1.0)]
        best, worse = sorted(pair, key=lambda fitted: fitted.misfit)
        chosen, told = best, False
        if worse.misfit - best.misfit < _GAINS["gravity"] and not (robot.springs or robot.linear_springs):
            alike = weight_alike(best)
            told, chosen = abs(alike) > _ALIKE, worse if alike < -_ALIKE else best
        gravity = chosen.model.robot.gravity
        best_of_all = min(best_of_all, chosen, key=lambda fitted: fitted.misfit)
        if gravity @ robot.gravity > 0.99 * size**2:
            continue
        mistake = Mistake("gravity", misfit=chosen.misfit, value=tuple((gravity + 0.0).tolist()))
        if told and gravity @ robot.gravity < -0.99 * size**2:  # upside down, and only the links tell
            yield replace(mistake, misfit=as_is.misfit - 2.0 * _GAINS["gravity"])
        else:
            yield replace(mistake, sigmas=_sigmas(as_is, chosen))
    if size > 0.0:
        yield from _oblique(as_is, best_of_all)


def _oblique(as_is: _Fitted, start: _Fitted) -> Iterator[Mistake]:
    """The direction of gravity that fits best, by Gauss and Newton, where it is far from where the search starts."""
    robot, rows = as_is.model.robot, as_is.rows
    here, size = _Fitted(start.model, rows, base=False), float(np.linalg.norm(robot.gravity))
    place = len(column_names(here.model, base=False))
    for _ in range(_TURNS):
        across = np.linalg.svd(here.model.robot.gravity[None])[2][1:] * size
        weights = [Model(robot.with_gravity(one)).gravity_torque(rows.q, here.values()) for one in across]
        moved = _Fitted(here.model, rows, np.stack(weights, axis=2), base=False)
        gravity = here.model.robot.gravity + np.clip(moved.found[0, place : place + 2], -_STEP, _STEP) @ across
        error = jackknife(np.array([found[place : place + 2] for found, _ in moved.without_a_part()]))
        tilted = _Fitted(Model(robot.with_gravity(size * gravity / np.linalg.norm(gravity))), rows, base=False)
        if tilted.misfit > here.misfit - 1e-3:
            break
        here = tilted
    gravity = here.model.robot.gravity
    angle = float(np.arccos(np.clip(gravity @ start.model.robot.gravity / size**2, -1.0, 1.0)))
    known = angle > _SIGMAS["zero"] * float(np.hypot(*error))
    if angle > _LEAST_TILT and known and start.misfit - here.misfit > _GAINS["gravity"]:
        value, misfit = tuple(np.round(gravity, 2).tolist()), here.misfit + 0.5 * _GAINS["gravity"]
        # What a single wrong number explains as well, such as the zero of the first joint on a wall, comes first.
        yield Mistake("gravity", misfit=misfit, value=value, sigmas=_sigmas(as_is, here))


def _sigmas(as_is: _Fitted, fitted: _Fitted) -> float:
    """How much better a fit is, over the standard error of that."""
    gain = as_is.misfit - fitted.misfit
    if gain < min(_GAINS.values()):
        return 0.0
    pairs = zip(as_is.without_a_part(), fitted.without_a_part(), strict=True)
    error = jackknife(np.array([[before - after] for (_, before), (_, after) in pairs]))
    return gain / max(float(error[0]), 1e-12)


def weight_alike(fitted: _Fitted) -> float:
    """Correlation of the fitted weight with that of the stated inertias, or of rods from joint to joint."""
    model, q = fitted.model, fitted.rows.q
    one, other = (model.gravity_torque(q, values) for values in (fitted.values(), stated_inertia(model)))
    keep = fitted.rows.keep
    return float((one * other)[keep].sum() / max(np.sqrt((one[keep] ** 2).sum() * (other[keep] ** 2).sum()), 1e-300))


def stated_inertia(model: Model) -> dict[str, float]:
    """Inertial parameters of the robot's file; without these, of links as rods between the joints, as heavy as long."""
    robot = model.robot
    inertia = robot.nominal_inertia
    if inertia is None or not np.any(inertia):
        ends = [(joint.parent, joint.placement[:3, 3]) for joint in robot.links if joint.parent > 0]
        inertia = np.zeros((len(robot.links), 10))
        for link, end in (*ends, (robot.n_joints, robot.tool[:3, 3])):
            frame = robot.links[link - 1].link_frame
            start = -frame[:3, :3].T @ frame[:3, 3]
            inertia[link - 1, :4] += float(np.linalg.norm(end - start)) * np.array([1.0, *(0.5 * (start + end))])
    pairs = zip(range(1, len(robot.links) + 1), inertia, strict=True)
    return {name: float(x) for link, phi in pairs for name, x in zip(inertial_names(link), phi, strict=True)}


def _gain(as_is: _Fitted, joint: int) -> Iterator[Mistake]:
    """The factor of a joint's effort that fits best: other joints feel the same masses.

    From the best of a few it is refined with the joint's own rigid torque as a column, whose coefficient is what the
    factor is still wrong by.
    """
    model, rows, place = as_is.model, as_is.rows, len(column_names(as_is.model))
    if as_is.misfit - _Fitted(model, rows, _rigid(as_is, joint)).misfit < 0.5 * _GAINS["gain"]:
        return
    tried = [Mistake("gain", (joint,), value=float(factor)) for factor in _FACTORS]
    value = min(tried, key=lambda mistake: _Fitted(*mistake.undone(model, rows)).misfit).value
    for _ in range(_TURNS):
        here = _Fitted(*Mistake("gain", (joint,), value=value).undone(model, rows))
        moved = _Fitted(model, here.rows, _rigid(here, joint))
        value /= 1.0 + float(np.clip(moved.found[0, place], -_STEP, _STEP))
    error = float(jackknife(np.array([found[place : place + 1] for found, _ in moved.without_a_part()]))[0])
    fitted = _Fitted(*Mistake("gain", (joint,), value=value).undone(model, rows))
    if abs(np.log(value)) > _LEAST_GAIN:
        yield Mistake("gain", (joint,), "effort", fitted.misfit, value, abs(np.log(value)) / max(error, 1e-12))


def _rigid(fitted: _Fitted, joint: int) -> Array:
    """The fitted torque of one joint without friction, (rows, joints)."""
    model, rows = fitted.model, fitted.rows
    torque = model.inverse_dynamics(rows.q, rows.qd, rows.qdd, fitted.values()) - known_torque(model, rows)
    return np.asarray(torque * np.eye(rows.q.shape[1])[joint])


def _zero(as_is: _Fitted, joint: int) -> Iterator[Mistake]:
    """The zero position of a joint that fits best, by Gauss and Newton with the slope of the torque as a column."""
    model, rows = as_is.model, as_is.rows
    starts = [Mistake("zero", (joint,), "motion", value=zero) for zero in _ZEROS]
    misfits = [_Fitted(*start.undone(model, rows)).misfit for start in starts]
    value = _ZEROS[int(np.argmin(misfits))]
    if value == 0.0 and as_is.misfit - _Fitted(model, rows, _slope(as_is, joint)).misfit < 0.5 * _GAINS["zero"]:
        return  # not even the slope helps
    for _ in range(_TURNS):
        here = _Fitted(*Mistake("zero", (joint,), value=value).undone(model, rows))
        moved = _Fitted(here.model, here.rows, _slope(here, joint))
        place = len(column_names(model))
        step = float(np.clip(moved.found[0, place], -_STEP, _STEP))
        value += step
        if abs(step) < 1e-3:
            break
    error = float(jackknife(np.array([found[place : place + 1] for found, _ in moved.without_a_part()]))[0])
    fitted = _Fitted(*Mistake("zero", (joint,), value=value).undone(model, rows))
    if _LEAST_ZERO < abs(value) < _MOST_ZERO:
        yield Mistake("zero", (joint,), "motion", fitted.misfit, value, abs(value) / max(error, 1e-12))


def _slope(fitted: _Fitted, joint: int) -> Array:
    """Derivative of the fitted torque with respect to a joint's position, (rows, joints)."""
    rows, values = fitted.rows, fitted.values()
    nudged = rows.q + _NUDGE * np.eye(rows.q.shape[1])[joint]
    one, other = (fitted.model.inverse_dynamics(q, rows.qd, rows.qdd, values) for q in (rows.q, nudged))
    return np.asarray((other - one) / _NUDGE)


def mistaken(mistake: Mistake, gain: float, model: Model) -> Iterator[Finding]:
    """What to say of a mistake whose undoing lowers the misfit by `gain`."""
    names = model.robot.joint_names
    better = float(np.exp(gain / len(names)))
    sure = float(np.clip(1.0 - np.exp(-gain * max(mistake.sigmas or 1.0, 1.0)), 0.5, 0.99))
    joints = [names[j] for j in mistake.joints]
    if mistake.kind == "gravity":
        stated = [float(x) for x in model.robot.gravity]
        yield found("gravity", confidence=sure, gravity=list(mistake.value), stated=stated, better=better)
    elif mistake.kind == "zero":
        error = abs(mistake.value) / (mistake.sigmas or 1.0)
        values = {"offset": mistake.value, "uncertainty": error, "better": better}
        yield found("zero-position", joints[0], confidence=sure, **values)
    elif mistake.kind == "gain":
        factor = 1.0 / mistake.value
        yield found("effort-scale", joints[0], confidence=sure, variant="gain", factor=factor, better=better)
    else:
        words = {"both": "all channels", "motion": "position and velocity", "effort": "the effort"}[mistake.of]
        wiring: dict[str, Any] = {"of": mistake.of, "gain": gain, "words": words, "one": mistake.of == "effort"}
        code = "sign-flipped" if mistake.kind == "flip" else "swapped-joints"
        for first, second in zip(joints, joints[::-1], strict=True):
            yield found(code, first, confidence=sure, variant="model", better=better, **wiring | {"with": second})
