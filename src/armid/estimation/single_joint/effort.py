"""A log as single-joint analyses need it: the robot's joints, joint side, torque as effort."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.logs.convert import to_joint_side, torque_from_current
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot


def joint_side(log: Log, robot: Robot) -> Log:
    """The log with the robot's joints in its order, motion and torque on the joint side.

    Motor torque goes through gear ratio or coupling, current through the polynomial of the description.

    Raises:
        LogError: the log has no effort or no positions, or current without known gains; or a joint is missing.
    """
    mine = log.for_joints(robot.joint_names)
    if mine.info.effort == "none":
        raise LogError(log.info.source, "effort", "is missing; a log with torque or current is needed")
    if "position" not in mine:
        raise LogError(log.info.source, "position", "is missing; it is needed to see how joints move")
    if len(mine) < 3:
        raise LogError(log.info.source, "time", f"has {len(mine)} samples; a recorded motion is needed")
    if mine.info.effort == "current":
        if robot.current_gain is None:
            problem = f"is a current and {robot.name} has no current gains; state them in its description or a recipe"
            raise LogError(log.info.source, "effort", problem)
        mine = torque_from_current(mine, robot.current_gain)
    ratios = [drive.gear_ratio for drive in robot.drives]
    return to_joint_side(mine, ratios if robot.coupling is None else robot.coupling)


def velocities(log: Log) -> Array:
    """Velocities (samples, joints); from the positions where the log has none."""
    if "velocity" in log:
        return log["velocity"]
    return np.gradient(log["position"], log.time, axis=0)


def velocity_commands(log: Log) -> Array | None:
    """Commands (samples, joints) [rad/s or m/s] of a log in velocity mode, else None."""
    return log["command"] if log.info.mode == "velocity" and "command" in log else None
