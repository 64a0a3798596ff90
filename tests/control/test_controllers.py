"""Bandwidths: the rule, against simulations that know nothing of it."""

import numpy as np
import pytest

from armid.control import ControlError, choose_gains, fit_model
from armid.control.controllers import TOLERANCE
from tests.control.arms import fitted, motion_of, small_arm

CYCLE = 0.0025


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return fit_model(fitted(small_arm(tmp_path_factory.mktemp("arm"))))


@pytest.fixture(scope="module")
def motion(model):
    return motion_of(model.robot)[1]


def test_inertia_is_the_mass_matrix(model, motion):
    """J is the mean diagonal of the mass matrix along the motion."""
    gains = choose_gains(model, motion, CYCLE)
    mass = np.mean([np.diag(model.mass_matrix(q[None])[0]) for q in motion.q[::15]], axis=0)
    assert gains.inertia == pytest.approx(mass, rel=1e-6)


def test_noise_moves_a_joint_as_the_rule_says(model, motion):
    """White torque noise on J e'' + 2 J w e' + J w^2 e, simulated step by step: four deviations are the tolerance."""
    inertia = choose_gains(model, motion, CYCLE).inertia
    noise = np.array([3.0, 1.5, 0.5]) * inertia
    gains = choose_gains(model, motion, CYCLE, noise=noise)
    alone = choose_gains(model, motion, CYCLE)
    decides = gains.omega > alone.omega  # not friction, and not the lower limit
    assert decides.any()
    rng = np.random.default_rng(0)
    w, sigma = gains.omega[decides], noise[decides] / inertia[decides]
    e, v, found = np.zeros_like(w), np.zeros_like(w), []
    for push in sigma * rng.normal(size=(100_000, len(w))):
        v = v + CYCLE * (push - 2.0 * w * v - w * w * e)
        e = e + CYCLE * v
        found.append(e)
    assert 4.0 * np.std(found, axis=0) == pytest.approx(np.full_like(w, TOLERANCE), rel=0.15)


def test_grading(model, motion):
    """Less inertia for the same friction needs a higher bandwidth; all stay within their limits."""
    from dataclasses import replace

    plain = choose_gains(model, motion, CYCLE)
    light = choose_gains(replace(model, values=0.05 * model.values), motion, CYCLE)
    assert np.all(light.omega >= plain.omega)
    assert light.omega.max() > plain.omega.max()
    assert np.all((plain.bandwidth_hz >= 3.0 - 1e-9) & (plain.omega <= 1.0 / (4.0 * CYCLE) + 1e-9))


def test_given_bandwidth(model, motion):
    """One for all, or one each; too high or too many are refused."""
    assert choose_gains(model, motion, CYCLE, bandwidth_hz=5.0).bandwidth_hz == pytest.approx([5.0] * 3)
    assert choose_gains(model, motion, CYCLE, bandwidth_hz=[1, 2, 3]).bandwidth_hz == pytest.approx([1, 2, 3])
    for wrong in (0.0, -1.0, 40.0, np.nan, [1.0, 2.0]):
        with pytest.raises(ControlError, match="bandwidth"):
            choose_gains(model, motion, CYCLE, bandwidth_hz=wrong)
