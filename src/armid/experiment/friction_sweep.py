"""Friction sweep: one joint at constant speeds, in both directions, where gravity does not act on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.experiment.drive import Arm
from armid.experiment.driving import (
    ExperimentError,
    check_arm,
    joined,
    move_to,
    range_of,
    to_log,
)
from armid.experiment.gravity_free import Posture, gravity_free
from armid.experiment.strokes import drive_strokes
from armid.experiment.warm_up import exercise
from armid.logs.log import Log
from armid.progress import report_progress
from armid.robot.robot import Robot


@dataclass(frozen=True, eq=False)
class FrictionRun:
    """What a friction sweep gives.

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
    found = gravity_free(robot, joint)
    index = found.joint
    if posture is not None:
        given = np.asarray(posture, dtype=float)
        found = Posture(index, given, "as mounted", robot.gravity, float("nan"), float("nan"), "the posture was given")
    elif not found.as_mounted:
        down = " ".join(f"{value:g}" for value in found.gravity)
        raise ExperimentError(
            f"gravity acts on joint {index + 1} of {robot.name} in every posture as it is mounted; mount it with "
            f"{found.mounting} (gravity {down}), or give a posture"
        )
    v = default_speeds(robot, index) if speeds is None else np.sort(np.asarray(speeds, dtype=float))
    if v.ndim != 1 or not len(v) or not np.all(v > 0.0):
        raise ExperimentError("speeds must be positive numbers; both directions are driven anyway")
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


def friction_sweeps(
    arm: Arm, robot: Robot, joints: Sequence[int | str] | None = None, **options: Any
) -> Iterator[FrictionRun]:
    """Sweep several joints (default: all) one after the other; options are those of `friction_sweep`.

    Runs come one by one, since their logs are large. Joints that need another mounting raise, as in `friction_sweep`.
    """
    for joint in range(1, robot.n_joints + 1) if joints is None else joints:
        yield friction_sweep(arm, robot, joint, **options)
