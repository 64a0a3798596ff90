"""One period from many: averaging, the noise that the spread shows, exact differentiation on selected harmonics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.signals.problems import SignalError

POOL = 5  # harmonics on each side whose spread is pooled into one noise level
ROUND_OFF = 1e-14  # of the largest harmonic: below it lies only the arithmetic
CAP = 100  # harmonics looked at, over the harmonic of the motion's bandwidth


@dataclass(frozen=True, eq=False)
class Averaged:
    """One channel, averaged over M periods of K samples (Swevers et al., (5) and (6)).

    Attributes:
        mean: average period (6), (K, joints).
        periods: M.
        scatter: sum over periods and samples of r rᵀ with r = x_m(k) - mean(k), (joints, joints).
        spectrum_scatter: sum over periods of |DFT of r|² at the harmonics 0 ... K // 2, (harmonics, joints).
        resolution: smallest step between values of the first period, the resolution of a quantised channel, (joints,).
        refused: periods that were left out, since they hold values that are no numbers.
    """

    mean: Array
    periods: int
    scatter: Array
    spectrum_scatter: Array
    resolution: Array
    refused: int = 0

    def columns(self, which: slice) -> Averaged:
        """The average of some of the columns."""
        return Averaged(
            self.mean[:, which],
            self.periods,
            self.scatter[which, which],
            self.spectrum_scatter[:, which],
            self.resolution[which],
            self.refused,
        )

    @property
    def samples(self) -> int:
        """K, samples per period."""
        return int(self.mean.shape[0])

    @property
    def variance_as_printed(self) -> Array:
        """Noise variance of one period as (5) prints it, with the divisor MK - 1 (too low, erratum SW-1)."""
        return np.diag(self.scatter) / (self.periods * self.samples - 1)

    @property
    def variance(self) -> Array:
        """Noise variance of one period, unbiased: each of the K instants takes one of its M degrees of freedom."""
        return np.diag(self.covariance).copy()

    @property
    def covariance(self) -> Array:
        """Noise covariance between joints in one period, (joints, joints), with the divisor K (M - 1)."""
        if self.periods < 2:
            raise SignalError("noise", "needs at least two periods; there is one")
        return self.scatter / (self.samples * (self.periods - 1))

    @property
    def variance_of_mean(self) -> Array:
        """Noise variance of the average, which is what weights need: that of one period over M (SW-2)."""
        return self.variance / self.periods

    @property
    def covariance_of_mean(self) -> Array:
        """Noise covariance of the average, (joints, joints)."""
        return self.covariance / self.periods


class PeriodAccumulator:
    """Averages period after period in constant memory.

    Each complete period updates mean and scatter by Welford's formula, which stays exact for 1e6 periods: nothing is
    ever the difference of two large sums. Memory: a few arrays of one period. A period that holds anything but numbers
    is refused, since it would spoil the average of all others.
    """

    def __init__(
        self, samples_per_period: int, joints: int, *, accept: Callable[[Array, Array], bool] | None = None
    ) -> None:
        """Start without data.

        Args:
            samples_per_period: K.
            joints: number of columns.
            accept: given a period and the mean so far (of the first period: itself), says whether to use it.
        """
        if samples_per_period < 2:
            raise SignalError("averaging", f"a period of {samples_per_period} samples is too short; 2 are needed")
        self._mean = np.zeros((samples_per_period, joints))
        self._buffer = np.empty_like(self._mean)
        self._filled = 0
        self._periods = 0
        self._scatter = np.zeros((joints, joints))
        self._spectrum = np.zeros((samples_per_period // 2 + 1, joints))
        self._resolution = np.zeros(joints)
        self._accept = accept
        self.refused = 0

    @property
    def periods(self) -> int:
        """Complete periods so far."""
        return self._periods

    def add(self, values: Array) -> None:
        """Take the next samples, (samples, joints); any number of them."""
        start, length = 0, len(self._buffer)
        while start < len(values):
            take = min(length - self._filled, len(values) - start)
            if self._filled == 0 and take == length:
                self._add_period(values[start : start + length])
            else:
                self._buffer[self._filled : self._filled + take] = values[start : start + take]
                self._filled += take
                if self._filled == length:
                    self._filled = 0
                    self._add_period(self._buffer)
            start += take

    def _add_period(self, period: Array) -> None:
        usable = bool(np.isfinite(period).all())
        if usable and self._accept is not None:
            usable = self._accept(period, self._mean if self._periods else period)
        if not usable:
            self.refused += 1
            return
        self._periods += 1
        if self._periods == 1:
            self._mean[:] = period
            self._resolution = resolution(period)
            return
        delta = period - self._mean
        share = (self._periods - 1) / self._periods
        self._mean += delta / self._periods
        self._scatter += share * (delta.T @ delta)
        self._spectrum += share * np.abs(np.fft.rfft(delta, axis=0)) ** 2

    def result(self) -> Averaged:
        """The average of the complete periods; what is left of an incomplete one is not used."""
        if self._periods == 0:
            raise SignalError(
                "averaging", f"not one period of {len(self._mean)} samples is complete; {self.refused} were refused"
            )
        return Averaged(
            self._mean.copy(),
            self._periods,
            self._scatter.copy(),
            self._spectrum.copy(),
            self._resolution.copy(),
            self.refused,
        )


def average_periods(values: Array, samples_per_period: int) -> Averaged:
    """Average whole periods of (samples, joints), the first period starting at the first sample.

    Periods that hold anything but numbers are left out; `Averaged.refused` says how many.

    Raises:
        SignalError: the samples are not a whole number of periods, or not one of these is complete.
    """
    count, rest = divmod(len(values), samples_per_period)
    if rest or not count:
        raise SignalError(
            "averaging", f"{len(values)} samples are not a whole number of periods of {samples_per_period} samples"
        )
    total = PeriodAccumulator(samples_per_period, values.shape[1])
    total.add(values)
    return total.result()


def resolution(values: Array) -> Array:
    """Smallest step between two values of each column; 0 for a constant column."""
    ordered = np.sort(values, axis=0)
    steps = np.diff(ordered, axis=0)
    span = np.maximum(np.abs(ordered[0]), np.abs(ordered[-1]))
    steps[steps <= 1e-12 * span] = np.inf  # round-off between equal readings
    smallest = steps.min(axis=0)
    return np.where(np.isfinite(smallest), smallest, 0.0)


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
    probability `false_alarm`, shared out as 1 / k², since the harm that noise does to accelerations grows so. The
    noise is never taken as smaller than the rounding of a quantised channel (q² / 12 per sample), which repeats from
    period to period and so does not show in the spread.

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
    share = 1.0 / np.maximum(np.arange(top + 1.0), 1.0) ** 2
    limits = f_limit(false_alarm * share / share[1:].sum(), 2 * (count - 1) * pooled)
    selected = np.asarray(statistic > limits[:, None])
    selected[0] = True
    return selected[: cap + 1]


def f_limit(chance: Array | float, freedom: Array | float) -> Array:
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
