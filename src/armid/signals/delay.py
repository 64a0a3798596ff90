"""Delays between channels: found and taken away, to a fraction of a sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal
from scipy.interpolate import make_interp_spline

from armid.arrays import Array
from armid.signals.problems import SignalError
from armid.signals.resample import interpolate_band_limited


def shifted(values: Array, delays: ArrayLike) -> Array:
    """Each column read `delays` samples later: x(t + delay), which takes a lag of that size away.

    Args:
        values: (samples, joints), uniformly sampled.
        delays: per joint or one for all, in samples, any fraction; positive where the column lags.
    """
    later = np.broadcast_to(np.asarray(delays, dtype=float), (values.shape[1],))
    index = np.arange(len(values), dtype=float)
    columns = [
        values[:, j] if later[j] == 0.0 else interpolate_band_limited(values[:, j], index + later[j])
        for j in range(values.shape[1])
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Delay:
    """How much one signal lags another.

    Attributes:
        samples: positive where the second lags the first.
        error: standard error of it, in samples, for white noise.
        gain: factor between the two.
        correlation: between the aligned signals.
    """

    samples: float
    error: float
    gain: float
    correlation: float


def estimate_delay(first: Array, second: Array, max_samples: int | None = None) -> Delay:
    """Lag of `second` behind `first`, both (samples,) and uniformly sampled: second(t) ≈ gain first(t - delay) + c.

    The whole samples come from the cross-correlation, the fraction from Gauss-Newton on delay, gain and constant, with
    `first` interpolated by a quintic spline. Noise in either signal does not bias the delay.

    Args:
        first: such as velocity from differentiated position, or a command.
        second: such as the measured velocity.
        max_samples: largest lag to look for; a tenth of the signal by default.
    """
    count = len(first)
    reach = max(1, count // 10) if max_samples is None else max_samples
    if len(second) != count or count < 4 * reach + 16:
        raise SignalError("delay", f"needs two signals of the same length, at least {4 * reach + 16} samples")
    a, b = first - first.mean(), second - second.mean()
    if not (a.std() > 0.0 and b.std() > 0.0):
        raise SignalError("delay", "one of the signals is constant")
    whole = _whole_delay(a, b, reach)
    spline = make_interp_spline(np.arange(count), a, k=5)
    slope = spline.derivative()
    inner = np.arange(reach + 8, count - reach - 8, dtype=float)
    target = b[reach + 8 : count - reach - 8]
    delay = float(whole)
    for _ in range(20):
        moved = inner - delay
        columns = np.stack([spline(moved), -slope(moved), np.ones_like(inner)], axis=1)
        solution = np.linalg.lstsq(columns, target, rcond=None)[0]
        gain = solution[0] if abs(solution[0]) > 1e-12 else 1e-12
        step = float(np.clip(solution[1] / gain, -1.0, 1.0))
        delay = float(np.clip(delay + step, -reach - 2, reach + 2))
        if abs(step) < 1e-9:
            break
    moved = inner - delay
    aligned = spline(moved)
    residual = target - solution[0] * aligned - solution[2]
    error = float(residual.std() / (abs(gain) * np.sqrt((slope(moved) ** 2).sum())))
    return Delay(delay, error, float(solution[0]), float(np.corrcoef(aligned, target)[0, 1]))


def _whole_delay(a: Array, b: Array, reach: int) -> int:
    """Lag in whole samples with the largest correlation, computed over the samples both share."""
    cross = signal.correlate(b, a, mode="full", method="fft")
    middle = len(a) - 1
    lags = np.arange(-reach, reach + 1)
    zero_a, zero_b = (np.concatenate([[0.0], np.cumsum(x**2)]) for x in (a, b))
    count = len(a)
    power_b = zero_b[np.minimum(count, count + lags)] - zero_b[np.maximum(lags, 0)]
    power_a = zero_a[np.minimum(count, count - lags)] - zero_a[np.maximum(-lags, 0)]
    score = np.abs(cross[middle + lags]) / np.sqrt(np.maximum(power_a * power_b, 1e-300))
    return int(lags[np.argmax(score)])
