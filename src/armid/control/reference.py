"""The reference: a tool path as joint motion, cycle by cycle, with run-in and run-out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.control.problems import ControlError
from armid.control.tool_poses import ToolPoses, poses_trajectory
from armid.dynamics.inverse_kinematics import UnreachableError
from armid.dynamics.kinematics import tool_frame
from armid.dynamics.model import Motion
from armid.excitation.paths import joint_trajectory
from armid.excitation.sequence import programme
from armid.excitation.tool_path import ToolPath
from armid.excitation.trajectory import Trajectory, whole
from armid.robot.robot import Robot

STARTS = 8  # random postures that inverse kinematics is started from, should the first two fail
SIX = 6  # joints that an orientation needs beside a position
HOLD_S = 0.25  # at the end


@dataclass(frozen=True, eq=False)
class Reference:
    """Joint motion to follow, one row per cycle, from rest to rest.

    Attributes:
        name: of the path.
        cycle_s: time between rows [s].
        motion: q, qd, qdd (cycles, joints), contiguous.
        tool: tool frames in the base frame (cycles, 4, 4).
        window: rows of the path itself, without run-in and run-out.
    """

    name: str
    cycle_s: float
    motion: Motion
    tool: Array
    window: slice

    @property
    def time(self) -> Array:
        """[s] from the start of the run-in."""
        return self.cycle_s * np.arange(len(self.tool), dtype=np.float64)


def path_reference(
    robot: Robot,
    path: ToolPath | ToolPoses | Trajectory,
    *,
    cycle_s: float = 0.0025,
    start: ArrayLike | None = None,
    laps: int = 1,
    name: str = "",
    seed: int = 0,
) -> Reference:
    """Joint motion along a tool path.

    Inverse kinematics is the Jacobian's pseudo-inverse with joint-limit avoidance in the null space (PA-10 III.C). A
    closed path is brought up to speed and to rest by stretching its time (PA-14), an open one by a quintic. Arms with
    fewer than six joints follow the position alone; the orientation is free.

    Args:
        robot: the robot.
        path: tool path, tool poses from a file, or joint motion.
        cycle_s: of the controller [s].
        start: posture to search the path from; the middle of the joint ranges, zero and random ones if not given.
        laps: how often a closed path is followed.
        name: of the path, for results.
        seed: of random postures.

    Raises:
        UnreachableError: the path leaves the workspace or the joint limits.
        TrajectoryError: the motion breaks limits of velocity or acceleration.
        ControlError: laps are asked for and the path is open, or it is too fast.
    """
    if not cycle_s > 0.0:
        raise ControlError(f"cycle is {cycle_s:g} s; it must be above zero")
    motion = path if isinstance(path, Trajectory) else _followed(robot, path, start, seed)
    count = whole("laps", laps, 1)
    if count > 1 and not motion.periodic:
        raise ControlError(
            f"{name or 'the path'}: is an open path, which is followed once, and {count} laps are asked for; leave "
            "--laps out, or write the laps one after the other into the file"
        )
    whole_run = programme(motion, periods=count, limits=robot.limits)
    begin, end = whole_run.window
    rows = int(np.ceil((whole_run.duration + HOLD_S) / cycle_s))
    times = cycle_s * np.arange(rows)
    moving = Motion(*(np.array(part) for part in whole_run.at(np.minimum(times, whole_run.duration))))
    rest = times >= whole_run.duration
    moving.qd[rest], moving.qdd[rest] = 0.0, 0.0
    _check_limits(robot, moving)
    window = slice(int(np.ceil(begin / cycle_s - 1e-9)), int(np.ceil(end / cycle_s - 1e-9)))
    return Reference(name, cycle_s, moving, tool_frame(robot, moving.q), window)


def _followed(robot: Robot, path: ToolPath | ToolPoses, start: ArrayLike | None, seed: int) -> Trajectory:
    """Inverse kinematics from the first start posture that works."""
    if isinstance(path, ToolPath) and robot.n_joints < SIX:
        path = replace(path, rotation=None)
    problem: UnreachableError | None = None
    for posture in _starts(robot, seed) if start is None else [np.asarray(start, dtype=float)]:
        try:
            if isinstance(path, ToolPoses):
                return poses_trajectory(robot, path, posture)
            return joint_trajectory(robot, path, posture)
        except UnreachableError as error:
            problem = problem or error
    assert problem is not None
    raise problem


def _starts(robot: Robot, seed: int) -> list[Array]:
    n, rng = robot.n_joints, np.random.default_rng(seed)
    lower, upper = robot.limits.lower, robot.limits.upper
    if len(lower) != n:
        lower, upper = np.full(n, np.nan), np.full(n, np.nan)
    low, high = np.where(np.isnan(lower), -np.pi, lower), np.where(np.isnan(upper), np.pi, upper)
    middle = 0.5 * (low + high)
    return [middle, np.clip(np.zeros(n), low, high), *(rng.uniform(low, high) for _ in range(STARTS))]


def _check_limits(robot: Robot, motion: Motion) -> None:
    """Speeds of the whole motion; positions have been looked at before."""
    limit = robot.limits.velocity
    if len(limit) != robot.n_joints:
        return
    fastest = np.abs(motion.qd).max(axis=0)
    over = np.nan_to_num(fastest / limit, nan=0.0)
    if over.max() > 1.0 + 1e-9:
        joint = int(over.argmax())
        raise ControlError(
            f"the path takes {robot.joint_names[joint]} to {fastest[joint]:.3g} rad/s, over its limit of "
            f"{limit[joint]:.3g}; make it slower"
        )
