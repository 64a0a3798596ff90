"""Adjoints against central differences, on random trees and the library's robots."""

import numpy as np
import pytest
from hypothesis import given, settings

import armid
from armid.dynamics.base import random_motion
from armid.dynamics.model import Motion
from armid.dynamics.sensitivity import Sensitivity
from tests.dynamics.arms import robots


def largest_error(value, gradient, motion, rng, step=1e-5):
    """Directional derivatives along random directions against central differences, relative to the gradient's size."""
    worst = 0.0
    for derivative in range(3):
        for _ in range(3):
            direction = rng.normal(size=motion.q.shape)
            ahead, behind = list(motion), list(motion)
            ahead[derivative] = motion[derivative] + step * direction
            behind[derivative] = motion[derivative] - step * direction
            slope = (value(Motion(*ahead)) - value(Motion(*behind))) / (2.0 * step)
            found = np.sum(gradient[derivative] * direction)
            size = np.linalg.norm(gradient[derivative]) * np.linalg.norm(direction) / np.sqrt(direction.size)
            worst = max(worst, abs(slope - found) / max(size, 1e-6))
    return worst


def check(robot, width=0.5):
    rng = np.random.default_rng(0)
    model = armid.Model(robot)
    sensitivity = Sensitivity(model, model.names, width=width)
    motion = random_motion(robot, 9, rng)
    bar = rng.normal(size=(len(model.names),) * 2)
    weights = rng.uniform(0.5, 2.0, robot.n_joints)
    gradient = sensitivity.information_gradient(motion, bar, weights)
    error = largest_error(lambda m: np.sum(bar * sensitivity.information(m, weights)), gradient, motion, rng)
    values, pull = rng.normal(size=len(model.names)), rng.normal(size=motion.q.shape)
    gradient = sensitivity.torque_gradient(motion, values, pull)
    return max(error, largest_error(lambda m: np.sum(pull * sensitivity.torque(m, values)), gradient, motion, rng))


@settings(max_examples=20, deadline=None)
@given(robots("chain", "depth-first", "any"))
def test_random_trees(arm):
    """Revolute and prismatic joints, any frames, any tree."""
    assert check(arm[0]) < 1e-6


@pytest.mark.parametrize("name", armid.library_names())
def test_library_robots(name):
    """Rotors, friction and springs included; the sign of velocity is smoothed."""
    assert check(armid.load_robot(name)) < 1e-6


def test_smoothed_sign_tends_to_the_sharp_one():
    """With a narrow width the information is that of the model itself."""
    model = armid.Model(armid.load_robot("ir361"))
    motion = random_motion(model.robot, 300, np.random.default_rng(1))
    W = model.regressor(*motion).reshape(-1, len(model.names))
    exact = W.T @ W / 300
    assert np.allclose(Sensitivity(model, model.names, width=0.0).information(motion), exact, rtol=1e-9, atol=1e-9)
    near = Sensitivity(model, model.names, width=1e-6).information(motion)
    assert np.allclose(near, exact, rtol=1e-3, atol=1e-3)
    wide = Sensitivity(model, model.names, width=0.5).information(motion)
    assert np.abs(wide - exact).max() > 1e-2
