"""What is claimed of every arm: nothing is invented, the truth does not fit better, links are like the true ones."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.estimation.consistent.feasible import ConsistentLeastSquares
from armid.estimation.consistent.log_det import plausible_arm
from armid.estimation.mixed import MixedEffects
from armid.torque.friction.smooth import EVEN, ODD
from tests.estimation.feasible_arms import library_arm, made, truth
from tests.estimation.test_mixed import LIBRARY, Stand
from tests.random_arms import random_arm


def stand_of(name, folder):
    """The stand of a library arm, or of the random arm of a seed."""
    if isinstance(name, str):
        return Stand(armid.load_robot(name))
    arm = random_arm(name, folder)
    return Stand(arm.robot, loop_hz=arm.loop_hz)


def invented(stand, seeds):
    """Share of friction coefficients, of those a joint may have, that are two standard deviations from zero."""
    found, possible = 0, len(ODD.columns) + len(EVEN.columns) + 3  # Coulomb, viscous, load
    for seed in seeds:
        fit = MixedEffects().fit(stand.robot, stand.data(seed))
        kinds = {parameter.name: parameter.kind for parameter in fit.torque_model.model.parameters}
        gains = {name for term in fit.terms if term.law == "gain" for name in term.names}  # some of these arms have
        own = [kinds.get(name, "friction") == "friction" and name not in gains for name in fit.columns]
        found += np.sum((np.abs(fit.values) > 2.0 * fit.sigma)[own])
    return found / (possible * stand.robot.n_joints * len(seeds))


@pytest.mark.prove
@pytest.mark.parametrize("name", ["rx60", 116, 215], ids=str)
def test_no_friction_is_invented(tmp_path, name):
    """Arms without friction, 30 draws: at most 5 % of what could be found is two standard deviations from zero."""
    stand = stand_of(name, tmp_path)
    assert not stand.friction(np.ones((1, stand.robot.n_joints))).any()
    share = invented(stand, range(30))
    print(f"invented friction {name}: {share:.4f}")
    assert share <= 0.05


def check_cost_and_scale(robot, seed):
    """A consistent fit is no further from the data than the consistent truth; the unit of torque changes nothing."""
    data = made(robot, noise=0.3, seed=seed)
    fit = ConsistentLeastSquares().fit(robot, data)
    away = data.torque - fit.torque_model.model.linear_torque(*data.motion, truth(robot))
    costs = [float(fit.weights @ (len(data) * square)) for square in (fit.residual_rms**2, np.mean(away**2, axis=0))]
    assert costs[0] <= costs[1]
    for factor in (1e-6, 1e-3, 1e3, 1e6):
        other = ConsistentLeastSquares().fit(robot, replace(data, torque=factor * data.torque))
        assert np.all(np.abs(other.values / factor - fit.values) < 0.1 * fit.sigma)


def test_the_truth_fits_no_better():
    """Two arms; torque times 1e-6 to 1e6 changes no value by a tenth of its standard deviation."""
    for name in ("rx60", "powerball"):
        check_cost_and_scale(library_arm(name), 0)


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LIBRARY)
def test_the_truth_fits_no_better_on_any_arm(name, seed):
    """The same for the library, three draws each."""
    check_cost_and_scale(library_arm(name), seed)


def check_masses(stand):
    """Each mass is 0.2 to 5 times the true one where that is near its guess, all that show together half to twice.

    A mass that no torque shows, such as that of a link on a vertical axis, is named as one that the data do not tell.
    """
    fit = MixedEffects().fit(stand.robot, stand.data(0))
    (told,) = (note.values for note in fit.notes if note.code == "estimation.regularised")
    guess = told["mass_factor"] * plausible_arm(stand.robot)[:, 3, 3]
    base = fit.torque_model.model.base
    links = [i for i in range(len(stand.truth.inertia)) if f"m{i + 1}" in base.names]  # not those described as massless
    guess, names = guess[links], [f"m{i + 1}" for i in links]
    true = np.array([stand.values[stand.model.names.index(name)] for name in names])
    found = np.array([fit.standard_parameters[name] for name in names])
    near = (true > 0.3 * guess) & (true < 3.0 * guess)
    print(f"masses {stand.robot.name}: found / true {np.round(found / true, 2)}, near its guess {near}")
    assert np.all((found > 0.2 * true) & (found < 5.0 * true) | ~near)
    shown = np.array([base.matrix[:, base.names.index(name)].any() for name in names])
    assert 0.5 < found[shown].sum() / true[shown].sum() < 2.0
    (determined,) = (note.values for note in fit.notes if note.code == "estimation.determined")
    assert {names[i] for i in np.flatnonzero(~shown)} <= set(determined["others"])


@pytest.mark.prove
@pytest.mark.parametrize("name", [*LIBRARY, *range(100, 120)], ids=str)
def test_links_are_like_the_true_ones(tmp_path, name):
    """The library's arms and twenty random ones, by defaults."""
    check_masses(stand_of(name, tmp_path))


def test_links_of_an_arm_nobody_tuned_for(tmp_path):
    """One random arm with axes at odd angles, a spring and a load."""
    check_masses(stand_of(205, tmp_path))
