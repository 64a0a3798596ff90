"""The feasible fit: possible links for every virtual arm, no worse in torque, and what it says about itself."""

import json
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armid
from armid.dynamics.model import Motion
from armid.estimation.consistent.conditions import Bounds, Unknowns
from armid.estimation.consistent.feasible import ConsistentLeastSquares, consistent_fit
from armid.estimation.consistent.log_det import NotConsistentError, plausible_arm
from armid.estimation.consistent.prior import Prior
from armid.estimation.fit import load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.experiment.virtual import VirtualRobot
from armid.robot.inertia import impossibility, to_com
from armid.robot.parts import Friction
from armid.robot.robot import inertial_names
from armid.signals import process
from armid.torque.friction.term import FrictionTerm
from tests.estimation.feasible_arms import excitation, library_arm, made, phi, truth

ROBOTS = ("rx60", "ir361", "er16", "powerball", "kr15", "pa10")
QUICK = ("powerball", "pa10")


@cache
def recorded(name, seed=0):
    """A virtual arm and the data of an excitation run."""
    robot = library_arm(name)
    log = VirtualRobot(robot, seed=seed).run(excitation(robot, seed), periods=2)
    return robot, process(log, robot=robot)


@cache
def fits(name):
    """The unconstrained and the feasible fit."""
    robot, data = recorded(name)
    free = WeightedLeastSquares().fit(robot, data)
    return free, consistent_fit(free)


def check_possible(fit):
    """Every link, without the rotors it carries, every rotor and every friction coefficient."""
    unknowns = Unknowns(fit.torque_model.model, fit.terms)
    own = dict(fit.standard_parameters) | dict(zip(fit.columns, fit.values.tolist(), strict=True))
    x = np.array([fit.standard_parameters.get(name, own.get(name, 0.0)) for name in unknowns.names])
    for number in range(1, fit.robot.n_joints + 1):
        assert impossibility(phi(fit, number)) is None
    for condition in unknowns.conditions:
        assert np.linalg.eigvalsh(condition.matrix(x))[0] > 0.0, condition.name
    np.testing.assert_allclose(unknowns.matrix @ x, fit.values, rtol=1e-9, atol=1e-9 * np.abs(fit.values).max())


def check_virtual_arm(name):
    free, found = fits(name)
    check_possible(found)
    assert found.method == "feasible"
    assert set(found.standard_parameters) == set(found.torque_model.model.names)
    squares = [np.sum(np.array(f.factor.counts) * f.residual_rms**2) for f in (free, found)]
    assert squares[1] < 1.02**2 * squares[0]
    assert {"estimation.regularised", "estimation.determined"} <= {note.code for note in found.notes}


@pytest.mark.parametrize("name", QUICK)
def test_links_are_possible_and_torque_no_worse(name):
    """Six and seven links: all pass, the torque error stays within 2 % of the unconstrained fit."""
    check_virtual_arm(name)


@pytest.mark.prove
@pytest.mark.parametrize("name", ROBOTS)
def test_every_virtual_arm(name):
    """The same for all arms of the library, and on another motion."""
    check_virtual_arm(name)
    _, other = recorded(name, 1)
    errors = []
    for fit in fits(name):
        predicted = fit.predict(Motion(other.q, other.qd, other.qdd), sigma=False).torque[other.rows]
        errors.append(np.linalg.norm(predicted - other.torque))
    assert errors[1] < 1.02 * errors[0]


def test_exact_data_give_exact_torque():
    """Without noise the base parameters of a possible arm are found to 1e-6, and its masses come out plausible."""
    robot = library_arm("kr15")
    data = made(robot)
    fit = ConsistentLeastSquares().fit(robot, data)
    model = fit.torque_model.model
    values = truth(robot)
    expected = model.base.matrix @ np.array([values[name] for name in model.base.names])
    np.testing.assert_allclose(fit.values, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    masses = np.array([fit.standard_parameters[f"m{i}"] for i in range(1, 7)])
    assert np.all(masses > 0.2 * robot.virtual.inertia[:, 0])
    assert np.all(masses < 5.0 * robot.virtual.inertia[:, 0])
    check_possible(fit)


def test_rotors_are_taken_off_first():
    """A link that carries a rotor keeps more second moment than the rotor's own."""
    robot = library_arm("pa10")
    unknowns = Unknowns(armid.dynamics.Model(robot))
    whole, own = unknowns.pseudo_inertia(2), unknowns.link(2)
    x = np.zeros(len(unknowns.names))
    x[unknowns.names.index("Im3")] = 2.0
    axis = robot.drives[2].axis
    np.testing.assert_allclose((whole.matrix(x) - own.matrix(x))[:3, :3], np.eye(3) - np.outer(axis, axis))
    assert not own.matrix(x)[3].any()


def test_noise_cannot_make_it_impossible():
    """With noise as large as the torque the unconstrained fit is impossible, the feasible one is not."""
    robot = library_arm("powerball")
    data = made(robot, samples=120, noise=20.0)
    free = WeightedLeastSquares().fit(robot, data)
    assert min(free.values[free.columns.index(f"fc{i}")] for i in range(1, 7)) < 0.0
    found = consistent_fit(free)
    check_possible(found)


def test_terms_pass_through(tmp_path):
    """Friction terms stay, and the joint's friction brakes at every speed; the file keeps all."""
    linear = Friction("coulomb-viscous")
    robot = replace(library_arm("rx60"), friction=(linear, Friction("none"), linear))
    terms = (FrictionTerm("stribeck", 1, (0.1,)), FrictionTerm("load", 2))
    load = WeightedLeastSquares().fit(robot, made(robot))
    base = dict(zip(load.columns, load.values.tolist(), strict=True))

    def friction(v):
        extra = np.zeros_like(v)
        extra[:, 1] = np.sign(v[:, 1]) * (3.0 - 2.0 * np.exp(-((v[:, 1] / 0.1) ** 2))) + 1.0 * v[:, 1]
        return extra

    data = made(robot, noise=0.3, friction=friction)
    estimator = replace(ConsistentLeastSquares(), terms=terms, delay_s=(0.0, 0.0, 0.0), load_values=base)
    fit = estimator.fit(robot, data)
    assert fit.names[-4:] == ("fv2", "fc2", "fs2", "fl3")
    check_possible(fit)
    assert fit.values[fit.columns.index("fl3")] > 0.0
    # Less friction at rest than in motion is allowed as long as friction as a whole brakes.
    assert fit.values[fit.columns.index("fs2")] < fit.values[fit.columns.index("fc2")]
    fit.save(tmp_path / "fit.json")
    again = load_fit(tmp_path / "fit.json")
    assert again.standard_parameters == fit.standard_parameters
    assert consistent_fit(again).values == pytest.approx(fit.values, rel=1e-3, abs=1e-3)


def test_data_and_plausible_arm_share_the_work():
    """What torque shows is decided by the data, what it never shows is not."""
    _, found = fits("powerball")
    share = found.options["data_share"]
    assert share["m1"] < 0.01
    assert share["fv1"] > 0.95
    assert share["Im5"] > 0.9
    note = next(note for note in found.notes if note.code == "estimation.determined")
    assert "m1" in note.values["others"]
    assert "fv1" not in note.values["others"]
    json.dumps(dict(found.options))


@pytest.mark.parametrize("name", QUICK)
def test_what_shows_in_groups_only_is_not_decided_by_the_data(name):
    """Moving along the null space of the base parameters changes no torque, so data cannot decide what it changes."""
    _, found = fits(name)
    model = found.torque_model.model
    _, values, directions = np.linalg.svd(model.base.matrix)
    silent = np.abs(directions[np.sum(values > 1e-9) :]).max(axis=0) > 1e-9
    share = found.options["data_share"]
    for parameter, free in zip(model.base.names, silent, strict=True):
        assert not free or share[parameter] == 0.0, parameter
    assert max(share[parameter] for parameter in model.base.alone) > 0.99
    note = next(note for note in found.notes if note.code == "estimation.determined")
    assert "m3" in note.values["others"]


def test_share_of_the_data_against_a_prior():
    """Near 0 for a firm prior, near 1 for a vague one, of what can be identified alone."""
    robot = library_arm("rx60")
    free = WeightedLeastSquares().fit(robot, made(robot, noise=0.5, samples=200))
    values = {}
    for number, row in enumerate(robot.virtual.inertia, start=1):
        values |= dict(zip(inertial_names(number), row.tolist(), strict=True))
    shares = {s: consistent_fit(free, prior=Prior(values, s)).options["data_share"] for s in (1e-4, 1.0)}
    assert shares[1e-4]["my2"] < 0.5 < shares[1.0]["my2"]
    assert shares[1.0]["m1"] < 0.01


def check_weights(name, seed):
    """No link is heavier than five times what is plausible, and the torque is as good."""
    free = WeightedLeastSquares().fit(*recorded(name, seed))
    found = consistent_fit(free)
    masses = np.array([found.standard_parameters[f"m{i}"] for i in range(1, free.robot.n_joints + 1)])
    (told,) = (note.values for note in found.notes if note.code == "estimation.regularised")
    assert np.all(masses <= 5.0 * told["mass_factor"] * plausible_arm(free.robot)[:, 3, 3])
    check_possible(found)
    squares = [float(f.weights @ (np.array(f.factor.counts) * f.residual_rms**2)) for f in (free, found)]
    assert squares[1] < 1.02**2 * squares[0]  # 2 % of the torque's error
    return masses


def test_links_are_not_heavier_than_the_data_ask_for():
    """Link 2 of the PA-10 would come out at 46 kg where no attention is paid; one a third lighter fits as well."""
    assert check_weights("pa10", 0)[1] < 32.0


@pytest.mark.prove
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", ROBOTS)
def test_no_arm_has_a_link_that_is_too_heavy(name, seed):
    """All arms of the library, two motions each."""
    check_weights(name, seed)


def test_size_of_the_plausible_arm_is_fitted():
    """Nominal masses that are all wrong by one factor, as of an arm in other units of torque, change nothing."""
    robot = library_arm("rx60")
    data = made(robot, noise=0.2)
    right, light = (
        ConsistentLeastSquares().fit(replace(robot, nominal_inertia=share * robot.virtual.inertia), data)
        for share in (1.0, 0.01)
    )
    assert light.standard_parameters == pytest.approx(right.standard_parameters, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", ["rx60", "pa10"])
def test_marks_are_those_of_the_values_shown(name):
    """Possible values differ from the unconstrained ones; a value is weak if its own standard deviation says so."""
    _, found = fits(name)
    relative = found.sigma / np.maximum(np.abs(found.values), 1e-300)
    for kind, share in zip(found.identifiability.classes, relative, strict=True):
        assert kind == "undetermined" or (kind == "determined") == (share <= 0.3)
    count = found.identifiability.classes.count("determined")
    assert found.identifiability.verdict.startswith(f"{count} of {len(found.names)} parameters are determined")


def test_bounds_hold():
    """Masses, total mass, boxes and ellipsoids hold the links."""
    robot = library_arm("rx60")
    data = made(robot, noise=0.2)
    bounds = Bounds(
        mass={1: (20.0, 21.0)},
        total_mass=(0.0, 40.0),
        box={2: ((-0.8, -2.0, -2.0), (0.8, 2.0, 2.0))},
        ellipsoid={3: ((0.0, 0.0, 0.0), (3.0, 3.0, 3.0))},
    )
    fit = ConsistentLeastSquares(bounds=bounds).fit(robot, data)
    assert 20.0 <= fit.standard_parameters["m1"] <= 21.0
    assert sum(fit.standard_parameters[f"m{i}"] for i in (1, 2, 3)) <= 40.0
    mass, com, _ = to_com(phi(fit, 2))
    assert -0.8 < com[0] < 0.8
    second = 0.5 * (fit.standard_parameters["Iyy2"] + fit.standard_parameters["Izz2"] - fit.standard_parameters["Ixx2"])
    assert second <= 0.8**2 * mass * (1.0 + 1e-6)
    json.dumps(dict(fit.options))


def test_contradictory_bounds():
    """Impossible demands end in one sentence."""
    robot = library_arm("rx60")
    bounds = Bounds(mass={1: (20.0, 21.0)}, total_mass=(0.0, 5.0))
    with pytest.raises(NotConsistentError, match="contradict"):
        ConsistentLeastSquares(bounds=bounds).fit(robot, made(robot, noise=0.2))
    with pytest.raises(armid.errors.ArmidError, match="link 9"):
        ConsistentLeastSquares(bounds=Bounds(mass={9: (0.0, 1.0)})).fit(robot, made(robot, noise=0.2))


def test_known_values_that_are_impossible():
    """A link known in full must be possible."""
    robot = library_arm("rx60")
    known = dict(zip(inertial_names(3), [1.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, 3.0], strict=True))
    with pytest.raises(EstimationError, match=r"link 3 are impossible.*triangle"):
        ConsistentLeastSquares(known=known).fit(robot, made(robot, noise=0.2))


def test_data_that_leave_something_free():
    """A joint that never accelerates leaves combinations free; the feasible fit settles them and stays possible."""
    robot = library_arm("kr15")
    data = made(robot, samples=300, noise=1.0)
    still = replace(data, qdd=0.0 * data.qdd, qd=np.sign(data.qd) * np.array([0.5, 0, 0, 0, 0, 0.5]))
    torque = armid.dynamics.Model(robot).inverse_dynamics(still.q, still.qd, still.qdd, truth(robot))
    still = replace(still, torque=torque + np.random.default_rng(1).normal(size=torque.shape))
    fit = ConsistentLeastSquares(slow_share=0.0, slow_floor=-1.0).fit(robot, still)
    check_possible(fit)
    assert fit.identifiability.poor


def test_without_the_extra(monkeypatch):
    """Clarabel is needed only where bounds keep the plausible arm out; the sentence says what to install."""
    monkeypatch.setitem(sys.modules, "clarabel", None)
    robot = library_arm("rx60")
    data = made(robot, noise=0.2)
    check_possible(ConsistentLeastSquares().fit(robot, data))
    with pytest.raises(armid.errors.MissingExtraError, match="feasible"):
        ConsistentLeastSquares(bounds=Bounds(mass={1: (90.0, 91.0)})).fit(robot, data)


def test_unknown_noise():
    robot = library_arm("rx60")
    with pytest.raises(armid.errors.UnknownNameError, match="residual, measured"):
        ConsistentLeastSquares(noise="loud").fit(robot, made(robot, noise=0.2))
