"""What a plan guarantees: margins to every limit, and how each is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.excitation.constraints import MotionConstraint
from armid.excitation.fourier import FourierSeries
from armid.robot.robot import Limits

#: The extremes come from the roots of the derivatives: no instant is left out.
EXACT = "exact over continuous time"
#: The quantity was sampled, and between samples it was allowed the steepest slope seen, times `_STEEPER`.
SAMPLED = "sampled, with a bound on the change between samples"
_GRID = 20_000
_STEEPER = 1.5


@dataclass(frozen=True)
class Margin:
    """Distance of a quantity to its limit.

    Attributes:
        quantity: position, velocity, acceleration, or a constraint's name.
        joint: number of the joint that comes nearest, 0 where joints do not matter.
        margin: smallest distance to the limit as a share of the limit's range; negative if it is broken.
        guarantee: how it is known.
    """

    quantity: str
    joint: int
    margin: float
    guarantee: str


@dataclass(frozen=True)
class Certificate:
    """Margins of a trajectory to all limits."""

    margins: tuple[Margin, ...]

    @property
    def holds(self) -> bool:
        """Whether no limit is broken."""
        return all(margin.margin >= 0.0 for margin in self.margins)

    @property
    def worst(self) -> Margin:
        """The smallest margin."""
        return min(self.margins, key=lambda margin: margin.margin)


def certify(trajectory: FourierSeries, limits: Limits, constraints: Sequence[MotionConstraint] = ()) -> Certificate:
    """Check a Fourier trajectory against all limits. Limits that are unknown (NaN) are left out."""
    extrema = trajectory.extrema()
    span = limits.upper - limits.lower
    shares = {
        "position": np.minimum(extrema.lower - limits.lower, limits.upper - extrema.upper) / span,
        "velocity": 1.0 - extrema.velocity / limits.velocity,
        "acceleration": 1.0 - extrema.acceleration / limits.acceleration,
    }
    margins = []
    for quantity, share in shares.items():
        if not np.isnan(share).all():
            joint = int(np.nanargmin(share))
            margins.append(Margin(quantity, joint + 1, float(share[joint]), EXACT))
    margins += [sampled_margin(trajectory, constraint) for constraint in constraints]
    return Certificate(tuple(margins))


def sampled_margin(trajectory: FourierSeries, constraint: MotionConstraint) -> Margin:
    """Margin of a nonlinear constraint on a fine grid, less what may happen between its points."""
    if not len(constraint.lower):
        return Margin(constraint.name, 0, np.inf, SAMPLED)
    times = np.arange(_GRID) * trajectory.duration / _GRID
    values = constraint.values(trajectory.at(times))
    change = 0.5 * _STEEPER * np.abs(np.diff(values, axis=0, append=values[:1])).max(axis=0)
    room = np.minimum(values.min(axis=0) - constraint.lower, constraint.upper - values.max(axis=0)) - change
    share = room / constraint.size
    worst = int(np.argmin(share))
    return Margin(constraint.name, worst + 1, float(share[worst]), SAMPLED)
