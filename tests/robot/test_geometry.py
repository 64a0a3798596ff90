"""Placements against NumPy, SciPy and Pinocchio."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from armid.robot.geometry import about_x, about_y, about_z, along, from_rpy, inverse, placement

ANGLE = st.floats(-7, 7)
COORDINATE = st.floats(-10, 10)


@given(ANGLE)
def test_elementary_rotations_are_scipys(angle):
    """Rotations about x, y, z agree with SciPy."""
    for axis, ours in (("x", about_x), ("y", about_y), ("z", about_z)):
        assert ours(angle) == pytest.approx(Rotation.from_euler(axis, angle).as_matrix(), abs=1e-14)


@pytest.mark.parametrize("turns", range(-8, 9))
@pytest.mark.parametrize("rotation", [about_x, about_y, about_z])
def test_right_angles_are_exact(rotation, turns):
    """Rotations by right angles hold nothing but 0, 1 and -1: cos(pi/2) = 6e-17 would raise ranks."""
    assert set(np.abs(rotation(turns * math.pi / 2)).ravel()) == {0.0, 1.0}


def test_roll_pitch_yaw_is_urdfs():
    """Fixed-axis roll, pitch, yaw agree with Pinocchio's reading of URDF."""
    pin = pytest.importorskip("pinocchio")
    for rpy in np.random.default_rng(0).uniform(-4, 4, (50, 3)):
        assert from_rpy(rpy) == pytest.approx(pin.rpy.rpyToMatrix(*rpy), abs=1e-14)


@given(st.tuples(ANGLE, ANGLE, ANGLE), st.tuples(COORDINATE, COORDINATE, COORDINATE))
def test_inverse_is_numpys(rpy, xyz):
    """The inverse of a placement is the inverse of its matrix."""
    matrix = placement(from_rpy(rpy), xyz)
    assert inverse(matrix) == pytest.approx(np.linalg.inv(matrix), abs=1e-12)


@given(st.tuples(COORDINATE, COORDINATE, COORDINATE).filter(lambda axis: math.hypot(*axis) > 1e-6))
def test_along_is_a_rotation_onto_the_axis(axis):
    """Any axis gives a proper rotation whose third column is its unit vector."""
    rotation = along(axis)
    assert rotation @ rotation.T == pytest.approx(np.eye(3), abs=1e-14)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert rotation[:, 2] == pytest.approx(np.array(axis) / math.hypot(*axis), abs=1e-14)


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), (0, 0, 5.0), (0, -0.1, 0)])
def test_along_a_coordinate_axis_is_exact(axis):
    """Coordinate axes give signed permutations, so that no round-off enters the kinematics."""
    assert set(np.abs(along(axis)).ravel()) == {0.0, 1.0}
