"""What a plan guarantees: margins to every limit, and how each is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.excitation.constraints import MotionConstraint
from armid.excitation.fourier import FourierSeries
from armid.excitation.trajectory import Extrema
from armid.files import Unbounded
from armid.robot.robot import Limits

#: The extremes come from the roots of the derivatives: no instant is left out.
EXACT = "exact over continuous time"
#: Between points the quantity changes at most as fast as the joints' greatest speeds and the arm's lengths allow.
PROVED = "proved on {points} points by a bound on speed (Lipschitz)"
#: Between points the quantity was allowed the steepest slope seen, times `_STEEPER`; friction its whole range.
SAMPLED = "sampled on {points} points, with 1.5 times the steepest change between them"
#: The constraint bounds nothing on this arm, such as collisions of links that are all neighbours.
NOTHING = "nothing there to check"
_SAMPLES = 20_000
_STEEPER = 1.5
_FIRST_POINTS = 2_000  # of a proof; intervals are then split where it has to be sharper
_FIRST_POINTS_PER_WAVE = 100
_SPLIT = 4
_SHARP, _SHARP_SHARE = 1e-5, 0.05  # how near a proved margin comes to the true one: in its unit, or as a share of it
_MOST_POINTS = 100_000  # then a proved margin may stay behind the true one, on the safe side
_ROUND_OFF = 1.0 + 1e-9


@dataclass(frozen=True)
class Margin:
    """Distance of a quantity to its limit.

    Attributes:
        quantity: position, velocity, acceleration, or a constraint's name.
        joint: number of the joint that comes nearest, 0 where the quantity is not a joint's.
        margin: smallest distance to the limit as a share of the limit's range, or in `unit`; negative if it is broken.
        guarantee: how it is known.
        unit: of the margin; empty for a share.
    """

    quantity: str
    joint: int
    margin: Unbounded
    guarantee: str
    unit: str = ""

    @property
    def text(self) -> str:
        """The margin for people."""
        if np.isinf(self.margin):
            return "none"
        return f"{1000 * self.margin:.4g} mm" if self.unit == "m" else f"{100 * self.margin:.2f} %"


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
    margins += [nonlinear_margin(trajectory, constraint, extrema) for constraint in constraints]
    return Certificate(tuple(margins))


def nonlinear_margin(trajectory: FourierSeries, constraint: MotionConstraint, extrema: Extrema | None = None) -> Margin:
    """Margin of a nonlinear constraint over continuous time: proved where its rates are bounded, else sampled."""
    if not len(constraint.lower):
        return Margin(constraint.name, 0, np.inf, NOTHING, constraint.unit)
    extrema = trajectory.extrema() if extrema is None else extrema
    if constraint.rates(extrema.velocity[None], extrema) is None:
        return _sampled(trajectory, constraint, extrema)
    return _proved(trajectory, constraint, extrema)


def _proved(trajectory: FourierSeries, constraint: MotionConstraint, extrema: Extrema) -> Margin:
    """Lower bound of a margin: intervals are split until it is sharp (Piyavskii 1972, with local rates)."""
    count = max(_FIRST_POINTS, _FIRST_POINTS_PER_WAVE * max(trajectory.harmonics))
    half = 0.5 * trajectory.duration / count
    centres = (2.0 * np.arange(count) + 1.0) * half
    seen, proved, worst, points = np.inf, np.inf, 0, 0
    while len(centres):
        points += len(centres)
        motion = trajectory.at(centres)
        swing = extrema.acceleration * half
        speed = _ROUND_OFF * np.minimum(np.abs(motion.qd) + swing, extrema.velocity)
        rates = constraint.rates(speed, extrema)
        assert rates is not None
        values = constraint.values(motion)
        share = np.minimum(values - constraint.lower, constraint.upper - values) / constraint.size
        bound = share - rates * half / constraint.size
        seen = min(seen, float(share.min()))
        lowest = bound.min(axis=1)
        # Split where the bound is not sharp yet, or where it alone says that a limit is broken.
        open_ = (lowest < seen - max(_SHARP, _SHARP_SHARE * abs(seen))) | ((lowest < 0.0) & (seen >= 0.0))
        if points + _SPLIT * np.count_nonzero(open_) > _MOST_POINTS:
            open_[:] = False
        settled = np.flatnonzero(~open_)
        if len(settled) and lowest[settled].min() < proved:
            row = settled[lowest[settled].argmin()]
            proved, worst = float(lowest[row]), int(bound[row].argmin())
        half /= _SPLIT
        parts = (2.0 * np.arange(_SPLIT) + 1.0 - _SPLIT) * half
        centres = (centres[open_, None] + parts).ravel()
    joint = worst + 1 if constraint.per_joint else 0
    return Margin(constraint.name, joint, proved, PROVED.format(points=points), constraint.unit)


def _sampled(trajectory: FourierSeries, constraint: MotionConstraint, extrema: Extrema) -> Margin:
    """Margin on a fine grid, less what may happen between its points."""
    step = trajectory.duration / _SAMPLES
    motion = trajectory.at(np.arange(_SAMPLES) * step)
    swing = _ROUND_OFF * np.minimum(0.5 * step * extrema.acceleration, 2.0 * extrema.velocity)
    values, low, high = constraint.parts(motion, swing)
    change: Array = 0.5 * _STEEPER * np.abs(np.diff(values, axis=0, append=values[:1])).max(axis=0)
    least, greatest = (values + low).min(axis=0), (values + high).max(axis=0)
    share = (np.minimum(least - constraint.lower, constraint.upper - greatest) - change) / constraint.size
    worst = int(np.argmin(share))
    joint = worst + 1 if constraint.per_joint else 0
    return Margin(constraint.name, joint, float(share[worst]), SAMPLED.format(points=_SAMPLES), constraint.unit)
