"""Friction takes energy: what that asks of the coefficients of a joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION
from armid.torque.friction.term import FrictionTerm

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


def _opposing(name: str, sign: float, speed: float) -> float:
    """Torque against the motion per unit of one of the model's own friction coefficients; 0 for an offset."""
    direction = name[-1] if name[-1] in "pn" else ""
    if name.startswith("fo") or name[2] == "c" or (direction and (direction == "p") != (sign > 0.0)):
        return 0.0
    return speed if name.startswith("fv") else 1.0
