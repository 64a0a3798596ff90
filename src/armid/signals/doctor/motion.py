"""The motion behind a log: on a regular grid, band-limited, with derivatives."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.signal import butter, sosfiltfilt

from armid.arrays import Array
from armid.signals.doctor.channels import Channels
from armid.signals.doctor.clock import Clock

_SHORT = 200  # samples that are needed to say anything about motion
_SPECTRUM = 1 << 17  # samples of which the bandwidth is taken


@dataclass(frozen=True, eq=False)
class Track:
    """A log on a regular time grid.

    Attributes:
        start, step: of the grid [s].
        channels: name to (samples, joints) at the log's own rate, not filtered.
        bandwidth_hz: frequency that holds 99 % of the power of the velocity.
        cutoff_hz: up to where motion is looked at, several times the bandwidth.
    """

    start: float
    step: float
    channels: dict[str, Array]
    bandwidth_hz: float
    cutoff_hz: float
    _smoothed: dict[str, Array] = field(default_factory=dict)

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return 1.0 / self.step

    def smooth(self, channel: str) -> Array:
        """The channel low-passed at the cut-off, without shifting it in time."""
        if channel not in self._smoothed:
            self._smoothed[channel] = low_pass(self.channels[channel], self.cutoff_hz, self.rate_hz)
        return self._smoothed[channel]

    def time(self, index: int) -> float:
        """Time of a sample of the grid [s]."""
        return self.start + index * self.step


def track_of(clock: Clock, channels: Channels) -> Track | None:
    """Put the repaired channels on a regular grid; None if the log is too short or has no positions."""
    if "position" not in channels.values or len(clock.rows) < _SHORT:
        return None
    time = clock.time[clock.rows]
    on_grid = {}
    samples = int(np.floor((time[-1] - time[0]) / clock.step)) + 1
    if samples > 4 * len(time):  # mostly gaps: a grid would be mostly invented
        return None
    step = clock.step
    if clock.regular:
        step = float(time[-1] - time[0]) / (len(time) - 1)
        on_grid = channels.values
    else:
        grid = time[0] + step * np.arange(samples)
        for name, values in channels.values.items():
            on_grid[name] = np.column_stack([np.interp(grid, time, column) for column in values.T])
    band = _bandwidth(on_grid["position"], 1.0 / step)
    return Track(float(time[0]), step, dict(on_grid), band, float(np.clip(6.0 * band, 2.0, 0.2 / step)))


def low_pass(x: Array, cutoff_hz: float, rate_hz: float) -> Array:
    """Fourth-order Butterworth, forth and back; columns of NaN stay so."""
    if cutoff_hz >= 0.45 * rate_hz or len(x) < 64:
        return x
    sections = butter(4, cutoff_hz, fs=rate_hz, output="sos")
    pad = min(len(x) - 1, int(3.0 * rate_hz / cutoff_hz))
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=pad), dtype=float)


def derivative(x: Array, step: float) -> Array:
    """Five-point central difference, exact for cubics; the two samples at each end are one-sided."""
    result = np.gradient(x, step, axis=0)
    result[2:-2] = (x[:-4] - 8.0 * x[1:-3] + 8.0 * x[3:-1] - x[4:]) / (12.0 * step)
    return np.asarray(result, dtype=float)


def _bandwidth(position: Array, rate_hz: float) -> float:
    """Frequency below which 99 % of the velocity's power lies, noise taken off [Hz]."""
    usable = position[:, ~np.isnan(position).any(axis=0)]
    thin = max(1, len(usable) // _SPECTRUM)
    x = usable[::thin]
    rate = rate_hz / thin
    moving = np.ptp(x, axis=0) > 0.0 if x.size else np.zeros(0, dtype=bool)
    if not moving.any():
        return 1.0
    x = x[:, moving] - np.linspace(x[0, moving], x[-1, moving], len(x))
    power = np.abs(np.fft.rfft(x * np.hanning(len(x))[:, None], axis=0)) ** 2
    frequency = np.fft.rfftfreq(len(x), 1.0 / rate)
    floor = np.median(power[len(power) // 2 :], axis=0)
    signal = np.where(power > 30.0 * floor, power, 0.0) * frequency[:, None] ** 2
    share = np.cumsum(signal, axis=0)
    total = share[-1]
    if not (total > 0.0).any():
        return 1.0
    bands = [frequency[np.searchsorted(share[:, j], 0.99 * total[j])] for j in np.flatnonzero(total > 0.0)]
    return float(np.clip(np.median(bands), 2.0 / (len(x) / rate), 0.1 * rate_hz))
