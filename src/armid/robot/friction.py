"""Friction of a joint as a robot's description states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.registry import friction_laws


@dataclass(frozen=True)
class Friction:
    """How friction of one joint is described: a law, and whether it has an offset and two directions.

    Attributes:
        law: its name; `armid.torque.friction` holds the laws.
        offset: a constant torque is added.
        per_direction: the two directions of motion have their own coefficients.
    """

    law: str = "none"
    offset: bool = False
    per_direction: bool = False

    def __post_init__(self) -> None:
        """Refuse a law that nobody has defined."""
        friction_laws[self.law]

    @property
    def formula(self) -> Any:
        """The law itself, a `armid.torque.friction.law.FrictionLaw`."""
        return friction_laws[self.law]

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the coefficients without the joint's number; `p` and `n` mark the direction."""
        names: tuple[str, ...] = self.formula.coefficients
        if self.per_direction:
            names = tuple(f"{name}{sign}" for sign in "pn" for name in names)
        return (*names, "fo") if self.offset else names

    def torque(self, velocity: Array, coefficients: Mapping[str, float]) -> Array:
        """Torque [N m] that overcomes friction at `velocity` [rad/s]: it has the velocity's sign."""
        up, down = self.by_direction(coefficients)
        result: Array = self.formula.torque(velocity, up)
        if self.per_direction:
            result = np.where(np.asarray(velocity) >= 0.0, result, self.formula.torque(velocity, down))
        return result + coefficients["fo"] if self.offset else result

    def by_direction(self, coefficients: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
        """The law's coefficients for motion forwards and backwards."""
        ways = ("p", "n") if self.per_direction else ("", "")
        up, down = ({name: float(coefficients[name + way]) for name in self.formula.coefficients} for way in ways)
        return up, down
