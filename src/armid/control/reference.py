"""The reference: a tool path, from the library or a CSV of poses, as joint motion with run-in and run-out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.control.control_model import ControlError
from armid.dynamics.kinematics import UnreachableError, inverse_kinematics, tool_frame
from armid.dynamics.model import Motion
from armid.errors import UnknownNameError
from armid.excitation.polynomial import PiecewisePolynomial, spline
from armid.excitation.sequence import programme
from armid.excitation.tool_path import ToolPath, joint_trajectory, pa10_figure
from armid.excitation.trajectory import Trajectory, whole
from armid.files import read_text
from armid.robot.robot import Robot

POSITION, ORIENTATION = ("time", "x", "y", "z"), ("qw", "qx", "qy", "qz")
LIBRARY = {"pa10-figure": pa10_figure}
GRID_HZ = 50.0  # of inverse kinematics, at least
LEAST = 6  # poses that a smooth path needs
UNIT = 0.01  # largest difference of a quaternion's length from 1


@dataclass(frozen=True, eq=False)
class ToolPoses:
    """Tool poses at given times, joined by smooth curves: quintic splines of positions, splines of rotations.

    Attributes:
        time: rising, from zero [s].
        position: in the base frame (poses, 3) [m].
        quaternion: w, x, y, z of the tool in the base frame (poses, 4), or None to leave the orientation free.
    """

    time: Array
    position: Array
    quaternion: Array | None

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.time[-1])

    def at(self, times: Array) -> Array:
        """Tool frames (samples, 4, 4)."""
        from scipy.interpolate import make_interp_spline
        from scipy.spatial.transform import Rotation, RotationSpline

        frames = np.tile(np.eye(4), (len(times), 1, 1))
        frames[:, :3, 3] = make_interp_spline(self.time, self.position, k=5)(times)
        if self.quaternion is not None:
            turns = Rotation.from_quat(self.quaternion[:, [1, 2, 3, 0]])
            frames[:, :3, :3] = RotationSpline(self.time, turns)(times).as_matrix()
        return frames


def tool_path(name: str) -> ToolPath | ToolPoses:
    """A path of the library, such as ``pa10-figure``, or a CSV file of tool poses."""
    if name in LIBRARY:
        return LIBRARY[name]()
    if Path(name).suffix.lower() == ".csv":
        return read_tool_poses(name)
    raise UnknownNameError("path", name, (*LIBRARY, "FILE.csv"))


def read_tool_poses(path: str | Path) -> ToolPoses:
    """Read tool poses from a CSV file with the header ``time,x,y,z,qw,qx,qy,qz``.

    Times rise [s], positions are in the base frame [m], the quaternion is the tool's orientation in the base frame, w
    first. The four columns of the quaternion may be left out together: the orientation is then free.

    Raises:
        ControlError: naming file, line and column.
    """
    lines = [line.strip() for line in read_text(Path(path)).splitlines()]
    rows = [(number, line) for number, line in enumerate(lines, start=1) if line and not line.startswith("#")]
    header = tuple(cell.strip() for cell in rows[0][1].split(",")) if rows else ()
    if header not in (POSITION, POSITION + ORIENTATION):
        given = ",".join(header[:12])[:200] or "nothing"
        wanted = ",".join(POSITION + ORIENTATION)
        raise ControlError(f"{path}: the header is {given!r}; it must be {wanted}, or {','.join(POSITION)} alone")
    table = np.array([_numbers(path, number, line, header) for number, line in rows[1:]]).reshape(-1, len(header))
    if len(table) < LEAST:
        raise ControlError(f"{path}: has {len(table)} poses; a smooth path needs at least {LEAST}")
    falling = np.flatnonzero(np.diff(table[:, 0]) <= 0.0)
    if len(falling):
        line = rows[int(falling[0]) + 2][0]
        raise ControlError(f"{path}: line {line}: time {table[falling[0] + 1, 0]:g} does not rise; sort the poses")
    quaternion = None
    if len(header) > len(POSITION):
        size = np.linalg.norm(table[:, 4:], axis=1)
        worst = int(np.abs(size - 1.0).argmax())
        if abs(size[worst] - 1.0) > UNIT:
            raise ControlError(
                f"{path}: line {rows[worst + 1][0]}: the quaternion qw,qx,qy,qz has length {size[worst]:.3g}; it must "
                "be 1"
            )
        quaternion = table[:, 4:] / size[:, None]
    return ToolPoses(table[:, 0] - table[0, 0], table[:, 1:4], quaternion)


def poses_trajectory(robot: Robot, path: ToolPoses, start: Array) -> PiecewisePolynomial:
    """Joint motion along tool poses: inverse kinematics on a grid, joined by a quintic spline."""
    steps = max(2 * len(path.time), int(np.ceil(path.duration * GRID_HZ)), 16)
    grid = np.linspace(0.0, path.duration, steps + 1)
    free = path.quaternion is None or robot.n_joints < 6
    q = inverse_kinematics(
        robot, path.at(grid), start, position_only=free, position_tolerance=1e-11, rotation_tolerance=1e-11
    )
    return spline(grid, q)


def _numbers(path: str | Path, line: int, text: str, header: tuple[str, ...]) -> list[float]:
    cells = text.split(",")
    if len(cells) != len(header):
        raise ControlError(f"{path}: line {line}: has {len(cells)} cells; the header has {len(header)}")
    values = []
    for name, cell in zip(header, cells, strict=True):
        try:
            value = float(cell)
        except ValueError:
            value = float("nan")
        if not np.isfinite(value):
            raise ControlError(f"{path}: line {line}: {name} is {cell.strip()[:40]!r}; it must be a finite number")
        values.append(value)
    return values


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
    low, high = np.where(np.isnan(lower), -np.pi, lower), np.where(np.isnan(upper), np.pi, upper)
    middle = 0.5 * (low + high)
    return [middle, np.clip(np.zeros(n), low, high), *(rng.uniform(low, high) for _ in range(STARTS))]


def _check_limits(robot: Robot, motion: Motion) -> None:
    """Speeds of the whole motion; positions have been looked at before."""
    limit = robot.limits.velocity
    fastest = np.abs(motion.qd).max(axis=0)
    over = np.nan_to_num(fastest / limit, nan=0.0)
    if over.max() > 1.0 + 1e-9:
        joint = int(over.argmax())
        raise ControlError(
            f"the path takes {robot.joint_names[joint]} to {fastest[joint]:.3g} rad/s, over its limit of "
            f"{limit[joint]:.3g}; make it slower"
        )
