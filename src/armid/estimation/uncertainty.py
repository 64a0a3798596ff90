"""Covariance of estimates: from white noise, Swevers (11), or from residuals that are correlated in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.dynamics.threads import one_blas_thread
from armid.estimation.problem import Problem
from armid.robot.inertia import Array

WHITE = 0.1  # autocorrelation summed over lags below which residuals count as white
BATCHES = 200  # into which long data are cut


@dataclass(frozen=True, eq=False)
class Residuals:
    """What the residuals of a fit look like.

    Attributes:
        rms: per joint, over the rows that counted [N m].
        lag: rows over which residuals stay correlated; 0 for white ones.
        autocorrelation: mean over joints, at lags 0, 1, ... rows.
        correlation: between joints at the same instant, (joints, joints).
    """

    rms: Array
    lag: int
    autocorrelation: Array
    correlation: Array


def residuals_of(problem: Problem, values: Array, lags: int = 60) -> Residuals:
    """One pass over the data."""
    with one_blas_thread():
        return _residuals_of(problem, values, lags)


def _residuals_of(problem: Problem, values: Array, lags: int) -> Residuals:
    n = problem.robot.n_joints
    power, products = np.zeros(n), np.zeros((lags + 1, n))
    cross, counts = np.zeros((n, n)), np.zeros((n, n))
    for block in problem.blocks():
        error = np.where(block.use, block.torque - block.regressor @ values, 0.0)
        power += np.sum(error**2, axis=0)
        for lag in range(min(lags, len(error) - 1) + 1):
            products[lag] += np.sum(error[: len(error) - lag] * error[lag:], axis=0)
        cross += error.T @ error
        counts += block.use.T.astype(float) @ block.use
    used = np.diag(counts)
    rms = np.sqrt(power / np.maximum(used, 1.0))
    shares = products / np.where(power > 0.0, power, 1.0)
    mean = shares.mean(axis=1)
    scale = np.sqrt(np.outer(power / np.maximum(used, 1.0), power / np.maximum(used, 1.0)))
    correlation = np.where(scale > 0.0, cross / np.maximum(counts, 1.0) / np.where(scale > 0.0, scale, 1.0), 0.0)
    return Residuals(rms, _correlated_lag(mean, float(used.min())), mean, correlation)


def _correlated_lag(autocorrelation: Array, count: float) -> int:
    """Rows until the autocorrelation is lost in its own noise; 0 if it sums to little."""
    noise = 2.0 / np.sqrt(max(count, 1.0))
    small = np.flatnonzero(np.abs(autocorrelation[1:]) < max(noise, 0.05))
    first = int(small[0]) + 1 if len(small) else len(autocorrelation) - 1
    return 0 if float(np.abs(autocorrelation[1 : first + 1]).sum()) < WHITE else 2 * first


def correlated_covariance(problem: Problem, values: Array, weights: Array, inverse: Array, lag: int) -> Array:
    """Covariance A^-1 B A^-1 with B the long-run variance of the scores (Newey-West), A the information matrix.

    The score of a row sums over joints, so that correlation between joints counts too. Long data are cut into batches
    whose sums of scores are taken as independent.

    Args:
        problem: the regression.
        values: estimates.
        weights: per joint, as in the fit.
        inverse: A^-1.
        lag: rows over which scores are taken to be correlated.
    """
    total = sum(len(dataset) for dataset in problem.data)
    length = max(4 * lag, total // BATCHES)
    middle = np.zeros_like(inverse)
    rows = 0
    for block in problem.blocks():
        error = np.where(block.use, block.torque - block.regressor @ values, 0.0)
        scores = np.einsum("rj,rjp->rp", weights * error, block.regressor)
        rows += len(scores)
        if total <= 50 * BATCHES:
            middle += scores.T @ scores
            for k in range(1, min(lag, len(scores) - 1) + 1):
                lagged = scores[:-k].T @ scores[k:]
                middle += (1.0 - k / (lag + 1.0)) * (lagged + lagged.T)
        else:
            for first in range(0, len(scores), length):
                batch = scores[first : first + length].sum(axis=0)
                middle += np.outer(batch, batch)
    inflation = rows * problem.robot.n_joints / max(rows * problem.robot.n_joints - len(values), 1)
    return np.asarray(inflation * inverse @ middle @ inverse)
