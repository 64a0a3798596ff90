"""What the residuals of a fit look like: their size, and how they are correlated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.problem import Problem

WHITE = 0.1  # autocorrelation summed over lags below which residuals count as white
ENOUGH = 20_000  # rows of long data that tell how residuals are correlated


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
    """What the residuals look like; of long data, pieces that are spread over them are looked at."""
    with one_blas_thread():
        return _residuals_of(problem, values, lags)


def _residuals_of(problem: Problem, values: Array, lags: int) -> Residuals:
    n = problem.robot.n_joints
    power, products = np.zeros(n), np.zeros((lags + 1, n))
    cross, counts = np.zeros((n, n)), np.zeros((n, n))
    for block in problem.blocks(ENOUGH):
        error = block.residuals(values)
        power += np.sum(error**2, axis=0)
        products += products_of(error, lags)
        cross += error.T @ error
        counts += block.use.T.astype(float) @ block.use
    used = np.diag(counts)
    rms = np.sqrt(power / np.maximum(used, 1.0))
    shares = products / np.where(power > 0.0, power, 1.0)
    mean = shares.mean(axis=1)
    scale = np.sqrt(np.outer(power / np.maximum(used, 1.0), power / np.maximum(used, 1.0)))
    correlation = np.where(scale > 0.0, cross / np.maximum(counts, 1.0) / np.where(scale > 0.0, scale, 1.0), 0.0)
    return Residuals(rms, lag_of(mean, float(used.min())), mean, correlation)


def products_of(error: Array, lags: int) -> Array:
    """Sums over the rows of error(t) error(t + lag), (lags + 1, joints), through the power spectrum."""
    size = next_fast_len(len(error) + lags, real=True)
    power = np.abs(rfft(error, size, axis=0)) ** 2
    return np.asarray(irfft(power, size, axis=0)[: lags + 1])


def lag_of(autocorrelation: Array, count: float) -> int:
    """Rows until the autocorrelation is lost in its own noise; 0 if it sums to little."""
    noise = 2.0 / np.sqrt(max(count, 1.0))
    small = np.flatnonzero(np.abs(autocorrelation[1:]) < max(noise, 0.05))
    first = int(small[0]) + 1 if len(small) else len(autocorrelation) - 1
    return 0 if float(np.abs(autocorrelation[1 : first + 1]).sum()) < WHITE else 2 * first
