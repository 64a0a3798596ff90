"""Friction must take energy: where, with which coefficients, and what the search makes of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation import FrictionSearch, FrictionTerm
from armid.estimation.cross_validation import Scores
from armid.estimation.friction_choice import _best, standard_error
from armid.torque.dissipation import implausibility, resistances
from tests.estimation.test_coverage import true_values
from tests.estimation.test_friction_choice import noisy, planted

SPEEDS = np.geomspace(0.03, 1.5, 25)
ROBOTS = Path(armid.__file__).parent / "logs" / "robots"


@pytest.fixture(scope="module")
def model():
    return Model(armid.load_robot("ir361"))


BY_HAND = [  # kind of term and its speed; coefficients; implausible share, and what is left if it may drive
    (("asymmetry", 0.0), {"fv1": 2.0, "fc1": 1.0, "fa1": 1.9}, 0.0, 0.0),  # 2 ± 1.9 for the two directions
    (("asymmetry", 0.0), {"fv1": 0.0, "fc1": 1.0, "fa1": 1.0}, 2.0 / 2.0, 0.0),  # 1 - v backwards: -2 at 3, 2 forwards
    (("asymmetry", 0.0), {"fv1": 0.0, "fc1": 1.0, "fa1": -1.0}, 2.0 / 2.0, 0.0),  # the same forwards
    (("root", 0.0), {"fv1": 4.0, "fc1": 2.0, "fr1": -1.0}, 1.0 / 5.0, 1.0 / 5.0),  # takes energy, but parts cancel
    (("root", 0.0), {"fv1": -1.0, "fc1": 2.0, "fr1": 4.0}, 1.0 / 5.0, 1.0 / 5.0),  # falls with speed from 4 on
    (("stribeck-excess", 0.01), {"fv1": 1.0, "fc1": 3.0, "fe1": -4.0}, 0.0, 0.0),  # negative below 0.003 only
    (("stribeck-excess", 0.5), {"fv1": 0.0, "fc1": -1.0, "fe1": 20.0}, 0.9504 / 18.604, 0.0),  # negative from 1.5 on
    (("load", 0.0), {"fv1": 1.0, "fc1": 3.0, "fl1": -0.1}, 0.1, 0.0),
    (("load", 0.0), {"fv1": -0.1, "fc1": 3.0, "fl1": 0.1}, 0.1 / 3.0, 0.1 / 3.0),
]


@pytest.mark.parametrize(("term", "values", "share", "left"), BY_HAND)
def test_by_hand(model, term, values, share, left):
    """Shares of the largest friction torque, worked out by hand for speeds up to 1 rad/s; offsets play no part."""
    terms = [FrictionTerm(term[0], 0, (term[1],) if term[1] else ())]
    speeds = np.geomspace(0.01, 1.0, 25)
    for dissipative, expected in ((True, share), (False, left)):
        found = implausibility(model, terms, 0, speeds, {**values, "fo1": 100.0}, dissipative=dissipative)
        assert found == pytest.approx(expected, rel=2e-3)


def test_a_law_with_directions():
    """Either direction counts by itself."""
    robot = armid.load_robot("ir361")
    model = Model(replace(robot, friction=tuple(replace(law, per_direction=True) for law in robot.friction)))
    assert implausibility(model, [], 0, SPEEDS, {"fv1p": 1.0, "fv1n": 1.0}) == 0.0
    # backwards -0.1 v: 0.3 at three times the speed at which forwards it is 1
    found = implausibility(model, [], 0, SPEEDS, {"fv1p": 1.0, "fv1n": -0.1})
    assert found == pytest.approx(0.3, rel=1e-6)


def test_a_coupled_drive():
    """The viscous friction of a coupled motor is friction of the joint that moves it."""
    robot = armid.load_robot(ROBOTS / "tx40.yaml")
    model = Model(robot)
    assert "fvc6" in model.names
    assert implausibility(model, [], 5, SPEEDS, {"fv6": -0.1, "fvc6": 0.6, "fc6": 1.0}, dissipative=False) == 0.0
    assert implausibility(model, [], 5, SPEEDS, {"fv6": -0.7, "fvc6": 0.6, "fc6": 1.0}, dissipative=False) > 0.05


class FakeBench:
    """Gains by fold and implausible shares as told; what matters is what is made of them."""

    def __init__(self, gains, shares):
        self.gains, self.shares = gains, shares

    def compare(self, others, own, combinations, weights):
        return [FakeScores(np.array(self.gains[tuple(c.law for c in combination)])) for combination in combinations]

    def implausibility(self, chosen, joint, weights, *, dissipative):
        return self.shares.get(tuple(c.law for c in chosen), 0.0)


class FakeScores:
    def __init__(self, gain):
        self.squares, self.rms, self._gain = gain, np.array([1.0 - 0.02 * gain.sum()]), gain

    def gains(self, over, effective):
        return self._gain


PLAIN, ROOT, LOAD, BOTH = (), ("root",), ("load",), ("root", "load")
EQUAL = {PLAIN: [0, 0, 0], ROOT: [1, 1, 1], LOAD: [4, 4, 4], BOTH: [5, 4, 5]}
LEAD = {PLAIN: [0, 0, 0], ROOT: [1, 1, 1], LOAD: [4, 4, 4], BOTH: [8, 8, 9]}


@pytest.mark.parametrize(
    ("gains", "shares", "chosen"),
    [
        (EQUAL, {}, LOAD),  # `both` leads by 2, which its further coefficient costs
        (LEAD, {}, BOTH),
        (LEAD, {BOTH: 0.1}, LOAD),
        (LEAD, {BOTH: 0.01}, BOTH),  # slight
        (EQUAL, {LOAD: 0.1}, ROOT),  # `both` adds nothing of use to what is not friction
        (LEAD, {LOAD: 0.1}, BOTH),  # but here it does
        (LEAD, {LOAD: 0.1, BOTH: 0.1, ROOT: 0.1}, PLAIN),
    ],
)
def test_what_is_chosen(gains, shares, chosen):
    """The smallest of those that are about equally good and plausible."""
    terms = {kind: FrictionTerm(kind, 0) for kind in BOTH}
    combinations = [tuple(terms[kind] for kind in kinds) for kinds in gains]
    best = _best(FakeBench(gains, shares), 0, [], combinations, np.ones(1), 1.0, dissipative=True)
    assert tuple(term.law for term in best) == chosen


def test_a_part_that_is_zero_may_have_any_sign():
    """Load-dependent friction of a joint without viscous friction is found, whatever sign noise gives that."""
    robot = armid.load_robot("ir361")
    model = Model(robot)
    values = model.base.matrix @ true_values(robot, model)
    values[model.base.kept.index("fv2")] = 0.0
    signs = set()
    for seed in (0, 4):
        data = noisy(robot, planted((robot, model, values), (FrictionTerm("load", 1),), [0.12]), seed=seed)
        found = FrictionSearch().fit(robot, data)
        assert ("load", 1) in {(term.law, term.joint) for term in found.terms}
        signs.add(np.sign(dict(zip(found.columns, found.values, strict=True))["fv2"]))
    assert signs == {-1.0, 1.0}


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
    assert ("asymmetry", 0) in {(term.law, term.joint) for term in pushed.terms}
    values = dict(zip(pushed.columns, (float(v) for v in pushed.values), strict=True))
    assert implausibility(model, pushed.terms, 0, SPEEDS, values) > 0.1
    kept = FrictionSearch().fit(robot, data)
    assert ("asymmetry", 0) not in {(term.law, term.joint) for term in kept.terms}


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
