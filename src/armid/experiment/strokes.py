"""Strokes at constant speed in velocity mode, one joint at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.experiment.drive import Arm, Recording
from armid.experiment.driving import ExperimentError, joined, paces, rate_of
from armid.robot.robot import Limits

SETTLE_S = 0.5  # of a stroke that is left to the velocity loop
SETTLE_ANGLE = 0.008  # [rad or m] that gears and loops need to wind up before a slow motion is steady
PAUSE_S = 0.1  # between strokes


def stroke(speed: float, cruise_s: float, acceleration: float, rate_hz: float) -> Array:
    """Velocity commands of one stroke: ramp, cruise, ramp [rad/s or m/s]."""
    ramp = max(1, int(np.ceil(abs(speed) / acceleration * rate_hz)))
    rising = speed * np.arange(1, ramp) / ramp
    cruise = np.full(max(1, round(cruise_s * rate_hz)), speed)
    return np.concatenate([rising, cruise, rising[::-1], np.zeros(max(1, round(PAUSE_S * rate_hz)))])


def plan_strokes(speed: float, seconds: float, room: float, acceleration: float) -> tuple[int, float]:
    """How many strokes, each in both directions, and the length of their cruise [s] for `seconds` of steady motion.

    Raises:
        ExperimentError: there is no room for a steady part at this speed.
    """
    lead, steady = lead_in(speed), longest_steady(speed, room, acceleration)
    if steady < 0.1:
        raise ExperimentError(
            f"{speed:.3g} rad/s is too fast for a range of {room:.3g} rad: accelerating at {acceleration:.3g} rad/s^2 "
            "leaves no steady part; use slower speeds or a wider range"
        )
    strokes = int(np.ceil(seconds / steady - 1e-9))
    return strokes, seconds / strokes + lead


def longest_steady(speed: float, room: float, acceleration: float) -> float:
    """Longest steady part of a stroke inside `room` [s]; negative if there is none."""
    return 0.98 * room / speed - speed / acceleration - lead_in(speed)


def lead_in(speed: float) -> float:
    """Start of a cruise that is not yet steady [s]."""
    return max(SETTLE_S, SETTLE_ANGLE / abs(speed))


def drive_strokes(
    arm: Arm,
    index: int,
    speed: float,
    seconds: float,
    posture: ArrayLike,
    room: tuple[float, float],
    limits: Limits,
) -> Recording:
    """Drive one joint up and down at one speed about the middle of `room`; the arm must be in velocity mode.

    Args:
        arm: what is driven.
        index: of the joint, from 0.
        speed: positive [rad/s or m/s].
        seconds: of steady motion in each direction.
        posture: of the other joints.
        room: ends of the joint's range [rad or m].
        limits: of the arm, for the accelerations.
    """
    bend = float(paces(limits, len(arm.info.joints))[1][index])
    rate = rate_of(arm)
    passes, cruise = plan_strokes(speed, seconds, room[1] - room[0], bend)
    up = stroke(speed, cruise, bend, rate)
    start = np.array(posture, dtype=float)
    start[index] = 0.5 * (room[0] + room[1]) - 0.5 * float(up.sum()) / rate
    parts = []
    for _ in range(passes):
        go_back(arm, start, limits)
        commands = np.zeros((2 * len(up), len(start)))
        commands[:, index] = np.concatenate([up, -up])
        parts.append(arm.stream(commands))
    return joined(parts)


def go_back(arm: Arm, posture: Array, limits: Limits) -> None:
    """Go to a posture in velocity mode, without recording; makes up for what has drifted."""
    way = posture - arm.state().position
    speed, bend = paces(limits, len(way))
    lengths = np.maximum(2.0 * np.abs(way) / speed, np.sqrt(2.0 * np.pi * np.abs(way) / bend))
    length = max(float(lengths.max()), 0.1)
    count = max(2, int(np.ceil(length / arm.cycle_s)))
    bell = 1.0 - np.cos(2.0 * np.pi * (np.arange(count) + 0.5) / count)
    rest = np.zeros((max(1, round(PAUSE_S / arm.cycle_s)), len(way)))
    arm.stream(np.vstack([bell[:, None] * way / (count * arm.cycle_s), rest]))
