"""Amplitude of a channel: cut off at a limit, or coarse steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.signals.doctor.channels import EFFORTS, Channels
from armid.signals.doctor.clock import Clock
from armid.signals.doctor.finding import Finding, Where, at_rows, plural
from armid.signals.doctor.motion import Track
from armid.signals.doctor.noise import noise_level, quantum, roughness

# Samples at the extreme value itself, in runs, make a plateau.
_RUN, _PLATEAU = 3, 6
# On a quantised signal the top level is naturally held for a while; a cut one holds it this many times longer than the
# level below. For a parabola the ratio is 1 / (sqrt(2) - 1) = 2.4 at the most.
_PILE = 6.0
# Rounding error (step / sqrt(12)) that counts: this much of the effort's standard deviation, this much of the
# velocity's, and for position this much of the acceleration after a low-pass at ten times the bandwidth.
_COARSE = {"effort": 0.01, "current": 0.01, "velocity": 0.01, "position": 0.05}
_WORTH = 0.2  # of that, from where on it is told at all
# Below this share of the whole noise, rounding is not what limits the signal.
_DOMINANT = 0.25


def examine_amplitude(
    clock: Clock, channels: Channels, track: Track, joints: tuple[str, ...], moving: NDArray[np.bool_]
) -> Iterator[Finding]:
    """Look for plateaus at the extremes of efforts, and for coarse steps in all channels."""
    for channel, values in channels.values.items():
        if channel not in _COARSE:
            continue
        for joint in np.flatnonzero(channels.usable(channel)):
            good = ~channels.bad[channel][:, joint]
            x = values[:, joint]
            step = quantum(x[good])
            if channel in EFFORTS and moving[joint]:
                yield from _saturated(clock, channel, joints[joint], x, good, step)
            if step > 0.0 and moving[joint]:
                yield from _quantised(track, channel, int(joint), joints[joint], x[good], step)


def _saturated(
    clock: Clock, channel: str, joint: str, x: Array, good: NDArray[np.bool_], step: float
) -> Iterator[Finding]:
    span = float(np.ptp(x[good]))
    tolerance = max(1e-9 * span, 0.25 * step)
    rows: list[NDArray[np.int64]] = []
    bounds = []
    for sign in (1.0, -1.0):
        y = sign * x
        top = float(y[good].max())
        held = good & (y >= top - tolerance)
        count = int(held.sum())
        below = int((good & (y < top - tolerance) & (y >= top - max(1.5 * step, 0.005 * span))).sum())
        # A bound is held for several samples at a time, on several occasions or for long.
        if count < _PLATEAU or _longest(held) < _RUN:
            continue
        if step > 0.0 and count < _PILE * max(below, 1):
            continue
        rows.append(np.flatnonzero(held))
        bounds.append(sign * top)
    if not rows:
        return
    index = np.sort(np.concatenate(rows))
    share = len(index) / len(x)
    level = " and ".join(f"{bound:.4g}" for bound in sorted(bounds))
    yield Finding(
        "saturated",
        "error" if share > 0.05 else "warning",
        joint,
        at_rows(clock.time, clock.rows[index]),
        float(np.clip(1.0 - 1.0 / len(index), 0.5, 0.99)),
        f"The {channel} of {joint} is cut off at {level} for {plural(len(index), 'sample')} ({share:.2%}).",
        "Leave these samples out; drive the arm more slowly, or widen the range of the measurement.",
        {"channel": channel, "count": len(index), "share": share, "bounds": bounds},
    )


def _longest(held: NDArray[np.bool_]) -> int:
    """Length of the longest run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def _quantised(track: Track, channel: str, joint: int, name: str, x: Array, step: float) -> Iterator[Finding]:
    error = step / np.sqrt(12.0)
    if channel == "position":
        share = _acceleration_error(track, joint, error)
        relative = "of the acceleration after a low-pass at ten times the motion's bandwidth"
    else:
        share = error / float(np.std(x))
        relative = "of its own variation"
    # All noise between neighbouring samples, rounding included. Its share in this is small where noise dithers it.
    rough = roughness(x)[2:-2]
    squares = np.minimum(rough**2, 25.0 * np.median(rough**2) + error**2)
    whole = max(float(np.sqrt(np.mean(squares) / (70.0 / 36.0))), 1e-300)
    dominant = (error / max(whole, noise_level(x))) ** 2 > _DOMINANT
    coarse = share > _COARSE[channel] and dominant
    if not coarse and share < _WORTH * _COARSE[channel]:
        return
    yield Finding(
        "quantised",
        "warning" if coarse else "info",
        name,
        Where(),
        0.95,
        f"The {channel} of {name} comes in steps of {step:.3g}; rounding makes an error of {share:.2%} {relative}.",
        "Record with more digits or a finer range; average over periods, which helps where noise dithers the steps."
        if coarse
        else "Nothing to do: noise or motion is larger than the steps.",
        {"channel": channel, "step": step, "share": share},
    )


def _acceleration_error(track: Track, joint: int, error: float) -> float:
    """Rounding error of position in the acceleration, relative to its rms, after a low-pass at 10 times the bandwidth.

    White rounding noise of deviation e at rate r has after an ideal low-pass at f the second derivative
    e (2 pi f)^2 sqrt(2 f / (5 r)).
    """
    x = track.smooth("position")[:, joint]
    acceleration = np.diff(x, 2) / track.step**2
    cutoff = min(10.0 * track.bandwidth_hz, 0.5 * track.rate_hz)
    made = error * (2.0 * np.pi * cutoff) ** 2 * np.sqrt(2.0 * cutoff / (5.0 * track.rate_hz))
    return float(made / max(float(np.std(acceleration)), 1e-300))
