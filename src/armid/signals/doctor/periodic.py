"""Periodic motion: its period, and whether the first period is like the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array, Mask
from armid.logs.log import Log, LogInfo
from armid.signals.doctor.finding import Finding, Where, found
from armid.signals.doctor.motion import Track
from armid.signals.period import find_period

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
    where = Where(f"from {start:.6g} s on", (), 0, start, start + period.repeats * period.length_s)
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
