"""Solvers for a design problem: IPOPT where it is installed, SciPy otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from armid.arrays import Array
from armid.excitation.problem import DesignProblem

#: Relative violation that the certificate's final scaling takes out.
FEASIBLE = 1e-4


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
