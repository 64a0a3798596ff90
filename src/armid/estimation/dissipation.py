"""Friction takes energy: what that asks of the coefficients of a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION
from armid.estimation.terms import FrictionTerm
from armid.robot.inertia import Array

SPEEDS = 25  # at which the friction of a joint with several terms is checked
FASTEST = 10.0  # [rad/s or m/s] where a joint's limit is not known


def resistances(
    model: Model, terms: Sequence[FrictionTerm], joint: int, speeds: Array | None = None
) -> list[tuple[str, dict[str, float]]]:
    """Combinations of a joint's friction coefficients that must not be negative, each with its name.

    They are the torques against the motion in both directions, without load, and the coefficient of the load. Offsets
    may have any sign.

    Args:
        model: whose own friction law counts too.
        terms: friction terms beyond it; those of other joints are passed over.
        joint: index, from 0.
        speeds: at which it must hold [rad/s or m/s]; from near standstill to the joint's limit, if not given.
    """
    if speeds is None:
        limit = float(model.robot.limits.velocity[joint]) if len(model.robot.limits.velocity) else np.nan
        fastest = limit if np.isfinite(limit) else FASTEST
        speeds = np.concatenate([[1e-6], np.geomspace(1e-3, 1.0, SPEEDS - 1)]) * fastest
    own = [p.name for p in model.parameters if p.kind == FRICTION and p.number == joint + 1]
    mine = [term for term in terms if term.joint == joint]
    result = [(term.name, {term.name: 1.0}) for term in mine if term.kind == "load"]
    for sign, word in ((1.0, "forwards"), (-1.0, "backwards")):
        for speed in speeds:
            velocity = np.array([sign * speed])
            part = {name: _opposing(name, sign, speed) for name in own}
            shapes = {t.name: float(t.shape(velocity, np.zeros(1))[0]) * sign for t in mine if t.kind != "load"}
            result.append((f"friction of joint {joint + 1} {word}", part | shapes))
    return result


def dissipates(
    model: Model, terms: Sequence[FrictionTerm], joint: int, speeds: Array, values: Mapping[str, float]
) -> bool:
    """Whether friction of a joint takes energy at these speeds and, by its viscous parts, at all higher ones.

    `values` holds the coefficients by name.
    """
    rows = [parts for _, parts in resistances(model, terms, joint, speeds)]
    for sign in (1.0, -1.0):
        uneven = {term.name: sign for term in terms if term.joint == joint and term.kind == "asymmetry"}
        rows.append(_viscous(model, joint, sign) | uneven)
    return _none_is_negative(model, rows, values)


def grows_with_speed(model: Model, terms: Sequence[FrictionTerm], joint: int, values: Mapping[str, float]) -> bool:
    """Whether no viscous part of a joint's friction is negative, be it linear or sub-linear.

    With a negative one friction falls with speed beyond the data, or two large parts cancel each other within them
    and part beyond.
    """
    rows = [{term.name: 1.0} for term in terms if term.joint == joint and term.kind == "root"]
    rows += [_viscous(model, joint, sign) for sign in (1.0, -1.0)]
    return _none_is_negative(model, rows, values)


def _viscous(model: Model, joint: int, sign: float) -> dict[str, float]:
    """The model's own viscous coefficients of a joint in one direction."""
    own = [p.name for p in model.parameters if p.kind == FRICTION and p.number == joint + 1]
    return {name: _opposing(name, sign, 1.0) for name in own if name.startswith("fv")}


def _none_is_negative(model: Model, rows: Sequence[Mapping[str, float]], values: Mapping[str, float]) -> bool:
    known = {**model.known, **values}
    return all(sum(part * known.get(name, 0.0) for name, part in row.items()) >= 0.0 for row in rows)


def _opposing(name: str, sign: float, speed: float) -> float:
    """Torque against the motion per unit of one of the model's own friction coefficients; 0 for an offset."""
    direction = name[-1] if name[-1] in "pn" else ""
    if name.startswith("fo") or name[2] == "c" or (direction and (direction == "p") != (sign > 0.0)):
        return 0.0
    return speed if name.startswith("fv") else 1.0
