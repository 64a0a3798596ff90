"""Total least squares: errors in the columns of the regressor as well as in the torque."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from armid.estimation.likelihood import BLOCK, motion_noise, regressor_slope
from armid.estimation.linear import residual_squares, solve_weighted
from armid.estimation.problem import EstimationError, Problem
from armid.experiment.settings import PerJoint
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset

ROUND_OFF = 1e-14  # of the torque: what is left of it is never taken as smaller


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
            triangle = _triangle(factor, weights)
            errors = self._errors(problem, triangle, weights)
            errors = errors * np.outer(np.append(noisy, True), np.append(noisy, True))
            values, least = _mixed(triangle, errors)
        covariance, correlated = _covariance(problem, values, weights, least * errors[:-1, :-1])
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


def _triangle(factor: CompactFactor, weights: Array) -> Array:
    """Triangular factor of [W | tau], all joints, weighted."""
    p = len(factor.names)
    blocks = []
    for joint, columns in enumerate(factor.columns):
        rows = np.zeros((len(factor.matrices[joint]), p + 1))
        rows[:, [*columns, p]] = np.sqrt(weights[joint]) * factor.matrices[joint]
        blocks.append(rows)
    return np.asarray(np.linalg.qr(np.vstack(blocks), mode="r"))[: p + 1]


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


def _covariance(problem: Problem, values: Array, weights: Array, penalty: Array) -> tuple[Array, Note]:
    """Sandwich of the estimating equation W' e + P theta = 0, P = lambda D^2: theta = (W'W - P)^-1 W' tau."""
    p = len(values)
    matrix, power = np.zeros((p, p)), 0.0
    with one_blas_thread():
        for block in problem.blocks():
            error = block.residuals(values)
            power += float(np.sum(weights * error**2))
            for joint, weight in enumerate(weights):
                rows = block.regressor[block.use[:, joint], joint]
                matrix += weight * rows.T @ rows
    scale = np.sqrt(np.diag(matrix))
    slope = (matrix - penalty) / np.outer(scale, scale)
    inverse = np.linalg.inv(slope) / np.outer(scale, scale)
    shift = penalty @ values / max(power, 1e-300)

    def blocks() -> Iterator[tuple[Array, Array]]:
        for block in problem.blocks():
            error = block.residuals(values)
            scores = np.einsum("rj,rjp->rp", weights * error, block.regressor)
            scores += np.sum(weights * error**2, axis=1)[:, None] * shift
            yield scores, error * np.sqrt(weights)

    return sandwich(blocks, inverse, sum(len(dataset) for dataset in problem.data))
