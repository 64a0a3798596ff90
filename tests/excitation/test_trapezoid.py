"""Point-to-point motion."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.excitation.polynomial import random_points, trapezoidal
from armid.excitation.trajectory import TrajectoryError
from armid.robot.robot import Limits
from tests.excitation.differences import assert_exact_derivatives


def test_twenty_random_points():
    """Swevers' validation: every point is reached at rest, within limits, some joint at a limit all the time."""
    robot = armid.load_robot("ir361")
    limits = robot.limits
    points = random_points(robot, 20, seed=4)
    assert np.all((points > limits.lower) & (points < limits.upper))
    one = trapezoidal(points, limits.velocity, limits.acceleration)
    q, qd, qdd = one.at(np.append(one.breaks, np.linspace(0, one.duration, 20_000)))
    assert np.all(np.abs(qd) <= limits.velocity * (1 + 1e-9))
    assert np.all(np.abs(qdd) <= limits.acceleration * (1 + 1e-9))
    assert np.all((q >= limits.lower) & (q <= limits.upper))
    used = np.maximum(np.abs(qd) / limits.velocity, np.abs(qdd) / limits.acceleration).max(axis=1)
    moving = np.abs(qd).max(axis=1) > 1e-9
    assert np.all(used[moving] > 1 - 1e-6)
    stops = one.at(one.breaks[np.abs(one.at(one.breaks).qd).max(axis=1) < 1e-9])
    assert all(np.abs(stops.q - point).max(axis=1).min() < 1e-9 for point in points)
    assert_exact_derivatives(one, away_from=one.breaks)


def test_joints_move_together():
    """On a straight line in joint space; a short way is a triangle; times as by hand."""
    one = trapezoidal([[0.0, 0.0], [2.0, -1.0], [2.0, -0.9]], 1.0, 1.0)
    assert one.duration == pytest.approx(3.0 + 2 * np.sqrt(0.1))
    q = one.at(np.linspace(0, 3, 50)).q
    assert np.allclose(q[:, 1], -0.5 * q[:, 0])


def test_repeated_points_cost_no_time():
    one = trapezoidal([[0.0], [1.0], [1.0], [0.0]], 1.0, 1.0)
    assert one.duration == pytest.approx(2.0 + 2.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0]], 1.0, 1.0), "points has shape"),
        (([[0.0], [0.0]], 1.0, 1.0), "points are all the same"),
        (([[0.0], [1.0]], 0.0, 1.0), "velocity must be positive"),
        (([[0.0], [1.0]], 1.0, np.nan), "acceleration must be finite"),
        (([[0.0], [1.0]], [1.0, 1.0], 1.0), "velocity has shape"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(TrajectoryError, match=message):
        trapezoidal(*arguments)


def test_random_points_repeat_and_need_limits():
    robot = armid.load_robot("pa10")
    assert np.array_equal(random_points(robot, seed=1), random_points(robot, seed=1))
    assert random_points(robot).shape == (20, 7)
    inner = random_points(robot, 500, 0, margin=0.4)
    assert np.all(np.abs(inner) <= 0.2 * robot.limits.upper + 1e-12)
    lower = robot.limits.lower.copy()
    lower[2] = np.nan
    some = replace(robot, limits=replace(robot.limits, lower=lower))
    with pytest.raises(TrajectoryError, match=f"not known for {robot.joint_names[2]};"):
        random_points(some)
    with pytest.raises(TrajectoryError, match="position limits of pa10"):
        random_points(replace(robot, limits=Limits.unknown(7)))
    with pytest.raises(TrajectoryError, match="count"):
        random_points(robot, 0)
    with pytest.raises(TrajectoryError, match="margin"):
        random_points(robot, margin=0.5)
