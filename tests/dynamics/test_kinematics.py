"""Frames and Jacobian against Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings

import armid
from armid.errors import ArmidError
from tests.dynamics.arms import pinocchio_model, robots


@settings(max_examples=30, deadline=None)
@given(robots("chain", "depth-first"))
def test_frames_and_jacobian_equal_pinocchio(arm):
    """Every link's frame, and the Jacobian of a point on every link, are Pinocchio's."""
    robot, inertia = arm
    q = np.random.default_rng(0).uniform(-2, 2, (3, robot.n_joints))
    oracle, data = pinocchio_model(robot, inertia)
    frames = armid.link_frames(robot, q)
    point = np.array([0.1, -0.2, 0.3])
    for k, position in enumerate(q):
        pin.computeJointJacobians(oracle, data, position)
        for i, joint in enumerate(robot.joints):
            expected = data.oMi[i + 1].homogeneous @ joint.link_frame
            assert np.allclose(frames[k, i], expected, atol=1e-12)
            jacobian = pin.getJointJacobian(oracle, data, i + 1, pin.ReferenceFrame.WORLD).reshape(6, -1)
            world = expected[:3, :3] @ point + expected[:3, 3]
            moved = jacobian.copy()
            moved[:3] = jacobian[:3] - np.cross(world, jacobian[3:].T).T
            assert np.allclose(armid.jacobian(robot, q, i + 1, point)[k], moved, atol=1e-12)


def test_tool_sits_on_the_last_link():
    """The tool frame is the last link's frame times the tool; the Jacobian's default point is the tool's origin."""
    robot = armid.load_robot("powerball")
    robot = type(robot)(**{**vars(robot), "tool": pin.SE3(pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), np.ones(3)).homogeneous})
    q = np.random.default_rng(1).uniform(-2, 2, (4, 6))
    assert np.allclose(armid.tool_frame(robot, q), armid.link_frames(robot, q)[:, -1] @ robot.tool)
    step = 1e-6
    for j in range(6):
        shift = np.zeros(6)
        shift[j] = step
        slope = (armid.tool_frame(robot, q + shift) - armid.tool_frame(robot, q - shift))[:, :3, 3] / (2 * step)
        assert np.allclose(armid.jacobian(robot, q)[:, :3, j], slope, atol=1e-8)


def test_wrong_link_and_shape_are_refused():
    robot = armid.load_robot("rx60")
    with pytest.raises(ArmidError, match="no link 4"):
        armid.jacobian(robot, np.zeros((1, 3)), 4)
    with pytest.raises(ArmidError, match="samples, 3"):
        armid.link_frames(robot, np.zeros(3))
