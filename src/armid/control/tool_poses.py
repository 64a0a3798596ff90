"""Tool paths from a file: a CSV of tool poses over time, or the name of a path in the library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.control.problems import ControlError
from armid.dynamics.inverse_kinematics import inverse_kinematics
from armid.errors import UnknownNameError
from armid.excitation.paths import pa10_figure
from armid.excitation.polynomial import PiecewisePolynomial, spline
from armid.excitation.tool_path import ToolPath
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
        given = ",".join(header[:12]) or "nothing"
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
