"""The log: what was recorded on an arm, with everything one must know to use it, whole or block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.display import short
from armid.errors import SourceError, nearest

CHANNELS = ("position", "velocity", "acceleration", "effort", "current", "temperature", "command")
EFFORTS = ("joint torque", "motor torque", "current", "none")
SIDES = ("joint", "motor")
MODES = ("position", "velocity", "torque")

BLOCK = 65_536  # samples of a stream that are read at a time
MOST, MOST_TIME = 1e12, 1e20  # larger numbers are damage; time may be counted in nanoseconds
#: Standard deviation of the torque's scale where nobody states it, as a share, by what was measured: motor constants
#: and typed-in current gains are known to 5 to 15 %, joint torque sensors much better.
GAIN_UNCERTAINTY = {"joint torque": 0.01, "motor torque": 0.1, "current": 0.1, "none": 0.1}
RATE_TOLERANCE = 0.03  # by which a stated rate may differ from the timestamps


class LogError(SourceError):
    """A log cannot be used; the field is a column, a key or a place in it."""


@dataclass(frozen=True, eq=False)
class LogInfo:
    """What the numbers of a log mean.

    Attributes:
        joints: names, in the order of the columns.
        effort: what was measured as effort: ``joint torque``, ``motor torque`` (at the motor's shaft, before the gear),
            ``current`` (the channel `current` then holds it), or ``none``.
        side: side of the gear that positions, velocities and accelerations are on, ``joint`` or ``motor``.
        mode: what the channel `command` holds: ``position``, ``velocity`` or ``torque``.
        rate_hz: nominal sample rate; None if unknown.
        period_s: period of the commanded motion; None if unknown or not periodic.
        gravity: in the base frame [m/s^2]; None if unknown.
        payload: ten inertial parameters in the tool frame; None if unknown or none.
        robot: name of the robot; empty if unknown.
        gain_uncertainty: standard deviation of each joint's drive gain, the scale of its torque, as a share; those of
            `GAIN_UNCERTAINTY` where it is not given.
        source: file it was read from, or how it was made.
        history: where it comes from: versions, hashes of inputs, seed, options.
    """

    joints: tuple[str, ...]
    effort: str
    side: str = "joint"
    mode: str = "position"
    rate_hz: float | None = None
    period_s: float | None = None
    gravity: tuple[float, float, float] | None = None
    payload: tuple[float, ...] | None = None
    robot: str = ""
    gain_uncertainty: tuple[float, ...] = ()
    source: str = ""
    history: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the words."""
        object.__setattr__(self, "joints", tuple(self.joints))
        if not self.joints or len(set(self.joints)) != len(self.joints):
            raise LogError(self.source, "joints", "must be different names, at least one")
        for name, valid in (("effort", EFFORTS), ("side", SIDES), ("mode", MODES)):
            value = getattr(self, name)
            if value not in valid:
                hint = nearest(str(value), valid)
                raise LogError(self.source, name, f"is {value!r}{hint or ''}; use one of: {', '.join(valid)}")
        shares = tuple(self.gain_uncertainty) or (GAIN_UNCERTAINTY[self.effort],) * len(self.joints)
        object.__setattr__(self, "gain_uncertainty", shares)
        if len(shares) != len(self.joints) or not all(0.0 <= share < 1.0 for share in shares):
            problem = "must be a share such as 0.1 for each joint, from 0 to less than 1"
            raise LogError(self.source, "gain_uncertainty", problem)


@dataclass(frozen=True, eq=False)
class Log:
    """Recorded motion, one row per sample.

    Attributes:
        time: [s], (samples,).
        channels: name to values, each (samples, joints), SI units; a joint without the channel has NaN.
            `position` [rad or m], `velocity`, `acceleration`, `effort` [N m or N], `current` [A], `temperature` [°C],
            `command` (unit by `info.mode`).
        info: what the numbers mean.
    """

    time: Array
    channels: Mapping[str, Array]
    info: LogInfo

    def __post_init__(self) -> None:
        """Check the shapes; the log keeps its own read-only view of the arrays."""
        time = np.asarray(self.time, dtype=np.float64)
        if time.ndim != 1:
            raise LogError(self.info.source, "time", "must be one column")
        shape = (len(time), len(self.info.joints))
        channels: dict[str, Array] = {}
        for name, values in self.channels.items():
            if name not in CHANNELS:
                raise LogError(self.info.source, name, f"is no channel; there are: {', '.join(CHANNELS)}")
            array = np.asarray(values, dtype=np.float64)
            if array.shape != shape:
                raise LogError(
                    self.info.source, name, f"has the shape {array.shape}; {shape} is needed (samples, joints)"
                )
            channels[name] = _read_only(array)
        needed = {"joint torque": "effort", "motor torque": "effort", "current": "current"}.get(self.info.effort)
        if needed is not None and needed not in channels:
            raise LogError(self.info.source, needed, f"is missing, though the effort is said to be {self.info.effort}")
        if "effort" in channels and needed != "effort":
            raise LogError(
                self.info.source, "effort", f"is there, though the effort is said to be {self.info.effort!r}"
            )
        object.__setattr__(self, "time", _read_only(time))
        object.__setattr__(self, "channels", MappingProxyType(channels))

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        rows = f"{len(self)} samples over {self.duration:.4g} s"
        return short(self, self.info.source, f"{len(self.joints)} joints", rows, *self.channels)

    def __getitem__(self, channel: str) -> Array:
        """Values of a channel, (samples, joints)."""
        if channel not in self.channels:
            there = ", ".join(self.channels) or "none"
            raise LogError(self.info.source, channel, f"is not in the log; there are: {there}")
        return self.channels[channel]

    def __contains__(self, channel: object) -> bool:
        return channel in self.channels

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order of the columns."""
        return self.info.joints

    @property
    def rate_hz(self) -> float:
        """Nominal sample rate, or that of the median step between samples."""
        if self.info.rate_hz is not None:
            return self.info.rate_hz
        if len(self) < 2:
            raise LogError(self.info.source, "time", "has fewer than two samples, so there is no rate")
        step = float(np.median(np.diff(self.time)))
        if not step > 0.0:
            raise LogError(self.info.source, "time", "does not increase; give the rate")
        return 1.0 / step

    @property
    def duration(self) -> float:
        """Time from the first sample to the last [s]."""
        return float(self.time[-1] - self.time[0]) if len(self) else 0.0

    def rows(self, which: slice | ArrayLike) -> Log:
        """The log with some of its rows: a slice, indices, or a mask."""
        index = which if isinstance(which, slice) else np.asarray(which)
        return Log(self.time[index], {name: values[index] for name, values in self.channels.items()}, self.info)

    def between(self, start: float, stop: float) -> Log:
        """The samples with start <= time < stop [s]."""
        return self.rows((self.time >= start) & (self.time < stop))

    def part(self, span: str) -> Log:
        """The samples of a span of time from the start: ``0:60%``, ``10:25`` [s], ``60%:`` to the end.

        Raises:
            LogError: the span is none, or nothing lies in it.
        """
        words = list(enumerate(span.split(":")))
        unit = [0.01 * self.duration if word.endswith("%") else 1.0 for _, word in words]
        try:
            start, stop = (float(word.rstrip("%")) * unit[k] if word else (0.0, np.inf)[k] for k, word in words)
        except (ValueError, IndexError):
            start = stop = np.nan
        age = self.time - self.time[:1]
        index = np.flatnonzero((age >= start) & ((age < stop) | (stop >= self.duration)))
        if not len(index):
            problem = f"{span!r} is no part of {self.duration:.4g} s; write it as 0:60% or 10:25, in seconds"
            raise LogError(self.info.source, "part", problem)
        return self.rows(index).with_channels({}, history={**self.info.history, "part": span})

    def for_joints(self, names: Sequence[str]) -> Log:
        """The log with the columns of the named joints, in that order.

        Raises:
            LogError: a joint is not in the log.
        """
        index = []
        for name in names:
            if name not in self.joints:
                hint = nearest(name, self.joints)
                raise LogError(
                    self.info.source, "joints", f"{name!r} is not in the log{hint}; it has: {', '.join(self.joints)}"
                )
            index.append(self.joints.index(name))
        shares = tuple(self.info.gain_uncertainty[k] for k in index)
        info = replace(self.info, joints=tuple(names), gain_uncertainty=shares)
        return Log(self.time, {name: values[:, index] for name, values in self.channels.items()}, info)

    def with_channels(self, channels: Mapping[str, Array | None], **info: Any) -> Log:
        """The log with channels replaced, added, or (None) removed, and `info` changed."""
        merged = {name: values for name, values in {**self.channels, **channels}.items() if values is not None}
        return Log(self.time, merged, replace(self.info, **info))


def concatenate(logs: Iterable[Log]) -> Log:
    """Logs of the same joints and channels, one after the other; times are kept as they are."""
    parts = list(logs)
    if not parts:
        raise LogError("", "", "there is no log to join")
    first = parts[0]
    for part in parts[1:]:
        _check_alike(part, first, part.info.source, first.info.source or "the first")
    channels = {name: np.concatenate([part[name] for part in parts]) for name in first.channels}
    return Log(np.concatenate([part.time for part in parts]), channels, first.info)


def without_garbage(log: Log) -> Log:
    """The log with numbers that nobody has measured, such as 1e282 of a damaged file, as missing values."""
    parts = {"time": log.time, **log.channels}
    bad = {name: np.abs(values) > (MOST_TIME if name == "time" else MOST) for name, values in parts.items()}
    if not any(mask.any() for mask in bad.values()):
        return log
    time, *values = (np.where(bad[name], np.nan, part) for name, part in parts.items())
    return Log(time, dict(zip(log.channels, values, strict=True)), log.info)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_alike(part: Log | LogStream, first: Log | LogStream, name: str, other: str) -> None:
    """Refuse to join what has other joints, channels or another kind of effort."""
    if part.info.joints != first.info.joints or set(part.channels) != set(first.channels):
        raise LogError(name, "", f"has other joints or channels than {other}")
    if (part.info.effort, part.info.side) != (first.info.effort, first.info.side):
        raise LogError(name, "effort", f"means something else than in {other}")


@dataclass(frozen=True, eq=False)
class LogStream:
    """A log in a file, or anywhere else, that is never in memory as a whole.

    Attributes:
        info: what the numbers mean.
        channels: names of the channels that every block has.
        open_blocks: gives the blocks from the start, each of at most as many samples as it is asked for.
    """

    info: LogInfo
    channels: tuple[str, ...]
    open_blocks: Callable[[int], Iterator[Log]]

    def blocks(self, size: int = BLOCK) -> Iterator[Log]:
        """The log in pieces of at most `size` samples, from the start.

        Raises:
            LogError: the data cannot be read, or there are none.
        """
        if size < 1:
            raise LogError(self.info.source, "", f"cannot be read in blocks of {size} samples; use 1 or more")
        samples = 0
        for block in self.open_blocks(size):
            samples += len(block)
            yield block
        if samples == 0:
            raise LogError(
                self.info.source, "", "holds no samples; check that rows of numbers follow its header, or record again"
            )

    def read(self) -> Log:
        """The whole log."""
        return concatenate(self.blocks())


def one_after_the_other(streams: list[LogStream], names: list[str]) -> LogStream:
    """Streams of the same joints, channels and kind of effort as one; times are kept as they are."""
    first = streams[0]
    for other, name in zip(streams[1:], names[1:], strict=True):
        _check_alike(other, first, name, names[0])

    def blocks(size: int) -> Iterator[Log]:
        for stream in streams:
            yield from stream.blocks(size)

    return LogStream(first.info, first.channels, blocks)
