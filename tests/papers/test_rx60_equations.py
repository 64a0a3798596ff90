"""The RX-60's closed-form torques against the model."""

import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from armid.papers.rx60_equations import ERRATA, torque


@pytest.fixture(scope="module")
def case():
    """A random arm with the paper's symmetry, its alphas, a motion and the model's torque."""
    rng = np.random.default_rng(5)
    robot = armid.load_robot("rx60", rotors=False, simplify="alpha")
    model = armid.Model(robot)
    values = dict(zip(model.unknown, rng.normal(size=len(model.unknown)), strict=True))
    motion = random_motion(robot, 200, rng)
    alpha = armid.view(model, "alpha").values(values)
    return motion, alpha, model.inverse_dynamics(*motion, values)


def test_corrected_equations_equal_the_model(case):
    """All errata mended, every term agrees."""
    motion, alpha, expected = case
    assert np.abs(torque(*motion, alpha) - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("erratum", ERRATA)
def test_each_printed_error_shows(case, erratum):
    """Leaving a single erratum in changes the torque visibly (RX-1 ... RX-4)."""
    motion, alpha, expected = case
    assert np.abs(torque(*motion, alpha, as_printed=[erratum]) - expected).max() > 1e-3 * np.abs(expected).max()


def test_printed_equations_are_not_the_model(case):
    """The equations as printed are far off."""
    motion, alpha, expected = case
    assert np.abs(torque(*motion, alpha, as_printed=ERRATA) - expected).max() > 0.1 * np.abs(expected).max()


def test_printed_equations_keep_torque_1(case):
    """The first printed torque equation is right, as the errata say."""
    motion, alpha, expected = case
    printed = torque(*motion, alpha, as_printed=ERRATA)
    assert np.abs(printed[:, 0] - expected[:, 0]).max() <= 1e-12 * np.abs(expected).max()
