"""Covariance of estimates that solve an estimating equation: the sandwich A^-1 B A^-T, B the variance of its scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.uncertainty import lag_of

LAGS = 60  # rows over which autocorrelation is looked for
BATCHES = 200  # into which long data are cut

#: What one block of rows contributes: scores (rows, parameters), and residuals (rows, joints), 0 where not used.
ScoreBlocks = Callable[[], Iterator[tuple[Array, Array]]]


def sandwich(
    blocks: ScoreBlocks, inverse: Array, rows: int, *, extra: Array | None = None, white: Array | None = None
) -> tuple[Array, str]:
    """Covariance A^-1 (B + extra) A^-T of an estimate whose scores sum to zero, and what it accounts for.

    B is the long-run variance of the scores: their products at the same row, and at neighbouring rows over which
    residuals are correlated (Newey-West; sums over batches where data are long). A score sums over the joints of its
    row, so that correlation between joints counts too.

    Args:
        blocks: gives the scores anew at each call, block by block.
        inverse: A^-1, the inverse of the scores' mean slope times the number of rows.
        rows: how many there are in all.
        extra: variance of scores that do not come from rows.
        white: covariance to take where residuals are white, if a better one is known then.
    """
    with one_blas_thread():
        lag = correlated_lag(blocks)
        if lag == 0 and white is not None:
            return white, "Residuals are white; intervals follow from their size."
        middle = _variance(blocks, lag, rows, len(inverse))
        if extra is not None:
            middle = middle + extra
        covariance = inverse @ middle @ inverse.T
    if lag == 0:
        return covariance, "Residuals are white; intervals follow from their size."
    return covariance, f"Residuals are correlated over about {lag} rows; intervals account for that."


def correlated_lag(blocks: ScoreBlocks) -> int:
    """Rows until the autocorrelation of the residuals is lost in its own noise; 0 if it sums to little."""
    products: Array | None = None
    used: Array | None = None
    for _, residuals in blocks():
        if products is None or used is None:
            products, used = np.zeros((LAGS + 1, residuals.shape[1])), np.zeros(residuals.shape[1])
        used += np.count_nonzero(residuals, axis=0)
        for lag in range(min(LAGS, len(residuals) - 1) + 1):
            products[lag] += np.sum(residuals[: len(residuals) - lag] * residuals[lag:], axis=0)
    if products is None or used is None:
        return 0
    mean = (products / np.where(products[0] > 0.0, products[0], 1.0)).mean(axis=1)
    return lag_of(mean, float(used.min()))


def _variance(blocks: ScoreBlocks, lag: int, rows: int, parameters: int) -> Array:
    """Long-run variance of the sum of the scores, with the usual correction for the parameters spent."""
    middle = np.zeros((parameters, parameters))
    length = max(4 * lag, rows // BATCHES)
    count = 0
    for scores, residuals in blocks():
        count += int(np.count_nonzero(residuals))
        if lag == 0 or rows <= 50 * BATCHES:
            middle += scores.T @ scores
            for k in range(1, min(lag, len(scores) - 1) + 1):
                lagged = scores[:-k].T @ scores[k:]
                middle += (1.0 - k / (lag + 1.0)) * (lagged + lagged.T)
        else:
            for first in range(0, len(scores), length):
                batch = scores[first : first + length].sum(axis=0)
                middle += np.outer(batch, batch)
    return middle * count / max(count - parameters, 1)
