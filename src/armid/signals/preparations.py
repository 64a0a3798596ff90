"""Steps from log to log, which come before a strategy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from armid.arrays import Mask
from armid.errors import UnknownNameError
from armid.logs.convert import to_joint_side, torque_from_current
from armid.logs.log import CHANNELS, Log, LogError
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.period import find_period
from armid.signals.problems import SignalError
from armid.signals.repair import (
    fill_missing,
    find_gaps,
    find_spikes,
    over_holes,
    recurring,
    stale_rows,
    with_clock_put_forward,
    with_increasing_time,
    without_turns,
)
from armid.signals.resample import is_uniform, resample, shifted
from armid.signals.steps import NEEDS_GAIN, Notes, Preparation

HOLE_S = 0.06  # on both sides of where recordings were joined: longer than what is filled [s]


@dataclass(frozen=True, kw_only=True)
class Trim(Preparation):
    """Leave out the start and the end of a log.

    Attributes:
        start_s: from this time after the first sample [s].
        stop_s: up to this time after the first sample [s]; None for the end.
    """

    start_s: float = 0.0
    stop_s: float | None = None

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Cut."""
        stop = np.inf if self.stop_s is None else self.stop_s
        if not 0.0 <= self.start_s < stop:
            raise SignalError("Trim", f"start_s is {self.start_s:g}, stop_s {stop:g}; use 0 <= start_s < stop_s")
        origin = float(log.time[0]) if len(log) else 0.0
        part = log.between(origin + self.start_s, origin + stop)
        if len(part) < 2:
            raise SignalError("Trim", f"nothing is left of a log of {log.duration:g} s from {self.start_s:g} s on")
        return part, ()


@dataclass(frozen=True, kw_only=True)
class TrimRest(Preparation):
    """Leave out standstill at both ends.

    Attributes:
        threshold: a joint moves while faster than this share of its largest speed.
        margin_s: standstill to keep at both ends [s], where filters run in.
    """

    threshold: float = 0.02
    margin_s: float = 1.0

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Cut to the motion and its margins."""
        moving = moving_rows(log, self.threshold)
        if not moving.any():
            raise LogError(log.info.source, "position", "does not change; there is no motion in this log")
        index = np.flatnonzero(moving)
        start, stop = log.time[index[0]] - self.margin_s, log.time[index[-1]] + self.margin_s
        part = log.rows((log.time >= start) & (log.time <= stop))
        cut = (part.time[0] - log.time[0], log.time[-1] - part.time[-1])
        if max(cut) <= 0.0:
            return log, ()
        return part, (note("signals.rest_cut", before_s=cut[0], after_s=cut[1]),)


def moving_rows(log: Log, threshold: float = 0.02) -> Mask:
    """Samples at which any joint is faster than `threshold` times its largest speed, (samples,)."""
    position = fill_missing(log.time, log["position"], np.inf)[0]
    position = position[:, np.isfinite(position).all(axis=0)]
    if len(log) < 8 or not position.shape[1]:
        return np.zeros(len(log), dtype=bool)
    span = np.ptp(position, axis=0)
    position = position[:, span > 1e-3 * max(float(span.max()), 1e-9)]
    width = max(3, round(0.1 * log.rate_hz))
    smooth = ndimage.uniform_filter1d(position, width, axis=0, mode="nearest")
    speed = np.abs(np.gradient(smooth, log.time, axis=0))
    largest = np.quantile(speed, 0.999, axis=0)
    return np.asarray((speed > threshold * largest).any(axis=1) & (largest.max(initial=0.0) > 0.0))


@dataclass(frozen=True, kw_only=True)
class Repair(Preparation):
    """Put time in order, leave stale rows out and fill short holes; long ones are left out of the regression later.

    Positions that wrap by whole turns go on, and where recordings were joined there is a hole.

    Attributes:
        max_gap_s: longest hole that is interpolated [s].
        moved_zero: whether a log is used although the position of a joint alone jumps within it; refused if not.
    """

    max_gap_s: float = 0.05
    moved_zero: bool = False

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Drop samples out of order and such as only repeat the one before, interpolate short runs of NaN."""
        notes: list[Note] = []
        log, back = with_clock_put_forward(log)
        if len(back):
            notes.append(note("signals.set_back", count=len(back)))
        log, removed = with_increasing_time(log)
        if removed:
            notes.append(note("signals.unordered", count=removed))
        stale = stale_rows(log)
        if stale.any():
            notes.append(note("signals.stale", count=int(stale.sum()), share=float(stale.mean())))
            log = log.rows(~stale)
        changed, total = {}, 0
        for name, values in log.channels.items():
            changed[name], filled = fill_missing(log.time, values, self.max_gap_s)
            total += filled
        if total:
            notes.append(note("signals.filled", count=total, max_gap_s=self.max_gap_s))
            log = log.with_channels(changed)
        log, said = without_jumps(log, moved=self.moved_zero)
        return log, (*notes, *said)


def without_jumps(log: Log, *, moved: bool = False) -> tuple[Log, Notes]:
    """Whole turns undone, a hole where recordings were joined, an error where a joint's zero moves, unless `moved`."""
    log, jumps = without_turns(log)
    if (zero := next((jump for jump in jumps if jump.kind == "moved"), None)) and not moved:
        from armid.signals.doctor.finding import found_jump

        finding = found_jump(log, zero)
        raise LogError(log.info.source, f"position.{finding.joint}", f"{finding.what} {finding.advice}")
    notes: list[Note] = []
    if turns := [jump for jump in jumps if jump.kind == "turns"]:
        joints = sorted({log.joints[joint] for jump in turns for joint in jump.sizes})
        notes.append(note("signals.unwrapped", count=len(turns), joints=joints))
    if joined := [jump.row for jump in jumps if jump.kind == "joined"]:
        reach = max(HOLE_S, 3.0 * float(np.median(np.diff(log.time))))
        position = np.array(log["position"])
        for row in joined:
            position[np.abs(log.time - log.time[row]) <= reach] = np.nan
        log = log.with_channels({"position": position})
        notes.append(note("signals.joined", times=[f"{log.time[row]:.6g}" for row in joined]))
    return log, tuple(notes)


@dataclass(frozen=True, kw_only=True)
class Hampel(Preparation):
    """Replace single-sample spikes by the line between their neighbours; see `find_spikes`.

    In a motion that repeats, what recurs at the same phase of other periods is no spike and stays; see `recurring`.

    Attributes:
        half_window: samples on each side.
        threshold: in standard deviations of the noise.
        longest: longest run of samples taken for a spike.
        channels: which to look at, where the log has them.
    """

    half_window: int = 3
    threshold: float = 8.0
    longest: int = 1
    channels: tuple[str, ...] = ("position", "effort", "current")

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Find and mend."""
        for name in self.channels:
            if name not in CHANNELS:
                raise UnknownNameError("channel", name, CHANNELS)
        found = {
            name: find_spikes(log[name], self.half_window, self.threshold, self.longest)
            for name in self.channels
            if name in log
        }
        period_s = _period_of(log) if any(marks.any() for marks in found.values()) else None
        changed, notes = {}, []
        for name, marks in found.items():
            again = np.zeros_like(marks) if period_s is None else recurring(log.time, log[name], marks, period_s)
            spikes = marks & ~again
            if spikes.any():
                changed[name] = over_holes(log[name], spikes)
                counts = {joint: int(n) for joint, n in zip(log.joints, spikes.sum(axis=0), strict=True) if n}
                notes.append(note("signals.spikes_replaced", channel=name, joints=counts))
            if again.any():
                notes.append(note("signals.sharp_kept", channel=name, count=int(again.sum())))
        return (log.with_channels(changed) if changed else log), tuple(notes)


def _period_of(log: Log) -> float | None:
    """Period of the motion [s], None where it does not repeat or cannot be looked for."""
    if "position" not in log or len(log) < 2 or not (np.diff(log.time) > 0.0).all():
        return None
    found = find_period(log).period
    return None if found is None else found.seconds


@dataclass(frozen=True, kw_only=True)
class Resample(Preparation):
    """Bring the log to a uniform rate; see `resample`.

    Attributes:
        rate_hz: None for that of the log.
        effort: interpolation of effort, current, temperature: ``linear`` or ``cubic``.
        max_gap_s: longer gaps stay open [s]; None for three steps.
    """

    rate_hz: float | None = None
    effort: str = "linear"
    max_gap_s: float | None = None

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Interpolate."""
        part = resample(log, self.rate_hz, effort=self.effort, max_gap_s=self.max_gap_s)
        gaps = find_gaps(log.time, 3.0)[1]
        gaps = gaps[gaps > (self.max_gap_s or 0.0)]
        longest = float(gaps.max(initial=0.0))
        return part, (note("signals.resampled", rate_hz=part.rate_hz, gaps=len(gaps), longest_s=longest),)


@dataclass(frozen=True, kw_only=True)
class Shift(Preparation):
    """Take delays of the torque against the motion away, to a fraction of a sample.

    Attributes:
        delay_s: one for all joints or one for each [s]; positive where the torque lags the motion.
    """

    delay_s: float | tuple[float, ...]

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Read effort and current later by the delay; the samples this leaves without a value are cut off."""
        delay = np.atleast_1d(np.asarray(self.delay_s, dtype=float))
        if delay.shape not in ((1,), (len(log.joints),)) or not np.isfinite(delay).all():
            raise SignalError("Shift", f"delay_s is {self.delay_s!r}; give one number, or {len(log.joints)} of them")
        if not is_uniform(log.time):
            raise SignalError("Shift", "needs a uniform sample rate; put the step Resample before it")
        samples = delay * log.rate_hz
        later, earlier = (int(np.ceil(max(0.0, float((sign * samples).max())))) for sign in (1.0, -1.0))
        if later + earlier + 2 > len(log):
            raise SignalError("Shift", f"delay_s is {self.delay_s!r}, longer than the log")
        changed = {name: shifted(log[name], samples) for name in ("effort", "current") if name in log}
        part = log.with_channels(changed).rows(slice(earlier, len(log) - later))
        return part, (note("signals.shifted", delay_s=delay.tolist()),)


@dataclass(frozen=True, kw_only=True)
class CurrentToTorque(Preparation):
    """Joint torque from motor current.

    Attributes:
        gains: per joint a gain [N m/A] or a polynomial, lowest power first; None for those of the robot.
    """

    gains: tuple[float | tuple[float, ...], ...] | None = None

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Convert; a log that holds torque already is left alone."""
        if log.info.effort != "current":
            return log, ()
        gains = self.gains
        if gains is None:
            if robot is None or robot.current_gain is None:
                raise LogError(log.info.source, "effort", NEEDS_GAIN)
            gains = robot.current_gain
        return torque_from_current(log, gains), (note("signals.from_current"),)


@dataclass(frozen=True, kw_only=True)
class ToJointSide(Preparation):
    """Motion and torque from the motor side of the gears to the joint side.

    Attributes:
        ratio: matrix R with q_motor = R q_joint, or the gear ratios alone; None for those of the robot.
    """

    ratio: tuple[float | tuple[float, ...], ...] | None = None

    def apply(self, log: Log, robot: Robot | None) -> tuple[Log, Notes]:
        """Convert; a log that is on the joint side already is left alone."""
        if log.info.side == "joint" and log.info.effort != "motor torque":
            return log, ()
        if self.ratio is not None:
            return to_joint_side(log, self.ratio), (note("signals.joint_side", by="the given ratios"),)
        if robot is None:
            raise LogError(
                log.info.source,
                "side",
                "is the motor's; give the ratios (step ToJointSide) or a robot with gear ratios or a coupling",
            )
        if robot.coupling is not None:
            return to_joint_side(log, robot.coupling), (note("signals.joint_side", by="the robot's coupling matrix"),)
        ratios = [drive.gear_ratio for drive in robot.drives]
        if not ratios or all(ratio == 1.0 for ratio in ratios):
            raise LogError(
                log.info.source, "side", f"is the motor's, and {robot.name} has no gear ratios; add drives.gear_ratio"
            )
        return to_joint_side(log, ratios), (note("signals.joint_side", by="the robot's gear ratios"),)
