"""The motion behind a log: on a regular grid, band-limited, and how far and fast each joint went."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from armid.arrays import Array, Mask
from armid.robot.robot import Limits
from armid.signals.doctor.channels import Channels, noise_level
from armid.signals.doctor.clock import TimeColumn
from armid.signals.filters import central_differences, low_pass, motion_band
from armid.signals.problems import SignalError
from armid.signals.repair import quantum

_SHORT = 200  # samples that are needed to say anything about motion
# Less travel or speed than this (rad, rad/s; m, m/s) shows little but friction at reversals and gravity at one place.
TRAVEL, SPEED = 0.1, 0.03
_REST = 2e-3  # travel below which a joint is held [rad or m]
_TURNS = 4.0 * np.pi  # more travel than two turns is no joint of an arm, unless its limits say so [rad]
_FAST = 15.0  # nor is more speed [rad/s]
BEYOND = 1.5  # times the range between the limits, to be sure that it is exceeded
DEGREES = 180.0 / np.pi


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
            self._smoothed[channel] = low_pass(self.channels[channel], self.rate_hz, self.cutoff_hz)
        return self._smoothed[channel]

    def speed(self) -> Array:
        """Derivative of the low-passed position; NaN for a joint without one."""
        position = self.smooth("position")
        known = np.isfinite(position).all(axis=0)
        result = np.full_like(position, np.nan)
        result[:, known] = central_differences(position[:, known], self.rate_hz)
        return result

    def time(self, index: int) -> float:
        """Time of a sample of the grid [s]."""
        return self.start + index * self.step


def track_of(clock: TimeColumn, channels: Channels) -> Track | None:
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


def _bandwidth(position: Array, rate_hz: float) -> float:
    """Frequency below which 99 % of the velocity's power lies [Hz]; 1 where nothing moves."""
    usable = position[:, np.isfinite(position).all(axis=0)]
    try:
        band = motion_band(usable, rate_hz).bandwidth_hz
    except SignalError:
        return 1.0
    return float(np.clip(band, 2.0 * rate_hz / len(position), 0.1 * rate_hz))


@dataclass(frozen=True, eq=False)
class Travel:
    """Motion of each joint, outliers left out, (joints,) each.

    Attributes:
        lower, upper: position, 0.1st and 99.9th percentile [rad or m].
        speed: 99th percentile [rad/s or m/s].
        moving: whether the joint moves at all.
    """

    lower: Array
    upper: Array
    speed: Array
    moving: Mask

    @property
    def far(self) -> Mask:
        """Whether the joint moves far and fast enough to learn from."""
        return self.moving & (self.distance >= TRAVEL) & (self.speed >= SPEED)

    @property
    def distance(self) -> Array:
        """Upper less lower."""
        return self.upper - self.lower


def travel_of(track: Track) -> Travel:
    """How far each joint moved."""
    position = track.smooth("position")
    speed = np.abs(track.speed())
    known = np.array(~np.isnan(position).any(axis=0))
    lower, upper, fast = np.full((3, position.shape[1]), np.nan)
    lower[known], upper[known] = np.percentile(position[:, known], [0.1, 99.9], axis=0)
    fast[known] = np.percentile(speed[:, known], 99.0, axis=0)
    raw = track.channels["position"]
    for joint in np.flatnonzero(known):
        # Rounding or noise of an encoder is no motion.
        jitter = max(3.0 * quantum(raw[:, joint]), 10.0 * noise_level(raw[:, joint]))
        known[joint] = upper[joint] - lower[joint] > max(_REST, min(jitter, 0.5 * TRAVEL))
    return Travel(lower, upper, fast, known)


def bounds(joints: int, limits: Limits | None) -> tuple[Array, Array]:
    """Travel [rad or m] and speed [rad/s or m/s] that joints of the arm, or of any arm, do not exceed."""
    room, fast = np.full(joints, _TURNS), np.full(joints, _FAST)
    if limits is not None:
        room = np.where(np.isnan(limits.upper - limits.lower), room, limits.upper - limits.lower)
        fast = np.where(np.isnan(limits.velocity), fast, 3.0 * limits.velocity)
    return room, fast
