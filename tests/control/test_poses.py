"""Tool poses from CSV files: what is read, what is refused, what lies between."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

import armid
from armid.control import ControlError, read_tool_poses, tool_path
from armid.control.reference import poses_trajectory
from armid.dynamics.kinematics import tool_frame
from armid.errors import ArmidError, UnknownNameError

HEADER = "time,x,y,z,qw,qx,qy,qz"
GOOD = [f"{0.1 * k:.1f},{0.3 + 0.01 * k},0,0.5,1,0,0,0" for k in range(8)]


def write(tmp_path, *lines):
    path = tmp_path / "path.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_reading(tmp_path):
    """Times start at zero, comments and empty lines are skipped, quaternions are w first."""
    lines = [line.replace("1,0,0,0", "0.7071,0.7071,0,0") for line in GOOD]
    poses = read_tool_poses(write(tmp_path, "# a path", HEADER, "", *lines))
    assert poses.time == pytest.approx(0.1 * np.arange(8))
    turned = poses.at(np.array([0.35]))[0]
    assert turned[:3, :3] == pytest.approx(Rotation.from_euler("x", 90, degrees=True).as_matrix(), abs=1e-9)
    assert turned[:3, 3] == pytest.approx([0.335, 0.0, 0.5], abs=1e-9)
    assert tool_path(str(tmp_path / "path.csv")).duration == pytest.approx(0.7)


def test_steady_rotation_between_poses(tmp_path):
    """A rotation at constant rate is followed between the poses, as SciPy's Slerp does."""
    times = np.linspace(0.0, 1.0, 9)
    turns = Rotation.from_rotvec(np.outer(times, [0.0, 0.0, 1.2]))
    quaternions = turns.as_quat()[:, [3, 0, 1, 2]]
    rows = [",".join(f"{v:.12g}" for v in (t, 0.3, 0.1, 0.5, *q)) for t, q in zip(times, quaternions, strict=True)]
    poses = read_tool_poses(write(tmp_path, HEADER, *rows))
    between = np.linspace(0.0, 1.0, 33)
    assert poses.at(between)[:, :3, :3] == pytest.approx(Slerp(times, turns)(between).as_matrix(), abs=1e-6)


def test_joints_bring_the_tool_there(tmp_path):
    """Inverse kinematics and spline: the tool meets every pose of the file, orientation included."""
    robot = armid.load_robot("pa10")
    start = np.array([0.3, 0.6, 0.2, 1.0, 0.1, 0.7, 0.0])
    first = tool_frame(robot, start[None])[0]
    w, x, y, z = Rotation.from_matrix(first[:3, :3]).as_quat()[[3, 0, 1, 2]]
    s = np.linspace(0.0, 1.0, 11)
    way = first[:3, 3] + np.outer(s**2 * (3 - 2 * s), [0.05, -0.04, 0.03])
    rows = [",".join(f"{v:.12g}" for v in (t, *p, w, x, y, z)) for t, p in zip(s, way, strict=True)]
    poses = read_tool_poses(write(tmp_path, HEADER, *rows))
    reached = tool_frame(robot, poses_trajectory(robot, poses, start).at(s).q)
    assert reached[:, :3, 3] == pytest.approx(way, abs=1e-7)
    assert reached[:, :3, :3] == pytest.approx(np.tile(first[:3, :3], (11, 1, 1)), abs=1e-7)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["time,x,y", *GOOD], "header is 'time,x,y'"),
        ([HEADER, *GOOD[:3]], "has 3 poses"),
        ([HEADER, *GOOD[:4], "0.2,0,0,0,1,0,0,0", *GOOD[5:]], "line 6: time 0.2 does not rise"),
        ([HEADER, *GOOD[:2], "0.2,a,0,0,1,0,0,0", *GOOD[3:]], "line 4: x is 'a'"),
        ([HEADER, *GOOD[:2], "0.2,nan,0,0,1,0,0,0", *GOOD[3:]], "line 4: x is 'nan'"),
        ([HEADER, *GOOD[:2], "0.2,0,0,0", *GOOD[3:]], "line 4: has 4 cells"),
        ([HEADER, *GOOD[:2], "0.2,0,0,0,2,0,0,0", *GOOD[3:]], "line 4: the quaternion .* has length 2"),
        ([""], "header is 'nothing'"),
    ],
)
def test_bad_files(tmp_path, lines, words):
    """Each fault is named with its line and the way out."""
    with pytest.raises(ControlError, match=words):
        read_tool_poses(write(tmp_path, *lines))


def test_unknown_paths(tmp_path):
    """Neither a library name nor a file."""
    with pytest.raises(UnknownNameError, match="pa10-figure"):
        tool_path("pa10-figur")
    with pytest.raises(ArmidError, match=r"none\.csv"):
        tool_path(str(tmp_path / "none.csv"))
