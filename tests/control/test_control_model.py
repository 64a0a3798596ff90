"""Rigid body and rest of identified and nominal models."""

import numpy as np
import pytest

import armid
from armid.control import ControlError, fit_model, nominal_model
from armid.dynamics import Model
from armid.robot import load_robot
from tests.control.arms import fitted, motion_of

IR361 = armid.load_robot("ir361")  # with springs and rotors


@pytest.fixture(scope="module")
def fit():
    return fitted(IR361)


def test_both_parts_make_up_the_fit(fit):
    """Rigid body and rest add up to the fit's own prediction, sample by sample too."""
    model, (_, motion) = fit_model(fit), motion_of(IR361, samples=50, seed=3)
    expected = fit.predict(motion).torque
    assert np.allclose(model.torque(motion), expected, atol=1e-9)
    single = [model.rigid(*row) for row in zip(*motion, strict=True)]
    assert np.allclose(np.array(single) + model.rest(motion), expected, atol=1e-9)


def test_the_rest_is_friction_and_springs(fit):
    """At rest without gravity's change nothing depends on acceleration: it is all in the rigid part."""
    model, (_, motion) = fit_model(fit), motion_of(IR361, samples=50, seed=3)
    faster = motion._replace(qdd=2.0 * motion.qdd)
    assert np.allclose(model.rest(motion), model.rest(faster), atol=1e-8)


def test_nominal_model_of_a_published_list():
    """The PA-10's appendix: all 21 values are kept, friction is not there."""
    robot = armid.load_robot("pa10")
    model = nominal_model(robot)
    from armid.dynamics.views import published

    view = published(Model(robot), "appendix")
    printed = [row["value"] for row in robot.published["appendix"]["parameters"]]
    assert view.values(model.values) == pytest.approx(printed, rel=1e-9, abs=1e-12)
    _, motion = motion_of(robot, samples=20)
    assert not model.rest(motion).any()


def test_nominal_model_of_a_urdf(tmp_path):
    """Inertias and friction that a URDF states: the torque of a pendulum by hand."""
    path = tmp_path / "pendulum.urdf"
    path.write_text(
        '<robot name="pendulum"><link name="base"/><link name="rod"><inertial><origin xyz="0.4 0 0"/><mass value="2"/>'
        '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.03"/></inertial></link>'
        '<joint name="hinge" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>'
        '<dynamics damping="0.5" friction="0.2"/></joint></robot>'
    )
    model = nominal_model(load_robot(path))
    from armid.dynamics.model import Motion

    found = model.torque(Motion(np.array([[0.0]]), np.array([[2.0]]), np.array([[3.0]])))[0, 0]
    # about y, gravity on a rod along x pulls down: the drive must hold -m g c
    assert found == pytest.approx((0.02 + 2 * 0.4**2) * 3.0 - 2 * 9.81 * 0.4 + 0.5 * 2.0 + 0.2, rel=1e-3)


def test_no_nominal_model():
    """An arm without stated inertias says what is missing."""
    with pytest.raises(ControlError, match="no nominal inertia"):
        nominal_model(armid.load_robot("ir361"))


def test_impossible_mass_matrix(fit):
    """A model that no arm has is refused."""
    from dataclasses import replace

    model = fit_model(fit)
    wrong = replace(model, values=-model.values)
    with pytest.raises(ControlError, match="not positive definite"):
        wrong.mass_matrix(np.zeros((1, 3)))
