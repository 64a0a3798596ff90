"""Size and correlation of residuals, and the covariance of estimates that follows: the HAC sandwich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import solve_toeplitz
from scipy.signal import oaconvolve

from armid.arrays import Array, Mask
from armid.dynamics.threads import one_blas_thread
from armid.estimation.linear import Solution
from armid.estimation.problem import Problem
from armid.notes import Note, note
from armid.signals.dataset import Dataset

LAGS = 60  # rows over which autocorrelation is looked for
WHITE = 0.1  # autocorrelation summed over lags below which residuals count as white
ENOUGH = 20_000  # rows of long data that tell how residuals are correlated
MODEL_LAGS = 120  # rows from which an autoregression is fitted
MOST_LAGS = 400  # rows over which a fitted correlation is followed
ORDERS = (1, 2, 3, 4, 6, 8, 12, 16)  # of the autoregression
FADED = 0.01  # autocorrelation that is left out
FEWEST = 0.2  # share of independent rows that must be left after the parameters have taken theirs
BATCHES = 200  # into which long data are cut


def products_of(error: Array, lags: int) -> Array:
    """Sums over the rows of error(t) error(t + lag), (lags + 1, joints), through the power spectrum."""
    size = next_fast_len(len(error) + lags, real=True)
    spectrum = rfft(error, size, axis=0)
    return np.asarray(irfft(spectrum.real**2 + spectrum.imag**2, size, axis=0)[: lags + 1])


def lag_of(autocorrelation: Array, count: float) -> int:
    """Rows until the autocorrelation is lost in its own noise; 0 if it sums to little."""
    noise = 2.0 / np.sqrt(max(count, 1.0))
    small = np.flatnonzero(np.abs(autocorrelation[1:]) < max(noise, 0.05))
    first = int(small[0]) + 1 if len(small) else len(autocorrelation) - 1
    return 0 if float(np.abs(autocorrelation[1 : first + 1]).sum()) < WHITE else 2 * first


def mean_lag(products: Array, counts: Array) -> int:
    """The lag of the mean autocorrelation of all joints, from the sums that `lagged_sums` gives."""
    mean = (products / np.where(products[0] > 0.0, products[0], 1.0)).mean(axis=1)
    return lag_of(mean[: LAGS + 1], float(counts.min()))


def lagged_sums(parts: Iterable[tuple[Array, Mask]], lags: int) -> tuple[Array, Array, int]:
    """Products of residuals at `lags` lags, rows that count, both per joint, and rows in all, of pieces of the data."""
    products, counts, rows = np.zeros((lags + 1, 1)), np.zeros(1), 0
    for error, use in parts:
        products, counts, rows = products + products_of(error, lags), counts + use.sum(axis=0), rows + len(error)
    return products, counts, rows


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


def correlation_of(problem: Problem, values: Array, sums: tuple[Array, Array, int] | None = None) -> Correlation:
    """Correlation of the residuals of joints that move; the longest decides. `sums` are those of `_sums_of`."""
    products, counts, rows = _sums_of(problem, values) if sums is None else sums
    share = sum(len(dataset) for dataset in problem.data) / max(rows, 1)
    passed = np.max([_by_filter(dataset) for dataset in problem.data], axis=0)
    result, lags, independent = np.zeros((len(counts), MOST_LAGS + 1)), [0], 0.0
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


def _sums_of(problem: Problem, values: Array) -> tuple[Array, Array, int]:
    blocks = problem.blocks(ENOUGH)
    return lagged_sums(((block.residuals(values), block.use) for block in blocks), MODEL_LAGS)


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


def hac_covariance(problem: Problem, solution: Solution, weights: Array) -> tuple[Array, Note]:
    """Covariance of a weighted least-squares solution, and what it accounts for.

    White residuals: the inverse information matrix, Swevers (11), scaled to the residuals. Residuals that are
    correlated in time, by themselves or by the filter: the heteroskedasticity- and autocorrelation-consistent (HAC)
    sandwich of `noise_covariance`, which is larger.
    """
    sums = _sums_of(problem, solution.values)
    white = mean_lag(*sums[:2]) == 0 and all(dataset.kernel is None for dataset in problem.data)
    found = None if white else correlation_of(problem, solution.values, sums)
    if found is None or (found.autocovariance.shape[1] == 1 and found.lag == 0):
        reduced = float(weights @ solution.squares) / max(solution.counts.sum() - len(solution.values), 1)
        return solution.inverse * reduced, note("estimation.white")
    covariance = noise_covariance(problem, solution.values, weights, solution.inverse, found, len(solution.values))
    rows = found.lag or found.autocovariance.shape[1] - 1
    return covariance, note("estimation.correlated", rows=rows)


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
            by_scores += _long_run(scores, found.lag)
    growth = np.sqrt(np.maximum(by_model / np.maximum(np.diag(by_scores), 1e-300), 1.0))
    taken = min(spent / max(found.independent, 1.0), 1.0 - FEWEST)
    return np.asarray(total / max(rows, 1) / (1.0 - taken) * by_scores * np.outer(growth, growth))


def _stationary(rows: Array, autocovariance: Array) -> Array:
    """Variance of the columns' products with a stationary noise: autocovariance times products at each lag, summed."""
    half = autocovariance[: len(rows)]
    kernel = np.concatenate([half[:0:-1], half])
    smooth = oaconvolve(rows, kernel[:, None], mode="same", axes=0) if len(kernel) > 1 else half[0] * rows
    return np.asarray(np.einsum("rk,rk->k", rows, smooth))


#: What one block of rows contributes: scores (rows, parameters), and residuals (rows, joints), 0 where not used.
ScoreBlocks = Callable[[], Iterator[tuple[Array, Array]]]


def sandwich(
    blocks: ScoreBlocks, inverse: Array, *, extra: Array | float = 0.0, white: Array | None = None
) -> tuple[Array, Note]:
    """Covariance A^-1 (B + extra) A^-T of an estimate whose scores sum to zero, and what it accounts for.

    B is the long-run variance of the scores: their products at the same row, and at neighbouring rows over which
    residuals are correlated (Newey-West; sums over batches where data are long), with the usual correction for the
    parameters spent. A score sums over the joints of its row, so that correlation between joints counts too.

    Args:
        blocks: gives the scores anew at each call, block by block.
        inverse: A^-1, the inverse of the scores' mean slope times the number of rows.
        extra: variance of scores that do not come from rows.
        white: covariance to take where residuals are white, if a better one is known then.
    """
    with one_blas_thread():
        products, used, rows = lagged_sums(((error, error != 0.0) for _, error in blocks()), LAGS)
        lag = mean_lag(products, used)
        if lag == 0 and white is not None:
            return white, note("estimation.white")
        middle, length = np.zeros_like(inverse), max(4 * lag, rows // BATCHES)
        for scores, _ in blocks():
            if lag and rows > 50 * BATCHES:
                batches = np.add.reduceat(scores, np.arange(0, len(scores), length), axis=0)
                middle += batches.T @ batches
            else:
                middle += _long_run(scores, lag)
        middle = middle * used.sum() / max(used.sum() - len(inverse), 1) + extra
        covariance = inverse @ middle @ inverse.T
    return covariance, note("estimation.correlated", rows=lag) if lag else note("estimation.white")


def _long_run(scores: Array, lag: int) -> Array:
    """Products of scores of the same row and of rows up to `lag` apart, these counting less and less (Newey, West)."""
    total = scores.T @ scores
    for k in range(1, min(lag, len(scores) - 1) + 1):
        lagged = scores[:-k].T @ scores[k:]
        total += (1.0 - k / (lag + 1.0)) * (lagged + lagged.T)
    return np.asarray(total)
