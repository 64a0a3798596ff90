"""One joint at constant speeds in both directions: without gravity for friction, loaded by it for what load costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.excitation.sequence import paces
from armid.experiment.drive import (
    Arm,
    ExperimentError,
    Recording,
    check_arm,
    joined,
    joint_number,
    move_to,
    range_of,
    rate_of,
    to_log,
)
from armid.experiment.gravity_free import Posture, gravity_free, gravity_loaded
from armid.experiment.warm_up import exercise
from armid.logs.log import Log
from armid.progress import report_progress
from armid.robot.robot import Limits, Robot

SETTLE_S = 0.5  # of a stroke that is left to the velocity loop
SETTLE_ANGLE = 0.008  # [rad or m] that gears and loops need to wind up before a slow motion is steady
PAUSE_S = 0.1  # between strokes
SLOWEST = 1e-5  # [rad/s or m/s] that is driven: SETTLE_ANGLE takes a quarter of an hour
MODERATE = 0.2  # of the joint's largest speed, for loaded strokes


@dataclass(frozen=True, eq=False)
class FrictionRun:
    """What strokes at constant speed give.

    Attributes:
        log: of all strokes, velocity mode.
        joint: index of the joint, from 0.
        posture: where it was done, and why there.
        speeds: [rad/s or m/s], positive; each was driven in both directions.
        seconds: the whole experiment took [s].
    """

    log: Log
    joint: int
    posture: Posture
    speeds: Array
    seconds: float


def pa10_speeds(fastest: float, count: int = 24) -> Array:
    """Speeds of the PA-10 paper: 0.001 rad/s to 60 % of the joint's maximum [rad/s]; spaced evenly on a log scale."""
    if not fastest > 0.01:
        raise ExperimentError(f"the joint's largest speed is {fastest:g}; the PA-10 grid needs it, above 0.01 rad/s")
    return np.geomspace(0.001, 0.6 * fastest, count)


def powerball_speeds() -> Array:
    """Speeds of the Powerball paper [rad/s]: 11 from 0.01 to 0.2, then 7 up to 0.55."""
    return np.concatenate([np.linspace(0.01, 0.2, 11), np.linspace(0.2, 0.55, 8)[1:]])


def default_speeds(robot: Robot, index: int) -> Array:
    """The PA-10 grid where the joint's speed limit is known, else the Powerball's."""
    fastest = float(robot.limits.velocity[index])
    return powerball_speeds() if np.isnan(fastest) else pa10_speeds(fastest)


def friction_sweep(
    arm: Arm,
    robot: Robot,
    joint: int | str,
    *,
    speeds: ArrayLike | None = None,
    seconds: float = 15.0,
    posture: ArrayLike | None = None,
    warm_up_s: float = 0.0,
) -> FrictionRun:
    """Measure friction torque against speed (PA-10 II.B, Powerball II.C): steady strokes in velocity mode.

    Slow strokes take little angle about the middle of the joint's range, fast ones are repeated until each direction
    has been steady for `seconds`. `friction_points` takes the mean per speed from the log.

    Args:
        arm: what is driven.
        robot: its description; its gravity is that of the present mounting.
        joint: number from 1, or name.
        speeds: positive [rad/s or m/s]; `pa10_speeds` or `powerball_speeds`.
        seconds: of steady motion per speed and direction. A mean over n samples has the noise's 1 / sqrt(n).
        posture: of all joints [rad]; found by `gravity_free` if not given.
        warm_up_s: time of moderate motion beforehand; the PA-10 paper takes 60 s.

    Raises:
        ExperimentError: gravity acts on the joint in every posture of the present mounting; says which one would do.
    """
    check_arm(arm, robot)
    found = gravity_free(robot, joint) if posture is None else _given(robot, joint, posture)
    index = found.joint
    if not found.as_mounted:
        down = " ".join(f"{value:g}" for value in found.gravity)
        raise ExperimentError(
            f"gravity acts on joint {index + 1} of {robot.name} in every posture as it is mounted; mount it with "
            f"{found.mounting} (gravity {down}), or give a posture"
        )
    v = default_speeds(robot, index) if speeds is None else np.sort(np.asarray(speeds, dtype=float))
    if v.ndim != 1 or not len(v) or not np.all(v >= SLOWEST):
        raise ExperimentError(f"give speeds of at least {SLOWEST:g}; both directions are driven anyway")
    began = arm.state().time
    move_to(arm, found.position, robot.limits)
    if warm_up_s > 0.0:
        exercise(arm, robot, index, found.position, warm_up_s)
        move_to(arm, found.position, robot.limits)
    room = range_of(robot.limits, index, float(found.position[index]))
    arm.set_mode("velocity")
    parts = []
    for k, speed in enumerate(v):
        parts.append(drive_strokes(arm, index, float(speed), seconds, found.position, room, robot.limits))
        report_progress(f"joint {index + 1}: {speed:.4g} rad/s", (k + 1) / len(v))
    history = {"procedure": "friction sweep", "joint": index + 1, "speeds": v.tolist(), "seconds": seconds}
    log = to_log(arm, joined(parts), "velocity", history, gravity=tuple(float(g) for g in robot.gravity))
    return FrictionRun(log, index, found, v, float(arm.state().time) - began)


def moderate_speed(robot: Robot, index: int) -> float:
    """A fifth of the joint's largest speed, or 0.2 rad/s."""
    fastest = float(robot.limits.velocity[index])
    return 0.2 if np.isnan(fastest) else MODERATE * fastest


def load_friction_run(
    arm: Arm,
    robot: Robot,
    joint: int | str,
    *,
    speed: float | None = None,
    seconds: float = 60.0,
    posture: ArrayLike | None = None,
) -> FrictionRun:
    """Drive one joint over its range at constant speed, loaded by the weight of the links it carries (PA-10 II.C).

    Args:
        arm: what is driven.
        robot: its description; masses (virtual or nominal) are needed unless a posture is given.
        joint: number from 1, or name.
        speed: [rad/s or m/s]; a fifth of the largest if not given.
        seconds: of steady motion in each direction.
        posture: of the other joints [rad]; the one where gravity acts most if not given.
    """
    check_arm(arm, robot)
    found = gravity_loaded(robot, joint) if posture is None else _given(robot, joint, posture)
    index = found.joint
    v = moderate_speed(robot, index) if speed is None else float(speed)
    if not v >= SLOWEST:
        raise ExperimentError(f"speed is {v:g}; it must be at least {SLOWEST:g}, both directions are driven anyway")
    began = arm.state().time
    move_to(arm, found.position, robot.limits)
    arm.set_mode("velocity")
    room = range_of(robot.limits, index, float(found.position[index]))
    # Whole strokes over the full range: the load must vary as much as it can.
    bend = float(paces(robot.limits, robot.n_joints)[1][index])
    full = max(longest_steady(v, room[1] - room[0], bend), 0.1)
    steady = full * max(1.0, np.ceil(seconds / full - 1e-9))
    recording = drive_strokes(arm, index, v, steady, found.position, room, robot.limits)
    report_progress(f"joint {index + 1}: loaded strokes at {v:.3g} rad/s", 1.0)
    history = {"procedure": "loaded strokes", "joint": index + 1, "speed": v}
    log = to_log(arm, recording, "velocity", history, gravity=tuple(float(g) for g in robot.gravity))
    return FrictionRun(log, index, found, np.array([v]), float(arm.state().time) - began)


def _given(robot: Robot, joint: int | str, posture: ArrayLike) -> Posture:
    q = np.asarray(posture, dtype=float)
    nan = float("nan")
    return Posture(joint_number(robot, joint), q, "as mounted", robot.gravity, nan, nan, "the posture was given")


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
