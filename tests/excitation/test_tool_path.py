"""Tool paths and the joint trajectories that follow them."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.kinematics import UnreachableError, pose_error
from armid.excitation import FourierSeries, programme
from armid.excitation.tool_path import bulb, circle, ellipse, ellipsoid, helix, joint_trajectory, pa10_figure
from armid.excitation.trajectory import TrajectoryError
from tests.excitation.differences import assert_exact_derivatives

CENTRE = np.array([0.35, 0.1, 0.3])
TILTED = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
PATHS = {
    "circle": circle(CENTRE),
    "ellipse": ellipse(CENTRE, plane=TILTED),
    "bulb": bulb(CENTRE),
    "ellipsoid": ellipsoid(CENTRE),
    "helix": helix(CENTRE),
    "figure": pa10_figure(),
}


@pytest.fixture(scope="module")
def rx60():
    """The RX-60 with its wrist centre as the tool."""
    tool = np.eye(4)
    tool[1, 3] = -0.31
    return replace(armid.load_robot("rx60"), tool=tool)


def positions(path, times):
    """Where the tool is, (samples, 3) [m]."""
    return path.poses(times)[:, :3, 3]


@pytest.mark.parametrize("name", PATHS)
def test_paths_close_smoothly(name):
    """A lap ends where it began, with the same velocity and acceleration (differences on either side of the seam)."""
    path, steps = PATHS[name], np.arange(-2, 3) * 1e-3
    around_start, around_end = (positions(path, at + steps) for at in (0.0, path.duration))
    assert np.abs(around_start - around_end).max() < 1e-12
    inside = positions(path, np.linspace(0.0, path.duration, 4000))
    assert np.abs(np.diff(inside, 2, axis=0)).max() < 1e-3  # no corner


def test_shapes():
    """Each curve lies where its name says."""
    t = np.linspace(0, 30, 301)
    assert np.allclose(np.linalg.norm(positions(PATHS["circle"], t) - CENTRE, axis=1), 0.1)
    x, y, z = ((positions(PATHS["ellipse"], t) - CENTRE) / [0.12, 1.0, 0.06]).T
    assert np.allclose(x**2 + z**2, 1)
    assert np.allclose(y, 0)
    assert np.allclose(np.sum(((positions(PATHS["ellipsoid"], t) - CENTRE) / [0.1, 0.1, 0.07]) ** 2, axis=1), 1)
    x, y, z = (positions(PATHS["helix"], t) - CENTRE).T
    assert np.allclose(np.hypot(x, y), 0.1)
    assert np.allclose(np.stack([x, y]), 0.1 * np.stack([np.cos(4 * np.pi * z / 0.15), np.sin(4 * np.pi * z / 0.15)]))
    x, y, z = (positions(PATHS["bulb"], np.linspace(0, 5, 1000)) - CENTRE).T
    assert np.abs(x[y > 0.05]).max() > 2 * np.abs(x[y < -0.08]).max()


def test_figure_of_the_pa10():
    """(20) written out; it starts with (0.170, 0, -0.075) m/s and is never faster than 0.255 m/s."""
    path = pa10_figure()
    t = np.linspace(0, 2 * np.pi, 2001)
    motion = positions(path, t)
    expected = np.stack(
        [0.085 * (np.cos(t) + np.sin(2 * t) - 1), 0.7 + 0 * t, -0.075 * (np.sin(t) + np.cos(2 * t) - 1) + 0.7248], 1
    )
    assert np.allclose(motion, expected, atol=1e-15)
    velocity = (positions(path, t + 1e-5) - positions(path, t - 1e-5)) / 2e-5
    assert velocity[0] == pytest.approx([0.170, 0.0, -0.075], abs=1e-8)
    assert np.linalg.norm(velocity, axis=1).max() == pytest.approx(0.255, abs=5e-4)


def test_pa10_follows_its_figure():
    """Tool error below 1e-6 m between grid points too, constant orientation, inside all limits, with a run-in."""
    robot, path = armid.load_robot("pa10"), pa10_figure()
    one = joint_trajectory(robot, path, [np.pi / 2, 0.6, 0.0, 1.2, 0.0, -1.0, 0.0], 20.0)
    assert isinstance(one, FourierSeries)
    times = np.random.default_rng(0).uniform(0, 2 * np.pi, 1000)
    assert np.abs(pose_error(robot, one.at(times).q, path.poses(times))).max() < 1e-9
    found = one.extrema()
    limits = robot.limits
    assert np.all(found.lower > 0.65 * limits.lower)
    assert np.all(found.upper < 0.65 * limits.upper)
    assert np.all(found.velocity < 0.5 * limits.velocity)
    assert np.all(found.acceleration < limits.acceleration)
    assert_exact_derivatives(one, step=1e-3)
    whole = programme(one, home=np.zeros(7), periods=2, limits=limits)
    assert whole.window[1] - whole.window[0] == pytest.approx(4 * np.pi)


@pytest.mark.parametrize("name", [name for name in PATHS if name != "figure"])
def test_rx60_follows_its_paths(name, rx60):
    """All paths of IV.A are followed to 1e-7 m, with exact derivatives and the tool's velocity J qd."""
    path = PATHS[name]
    one = joint_trajectory(rx60, path, [0.0, 0.2, -0.6], 25.0)
    assert isinstance(one, FourierSeries)
    times = np.random.default_rng(1).uniform(0.1, path.duration - 0.1, 200)
    q, qd, _ = one.at(times)
    assert np.abs(armid.tool_frame(rx60, q)[:, :3, 3] - positions(path, times)).max() < 1e-7
    velocity = np.einsum("sij,sj->si", armid.jacobian(rx60, q)[:, :3], qd)
    assert np.abs(velocity - (positions(path, times + 1e-5) - positions(path, times - 1e-5)) / 2e-5).max() < 1e-4
    assert_exact_derivatives(one, step=1e-4)


def test_paths_that_cannot_be_followed(rx60):
    with pytest.raises(UnreachableError, match="cannot reach pose"):
        joint_trajectory(rx60, circle([0.5, 0.1, 0.3]), [0.0, 0.2, -0.6], 10.0)
    with pytest.raises(TrajectoryError, match=r"rate_hz 2 leaves tool errors of .* use a higher rate"):
        joint_trajectory(rx60, PATHS["helix"], [0.0, 0.2, -0.6], 2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: circle([0.0, 0.0]), "centre has shape"),
        (lambda: circle(CENTRE, period=0.0), "period is 0"),
        (lambda: circle(CENTRE, plane=2 * np.eye(3)), "frame must be a rotation"),
        (lambda: circle(CENTRE, rotation=np.diag([1.0, 1.0, -1.0])), "rotation must be a rotation"),
        (lambda: bulb(CENTRE, neck=1.0), "neck is 1"),
        (lambda: ellipsoid(CENTRE, winding=1), "winding is 1"),
        (lambda: helix(CENTRE, turns=-1.0), "turns is -1"),
        (lambda: PATHS["circle"].poses([np.nan]), "times must be finite"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(TrajectoryError, match=message):
        make()
