"""The type's torque model: its curve is taken off exactly, its prior counts as rows, it is learnt from first days."""

import re
from dataclasses import replace
from functools import reduce
from operator import add
from types import SimpleNamespace

import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from armid.dynamics.factor import triangle
from armid.estimation.consistent.log_det import NotConsistentError
from armid.estimation.fit import load_fit
from armid.estimation.linear import residual_squares, residual_variance, solve
from armid.estimation.problem import EstimationError, Problem
from armid.fleet.changes import CarriedMass
from armid.fleet.day import ArmDay
from armid.fleet.description import load_fleet
from armid.fleet.hierarchy import Information, history_of
from armid.fleet.identify import ArmSums, arm_fit
from armid.fleet.recording import dataset_of, payload_map
from armid.fleet.type_model import DIFFERS, TypeModel
from armid.robot.inertia import change_of_frame
from armid.robot.robot import inertial_names
from armid.torque.friction.smooth import BELLS, prior_covariance
from armid.torque.friction.term import FrictionTerm
from armid.torque.model import TorqueModel
from tests.fleet.arms import (
    EXAMPLES,
    NOISE,
    arm_file,
    base_values,
    log_of,
    rough_arm_file,
    true_parameters,
    write_fleet,
)

TERMS = tuple(FrictionTerm("smooth", joint, (0.1,)) for joint in range(4))


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A type with a friction curve on each joint, and the factor of an arm's recording."""
    robot = armid.load_robot(EXAMPLES / "arm.yaml")
    curve = np.random.default_rng(0).normal(size=BELLS * len(TERMS))
    model = TypeModel(robot, TERMS, None, np.zeros(4), curve)
    fleet = load_fleet(write_fleet(tmp_path_factory.mktemp("type"), 1, 1))
    data = dataset_of(log_of(robot, true_parameters(robot.virtual), seconds=20.0), fleet)
    problem = Problem(robot, data, terms=TERMS, slow_share=0.0, slow_floor=0.03)
    return model, problem.factor(triangular=True)


def test_without_curve_residuals_are_the_same(known):
    """Squares of the residuals at any values are those of all columns with the curve's own."""
    model, factor = known
    rest = model.without_curve(factor, model.curve)
    assert rest.names == model.followed.names
    values = np.random.default_rng(1).normal(size=len(rest.names))
    whole = np.concatenate([values, model.curve])
    np.testing.assert_allclose(residual_squares(rest, values), residual_squares(factor, whole), rtol=1e-9)


def test_prior_of_the_curve_counts_as_its_covariance_says(known):
    """The solution minimises weighted residuals plus the distance from the type's curve, as a direct solve gives it."""
    model, factor = known
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    found = solve(model.with_prior(factor, weights), weights).values
    matrix, vector, _ = factor.normal_equations(weights)
    first = len(model.followed.names)
    for joint in range(4):
        part = slice(first + BELLS * joint, first + BELLS * (joint + 1))
        own, shape = model.curve[part.start - first : part.stop - first], prior_covariance()
        size = own @ np.linalg.solve(shape, own) / BELLS
        precision = np.linalg.inv((shape + 1e-9 * np.eye(BELLS)) * DIFFERS**2 * size)
        matrix[part, part] += precision
        vector[part] += precision @ own
    np.testing.assert_allclose(found, np.linalg.solve(matrix, vector), rtol=1e-5, atol=1e-6)


def test_arms_show_how_much_their_curves_differ(known):
    """Curves that scatter eight times wider than assumed, or a fifth of that, are found to, one spoiled arm or not."""
    model, factor = known
    rng, weights = np.random.default_rng(2), np.full(4, 1.0 / NOISE**2)
    first = len(model.followed.names)
    for wider in (0.2, 8.0):
        arms = []
        for _ in range(20):
            own = np.concatenate(
                [np.zeros(first), model.curve + wider * model._spread @ rng.normal(size=len(model.curve))]
            )
            torque = [
                part[:, :-1] @ own[columns] for part, columns in zip(factor.matrices, factor.columns, strict=True)
            ]
            noise = [NOISE * rng.normal(size=len(one)) for one in torque]
            made = [
                np.column_stack([part[:, :-1], one + error])
                for part, one, error in zip(factor.matrices, torque, noise, strict=True)
            ]
            arms.append((replace(factor, matrices=tuple(made)), weights))
        sound = model.widened(arms).widths
        np.testing.assert_allclose(sound, wider, rtol=0.35)
        spoiled = [replace(arms[0][0], matrices=tuple(_scaled(one, 30.0) for one in arms[0][0].matrices)), weights]
        assert np.all(np.array(model.widened([spoiled, *arms[1:]]).widths) < 1.5 * np.array(sound))


def _scaled(table, times):
    """A factor's table with torques so many times larger."""
    return table * np.append(np.ones(table.shape[1] - 1), times)


def test_modes_of_a_curve_are_what_the_data_tell_of_it(known):
    """Arms' curves in so many modes leave the residuals that all coefficients leave, to a fraction of the noise."""
    model, factor = known
    weights = np.full(4, 1.0 / NOISE**2)
    curve = model.own_curve(factor, weights)
    modes, found, _ = model.modes(factor, weights, curve)
    assert 0 < modes.shape[1] < len(curve)
    away = np.concatenate([np.zeros(len(model.followed.names)), curve - model.curve - modes @ found])
    matrix = factor.normal_equations(weights)[0]
    assert away @ matrix @ away < 0.1 * np.sum(np.linalg.solve(model._spread, curve - model.curve) ** 2)


def test_linear_friction_is_that_of_the_whole_curve(known):
    """Whatever the type's curve is, an arm with linear friction has the values of its file; beside the curve, any."""
    model, factor = known
    truth = true_parameters(model.robot.virtual)
    names = [f"{kind}{joint}" for kind in ("fv", "fc") for joint in range(1, 5)]
    day = ArmDay("arm", "2026-01-01", np.full(4, NOISE), *np.ones((3, 4)), 2000, 20.0, factor=factor)
    off, away = [], []
    for linear in (None, model.linear_part(factor)):
        wide = replace(model, linear=linear, widths=(30.0,) * len(TERMS))
        arm = history_of("arm", [day], wide)
        values, _ = arm.known_curve.total.solved()
        modes = np.arange(arm.vector.shape[1]) >= len(values)  # N(0, 1) a priori
        _, covariance = (arm.total + Information(np.diag(modes.astype(float)), np.zeros(len(modes)))).solved()
        sigma = np.sqrt(np.diag(covariance))[: len(values)]
        error = dict(zip(model.followed.names, zip(values, sigma, strict=True), strict=True))
        off.append([abs(error[name][0] / truth[name] - 1.0) for name in names])
        away.append([abs(error[name][0] - truth[name]) / error[name][1] for name in names])
    assert np.median(off[0]) > 0.2
    assert max(off[1]) < 0.1
    assert max(away[1]) < 3.0


def test_an_arm_may_differ_between_directions_where_the_type_does_not(tmp_path):
    """Directions that are alike on average: an arm whose friction is a tenth lower in one of them has its own curve."""
    path = arm_file(tmp_path)
    path.write_text(path.read_text().replace("offset: true", "offset: false"))
    robot = armid.load_robot(path)
    terms = tuple(FrictionTerm("smooth-even", joint, (0.1,)) for joint in range(4))
    model = TypeModel(robot, terms, None, np.zeros(4), np.zeros(4 * (BELLS + 1)))
    parameters = true_parameters(robot.virtual)
    known = replace(model, values=np.array([parameters.get(name, 0.0) for name in model.torque.names]))
    data = armid.process(log_of(robot, parameters, seconds=20.0), robot=robot)
    weights, left = np.full(4, 1.0 / NOISE**2), []
    for share in (0.0, 0.1):
        torque = data.torque - share * np.array([parameters[f"fc{joint + 1}"] for joint in range(4)])
        problem = Problem(robot, replace(data, torque=torque), terms=terms, slow_share=0.0, slow_floor=0.03)
        factor = problem.factor(triangular=True)
        rest = known.without_curve(factor, known.own_curve(factor, weights))
        left.append(residual_variance(rest, solve(rest, weights, rank_tolerance=1e-9).values))
    np.testing.assert_allclose(left[1], left[0], rtol=0.05)


def test_a_mass_in_the_hand_is_seen_where_the_last_link_is_neglected():
    """The PA-10's base parameters have no link 7: a mass on its axis is a change of those before; others are not."""
    robot = armid.load_robot("pa10")
    model = TorqueModel(robot)
    mapped, motion = payload_map(model), random_motion(robot, 20, np.random.default_rng(1))
    own = model.model.regressor(*motion, model.model.base.kept) @ mapped
    carried = model.model.regressor(*motion, inertial_names(7)) @ change_of_frame(robot.tool)
    seen = np.abs(mapped).max(axis=0) > 0.0
    assert seen.tolist() == [True, False, False, True] + [False] * 6
    np.testing.assert_allclose(own[..., seen], carried[..., seen], atol=1e-9)


def test_torque_of_the_type_is_told_from_torque_that_is_wrong(known):
    """What the type explains needs no search for mistakes; a reversed torque does, and so does an unknown type."""
    model, factor = known
    found = solve(factor, np.ones(4), rank_tolerance=1e-9).values
    assert replace(model, values=found).explains(factor)
    assert not replace(model, values=-found).explains(factor)
    assert not model.explains(factor)


def test_friction_of_couplings_is_no_part_of_a_joints_line():
    """Two joints feel it: it does not lie in the speed of one, and may not take over what its curve leaves."""
    pa10 = armid.load_robot("pa10")
    coupling = np.eye(7)
    coupling[6, 5] = 1.0
    model = TypeModel(
        replace(pa10, coupling=coupling), (FrictionTerm("smooth", 5, (0.1,)),), None, np.zeros(7), np.zeros(BELLS)
    )
    names = {one.name for one in model.torque.model.parameters if one.kind == "friction"}
    assert {"fvc7", "fcc7"} <= names
    assert names - model.linear_names == {"fvc7", "fcc7"}


def falling(known, seed, coulomb=3.0):
    """A type with curves that fall with speed, and the sums of an arm whose line falls, too: still it brakes."""
    model, factor = known
    bells = np.tile(np.linspace(1.0, -1.0, BELLS), len(TERMS))
    model = replace(model, curve=0.8 * bells)
    model = replace(model, linear=model.linear_part(factor))
    fleet = SimpleNamespace(robot=model.robot, slow_floor=0.03, pipeline=SimpleNamespace(to_data=list), model=model)
    names = model.followed.names
    own = np.concatenate([base_values(model.robot, model.robot.virtual), 1.2 * model.curve])
    own[names.index("fv4")], own[names.index("fc4")] = -0.05, coulomb
    rng, weights = np.random.default_rng(seed), np.full(4, 1.0 / NOISE**2)
    tables = [
        np.column_stack([part[:, :-1], part[:, :-1] @ own[columns] + NOISE * rng.normal(size=len(part))])
        for part, columns in zip(factor.matrices, factor.columns, strict=True)
    ]
    total = replace(factor, matrices=tuple(triangle(one) for one in tables))
    daily = np.zeros((len(own),) * 2)
    return fleet, ArmSums("arm", ["2026-01-01"], [], total, weights, daily, ()), own


def test_friction_that_falls_with_speed_and_brakes_is_consistent(known):
    """What must not drive a joint is all of its friction: its line alone may fall."""
    fleet, sums, own = falling(known, 0)
    fit, reasons = arm_fit(fleet, sums)
    assert not [one for one in reasons if "friction" in one or "fv" in one]
    whole = np.eye(len(own)) - fleet.model.change(len(fleet.model.followed.names)) + np.eye(len(own))  # line of all
    place = fit.columns.index("fv4")
    error = np.sqrt(whole[place] @ fit.covariance @ whole[place])
    assert (whole @ own)[place] < -10.0 * error
    assert abs(whole[place] @ (fit.values - own)) < 3.0 * error


def test_friction_that_drives_a_joint_is_named_in_short(known):
    """Nobody can check a sum of a curve's coefficients by hand: the worst torque is stated, once for each direction."""
    _, reasons = arm_fit(*falling(known, 0, coulomb=0.3)[:2])
    about = [one for one in reasons if "friction" in one]
    assert 1 <= len(about) <= 2
    for one in about:
        assert re.fullmatch(r"friction of joint 4 (forwards|backwards) = -[0-9.]+, but must be ≥ 0 at every speed", one)


def test_an_arm_that_cannot_be_made_consistent_has_a_fit_that_can_be_read(known, monkeypatch, tmp_path):
    """Without a consistent fit there are no standard parameters; an audit that fails is a reason, and ends nothing."""

    def contradicts(*_, **__):
        raise NotConsistentError("known values contradict each other")

    def fails(*_, **__):
        raise EstimationError("the solver gives up")

    monkeypatch.setattr("armid.fleet.identify.consistent_fit", contradicts)
    monkeypatch.setattr("armid.fleet.identify.audit", fails)
    fit, reasons = arm_fit(*falling(known, 1)[:2])
    fit.save(tmp_path / "fit.json")
    assert load_fit(tmp_path / "fit.json").standard_parameters is None
    assert len(reasons) == 1
    assert reasons[0].endswith("the audit fails: the solver gives up")


def test_a_load_looks_heavier_by_what_drives_lose_of_the_weight(known):
    """Each joint's gain counts as its torque tells the mass; one that is not known makes the mass so much less sure."""
    robot, factor = known[0].robot, known[1]
    terms, gains = tuple(FrictionTerm("gain", joint) for joint in range(4)), np.array([0.02, 0.08, 0.05, 0.04])
    model = TypeModel(robot, terms, None, np.zeros(4), gains, factor=factor, weights=np.full(4, 1.0 / NOISE**2))
    mass = payload_map(model.followed)[:, 0]
    rng, found = np.random.default_rng(4), []
    for _ in range(40):
        own = gains + 0.1 * rng.normal(size=4)
        top = bottom = 0.0
        for joint, columns in enumerate(factor.columns):  # the mass alone, by least squares
            names = [factor.names[k] for k in columns]
            change = np.array([dict(zip(model.followed.names, mass, strict=True)).get(name, 0.0) for name in names])
            seen = factor.matrices[joint][:, :-1] @ change
            top, bottom = top + (1.0 + own[joint]) * seen @ seen, bottom + seen @ seen
        found.append(top / bottom - 1.0)
    gain, doubt = model.weight_gain(mass)
    assert gain == pytest.approx(np.mean(found), abs=4.0 * doubt / np.sqrt(40))
    assert doubt == pytest.approx(np.std(found), rel=0.3)
    wider = replace(model, error=0.3 * np.eye(4)).weight_gain(mass)
    assert wider[1] == pytest.approx(np.hypot(doubt, 3.0 * doubt))
    assert replace(model, terms=(), curve=np.zeros(0)).weight_gain(mass) == (0.0, 0.0)
    load = CarriedMass(1.05, 0.01, np.array([0.0, 0.0, 0.105])).weighed(0.05, 0.03)
    assert (load.mass, load.sigma) == pytest.approx((1.0, np.hypot(0.01, 0.03) / 1.05), rel=0.03)
    np.testing.assert_allclose(load.moment / load.mass, [0.0, 0.0, 0.1])


@pytest.mark.prove
def test_friction_is_learnt_from_the_first_days(tmp_path):
    """Arms with Stribeck friction: the type has a curve, residuals are those of the noise, and a new run keeps it."""
    from armid.fleet.identify import identify_fleet
    from armid.fleet.simulate import simulate_fleet, virtual_fleet

    fleet = virtual_fleet(armid.load_robot(rough_arm_file(tmp_path)), robots=8, days=3, seed=5)
    file = simulate_fleet(fleet, tmp_path / "hall")
    learnt = identify_fleet(load_fleet(file), tmp_path / "learnt")
    before = (tmp_path / "learnt" / "type.json").read_bytes()
    assert any(term.law == "smooth" for term in armid.load_fit(tmp_path / "learnt" / "type.json").terms)
    assert identify_fleet(load_fleet(file), tmp_path / "learnt").counts.kept == 24
    assert (tmp_path / "learnt" / "type.json").read_bytes() == before
    file.write_text(file.read_text() + "friction: linear\n")
    linear = identify_fleet(load_fleet(file), tmp_path / "linear")
    noise = [np.mean([arm.noise for arm in one.arms], axis=0) for one in (learnt, linear)]
    assert np.all(noise[0] < noise[1])
    for arm in learnt.arms:
        fit = armid.load_fit(tmp_path / "learnt" / arm.fit)
        assert np.all(fit.residual_rms < 1.5 * arm.noise)
        assert np.abs(fit.values).max() < 100.0


def test_intervals_of_an_arm_know_of_its_curve_and_of_its_days(known, tmp_path):
    """Curves differ from the type's, and friction from day to day: 95 % intervals of own fits hold the truth so often.

    Viscous and Coulomb friction beside the curve count as well: the curve may look like them. The type's curve is known
    no better than one arm's, and arms differ from it three times as much as is said before any of them is seen.
    """
    model, factor = replace(known[0], curve=0.03 * known[0].curve, widths=(3.0,) * len(TERMS)), known[1]
    model = replace(model, linear=model.linear_part(factor), error=model._spread)
    fleet = SimpleNamespace(robot=model.robot, slow_floor=0.03, pipeline=SimpleNamespace(to_data=list))
    rng, weights, count = np.random.default_rng(3), np.full(4, 1.0 / NOISE**2), len(model.followed.names)
    parameters = true_parameters(model.robot.virtual)
    usual = base_values(model.robot, model.robot.virtual)
    changes = np.diag([0.2 * parameters[name] if name[:2] in ("fv", "fc") else 0.0 for name in model.followed.names])
    inside, plain = [], []
    for _ in range(15):
        own = np.concatenate([usual, model.curve + model._spread @ rng.normal(size=len(model.curve))])
        fleet.model = replace(model, curve=model.curve + model.error @ rng.normal(size=len(model.curve)))
        # its prior is as wide as that of the true curve
        fleet.model.__dict__["_spread"], fleet.model.__dict__["_roots"] = model._spread, model._roots
        days = []
        for _ in range(4):
            today = own + np.pad(changes @ rng.normal(size=count), (0, len(model.curve)))
            tables = [
                np.column_stack([part[:, :-1], part[:, :-1] @ today[columns] + NOISE * rng.normal(size=len(part))])
                for part, columns in zip(factor.matrices, factor.columns, strict=True)
            ]
            days.append(replace(factor, matrices=tuple(triangle(one) for one in tables)))
        halves = [day.normal_equations(weights)[0][:, :count] @ changes for day in days]
        total = reduce(add, days)
        for shares, daily in ((inside, sum(half @ half.T for half in halves)), (plain, np.zeros((len(own),) * 2))):
            fit, _ = arm_fit(fleet, ArmSums("arm", ["2026-01-01"], [], total, weights, daily, ()))
            shares.append(np.abs(fit.values - own) < 1.96 * fit.sigma)
    fit.save(tmp_path / "fit.json")
    assert load_fit(tmp_path / "fit.json").columns == fit.columns  # nothing in the file contradicts another entry
    friction = [k for k, name in enumerate(model.followed.names) if name[:2] in ("fv", "fc")]
    links = [k for k in range(count) if k not in friction and model.followed.names[k][:2] != "fo"]
    assert 0.9 <= np.mean([one[friction] for one in inside]) <= 0.99
    assert 0.9 <= np.mean([one[links] for one in inside]) <= 0.99
    assert np.mean([one[friction] for one in plain]) < 0.9
