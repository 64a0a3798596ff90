"""Time in another unit than the log was told: rate and speeds off by a power of a thousand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from armid.logs.log import LogInfo
from armid.robot.robot import Limits
from armid.signals.doctor.clock import Clock
from armid.signals.doctor.finding import Finding, Where
from armid.signals.doctor.range import BEYOND, DEGREES, Travel, bounds

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


def examine_time_unit(
    info: LogInfo, clock: Clock, travel: Travel, limits: Limits | None, velocity: bool, moved: Iterable[Finding]
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
    found = []
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
            found.append((not witness, abs(float(np.log(rate / _USUAL))), factor))
    if not found:
        return 1.0, []
    alone, _, factor = min(found)
    return factor, [
        _finding(info, clock.rate_hz, float(travel.speed[travel.moving].max()), factor, 0.9 if alone else 0.99)
    ]


def follows(finding: Finding, factor: float) -> bool:
    """Whether a finding says no more than that time is off by a factor."""
    if factor == 1.0:
        return False
    if finding.code == "rate-differs":
        return abs(finding.values["actual_hz"] / (factor * finding.values["stated_hz"]) - 1.0) < _RATE
    return finding.code == "velocity-scale" and abs(finding.values["factor"] * factor - 1.0) < _GAIN


def _explained(gain: float, factor: float) -> bool:
    """Whether velocity over change of position is what the factor makes it, if need be with one of them in degrees."""
    return any(abs(gain * factor * turn - 1.0) < _GAIN for turn in (1.0, DEGREES, 1.0 / DEGREES))


def _stated(info: LogInfo, rate_hz: float) -> bool:
    return info.rate_hz is not None and abs(info.rate_hz / rate_hz - 1.0) < _RATE


def _finding(info: LogInfo, rate_hz: float, fastest: float, factor: float, sure: float) -> Finding:
    likely = rate_hz / factor
    times = f"{factor:.0f} times larger" if factor > 1.0 else f"{1.0 / factor:.0f} times smaller"
    said = " as the log states" if _stated(info, likely) else ""
    rate = " (or the rate, if there is no column for time)" if _stated(info, rate_hz) else ""
    return Finding(
        "time-unit",
        "error",
        None,
        Where(),
        sure,
        f"The timestamps say {_plain(rate_hz)} samples per second and a joint at {_plain(fastest)} per second: the "
        f"unit of time seems to be {times} than stated, which makes {_plain(likely)} Hz{said} and "
        f"{_plain(fastest / factor)} per second.",
        f"Correct the unit of time in the recipe{rate}: {_UNITS[factor]}.",
        {"factor": factor, "rate_hz": rate_hz, "likely_hz": likely},
    )


def _plain(value: float) -> str:
    """Three digits without powers of ten, unless it is tiny or huge."""
    return f"{float(f'{value:.3g}'):.12g}"
