"""One-sample inverse dynamics against Pinocchio and MuJoCo."""

import numpy as np
import pytest
from hypothesis import given, settings

import armid
from armid.control.newton_euler import RigidTorque
from armid.dynamics import Model

pytest.importorskip("pinocchio")
import pinocchio as pin

from tests.dynamics.arms import pinocchio_model, robots, values_of


@given(robots("chain", "any"))
@settings(max_examples=40, deadline=None)
def test_trees_as_in_pinocchio(arm):
    """Random trees with turning and sliding joints, in any mounting: Pinocchio's recursion to 1e-9."""
    robot, inertia = arm
    model = Model(robot)
    torque = RigidTorque(model, values_of(model, inertia))
    other, data = pinocchio_model(robot, inertia)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, robot.n_joints))
    exact = pin.rnea(other, data, q, qd, qdd)
    assert np.abs(torque(q, qd, qdd) - exact).max() <= 1e-9 * max(1.0, np.abs(exact).max())


@pytest.mark.parametrize("name", ["pa10", "powerball", "er16", "ir361"])
def test_rotors_as_in_mujoco(name):
    """Geared rotors that ride on links, as bodies of their own in MuJoCo: M qdd + h to 1e-8."""
    pytest.importorskip("mujoco")
    from armid.excitation.constraints import prior_values
    from armid.experiment.physics import Physics
    from armid.experiment.virtual import truth_of

    robot = armid.load_robot(name, simplify="none")
    truth = truth_of(robot)
    robot = robot.first_links(len(truth.inertia))
    model = Model(robot)
    torque = RigidTorque(model, prior_values(model))
    physics = Physics(robot, truth, None)
    for q, qd, qdd in np.random.default_rng(1).normal(size=(5, 3, robot.n_joints)):
        mass, bias = physics.joint_space(q, qd)
        exact = mass @ qdd + bias
        assert np.abs(torque(q, qd, qdd) - exact).max() <= 1e-8 * np.abs(exact).max()


def test_friction_does_not_count():
    """Parameters of friction are left out."""
    model = Model(armid.load_robot("ir361"))
    values = np.zeros(len(model.names))
    values[[parameter.kind == "friction" for parameter in model.parameters]] = 5.0
    assert not RigidTorque(model, values)(*np.ones((3, 3))).any()


@given(robots("chain"))
@settings(max_examples=40, deadline=None)
def test_momentum_as_in_pinocchio(arm):
    """Random chains: M qd, and G - C' qd with the Coriolis matrix, by Pinocchio to 1e-9."""
    robot, inertia = arm
    model = Model(robot)
    rigid = RigidTorque(model, values_of(model, inertia))
    other, data = pinocchio_model(robot, inertia)
    q, qd = np.random.default_rng(0).normal(size=(2, 5, robot.n_joints))
    found = rigid.momentum(q, qd)
    for k in range(5):
        mass = pin.crba(other, data, q[k])
        mass = np.triu(mass) + np.triu(mass, 1).T
        coriolis = pin.computeCoriolisMatrix(other, data, q[k], qd[k])
        bias = pin.computeGeneralizedGravity(other, data, q[k]) - coriolis.T @ qd[k]
        for ours, exact in zip(found, (mass @ qd[k], bias), strict=True):
            assert np.abs(ours[k] - exact).max() <= 1e-9 * max(1.0, np.abs(exact).max())


@given(robots("any"))
@settings(max_examples=40, deadline=None)
def test_momentum_of_trees_is_that_of_the_mass_matrix(arm):
    """Random trees, where Pinocchio's Coriolis matrix does not give its own torque: by the model's own matrices."""
    robot, inertia = arm
    model = Model(robot)
    _assert_momentum(model, values_of(model, inertia))


@pytest.mark.parametrize("name", ["pa10", "powerball", "er16", "ir361"])
def test_momentum_with_rotors_is_that_of_the_mass_matrix(name):
    """Geared rotors that ride on links: M qd, and G - C' qd with M' - C = C', by the model's own matrices."""
    from armid.excitation.constraints import prior_values

    model = Model(armid.load_robot(name, simplify="none"))
    _assert_momentum(model, prior_values(model))


def _assert_momentum(model, values):
    q, qd = np.random.default_rng(1).normal(size=(2, 5, model.robot.n_joints))
    mass, coriolis = model.mass_matrix(q, values), model.coriolis_matrix(q, qd, values)
    change = (model.mass_matrix(q + 1e-6 * qd, values) - model.mass_matrix(q - 1e-6 * qd, values)) / 2e-6
    assert np.abs(coriolis + np.swapaxes(coriolis, 1, 2) - change).max() <= 1e-6 * max(1.0, np.abs(mass).max())
    bias = model.gravity_torque(q, values) - np.einsum("tij,ti->tj", coriolis, qd)
    found = RigidTorque(model, values).momentum(q, qd)
    for ours, exact in zip(found, (np.einsum("tij,tj->ti", mass, qd), bias), strict=True):
        assert np.abs(ours - exact).max() <= 1e-9 * max(1.0, np.abs(exact).max())
