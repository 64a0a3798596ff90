"""Size and correlation of residuals, and the covariance of estimates that follows: the HAC sandwich."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import solve_toeplitz
from scipy.signal import oaconvolve

from armid.arrays import Array
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


def residuals_of(problem: Problem, values: Array, lags: int = LAGS) -> Residuals:
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
    products, counts, rows = np.zeros((MODEL_LAGS + 1, n)), np.zeros(n), 0
    for block in problem.blocks(ENOUGH):
        error = block.residuals(values)
        products += products_of(error, MODEL_LAGS)
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


def hac_covariance(problem: Problem, solution: Solution, weights: Array) -> tuple[Array, Note]:
    """Covariance of a weighted least-squares solution, and what it accounts for.

    White residuals: the inverse information matrix, Swevers (11), scaled to the residuals. Residuals that are
    correlated in time, by themselves or by the filter: the heteroskedasticity- and autocorrelation-consistent (HAC)
    sandwich of `noise_covariance`, which is larger.
    """
    look = residuals_of(problem, solution.values)
    used = solution.counts.sum()
    reduced = float(weights @ solution.squares) / max(used - len(solution.values), 1)
    if look.lag == 0 and all(dataset.kernel is None for dataset in problem.data):
        return solution.inverse * reduced, note("estimation.white")
    found = correlation_of(problem, solution.values)
    if found.autocovariance.shape[1] == 1 and found.lag == 0:
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


#: What one block of rows contributes: scores (rows, parameters), and residuals (rows, joints), 0 where not used.
ScoreBlocks = Callable[[], Iterator[tuple[Array, Array]]]


def sandwich(
    blocks: ScoreBlocks, inverse: Array, rows: int, *, extra: Array | None = None, white: Array | None = None
) -> tuple[Array, Note]:
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
            return white, note("estimation.white")
        middle = _variance(blocks, lag, rows, len(inverse))
        if extra is not None:
            middle = middle + extra
        covariance = inverse @ middle @ inverse.T
    return covariance, note("estimation.correlated", rows=lag) if lag else note("estimation.white")


def correlated_lag(blocks: ScoreBlocks) -> int:
    """Rows until the autocorrelation of the residuals is lost in its own noise; 0 if it sums to little."""
    products: Array | None = None
    used: Array | None = None
    for _, residuals in blocks():
        if products is None or used is None:
            products, used = np.zeros((LAGS + 1, residuals.shape[1])), np.zeros(residuals.shape[1])
        used += np.count_nonzero(residuals, axis=0)
        products += products_of(residuals, LAGS)
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
