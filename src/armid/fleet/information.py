"""Arm-days as information: what a day says about the parameters, in the units of the fleet's noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.errors import ArmidError
from armid.fleet.day import ArmDay
from armid.robot.inertia import Array


@dataclass(frozen=True, eq=False)
class Information:
    """Quadratic log-likelihood of the parameters x: -(x' A x - 2 b' x + c) / 2.

    Attributes:
        matrix: A, (parameters, parameters).
        vector: b.
        power: c.
        rows: number of torque rows behind it, joints counted singly.
    """

    matrix: Array
    vector: Array
    power: float
    rows: float

    def __add__(self, other: Information) -> Information:
        """What both say together."""
        return Information(
            self.matrix + other.matrix,
            self.vector + other.vector,
            self.power + other.power,
            self.rows + other.rows,
        )

    def mismatch(self, values: Array) -> float:
        """Weighted sum of squared residuals at given values."""
        return float(values @ self.matrix @ values - 2.0 * self.vector @ values + self.power)


def noise_levels(days: Sequence[ArmDay]) -> Array:
    """Usual rms of the residuals of each joint over the fleet [N m]: the median, which a few bad days do not move."""
    usable = [day.rms for day in days if day.usable and np.isfinite(day.rms).all()]
    if not usable:
        raise ArmidError("no arm-day is usable, so nothing can be estimated; see the problems of each")
    return np.asarray(np.median(usable, axis=0))


def information_of(day: ArmDay, noise: Array) -> Information:
    """What one day says, weighted by the noise and lessened by the correlation of its residuals in time."""
    assert day.factor is not None
    weights = 1.0 / (noise**2 * day.inflation)
    matrix, vector, power = day.factor.normal_equations(weights)
    rows = float(np.sum(np.array(day.factor.counts) / day.inflation))
    return Information(matrix, vector, power, rows)


def summed(parts: Sequence[Information]) -> Information:
    """The sum, always in the order given, so that it does not depend on who came first."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
