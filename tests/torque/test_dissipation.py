"""Friction must take energy: which combinations of coefficients that asks not to be negative."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.torque.dissipation import resistances
from armid.torque.friction.term import FrictionTerm

SPEEDS = np.array([0.5, 2.0])
ROBOTS = Path(armid.__file__).parent / "logs" / "robots"


@pytest.fixture(scope="module")
def model():
    return Model(armid.load_robot("ir361"))


def least(model, terms, joint, values, speeds=SPEEDS):
    """The smallest of a joint's combinations."""
    return min(
        sum(part[name] * values.get(name, 0.0) for name in part) for _, part in found(model, terms, joint, speeds)
    )


def found(model, terms, joint, speeds=SPEEDS):
    return resistances(model, terms, joint, speeds)


REST = FrictionTerm("rest", 0, (0.5,))
BY_HAND = [  # terms; coefficients; the least torque against the motion, or coefficient of the load
    ([], {"fv1": 2.0, "fc1": 1.0}, 2.0),  # at 0.5 rad/s
    ([], {"fv1": -1.0, "fc1": 1.0}, -1.0),  # at 2 rad/s
    ([REST], {"fv1": 1.0, "fc1": 3.0, "sr1": -4.0}, 3.5 - 4.0 * np.exp(-1.5)),
    ([REST], {"fc1": 1.0, "sr1": -8.0}, 1.0 - 8.0 * np.exp(-1.5)),
    ([FrictionTerm("load", 0)], {"fv1": 1.0, "fc1": 3.0, "fl1": -0.1}, -0.1),
    ([FrictionTerm("load", 0)], {"fv1": 1.0, "fc1": 3.0, "fl1": 5.0}, 3.5),  # without load
    ([FrictionTerm("gain", 0)], {"fv1": 1.0, "fc1": 3.0, "gw1": -9.0}, 3.5),  # no friction
]


@pytest.mark.parametrize(("terms", "values", "expected"), BY_HAND)
def test_by_hand(model, terms, values, expected):
    """Worked out by hand for 0.5 and 2 rad/s; offsets play no part."""
    assert least(model, terms, 0, {**values, "fo1": -100.0}) == pytest.approx(expected, rel=1e-9)


def test_directions_that_differ(model):
    """An even term brakes in one direction and drives in the other, so that both bound it."""
    term = FrictionTerm("smooth-even", 0, (0.05,))
    torque = sum(term.columns(np.array([0.5]), None)[0])
    for sign in (-1.0, 1.0):
        values = {"fc1": 1.0, **dict.fromkeys(term.names, sign * 2.0)}
        assert least(model, [term], 0, values, SPEEDS[:1]) == pytest.approx(1.0 - 2.0 * torque)


def test_a_law_with_directions():
    """Either direction counts by itself."""
    robot = armid.load_robot("ir361")
    model = Model(replace(robot, friction=tuple(replace(law, per_direction=True) for law in robot.friction)))
    assert least(model, [], 0, {"fv1p": 1.0, "fv1n": 1.0}) == 0.5
    assert least(model, [], 0, {"fv1p": 1.0, "fv1n": -0.1}) == pytest.approx(-0.2)


def test_a_coupled_drive():
    """The viscous friction of a motor that moves two joints stands in a condition of its own, not in the joint's."""
    model = Model(armid.load_robot(ROBOTS / "tx40.yaml"))
    assert "fvc6" in model.names
    assert least(model, [], 5, {"fv6": -0.1, "fvc6": 9.0, "fc6": 1.0}) == pytest.approx(0.8)


def test_terms_of_other_joints_do_not_count(model):
    """Only a joint's own terms stand in its conditions."""
    terms = [REST, FrictionTerm("load", 1)]
    assert {name for _, parts in found(model, terms, 1) for name in parts} == {"fv2", "fc2", "fl2"}


def test_speeds_reach_from_standstill_to_the_limit(model):
    """Without speeds the conditions hold from near rest to the limit of the joint."""
    fastest = float(model.robot.limits.velocity[0])
    speeds = [part["fv1"] for _, part in resistances(model, [], 0)]
    assert min(speeds) < 1e-5 * fastest
    assert max(speeds) == pytest.approx(fastest)
