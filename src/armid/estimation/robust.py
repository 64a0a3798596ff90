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
from armid.estimation.linear import Solution, inverted, solve_problem, solve_weighted
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
        values, floor = solve_weighted(problem)[1].values, SMALLEST * _rms_torque(problem)
        medians = _Medians(robot.n_joints)
        for block in problem.blocks():
            medians.add(block.errors(values), block.use)
        scales, converged = np.maximum(medians.scales(), floor), False
        for name in dict.fromkeys(("huber", self.loss)):
            loss = _Loss(name, self.cutoff if name == self.loss and self.cutoff is not None else CUTOFFS[name])
            triangular = False
            for _ in range(self.iterations):
                medians = _Medians(robot.n_joints)
                factor, solution = _step(problem, values, scales, loss, medians, triangular)
                triangular = factor.triangular
                reach = float(np.linalg.norm(solution.scale * solution.values))
                change = np.linalg.norm(solution.scale * (solution.values - values)) / max(reach, 1e-300)
                values, moved = solution.values, 0.0
                if name == "huber":
                    # scales of the values before this step: they settle as the values do
                    before, scales = scales, np.maximum(medians.scales(), floor)
                    moved = float(np.abs(scales / before - 1.0).max())
                converged = bool(change < self.tolerance and moved < max(self.tolerance, 1e-3))
                if converged:
                    break
        slope, share, rms = _look(problem, values, scales, loss)
        covariance, correlated = sandwich(lambda: _scores(problem, values, scales, loss), inverted(slope))
        notes = [note("estimation.robust", loss=self.loss, share=share, scales=scales.tolist()), correlated]
        if not converged:
            notes.append(note("estimation.not_converged", iterations=self.iterations))
        fit = self.finished(problem, factor, solution, 1.0 / scales**2, covariance=covariance, notes=notes)
        return replace(fit, residual_rms=rms)


@dataclass(frozen=True)
class _Loss:
    """One of `CUTOFFS`, for residuals u in scales; psi is the derivative of rho."""

    name: str
    cutoff: float

    def weights(self, ratio: Array) -> Array:
        """Weight psi(u) / u."""
        size = np.abs(ratio) / self.cutoff
        if self.name == "huber":
            return 1.0 / np.maximum(size, 1.0)
        return np.where(size < 1.0, (1.0 - np.minimum(size, 1.0) ** 2) ** 2, 0.0)

    def slopes(self, ratio: Array) -> Array:
        """Slope psi'(u)."""
        square = (ratio / self.cutoff) ** 2
        if self.name == "huber":
            return (square < 1.0).astype(float)
        return np.where(square < 1.0, (1.0 - square) * (1.0 - 5.0 * square), 0.0)


def _step(
    problem: Problem, values: Array, scales: Array, loss: _Loss, medians: _Medians, triangular: bool
) -> tuple[CompactFactor, Solution]:
    """Factor of rows reweighted by the residuals of `values`, whose medians are found on the way, and solution."""

    def weigh(block: Rows) -> Array:
        error = block.errors(values)
        medians.add(error, block.use)
        return loss.weights(error / scales)

    factor = problem.factor(weigh=weigh, triangular=triangular)
    return solve_problem(problem, 1.0 / scales**2, factor, weigh)


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


def _look(problem: Problem, values: Array, scales: Array, loss: _Loss) -> tuple[Array, float, Array]:
    """Matrix sum of psi'(u) / s_j^2 W_j' W_j, share of rows whose weight is below one half, residual rms per joint."""
    matrix, few = np.zeros((len(values), len(values))), 0
    squares, counts = np.zeros(len(scales)), np.zeros(len(scales))
    with one_blas_thread():
        for block in problem.blocks():
            error = block.residuals(values)
            part = np.where(block.use, loss.slopes(error / scales), 0.0) / scales**2
            for joint in range(len(scales)):
                rows = block.regressor[:, joint]
                matrix += (rows * part[:, joint, None]).T @ rows
            few += int(np.count_nonzero(block.use & (loss.weights(error / scales) < 0.5)))
            squares += np.sum(error**2, axis=0)
            counts += block.use.sum(axis=0)
    return matrix, few / max(counts.sum(), 1.0), np.sqrt(squares / np.maximum(counts, 1.0))


def _scores(problem: Problem, values: Array, scales: Array, loss: _Loss) -> Iterator[tuple[Array, Array]]:
    for block in problem.blocks():
        ratio = block.residuals(values) / scales
        bounded = ratio * loss.weights(ratio)
        yield np.einsum("rj,rjp->rp", bounded / scales, block.regressor), bounded


def _rms_torque(problem: Problem) -> Array:
    result: Array = np.sqrt(np.mean([np.mean(d.torque**2, axis=0) for d in problem.data], axis=0)) + 1e-300
    return result
