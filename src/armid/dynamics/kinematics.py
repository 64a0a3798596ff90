"""Forward kinematics and Jacobian, batched over samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.errors import DataShapeError
from armid.robot.robot import Robot


def link_frames(robot: Robot, q: ArrayLike) -> Array:
    """Frames of all links in the base frame: (samples, links, 4, 4) for positions (samples, joints)."""
    return all_frames(robot, q)[1]


def tool_frame(robot: Robot, q: ArrayLike) -> Array:
    """The tool's frame in the base frame, (samples, 4, 4); the tool sits on the last joint's link."""
    return link_frames(robot, q)[:, robot.n_joints - 1] @ robot.tool


def jacobian(robot: Robot, q: ArrayLike, link: int | None = None, point: ArrayLike | None = None) -> Array:
    """Geometric Jacobian (samples, 6, joints) in the base frame: linear velocity first, then angular.

    Args:
        robot: the robot.
        q: positions (samples, joints).
        link: number of the link, from 1 (default: the last).
        point: point in the link's frame [m] that moves (default: its origin; the tool's if `link` is not given).
    """
    joint_frames, frames = all_frames(robot, q)
    number = robot.n_joints if link is None else link
    if not 1 <= number <= len(robot.links):
        raise DataShapeError(f"there is no link {number}; links are numbered 1 to {len(robot.links)}")
    default = robot.tool[:3, 3] if link is None else np.zeros(3)
    local = default if point is None else np.asarray(point, dtype=float)
    if local.shape != (3,):
        raise DataShapeError(f"point has shape {local.shape}; three coordinates in the link's frame are needed")
    target = frames[:, number - 1, :3, :3] @ local + frames[:, number - 1, :3, 3]
    return point_jacobian(robot, joint_frames, number, target)


def point_jacobian(robot: Robot, joint_frames: Array, link: int, points: Array) -> Array:
    """Jacobian (samples, 6, joints) of points (samples, 3) of the base frame that move with a link (0: the base)."""
    result = np.zeros((len(points), 6, robot.n_joints))
    for k in robot.path_to(link):
        axis, ratio = joint_frames[:, k, :3, 2, None], robot.ratios[k]
        if robot.links[k].prismatic:
            result[:, :3] += axis * ratio
        else:
            result[:, :3] += np.cross(axis[..., 0], points - joint_frames[:, k, :3, 3])[..., None] * ratio
            result[:, 3:] += axis * ratio
    return result


def all_frames(robot: Robot, q: ArrayLike) -> tuple[Array, Array]:
    """Joint frames (before the joint's motion, which leaves z and the axis in place) and link frames."""
    positions = np.asarray(q, dtype=float)
    if positions.ndim != 2 or positions.shape[1] != robot.n_joints:
        raise DataShapeError(f"positions have shape {positions.shape}; they must be (samples, {robot.n_joints})")
    samples = len(positions)
    joint_frames = np.empty((samples, len(robot.links), 4, 4))
    frames = np.empty_like(joint_frames)
    positions = robot.all_positions(positions)
    for j in robot.outward:
        joint = robot.links[j]
        near = joint.placement if joint.parent == 0 else frames[:, joint.parent - 1] @ joint.placement
        joint_frames[:, j] = near
        frames[:, j] = near @ _moved(positions[:, j], joint.prismatic) @ joint.link_frame
    return joint_frames, frames


def _moved(q: Array, prismatic: bool) -> Array:
    motion = np.zeros((len(q), 4, 4))
    motion[:] = np.eye(4)
    if prismatic:
        motion[:, 2, 3] = q
    else:
        c, s = np.cos(q), np.sin(q)
        motion[:, 0, 0], motion[:, 0, 1], motion[:, 1, 0], motion[:, 1, 1] = c, -s, s, c
    return motion
