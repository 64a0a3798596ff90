"""Velocity against the derivative of position: sign, unit, order of joints, lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from armid.arrays import Array, Mask
from armid.signals.doctor.finding import Finding, found
from armid.signals.doctor.motion import DEGREES, Track
from armid.signals.filters import central_differences, low_pass

_ENOUGH = 200_000  # samples from the middle of the log that are compared
_SEGMENTS = 8  # the lag is estimated on each, and its uncertainty from their scatter
# Below this correlation velocity and position tell different stories; above the higher one they tell the same.
_UNRELATED, _RELATED = 0.5, 0.9
# A lag matters if it changes the velocity by this much of its rms, and is more than the half sample of a difference.
_EFFECT, _SAMPLES, _SIGMAS = 0.005, 0.75, 5.0
_SCALE = 0.1  # factors nearer to one than this are left to calibration
_DROOP = 0.03  # loss of amplitude at the bandwidth that counts


def examine_velocity(track: Track, joints: tuple[str, ...], moving: Mask) -> list[Finding]:
    """Compare the velocity channel with the derivative of position, joint by joint, where the joint moves."""
    if "velocity" not in track.channels:
        return []
    middle = len(track.channels["velocity"]) // 2
    part = slice(max(0, middle - _ENOUGH // 2), middle + _ENOUGH // 2)
    rate = track.speed()[part]
    stated = low_pass(track.channels["velocity"][part], track.rate_hz, track.cutoff_hz)
    usable = moving & ~np.isnan(stated).any(axis=0) & ~np.isnan(rate).any(axis=0)
    edge = min(len(rate) // 10, int(track.rate_hz / track.cutoff_hz) + 2)
    rate, stated = rate[edge : len(rate) - edge], stated[edge : len(stated) - edge]
    related = _correlation(stated, rate)
    findings: list[Finding] = []
    swapped: set[int] = set()
    for a in np.flatnonzero(usable):
        own = related[a, a]
        if abs(own) >= _RELATED:
            findings += _same_story(track, joints[a], stated[:, a], rate[:, a])
        elif a not in swapped and abs(own) < _RELATED:
            other = int(np.argmax(np.abs(related[a])))
            if other != a and abs(related[a, other]) > 0.97 and abs(related[other, other]) < _RELATED:
                swapped |= {int(a), other}
                cross = float(abs(related[a, other]))
                values: dict[str, Any] = {"channel": "velocity", "correlation": cross, "own": float(own)}
                for first, second in ((joints[a], joints[other]), (joints[other], joints[a])):
                    findings.append(found("swapped-joints", first, confidence=0.99, **values | {"with": second}))
            elif abs(own) < _UNRELATED:
                findings.append(found("velocity-unrelated", joints[a], confidence=0.9, correlation=float(own)))
    return findings


def _correlation(x: Array, y: Array) -> Array:
    """Correlation of each column of `x` with each of `y`; 0 where one is constant or missing."""

    def normal(z: Array) -> Array:
        centred = z - z.mean(axis=0)
        size = np.sqrt((centred**2).sum(axis=0))
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = np.nan_to_num(centred / size, posinf=0.0, neginf=0.0)
            return result

    return normal(x).T @ normal(y)


def _same_story(track: Track, joint: str, stated: Array, rate: Array) -> Iterator[Finding]:
    gain = float(stated @ rate / (rate @ rate))
    if gain < 0.0:
        yield found("sign-flipped", joint, confidence=0.99, channel="velocity", factor=gain)
    size = abs(gain)
    if abs(size / DEGREES - 1.0) < 0.2 or abs(size * DEGREES - 1.0) < 0.2:
        channel = "velocity" if size > 1.0 else "position"
        yield found("degrees", joint, confidence=0.99, variant="velocity", channel=channel, factor=size)
    elif abs(size - 1.0) > _SCALE:
        yield found("velocity-scale", joint, confidence=0.95, factor=size)
    yield from _lag(track, joint, stated * np.sign(gain), rate)


def _lag(track: Track, joint: str, stated: Array, rate: Array) -> Iterator[Finding]:
    """Delay from v(t) = g r(t - d), that is v = g r - g d dr/dt by least squares, r being the derivative of position.

    On each of eight segments, so that their scatter tells the uncertainty without a model of the noise.
    """
    acceleration = central_differences(rate, track.rate_hz)
    parts = [np.array_split(x, _SEGMENTS) for x in (stated, rate, acceleration)]
    pairs = [np.linalg.lstsq(np.column_stack([r, -a]), v, rcond=None)[0] for v, r, a in zip(*parts, strict=True)]
    weight = np.array([float(a @ a) for a in parts[2]])
    slope = np.array([late / gain if gain > 0.0 else 0.0 for gain, late in pairs])
    delay = float(weight @ slope / weight.sum())
    spread = float(np.sqrt((weight**2) @ (slope - delay) ** 2)) / float(weight.sum())
    spread *= float(np.sqrt(_SEGMENTS / (_SEGMENTS - 1.0)))
    effect = abs(delay) * float(np.std(acceleration)) / float(np.std(rate))
    late = abs(delay) > max(_SAMPLES * track.step, _SIGMAS * spread) and effect > _EFFECT
    droop, droop_error = _droop(track, stated, rate)
    if late:
        yield found(
            "velocity-lag",
            joint,
            confidence=float(np.clip(1.0 - (2.0 * spread / abs(delay)) ** 2, 0.5, 0.99)),
            lag_s=delay,
            uncertainty_s=spread,
            droop=droop,
            word="lags behind" if delay > 0.0 else "is ahead of",
            filtered=f", and has lost {droop:.1%} of its amplitude in the upper half of the band" * (droop > 0.01),
        )
    elif droop > max(_DROOP, _SIGMAS * droop_error):
        yield found("velocity-filtered", joint, confidence=0.9, droop=droop)


def _droop(track: Track, stated: Array, rate: Array) -> tuple[float, float]:
    """How much less amplitude the upper half of the motion's band has than the lower, and its standard error.

    Only lines that stand far above the rest count, since noise in the derivative of position looks like a loss.
    """
    length = len(rate) // _SEGMENTS
    window, shape = np.hanning(length)[:, None], (length, _SEGMENTS)
    r, v = (
        np.fft.rfft(window * (x - x.mean(axis=0)), axis=0)
        for x in (y[: length * _SEGMENTS].reshape(shape, order="F") for y in (rate, stated))
    )
    frequency = np.fft.rfftfreq(length, track.step)
    band = (frequency > 0.0) & (frequency < track.cutoff_hz)
    cross, power = np.abs(np.conj(r) * v)[band], (np.abs(r) ** 2)[band]
    top = frequency[band] > 0.5 * track.bandwidth_hz
    strong = power > 0.02 * power.max(axis=0)
    gains = []
    for part in (strong & top[:, None], strong & ~top[:, None]):
        if not part.any(axis=0).all():
            return 0.0, 0.0
        gains.append(np.where(part, cross, 0.0).sum(axis=0) / np.where(part, power, 0.0).sum(axis=0))
    ratio = gains[0] / gains[1]
    return 1.0 - float(ratio.mean()), float(ratio.std() / np.sqrt(_SEGMENTS - 1.0))
