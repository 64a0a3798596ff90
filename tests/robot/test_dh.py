"""DH tables against chains of elementary transforms."""

import numpy as np
import pytest

from armid.dynamics import link_frames
from armid.robot.geometry import DHRow, dh_joints
from armid.robot.robot import Robot

ROWS = (
    DHRow(0.3, 0.1, 0.4, -0.7),
    DHRow(-np.pi / 2, 0.2, -0.1, 0.5),
    DHRow(1.1, -0.3, 0.25, 0.9, prismatic=True),
    DHRow(np.pi / 2, 0.15, 0.0, np.pi),
    DHRow(-0.4, 0.0, 0.35, 0.2, prismatic=True),
)
CHAIN, TREE = (0, 1, 2, 3, 4), (0, 1, 1, 0, 4)
Q = np.random.default_rng(0).uniform(-2, 2, (20, len(ROWS)))


def rx(a):
    return np.array([[1, 0, 0, 0], [0, np.cos(a), -np.sin(a), 0], [0, np.sin(a), np.cos(a), 0], [0, 0, 0, 1]])


def rz(a):
    return np.array([[np.cos(a), -np.sin(a), 0, 0], [np.sin(a), np.cos(a), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def shift(x, z):
    return np.array([[1, 0, 0, x], [0, 1, 0, 0], [0, 0, 1, z], [0, 0, 0, 1]])


def expected_frames(q, parents, modified):
    """Link frames by multiplying the elementary transforms of each row."""
    frames = [np.eye(4)]
    for value, row, parent in zip(q, ROWS, parents, strict=True):
        theta = row.theta if row.prismatic else row.theta + value
        d = row.d + value if row.prismatic else row.d
        if modified:
            step = rx(row.alpha) @ shift(row.a, 0) @ rz(theta) @ shift(0, d)
        else:
            step = rz(theta) @ shift(0, d) @ shift(row.a, 0) @ rx(row.alpha)
        frames.append(frames[parent] @ step)
    return np.array(frames[1:])


def robot(parents, modified):
    names = [f"j{i}" for i in range(len(ROWS))]
    joints, lengths = dh_joints(ROWS, modified=modified, parents=parents, names=names)
    return Robot(name="r", source="test", joints=joints, lengths=lengths)


@pytest.mark.parametrize("parents", [CHAIN, TREE], ids=["chain", "tree"])
@pytest.mark.parametrize("modified", [True, False], ids=["modified", "standard"])
def test_frames_are_the_product_of_elementary_transforms(modified, parents):
    """Turning and sliding joints of both conventions, in a chain and in a tree, put every link where the table says."""
    ours = link_frames(robot(parents, modified), Q)
    theirs = np.array([expected_frames(q, parents, modified) for q in Q])
    assert ours == pytest.approx(theirs, abs=1e-14)


def test_modified_link_frame_is_the_joint_frame():
    """With modified DH the z axis of link i is the axis of joint i: the link frame does not move along itself."""
    assert all(np.array_equal(joint.link_frame, np.eye(4)) for joint in robot(CHAIN, True).joints)


@pytest.mark.parametrize(
    ("modified", "names"),
    [
        (True, ["a0", "d1", "a1", "d2", "a2", "d3", "a3", "d5"]),
        (False, ["a1", "d1", "a2", "d2", "a3", "d3", "a4", "d5"]),
    ],
    ids=["modified", "standard"],
)
def test_lengths_are_named_as_the_convention_numbers_them(modified, names):
    """Modified DH calls the length of row i a_(i-1), standard DH a_i; zeros have no name."""
    assert [length.name for length in robot(CHAIN, modified).lengths] == names


@pytest.mark.parametrize("modified", [True, False], ids=["modified", "standard"])
def test_lengths_can_be_changed(modified):
    """Replacing named lengths moves the frames as the changed table would."""
    changed = robot(CHAIN, modified).with_lengths({"d1": 1.0, "a2": 0.0})
    other = [list(row) for row in ROWS]
    other[0][2] = 1.0
    other[2 if modified else 1][1] = 0.0
    joints, _ = dh_joints([DHRow(*row) for row in other], modified=modified, parents=CHAIN, names=changed.joint_names)
    again = Robot(name="r", source="test", joints=joints)
    assert link_frames(changed, Q) == pytest.approx(link_frames(again, Q), abs=1e-14)
