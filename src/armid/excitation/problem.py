"""The optimisation problem behind a design: cost, linear and nonlinear constraints, with derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.sensitivity import Sensitivity
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import Criterion
from armid.excitation.fourier import FourierVariables
from armid.robot.robot import Limits

_COST_SAMPLES = 512
_LIMIT_SAMPLES_PER_WAVE = 12
_NONLINEAR_SAMPLES_PER_WAVE = 8


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """Choose the coefficients of a Fourier trajectory so that a criterion is smallest within all limits.

    Attributes:
        model: dynamics.
        parameters: columns whose information counts.
        variables: what may be chosen.
        limits: of position, velocity and acceleration (already reduced by the margin wanted).
        criterion: cost of the information matrix.
        weights: (n,) inverse variance of each joint's torque; zero for joints without measurement.
        given: information known already, (parameters, parameters).
        constraints: nonlinear limits.
        at_rest: velocity and acceleration are zero at the start and, being periodic, at the end.
        backoff: share of each nonlinear constraint's range to stay away from its bounds, for what happens between the
            points where it is enforced.
        samples: of the experiment, for criteria in which their number counts.
        instants: times [s] at which nonlinear constraints are enforced besides the regular points.
    """

    model: Model
    parameters: tuple[str, ...]
    variables: FourierVariables
    limits: Limits
    criterion: Criterion
    weights: Array
    given: Array
    constraints: Sequence[MotionConstraint] = ()
    at_rest: bool = False
    backoff: tuple[float, ...] = ()
    samples: int = _COST_SAMPLES
    instants: tuple[float, ...] = ()
    _sensitivity: Sensitivity = field(init=False, repr=False)
    _cost_bases: tuple[Array, Array, Array] = field(init=False, repr=False)
    _point_bases: tuple[Array, Array, Array] = field(init=False, repr=False)
    _linear: tuple[Array, Array, Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare everything that does not change during the search."""
        period = 1.0 / self.variables.base_frequency_hz
        top = max(self.variables.harmonics)
        samples = max(_COST_SAMPLES, 128 * -(-8 * top // 128))
        times = np.arange(samples) * period / samples
        points = np.arange(_NONLINEAR_SAMPLES_PER_WAVE * top) * period / (_NONLINEAR_SAMPLES_PER_WAVE * top)
        object.__setattr__(self, "_sensitivity", Sensitivity(self.model, self.parameters))
        object.__setattr__(self, "_cost_bases", self.variables.bases(times))
        object.__setattr__(self, "_point_bases", self.variables.bases(np.append(points, self.instants)))
        object.__setattr__(self, "_linear", self._linear_constraints(period, top))

    def changed(
        self,
        *,
        criterion: Criterion | None = None,
        backoff: Sequence[float] | None = None,
        constraints: Sequence[MotionConstraint] | None = None,
        instants: Sequence[float] | None = None,
    ) -> DesignProblem:
        """The same problem with another criterion, or nonlinear constraints that are others or enforced otherwise."""
        return DesignProblem(
            self.model,
            self.parameters,
            self.variables,
            self.limits,
            criterion or self.criterion,
            self.weights,
            self.given,
            self.constraints if constraints is None else constraints,
            self.at_rest,
            self.backoff if backoff is None else tuple(backoff),
            self.samples,
            self.instants if instants is None else tuple(instants),
        )

    def information(self, x: Array) -> Array:
        """Information matrix of a trajectory, what is given included."""
        motion = self.variables.motion(x, self._cost_bases)
        return self._sensitivity.information(motion, self.weights) + self.given

    def sharp_information(self, x: Array) -> Array:
        """Information of the trajectory alone, with the true sign of velocity instead of its smooth stand-in."""
        motion = self.variables.motion(x, self._cost_bases)
        return Sensitivity(self.model, self.parameters, width=0.0).information(motion, self.weights)

    def value(self, x: Array) -> float:
        """Cost of a trajectory with the true sign of velocity: solutions are ranked by it, and the plan reports it."""
        return self.criterion.cost(self.sharp_information(x) + self.given, self.samples)[0]

    def cost_and_gradient(self, x: Array) -> tuple[float, Array]:
        """Cost and its derivative with respect to the variables."""
        motion = self.variables.motion(x, self._cost_bases)
        information = self._sensitivity.information(motion, self.weights) + self.given
        cost, bar = self.criterion.cost(information, self.samples)
        if not np.isfinite(cost):
            return np.nan, np.full(self.variables.count, np.nan)
        motion_bar = self._sensitivity.information_gradient(motion, bar, self.weights)
        return cost, self.variables.pull_back(motion_bar, self._cost_bases)

    @property
    def linear(self) -> tuple[Array, Array, Array]:
        """Rows (r, per_joint) shared by all moving joints, and their bounds (moving, r)."""
        return self._linear

    def linear_values(self, x: Array) -> Array:
        """Linear quantities (moving, r)."""
        return x.reshape(len(self.variables.moving), -1) @ self._linear[0].T

    def nonlinear_values(self, x: Array) -> Array:
        """Nonlinear quantities of all constraints at all points, flat."""
        if not self.constraints:
            return np.zeros(0)
        motion = self.variables.motion(x, self._point_bases)
        return np.concatenate([constraint.values(motion).ravel() for constraint in self.constraints])

    def nonlinear_jacobian(self, x: Array) -> Array:
        """Their derivatives, (quantities, variables)."""
        motion = self.variables.motion(x, self._point_bases)
        blocks = []
        for constraint in self.constraints:
            slopes = constraint.slopes(motion)
            moving = [slope[:, :, self.variables.moving] for slope in slopes]
            block = sum(np.einsum("kmj,ki->kmji", s, b) for s, b in zip(moving, self._point_bases, strict=True))
            blocks.append(np.asarray(block).reshape(-1, self.variables.count))
        return np.vstack(blocks)

    @property
    def nonlinear_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the nonlinear quantities."""
        points = len(self._point_bases[0])
        away = self.backoff or (0.0,) * len(self.constraints)
        pairs = [
            (constraint, share * constraint.size) for constraint, share in zip(self.constraints, away, strict=True)
        ]
        lower = [np.tile(constraint.lower + room, points) for constraint, room in pairs]
        upper = [np.tile(constraint.upper - room, points) for constraint, room in pairs]
        return np.concatenate([np.zeros(0), *lower]), np.concatenate([np.zeros(0), *upper])

    def violation(self, x: Array) -> float:
        """Largest violation of a constraint, relative to its range; 0 if all hold."""
        _, low, high = self._linear
        values = self.linear_values(x)
        worst = float(np.max(np.maximum(low - values, values - high) / np.maximum(high - low, 1e-9), initial=0.0))
        if self.constraints:
            lower, upper = self.nonlinear_bounds
            values = self.nonlinear_values(x)
            size = np.where(np.isfinite(upper - lower), upper - lower, 1.0)
            worst = float(np.max(np.maximum(lower - values, values - upper) / size, initial=worst))
        return max(0.0, worst)

    def _linear_constraints(self, period: float, top: int) -> tuple[Array, Array, Array]:
        count = _LIMIT_SAMPLES_PER_WAVE * top
        bases = self.variables.bases(np.arange(count) * period / count)
        moving = list(self.variables.moving)
        limits = self.limits
        rows = [*bases]
        low = [limits.lower[moving], -limits.velocity[moving], -limits.acceleration[moving]]
        high = [limits.upper[moving], limits.velocity[moving], limits.acceleration[moving]]
        lower = np.hstack([np.tile(bound[:, None], count) for bound in low])
        upper = np.hstack([np.tile(bound[:, None], count) for bound in high])
        if self.at_rest:
            rows += [bases[1][:1], bases[2][:1]]
            lower = np.hstack([lower, np.zeros((len(moving), 2))])
            upper = np.hstack([upper, np.zeros((len(moving), 2))])
        return np.vstack(rows), lower, upper
