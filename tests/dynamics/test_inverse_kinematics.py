"""Inverse kinematics along paths."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.kinematics import (
    JointLimitAvoidance,
    UnreachableError,
    inverse_kinematics,
    pose_error,
)
from armid.errors import DataShapeError
from armid.robot.robot import Limits
from tests.dynamics.arms import random_robot


@pytest.mark.parametrize("seed", range(6))
def test_finds_back_a_path_of_random_arms(seed):
    """Poses along a smooth joint motion of random arms (turning and sliding joints) are met to 1e-9, no jumps."""
    robot, _ = random_robot(seed, 6 + seed % 2, "chain", prismatic=True)
    rng = np.random.default_rng(seed)
    start, way = rng.uniform(-1, 1, (2, robot.n_joints))
    q = start + 0.5 * np.sin(np.linspace(0, 2, 60))[:, None] * way
    poses = armid.tool_frame(robot, q)
    robot = replace(robot, limits=Limits.unknown(robot.n_joints))
    found = inverse_kinematics(robot, poses, q[0])
    assert np.abs(pose_error(robot, found, poses)).max() < 2e-9
    assert np.abs(np.diff(found, axis=0)).max() < 0.5


def test_first_pose_far_from_the_start():
    """The first pose may be far away, half a turn of the tool included."""
    robot = armid.load_robot("powerball")
    q = np.array([[0.5, -0.7, 1.2, 0.4, 0.9, -0.3]])
    poses = armid.tool_frame(robot, q)
    turned = q[0] + np.pi * np.eye(6)[5]
    found = inverse_kinematics(robot, poses, turned, respect_limits=False)
    assert np.abs(pose_error(robot, found, poses)).max() < 2e-9


def test_self_motion_goes_to_the_middle_of_the_ranges():
    """With the null-space term the PA-10 settles nearer to the middle, at the same pose, and from any start alike."""
    robot = armid.load_robot("pa10")
    start = np.array([1.2, 0.5, 1.0, 1.2, -0.8, -1.0, 0.7])
    poses = armid.tool_frame(robot, start[None])
    free = inverse_kinematics(robot, poses, start, null_space=None)[0]
    kept = inverse_kinematics(robot, poses, start, null_space=JointLimitAvoidance(gain=0.5))[0]
    assert np.allclose(free, start)
    assert np.abs(pose_error(robot, kept[None], poses)).max() < 2e-9

    def distance(q):
        return np.sum((q / robot.limits.upper) ** 2)

    assert distance(kept) < distance(start)
    null = np.linalg.svd(armid.jacobian(robot, kept[None])[0])[2][-1]
    assert abs(null @ (kept / robot.limits.upper**2)) < 1e-6  # stationary along the self-motion


def test_position_only():
    """Three joints follow a point; asked for the orientation as well, they say what to do."""
    tool = np.eye(4)
    tool[1, 3] = -0.31  # the wrist centre of the RX-60
    robot = replace(armid.load_robot("rx60"), tool=tool)
    q = np.array([0.3, 0.2, -0.6]) + np.linspace(0, 0.5, 20)[:, None]
    poses = armid.tool_frame(robot, q)
    poses[:, :3, :3] = np.eye(3)
    found = inverse_kinematics(robot, poses, q[0], position_only=True)
    assert np.allclose(found, q, atol=1e-7)
    with pytest.raises(UnreachableError, match=r"pose 0 of the path: .* m and .* rad remain; fewer than six joints"):
        inverse_kinematics(robot, poses, q[0])


def test_unreachable_names_the_sample():
    """The first pose whose wrist centre is further than 0.45 + 0.48 m from the shoulder is named."""
    robot = armid.load_robot("pa10")
    start = np.array([0.3, 0.6, 0.1, 1.2, 0.2, 0.7, 0.1])
    poses = np.repeat(armid.tool_frame(robot, start[None]), 30, axis=0)
    poses[:, 0, 3] += np.linspace(0, 1.5, 30)
    with pytest.raises(UnreachableError, match="pa10 cannot reach pose") as info:
        inverse_kinematics(robot, poses, start)
    wrist = poses[:, :3, 3] - 0.07 * poses[:, :3, 2]
    reach = np.linalg.norm(wrist - [0.0, 0.0, 0.317], axis=1)
    assert info.value.sample == np.argmax(reach > 0.93) > 0
    assert info.value.position_error > 1e-4


def test_limits_are_respected_or_named():
    robot = armid.load_robot("pa10")
    start = np.array([0.3, 0.6, 0.1, 1.2, 0.2, 0.7, 0.1])
    poses = armid.tool_frame(robot, start[None])
    tight = replace(robot, limits=replace(robot.limits, upper=np.array([3, 1.5, 3, 1.0, 4, 2, 4])))
    with pytest.raises(UnreachableError, match=rf"pose 0 .* needs {robot.joint_names[3]} at 1\.2, outside its limits"):
        inverse_kinematics(tight, poses, start)
    assert inverse_kinematics(tight, poses, start, respect_limits=False).shape == (1, 7)


def test_bad_input():
    robot = armid.load_robot("powerball")
    with pytest.raises(DataShapeError, match="poses have shape"):
        inverse_kinematics(robot, np.eye(4), np.zeros(6))
    with pytest.raises(DataShapeError, match="start has shape"):
        inverse_kinematics(robot, np.eye(4)[None], np.zeros(5))
    with pytest.raises(DataShapeError, match="finite"):
        inverse_kinematics(robot, np.full((1, 4, 4), np.nan), np.zeros(6))
    assert inverse_kinematics(robot, np.empty((0, 4, 4)), np.zeros(6)).shape == (0, 6)
