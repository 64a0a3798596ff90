"""The motion behind a log: on a regular grid, how far and fast each joint went, and whether it repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from armid.arrays import Array, Mask
from armid.logs.log import Log, LogInfo
from armid.robot.robot import Limits
from armid.signals.doctor.channels import Channels, noise_level
from armid.signals.doctor.clock import TimeColumn
from armid.signals.doctor.finding import Finding, Where, found, in_words
from armid.signals.filters import central_differences, low_pass, motion_band
from armid.signals.period import find_period
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
    if len(clock.rows) < _SHORT or not np.isfinite(channels.values.get("position", np.nan)).any():
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


# Compared periods: windows of a period, looked at on their own.
_WINDOWS = 20
# The start differs if it does so this many times more than later periods differ among each other, and by more than
# this much of the signal. Windows of 50 samples of white noise scatter by 10 %, so 2 is ten deviations.
_RATIO, _SHARE = 2.0, 0.01
_FOLDED, _COMPARED = 4000, 16  # samples per period and periods that are enough to compare
_SEARCHED = 40_000  # samples that are enough to find a period


@dataclass(frozen=True)
class Repetition:
    """A motion that repeats.

    Attributes:
        length_s: its period [s].
        start: first sample of the track that belongs to it, a run-in before the steady part included.
        repeats: whole periods from there on.
        mismatch: rms difference between periods over the standard deviation of the motion.
    """

    length_s: float
    start: int
    repeats: int
    mismatch: float


def find_repetition(track: Track, moving: Mask, info: LogInfo) -> Repetition | None:
    """The period common to all joints that move, and where its first repetition begins."""
    if not moving.any():
        return None
    thin = max(1, min(int(track.rate_hz / (8.0 * track.cutoff_hz)), len(track.channels["position"]) // 2000))
    thin = max(thin, len(track.channels["position"]) // _SEARCHED)
    x = track.channels["position"][::thin, moving]
    names = tuple(name for name, moves in zip(info.joints, moving, strict=True) if moves)
    time = track.start + thin * track.step * np.arange(len(x), dtype=np.float64)
    plain = LogInfo(joints=names, effort="none", period_s=info.period_s)
    period = find_period(Log(time, {"position": x}, plain)).period
    if period is None:
        return None
    # The search leaves out what does not repeat. A run-in does not, but belongs to the first period, so that whole
    # periods are added in front as long as the arm moves there.
    speed = np.abs(np.diff(x, axis=0)).max(axis=1) / np.percentile(np.abs(np.diff(x, axis=0)), 95.0)
    moves = np.flatnonzero(speed > 0.05)
    active, rest = (track.start + thin * track.step * row for row in (moves[0], moves[-1] + 2))
    start, slack = period.start_s, 0.05 * period.seconds
    while start > active + slack:
        start -= period.seconds
    start = max(start, track.start) if start > track.start - slack else start + period.seconds
    index = round((start - track.start) / track.step)
    repeats = int((max(period.stop_s, rest) - start) / period.seconds + 0.02)
    return Repetition(period.seconds, index, repeats, period.mismatch) if repeats >= 2 else None


def examine_period(track: Track, joints: tuple[str, ...], moving: Mask, period: Repetition | None) -> Iterator[Finding]:
    """Say what the period is, and whether the first one is still settling."""
    if period is None:
        return
    start = track.time(period.start)
    where = Where(
        f"from {in_words(np.array([track.start]), start)} on", (), 0, start, start + period.repeats * period.length_s
    )
    sure = float(np.clip(1.0 - 5.0 * period.mismatch, 0.5, 0.99))
    yield found("periodic", None, where, confidence=sure, period_s=period.length_s, periods=period.repeats)
    if period.repeats >= 3:
        yield from _transients(track, joints, moving, period)


def _transients(track: Track, joints: tuple[str, ...], moving: Mask, period: Repetition) -> Iterator[Finding]:
    worst: dict[int, tuple[float, str, float]] = {}
    for channel in ("position", "velocity", "effort", "current"):
        if channel not in track.channels:
            continue
        folded = fold(track.channels[channel], track.step, period)
        scale = folded.std(axis=(0, 1))
        for joint in map(int, np.flatnonzero(moving & (scale > 0.0))):
            ratio, windows = _first_differs(folded[:, :, joint], float(scale[joint]))
            if windows and ratio > worst.get(joint, (0.0, "", 0.0))[0]:
                worst[joint] = (ratio, channel, windows * period.length_s / _WINDOWS)
    if not worst:
        return
    joint = max(worst, key=lambda j: worst[j][0])
    ratio, channel, _ = worst[joint]
    length = max(settle for _, _, settle in worst.values())
    start = track.time(period.start)
    yield found(
        "transient",
        None,
        Where(f"the first {length:.3g} s", (), 0, start, start + length),
        confidence=float(np.clip(1.0 - 1.0 / ratio**2, 0.5, 0.99)),
        settling_s=length,
        ratio=ratio,
        joints=[joints[j] for j in sorted(worst)],
        channel=channel,
        worst=joints[joint],
    )


def fold(x: Array, step: float, period: Repetition) -> Array:
    """First periods of a signal, (periods, samples, joints), interpolated if a period is no multiple of the step."""
    count, repeats = min(_FOLDED, int(period.length_s / step)), min(period.repeats, _COMPARED)
    phase = np.arange(count) * (period.length_s / count)
    begin = period.start * step + np.arange(repeats) * period.length_s
    wanted = ((begin[:, None] + phase) / step).ravel()
    index = np.minimum(wanted.astype(np.int64), len(x) - 2)
    part = (wanted - index)[:, None]
    return np.asarray(((1.0 - part) * x[index] + part * x[index + 1]).reshape(repeats, count, x.shape[1]))


def _first_differs(folded: Array, scale: float) -> tuple[float, int]:
    """How much more the start of the first period differs than that of later ones, and for how many windows."""
    size = folded.shape[1] // _WINDOWS
    later = folded[1:]
    count = len(later)
    mean = later.mean(axis=0)
    # Deviation from the mean of the others; that of a later period from a mean it is part of is smaller.
    first = (folded[0] - mean) / np.sqrt(1.0 + 1.0 / count)
    rest = (later - mean) / np.sqrt(1.0 - 1.0 / count)
    shape = (_WINDOWS, size)
    first_rms = np.sqrt(np.mean(first[: size * _WINDOWS].reshape(shape) ** 2, axis=1))
    rest_rms = np.sqrt(np.mean(rest[:, : size * _WINDOWS].reshape(count, *shape) ** 2, axis=2))
    usual = np.maximum(np.median(rest_rms, axis=0), 1e-4 * scale)
    differs = (first_rms > _RATIO * usual) & (first_rms > 1.5 * rest_rms.max(axis=0)) & (first_rms > _SHARE * scale)
    windows = int(np.argmin(differs)) if not differs.all() else _WINDOWS
    return float(first_rms[0] / usual[0]), windows
