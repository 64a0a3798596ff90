"""Friction must take energy: where, with which coefficients, and what the search makes of it."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation import FrictionSearch, FrictionTerm
from armid.estimation.dissipation import dissipates, grows_with_speed, resistances
from armid.estimation.friction_bench import Scores
from armid.estimation.friction_choice import standard_error
from tests.estimation.test_coverage import true_values
from tests.estimation.test_friction_choice import noisy, planted

SPEEDS = np.geomspace(0.03, 1.5, 25)


@pytest.fixture(scope="module")
def model():
    return Model(armid.load_robot("ir361"))


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("asymmetry", {"fv1": 2.0, "fc1": 1.0, "fa1": 1.9}, True),  # 2 ± 1.9 for the two directions
        ("asymmetry", {"fv1": 0.1, "fc1": 1.0, "fa1": 1.9}, False),  # backwards 1.0 + 0.1 v - 1.9 v < 0 from 0.6 on
        ("asymmetry", {"fv1": 0.1, "fc1": 1.0, "fa1": -1.9}, False),  # the same forwards
        ("root", {"fv1": 10.0, "fc1": 2.0, "fr1": -8.0}, True),  # 2 + 10 v - 8 sqrt(v) is 0.4 at its least
        ("root", {"fv1": 10.0, "fc1": 1.0, "fr1": -8.0}, False),
        ("asymmetry", {"fv1": 1.0, "fc1": 9.0, "fa1": 1.1}, False),  # takes energy up to 1.5, but not from 90 on
        ("stribeck", {"fv1": -0.1, "fc1": 9.0, "fs1": 1.0}, False),  # the same
        ("stribeck", {"fv1": 1.0, "fc1": 3.0, "fs1": -4.0}, True),  # 3 - 4 exp(-v/0.01) is negative below 0.003 only
        ("load", {"fv1": 1.0, "fc1": 3.0, "fl1": -0.1}, False),
    ],
)
def test_by_hand(model, kind, values, expected):
    """Signs worked out by hand; offsets play no part."""
    term = FrictionTerm(kind, 0, 0.01 if kind == "stribeck" else 0.0)
    assert dissipates(model, [term], 0, SPEEDS, {**values, "fo1": 100.0}) is expected


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("root", {"fv1": 10.0, "fr1": -1.0}, False),  # cancel each other at v = 0.01 only
        ("root", {"fv1": -1.0, "fr1": 10.0}, False),  # falls with speed from 25 on
        ("root", {"fv1": 1.0, "fr1": 10.0}, True),
        ("stribeck", {"fv1": 1.0, "fs1": -3.0}, True),  # friction that grows, then fades out as a shape
        ("asymmetry", {"fv1": 1.0, "fa1": -3.0}, True),  # left to the test of energy
    ],
)
def test_viscous_parts(model, kind, values, expected):
    """Neither the linear nor the sub-linear part may be negative."""
    assert grows_with_speed(model, [FrictionTerm(kind, 0, 0.1)], 0, values) is expected


def test_viscous_parts_of_a_law_with_directions():
    """Either direction counts by itself."""
    robot = armid.load_robot("ir361")
    model = Model(replace(robot, friction=tuple(replace(law, per_direction=True) for law in robot.friction)))
    names = [p.name for p in model.parameters if p.name.startswith("fv") and p.number == 1]
    assert len(names) == 2
    assert grows_with_speed(model, [], 0, dict.fromkeys(names, 1.0))
    assert not grows_with_speed(model, [], 0, {names[0]: 1.0, names[1]: -0.1})


def test_terms_of_other_joints_do_not_count(model):
    """Only a joint's own terms stand in its conditions."""
    terms = [FrictionTerm("asymmetry", 0), FrictionTerm("load", 1)]
    assert {name for _, parts in resistances(model, terms, 1) for name in parts} == {"fv2", "fc2", "fl2"}


def test_a_drive_that_looks_like_friction_is_passed_over():
    """Torque a |v| far above the viscous friction pushes a joint one way: the search takes it only if it may."""
    robot = armid.load_robot("ir361")
    model = Model(robot)
    arm = (robot, model, model.base.matrix @ true_values(robot, model))
    data = noisy(robot, planted(arm, (FrictionTerm("asymmetry", 0),), [2000.0]))
    pushed = FrictionSearch(dissipative=False).fit(robot, data)
    assert ("asymmetry", 0) in {(term.kind, term.joint) for term in pushed.terms}
    values = dict(zip(pushed.names, (float(v) for v in pushed.values), strict=True))
    assert not dissipates(model, pushed.terms, 0, SPEEDS, values)
    kept = FrictionSearch().fit(robot, data)
    assert ("asymmetry", 0) not in {(term.kind, term.joint) for term in kept.terms}


def test_gains_by_fold_sum_to_the_likelihood_ratio():
    """The parts of the folds add up to n/2 log(S0/S), joint by joint; equal scores gain nothing."""
    rng = np.random.default_rng(0)
    counts = np.full((6, 3), 50.0)
    plain, better = (Scores(scale * rng.uniform(1.0, 2.0, (6, 3)), counts) for scale in (2.0, 1.0))
    expected = 0.5 * 0.25 * np.sum(300.0 * np.log(plain.squares.sum(axis=0) / better.squares.sum(axis=0)))
    assert np.isclose(better.gains(plain, 0.25).sum(), expected)
    assert np.all(plain.gains(plain, 0.25) == 0.0)


def test_standard_error_of_a_sum():
    """Spread of sums of six normal numbers, against draws."""
    draws = np.random.default_rng(1).normal(size=(4000, 6))
    estimated = np.sqrt(np.mean([standard_error(parts) ** 2 for parts in draws]))
    assert estimated == pytest.approx(draws.sum(axis=1).std(), rel=0.05)
