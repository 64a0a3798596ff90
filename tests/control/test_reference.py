"""References: the figure of the PA-10 paper with its run-in, and limits."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.control import ControlError, path_reference, tool_path
from armid.dynamics.kinematics import tool_frame
from armid.excitation.fourier import FourierSeries
from armid.excitation.polynomial import spline
from tests.control.arms import MIDDLE, small_arm


@pytest.fixture(scope="module")
def figure():
    return path_reference(armid.load_robot("pa10"), tool_path("pa10-figure"), name="pa10-figure")


def test_tool_follows_equation_20(figure):
    """In the window the tool is where (20) says, for one whole lap, with constant orientation."""
    rows = np.arange(figure.window.start, figure.window.stop)
    t = figure.cycle_s * (rows - figure.window.start) + (figure.window.start * 0.0025 - _begin(figure))
    x = 0.085 * (np.cos(t) + np.sin(2 * t) - 1.0)
    z = -0.075 * (np.sin(t) + np.cos(2 * t) - 1.0) + 0.7248
    expected = np.stack([x, np.full_like(t, 0.7), z], axis=1)
    assert figure.tool[rows, :3, 3] == pytest.approx(expected, abs=1e-6)
    assert figure.tool[rows, :3, :3] == pytest.approx(
        np.tile(figure.tool[rows[0], :3, :3], (len(rows), 1, 1)), abs=1e-6
    )
    assert len(rows) == pytest.approx(2 * np.pi / 0.0025, abs=1.0)


def _begin(figure):
    """Start of the lap [s]: the run-in is a whole number of trial seconds."""
    return round(figure.window.start * figure.cycle_s, 2)


def test_run_in_and_run_out(figure):
    """From rest to rest, positions and velocities without a jump (PA-14), inside all limits."""
    q, qd, qdd = figure.motion
    robot = armid.load_robot("pa10")
    assert np.abs(qd[0]).max() < 1e-9
    assert np.abs(qd[-1]).max() == 0.0
    speed = np.diff(q, axis=0) / figure.cycle_s
    assert np.abs(speed - 0.5 * (qd[1:] + qd[:-1])).max() < 2e-3
    assert np.all((q > robot.limits.lower) & (q < robot.limits.upper))
    assert np.all(np.abs(qd) <= robot.limits.velocity)
    assert np.all(np.abs(qdd) <= robot.limits.acceleration)
    assert all(part.flags.c_contiguous for part in figure.motion)


def test_far_from_joint_limits(figure):
    """The self-motion keeps all joints within two thirds of their ranges."""
    limits = armid.load_robot("pa10").limits
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    assert np.max(np.abs(figure.motion.q - middle) / half) < 0.67


def test_too_fast():
    """A motion over a speed limit is refused, naming the joint."""
    robot = armid.load_robot("pa10")
    sine = np.zeros((7, 1))
    sine[3] = 1.0
    fast = FourierSeries(0.5, (1,), sine, np.zeros((7, 1)), np.zeros(7))
    with pytest.raises(armid.ArmidError, match="4"):
        path_reference(robot, fast)
    with pytest.raises(ControlError, match="cycle"):
        path_reference(robot, fast, cycle_s=0.0)


def test_fewer_than_six_joints_follow_the_position(tmp_path):
    """Three joints cannot keep the figure's orientation: its position is followed all the same, and closes."""
    robot = small_arm(tmp_path)
    path = tool_path("pa10-figure")
    frame = path.frame.copy()
    frame[:3, 3] = 0.7 * tool_frame(robot, MIDDLE[None])[0, :3, 3]
    path = replace(path, frame=frame)
    assert path.rotation is not None
    found = path_reference(robot, path, name="figure")
    expected = path.poses(np.linspace(0.0, path.duration, 4000))[:, :3, 3]
    for point in found.tool[found.window.start : found.window.stop : 100, :3, 3]:
        assert np.linalg.norm(expected - point, axis=1).min() < 1e-3


def test_laps_of_an_open_path():
    """An open path is followed once; more is an error, not ignored."""
    robot = armid.load_robot("pa10")
    times = np.linspace(0.0, 2.0, 12)
    way = spline(times, np.outer(np.sin(times), np.full(robot.n_joints, 0.1)))
    assert path_reference(robot, way).window.stop > 0
    with pytest.raises(ControlError, match=r"way: is an open path.*2 laps"):
        path_reference(robot, way, laps=2, name="way")
