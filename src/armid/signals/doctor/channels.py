"""Single channels: values that are missing, constant, zero or stand out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.logs.log import Log
from armid.signals.doctor.clock import Clock
from armid.signals.doctor.finding import Finding, Where, at_rows, plural
from armid.signals.doctor.noise import noise_level, quantum, spikes

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


@dataclass(frozen=True, eq=False)
class Channels:
    """The channels in order of time, with missing and outlying values bridged by straight lines.

    Attributes:
        values: channel name to (rows, joints); a column that cannot be used is NaN.
        bad: channel name to the mask of bridged values.
    """

    values: dict[str, Array]
    bad: dict[str, NDArray[np.bool_]]

    def usable(self, channel: str) -> NDArray[np.bool_]:
        """Which joints have the channel."""
        return np.array(~np.isnan(self.values[channel]).any(axis=0))


def examine_channels(log: Log, clock: Clock) -> tuple[Channels, list[Finding]]:
    """Look at each channel on its own and repair it as far as the later checks need."""
    findings: list[Finding] = []
    values: dict[str, Array] = {}
    bad: dict[str, NDArray[np.bool_]] = {}
    for channel in (name for name in EXAMINED if name in log):
        table = log[channel][clock.rows]
        mask = np.zeros(table.shape, dtype=bool)
        least = _relevant(channel, table)
        for joint in range(table.shape[1]):
            found, mask[:, joint] = _examine_column(log, clock, channel, joint, table[:, joint], least[joint])
            findings += found
        values[channel], bad[channel] = _bridged(table, mask), mask
    return Channels(values, bad), findings


def _examine_column(
    log: Log, clock: Clock, channel: str, joint: int, x: Array, least: float
) -> tuple[list[Finding], NDArray[np.bool_]]:
    """Findings, and the mask of values that are not to be used."""
    name, time = log.joints[joint], clock.time
    finite = np.isfinite(x)
    bad = ~finite
    if not finite.any():
        return list(_missing(channel, name)), bad
    findings: list[Finding] = []
    if not finite.all():
        findings.append(_nan(channel, name, at_rows(time, clock.rows[bad]), int(bad.sum()), len(x)))
    known = x[finite]
    if np.ptp(known) == 0.0:
        findings += _dead(log, channel, joint, float(known[0]))
        return findings, np.ones(len(x), dtype=bool) if channel != "position" else bad
    zeros = _dropouts(log, clock, channel, joint, x) & finite
    if zeros.mean() >= _DROPOUTS:
        findings.append(_zero(channel, name, at_rows(time, clock.rows[zeros]), float(zeros.mean())))
        bad |= zeros
        if zeros.mean() >= _MOSTLY:
            return findings, np.ones(len(x), dtype=bool)
    rows = np.flatnonzero(~bad)
    found = rows[spikes(x[rows], least=least)]
    if 0 < len(found) <= _SPIKY * len(x):
        findings.append(_spikes(channel, name, at_rows(time, clock.rows[found]), _height(x, found), len(found)))
        bad[found] = True
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


def _bridged(table: Array, bad: NDArray[np.bool_]) -> Array:
    """Straight lines over bad values; a column without two good ones becomes NaN."""
    result = table.copy()
    index = np.arange(len(table))
    for joint in np.flatnonzero(bad.any(axis=0)):
        good = ~bad[:, joint]
        if good.sum() < 2:
            result[:, joint] = np.nan
        else:
            result[~good, joint] = np.interp(index[~good], index[good], table[good, joint])
    return result


def _missing(channel: str, joint: str) -> Iterator[Finding]:
    if channel == "position" or channel in EFFORTS:
        yield Finding(
            f"{'position' if channel == 'position' else 'effort'}-missing",
            "error" if channel == "position" else "warning",
            joint,
            Where(),
            1.0,
            f"There is no {channel} of {joint}.",
            f"Check the recipe's columns; without it nothing can be learnt about the {channel} of this joint.",
        )


def _nan(channel: str, joint: str, where: Where, count: int, total: int) -> Finding:
    return Finding(
        "not-a-number",
        "warning",
        joint,
        where,
        1.0,
        f"{plural(count, 'value')} ({count / total:.2%}) of the {channel} of {joint} "
        f"{'is no number' if count == 1 else 'are not numbers'}.",
        "Bridge short stretches by interpolation and leave long ones out; find out why the recorder lost them.",
        {"channel": channel, "count": count, "share": count / total},
    )


def _dead(log: Log, channel: str, joint: int, value: float) -> Iterator[Finding]:
    """A constant channel; a joint that is held still may well have a constant position and velocity."""
    name = log.joints[joint]
    if channel == "position":
        if not _should_move(log, joint):
            return
    elif channel in ("velocity", "acceleration"):
        position = log["position"][:, joint] if "position" in log else np.zeros(1)
        if not np.isfinite(position).any() or not np.nanstd(position) > _TRAVEL:
            return
    yield Finding(
        "dead-channel",
        "error" if channel in ("position", *EFFORTS) else "warning",
        name,
        Where(),
        1.0,
        f"The {channel} of {name} is {value:.6g} in all rows.",
        "Check the wiring, the recorder and the recipe's column; leave this channel out."
        if channel in ("velocity", "acceleration")
        else "Check the wiring, the recorder and the recipe's column; this joint cannot be identified from this log.",
        {"channel": channel, "value": value},
    )


def _should_move(log: Log, joint: int) -> bool:
    """Whether velocity or command say that a joint travels, by more than the noise of a joint at rest."""
    if "command" in log and log.info.mode == "position" and np.nanstd(log["command"][:, joint]) > _TRAVEL:
        return True
    if "velocity" not in log or len(log) < 2:
        return False
    distance = np.nancumsum(log["velocity"][:-1, joint] * np.clip(np.diff(log.time), 0.0, None))
    return bool(np.std(distance) > _TRAVEL)


def _dropouts(log: Log, clock: Clock, channel: str, joint: int, x: Array) -> NDArray[np.bool_]:
    """Exact zeros that the signal does not pass through but jumps to.

    Zero is a natural value where a joint rests, and of a quantised signal; then the way there and back leads over small
    values. A velocity of zero is not natural where the joint travels; nor is an effort of exactly zero, if its other
    values have noise and no grid.
    """
    zero = x == 0.0
    if zero.mean() < _DROPOUTS:
        return np.zeros(len(x), dtype=bool)
    if channel in ("velocity", "acceleration") and "position" in log:
        position = log["position"][clock.rows, joint]
        if _travelled(position, zero) > _MOVING:
            return zero
        zero = zero & (np.abs(np.gradient(position)) > 0.0) if len(x) > 2 else zero
    elif channel in EFFORTS:
        values = x[~zero & np.isfinite(x)]
        if quantum(values) == 0.0 and noise_level(values) > _NOISY * float(np.std(values)):
            return zero
    change = np.abs(np.diff(x))
    inside = change[~zero[1:] & ~zero[:-1] & (change > 0.0)]
    across = change[zero[1:] != zero[:-1]]
    usual = float(np.nanmedian(inside)) if len(inside) else float(np.nanmedian(np.abs(x[~zero])))
    jumps = len(across) > 0 and float(np.nanmedian(across)) > _JUMP * usual
    return zero if jumps else np.zeros(len(x), dtype=bool)


def _travelled(position: Array, zero: NDArray[np.bool_]) -> float:
    """Share of the way that a joint goes while a mask holds; over ten samples at a time, so that jitter is no way."""
    coarse, there = position[::10], zero[::10]
    way = np.abs(np.diff(coarse))
    both = there[1:] & there[:-1]
    total = float(np.nansum(way))
    return float(np.nansum(way[both])) / total if total > _TRAVEL else 0.0


def _zero(channel: str, joint: str, where: Where, share: float) -> Finding:
    mostly = share >= _MOSTLY
    return Finding(
        "mostly-zero" if mostly else "zero-dropouts",
        "error" if mostly and channel != "velocity" else "warning",
        joint,
        where,
        1.0,
        f"The {channel} of {joint} is exactly 0 in {share:.1%} of the rows and jumps to and from it.",
        "The source was slower than the recorder or lost its link: keep only the rows with values, or record again.",
        {"channel": channel, "share": share},
    )


def _height(x: Array, rows: NDArray[np.int64]) -> float:
    """Median distance of the outlying samples from their neighbours."""
    return float(np.median(np.abs(x[rows] - 0.5 * (x[np.maximum(rows - 1, 0)] + x[np.minimum(rows + 1, len(x) - 1)]))))


def _spikes(channel: str, joint: str, where: Where, height: float, count: int) -> Finding:
    return Finding(
        "spikes",
        "warning",
        joint,
        where,
        0.99,
        f"{plural(count, 'single sample')} of the {channel} of {joint} {'stands' if count == 1 else 'stand'} out of "
        f"the noise, by {height:.3g}{'' if count == 1 else ' at the median'}.",
        "Replace them before filtering (Hampel filter): a low-pass would spread them over their neighbours.",
        {"channel": channel, "count": count, "height": height},
    )
