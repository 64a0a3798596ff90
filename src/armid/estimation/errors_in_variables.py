"""Errors in variables, noise on positions as well as on torque: maximum likelihood and total least squares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.errors import UnknownNameError
from armid.estimation.covariance import sandwich
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.least_squares import measured_noise
from armid.estimation.likelihood import (
    BLOCK,
    EffectivePart,
    FourierPart,
    Part,
    is_period,
    motion_noise,
    regressor_slope,
)
from armid.estimation.linear import inverted, residual_squares, solve_problem, solve_weighted, triangle_of
from armid.estimation.problem import EstimationError, Problem
from armid.experiment.settings import PerJoint
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset

ROUND_OFF = 1e-14  # of the torque: what is left of it is never taken as smaller


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Estimator):
    """The most likely parameters where positions carry noise too (Swevers et al.), started from weighted least squares.

    Periodic data (averaged over at least two periods): the Fourier coefficients of the true motion are estimated with
    the parameters, see `FourierPart`. Other data: the variance of each row holds what noise of its motion does to its
    torque, see `EffectivePart`. Gauss-Newton steps, shortened until the likelihood grows.

    Attributes:
        noise: of the torque: ``measured`` as the data sets state it, ``residual`` from the residuals (and wherever a
            data set states none).
        position_noise: standard deviation of measured positions [rad], one or one per joint; needed for data that do
            not repeat, where it is that of the raw encoder. None takes what the data sets state.
        motion_noise: of q, qd, qdd [rad, rad/s, rad/s^2] after filtering, for data that do not say how they were
            filtered; overrides `position_noise` for data that do not repeat.
        tolerance: relative change of the estimate (columns scaled to unit length) at which iterations end.
        iterations: at most.
    """

    name: ClassVar[str] = "ml"
    about: ClassVar[str] = "noise on positions too"

    noise: str = "measured"
    position_noise: float | tuple[float, ...] | None = None
    motion_noise: tuple[float, float, float] | None = None
    tolerance: float = 1e-7
    iterations: int = 30

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        if self.noise not in ("measured", "residual"):
            raise UnknownNameError("noise", self.noise, ("measured", "residual"))
        problem = self.problem(robot, data)
        _, start, weights = solve_weighted(problem)
        stated = all(d.torque_noise is not None and np.all(d.torque_noise > 0.0) for d in problem.data)
        measured = self.noise == "measured" and stated
        if measured:
            weights = 1.0 / measured_noise(problem) ** 2
        with one_blas_thread():
            parts = [self._part(problem, d, weights) for d in problem.data]
            values, converged, rounds = self._iterate(parts, start.values)
            if not measured:  # once more, with the noise that is left when the motion is right
                weights = solve_weighted(self.problem(robot, [part.refined() for part in parts]))[2]
                parts = [self._part(problem, d, weights) for d in problem.data]
                values, converged, rounds = self._iterate(parts, values)
            matrix, _, cost = _summed(parts, values)
            inverse, white = inverted(matrix), None
            periodic = [isinstance(part, FourierPart) for part in parts]
            if all(periodic):
                white = inverse * cost / max(sum(part.rows for part in parts) - len(values), 1)
            covariance, correlated = sandwich(
                lambda: chain.from_iterable(part.scores(values) for part in parts),
                inverse,
                extra=sum(part.extra() for part in parts),
                white=white,
            )
        factor, solution = solve_problem(self.problem(robot, [part.refined() for part in parts]), weights)
        moved = [float(np.abs(part.refined().q - d.q).max()) for part, d in zip(parts, problem.data, strict=True)]
        how = {"steps": rounds, "converged": converged, "measured": measured, "weighted": not all(periodic)}
        notes = [note("estimation.likelihood", **how, moved_rad=max(moved) if any(periodic) else None), correlated]
        return self.finished(
            problem, factor, replace(solution, values=values), weights, covariance=covariance, notes=notes
        )

    def _iterate(self, parts: Sequence[Part], values: Array) -> tuple[Array, bool, int]:
        for count in range(1, self.iterations + 1):
            matrix, vector, cost = _summed(parts, values)
            scale = np.sqrt(np.diag(matrix))
            step = np.linalg.solve(matrix / np.outer(scale, scale), vector / scale) / scale
            share = 1.0
            while sum(part.cost(values, step, share) for part in parts) > cost * (1.0 + 1e-12):
                share *= 0.5
                if share < 1e-3:
                    return values, bool(_relative(scale * step, scale * values) < 1e-4), count
            for part in parts:
                part.accept(step, share)
            values = values + share * step
            if _relative(scale * step, scale * values) < self.tolerance:
                return values, True, count
        return values, False, self.iterations

    def _part(self, problem: Problem, dataset: Dataset, weights: Array) -> Part:
        noise = motion_noise(dataset, self.position_noise, None if is_period(dataset) else self.motion_noise)
        return (FourierPart if is_period(dataset) else EffectivePart)(problem, dataset, weights, noise)


def _summed(parts: Sequence[Part], values: Array) -> tuple[Array, Array, float]:
    """Normal equations of all parts together, and the cost."""
    matrices, vectors, costs = zip(*(part.normal(values) for part in parts), strict=True)
    return np.sum(matrices, axis=0), np.sum(vectors, axis=0), sum(costs)


def _relative(change: Array, whole: Array) -> float:
    return float(np.linalg.norm(change) / max(float(np.linalg.norm(whole)), 1e-300))


@dataclass(frozen=True, kw_only=True)
class TotalLeastSquares(Estimator):
    """Smallest change of regressor *and* torque that makes them agree (Golub and Van Loan; mixed with least squares).

    With C the covariance of the errors in the columns, summed over rows, and s^2 that of the errors in the torque, it
    minimises |tau - W x|^2 / (s^2 + x' C x), joints weighted by their residuals, on the compact triangular factor.

    Noise model: errors in the columns come from white noise of position, velocity and acceleration that is independent
    between joints, between the three, and of the torque's: C = sum over rows of dW/dm_i' dW/dm_i times the variance of
    m_i, one pass over the data. Or, with `column_error`, the classical model: independent errors in all columns, each
    the share `column_error` x r of its column's length where the torque's error is the share r of its own. That model
    is rarely true of a robot, and where columns resemble each other it makes matters worse.

    Attributes:
        position_noise: standard deviation of measured positions [rad], one or one per joint; see `motion_noise`. None
            takes what averaged data state.
        motion_noise: of q, qd, qdd [rad, rad/s, rad/s^2] after filtering; overrides `position_noise`.
        column_error: relative error of columns over that of the torque, for the classical model.
        exact: columns without error: names (``fc2``) or stems (``fc``).
    """

    name: ClassVar[str] = "tls"
    about: ClassVar[str] = "errors in the regressor"

    position_noise: PerJoint | None = None
    motion_noise: tuple[float, float, float] | None = None
    column_error: float | None = None
    exact: tuple[str, ...] = ("fc", "fo")

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        if self.column_error is not None and not self.column_error >= 0.0:
            raise EstimationError(f"column_error is {self.column_error}; use zero or more")
        problem = self.problem(robot, data)
        self._check_exact(problem.names)
        factor, solution, weights = solve_weighted(problem, triangular=True)
        noisy = np.array([not _listed(name, self.exact) for name in problem.names])
        with one_blas_thread():
            triangle = triangle_of(factor, weights)
            errors = self._errors(problem, triangle, weights)
            errors = errors * np.outer(np.append(noisy, True), np.append(noisy, True))
            values, least = _mixed(triangle, errors)
        covariance, correlated = _covariance(problem, factor, values, weights, least * errors[:-1, :-1])
        total = replace(solution, values=values, squares=residual_squares(factor, values))
        share = {"columns": int(noisy.sum()), "total": len(noisy), "column_error": self.column_error}
        notes = [note("estimation.total", **share), correlated]
        return self.finished(problem, factor, total, weights, covariance=covariance, notes=notes)

    def _errors(self, problem: Problem, triangle: Array, weights: Array) -> Array:
        """Covariance of the errors in columns and torque, summed over rows."""
        if self.column_error is not None:
            lengths = np.linalg.norm(triangle, axis=0)
            share = np.append(np.full(len(lengths) - 1, self.column_error), 1.0)
            return np.diag((share * lengths) ** 2)
        noises = [motion_noise(d, self.position_noise, self.motion_noise) for d in problem.data]
        return _from_motion(problem, weights, noises)

    def _check_exact(self, names: Sequence[str]) -> None:
        stems = {_stem(name) for name in names}
        for entry in self.exact:
            # stems of laws that this robot does not have do no harm
            if entry not in names and entry not in stems and re.search(r"\d", entry):
                raise UnknownNameError("column", entry, (*names, *sorted(stems)))


def _listed(name: str, exact: Sequence[str]) -> bool:
    return name in exact or _stem(name) in exact


def _stem(name: str) -> str:
    """Name without its number: ``fc2`` and ``fc2p`` are ``fc``."""
    return re.split(r"\d", name, maxsplit=1)[0]


def _from_motion(problem: Problem, weights: Array, noises: Sequence[Array]) -> Array:
    """Sum over rows and joints of the covariance of (W, tau), weighted."""
    p = len(problem.names)
    total = np.zeros((p + 1, p + 1))
    for dataset, noise in zip(problem.data, noises, strict=True):
        use = problem.used(dataset)
        stated = 1.0 / weights if dataset.torque_noise is None else np.asarray(dataset.torque_noise) ** 2
        total[p, p] += float(np.sum(use.sum(axis=0) * weights * stated))
        for first in range(0, len(dataset), BLOCK):
            which = slice(first, first + BLOCK)
            at = dataset.rows[which]
            here = Motion(*(np.ascontiguousarray(array[at]) for array in dataset.motion))
            root = np.sqrt(weights) * use[which]
            for k in range(3):
                for i in np.flatnonzero(noise[k] > 0.0):
                    columns, known = regressor_slope(problem.torque_model, here, k, int(i))
                    # an error of the motion changes what is subtracted as known as well
                    both = np.concatenate([columns, np.broadcast_to(-known, columns.shape[:2])[:, :, None]], axis=2)
                    flat = (noise[k, i] * root[:, :, None] * both).reshape(-1, p + 1)
                    total += flat.T @ flat
    return total


def _mixed(triangle: Array, errors: Array) -> tuple[Array, float]:
    """Solution and smallest generalised eigenvalue.

    The vector x = (-theta, 1) minimises |R x|^2 / (x' E x), E = D'D the errors' covariance. It is R^-1 u, u the first
    right singular vector of D R^-1: columns without error need no case of their own, and a residual that is zero to
    round-off costs no precision.
    """
    p = len(triangle) - 1
    scale = np.linalg.norm(triangle, axis=0)
    safe = triangle / scale
    if abs(safe[p, p]) < ROUND_OFF:
        safe[p, p] = ROUND_OFF
    powers, axes = np.linalg.eigh(errors / np.outer(scale, scale))
    root = np.sqrt(np.maximum(powers, 0.0))[:, None] * axes.T
    _, singular, right = np.linalg.svd(solve_triangular(safe, root.T, trans="T").T)
    u = right[0]
    if abs(u[p]) < 1e-8:
        raise EstimationError("total least squares has no solution for these data; state smaller errors, or use wls")
    values = solve_triangular(safe[:p, :p], safe[:p, p] - safe[p, p] * u[:p] / u[p]) * scale[p] / scale[:p]
    return values, float(1.0 / singular[0] ** 2)


def _covariance(
    problem: Problem, factor: CompactFactor, values: Array, weights: Array, penalty: Array
) -> tuple[Array, Note]:
    """Sandwich of the estimating equation W' e + P theta = 0, P = lambda D^2: theta = (W'W - P)^-1 W' tau."""
    shift = penalty @ values / max(float(weights @ residual_squares(factor, values)), 1e-300)

    def blocks() -> Iterator[tuple[Array, Array]]:
        for block in problem.blocks():
            error = block.residuals(values)
            scores = np.einsum("rj,rjp->rp", weights * error, block.regressor)
            yield scores + np.sum(weights * error**2, axis=1)[:, None] * shift, error * np.sqrt(weights)

    return sandwich(blocks, inverted(factor.normal_equations(weights)[0] - penalty))
