"""Log and robot side by side: names, sides, limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from armid.logs.convert import to_joint_side, torque_from_current
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.signals.doctor.finding import Finding, Where
from armid.signals.doctor.range import Travel

_OUTSIDE = 0.02  # of the range, beyond the limits
_STRONG = 1.5  # times the torque limit


def matched(log: Log, robot: Robot) -> tuple[Log | None, list[Finding]]:
    """The log with the robot's joints, in its order and on the joint side; None if it is a log of another robot."""
    missing = [name for name in robot.joint_names if name not in log.joints]
    findings = []
    if missing:
        findings.append(_other_robot(log, robot, missing))
        return None, findings
    if log.info.robot and robot.name and log.info.robot != robot.name:
        findings.append(
            Finding(
                "other-robot",
                "info",
                None,
                Where(),
                0.5,
                f"The log says it is of {log.info.robot}, not of {robot.name}.",
                "The joints have the same names, so it may be the same arm; otherwise give the right robot.",
                {"log": log.info.robot, "robot": robot.name},
            )
        )
    picked = log.for_joints(robot.joint_names)
    if picked.info.effort == "current" and robot.current_gain is not None:
        picked = torque_from_current(picked, robot.current_gain)
    if picked.info.side == "motor" or picked.info.effort == "motor torque":
        ratios = np.array([drive.gear_ratio for drive in robot.drives])
        picked = to_joint_side(picked, ratios if robot.coupling is None else robot.coupling)
    return picked, findings


def _other_robot(log: Log, robot: Robot, missing: list[str]) -> Finding:
    return Finding(
        "other-robot",
        "error",
        None,
        Where(),
        0.95,
        f"{len(missing)} of {robot.n_joints} joints of {robot.name} are not in the log ({', '.join(missing)}); it has "
        f"{', '.join(log.joints)}.",
        "Give the robot the log was recorded on, or name the joints in the recipe as the robot does.",
        {"missing": missing},
    )


def examine_limits(log: Log, robot: Robot, travel: Travel) -> Iterator[Finding]:
    """Positions and efforts against what the robot can do."""
    limits = robot.limits
    room = _OUTSIDE * (limits.upper - limits.lower)
    for joint, name in enumerate(robot.joint_names):
        low, high = travel.lower[joint], travel.upper[joint]
        if not (low < limits.lower[joint] - room[joint] or high > limits.upper[joint] + room[joint]):
            continue
        yield Finding(
            "outside-limits",
            "warning",
            name,
            Where(),
            0.8,
            f"{name} goes from {low:.4g} to {high:.4g}; its limits are {limits.lower[joint]:.4g} and "
            f"{limits.upper[joint]:.4g}.",
            "Check zero position, sign, unit and order of the joints in the recipe, or the limits in the description.",
            {"lower": float(low), "upper": float(high)},
        )
    if log.info.effort == "joint torque":
        yield from _strength(log, robot, travel)


def _strength(log: Log, robot: Robot, travel: Travel) -> Iterator[Finding]:
    """Torques beyond the limits, or so far below all of them that the gear must be missing."""
    size = np.nanpercentile(np.abs(log["effort"]), 99.0, axis=0) if len(log) else np.zeros(robot.n_joints)
    limit, ratio = robot.limits.torque, np.abs([drive.gear_ratio for drive in robot.drives])
    for joint in np.flatnonzero(size > _STRONG * limit):
        name = robot.joint_names[joint]
        yield Finding(
            "effort-out-of-range",
            "warning",
            name,
            Where(),
            0.8,
            f"The effort of {name} reaches {size[joint]:.3g}; its limit is {limit[joint]:.3g}.",
            "Check unit and kind of the effort (joint torque, motor torque, current) in the recipe.",
            {"effort": float(size[joint]), "limit": float(limit[joint])},
        )
    known = travel.moving & np.isfinite(limit) & (ratio >= 10.0)
    if known.sum() >= 2 and (size[known] < limit[known] / ratio[known]).all():
        yield Finding(
            "effort-kind",
            "warning",
            None,
            Where(),
            0.7,
            "The effort is called joint torque, but all joints stay below their limit divided by the gear ratio.",
            "It may be motor torque: say so in the recipe (effort: motor torque).",
        )
