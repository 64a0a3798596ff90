"""Other sample times: a uniform rate, several rates in one log, fractions of a sample, the recorder's own grid.

A recorder samples at a steady rate; what it loses on the way leaves a step of two, three or a hundred sample times.
Counted in whole sample times, every row keeps its place, and a lost one is a row without values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import make_interp_spline

from armid.arrays import Array, Indices
from armid.logs.log import GAIN_UNCERTAINTY, Log, LogError
from armid.signals.problems import SignalError

DEGREE: Mapping[str, int] = {"linear": 1, "cubic": 3, "quintic": 5}
SMOOTH = ("position", "velocity", "acceleration")  # channels of a body in motion: interpolated by cubics
HALF_TAPS = 32  # of the band-limited interpolation, on each side
STEADY = 0.02  # of a sample time, by which a step between neighbours may be off; more is jitter
OFF_GRID = 0.1  # the same across lost rows: a recorder that went on between two instants of its grid is another clock
GAP_STEPS = 3.5  # sample times that are bridged: two lost rows, also of a clock that jitters
MOST = 4  # a grid of more than so many times the rows would be invented for the most part


def is_uniform(time: Array, tolerance: float = 0.02) -> bool:
    """Whether every step is within `tolerance` of the median step."""
    if len(time) < 3:
        return True
    steps = np.diff(time)
    median = float(np.median(steps))
    return bool(median > 0.0 and np.abs(steps - median).max() <= tolerance * median)


def resample(log: Log, rate_hz: float | None = None, *, effort: str = "linear", max_gap_s: float | None = None) -> Log:
    """The log at a uniform rate.

    Positions, velocities and accelerations are interpolated by cubic splines, the rest as `effort` says. No filter acts
    against aliasing: low-pass before going to a much lower rate.

    Args:
        log: time must increase.
        rate_hz: by default that of the log (the inverse of its median step).
        effort: ``linear``, which does not overshoot at steps of friction, or ``cubic``.
        max_gap_s: longer gaps become NaN; by default those of more than two lost rows.
    """
    rate = log.rate_hz if rate_hz is None else rate_hz
    if not (np.isfinite(rate) and rate > 0.0):
        raise SignalError("resample", f"rate_hz is {rate!r}; give a positive number")
    if len(log) < 2:
        raise LogError(log.info.source, "time", "has fewer than two samples")
    count = int(np.floor(log.duration * rate * (1.0 + 1e-12) + 1e-6)) + 1
    return resample_at(log, log.time[0] + np.arange(count) / rate, effort=effort, max_gap_s=max_gap_s, rate_hz=rate)


def resample_at(
    log: Log,
    times: Array,
    *,
    effort: str = "linear",
    max_gap_s: float | None = None,
    rate_hz: float | None = None,
) -> Log:
    """The log at the given times [s]; see `resample`."""
    if effort not in DEGREE:
        raise SignalError("resample", f"effort is {effort!r}; use one of: {', '.join(DEGREE)}")
    if (np.diff(log.time) <= 0.0).any():
        raise LogError(log.info.source, "time", "does not increase; repair the log first (step Repair)")
    steps = np.diff(log.time)
    gap = GAP_STEPS * float(np.median(steps)) if max_gap_s is None else max_gap_s
    channels = {}
    for name, values in log.channels.items():
        moving = name in SMOOTH or (name == "command" and log.info.mode == "position")
        channels[name] = interpolate(log.time, values, times, "cubic" if moving else effort, gap)
    return Log(times, channels, replace(log.info, rate_hz=rate_hz))


def interpolate(time: Array, values: Array, times: Array, method: str = "cubic", max_gap_s: float = np.inf) -> Array:
    """Values at other times by splines; NaN outside the samples and in gaps longer than `max_gap_s`."""
    result = np.full((len(times), values.shape[1]), np.nan)
    finite = np.isfinite(values)
    alike = bool((finite == finite[:, :1]).all())
    groups = [list(range(values.shape[1]))] if alike else [[j] for j in range(values.shape[1])]
    for columns in groups:
        good = finite[:, columns[0]]
        degree = min(DEGREE[method], int(good.sum()) - 1)
        if degree < 1:
            continue
        known = time[good]
        # at the nearest samples the step width decides whether a time lies in a gap
        after = np.clip(np.searchsorted(known, times), 1, len(known) - 1)
        width = known[after] - known[after - 1]
        slack = 1e-9 * max(known[-1] - known[0], 1e-300)
        usable = (width <= max_gap_s * (1.0 + 1e-9)) & (times >= known[0] - slack) & (times <= known[-1] + slack)
        apart = np.minimum(np.abs(times - known[after - 1]), np.abs(times - known[after]))
        usable |= apart <= 1e-6 * float(np.median(np.diff(known)))
        part = values[good][:, columns]
        if degree == 1:
            found = np.stack([np.interp(times, known, column) for column in part.T], axis=1)
        else:
            found = make_interp_spline(known - known[0], part, k=degree)(times - known[0])
        result[np.ix_(usable, columns)] = found[usable]
    return result


def interpolate_band_limited(values: Array, positions: Array, half: int = HALF_TAPS) -> Array:
    """Uniform samples at fractional positions, by sinc under a Kaiser window: white noise keeps its variance.

    Args:
        values: (samples, ...).
        positions: in samples, (times,); beyond the ends the last value is repeated.
        half: taps on each side.
    """
    base = np.floor(positions).astype(np.int64)
    fraction = positions - base
    offsets = np.arange(1 - half, half + 1)
    distance = fraction[:, None] - offsets
    inside = np.maximum(1.0 - (distance / half) ** 2, 0.0)
    weights = np.sinc(distance) * np.i0(8.0 * np.sqrt(inside))
    weights /= weights.sum(axis=1, keepdims=True)
    shape = (-1,) + (1,) * (values.ndim - 1)
    result = np.zeros((len(positions), *values.shape[1:]))
    for tap, offset in enumerate(offsets):
        result += weights[:, tap].reshape(shape) * values[np.clip(base + offset, 0, len(values) - 1)]
    return result


def fuse(logs: Sequence[Log], rate_hz: float | None = None, *, effort: str = "linear") -> Log:
    """One log from several that share a clock but not a rate, such as accelerations at 300 Hz and encoders at 1 kHz.

    The result covers the time all of them cover, at `rate_hz` or the highest of their rates. A channel comes from the
    first log that has it; joints are matched by name, and a joint without the channel has NaN.
    """
    if not logs:
        raise LogError("", "", "there is no log to fuse")
    rate = max(log.rate_hz for log in logs) if rate_hz is None else rate_hz
    start, stop = max(log.time[0] for log in logs), min(log.time[-1] for log in logs)
    if not stop > start:
        spans = ", ".join(f"{log.info.source or 'log'} {log.time[0]:g} to {log.time[-1]:g} s" for log in logs)
        raise LogError("", "time", f"the logs do not overlap: {spans}; give them the same clock")
    times = start + np.arange(int(np.floor((stop - start) * rate + 1e-6)) + 1) / rate
    joints = tuple(dict.fromkeys(name for log in logs for name in log.joints))
    channels: dict[str, Array] = {}
    info = next((log.info for log in logs if log.info.effort != "none"), logs[0].info)
    for log in logs:
        if log.info.side != info.side:
            problem = f"is {log.info.side}, that of the others {info.side}; convert first"
            raise LogError(log.info.source, "side", problem)
        moved = resample_at(log, times, effort=effort)
        columns = [joints.index(name) for name in log.joints]
        for name, values in moved.channels.items():
            if name not in channels:
                channels[name] = np.full((len(times), len(joints)), np.nan)
                channels[name][:, columns] = values
    known = dict(zip(info.joints, info.gain_uncertainty, strict=True))
    gains = tuple(known.get(name, GAIN_UNCERTAINTY[info.effort]) for name in joints)
    return Log(times, channels, replace(info, joints=joints, rate_hz=rate, gain_uncertainty=gains))


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


@dataclass(frozen=True, eq=False)
class Grid:
    """The place of every row of a log on a uniform grid.

    Attributes:
        step: sample time [s].
        index: place of each row, from 0, increasing, (rows,).
    """

    step: float
    index: Indices

    @property
    def count(self) -> int:
        """Places from the first row to the last."""
        return int(self.index[-1]) + 1 if len(self.index) else 0

    @property
    def missing(self) -> int:
        """How many places have no row."""
        return self.count - len(self.index)

    def spread(self, values: Array) -> Array:
        """Values (rows, columns) at their places, NaN where there is no row, (count, columns)."""
        result = np.full((self.count, values.shape[1]), np.nan)
        result[self.index] = values
        return result


def grid_of(time: Array) -> Grid | None:
    """The grid of timestamps that increase; None where they jitter by more than 2 % of a step, or are mostly gaps."""
    steps = np.diff(time)
    if len(steps) < 2 or not (steps > 0.0).all():
        return None
    median = float(np.median(steps))
    usual = steps[np.abs(steps - median) <= STEADY * median]
    if 2 * len(usual) < len(steps):
        return None
    step = float(usual.mean())  # the median of rounded stamps may be off by their last digit
    counts = np.round(steps / step)
    off = np.abs(steps - counts * step)
    if (counts < 1.0).any() or (off > np.where(counts > 1.0, OFF_GRID, STEADY) * step).any():
        return None
    index = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
    if index[-1] + 1 > MOST * len(time):
        return None
    return Grid(float(time[-1] - time[0]) / float(index[-1]), index)


def on_grid(log: Log) -> Log | None:
    """The log with a row of NaN for each lost one; None where its timestamps have no grid. Time must increase."""
    grid = grid_of(log.time)
    if grid is None or not grid.missing:
        return None if grid is None else log
    time = np.interp(np.arange(grid.count), grid.index, log.time)
    return Log(time, {name: grid.spread(values) for name, values in log.channels.items()}, log.info)


def bridged(log: Log) -> Log:
    """The log with holes of up to two rows filled: cubics for motion, lines for the rest; measured values stay."""
    filled = resample_at(log, log.time, rate_hz=log.info.rate_hz)
    return log.with_channels(
        {name: np.where(np.isfinite(values), values, filled[name]) for name, values in log.channels.items()}
    )


def blocks_on_grid(blocks: Iterable[Log], step: float, samples: int) -> Iterator[Log]:
    """Blocks of a stream with a row of NaN for each lost one, in constant memory.

    Rows whose time does not increase are dropped. A gap of many periods becomes one of less than two, which keeps the
    phase.

    Args:
        blocks: consecutive parts of one log.
        step: sample time [s].
        samples: per period.
    """
    latest = -np.inf
    for block in blocks:
        before = np.maximum.accumulate(np.concatenate([[latest], block.time]))[:-1]
        block = block.rows(block.time > before)
        if not len(block):
            continue
        steps = np.diff(np.concatenate([[latest], block.time])) / step
        counts = np.maximum(np.round(np.where(np.isfinite(steps), steps, 1.0)), 1.0).astype(np.int64)
        counts = np.where(counts > 2 * samples, counts % samples + samples, counts)
        latest = float(block.time[-1])
        if (counts == 1).all():
            yield block
            continue
        grid = Grid(step, np.cumsum(counts) - 1)
        time = np.interp(np.arange(grid.count), grid.index, block.time)
        yield Log(time, {name: grid.spread(values) for name, values in block.channels.items()}, block.info)
