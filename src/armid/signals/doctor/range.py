"""How far, how fast and how finely joints moved: rest, wrong units of angle and time, cut-off and coarse signals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from armid.arrays import Array, Indices, Mask
from armid.logs.log import LogInfo
from armid.robot.robot import Limits
from armid.signals.doctor.channels import EFFORTS, Channels, noise_level, roughness
from armid.signals.doctor.clock import TimeColumn
from armid.signals.doctor.finding import Finding, Where, at_rows, found
from armid.signals.doctor.motion import BEYOND, DEGREES, SPEED, TRAVEL, Track, Travel, bounds
from armid.signals.repair import quantum

# Real time over the log's, and the units that are mistaken for each other to make it so.
_UNITS = {
    1e3: "s where it says ms, ms where it says us, us where it says ns",
    1e6: "s where it says us, ms where it says ns",
    1e9: "s where it says ns",
    1e-3: "ms where it says s, us where it says ms, ns where it says us",
    1e-6: "us where it says s, ns where it says ms",
    1e-9: "ns where it says s",
}
# Motion is recorded between these rates; a mistaken unit must lead there once it is corrected. [Hz]
_SLOWEST, _FASTEST = 5.0, 2e4
_USUAL = 500.0  # of two corrections that would do, the one with the rate nearer to this is named [Hz]
_CREEPING_HZ = 2.0  # below this rate, a motion that is a thousand times too slow needs no other witness
_LIVELY, _FAR = 0.05, 0.1  # speed and travel of the fastest joint of a motion [rad/s, rad; m/s, m]
_GEARS = 100.0  # a motor turns this much faster than joints do
# A stated rate and the velocity channel bear witness to a factor within these.
_RATE, _GAIN = 0.02, 0.2
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


def examine_units(travel: Travel, joints: Sequence[str], limits: Limits | None, side: str) -> Iterator[Finding]:
    """Angles in degrees: far beyond the limits of the arm, or of any arm, but not if divided by 180/pi.

    Without limits a joint is taken to turn by less than two turns and more slowly than 15 rad/s; more turns alone are
    a warning, since a pendulum may well go round and round. A joint that moves little may stay inside even in degrees,
    so that one such joint is enough if all joints come from one source; it is reported for the whole log if at least
    half of the moving joints say so.
    """
    if side == "motor":
        return
    room, fast = bounds(len(joints), limits)
    # Zero and sign may be wrong, so that only the travel counts.
    far = travel.moving & ((travel.distance > BEYOND * room) & (travel.distance < DEGREES * room))
    quick = travel.moving & (travel.speed > fast)
    limited = quick if limits is None else quick | np.isfinite(limits.upper - limits.lower)
    far |= quick
    suspects = np.flatnonzero(far)
    everywhere = len(suspects) >= 0.5 * travel.moving.sum()
    for joint in suspects[:1] if everywhere else suspects:
        worst = int(suspects[np.argmax(travel.distance[suspects] / room[suspects])]) if everywhere else int(joint)
        yield found(
            "degrees",
            None if everywhere else joints[worst],
            confidence=0.5 if not limited[worst] else 0.95 if everywhere else 0.8,
            severity="" if limited[worst] else "warning",
            variant="everywhere" if everywhere else "",
            channel="position",
            lower=float(travel.lower[worst]),
            upper=float(travel.upper[worst]),
            speed=float(travel.speed[worst]),
            of=joints[worst],
            count=len(suspects),
            moving=int(travel.moving.sum()),
        )


def examine_travel(travel: Travel, joints: Sequence[str], limits: Limits | None) -> Iterator[Finding]:
    """Joints that rest or move too little to learn from."""
    known = ~np.isnan(travel.lower)
    resting = [int(j) for j in np.flatnonzero(known & ~travel.moving)]
    # Many resting joints are the plan of an experiment with one joint at a time, one of seven is a surprise.
    planned = len(resting) > 0.5 * known.sum() and travel.moving.any()
    for joint in resting:
        at: dict[str, Any] = {"position": float(travel.lower[joint]), "travel": float(travel.distance[joint])}
        yield found("joint-at-rest", joints[joint], confidence=0.99, severity="info" if planned else "", **at)
    shrunk = _shrunk(travel, limits)
    for joint in map(int, np.flatnonzero(travel.moving)):
        span, speed = float(travel.distance[joint]), float(travel.speed[joint])
        least, slow = TRAVEL, SPEED
        if limits is not None and np.isfinite(limits.upper[joint] - limits.lower[joint]):
            least = min(least, 0.1 * float(limits.upper[joint] - limits.lower[joint]))
        if span >= least and speed >= slow:
            continue
        sure = float(np.clip(1.0 - 0.5 * min(span / least, speed / slow), 0.5, 0.99))
        variant = "shrunk" if shrunk else ""
        yield found("little-motion", joints[joint], confidence=sure, variant=variant, travel=span, speed=speed)


def _shrunk(travel: Travel, limits: Limits | None) -> bool:
    """Whether all joints move so little that 180/pi times as much would be a motion of the arm as well."""
    room, fast = bounds(len(travel.speed), limits)
    small = (DEGREES * travel.distance <= BEYOND * room) & (DEGREES * travel.speed <= fast)
    return bool(small[travel.moving].all())


def examine_standstill(track: Track, travel: Travel) -> Iterator[Finding]:
    """Rest before and after the motion, worth to be trimmed."""
    moving = travel.moving
    if not moving.any():
        return
    speed = np.abs(track.speed()[:, moving]) / travel.speed[moving]
    active = np.flatnonzero((speed > 0.02).any(axis=1))
    before, after = active[0] * track.step, (len(speed) - 1 - active[-1]) * track.step
    least = max(0.5, 0.02 * len(speed) * track.step)
    if before < least and after < least:
        return
    start, stop = track.time(int(active[0])), track.time(int(active[-1]))
    where = Where(f"before {start:.6g} s and after {stop:.6g} s", (), 0, start, stop)
    yield found("standstill", None, where, confidence=0.95, before_s=float(before), after_s=float(after))


def examine_time_unit(
    info: LogInfo, clock: TimeColumn, travel: Travel, limits: Limits | None, velocity: bool, moved: Iterable[Finding]
) -> tuple[float, list[Finding]]:
    """See whether time is off by a power of a thousand.

    Speeds tell too fast a clock (beyond 20 kHz, or too fast even if positions were degrees) from a fast recorder, and
    too slow a one from a slow recorder: they must make sense after the correction. A stated rate and a velocity channel
    count as witnesses.

    Args:
        info: of the log; its rate, and on which side of the gears it is.
        clock: its time column.
        travel: its motion.
        limits: of the arm.
        velocity: whether the log has velocities.
        moved: what was found about them.

    Returns:
        Real time over the log's, 1 if nothing is wrong with it; and the finding.
    """
    if not travel.moving.any():
        return 1.0, []
    room, fast = (bound[travel.moving] for bound in bounds(len(travel.speed), limits))
    speed, distance = travel.speed[travel.moving], travel.distance[travel.moving]
    if info.side == "motor":
        room, fast = np.full_like(room, np.inf), _GEARS * fast
    if (distance > DEGREES * BEYOND * room).any():
        return 1.0, []  # counts of an encoder, perhaps: what a second is cannot be told from them
    if (distance > BEYOND * room).any():  # degrees, which is told apart
        speed = speed / DEGREES
    excess, fastest = float((speed / fast).max()), float(speed.max())
    gains = [float(finding.values["factor"]) for finding in moved if finding.code == "velocity-scale"]
    likely = []
    for factor in _UNITS:
        rate = clock.rate_hz / factor
        if not _SLOWEST <= rate <= _FASTEST or excess > factor or fastest < _LIVELY * factor:
            continue
        agrees = any(_explained(gain, factor) for gain in gains)
        witness = agrees or _stated(info, rate)
        if factor > 1.0:
            wrong = excess > (1.0 if witness or clock.rate_hz > _FASTEST else DEGREES)
        else:  # velocities that are the change of the positions in time speak for the time
            wrong = (agrees or not velocity) and float(distance.max()) > _FAR
            wrong &= witness or clock.rate_hz < _CREEPING_HZ
        if wrong:
            likely.append((not witness, abs(float(np.log(rate / _USUAL))), factor))
    if not likely:
        return 1.0, []
    alone, _, factor = min(likely)
    rate, top = clock.rate_hz, float(travel.speed[travel.moving].max())
    wrong_unit = found(
        "time-unit",
        confidence=0.9 if alone else 0.99,
        factor=factor,
        rate_hz=rate,
        likely_hz=rate / factor,
        speed=top,
        likely_speed=top / factor,
        times=f"{factor:.0f} times larger" if factor > 1.0 else f"{1.0 / factor:.0f} times smaller",
        said=" as the log states" if _stated(info, rate / factor) else "",
        rate=" (or the rate, if there is no column for time)" if _stated(info, rate) else "",
        units=_UNITS[factor],
    )
    return factor, [wrong_unit]


def follows(finding: Finding, factor: float) -> bool:
    """Whether a finding says no more than that time is off by a factor."""
    if factor == 1.0:
        return False
    if finding.code == "rate-differs":
        result: bool = abs(finding.values["actual_hz"] / (factor * finding.values["stated_hz"]) - 1.0) < _RATE
        return result
    return finding.code == "velocity-scale" and abs(finding.values["factor"] * factor - 1.0) < _GAIN


def _explained(gain: float, factor: float) -> bool:
    """Whether velocity over change of position is what the factor makes it, if need be with one of them in degrees."""
    return any(abs(gain * factor * turn - 1.0) < _GAIN for turn in (1.0, DEGREES, 1.0 / DEGREES))


def _stated(info: LogInfo, rate_hz: float) -> bool:
    return info.rate_hz is not None and abs(info.rate_hz / rate_hz - 1.0) < _RATE


def examine_amplitude(
    clock: TimeColumn, channels: Channels, track: Track, joints: tuple[str, ...], moving: Mask
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


def _saturated(clock: TimeColumn, channel: str, joint: str, x: Array, good: Mask, step: float) -> Iterator[Finding]:
    span = float(np.ptp(x[good]))
    tolerance = max(1e-9 * span, 0.25 * step)
    rows: list[Indices] = []
    cuts = []
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
        cuts.append(sign * top)
    if not rows:
        return
    index = np.sort(np.concatenate(rows))
    share = len(index) / len(x)
    yield found(
        "saturated",
        joint,
        at_rows(clock.time, clock.rows[index]),
        confidence=float(np.clip(1.0 - 1.0 / len(index), 0.5, 0.99)),
        severity="error" if share > 0.05 else "",
        channel=channel,
        count=len(index),
        share=share,
        bounds=cuts,
        level=" and ".join(f"{bound:.4g}" for bound in sorted(cuts)),
    )


def _longest(held: Mask) -> int:
    """Length of the longest run."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max()) if len(edges) else 0


def _quantised(track: Track, channel: str, joint: int, name: str, x: Array, step: float) -> Iterator[Finding]:
    error = step / np.sqrt(12.0)
    share = _acceleration_error(track, joint, error) if channel == "position" else error / float(np.std(x))
    # All noise between neighbouring samples, rounding included. Its share in this is small where noise dithers it.
    rough = roughness(x)[2:-2]
    squares = np.minimum(rough**2, 25.0 * np.median(rough**2) + error**2)
    whole = max(float(np.sqrt(np.mean(squares) / (70.0 / 36.0))), 1e-300)
    dominant = (error / max(whole, noise_level(x))) ** 2 > _DOMINANT
    coarse = share > _COARSE[channel] and dominant
    if not coarse and share < _WORTH * _COARSE[channel]:
        return
    variant = " ".join(word for word, fits in (("coarse", coarse), ("position", channel == "position")) if fits)
    yield found("quantised", name, confidence=0.95, variant=variant, channel=channel, step=step, share=share)


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
