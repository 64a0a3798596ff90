"""Friction takes energy: what that asks of the coefficients of a joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION
from armid.torque.friction.term import FrictionTerm

SPEEDS = 25  # at which the friction of a joint with several terms is checked
BEYOND = 3.0  # times the fastest speed of the data up to which friction must take energy
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
    mine = [term for term in terms if term.joint == joint and not term.formula.weighted]
    result = [(name, {name: 1.0}) for term in mine if term.loaded for name in term.names]
    for sign, word in ((1.0, "forwards"), (-1.0, "backwards")):
        for speed in speeds:
            velocity = np.array([sign * speed])
            part = {name: _opposing(name, sign, speed) for name in own}
            for term in (term for term in mine if not term.loaded):
                columns = sign * term.columns(velocity, None)[0]
                part |= dict(zip(term.names, columns.tolist(), strict=True))
            result.append((f"friction of joint {joint + 1} {word}", part))
    return result


def implausibility(
    model: Model,
    terms: Sequence[FrictionTerm],
    joint: int,
    speeds: Array,
    values: Mapping[str, float],
    *,
    dissipative: bool = True,
) -> float:
    """How much of a joint's friction cannot be friction, as a share of its largest torque at these speeds.

    Negative viscous parts, linear or sub-linear, count by their torque at the fastest speed: with them friction falls
    with speed beyond the data, or two large parts cancel each other within the data and part beyond. If it is to be
    `dissipative`, torques with the motion count too, up to three times that speed, and a negative coefficient of the
    load.

    Args:
        model: whose own friction law counts too.
        terms: friction terms beyond it; those of other joints are passed over.
        joint: index, from 0.
        speeds: of the data, increasing [rad/s or m/s].
        values: coefficients by name.
        dissipative: whether friction must take energy.
    """
    known = {**model.known, **values}

    def total(parts: Mapping[str, float]) -> float:
        return sum(part * known.get(name, 0.0) for name, part in parts.items())

    mine = [term for term in terms if term.joint == joint and not term.formula.weighted]
    loads = [name for term in mine if term.loaded for name in term.names]
    unloaded = [term for term in mine if not term.loaded]
    torques = [total(parts) for _, parts in resistances(model, unloaded, joint, speeds)]
    largest = max(np.abs(torques).max(), 1e-300)
    resisting = [total(parts) / largest for parts in _viscous(model, unloaded, joint, float(speeds[-1]))]
    if dissipative:
        faster = float(speeds[-1]) * np.linspace(1.0, BEYOND, 5)[1:]
        resisting += [total(parts) / largest for _, parts in resistances(model, unloaded, joint, faster)]
        resisting += [torque / largest for torque in torques]
        resisting += [known.get(name, 0.0) for name in loads]
    return max(0.0, -min(resisting, default=0.0))


def _viscous(model: Model, terms: Sequence[FrictionTerm], joint: int, speed: float) -> list[dict[str, float]]:
    """Viscous torques of a joint that moves alone, a coupled drive's included: in either direction, and sub-linear."""
    own = [p.name for p in model.parameters if p.kind == FRICTION and p.number == joint + 1 and p.name[:2] == "fv"]
    linear = [{name: speed if name[2] == "c" else _opposing(name, sign, speed) for name in own} for sign in (1.0, -1.0)]
    return [*linear, *({term.names[0]: float(np.sqrt(speed))} for term in terms if term.law == "root")]


def _opposing(name: str, sign: float, speed: float) -> float:
    """Torque against the motion per unit of one of the model's own friction coefficients; 0 for an offset."""
    direction = name[-1] if name[-1] in "pn" else ""
    if name.startswith("fo") or name[2] == "c" or (direction and (direction == "p") != (sign > 0.0)):
        return 0.0
    return speed if name.startswith("fv") else 1.0
