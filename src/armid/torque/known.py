"""Torque that is known before the inertial parameters are estimated: friction from a sweep, load-proportional loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.robot.friction import Friction


@dataclass(frozen=True, eq=False)
class KnownTorque:
    """Friction and loss to subtract, as the PA-10 and Powerball papers do (sequential identification).

    Attributes:
        friction: law and coefficients of each joint, joint side; None for a joint without.
        load_loss: slope and offset [N m] per joint of the loss S = a tau_L + b, PA-10 (19), or None.
        weight: parameter values whose gravity torque is the load tau_L (needed with `load_loss`).
    """

    friction: tuple[tuple[Friction, Mapping[str, float]] | None, ...]
    load_loss: Array | None = None
    weight: Mapping[str, float] | None = None

    def torque(self, model: Model, motion: Motion) -> Array:
        """Torque (samples, joints)."""
        result = np.zeros_like(motion.q)
        for joint, known in enumerate(self.friction):
            if known is not None:
                law, coefficients = known
                result[:, joint] = law.torque(motion.qd[:, joint], coefficients)
        if self.load_loss is not None:
            weight = model.gravity_torque(motion.q, dict(self.weight or {}))
            result += self.load_loss[:, 0] * weight + self.load_loss[:, 1]
        return result

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        friction = [
            None
            if known is None
            else {
                "law": known[0].law,
                "offset": known[0].offset,
                "directions": known[0].per_direction,
                "coefficients": dict(known[1]),
            }
            for known in self.friction
        ]
        loss = None if self.load_loss is None else self.load_loss.tolist()
        return {"friction": friction, "load_loss": loss, "weight": None if self.weight is None else dict(self.weight)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> KnownTorque:
        """Inverse of `to_data`."""
        friction = tuple(
            None
            if known is None
            else (Friction(known["law"], known["offset"], known["directions"]), known["coefficients"])
            for known in data["friction"]
        )
        loss = None if data["load_loss"] is None else np.array(data["load_loss"], dtype=float)
        return cls(friction, loss, data["weight"])
