"""Robust least squares: rows with large residuals count less, by iteratively reweighted least squares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import one_blas_thread
from armid.errors import UnknownNameError
from armid.estimation.covariance import sandwich
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.linear import NeedsTriangle, Solution, solve, solve_weighted
from armid.estimation.problem import EstimationError, Problem, Rows
from armid.notes import note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset

NORMAL = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
SMALLEST = 1e-10  # of the torque: no scale is below it
CUTOFFS = {"huber": 1.345, "tukey": 4.685}  # 95 % as efficient as least squares where noise is normal
_LOG_LOW, _LOG_HIGH, _BINS = -50.0, 25.0, 16384  # natural logarithm of |residual|, for medians in constant memory


@dataclass(frozen=True, kw_only=True)
class RobustLeastSquares(Estimator):
    """Minimise sum rho(e / s_j) over rows and joints, s_j the scale of joint j's residuals.

    Outliers (a collision, a dropped sample, a lock of the gear) then pull little (Huber) or not at all (Tukey). Scales
    are median absolute deviations, found with the estimate. Huber's problem is convex; Tukey's starts from its solution
    and keeps its scales. Each iteration is one pass over the data in constant memory.

    Attributes:
        loss: ``huber`` or ``tukey``.
        cutoff: in scales, where a row begins to count less; None for 1.345 (Huber) or 4.685 (Tukey).
        tolerance: relative change of the estimate (columns scaled to unit length) at which iterations end.
        iterations: at most, for each loss.
    """

    name: ClassVar[str] = "robust"
    about: ClassVar[str] = "outliers count less"

    loss: str = "huber"
    cutoff: float | None = None
    tolerance: float = 1e-7
    iterations: int = 60

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        if self.loss not in CUTOFFS:
            raise UnknownNameError("loss", self.loss, CUTOFFS)
        if self.cutoff is not None and not self.cutoff > 0.0:
            raise EstimationError(f"cutoff is {self.cutoff}; give a number above zero, such as {CUTOFFS[self.loss]}")
        problem = self.problem(robot, data)
        _, start, _ = solve_weighted(problem)
        floor = SMALLEST * _rms_torque(problem)
        search = _Search(problem, floor, self.tolerance, self.iterations)
        cutoff = CUTOFFS["huber"] if self.loss == "tukey" or self.cutoff is None else self.cutoff
        state = search.run(start.values, search.scales(start.values), "huber", cutoff, follow=True)
        if self.loss == "tukey":
            cutoff = CUTOFFS["tukey"] if self.cutoff is None else self.cutoff
            state = search.run(state.solution.values, state.scales, "tukey", cutoff, follow=False)
        return self._finished(problem, state, cutoff)

    def _finished(self, problem: Problem, state: _State, cutoff: float) -> Fit:
        values, scales = state.solution.values, state.scales
        slope, share = _slope(problem, values, scales, self.loss, cutoff)
        scale = np.sqrt(np.diag(slope))
        inverse = np.linalg.inv(slope / np.outer(scale, scale)) / np.outer(scale, scale)
        rows = sum(len(dataset) for dataset in problem.data)
        covariance, correlated = sandwich(lambda: _scores(problem, values, scales, self.loss, cutoff), inverse, rows)
        notes = [
            note("estimation.robust", loss=self.loss, share=share, scales=scales.tolist()),
            correlated,
        ]
        if not state.converged:
            notes.append(note("estimation.not_converged", iterations=self.iterations))
        weights = 1.0 / scales**2
        fit = self.finished(problem, state.factor, state.solution, weights, covariance=covariance, notes=notes)
        return replace(fit, residual_rms=_rms(problem, values))


@dataclass(frozen=True, eq=False)
class _State:
    solution: Solution
    factor: CompactFactor
    scales: Array
    converged: bool


class _Search:
    """The iterations: factor of reweighted rows, solution, scales of its residuals."""

    def __init__(self, problem: Problem, floor: Array, tolerance: float, iterations: int) -> None:
        self.problem, self.floor = problem, floor
        self.tolerance, self.iterations = tolerance, iterations
        self.triangular = False

    def run(self, values: Array, scales: Array, loss: str, cutoff: float, *, follow: bool) -> _State:
        """Iterate from `values`; scales follow the residuals, or stay."""
        converged = False
        for _ in range(self.iterations):
            counter = _Medians(len(scales))
            factor, solution = self._step(values, scales, loss, cutoff, counter)
            reach = np.linalg.norm(solution.scale * solution.values)
            change = np.linalg.norm(solution.scale * (solution.values - values)) / max(float(reach), 1e-300)
            moved = 0.0
            if follow:
                new = np.maximum(counter.scales(), self.floor)
                # scales of the values before this step: they settle as the values do
                moved = float(np.abs(new / scales - 1.0).max())
                scales = new
            values = solution.values
            if change < self.tolerance and moved < max(self.tolerance, 1e-3):
                converged = True
                break
        return _State(solution, factor, scales, converged)

    def _step(
        self, values: Array, scales: Array, loss: str, cutoff: float, counter: _Medians
    ) -> tuple[CompactFactor, Solution]:
        def weigh(block: Rows) -> Array:
            error = block.errors(values)
            counter.add(error, block.use)
            return _weights(error / scales, loss, cutoff)

        factor = self.problem.factor(weigh=weigh, triangular=self.triangular)
        try:
            return factor, solve(factor, 1.0 / scales**2)
        except NeedsTriangle:
            self.triangular = True
            factor = self.problem.factor(weigh=weigh, triangular=True)
            return factor, solve(factor, 1.0 / scales**2)

    def scales(self, values: Array) -> Array:
        """Median absolute deviation of the residuals per joint, as a standard deviation."""
        counter = _Medians(self.problem.robot.n_joints)
        for block in self.problem.blocks():
            counter.add(block.errors(values), block.use)
        return np.maximum(counter.scales(), self.floor)


class _Medians:
    """Medians of |residual| per joint from counts over a logarithmic scale: constant memory, 0.5 % fine."""

    def __init__(self, joints: int) -> None:
        self.counts = np.zeros((joints, _BINS), dtype=np.int64)

    def add(self, error: Array, use: NDArray[np.bool_]) -> None:
        size = np.log(np.maximum(np.abs(error), 1e-300))
        which = np.clip((size - _LOG_LOW) * (_BINS / (_LOG_HIGH - _LOG_LOW)), 0, _BINS - 1).astype(np.int64)
        for joint, counts in enumerate(self.counts):
            counts += np.bincount(which[use[:, joint], joint], minlength=_BINS)

    def scales(self) -> Array:
        total = np.cumsum(self.counts, axis=1)
        middle = np.array([np.searchsorted(row, 0.5 * row[-1]) for row in total])
        return np.asarray(NORMAL * np.exp(_LOG_LOW + (middle + 0.5) * (_LOG_HIGH - _LOG_LOW) / _BINS))


def _weights(ratio: Array, loss: str, cutoff: float) -> Array:
    """Weight psi(u) / u of a residual of u scales."""
    size = np.abs(ratio) / cutoff
    if loss == "huber":
        return 1.0 / np.maximum(size, 1.0)
    return np.where(size < 1.0, (1.0 - np.minimum(size, 1.0) ** 2) ** 2, 0.0)


def _slopes(ratio: Array, loss: str, cutoff: float) -> Array:
    """Slope psi'(u)."""
    square = (ratio / cutoff) ** 2
    if loss == "huber":
        return (square < 1.0).astype(float)
    return np.where(square < 1.0, (1.0 - square) * (1.0 - 5.0 * square), 0.0)


def _slope(problem: Problem, values: Array, scales: Array, loss: str, cutoff: float) -> tuple[Array, float]:
    """Matrix sum of psi'(u) / s_j^2 W_j' W_j, and the share of rows whose weight is below one half."""
    p = len(values)
    matrix, few, count = np.zeros((p, p)), 0, 0
    with one_blas_thread():
        for block in problem.blocks():
            ratio = block.errors(values) / scales
            part = np.where(block.use, _slopes(ratio, loss, cutoff), 0.0) / scales**2
            for joint in range(len(scales)):
                rows = block.regressor[:, joint]
                matrix += (rows * part[:, joint, None]).T @ rows
            few += int(np.count_nonzero(block.use & (_weights(ratio, loss, cutoff) < 0.5)))
            count += int(np.count_nonzero(block.use))
    return matrix, few / max(count, 1)


def _scores(problem: Problem, values: Array, scales: Array, loss: str, cutoff: float) -> Iterator[tuple[Array, Array]]:
    for block in problem.blocks():
        ratio = block.residuals(values) / scales
        bounded = ratio * _weights(ratio, loss, cutoff)
        yield np.einsum("rj,rjp->rp", bounded / scales, block.regressor), bounded


def _rms(problem: Problem, values: Array) -> Array:
    squares, counts = np.zeros(problem.robot.n_joints), np.zeros(problem.robot.n_joints)
    for block in problem.blocks():
        squares += np.sum(block.residuals(values) ** 2, axis=0)
        counts += block.use.sum(axis=0)
    return np.sqrt(squares / np.maximum(counts, 1.0))


def _rms_torque(problem: Problem) -> Array:
    result: Array = np.sqrt(np.mean([np.mean(d.torque**2, axis=0) for d in problem.data], axis=0)) + 1e-300
    return result
