"""Linear least squares: ordinary, with a rank decision, and weighted by the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.errors import UnknownNameError
from armid.estimation.estimator import Estimator, solve_with
from armid.estimation.fit import Fit
from armid.estimation.linear import solve
from armid.estimation.problem import EstimationError, Problem
from armid.estimation.start import weighted_start
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class OrdinaryLeastSquares(Estimator):
    """All joints count alike, RX-60 (6)."""

    name: ClassVar[str] = "ols"

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        weights = np.ones(robot.n_joints)
        factor, solution = solve_with(problem, weights)
        return self.finished(problem, factor, solution, weights)


@dataclass(frozen=True, kw_only=True)
class SingularValueSolution(Estimator):
    """Least squares through singular values: directions the data leave free are left at zero.

    Attributes:
        tolerance: singular values (columns scaled to unit length) below this share of the largest are dropped.
    """

    name: ClassVar[str] = "svd"

    tolerance: float = 1e-6

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        weights = np.ones(robot.n_joints)
        factor = problem.factor(triangular=True)
        solution = solve(factor, weights, rank_tolerance=self.tolerance)
        note = f"{solution.rank} of {len(problem.names)} directions are kept."
        return self.finished(problem, factor, solution, weights, notes=[note])


@dataclass(frozen=True, kw_only=True)
class WeightedLeastSquares(Estimator):
    """Each joint counts by its noise, Swevers (7)-(10).

    Attributes:
        noise: ``residual`` takes each joint's own residuals (found by iteration), ``measured`` the noise that the
            data sets state, ``covariance`` the noise between joints too, as the data sets state it.
    """

    name: ClassVar[str] = "wls"

    noise: str = "residual"

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        if self.noise == "residual":
            return self._by_residuals(problem)
        if self.noise == "measured":
            weights = 1.0 / measured_noise(problem) ** 2
            factor, solution = solve_with(problem, weights)
            return self.finished(problem, factor, solution, weights)
        if self.noise == "covariance":
            return self._by_covariance(problem)
        raise UnknownNameError("noise", self.noise, ("residual", "measured", "covariance"))

    def _by_residuals(self, problem: Problem) -> Fit:
        factor, solution, weights = weighted_start(problem)
        return self.finished(problem, factor, solution, weights)

    def _by_covariance(self, problem: Problem) -> Fit:
        """With C = L L' the noise covariance of a row, regress L^-1 tau on L^-1 W, where all joints count."""
        covariances = [d.noise_covariance for d in problem.data]
        if any(c is None for c in covariances):
            raise EstimationError(
                "a data set does not state the noise between joints; average at least two periods, or use "
                "noise='residual'"
            )
        p = len(problem.names)
        matrix, vector = np.zeros((p, p)), np.zeros(p)
        roots = [np.linalg.inv(np.linalg.cholesky(c)) for c in covariances if c is not None]
        for block in problem.blocks():
            every = block.use.all(axis=1)
            whitened = np.einsum("ij,rjp->rip", roots[block.dataset], block.regressor[every])
            flat = whitened.reshape(-1, p)
            y = (block.torque[every] @ roots[block.dataset].T).ravel()
            matrix += flat.T @ flat
            vector += flat.T @ y
        weights = 1.0 / measured_noise(problem) ** 2
        factor, start = solve_with(problem, weights)
        scale = np.sqrt(np.diag(matrix))
        inverse = np.linalg.inv(matrix / np.outer(scale, scale)) / np.outer(scale, scale)
        solution = replace(start, values=inverse @ vector, inverse=inverse)
        return self.finished(problem, factor, solution, weights, covariance=inverse)


def measured_noise(problem: Problem) -> Array:
    """Noise per joint that the data sets state [N m], pooled."""
    noises = [d.torque_noise for d in problem.data if d.torque_noise is not None]
    if len(noises) < len(problem.data):
        raise EstimationError(
            "a data set does not state its torque noise; average at least two periods, or use noise='residual'"
        )
    pooled = np.sqrt(np.mean(np.square(noises), axis=0))
    if not np.all(pooled > 0.0):
        raise EstimationError("the torque noise of a joint is zero; use noise='residual'")
    return np.asarray(pooled)
