"""Friction, springs, reflected rotors and coupled drives, against formulas written out here."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from armid.errors import ArmidError
from armid.robot.parts import Friction
from armid.robot.robot import Counterbalance


@pytest.fixture
def robot():
    return armid.load_robot("ir361")


def column(model, name, motion):
    return model.regressor(*motion, [name])[..., 0]


def test_linear_friction(robot):
    """fv, fc and fo multiply velocity, its sign and one, on their own joint alone; sign(0) is 0."""
    model = armid.Model(replace(robot, friction=(Friction("coulomb-viscous", offset=True),) * 3))
    motion = random_motion(robot, 130, np.random.default_rng(0))
    motion.qd[7, 1] = 0.0
    expected = {"fv2": motion.qd[:, 1], "fc2": np.sign(motion.qd[:, 1]), "fo2": np.ones(130)}
    for name, torque in expected.items():
        found = column(model, name, motion)
        assert np.array_equal(found[:, 1], torque)
        assert not found[:, [0, 2]].any()


def test_friction_per_direction(robot):
    """Columns for each direction are the law's torque for that direction and sum to the symmetric law."""
    model = armid.Model(replace(robot, friction=(Friction("coulomb-viscous", per_direction=True),) * 3))
    motion = random_motion(robot, 50, np.random.default_rng(1))
    v = motion.qd[:, 2]
    assert np.array_equal(column(model, "fv3p", motion)[:, 2], np.where(v > 0, v, 0.0))
    assert np.array_equal(column(model, "fv3n", motion)[:, 2], np.where(v < 0, v, 0.0))
    assert np.array_equal(column(model, "fc3p", motion)[:, 2], np.where(v > 0, 1.0, 0.0))
    assert np.array_equal(column(model, "fc3n", motion)[:, 2], np.where(v < 0, -1.0, 0.0))


def test_friction_columns_are_the_law(robot):
    """Linear columns times coefficients give what the friction law itself says."""
    for friction in (Friction("coulomb-viscous"), Friction("coulomb-viscous", True, True)):
        model = armid.Model(replace(robot, friction=(friction,) * 3))
        motion = random_motion(robot, 40, np.random.default_rng(2))
        values = {name: 0.5 + i for i, name in enumerate(friction.coefficient_names)}
        named = {f"{name[:2]}1{name[2:]}": value for name, value in values.items()}
        assert np.allclose(model.inverse_dynamics(*motion, named)[:, 0], friction.torque(motion.qd[:, 0], values))


def test_spring_is_the_derivative_of_its_energy(robot):
    """The spring's torque is d/dq of k (l - l0)^2 / 2, by central differences."""
    model = armid.Model(robot)
    spring = robot.springs[0]
    k, l0 = 3000.0, 0.2
    motion = random_motion(robot, 30, np.random.default_rng(3))

    def energy(q):
        return (
            0.5 * k * (np.sqrt(spring.a**2 + spring.b**2 - 2 * spring.a * spring.b * np.cos(q - spring.phi)) - l0) ** 2
        )

    q2, step = motion.q[:, 1], 1e-5
    expected = (energy(q2 + step) - energy(q2 - step)) / (2 * step)
    torque = model.inverse_dynamics(*motion, {"ks1": k, "kl1": k * l0})
    assert np.allclose(torque[:, 1], expected, atol=1e-4)
    assert not torque[:, [0, 2]].any()


def test_reflected_rotor_is_gear_ratio_squared(robot):
    """Without coupling a rotor is k^2 Im qdd on its joint, in torque and mass matrix."""
    drives = tuple(replace(drive, coupled=False) for drive in robot.drives)
    model = armid.Model(replace(robot, drives=drives))
    motion = random_motion(robot, 20, np.random.default_rng(4))
    ratio = drives[2].gear_ratio
    torque = model.inverse_dynamics(*motion, {"Im3": 2e-4})
    assert np.allclose(torque[:, 2], ratio**2 * 2e-4 * motion.qdd[:, 2])
    assert not torque[:, :2].any()
    assert np.allclose(model.mass_matrix(motion.q, {"Im3": 2e-4}), np.diag([0.0, 0.0, ratio**2 * 2e-4]))


def test_coupled_motor_acts_through_its_matrix(robot):
    """A motor that moves two joints adds rotor inertia and friction along its own coordinate: tau = R^T tau_motor."""
    R = np.array([[100.0, 0, 0], [0, 110.0, 0], [0, 45.0, 90.0]])
    model = armid.Model(replace(robot, coupling=R))
    motion = random_motion(robot, 60, np.random.default_rng(5))
    inertia, fv, fc = 1e-4, 2e-3, 5e-2  # motor side
    motor = np.zeros((60, 3))
    motor[:, 2] = (
        inertia * (motion.qdd @ R.T)[:, 2] + fv * (motion.qd @ R.T)[:, 2] + fc * np.sign((motion.qd @ R.T)[:, 2])
    )
    k = R[2, 2]
    values = {"Imc3": k**2 * inertia, "fvc3": k**2 * fv, "fcc3": k * fc}
    assert np.allclose(model.inverse_dynamics(*motion, values), motor @ R, rtol=1e-12)


def test_known_counterbalance_acts(robot):
    """A tabulated counterbalance adds its torque to its joint, linearly between entries and held at the ends."""
    table = Counterbalance(2, np.array([-1.0, 0.0, 1.0]), np.array([50.0, 0.0, -80.0]))
    plain, loaded = armid.Model(robot), armid.Model(replace(robot, counterbalances=(table,)))
    q = np.array([[0.3, -0.5, 0.1], [0.3, 0.25, 0.1], [0.3, 3.0, 0.1]])
    still = np.zeros_like(q)
    values = np.ones(len(plain.names))
    extra = loaded.inverse_dynamics(q, still, still, values) - plain.inverse_dynamics(q, still, still, values)
    assert np.allclose(extra, [[0, 25.0, 0], [0, -20.0, 0], [0, -80.0, 0]])
    push = np.zeros_like(q)
    virtual = dict(zip(plain.names[:30], robot.virtual.inertia.ravel(), strict=True))
    change = loaded.forward_dynamics(q, still, push, virtual) - plain.forward_dynamics(q, still, push - extra, virtual)
    assert np.abs(change).max() < 1e-9


def test_known_values_must_belong_to_a_parameter(robot):
    """A known value for something the robot does not have is refused with the nearest name."""
    with pytest.raises(ArmidError, match="'fo1' is no parameter"):
        armid.Model(replace(robot, known={"fo1": 1.0}))
    assert "Im3" not in armid.Model(replace(robot, known={"Im3": 1e-4}, rotors=False)).names
