"""The optimisation problem behind a design, with derivatives, and its solvers: IPOPT if installed, else SciPy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

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
#: Relative violation that the certificate's final scaling takes out.
FEASIBLE = 1e-4


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


def _nobody_asks() -> bool:
    return False


_asked: Callable[[], bool] = _nobody_asks


def end_when(asked: Callable[[], bool]) -> None:
    """Let all searches of this process end, with the best they have, as soon as `asked` says so."""
    global _asked
    _asked = asked


@dataclass
class _Best:
    """The best feasible point seen; everything a solver visits passes through here.

    `violation` is 0 once there is one; before, it is the smallest seen.
    """

    problem: DesignProblem
    deadline: float
    x: Array | None = None
    cost: float = np.inf
    violation: float = np.inf
    _last: tuple[Array, float, Array] | None = field(default=None, repr=False)

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Cost and gradient, remembered for the solver's next question about the same point."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1], self._last[2]
        cost, gradient = self.problem.cost_and_gradient(x)
        self._last = (x.copy(), cost, gradient)
        if self.x is None or cost < self.cost:
            violation = self.problem.violation(x)
            if violation < FEASIBLE and np.isfinite(cost):
                self.x, self.cost, violation = x.copy(), cost, 0.0
            self.violation = min(self.violation, violation)
        return cost, gradient

    @property
    def late(self) -> bool:
        """Whether time is up, or somebody wants an end."""
        return time.monotonic() > self.deadline or _asked()


def solve(problem: DesignProblem, start: Array, *, iterations: int, deadline: float) -> tuple[Array | None, float]:
    """Improve `start`; the best feasible point seen and 0, or None and the smallest violation seen."""
    best = _Best(problem, deadline)
    with threadpool_limits(limits=1, user_api="blas"):
        try:
            _ipopt(best, start, iterations)
        except ImportError:
            _slsqp(best, start, iterations)
    return best.x, best.violation


def _ipopt(best: _Best, start: Array, iterations: int) -> None:
    from ipyopt import Problem

    problem = best.problem
    rows, low, high = problem.linear
    moving, per_joint, linear = len(low), problem.variables.per_joint, low.size
    lower, upper = problem.nonlinear_bounds
    joint = np.repeat(np.arange(moving), len(rows) * per_joint)
    row = np.tile(np.repeat(np.arange(len(rows)), per_joint), moving)
    column = np.tile(np.arange(per_joint), moving * len(rows))
    dense_rows, dense_columns = np.divmod(np.arange(len(lower) * problem.variables.count), problem.variables.count)
    sparsity = (
        np.concatenate([joint * len(rows) + row, linear + dense_rows]),
        np.concatenate([joint * per_joint + column, dense_columns]),
    )
    constant = np.tile(rows.ravel(), moving)

    def constraints(x: Array, out: Array) -> None:
        out[:linear] = problem.linear_values(x).ravel()
        out[linear:] = problem.nonlinear_values(x)

    def jacobian(x: Array, out: Array) -> None:
        out[: len(constant)] = constant
        if len(lower):
            out[len(constant) :] = problem.nonlinear_jacobian(x).ravel()

    def gradient(x: Array, out: Array) -> None:
        out[:] = best.evaluate(x)[1]

    free = np.full(problem.variables.count, 1e20)
    solver = Problem(
        problem.variables.count,
        -free,
        free,
        linear + len(lower),
        np.concatenate([low.ravel(), np.maximum(lower, -1e20)]),
        np.concatenate([high.ravel(), np.minimum(upper, 1e20)]),
        sparsity,
        (np.zeros(0, dtype=int), np.zeros(0, dtype=int)),
        lambda x: best.evaluate(x)[0],
        gradient,
        constraints,
        jacobian,
        intermediate_callback=lambda *_: not best.late,
        ipopt_options={
            "print_level": 0,
            "sb": "yes",
            "max_iter": iterations,
            "hessian_approximation": "limited-memory",
            "limited_memory_max_history": 6,
            "tol": 1e-4,
            "acceptable_tol": 1e-3,
            "acceptable_iter": 8,
            "acceptable_obj_change_tol": 1e-5,
            "mu_strategy": "adaptive",
        },
    )
    solver.solve(start.copy())


def _slsqp(best: _Best, start: Array, iterations: int) -> None:
    """SciPy's SLSQP on the same problem; slower, and it may stop early."""
    from scipy.optimize import minimize

    problem = best.problem
    rows, low, high = problem.linear
    lower, upper = problem.nonlinear_bounds
    matrix = np.kron(np.eye(len(low)), rows)
    stacked = np.vstack([matrix, -matrix])
    bound = np.concatenate([low.ravel(), -high.ravel()])

    def inequalities(x: Array) -> Array:
        values = problem.nonlinear_values(x)
        return np.concatenate([stacked @ x - bound, (values - lower), (upper - values)])

    def slopes(x: Array) -> Array:
        if not len(lower):
            return stacked
        nonlinear = problem.nonlinear_jacobian(x)
        return np.vstack([stacked, nonlinear, -nonlinear])

    def stop(_: Array) -> None:
        if best.late:
            raise StopIteration

    finite = np.isfinite(np.concatenate([bound, lower, upper]))
    minimize(
        lambda x: best.evaluate(x),
        start,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: inequalities(x)[finite], "jac": lambda x: slopes(x)[finite]},
        options={"maxiter": iterations},
        callback=stop,
    )
