"""The dynamics against Pinocchio, on random trees with revolute and prismatic joints."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import armid
from armid.dynamics.base import random_motion
from armid.errors import ArmidError
from tests.dynamics.arms import pinocchio_model, random_robot, robots, values_of

SETTINGS = settings(max_examples=40, deadline=None)


def close(ours, theirs, tolerance=1e-10):
    return np.abs(ours - theirs).max() <= tolerance * max(1e-3, np.abs(theirs).max())


@SETTINGS
@given(robots("chain", "depth-first", "any"), st.sampled_from([1, 5, 128, 129, 300]))
def test_torque_equals_pinocchio(arm, samples):
    """Regressor times parameters, and inverse dynamics, are Pinocchio's rnea for any number of samples."""
    robot, inertia = arm
    model = armid.Model(robot)
    values = values_of(model, inertia)
    motion = random_motion(robot, samples, np.random.default_rng(0))
    oracle, data = pinocchio_model(robot, inertia)
    expected = np.array([pin.rnea(oracle, data, *state) for state in zip(*motion, strict=True)])
    assert close(model.regressor(*motion) @ values, expected)
    assert close(model.inverse_dynamics(*motion, values), expected)


@SETTINGS
@given(robots("chain", "depth-first"))
def test_regressor_equals_pinocchio(arm):
    """Every column of the regressor is Pinocchio's, joint frames being link frames."""
    robot, inertia = arm
    joints = tuple(
        replace(
            joint,
            placement=(np.eye(4) if joint.parent == 0 else robot.joints[joint.parent - 1].link_frame) @ joint.placement,
            link_frame=np.eye(4),
        )
        for joint in robot.joints
    )
    chain = replace(robot, joints=joints)
    motion = random_motion(chain, 7, np.random.default_rng(1))
    oracle, data = pinocchio_model(robot, inertia)
    states = zip(*motion, strict=True)
    expected = np.array([pin.computeJointTorqueRegressor(oracle, data, *state).copy() for state in states])
    found = armid.Model(chain).regressor(*motion)
    assert close(found, expected.reshape(found.shape))


@SETTINGS
@given(robots("chain", "depth-first"))
def test_mass_matrix_coriolis_gravity_and_forward_dynamics(arm):
    """Mass matrix, Coriolis torque and matrix, gravity and forward dynamics are Pinocchio's."""
    robot, inertia = arm
    model = armid.Model(robot)
    values = values_of(model, inertia)
    q, qd, tau = random_motion(robot, 6, np.random.default_rng(2))
    oracle, data = pinocchio_model(robot, inertia)
    mass = np.array([pin.crba(oracle, data, x) for x in q])
    mass = np.triu(mass) + np.triu(mass, 1).transpose(0, 2, 1)
    gravity = np.array([pin.computeGeneralizedGravity(oracle, data, x) for x in q])
    bias = np.array([pin.nonLinearEffects(oracle, data, x, v) for x, v in zip(q, qd, strict=True)])
    acceleration = np.array([pin.aba(oracle, data, *state) for state in zip(q, qd, tau, strict=True)])
    assert close(model.mass_matrix(q, values), mass)
    assert close(model.gravity_torque(q, values), gravity)
    assert close(model.coriolis_torque(q, qd, values), bias - gravity, 1e-9)
    assert close(model.forward_dynamics(q, qd, tau, values), acceleration, 1e-7)
    matrix = model.coriolis_matrix(q, qd, values)
    assert close((matrix @ qd[..., None])[..., 0], bias - gravity, 1e-9)


def test_coriolis_matrix_is_passive():
    """The rate of the mass matrix minus twice the Coriolis matrix is skew (passivity), by central differences."""
    robot, inertia = random_robot(3, 5, "chain", True)
    model = armid.Model(robot)
    values = values_of(model, inertia)
    q, qd, _ = random_motion(robot, 10, np.random.default_rng(3))
    step = 1e-6
    rate = (model.mass_matrix(q + step * qd, values) - model.mass_matrix(q - step * qd, values)) / (2 * step)
    skew = rate - 2.0 * model.coriolis_matrix(q, qd, values)
    assert np.abs(skew + skew.transpose(0, 2, 1)).max() < 1e-6 * np.abs(rate).max()


def test_any_subset_of_columns_in_any_order():
    """Wanted columns are the same as those cut out of the full regressor."""
    model = armid.Model(armid.load_robot("powerball", simplify="none"))
    names = list(np.random.default_rng(4).permutation(model.names)[:17])
    motion = random_motion(model.robot, 150, np.random.default_rng(4))
    full = model.regressor(*motion)
    assert np.array_equal(model.regressor(*motion, names), full[..., [model.names.index(name) for name in names]])
    pieces = [piece.copy() for piece in model.regressor_blocks(*motion, names, size=64)]
    assert [len(piece) for piece in pieces] == [64, 64, 22]
    assert np.array_equal(np.concatenate(pieces), model.regressor(*motion, names))


def test_threads_do_not_change_the_result():
    """Two threads give the same numbers as one."""
    model = armid.Model(armid.load_robot("pa10"))
    motion = random_motion(model.robot, 10_000, np.random.default_rng(5))
    try:
        armid.set_threads(1)
        one = model.regressor(*motion)
        armid.set_threads(2)
        assert np.array_equal(model.regressor(*motion), one)
    finally:
        armid.set_threads(0)


def test_not_a_number_stays_one():
    """A NaN in the motion shows in that sample's torque and nowhere else."""
    model = armid.Model(armid.load_robot("rx60"))
    motion = random_motion(model.robot, 10, np.random.default_rng(6))
    motion.q[3, 1] = np.nan
    torque = model.inverse_dynamics(*motion, np.ones(len(model.names)))
    assert np.isnan(torque[3]).any()
    assert np.isfinite(np.delete(torque, 3, axis=0)).all()


def test_large_angles_are_exact():
    """Angles of many turns give the torque of the reduced angle."""
    model = armid.Model(armid.load_robot("rx60"))
    q, qd, qdd = random_motion(model.robot, 50, np.random.default_rng(7))
    values = np.ones(len(model.names))
    turned = model.inverse_dynamics(q + 2000 * np.pi, qd, qdd, values)
    assert np.allclose(turned, model.inverse_dynamics(q, qd, qdd, values), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ((np.zeros((4, 2)),) * 3, "shapes"),
        ((np.zeros(3),) * 3, "shapes"),
        ((np.zeros((4, 3)), np.zeros((5, 3)), np.zeros((4, 3))), "shapes"),
    ],
)
def test_wrong_shapes_are_refused(arrays, reason):
    """Arrays that do not fit the robot raise a readable error."""
    model = armid.Model(armid.load_robot("rx60"))
    with pytest.raises(ArmidError, match=reason):
        model.regressor(*arrays)


def test_unknown_parameter_is_refused_with_a_suggestion():
    model = armid.Model(armid.load_robot("rx60"))
    with pytest.raises(ArmidError, match="did you mean 'Ixx3'"):
        model.regressor(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 3)), ["Ixx33"])
