"""What the noise of a log does to an estimate, also where residuals are correlated in time and rows are few."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_toeplitz
from scipy.signal import oaconvolve

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.problem import Problem
from armid.estimation.uncertainty import ENOUGH, lag_of, products_of
from armid.signals.dataset import Dataset

LAGS = 120  # rows over which residuals are looked at
MOST_LAGS = 400  # rows over which a fitted correlation is followed
ORDERS = (1, 2, 3, 4, 6, 8, 12, 16)  # of the autoregression
FADED = 0.01  # autocorrelation that is left out
FEWEST = 0.2  # share of independent rows that must be left after the parameters have taken theirs


class Correlation(NamedTuple):
    """How residuals are correlated in time.

    Attributes:
        lag: rows over which they stay correlated; 0 for white ones.
        autocovariance: per joint at lags 0, 1, ... rows [N^2 m^2], (joints, lags): by an autoregression, or of white
            noise that went through the data's own filter, whichever is longer.
        independent: how many independent rows they are worth.
    """

    lag: int
    autocovariance: Array
    independent: float


def correlation_of(problem: Problem, values: Array) -> Correlation:
    """Correlation of the residuals of joints that move; the longest decides."""
    n = problem.robot.n_joints
    products, counts, rows = np.zeros((LAGS + 1, n)), np.zeros(n), 0
    for block in problem.blocks(ENOUGH):
        error = block.residuals(values)
        products += products_of(error, LAGS)
        counts += block.use.sum(axis=0)
        rows += len(error)
    share = sum(len(dataset) for dataset in problem.data) / max(rows, 1)
    passed = np.max([_by_filter(dataset) for dataset in problem.data], axis=0)
    result, lags, independent = np.zeros((n, MOST_LAGS + 1)), [0], 0.0
    for joint in np.flatnonzero((counts > 0) & (products[0] > 0.0)):
        sample = products[:, joint] / counts[joint]
        seen, filtered = _by_autoregression(sample, float(counts[joint])), sample[0] * passed
        result[joint] = seen if seen.sum() > filtered.sum() else filtered
        lags.append(lag_of(sample / sample[0], float(counts[joint])))
        worth = max(1.0, 1.0 + 2.0 * float(result[joint, 1:].sum()) / float(result[joint, 0]))
        independent += share * float(counts[joint]) / worth
    large = np.abs(result) >= FADED * np.maximum(result[:, :1], 1e-300)
    last = int(np.flatnonzero(np.any(large, axis=0)).max(initial=0)) + 1
    return Correlation(max(lags), result[:, :last], independent)


def _by_filter(dataset: Dataset) -> Array:
    """Autocorrelation of rows of white noise that was filtered as the torque was, at `MOST_LAGS` lags."""
    result = np.zeros(MOST_LAGS + 1)
    result[0] = 1.0
    if dataset.kernel is not None and len(dataset.rows) > 1:
        step = int(np.median(np.diff(dataset.rows)))
        every = np.correlate(dataset.kernel, dataset.kernel, "full")[len(dataset.kernel) - 1 :: step]
        result[: len(every)] = every[: len(result)] / every[0]
    return result


def _by_autoregression(sample: Array, count: float) -> Array:
    """Autocovariance of the autoregression that Akaike's corrected criterion prefers, at `MOST_LAGS` lags."""
    best, least = np.zeros(0), count * np.log(sample[0])
    for order in ORDERS:
        if order >= min(len(sample), count / 4):
            break
        coefficients = solve_toeplitz(sample[:order], sample[1 : order + 1])
        innovation = sample[0] - coefficients @ sample[1 : order + 1]
        if innovation <= 0.0:
            break
        price = 2.0 * order * count / max(count - order - 1.0, 1.0)
        if (cost := count * np.log(innovation) + price) < least:
            best, least = coefficients, cost
    order = len(best)
    result = np.zeros(MOST_LAGS + 1)
    result[: order + 1] = sample[: order + 1]
    for lag in range(order + 1, MOST_LAGS + 1 if order else 0):
        result[lag] = best @ result[lag - 1 : lag - 1 - order : -1]
    return result


def noise_covariance(
    problem: Problem, values: Array, weights: Array, project: Array, found: Correlation, spent: float
) -> Array:
    """Covariance of ``project @ scores``, with scores the sums over rows and joints of weight, residual and regressor.

    The long-run variance of the scores (Newey, West) sees residuals whose size depends on the motion, and correlation
    between joints, but is too small for slow correlation and few rows. So each variance is enlarged to what a
    stationary correlation by autoregression or by the data's own filter gives, where that is more, and all for the
    share of independent rows that the parameters take up. Pieces of long data stand for all of them.

    Args:
        problem: the regression.
        values: its solution.
        weights: 1 / variance per joint.
        project: (wanted, columns); the inverse information matrix for the covariance of the values.
        found: correlation of the residuals.
        spent: effective number of parameters.
    """
    size = len(project)
    by_scores, by_model = np.zeros((size, size)), np.zeros(size)
    rows, total = 0, sum(len(dataset) for dataset in problem.data)
    with one_blas_thread():
        for block in problem.blocks(ENOUGH):
            error = block.residuals(values)
            scores = np.zeros((len(error), size))
            for joint, autocovariance in enumerate(found.autocovariance):
                if weights[joint] > 0.0:
                    turned = (block.regressor[:, joint] * (weights[joint] * block.use[:, joint, None])) @ project.T
                    scores += error[:, joint, None] * turned
                    by_model += _stationary(turned, autocovariance)
            rows += len(scores)
            by_scores += scores.T @ scores
            for k in range(1, min(found.lag, len(scores) - 1) + 1):
                lagged = scores[:-k].T @ scores[k:]
                by_scores += (1.0 - k / (found.lag + 1.0)) * (lagged + lagged.T)
    growth = np.sqrt(np.maximum(by_model / np.maximum(np.diag(by_scores), 1e-300), 1.0))
    taken = min(spent / max(found.independent, 1.0), 1.0 - FEWEST)
    return np.asarray(total / max(rows, 1) / (1.0 - taken) * by_scores * np.outer(growth, growth))


def _stationary(rows: Array, autocovariance: Array) -> Array:
    """Variance of the columns' products with a stationary noise: autocovariance times products at each lag, summed."""
    half = autocovariance[: len(rows)]
    kernel = np.concatenate([half[:0:-1], half])
    smooth = oaconvolve(rows, kernel[:, None], mode="same", axes=0) if len(kernel) > 1 else half[0] * rows
    return np.asarray(np.einsum("rk,rk->k", rows, smooth))
