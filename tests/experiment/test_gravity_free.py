"""Postures in which gravity does not act on a joint, or acts most."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.excitation.constraints import prior_values
from armid.experiment.gravity_free import foreseen_values, gravity_free, gravity_loaded

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")
ARMS = [(robot, joint) for robot in (PA10, POWERBALL) for joint in range(1, robot.n_joints + 1)]


@pytest.mark.parametrize(("robot", "joint"), ARMS)
def test_gravity_is_gone_over_the_whole_turn(robot, joint):
    """In the posture and mounting found, gravity's torque on the joint vanishes at every angle inside the limits."""
    found = gravity_free(robot, joint)
    q = np.repeat(found.position[None], 50, axis=0)
    q[:, joint - 1] = np.linspace(robot.limits.lower[joint - 1], robot.limits.upper[joint - 1], 50)
    model = Model(robot.with_gravity(found.gravity))
    assert np.abs(model.gravity_torque(q, prior_values(model))[:, joint - 1]).max() < 1e-9
    assert np.all((found.position >= robot.limits.lower) & (found.position <= robot.limits.upper))


def test_powerball_mountings_are_those_of_the_paper():
    """Joints 1, 4, 5, 6 with the base upright, 2 and 3 with the base horizontal."""
    mountings = [gravity_free(POWERBALL, joint).mounting for joint in range(1, 7)]
    assert [m == "as mounted" for m in mountings] == [True, False, False, True, True, True]
    assert all("horizontal" in m for m in mountings[1:3])
    assert "still acts" in gravity_free(POWERBALL, 2, remount=False).reason


def test_pa10_needs_no_other_mounting():
    """Mounted horizontally, every joint has a posture; joint 1 is balanced, its axis cannot be vertical."""
    found = [gravity_free(PA10, joint) for joint in range(1, 8)]
    assert all(posture.as_mounted for posture in found)
    assert "balanced" in found[0].reason
    assert "along gravity" in found[1].reason


def test_without_masses_geometry_decides():
    """The axis along gravity is found from kinematics alone; what is left of gravity is then unknown."""
    bare = replace(POWERBALL, virtual=None)
    for joint in range(1, 7):
        found = gravity_free(bare, joint)
        assert found.axis_angle == pytest.approx(0.0, abs=1e-9)
        assert np.isnan(found.torque)
    with pytest.raises(armid.ArmidError, match="weight of the links is not known"):
        gravity_loaded(bare, 2)


@pytest.mark.parametrize("joint", range(1, 7))
def test_loaded_postures_carry_most(joint):
    """No random posture loads the joint much more than the one found."""
    model = Model(PA10)
    q = np.random.default_rng(0).uniform(PA10.limits.lower, PA10.limits.upper, (2000, 7))
    most = np.abs(model.gravity_torque(q, prior_values(model))[:, joint - 1]).max()
    assert gravity_loaded(PA10, joint).torque > 0.8 * most


def test_a_payload_is_part_of_the_weight():
    """The virtual KR 15 carries a body: gravity foreseen with it is that of MuJoCo, which hangs it on the flange."""
    pytest.importorskip("mujoco")
    from armid.experiment.virtual import VirtualRobot

    robot = armid.load_robot("kr15")
    posture = np.array([0.1, -1.0, 0.5, 0.3, 0.7, 0.2])
    arm = VirtualRobot(robot, rate_hz=100.0, posture=posture)
    held = arm.stream(np.repeat(posture[None], 20, axis=0)), arm.truth.torque[-1] - arm.truth.friction[-1]
    model = Model(robot)
    assert held[1] == pytest.approx(model.gravity_torque(posture[None], foreseen_values(model))[0], abs=1e-6)


def test_unknown_joints_and_no_gravity():
    """Numbers and names out of range are refused, and so is an arm in space."""
    with pytest.raises(armid.ArmidError, match="numbered 1 to 7"):
        gravity_free(PA10, 8)
    with pytest.raises(armid.ArmidError, match="'joint1'"):
        gravity_free(PA10, "joint_1")
