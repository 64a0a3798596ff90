"""Forward kinematics and Jacobian, batched over samples; inverse kinematics along a path of tool poses.

The inverse is a damped pseudo-inverse with a null-space term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.errors import ArmidError, DataShapeError
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


FIRST_ITERATIONS, ITERATIONS = 300, 60
LONGEST_STEP = 0.3  # of one iteration, per joint [rad or m]
SETTLING_STEPS = 200  # null-space steps at the first pose


class UnreachableError(ArmidError):
    """A tool pose cannot be reached.

    Attributes:
        sample: index of the pose, from 0.
        position_error: remaining distance [m].
        rotation_error: remaining angle [rad].
    """

    def __init__(self, problem: str, sample: int, position_error: float = 0.0, rotation_error: float = 0.0) -> None:
        """Keep the numbers beside the message."""
        self.sample, self.position_error, self.rotation_error = sample, position_error, rotation_error
        super().__init__(problem)


@dataclass(frozen=True)
class JointLimitAvoidance:
    """Self-motion towards the middle of the joint ranges (PA-10 III.C), for arms with more joints than needed.

    Descends along sum_j ((q_j - middle_j) / half_range_j)^2; joints without known limits are left alone.

    Attributes:
        gain: part of the way taken at each pose by the joint with the narrowest range, 0 to 1.
    """

    gain: float = 0.2

    def step(self, robot: Robot, q: Array) -> Array:
        """Joint step (joints,) that would be taken if the task were free."""
        lower, upper = robot.limits.lower, robot.limits.upper
        half = 0.5 * (upper - lower)
        known = np.isfinite(half)
        if not np.any(known):
            return np.zeros_like(q)
        weight = np.where(known, (np.nanmin(half) / np.where(known, half, 1.0)) ** 2, 0.0)
        return self.gain * weight * np.where(known, 0.5 * (lower + upper) - q, 0.0)


def inverse_kinematics(
    robot: Robot,
    poses: ArrayLike,
    start: ArrayLike,
    *,
    null_space: JointLimitAvoidance | None = JointLimitAvoidance(),  # noqa: B008 (immutable)
    settle: bool = True,
    position_only: bool = False,
    position_tolerance: float = 1e-9,
    rotation_tolerance: float = 1e-9,
    respect_limits: bool = True,
) -> Array:
    """Joint positions (samples, joints) that bring the tool to each pose, following the path sample after sample.

    Each pose is solved by damped Newton steps dq = J^+ e, J^+ = J^T (J J^T + l^2 I)^-1, from the posture before it, so
    that the arm does not jump to another configuration. The first step of a redundant arm adds (I - J^+ J) z.

    Args:
        robot: the robot.
        poses: tool frames in the base frame (samples, 4, 4).
        start: posture to search the first pose from (joints,).
        null_space: what a redundant arm does with its freedom; None to leave it.
        settle: let a redundant arm's self-motion come to rest at the first pose, not only follow from there on.
        position_only: the orientation of the tool is free, as with an arm of three joints.
        position_tolerance: [m].
        rotation_tolerance: [rad].
        respect_limits: refuse solutions outside known position limits.

    Raises:
        UnreachableError: naming the sample and the remaining error, or the joint that leaves its limits.
    """
    targets, q = np.asarray(poses, dtype=float), np.array(start, dtype=float)
    if targets.ndim != 3 or targets.shape[1:] != (4, 4) or not np.all(np.isfinite(targets)):
        raise DataShapeError(f"poses have shape {targets.shape}; they must be finite and (samples, 4, 4)")
    if q.shape != (robot.n_joints,) or not np.all(np.isfinite(q)):
        raise DataShapeError(f"start has shape {q.shape}; it must hold {robot.n_joints} finite positions")
    rows = 3 if position_only else 6
    spare = None if robot.n_joints <= rows else null_space
    tolerance = np.array([position_tolerance, rotation_tolerance])
    solved = np.empty((len(targets), robot.n_joints))
    for sample, target in enumerate(targets):
        q = _solve(robot, target, q, rows, tolerance, spare, sample)
        if settle and sample == 0 and spare is not None:
            for _ in range(SETTLING_STEPS):
                q = _solve(robot, target, q, rows, tolerance, spare, sample)
        solved[sample] = q
    if respect_limits:
        _check_limits(robot, solved)
    return solved


def pose_error(robot: Robot, q: ArrayLike, poses: Array) -> Array:
    """Error (samples, 6) of the tool: position [m], then rotation vector [rad], both in the base frame."""
    from scipy.spatial.transform import Rotation

    reached = tool_frame(robot, q)
    turn = poses[:, :3, :3] @ np.swapaxes(reached[:, :3, :3], 1, 2)
    return np.hstack([poses[:, :3, 3] - reached[:, :3, 3], Rotation.from_matrix(turn).as_rotvec()])


def _solve(
    robot: Robot, target: Array, q: Array, rows: int, tolerance: Array, spare: JointLimitAvoidance | None, sample: int
) -> Array:
    """Damped Newton steps to one pose, the first of them with the null-space term."""
    sizes = np.zeros(2)
    for iteration in range(ITERATIONS if sample else FIRST_ITERATIONS):
        error = pose_error(robot, q[None], target[None])[0, :rows]
        sizes = np.array([np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
        wanted = None if spare is None or iteration else spare.step(robot, q)
        if wanted is None and np.all(sizes <= tolerance):
            return q
        J = jacobian(robot, q[None])[0, :rows]
        # The damping fades with the error: safe far away and near singular postures, quadratic at the end.
        damping = min(1e-3, 0.1 * float(error @ error)) + 1e-14
        goal = error if wanted is None else error - J @ wanted
        step = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(rows), goal)
        step = step if wanted is None else step + wanted
        q = q + step * min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
    left = f"{sizes[0]:.3g} m" + (f" and {sizes[1]:.3g} rad" if rows == 6 else "")
    hint = "move the path or start elsewhere"
    if rows == 6 and robot.n_joints < 6:
        hint = "fewer than six joints cannot keep an orientation, so leave it free (position_only=True)"
    raise UnreachableError(
        f"{robot.name} cannot reach pose {sample} of the path: {left} remain; {hint}", sample, *sizes
    )


def _check_limits(robot: Robot, q: Array) -> None:
    lower, upper = robot.limits.lower, robot.limits.upper
    outside = np.nan_to_num(np.fmax(q - upper, lower - q), nan=-1.0)
    if outside.size and outside.max() > 1e-9:
        sample, joint = (int(i) for i in np.unravel_index(outside.argmax(), outside.shape))
        reach = f"[{lower[joint]:.4g}, {upper[joint]:.4g}]"
        problem = f"needs {robot.joint_names[joint]} at {q[sample, joint]:.4g}, outside its limits {reach}"
        raise UnreachableError(
            f"pose {sample} of the path {problem}; start from another posture, or move the path", sample
        )
