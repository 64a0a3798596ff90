"""Averaging over periods, and the noise that the spread between periods shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.logs.log import Log
from armid.signals.problems import SignalError


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
    periods = values.reshape(count, samples_per_period, -1)
    complete = np.isfinite(periods).all(axis=(1, 2))
    if not complete.any():
        raise SignalError("averaging", f"each of the {count} periods holds values that are no numbers; repair the log")
    if not complete.all():
        periods = periods[complete]
    # Subtracting the first period before the mean keeps noise-free periods exact.
    mean = periods[0] + (periods - periods[0]).mean(axis=0)
    residual = periods - mean
    flat = residual.reshape(-1, residual.shape[2])
    spectrum = (np.abs(np.fft.rfft(residual, axis=1)) ** 2).sum(axis=0)
    return Averaged(mean, len(periods), flat.T @ flat, spectrum, resolution(periods[0]), count - len(periods))


def average_blocks(
    blocks: Iterable[Log], samples_per_period: int, *, skip: int = 0, channels: Iterable[str] | None = None
) -> Mapping[str, Averaged]:
    """Average a long log that comes in blocks, in constant memory.

    Args:
        blocks: consecutive parts of one log, such as ``LogStream.blocks()``.
        samples_per_period: K, a whole number.
        skip: samples to leave out at the start (the approach, the transient).
        channels: which to average; all of the first block by default.
    """
    sums: dict[str, PeriodAccumulator] = {}
    names = None if channels is None else tuple(channels)
    for block in blocks:
        if names is None:
            names = tuple(block.channels)
        dropped = min(skip, len(block))
        skip -= dropped
        for name in names:
            if name not in sums:
                sums[name] = PeriodAccumulator(samples_per_period, len(block.joints))
            sums[name].add(block[name][dropped:])
    if not sums:
        raise SignalError("averaging", "there is no block to average")
    return {name: total.result() for name, total in sums.items()}


def resolution(values: Array) -> Array:
    """Smallest step between two values of each column; 0 for a constant column."""
    ordered = np.sort(values, axis=0)
    steps = np.diff(ordered, axis=0)
    span = np.maximum(np.abs(ordered[0]), np.abs(ordered[-1]))
    steps[steps <= 1e-12 * span] = np.inf  # round-off between equal readings
    smallest = steps.min(axis=0)
    return np.where(np.isfinite(smallest), smallest, 0.0)
