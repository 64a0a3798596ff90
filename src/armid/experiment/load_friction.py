"""Stiffness run: constant speed in both directions while gravity loads the joint."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.experiment.drive import Arm
from armid.experiment.driving import (
    ExperimentError,
    check_arm,
    joint_number,
    move_to,
    paces,
    range_of,
    to_log,
)
from armid.experiment.gravity_free import Posture, gravity_loaded
from armid.experiment.strokes import drive_strokes, longest_steady
from armid.logs.log import Log
from armid.progress import report_progress
from armid.robot.robot import Robot

MODERATE = 0.2  # of the joint's largest speed


@dataclass(frozen=True, eq=False)
class LoadFrictionRun:
    """What a stiffness run gives.

    Attributes:
        log: of the strokes, velocity mode.
        joint: index of the joint, from 0.
        posture: where it was done.
        speed: [rad/s or m/s].
        seconds: the whole experiment took [s].
    """

    log: Log
    joint: int
    posture: Posture
    speed: float
    seconds: float


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
) -> LoadFrictionRun:
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
    if not v > 0.0:
        raise ExperimentError(f"speed is {v:g}; it must be positive, both directions are driven anyway")
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
    history = {"procedure": "stiffness run", "joint": index + 1, "speed": v}
    log = to_log(arm, recording, "velocity", history, gravity=tuple(float(g) for g in robot.gravity))
    return LoadFrictionRun(log, index, found, v, float(arm.state().time) - began)


def _given(robot: Robot, joint: int | str, posture: ArrayLike) -> Posture:
    q = np.asarray(posture, dtype=float)
    nan = float("nan")
    return Posture(joint_number(robot, joint), q, "as mounted", robot.gravity, nan, nan, "the posture was given")
