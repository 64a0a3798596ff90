"""The lag at which signals repeat: searched, refined, and where it holds. Lags are in samples, with a fraction.

Signals are (samples, columns), uniformly sampled, without mean and with unit variance.
"""

from __future__ import annotations

import numpy as np
from scipy import ndimage, signal

from armid.arrays import Array, Mask
from armid.notes import Note, note

COARSE = 30_000  # samples of the first search
ENOUGH = 100_000  # samples that the refined lag is computed from
CANDIDATES = 40  # lags looked at closely
WORST = 0.02  # mean square difference between periods, relative to the variance of the motion, still called periodic
SPAN = 5e-4  # mean square difference of position and velocity, relative, up to which a sample belongs to the span
EXACT = 1e-6  # differences below this (relative, squared) do not tell one lag from another


def search_lag(scaled: Array, hint: float | None) -> float | Note:
    """Lag in samples, with a fraction, or why there is none."""
    stride = max(1, len(scaled) // COARSE)
    coarse = scaled if stride == 1 else _block_means(scaled, stride)
    shortest, longest = 8, len(coarse) // 2
    if hint is not None:
        shortest = max(4, int(0.98 * hint / stride) - 1)
        longest = min(longest, int(np.ceil(1.02 * hint / stride)) + 1)
        if longest <= shortest:
            return note("signals.too_short")
    lags = _candidates(coarse, shortest, longest)
    if not len(lags):
        return note("signals.no_lag")
    results = [_score(coarse, int(lag)) for lag in lags]
    scores = np.array([score for score, _ in results])
    lags = np.array([exact for _, exact in results])
    if not np.isfinite(scores).all():  # single positions so large that their squares are not finite
        return note("signals.no_lag")
    best = float(scores.min())
    if best > WORST:
        return note("signals.no_part", mismatch=best**0.5)
    good = np.flatnonzero(scores <= max(4.0 * best, EXACT))
    return float(lags[good].min()) * stride


def _block_means(values: Array, stride: int) -> Array:
    count = len(values) // stride
    return np.asarray(values[: count * stride].reshape(count, stride, -1).mean(axis=1))


def _candidates(x: Array, shortest: int, longest: int) -> Array:
    """Lags at which the mean square difference over the whole log, or a stretch of it, has a minimum."""
    n = len(x)
    power = np.concatenate([[0.0], np.cumsum((x**2).sum(axis=1))])
    size = 1 << int(2 * n - 1).bit_length()
    correlation = np.zeros(n)
    for column in x.T:
        spectrum = np.fft.rfft(column, size)
        correlation += np.fft.irfft(spectrum * spectrum.conj(), size)[:n]
    lag = np.arange(n)
    overlap = np.maximum(n - lag, 1)
    difference = (power[n - lag] + power[n] - power[lag] - 2.0 * correlation) / overlap
    inside = difference[: longest + 2]
    minima = signal.argrelmin(inside, mode="clip")[0]
    minima = minima[(minima >= shortest) & (minima <= longest)]
    if not len(minima) and longest > shortest:
        minima = np.array([shortest + int(np.argmin(inside[shortest : longest + 1]))])
    best = minima[np.argsort(difference[minima])][:CANDIDATES]
    return np.sort(best)


def _score(x: Array, lag: int) -> tuple[float, float]:
    """Relative mean square difference near a lag, in the stretch of one lag where it is smallest, and the exact lag.

    What an approach adds to the difference moves its minimum by some samples; so the lag is corrected until it stays.
    """
    for _ in range(6):
        difference = x[lag:] - x[:-lag]
        error = _running_mean((difference**2).mean(axis=1), min(lag, len(difference)))
        motion = _motion(x, lag)[: len(error)]
        ratio = np.where(motion > 0.1 * motion.max(), error / np.maximum(2.0 * motion, 1e-300), np.inf)
        at = int(np.argmin(ratio))
        part, slope = difference[at : at + lag], _slope(x, lag)[at : at + lag]
        excess = float((slope * part).sum() / max((slope**2).sum(), 1e-300))
        if abs(excess) <= 0.6 or not 4 <= lag - round(excess) <= len(x) // 2:
            break
        lag -= round(float(np.clip(excess, -0.1 * lag, 0.1 * lag)))
    excess = float(np.clip(excess, -1.0, 1.0))
    left = float(((part - excess * slope) ** 2).mean())
    return left / max(2.0 * float(motion[at]), 1e-300), lag - excess


def _motion(x: Array, width: int) -> Array:
    """Variance of the signals in each stretch of `width` samples, mean over signals."""
    level = _running_mean(x, width)
    return np.asarray(_running_mean((x**2).mean(axis=1), width) - (level**2).mean(axis=1))


def _slope(x: Array, lag: int) -> Array:
    """Change per sample, the mean of both ends of a lag, so that noise at one of them counts half."""
    gradient = np.gradient(x, axis=0)
    return np.asarray(0.5 * (gradient[lag:] + gradient[:-lag]))


def _running_mean(x: Array, width: int) -> Array:
    total = np.concatenate([np.zeros((1, *x.shape[1:])), np.cumsum(x, axis=0)])
    return np.asarray((total[width:] - total[:-width]) / width)


def filled_from_other_periods(x: Array, known: Mask, lag: float) -> Array:
    """The signals with unknown samples taken from the nearest period in which they are known, (samples, columns)."""
    result, left = np.array(x), np.flatnonzero(~known)
    for multiple in range(1, 2 + int(len(x) / lag)):
        for shift in (multiple * lag, -multiple * lag):
            place = left + shift
            index = np.clip(np.floor(place).astype(np.int64), 0, len(x) - 2)
            part = place - index
            good = (part >= 0.0) & (part <= 1.0) & known[index] & known[index + 1]
            part, index = part[good, None], index[good]
            result[left[good]] = (1.0 - part) * x[index] + part * x[index + 1]
            left = left[~good]
        if not len(left):
            break
    return result


def repeated_span(x: Array, lag: float, known: Mask | None = None) -> tuple[int, int]:
    """First and last sample (exclusive) of the longest stretch in which position and velocity repeat with the lag.

    Args:
        x: signals.
        lag: in samples.
        known: samples that were measured, (samples,); what is not known does not end the stretch. None for all.
    """
    whole = round(lag)
    width = max(3, whole // 100)
    smooth = ndimage.uniform_filter1d(x, width, axis=0, mode="nearest")
    velocity = np.gradient(smooth, axis=0)
    both = np.concatenate([smooth, velocity / np.maximum(velocity.std(axis=0), 1e-300)], axis=1)
    slope = _slope(both, whole)
    difference = both[whole:] - both[:-whole] + (lag - whole) * slope
    error = (difference**2).mean(axis=1)
    at = _best_stretch(error, whole, x)
    here = slice(at, at + whole)
    excess = float((difference[here] * slope[here]).sum()) / max(float((slope[here] ** 2).sum()), 1e-300)
    error = ((difference - excess * slope) ** 2).mean(axis=1)
    usual = float(np.quantile(error[here], 0.8))
    differs = error > max(25.0 * usual, SPAN)
    if known is not None:
        sure = ndimage.minimum_filter1d(known, width + 4, mode="nearest")  # the window, and what the gradient adds
        differs &= sure[whole:] & sure[:-whole]
    bad = np.flatnonzero(differs)
    before, after = bad[bad < at + whole // 2], bad[bad >= at + whole // 2]
    # a sudden change is seen half a window too early
    start = max(int(before[-1]) + 1 - width // 2, 0) if len(before) else 0
    stop = min(int(after[0]) + width // 2, len(error)) if len(after) else len(error)
    return start, stop + whole


def mismatch(x: Array, lag: float, smooth: bool = False) -> float:
    """RMS difference between neighbouring periods relative to the motion, on request with noise smoothed away."""
    whole = round(lag)
    difference = x[whole:] - x[:-whole] + (lag - whole) * _slope(x, whole)
    if smooth:
        difference = ndimage.uniform_filter1d(difference, max(1, whole // 50), axis=0, mode="nearest")
    return float((0.5 * (difference**2).mean() / x.var(axis=0).mean()) ** 0.5)


def _best_stretch(error: Array, lag: int, x: Array) -> int:
    """Start of the stretch of one lag in which the error is smallest against the motion."""
    mean = _running_mean(error, min(lag, len(error)))
    motion = _motion(x, lag)[: len(mean)]
    ratio = np.where(motion > 0.1 * motion.max(), mean / np.maximum(motion, 1e-300), np.inf)
    return int(np.argmin(ratio))


def refined_lag(x: Array, lag: float) -> tuple[float, float]:
    """Lag and its standard error, in samples, from multiples of the lag up to all periods but one."""
    most = max(1, int(np.floor((len(x) + 0.5) / lag)) - 1)
    multiples = sorted({min(2**power, most) for power in range(most.bit_length() + 1)})
    error = 1.0
    for multiple in multiples:
        for _ in range(2):
            whole = round(multiple * lag)
            if whole >= len(x) - 8:
                break
            at = np.arange(1, len(x) - whole - 1, 1 + len(x) // ENOUGH)
            difference = x[at + whole] - x[at]
            slope = 0.25 * (x[at + whole + 1] - x[at + whole - 1] + x[at + 1] - x[at - 1])
            guess = (whole - multiple * lag) * slope
            noise = ((difference - guess) ** 2).mean(axis=0)
            weight = 1.0 / np.maximum(noise, 1e-6 * max(float(noise.max()), 1e-24))
            information = float((weight * (slope**2).sum(axis=0)).sum())
            excess = float((weight * (slope * difference).sum(axis=0)).sum()) / information
            lag = (whole - excess) / multiple
            error = max(information**-0.5, 2e-3) / multiple  # the ends of the span are not known better
    return lag, error
