"""How far points of an arm can be from its joints' axes: what bounds the speed of everything geometric."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.excitation.trajectory import Extrema
from armid.robot.robot import Robot


def lever_arms(robot: Robot, link: int, point: Array, extrema: Extrema) -> Array:
    """Upper bounds (joints,) on the speed of a point per unit of each joint's speed, [m/rad] or [m/m].

    For a turning joint that is the greatest distance of the point from the axis in any posture, the lengths between
    them laid end to end; for a sliding joint it is 1; for joints that do not move the point it is 0.

    Args:
        robot: the robot.
        link: number of the link that carries the point, 0 for the base.
        point: in the link's frame [m].
        extrema: positions that sliding joints may take.
    """
    arms = np.zeros(robot.n_joints)
    beyond = 0.0  # greatest distance of the point from the origin of the joint frame reached so far
    offset = point
    for j in reversed(robot.path_to(link)):
        joint = robot.joints[j]
        local = joint.link_frame[:3, :3] @ offset + joint.link_frame[:3, 3]
        if joint.prismatic:
            arms[j] = 1.0
            ends = [local + np.array([0.0, 0.0, q]) for q in (extrema.lower[j], extrema.upper[j])]
            beyond += max(float(np.linalg.norm(end)) for end in ends)
        else:
            arms[j] = np.hypot(local[0], local[1]) + beyond
            beyond += float(np.linalg.norm(local))
        offset = joint.placement[:3, 3]
    return arms
