"""Friction laws against hand-computed numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armid.errors import UnknownNameError
from armid.registry import friction_laws
from armid.robot.parts import Friction
from armid.torque.friction.law import friction_law

EXAMPLES = {
    "none": {},
    "viscous": {"fv": 2.0},
    "coulomb-viscous": {"fv": 2.0, "fc": 3.0},
    "stribeck": {"fv": 2.0, "fc": 3.0, "fs": 5.0, "vs": 0.5},
    "double-exponential": {"f1": 0.4, "f2": 0.7, "f3": 0.4, "f4": 0.06, "f5": 0.2, "f6": 17.0},
    "hyperbolic": {"g1": 4.6, "g2": 215.0, "g3": 2.1, "g4": 4.7, "g5": 14.8},
    "makkar": {"g1": 1.5, "g2": 100.0, "g3": 10.0, "g4": 2.0, "g5": 80.0, "g6": 3.0},
    "curve": {"fv": 2.0, "fc": 3.0, **{f"so{k + 1}": 0.1 * k - 0.4 for k in range(10)}, "v0": 0.1},
}


@pytest.mark.parametrize(
    ("law", "velocity", "torque"),
    [
        ("none", 0.5, 0.0),
        ("viscous", -0.5, -1.0),
        ("coulomb-viscous", 0.5, 4.0),
        ("coulomb-viscous", -0.5, -4.0),
        ("stribeck", 0.5, 1.0 + 3.0 + 2.0 * math.exp(-1.0)),
        ("double-exponential", 0.1, 0.04 + 0.7 - 0.4 * math.exp(-0.1 / 0.06) - 0.2 * math.exp(-1 / 1.7)),
        ("double-exponential", -0.1, -(0.04 + 0.7 - 0.4 * math.exp(-0.1 / 0.06) - 0.2 * math.exp(-1 / 1.7))),
        ("makkar", -0.02, -(1.5 * (math.tanh(2.0) - math.tanh(0.2)) + 2.0 * math.tanh(1.6) + 0.06)),
        ("hyperbolic", 0.01, 4.6 * math.tanh(2.15) + 2.1 * math.tanh(0.047) + 0.148),
    ],
)
def test_torque_by_hand(law, velocity, torque):
    """Each law gives the torque of its printed equation."""
    assert friction_law(law).torque(np.array([velocity]), EXAMPLES[law])[0] == pytest.approx(torque, rel=1e-14)


def test_every_law_has_an_example():
    """A new law cannot be added without being tested here."""
    assert set(friction_laws) == set(EXAMPLES)
    for name, law in friction_laws.items():
        assert set(law.coefficients) == set(EXAMPLES[name])


@pytest.mark.parametrize("law", friction_laws)
@given(velocity=st.floats(-20, 20))
def test_laws_are_odd_and_take_energy(law, velocity):
    """Friction changes its sign with the velocity and never drives the joint; no warning at any speed."""
    torque = friction_law(law).torque(np.array([velocity, -velocity, 0.0]), EXAMPLES[law])
    assert np.all(np.isfinite(torque))
    assert torque[0] == -torque[1]
    assert torque[2] == 0.0
    assert torque[0] * velocity >= 0.0


@pytest.mark.parametrize(("switched_off", "term"), [("f4", "f3"), ("f6", "f5")])
def test_pa10_terms_are_switched_off_by_zero(switched_off, term):
    """A zero f4 or f6 removes its exponential instead of dividing by zero (joint 6 of the PA-10)."""
    law, velocities = friction_laws["double-exponential"], np.array([-2.0, -0.01, 0.0, 0.01, 2.0])
    off = law.torque(velocities, {**EXAMPLES["double-exponential"], switched_off: 0.0})
    without = law.torque(velocities, {**EXAMPLES["double-exponential"], term: 0.0})
    assert off == pytest.approx(without, abs=1e-15)


def test_two_directions_have_their_own_coefficients():
    """Coefficients ending in p rule forward motion, those ending in n backward motion; zero is in between."""
    friction = Friction("coulomb-viscous", per_direction=True)
    coefficients = {"fvp": 1.0, "fcp": 10.0, "fvn": 2.0, "fcn": 20.0}
    assert friction.coefficient_names == ("fvp", "fcp", "fvn", "fcn")
    assert friction.torque(np.array([3.0, 0.0, -3.0]), coefficients).tolist() == [13.0, 0.0, -26.0]


def test_offset_is_added_at_any_velocity():
    """The offset does not depend on the motion."""
    friction = Friction("viscous", offset=True)
    assert friction.coefficient_names == ("fv", "fo")
    assert friction.torque(np.array([-1.0, 0.0, 1.0]), {"fv": 2.0, "fo": 0.5}).tolist() == [-1.5, 0.5, 2.5]


def test_unknown_law_lists_the_known_ones():
    """The error suggests the nearest law and names them all."""
    with pytest.raises(UnknownNameError, match=r"did you mean 'stribeck'.*There are: none, viscous") as caught:
        friction_law("stribek")
    assert caught.value.valid == tuple(friction_laws)
