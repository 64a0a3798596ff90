"""Inertial parameters against Pinocchio, and which of them no body can have."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armid.robot.geometry import from_rpy, placement
from armid.robot.inertia import (
    INERTIAL_NAMES,
    change_of_frame,
    from_com,
    from_pseudo_inertia,
    impossibility,
    pseudo_inertia,
    tensor,
    to_com,
)

COORDINATE = st.floats(-2, 2)
VECTOR = st.tuples(COORDINATE, COORDINATE, COORDINATE)
MASS = st.floats(0.01, 500)


def body(points):
    """Mass, centre and inertia about it of unit point masses: a real body whatever the points are."""
    points = np.asarray(points, dtype=float)
    com = points.mean(axis=0)
    rest = points - com
    return float(len(points)), com, np.sum(rest**2) * np.eye(3) - rest.T @ rest


@given(MASS, VECTOR, st.lists(VECTOR, min_size=4, max_size=6))
def test_round_trip_through_the_centre_of_mass(mass, com, points):
    """Mass, centre and central inertia come back from the ten parameters."""
    inertia = body(points)[2]
    mass_back, com_back, inertia_back = to_com(from_com(mass, com, inertia))
    assert mass_back == mass
    assert com_back == pytest.approx(np.array(com), abs=1e-12)
    assert inertia_back == pytest.approx(inertia, abs=1e-9 * mass)


@given(st.lists(st.floats(-10, 10), min_size=10, max_size=10))
def test_round_trip_through_the_pseudo_inertia(phi):
    """The 4 x 4 form holds the same ten numbers."""
    assert from_pseudo_inertia(pseudo_inertia(phi)) == pytest.approx(np.array(phi), abs=1e-12)


def test_order_and_reference_point_are_pinocchios():
    """The ten parameters are Pinocchio's dynamic parameters, in the same order and about the frame's origin."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(0)
    for _ in range(30):
        mass, com, inertia = body(rng.normal(size=(5, 3)))
        assert from_com(mass, com, inertia) == pytest.approx(
            pin.Inertia(mass, com, inertia).toDynamicParameters(), abs=1e-12
        )
    assert INERTIAL_NAMES == ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


def test_change_of_frame_is_pinocchios_action():
    """Parameters seen from another frame agree with Pinocchio's SE3 action on an inertia."""
    pin = pytest.importorskip("pinocchio")
    rng = np.random.default_rng(1)
    for _ in range(30):
        inertia = pin.Inertia(*body(rng.normal(size=(5, 3))))
        rotation, translation = from_rpy(rng.uniform(-3, 3, 3)), rng.normal(size=3)
        theirs = pin.SE3(rotation, translation).act(inertia).toDynamicParameters()
        ours = change_of_frame(placement(rotation, translation)) @ inertia.toDynamicParameters()
        assert ours == pytest.approx(theirs, abs=1e-11)


@given(st.lists(VECTOR, min_size=4, max_size=8))
def test_real_bodies_are_possible(points):
    """Whatever is made of point masses passes, flat and thin bodies included."""
    mass, com, inertia = body(points)
    assert impossibility(from_com(mass, com, inertia)) is None
    assert np.linalg.eigvalsh(pseudo_inertia(from_com(mass, com, inertia))).min() > -1e-9


def test_tensor_holds_products_as_elements():
    """Products of inertia are tensor elements: Ixy is minus the integral of x y."""
    phi = from_com(2.0, (1.0, 3.0, 0.0), np.zeros((3, 3)))  # a point mass
    assert tensor(phi) == pytest.approx(np.array([[18.0, -6.0, 0.0], [-6.0, 2.0, 0.0], [0.0, 0.0, 20.0]]))


@pytest.mark.parametrize(
    ("phi", "reason"),
    [
        (from_com(-1.0, (0, 0, 0), np.eye(3)), "mass is negative"),
        ([0, 0, 0, 0, 1, 0, 1, 0, 0, 1], "no mass"),
        ([0, 0.1, 0, 0, 0, 0, 0, 0, 0, 0], "no mass"),
        (from_com(1.0, (0.5, 0, 0), np.diag([-0.1, 1.0, 1.0])), "principal moment of inertia .* is negative"),
        (from_com(1.0, (0, 0, 0.5), np.diag([1.0, 1.0, 3.0])), "triangle inequality"),
    ],
)
def test_impossible_bodies_are_told_why(phi, reason):
    """Negative mass, inertia without mass, negative moments and broken triangles are named."""
    assert re.search(reason, impossibility(phi))


def test_a_point_mass_is_possible():
    """Wherever it is: its moments about itself are those of rounding."""
    for centre in np.random.default_rng(0).uniform(-3.0, 3.0, (200, 3)):
        assert impossibility(from_com(3.0, centre, np.zeros((3, 3)))) is None
    assert impossibility(from_com(3.0, [0.05, 0.02, 0.12], np.zeros((3, 3)))) is None


def test_nothing_at_all_is_possible():
    """A link of zeros is no body, but it does no harm either."""
    assert impossibility(np.zeros(10)) is None
