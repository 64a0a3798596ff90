"""Single channels: values that are missing, constant, zero or stand out of the noise, which is measured here."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter1d

from armid.arrays import Array, Indices, Mask
from armid.logs.log import Log
from armid.signals.doctor.clock import TimeColumn
from armid.signals.doctor.finding import Finding, at_rows, found
from armid.signals.repair import MAD, over_holes, quantum

EXAMINED = ("position", "velocity", "acceleration", "effort", "current")
EFFORTS = ("effort", "current")
# Exact zeros that a channel jumps to and from are counted from this share of the rows on.
_DROPOUTS, _MOSTLY = 0.01, 0.5
_TRAVEL = 5e-3  # standard deviation of a position that does move [rad or m]
# Zeros of velocity are wrong if the joint goes this share of its way in them; those of effort if the rest has noise.
_MOVING, _NOISY = 0.2, 1e-4
# A jump to zero is this many times the usual change from one sample to the next.
_JUMP = 5.0
_RELEVANT = 2e-3  # height of a spike over the standard deviation of the channel
# Neighbouring blocks of spikes are no single-sample spikes any more: above this share they are noise of another kind.
_SPIKY = 0.05
_BLOCK = 64  # samples over which the local noise is taken
# A cubic through the neighbours at -2, -1, 1, 2 predicts the middle sample. White noise of deviation 1 makes a
# difference of deviation sqrt(1 + 34/36).
_NEIGHBOURS = np.array([1.0, -4.0, 6.0, -4.0, 1.0]) / 6.0
_GAIN = float(np.sqrt(70.0) / 6.0)


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels in order of time, with missing and outlying values over_holes by straight lines.

    Attributes:
        values: channel name to (rows, joints); a column that cannot be used is NaN.
        bad: channel name to the mask of over_holes values.
    """

    values: dict[str, Array]
    bad: dict[str, Mask]

    def usable(self, channel: str) -> Mask:
        """Which joints have the channel."""
        return np.array(~np.isnan(self.values[channel]).any(axis=0))


def examine_channels(log: Log, clock: TimeColumn) -> tuple[Channels, list[Finding]]:
    """Look at each channel on its own and repair it as far as the later checks need."""
    findings: list[Finding] = []
    values: dict[str, Array] = {}
    bad: dict[str, Mask] = {}
    for channel in (name for name in EXAMINED if name in log):
        table = log[channel][clock.rows]
        mask = np.zeros(table.shape, dtype=bool)
        least = _relevant(channel, table)
        for joint in range(table.shape[1]):
            seen, mask[:, joint] = _examine_column(log, clock, channel, joint, table[:, joint], least[joint])
            findings += seen
        values[channel] = np.where((~mask).sum(axis=0) < 2, np.nan, over_holes(table, mask))
        bad[channel] = mask
    return Channels(values, bad), findings


def _examine_column(
    log: Log, clock: TimeColumn, channel: str, joint: int, x: Array, least: float
) -> tuple[list[Finding], Mask]:
    """Findings, and the mask of values that are not to be used."""
    name = log.joints[joint]
    findings: list[Finding] = []

    def say(code: str, rows: Mask | Indices, **more: Any) -> None:
        findings.append(found(code, name, at_rows(clock.time, clock.rows[rows]), channel=channel, **more))

    finite = np.isfinite(x)
    bad = ~finite
    if not finite.any():
        if channel in ("position", *EFFORTS):
            kind = "position" if channel == "position" else "effort"
            findings.append(found(f"{kind}-missing", name, channel=channel))
        return findings, bad
    if not finite.all():
        say("not-a-number", bad, count=int(bad.sum()), share=float(bad.mean()))
    known = x[finite]
    if np.ptp(known) == 0.0:
        if _is_dead(log, channel, joint):
            variant = "spare" if channel in ("velocity", "acceleration") else ""
            findings.append(found("dead-channel", name, variant=variant, channel=channel, value=float(known[0]) + 0.0))
        return findings, np.ones(len(x), dtype=bool) if channel != "position" else bad
    zeros = _dropouts(log, clock, channel, joint, x) & finite
    if zeros.mean() >= _DROPOUTS:
        mostly = bool(zeros.mean() >= _MOSTLY)
        severity = "warning" if channel == "velocity" else ""
        say("mostly-zero" if mostly else "zero-dropouts", zeros, severity=severity, share=float(zeros.mean()))
        bad |= zeros
        if mostly:
            return findings, np.ones(len(x), dtype=bool)
    rows = np.flatnonzero(~bad)
    outlying = rows[spikes(x[rows], least=least)]
    if 0 < len(outlying) <= _SPIKY * len(x):
        say("spikes", outlying, count=len(outlying), height=_height(x, outlying))
        bad[outlying] = True
    return findings, bad


def _relevant(channel: str, table: Array) -> Array:
    """Height of spikes that matter, by joint: a share of the joint's own effort, or of the motion of the whole arm.

    A joint that is held creeps and sticks by less than that.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any value
        some = table[:: 1 + len(table) // 100_000]
        spread = np.nan_to_num(np.nanstd(np.where(np.isfinite(some), some, np.nan), axis=0))
    return np.asarray(_RELEVANT * (spread if channel in EFFORTS else np.full_like(spread, spread.max(initial=0.0))))


def _is_dead(log: Log, channel: str, joint: int) -> bool:
    """Whether a constant channel is a fault: a joint that is held still may well have a constant motion."""
    if channel == "position":
        return _should_move(log, joint)
    if channel not in ("velocity", "acceleration"):
        return True
    position = log["position"][:, joint] if "position" in log else np.zeros(1)
    return bool(np.isfinite(position).any() and np.nanstd(position) > _TRAVEL)


def _should_move(log: Log, joint: int) -> bool:
    """Whether velocity or command say that a joint travels, by more than the noise of a joint at rest."""
    if "command" in log and log.info.mode == "position" and np.nanstd(log["command"][:, joint]) > _TRAVEL:
        return True
    if "velocity" not in log or len(log) < 2:
        return False
    distance = np.nancumsum(log["velocity"][:-1, joint] * np.clip(np.diff(log.time), 0.0, None))
    return bool(np.std(distance) > _TRAVEL)


def _dropouts(log: Log, clock: TimeColumn, channel: str, joint: int, x: Array) -> Mask:
    """Exact zeros that the signal does not pass through but jumps to.

    Zero is a natural value where a joint rests, and of a quantised signal; then the way there and back leads over small
    values. A velocity of zero is not natural where the joint travels; nor is an effort of exactly zero, if its other
    values have noise and no grid.
    """
    zero: Mask = x == 0.0
    if zero.mean() < _DROPOUTS:
        return np.zeros(len(x), dtype=bool)
    if channel in ("velocity", "acceleration") and "position" in log:
        position = log["position"][clock.rows, joint]
        if _travelled(position, zero) > _MOVING:
            return zero
        zero = zero & (np.abs(np.gradient(position)) > 0.0) if len(x) > 2 else zero
    elif channel in EFFORTS:
        values = x[~zero & np.isfinite(x)]
        step = quantum(values)
        if step == 0.0 and noise_level(values) > _NOISY * float(np.std(values)):
            return zero
        if zero.mean() > _MOSTLY and float(np.median(np.abs(values))) > 3.0 * step and _moves(log, joint):
            return zero  # no motor is without torque for most of a motion, unless its torque is below one step
    change = np.abs(np.diff(x))
    inside = change[~zero[1:] & ~zero[:-1] & (change > 0.0)]
    across = change[zero[1:] != zero[:-1]]
    usual = float(np.nanmedian(inside)) if len(inside) else float(np.nanmedian(np.abs(x[~zero])))
    jumps = len(across) > 0 and float(np.nanmedian(across)) > _JUMP * usual
    return zero if jumps else np.zeros(len(x), dtype=bool)


def _moves(log: Log, joint: int) -> bool:
    return "position" in log and bool(np.nanstd(log["position"][:, joint]) > _TRAVEL)


def _travelled(position: Array, zero: Mask) -> float:
    """Share of the way that a joint goes while a mask holds; over ten samples at a time, so that jitter is no way."""
    coarse, there = position[::10], zero[::10]
    way = np.abs(np.diff(coarse))
    both = there[1:] & there[:-1]
    total = float(np.nansum(way))
    return float(np.nansum(way[both])) / total if total > _TRAVEL else 0.0


def _height(x: Array, rows: Indices) -> float:
    """Median distance of the outlying samples from their neighbours."""
    return float(np.median(np.abs(x[rows] - 0.5 * (x[np.maximum(rows - 1, 0)] + x[np.minimum(rows + 1, len(x) - 1)]))))


def roughness(x: Array) -> Array:
    """Difference of each sample and the cubic through its four neighbours, (samples,); 0 at the two ends of each side.

    Smooth motion leaves next to nothing, noise of deviation s leaves s sqrt(70)/6.
    """
    result = np.zeros_like(x)
    if len(x) >= 5:
        result[2:-2] = np.convolve(x, _NEIGHBOURS, mode="valid")
    return result


def noise_level(x: Array) -> float:
    """Standard deviation of white noise in a smooth signal: robust, blind to steps, spikes and slow change."""
    rough = np.abs(roughness(x)[2:-2])
    return MAD * float(np.median(rough)) / _GAIN if len(rough) else 0.0


def spikes(x: Array, factor: float = 8.0, least: float = 0.0) -> Indices:
    """Indices of single samples that stand out of both neighbours and of the noise around them.

    A sample counts if it lies on the same side of both neighbours, farther from the nearer one than `factor` standard
    deviations of the noise (taken locally, from the roughness, or over the whole signal if that is more), five median
    steps between samples (so that a sharp peak does not count), three quanta, and `least`, and if the neighbours are
    twice as near to their own neighbours (so that the peak of a vibration does not count). Steps, as friction makes
    them at reversals, do not count, since one neighbour is near. For Gaussian noise a false alarm with factor 8 has a
    probability below 1e-9 per sample.
    """
    if len(x) < 2 * _BLOCK:
        return np.zeros(0, dtype=np.int64)
    change = np.diff(x)
    height = np.minimum(change[:-1], -change[1:])  # of a peak
    height = np.maximum(height, np.minimum(-change[:-1], change[1:]))  # or of a dip; negative where it is neither
    rough = np.abs(roughness(x))
    usual = MAD / _GAIN * float(np.median(rough[2:-2][:: 1 + len(x) // 100_000]))
    least = max(factor * usual, least, 1e-12 * float(np.ptp(x)))
    if height.max() <= least:
        return np.zeros(0, dtype=np.int64)
    slope = np.abs(np.append(change, 0.0))
    threshold = np.maximum(factor * MAD / _GAIN * _local_median(rough), 5.0 * _local_median(slope))[1:-1]
    threshold = np.maximum(threshold, max(3.0 * quantum(x), least))
    # The neighbours themselves must be near to theirs: the peak of a vibration or a shock of several samples is real.
    before_that, after_that = np.concatenate([[0.0], slope[:-3]]), slope[2:]
    steady = np.maximum(before_that, after_that)
    return np.flatnonzero((height > threshold) & (rough[1:-1] > threshold) & (steady < 0.5 * height)) + 1


def _local_median(values: Array) -> Array:
    """Median over blocks, the largest of three neighbouring blocks, one value per sample."""
    blocks = len(values) // _BLOCK
    medians = np.median(values[: blocks * _BLOCK].reshape(blocks, _BLOCK), axis=1)
    largest = np.repeat(maximum_filter1d(medians, 3, mode="nearest"), _BLOCK)
    return np.concatenate([largest, np.full(len(values) - len(largest), largest[-1])])
