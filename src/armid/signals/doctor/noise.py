"""Roughness of a signal: its noise, its steps, and samples that stand out of both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from armid.arrays import Array

_BLOCK = 64  # samples over which the local noise is taken
_SAMPLES = 20_000  # of these the step size of a signal is judged
# A cubic through the neighbours at -2, -1, 1, 2 predicts the middle sample. White noise of deviation 1 makes a
# difference of deviation sqrt(1 + 34/36).
_NEIGHBOURS = np.array([1.0, -4.0, 6.0, -4.0, 1.0]) / 6.0
_GAIN = float(np.sqrt(70.0) / 6.0)
_MAD = 1.4826  # from median absolute deviation to standard deviation


def roughness(x: Array) -> Array:
    """Difference of each sample and the cubic through its four neighbours, (samples,); 0 at the two ends of each side.

    Smooth motion leaves next to nothing, noise of deviation s leaves s sqrt(70)/6.
    """
    result = np.zeros_like(x)
    if len(x) >= 5:
        result[2:-2] = np.convolve(x, _NEIGHBOURS, mode="valid")
    return result


def noise_level(x: Array) -> float:
    """Standard deviation of white noise in a smooth signal: robust, blind to steps, spikes and slow change."""
    rough = np.abs(roughness(x)[2:-2])
    return _MAD * float(np.median(rough)) / _GAIN if len(rough) else 0.0


def quantum(x: Array) -> float:
    """Step size of a quantised signal; 0 if its values do not lie on a grid that is coarse enough to be seen."""
    values = np.unique(x[: len(x) // 2 + _SAMPLES // 2][-_SAMPLES:])
    if len(values) < 3:
        return float(values[-1] - values[0]) if len(values) == 2 else 0.0
    steps = np.diff(values)
    steps = steps[steps > 1e-9 * (values[-1] - values[0])]
    if not len(steps):
        return 0.0
    # The smallest steps are one quantum if there is one; the mean of many takes out rounding.
    least = float(np.percentile(steps, 2.0))
    unit = float(np.mean(steps[steps < 1.5 * least]))
    ratio = steps[steps < 20.0 * unit] / unit
    on_grid = np.abs(ratio - np.round(ratio)) < 0.05
    return unit if len(ratio) >= 2 and on_grid.mean() > 0.98 else 0.0


def spikes(x: Array, factor: float = 8.0, least: float = 0.0) -> NDArray[np.int64]:
    """Indices of single samples that stand out of both neighbours and of the noise around them.

    A sample counts if it lies on the same side of both neighbours, farther from the nearer one than `factor` standard
    deviations of the noise (taken locally, from the roughness, or over the whole signal if that is more), five median
    steps between samples (so that a sharp peak does not count), three quanta, and `least`, and if the neighbours are
    twice as near to their own neighbours (so that the peak of a vibration does not count). Steps, as friction makes
    them at reversals, do not count, since one neighbour is near. For Gaussian noise a false alarm with factor 8 has a
    probability below 1e-9 per sample.
    """
    if len(x) < 2 * _BLOCK:
        return np.zeros(0, dtype=np.int64)
    change = np.diff(x)
    height = np.minimum(change[:-1], -change[1:])  # of a peak
    height = np.maximum(height, np.minimum(-change[:-1], change[1:]))  # or of a dip; negative where it is neither
    rough = np.abs(roughness(x))
    usual = _MAD / _GAIN * float(np.median(rough[2:-2][:: 1 + len(x) // 100_000]))
    least = max(factor * usual, least, 1e-12 * float(np.ptp(x)))
    if height.max() <= least:
        return np.zeros(0, dtype=np.int64)
    slope = np.abs(np.append(change, 0.0))
    threshold = np.maximum(factor * _MAD / _GAIN * _local_median(rough), 5.0 * _local_median(slope))[1:-1]
    threshold = np.maximum(threshold, max(3.0 * quantum(x), least))
    # The neighbours themselves must be near to theirs: the peak of a vibration or a shock of several samples is real.
    before_that, after_that = np.concatenate([[0.0], slope[:-3]]), slope[2:]
    steady = np.maximum(before_that, after_that)
    return np.flatnonzero((height > threshold) & (rough[1:-1] > threshold) & (steady < 0.5 * height)) + 1


def _local_median(values: Array) -> Array:
    """Median over blocks, the largest of three neighbouring blocks, one value per sample."""
    blocks = len(values) // _BLOCK
    medians = np.median(values[: blocks * _BLOCK].reshape(blocks, _BLOCK), axis=1)
    largest = np.repeat(maximum_filter1d(medians, 3, mode="nearest"), _BLOCK)
    return np.concatenate([largest, np.full(len(values) - len(largest), largest[-1])])
