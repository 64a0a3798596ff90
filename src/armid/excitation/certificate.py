"""What a plan guarantees: margins to every limit, and how each is known; which limits hold a design back, and where.

What relaxing each limit would bring follows from the multipliers of the solution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from armid.arrays import Array
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import DOptimal
from armid.excitation.fourier import FourierSeries
from armid.excitation.problem import DesignProblem
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


_ACTIVE = 0.02  # rows with less room than this share of a range can have a multiplier
_FAR = 5.0  # times the room that is kept: constraints further away bind nothing
_STEP, _STEP_M = 0.1, 0.01  # relaxation that gains are stated for: a tenth of the limit, or 10 mm
_TOLD = 1e-3  # limits that would bring less are not told
_NAMES = ("position", "velocity", "acceleration")


@dataclass(frozen=True)
class Binding:
    """A limit that a design leans on.

    Attributes:
        quantity: position, velocity, acceleration, or a constraint's name.
        joint: number of the joint, 0 where the limit is not a joint's.
        instants: times [s] at which it binds, the most important first.
        relaxation: of the limit that the gain is for: a share of it, or a distance in `unit`.
        unit: of the relaxation; empty for a share.
        gain: decrease of the cost that it would bring, to first order.
        narrowing: of the confidence intervals on average, as a share; 0 where the criterion is not d-optimal.
    """

    quantity: str
    joint: int
    instants: tuple[float, ...]
    relaxation: float
    unit: str
    gain: float
    narrowing: float = 0.0

    def __str__(self) -> str:
        """One line for people."""
        where = f"{self.quantity} of joint {self.joint}" if self.joint else self.quantity
        at = ", ".join(f"{time:.2f}" for time in self.instants[:4]) + (" …" if self.instants[4:] else "")
        by = f"{1000 * self.relaxation:g} mm" if self.unit else f"{100 * self.relaxation:g} %"
        brings = (
            f"intervals {100 * self.narrowing:.2g} % narrower" if self.narrowing else f"a cost {self.gain:.3g} lower"
        )
        return f"{where} binds at {at} s; relaxed by {by} it would leave {brings}"


def binding_limits(problem: DesignProblem, x: Array) -> tuple[Binding, ...]:
    """Limits with a multiplier at a solution, the one that would bring most first.

    The multipliers are those that come nearest to stationarity of the Lagrangian (Karush, Kuhn and Tucker) with the
    rows that are active: non-negative least squares.
    """
    gradient = problem.cost_and_gradient(x)[1]
    rows, about = _active_rows(problem, x)
    if not rows:
        return ()
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    try:
        multipliers = nnls((np.array(rows) / size[:, None]).T, gradient)[0] / size
    except RuntimeError:  # too many steps
        return ()
    gains: dict[tuple[str, int, float, str], dict[float, float]] = {}
    for multiplier, parts in zip(multipliers, about, strict=True):
        for key, time, change in parts:
            at = gains.setdefault(key, {})
            at[time] = at.get(time, 0.0) + multiplier * change
    found = []
    d_optimal = isinstance(problem.criterion, DOptimal)
    for (quantity, joint, relaxation, unit), at in gains.items():
        gain = sum(at.values())
        narrowing = 1.0 - float(np.exp(-0.5 * gain / len(problem.parameters))) if d_optimal else 0.0
        instants = tuple(time for time in sorted(at, key=lambda time: -at[time]) if at[time] > 0.05 * gain)
        found.append(Binding(quantity, joint, instants, relaxation, unit, gain, narrowing))
    return tuple(sorted((one for one in found if one.gain > _TOLD), key=lambda one: -one.gain))


#: What a row stands for: limit (quantity, joint, relaxation, unit), time [s], and by how much it moves the row's bound.
_Part = tuple[tuple[str, int, float, str], float, float]


def _active_rows(problem: DesignProblem, x: Array) -> tuple[list[Array], list[list[_Part]]]:
    """Gradients of the room of all active rows, and what each stands for."""
    table, low, high = problem.linear
    values, moving = problem.linear_values(x), problem.variables.moving
    count = len(table) // 3
    period = 1.0 / problem.variables.base_frequency_hz
    rows: list[Array] = []
    about: list[list[_Part]] = []
    for sign, bound in ((1.0, low), (-1.0, high)):
        room = sign * (values - bound) / np.maximum(high - low, 1e-9)
        for j, row in np.argwhere(room[:, : 3 * count] < _ACTIVE):
            gradient = np.zeros((len(moving), table.shape[1]))
            gradient[j] = sign * table[row]
            kind, change = int(row) // count, 0.5 * _STEP * float(high[j, row] - low[j, row])
            rows.append(gradient.ravel())
            about.append([((_NAMES[kind], moving[j] + 1, _STEP, ""), (row % count) * period / count, change)])
    if problem.constraints:
        _add_windows(problem, x, rows, about)
    return rows, about


def _add_windows(problem: DesignProblem, x: Array, rows: list[Array], about: list[list[_Part]]) -> None:
    """The rows of nonlinear constraints: each stands for what comes near a bound within a window of time."""
    least, shares = problem.nonlinear_values(x), problem.window_shares(x)
    near = max(problem.backoff, float(least.min()))
    if near > _FAR * problem.backoff:
        return
    jacobian = problem.nonlinear_jacobian(x)
    points = len(shares[0])
    step = 1.0 / (problem.variables.base_frequency_hz * points)
    for window in np.flatnonzero(least < near + _ACTIVE):
        parts: list[_Part] = []
        first = window * points // len(least)
        for constraint, share in zip(problem.constraints, shares, strict=True):
            unit = constraint.unit
            with np.errstate(invalid="ignore"):
                span = 0.5 * (constraint.upper - constraint.lower) / constraint.size
            for k, i in np.argwhere(share[first : first + points // len(least)] > 0.01):
                joint = int(i) + 1 if constraint.per_joint else 0
                change = _STEP_M / constraint.scale[i] if unit else _STEP * span[i]
                key = constraint.name, joint, _STEP_M if unit else _STEP, unit
                parts.append((key, float(first + k) * step, float(share[first + k, i] * change)))
        rows.append(jacobian[window])
        about.append(parts)
