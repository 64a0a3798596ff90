"""Other sample times: a uniform rate, or several rates in one log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import make_interp_spline

from armid.arrays import Array
from armid.logs.log import Log, LogError
from armid.signals.problems import SignalError

DEGREE: Mapping[str, int] = {"linear": 1, "cubic": 3, "quintic": 5}
SMOOTH = ("position", "velocity", "acceleration")  # channels of a body in motion: interpolated by cubics
HALF_TAPS = 32  # of the band-limited interpolation, on each side


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
        max_gap_s: longer gaps become NaN; by default three steps.
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
    gap = 3.0 * float(np.median(steps)) if max_gap_s is None else max_gap_s
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
    return Log(times, channels, replace(info, joints=joints, rate_hz=rate))
