"""Strategies for motion that does not repeat: one finite filter for torque and regressor."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array, Indices, Mask
from armid.dynamics.model import Motion
from armid.logs.log import Log, LogError
from armid.notes import Note, note
from armid.signals.dataset import Dataset
from armid.signals.filters import (
    STENCIL,
    decimated_rows,
    differenced,
    filtered,
    low_pass,
    low_pass_kernel,
    motion_band,
    smooth,
    smoothing_kernel,
)
from armid.signals.problems import SignalError, check_cutoff, check_whole
from armid.signals.repair import MAD, over_holes, with_increasing_time
from armid.signals.resample import is_uniform, resample
from armid.signals.steps import Notes, Strategy, required_effort, required_position

BANDWIDTHS = 10.0  # automatic cut-off: this many times the bandwidth of the velocity
SLOWEST_HZ, FASTEST_HZ = 2.0, 20.0  # and within these
FELT = 1e-3  # share of a filter's weight beyond an end that is no longer felt
ROWS_PER_CUTOFF = 2.5  # rate that is left after decimation, in cut-off frequencies


@dataclass(frozen=True, kw_only=True)
class LowPass(Strategy):
    """Zero-phase Butterworth and central differences; torque and regressor get the same finite filter.

    Attributes:
        cutoff_hz: of the filter on torque and regressor; ``auto`` for ten times the frequency that holds 99 % of the
            velocity's power, within 2 and 20 Hz (5 Hz for a typical excitation up to 0.5 Hz), or less where the noise
            of the positions would have more than 1 % of the acceleration's power; see `motion_band`.
        order: of one pass of the Butterworth filter.
        decimate: keep every n-th row; ``auto`` leaves 2.5 rows per period of the cut-off, so that the noise in
            neighbouring rows is nearly independent.
        motion_cutoff_hz: of the filter on positions before they are differentiated; None for twice `cutoff_hz`.
        tail: share of the filter's weight that is cut off its ends; larger keeps more rows at the ends of a log.
        measured: use measured velocity and acceleration, low-passed alike, where the log has them.
        rest_speed: a joint's rows at which it is no faster than this are left out [rad/s or m/s], since static friction
            may take any value there; 0 keeps all.
    """

    cutoff_hz: float | str = 5.0
    order: int = 4
    decimate: int | str = "auto"
    motion_cutoff_hz: float | None = None
    tail: float = 1e-4
    measured: bool = False
    rest_speed: float = 0.02

    def __post_init__(self) -> None:
        """Refuse what no log can be filtered with, whatever its sample rate."""
        if isinstance(self.cutoff_hz, str) and self.cutoff_hz != "auto":
            raise SignalError("LowPass", f"cutoff_hz is {self.cutoff_hz!r}; use a number or 'auto'")
        for name in ("cutoff_hz", "motion_cutoff_hz"):
            value = getattr(self, name)
            if isinstance(value, float | int) and not 0.0 < value < math.inf:
                raise SignalError("LowPass", f"{name} is {value:g}; it must be above zero [Hz]")
        if self.decimate != "auto":
            check_whole("LowPass", "decimate", self.decimate)
        low_pass_kernel(1.0, 0.1, self.order, tail=self.tail)

    def dataset(self, log: Log) -> Dataset:
        """Filter, differentiate, decimate."""
        log, position, bad, notes = uniform_motion(log)
        rate = log.rate_hz
        cutoff, why = self._cutoff(position, rate)
        chosen = replace(self, cutoff_hz=cutoff).settled(rate)
        wide, step = float(chosen.motion_cutoff_hz or 0.0), int(chosen.decimate)
        motion = differenced(low_pass(position, rate, wide, self.order), rate)
        if self.measured:
            motion = self._with_measured(log, motion, rate, wide)
        kernel = low_pass_kernel(rate, cutoff, self.order, tail=self.tail)
        said = note("signals.low_pass", cutoff_hz=cutoff, step=step, motion_cutoff_hz=wide, **why)
        reach = int(np.ceil(rate / wide))
        data = kernel_dataset(chosen, log, motion, kernel, step, bad, reach, (*notes, said))
        return without_rest(data, self.rest_speed) if self.rest_speed > 0.0 else data

    def settled(self, rate_hz: float) -> LowPass:
        """The same, of a stated cut-off, with all else decided that a log's sample rate decides."""
        cutoff = float(self.cutoff_hz)
        check_cutoff("LowPass", cutoff, rate_hz)
        wide = min(2.0 * cutoff, 0.45 * rate_hz) if self.motion_cutoff_hz is None else self.motion_cutoff_hz
        check_cutoff("LowPass", wide, rate_hz, "motion_cutoff_hz")
        step = max(1, int(rate_hz / (ROWS_PER_CUTOFF * cutoff))) if self.decimate == "auto" else self.decimate
        return replace(self, cutoff_hz=cutoff, decimate=int(step), motion_cutoff_hz=float(wide))

    def reach(self, rate_hz: float) -> int:
        """Where the filter on the positions still feels an end, by a thousandth of its weight, and the differences."""
        if self.motion_cutoff_hz is None:
            raise SignalError("LowPass", "motion_cutoff_hz is not known yet; take the step from a dataset's pipeline")
        kernel = low_pass_kernel(rate_hz, self.motion_cutoff_hz, self.order, tail=FELT)
        return len(kernel) // 2 + STENCIL // 2

    def _cutoff(self, position: Array, rate: float) -> tuple[float, dict[str, float | None]]:
        """The cut-off [Hz], and what it follows from."""
        if not isinstance(self.cutoff_hz, str):
            return float(self.cutoff_hz), {"bandwidth_hz": None}
        band = motion_band(position, rate)
        wanted = float(np.clip(BANDWIDTHS * band.bandwidth_hz, SLOWEST_HZ, FASTEST_HZ))
        cutoff = min(max(band.clean_hz, SLOWEST_HZ), wanted, 0.2 * rate)
        return cutoff, {"bandwidth_hz": band.bandwidth_hz, "clean_hz": band.clean_hz if cutoff < wanted else None}

    def _with_measured(self, log: Log, motion: Motion, rate: float, cutoff: float) -> Motion:
        parts = dict(zip(("velocity", "acceleration"), motion[1:], strict=True))
        if "velocity" in log:
            values = low_pass(_completed(log, "velocity"), rate, cutoff, self.order)
            parts = {"velocity": values, "acceleration": differenced(values, rate).qd}
        if "acceleration" in log:
            parts["acceleration"] = low_pass(_completed(log, "acceleration"), rate, cutoff, self.order)
        return Motion(motion.q, parts["velocity"], parts["acceleration"])


@dataclass(frozen=True, kw_only=True)
class Smoothed(Strategy):
    """Five-point cubic smoothing of position and torque (ER-16, (17)), then central differences.

    Attributes:
        passes: how often; too many distort.
        decimate: keep every n-th row.
    """

    passes: int = 3
    decimate: int = 1

    def dataset(self, log: Log) -> Dataset:
        """Smooth and differentiate."""
        log, position, bad, notes = uniform_motion(log)
        step = check_whole("Smoothed", "decimate", self.decimate)
        motion = differenced(smooth(position, self.passes), log.rate_hz)
        kernel = smoothing_kernel(self.passes)
        said = note("signals.smoothed", passes=self.passes)
        return kernel_dataset(self, log, motion, kernel, step, bad, self.reach(log.rate_hz), (*notes, said))

    def reach(self, rate_hz: float) -> int:
        """Where the end formulas of the passes and of the differences are felt."""
        return 2 * self.passes + STENCIL // 2


def uniform_motion(log: Log) -> tuple[Log, Array, Mask, Notes]:
    """The log at a uniform rate, its positions without holes, and which samples of them were invented.

    Raises:
        LogError: no position, no joint torque, or too little of them.
    """
    required_position(log)
    required_effort(log)
    notes: list[Note] = []
    log, removed = with_increasing_time(log)
    if removed:
        notes.append(note("signals.unordered", count=removed))
    if len(log) < 8:
        raise LogError(log.info.source, "time", f"has {len(log)} samples in order; at least 8 are needed")
    if not is_uniform(log.time):
        steps = np.diff(log.time)
        log = resample(log)
        low, high = map(float, np.quantile(steps, [0.01, 0.99]))
        notes.append(note("signals.made_uniform", from_s=low, to_s=high, rate_hz=log.rate_hz))
    position = log["position"]
    bad = np.asarray(~np.isfinite(position).all(axis=1))
    return log, _completed(log, "position"), bad, tuple(notes)


def _completed(log: Log, channel: str) -> Array:
    """Values with every hole filled by lines, and by the nearest value at the ends."""
    return np.ascontiguousarray(over_holes(log[channel], ~np.isfinite(log[channel]), log.time))


def kernel_dataset(
    strategy: Strategy,
    log: Log,
    motion: Motion,
    kernel: Array,
    step: int,
    bad: Mask,
    reach: int,
    notes: Notes,
) -> Dataset:
    """The dataset whose torque went through a kernel.

    Noise: what the kernel takes away, raw - filtered, is white noise with the variance σ² (1 - 2 k₀ + Σ k²) where the
    noise is white; σ is taken from its median absolute deviation, which steps of friction hardly touch. The filtered
    torque keeps σ² Σ k².

    Args:
        strategy: recorded in the dataset.
        log: uniform.
        motion: of all samples.
        kernel: of torque and regressor.
        step: keep every n-th row.
        bad: samples whose position was not measured.
        reach: samples over which such a position spoils its neighbours' derivatives.
        notes: what was said so far.
    """
    effort = log["effort"]
    rows = decimated_rows(len(log), kernel, step, log.rate_hz)
    raw = _completed(log, "effort")
    torque = filtered(raw, kernel, rows)
    half = len(kernel) // 2
    spoilt = np.repeat(_near(bad[:, None], rows, half + reach), effort.shape[1], axis=1)
    use = ~(spoilt | _near(~np.isfinite(effort), rows, half))
    dead = ~np.isfinite(effort).any(axis=0)
    torque = np.where(dead, 0.0, torque)
    for joint in np.flatnonzero(~use.any(axis=0) & ~dead):
        lost, gone = 1.0 - float(np.isfinite(effort[:, joint]).mean()), float(bad.mean())
        what, share = ("effort", lost) if lost >= gone else ("position", gone)
        problem = f"misses {share:.0%} of its values and has no stretch without holes that is long enough to filter"
        raise LogError(log.info.source, f"{what}.{log.joints[joint]}", f"{problem}; record it again")
    if dead.all():
        raise LogError(log.info.source, "effort", "holds no number; check the recipe's columns")
    every = np.arange(half, len(log) - half)
    left_over = raw[every] - filtered(raw, kernel, every)
    square = float((kernel**2).sum())
    share = max(1.0 - 2.0 * float(kernel[half]) + square, 1e-12)
    white = MAD * np.median(np.abs(left_over), axis=0)
    noise = np.where(white > 0.0, white, left_over.std(axis=0)) * np.sqrt(square / share)
    if not use.all():
        notes = (*notes, note("signals.rows_at_holes", share=1.0 - float(use.mean())))
    return strategy.made(
        log,
        motion,
        torque,
        rows=rows,
        kernel=kernel,
        measured=raw,
        use=None if use.all() else use,
        torque_noise=noise,
        notes=notes,
    )


def without_rest(data: Dataset, speed: float) -> Dataset:
    """The dataset without the rows at which a joint is no faster than `speed`; all of it if nothing would be left."""
    moving = np.abs(data.qd[data.rows]) > speed
    use = moving if data.use is None else moving & data.use
    if moving.all() or not use.any():
        return data
    said = note("signals.rows_at_rest", share=1.0 - float(moving.mean()), speed=speed)
    return replace(data, use=use, notes=(*data.notes, said))


def _near(bad: Mask, rows: Indices, reach: int) -> Mask:
    """Whether a bad sample lies within `reach` of each row, per column."""
    total = np.concatenate([np.zeros((1, bad.shape[1]), dtype=np.int64), np.cumsum(bad, axis=0)])
    return np.asarray(total[np.minimum(rows + reach + 1, len(bad))] > total[np.maximum(rows - reach, 0)])
