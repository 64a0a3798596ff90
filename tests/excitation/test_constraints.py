"""Lever arms: no posture moves a point faster, and an outstretched arm moves it as fast."""

import numpy as np
import pytest

import armid
from armid.dynamics.kinematics import jacobian
from armid.excitation.constraints import lever_arms
from armid.excitation.trajectory import Extrema
from tests.dynamics.arms import random_robot


@pytest.mark.parametrize("seed", range(6))
def test_no_posture_is_faster(seed):
    """On random trees with sliding joints, columns of the Jacobian of any point never exceed the bounds."""
    robot, _ = random_robot(seed, 6, "any", prismatic=True)
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2.0, 2.0, (2000, 6))
    extrema = Extrema(np.full(6, -2.0), np.full(6, 2.0), np.ones(6), np.ones(6))
    for link in range(1, 7):
        point = rng.normal(size=3)
        arms = lever_arms(robot, link, point, extrema)
        seen = np.linalg.norm(jacobian(robot, q, link, point)[:, :3], axis=1).max(axis=0)
        assert np.all(seen <= arms + 1e-12)
        assert np.array_equal(arms > 0.0, np.isin(np.arange(6), robot.path_to(link)))


def test_outstretched():
    """An IR 361 at full stretch moves its tool as fast as the bounds say."""
    robot = armid.load_robot("ir361")
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (5000, 3))
    extrema = Extrema(np.full(3, -np.pi), np.full(3, np.pi), np.ones(3), np.ones(3))
    seen = np.linalg.norm(jacobian(robot, q)[:, :3], axis=1).max(axis=0)
    arms = lever_arms(robot, 3, robot.tool[:3, 3], extrema)
    assert seen == pytest.approx(arms, rel=1e-3)


def test_base():
    """Nothing moves the base."""
    robot = armid.load_robot("ir361")
    extrema = Extrema(*np.zeros((4, 3)))
    assert not lever_arms(robot, 0, np.ones(3), extrema).any()
