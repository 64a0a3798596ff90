"""The optimisation problem behind a design, with derivatives, and its solvers.

Linear limits alone are for an interior-point method of our own, nonlinear ones for IPOPT if installed, else SciPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.dynamics.sensitivity import Sensitivity
from armid.excitation.constraints import MotionConstraint
from armid.excitation.criteria import Criterion
from armid.excitation.fourier import FourierVariables
from armid.excitation.interior import minimise_inside
from armid.notes import Note
from armid.robot.robot import Limits

_COST_SAMPLES = 512
_LIMIT_SAMPLES_PER_WAVE = 12
_POINTS_PER_WAVE = 16  # where nonlinear constraints are looked at
_WINDOWS = 20  # of time, with one row of the problem each: many dense rows would be most of the solver's work
_SHARPNESS = 60.0  # of the smooth minimum within a window
_NEAR = 1.0  # sum of violations that the solver may go through: beyond, arms get stuck inside themselves
_GAIN, _PATIENCE = 1e-3, 150  # least gain of the cost, and evaluations without one that end a search
_PLENTY = 1e3  # room where nothing bounds the motion
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
        backoff: room to keep to nonlinear bounds, for what happens between the points where they are enforced.
        samples: of the experiment, for criteria in which their number counts.
        notes: what was assumed for the constraints, and what could not be checked.
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
    backoff: float = 0.05
    samples: int = _COST_SAMPLES
    notes: tuple[Note, ...] = ()
    _sensitivity: Sensitivity = field(init=False, repr=False)
    _cost_bases: tuple[Array, Array, Array] = field(init=False, repr=False)
    _point_bases: tuple[Array, Array, Array] = field(init=False, repr=False)
    _linear: tuple[Array, Array, Array] = field(init=False, repr=False)
    _last: list[Any] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Prepare everything that does not change during the search."""
        period = 1.0 / self.variables.base_frequency_hz
        top = max(self.variables.harmonics)
        samples = max(_COST_SAMPLES, 128 * -(-8 * top // 128))
        times = np.arange(samples) * period / samples
        count = _WINDOWS * -(-_POINTS_PER_WAVE * top // _WINDOWS)
        object.__setattr__(self, "_sensitivity", Sensitivity(self.model, self.parameters))
        object.__setattr__(self, "_cost_bases", self.variables.bases(times))
        object.__setattr__(self, "_point_bases", self.variables.bases(np.arange(count) * period / count))
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
        """Room that the nonlinear constraints leave in each window of time: a smooth minimum, never above the true."""
        return self._rooms(x)[1]

    def nonlinear_jacobian(self, x: Array) -> Array:
        """Its derivatives, (windows, variables)."""
        motion, _, rooms = self._rooms(x)
        bars = np.zeros((3, *motion.q.shape))
        for constraint, (_, slope), share in zip(self.constraints, rooms, self.window_shares(x), strict=True):
            bars += constraint.pull_back(motion, share * slope)
        parts = [
            np.einsum("wkj,wki->wji", bar[:, self.variables.moving].reshape(*shape, -1), base.reshape(*shape, -1))
            for bar, base in zip(bars, self._point_bases, strict=True)
            for shape in [(_WINDOWS, len(base) // _WINDOWS)]
        ]
        return np.asarray(sum(parts)).reshape(_WINDOWS, -1)

    def window_shares(self, x: Array) -> list[Array]:
        """Shares (points, quantities) that each constraint's room has in the smooth minimum of its window."""
        motion, least, rooms = self._rooms(x)
        each = np.repeat(least, len(motion.q) // _WINDOWS)[:, None]
        return [np.exp(-_SHARPNESS * (room - each)) for room, _ in rooms]

    def _rooms(self, x: Array) -> tuple[Motion, Array, list[tuple[Array, Array]]]:
        """Motion at the points, smooth minimum of all room in each window, and room with slope of each constraint."""
        if self._last and np.array_equal(self._last[0], x):
            return self._last[1]  # type: ignore[no-any-return]
        motion = self.variables.motion(x, self._point_bases)
        rooms = [constraint.room(motion) for constraint in self.constraints]
        together = np.hstack([np.zeros((len(motion.q), 0)), *(room for room, _ in rooms)]).reshape(_WINDOWS, -1)
        least = together.min(axis=1, initial=_PLENTY)
        shifted = np.exp(-_SHARPNESS * (together - least[:, None]))
        result = motion, least - np.log(np.maximum(shifted.sum(axis=1), 1.0)) / _SHARPNESS, rooms
        self._last[:] = [x.copy(), result]
        return result

    def violation(self, x: Array) -> float:
        """Largest violation of a constraint, relative to its range; 0 if all hold."""
        worst = self.linear_violation(x)
        return max(worst, self.backoff - float(self.nonlinear_values(x).min())) if self.constraints else worst

    def kept(self, x: Array) -> bool:
        """Whether all constraints hold, the linear ones but for rounding: equal bounds never do to the last bit."""
        room = float(self.nonlinear_values(x).min()) if self.constraints else np.inf
        return room >= self.backoff and self.linear_violation(x) < FEASIBLE

    def linear_violation(self, x: Array) -> float:
        """The same of the linear constraints alone."""
        _, low, high = self._linear
        values = self.linear_values(x)
        return float(np.max(np.maximum(low - values, values - high) / np.maximum(high - low, 1e-9), initial=0.0))

    def _linear_constraints(self, period: float, top: int) -> tuple[Array, Array, Array]:
        count = _LIMIT_SAMPLES_PER_WAVE * top
        bases = self.variables.bases(np.arange(count) * period / count)
        limits, still = self.limits, 2 if self.at_rest else 0
        rows = np.vstack([*bases, *(base[:1] for base in bases[1:] if self.at_rest)])
        low = np.stack([limits.lower, -limits.velocity, -limits.acceleration], axis=1)[list(self.variables.moving)]
        high = np.stack([limits.upper, limits.velocity, limits.acceleration], axis=1)[list(self.variables.moving)]
        lower, upper = (np.pad(np.repeat(bound, count, axis=1), ((0, 0), (0, still))) for bound in (low, high))
        return rows, lower, upper


_asked: Callable[[], bool] = bool  # False: nobody asks


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
    _idle: int = field(default=0, repr=False)  # evaluations since the last gain

    def evaluate(self, x: Array) -> tuple[float, Array]:
        """Cost and gradient, remembered for the solver's next question about the same point."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1], self._last[2]
        cost, gradient = self.problem.cost_and_gradient(x)
        self._last = (x.copy(), cost, gradient)
        self._idle += 1
        if self.x is None or cost < self.cost:
            violation = self.problem.violation(x)
            if violation < FEASIBLE and np.isfinite(cost):
                self._idle = 0 if cost < self.cost - _GAIN else self._idle
                self.x, self.cost, violation = x.copy(), cost, 0.0
            self.violation = min(self.violation, violation)
        return cost, gradient

    @property
    def late(self) -> bool:
        """Whether time is up, somebody wants an end, or nonlinear constraints let nothing be gained any more."""
        stuck = bool(self.problem.constraints) and self.x is not None and self._idle > _PATIENCE
        return stuck or time.monotonic() > self.deadline or _asked()


def solve(problem: DesignProblem, start: Array, *, iterations: int, deadline: float) -> tuple[Array | None, float]:
    """Improve `start`; the best feasible point seen and 0, or None and the smallest violation seen."""
    best = _Best(problem, deadline)
    with threadpool_limits(limits=1, user_api="blas"):
        if not problem.constraints:
            _inside(best, start, iterations)
            return best.x, best.violation
        try:
            _ipopt(best, start, iterations)
        except ImportError:
            _slsqp(best, start, iterations)
    return best.x, best.violation


def _inside(best: _Best, start: Array, iterations: int) -> None:
    """Searches within linear limits, each from the best point so far, away from the limits: better minima are near."""
    while iterations > 0 and not best.late:
        iterations -= 1 + minimise_inside(best.evaluate, best.problem.linear, start, iterations, lambda: best.late)
        start = start if best.x is None else best.x


def _ipopt(best: _Best, start: Array, iterations: int) -> None:
    from ipyopt import Problem

    problem = best.problem
    rows, low, high = problem.linear
    moving, per_joint, linear = len(low), problem.variables.per_joint, low.size
    joint = np.repeat(np.arange(moving), len(rows) * per_joint)
    row = np.tile(np.repeat(np.arange(len(rows)), per_joint), moving)
    column = np.tile(np.arange(per_joint), moving * len(rows))
    dense_rows, dense_columns = np.divmod(np.arange(_WINDOWS * problem.variables.count), problem.variables.count)
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
        out[len(constant) :] = problem.nonlinear_jacobian(x).ravel()

    def gradient(x: Array, out: Array) -> None:
        out[:] = best.evaluate(x)[1]

    free = np.full(problem.variables.count, 1e20)
    solver = Problem(
        problem.variables.count,
        -free,
        free,
        linear + _WINDOWS,
        np.append(low, np.full(_WINDOWS, problem.backoff)),
        np.append(high, np.full(_WINDOWS, 1e20)),
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
            "limited_memory_aug_solver": "extended",  # the same steps, a third cheaper with as many rows
            "tol": 1e-4,
            "acceptable_tol": 1e-3,
            "acceptable_iter": 8,
            "acceptable_obj_change_tol": 1e-5,
            "mu_strategy": "adaptive",
            "theta_max_fact": _NEAR,
        },
    )
    solver.solve(start.copy())


def _slsqp(best: _Best, start: Array, iterations: int) -> None:
    """SciPy's SLSQP on the same problem; slower, and it may stop early."""
    from scipy.optimize import minimize

    problem = best.problem
    rows, low, high = problem.linear
    matrix = np.kron(np.eye(len(low)), rows)
    stacked = np.vstack([matrix, -matrix])
    bound = np.concatenate([low.ravel(), -high.ravel()])

    def inequalities(x: Array) -> Array:
        return np.append(stacked @ x - bound, problem.nonlinear_values(x) - problem.backoff)

    def slopes(x: Array) -> Array:
        return np.vstack([stacked, problem.nonlinear_jacobian(x)])

    def stop(_: Array) -> None:
        if best.late:
            raise StopIteration

    minimize(
        best.evaluate,
        start,
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": inequalities, "jac": slopes},
        options={"maxiter": iterations},
        callback=stop,
    )
