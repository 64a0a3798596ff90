"""Exact differentiation of averaged periodic signals on selected harmonics (Swevers et al., Fig. 3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import ndimage

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.signals.averaging import Averaged
from armid.signals.problems import SignalError

POOL = 5  # harmonics on each side whose spread is pooled into one noise level
ROUND_OFF = 1e-14  # of the largest harmonic: below it lies only the arithmetic
CAP = 100  # harmonics looked at, over the harmonic of the motion's bandwidth


def differentiate(period: Array, period_s: float, selected: Array) -> Motion:
    """Position, velocity and acceleration from one period of position, exact for a band-limited signal.

    The DFT is multiplied by a rectangular window (1 at the selected harmonics, 0 elsewhere), by jω and -ω² with
    ω = 2πk / T, and transformed back. The position is rebuilt from the same harmonics.

    Args:
        period: one period, (samples, joints).
        period_s: its length T [s].
        selected: which harmonics to keep, from 0 (the mean) on, (harmonics, joints); see `select_harmonics`.
    """
    samples = len(period)
    if selected.shape[0] > samples // 2 + 1 or selected[(samples + 1) // 2 :].any():
        highest = int(np.flatnonzero(selected.any(axis=1)).max())
        raise SignalError(
            "differentiation",
            f"harmonic {highest} is above the Nyquist frequency: {samples} samples per period hold harmonics up to "
            f"{(samples - 1) // 2}",
        )
    spectrum = np.fft.rfft(period, axis=0)
    window = np.zeros(spectrum.shape, dtype=bool)
    window[: len(selected)] = selected
    spectrum = np.where(window, spectrum, 0.0)
    omega = 2.0 * np.pi / period_s * np.arange(len(spectrum))[:, None]
    parts = (spectrum, 1j * omega * spectrum, -(omega**2) * spectrum)
    return Motion(*(np.ascontiguousarray(np.fft.irfft(part, n=samples, axis=0)) for part in parts))


def given_harmonics(harmonics: int | Sequence[int], samples: int, joints: int) -> Array:
    """The mean and the given harmonics for every joint; a number N stands for 1 ... N. (harmonics, joints)."""
    numbers = range(1, harmonics + 1) if isinstance(harmonics, (int, np.integer)) else harmonics
    wanted = np.array(sorted({0, *numbers}))
    if len(wanted) < 2 or wanted[0] < 0 or not np.issubdtype(wanted.dtype, np.integer):
        raise SignalError(
            "harmonics", f"are {harmonics!r}; give 'auto', a number from 1, or a list such as [1, 2, 3, 20]"
        )
    if wanted[-1] > (samples - 1) // 2:
        raise SignalError(
            "harmonics",
            f"go up to {wanted[-1]}, above the Nyquist frequency: {samples} samples per period hold harmonics up to "
            f"{(samples - 1) // 2}",
        )
    selected = np.zeros((int(wanted[-1]) + 1, joints), dtype=bool)
    selected[wanted] = True
    return selected


def select_harmonics(averaged: Averaged, *, false_alarm: float = 0.01, highest: int | None = None) -> Array:
    """Harmonics of each joint that stand above the noise, (harmonics, joints); the mean is always kept.

    Test: without signal, M |X̄(k)|² over the noise power at harmonic k (spread between periods, per degree of freedom,
    pooled over k ± 5) follows F(2, ν) with ν = 2 (M - 1) times the number of pooled harmonics. A harmonic is kept
    where this exceeds the quantile at which noise alone would make a joint keep any wrong harmonic with the
    probability `false_alarm`. The noise is never taken as smaller than the rounding of a quantised channel (q² / 12
    per sample), which repeats from period to period and so does not show in the spread.

    Args:
        averaged: positions.
        false_alarm: chance per joint of keeping any harmonic that is pure noise.
        highest: cap; by default a hundred times the harmonic below which 99 % of the velocity's power lie.
    """
    samples, count = averaged.samples, averaged.periods
    if count < 2:
        raise SignalError("harmonics", "cannot be chosen from one period; give a list, or measure at least two periods")
    top = (samples - 1) // 2
    power = np.abs(np.fft.rfft(averaged.mean, axis=0)[: top + 1]) ** 2
    rounding = count * samples * averaged.resolution**2 / 12.0
    floor = np.maximum(rounding, ROUND_OFF**2 * count * power[1:].max(axis=0, initial=0.0)) + np.finfo(float).tiny
    spread, pooled = _pooled_spread(averaged, top)
    noise = np.maximum(spread, floor)
    statistic = count * power / noise
    cap = default_cap(np.where(statistic > 20.0, power, 0.0)) if highest is None else highest
    if cap < 1 or cap > top:
        raise SignalError("harmonics", f"the cap is {cap}; use 1 to {top}, the harmonics {samples} samples can hold")
    limits = f_limit(false_alarm / cap, 2 * (count - 1) * pooled)
    selected = np.asarray(statistic > limits[:, None])
    selected[0] = True
    return selected[: cap + 1]


def f_limit(chance: float, freedom: Array | float) -> Array:
    """Value that F(2, ν) exceeds with the given chance: ν / 2 (chance^(-2 / ν) - 1), exact."""
    freedom = np.asarray(freedom, dtype=np.float64)
    return np.asarray(0.5 * freedom * np.expm1(-2.0 / freedom * np.log(chance)))


def default_cap(power: Array) -> int:
    """A hundred times the harmonic below which 99 % of the velocity's power lie; `power` of the position.

    Friction at reversals shakes the arm far above the trajectory's own frequencies: without those harmonics the
    friction estimated on the virtual robot is off by more than its standard deviation.
    """
    velocity = (power * np.arange(len(power))[:, None] ** 2).sum(axis=1)
    total = np.cumsum(velocity)
    bandwidth = int(np.searchsorted(total, 0.99 * total[-1])) if total[-1] > 0.0 else 1
    return int(min(len(power) - 1, CAP * max(bandwidth, 1)))


def _pooled_spread(averaged: Averaged, top: int) -> tuple[Array, Array]:
    """Noise power per harmonic, pooled over its neighbours, and the number pooled; the mean is left out."""
    own = averaged.spectrum_scatter[: top + 1] / (averaged.periods - 1)
    own = np.where(np.arange(top + 1)[:, None] > 0, own, 0.0)
    width = 2 * POOL + 1
    pooled = ndimage.uniform_filter1d((np.arange(top + 1) > 0) * float(width), width, mode="constant")
    total = ndimage.uniform_filter1d(own * width, width, axis=0, mode="constant")
    pooled = np.maximum(np.round(pooled), 1.0)
    return total / pooled[:, None], pooled
