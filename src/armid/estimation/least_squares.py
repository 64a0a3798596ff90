"""Linear least squares: ordinary, with a rank decision, and weighted by the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.errors import UnknownNameError
from armid.estimation.consistent.prior import Prior, base_precision
from armid.estimation.covariance import hac_covariance
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.linear import Solution, inverted, solve, solve_problem, solve_weighted
from armid.estimation.problem import EstimationError, Problem
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class OrdinaryLeastSquares(Estimator):
    """All joints count alike, RX-60 (6)."""

    name: ClassVar[str] = "ols"
    about: ClassVar[str] = "all joints count alike"

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        weights = np.ones(robot.n_joints)
        factor, solution = solve_problem(problem, weights)
        return self.finished(problem, factor, solution, weights)


@dataclass(frozen=True, kw_only=True)
class SingularValueSolution(Estimator):
    """Least squares through singular values: directions the data leave free are left at zero.

    Attributes:
        tolerance: singular values (columns scaled to unit length) below this share of the largest are dropped.
    """

    name: ClassVar[str] = "svd"
    about: ClassVar[str] = "rank decision"

    tolerance: float = 1e-6

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        weights = np.ones(robot.n_joints)
        factor = problem.factor(triangular=True)
        solution = solve(factor, weights, rank_tolerance=self.tolerance)
        used = note("estimation.directions", used=solution.rank, total=len(problem.names))
        return self.finished(problem, factor, solution, weights, notes=[used])


@dataclass(frozen=True, kw_only=True)
class WeightedLeastSquares(Estimator):
    """Each joint counts by its noise, Swevers (7)-(10).

    Attributes:
        noise: ``residual`` takes each joint's own residuals (found by iteration), ``measured`` the noise that the
            data sets state, ``covariance`` the noise between joints too, as the data sets state it.
    """

    name: ClassVar[str] = "wls"
    about: ClassVar[str] = "each joint weighted by its noise"

    noise: str = "residual"

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        if self.noise == "covariance":
            return self._by_covariance(problem)
        return self.finished(problem, *weighted_solution(problem, self.noise))

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
        factor, start = solve_problem(problem, weights)
        inverse = inverted(matrix)
        solution = replace(start, values=inverse @ vector, inverse=inverse)
        return self.finished(problem, factor, solution, weights, covariance=inverse)


@dataclass(frozen=True, kw_only=True)
class PriorLeastSquares(Estimator):
    """Weighted least squares with a Gaussian prior on the links, mapped to base parameters.

    With precision H of all parameters the base parameters B theta have the covariance B H^-1 B'. Joints count by their
    residuals.

    Attributes:
        prior: what is believed beforehand.
    """

    name: ClassVar[str] = "prior"

    prior: Prior | None = None

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        return super().options() | {"prior": None if self.prior is None else self.prior.to_data()}

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        if self.prior is None:
            raise EstimationError("no prior is given; use PriorLeastSquares(prior=read_prior(FILE, robot))")
        problem = self.problem(robot, data)
        precision = base_precision(problem.torque_model, self.prior)
        factor, solution, weights = solve_weighted(problem, rounds=7, prior=precision)
        spread, correlated = hac_covariance(problem, solution, weights)
        covariance = spread + solution.inverse @ precision[0] @ solution.inverse
        notes = [self.prior.note(), _determined(problem, solution, precision[0]), correlated]
        return self.finished(problem, factor, solution, weights, covariance=covariance, notes=notes)


def _determined(problem: Problem, solution: Solution, precision: Array) -> Note:
    share = 1.0 - np.einsum("ij,ji->i", solution.inverse, precision)
    others = [name for name, value in zip(problem.torque_model.labels, share, strict=True) if value < 0.5]
    return note("estimation.prior_determined", total=len(share), others=others)


def weighted_solution(
    problem: Problem, noise: str, *, rank_tolerance: float | None = None
) -> tuple[CompactFactor, Solution, Array]:
    """Factor, solution and weights with joints weighted by their residuals, or by the noise the data sets state."""
    if noise == "residual":
        return solve_weighted(problem, rank_tolerance=rank_tolerance)
    if noise != "measured":
        raise UnknownNameError("noise", noise, ("residual", "measured", "covariance"))
    weights = 1.0 / measured_noise(problem) ** 2
    factor, solution = solve_problem(problem, weights, rank_tolerance=rank_tolerance)
    return factor, solution, weights


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
