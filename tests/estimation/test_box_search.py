"""Searches in a box: the bee colony as the ER-16 paper states it, its published figures, and differential evolution."""

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.estimation.box_search import BeeColony, DifferentialEvolution, Objective, published_box
from armid.estimation.fit import load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.excitation.profiles import er16_beta_1, er16_beta_2
from armid.experiment.virtual import VirtualRobot
from armid.signals import FourierFit, process
from armid.signals.filters import smooth
from armid.torque.model import model_of
from tests.estimation.virtual_arms import arm, dataset, mujoco_torque, sampled, true_values


@pytest.fixture(scope="module")
def robot():
    return arm("er16").without_rotors()


@pytest.fixture(scope="module")
def data(robot):
    """The published excitation, torque from MuJoCo with 5 % noise, 25 Hz."""
    motion = sampled(er16_beta_1(), 25.0)
    torque = mujoco_torque(robot, motion)
    noise = 0.05 * torque.std(axis=0) * np.random.default_rng(0).normal(size=torque.shape)
    return dataset(robot, motion, torque + noise, 25.0)


def larger_box(robot):
    """1.25 times the truth, both signs; at least 1.25 where the truth is near zero."""
    reach = 1.25 * np.maximum(np.abs(true_values(robot)), 1.0)
    return {name: (-r, r) for name, r in zip(model_of(robot).base.kept, reach, strict=True)}


def correlation(fit, data):
    """(18), per joint."""
    torque = fit.predict(data.motion, sigma=False).torque[data.rows]
    return np.array([np.corrcoef(p, m)[0, 1] for p, m in zip(torque.T, data.torque.T, strict=True)])


def test_the_published_box_is_that_of_table_3(robot):
    box = published_box(robot, "table-2")
    assert len(box) == 21
    assert set(box) == set(model_of(robot).base.kept)
    assert box["Izz1"] == (-60.0, 60.0)
    assert box["my2"] == (-80.0, 80.0)
    assert box["fc2"] == (-10.0, 10.0)
    with pytest.raises(ArmidError, match="no search range"):
        published_box(replace(robot, published={"a": {"parameters": [{"name": "Izz1", "formula": "Izz1"}]}}), "a")


def test_objective_is_equation_9_normalised(robot, data):
    problem = BeeColony().problem(robot, data)
    objective = Objective(problem, rows=10**6)
    values = 0.9 * true_values(robot)
    block = next(problem.blocks())
    error = np.abs(block.torque - block.regressor @ values)
    parts = [error[u, j].mean() / block.torque[u, j].std() for j, u in enumerate(block.use.T)]
    assert objective(values[:, None])[0] == pytest.approx(np.mean(parts), rel=1e-12)
    few = Objective(problem, rows=100)
    assert len(few.target) <= 300
    assert few(values[:, None])[0] == pytest.approx(np.mean(parts), rel=0.1)


def test_the_colony_keeps_its_books(robot, data):
    box = published_box(robot, "table-2")
    fit = BeeColony(bounds=box, seed=3).fit(robot, data)
    curve = np.array(fit.history["convergence"])
    assert len(curve) == 51
    assert np.all(np.diff(curve) <= 0.0)
    scouts = fit.history["evaluations"] - 1530  # 30 at the start, 30 in each of 50 iterations (ER-10)
    assert 0 <= scouts < 50
    low, high = np.array([box[name] for name in fit.columns]).T
    assert np.all((fit.values >= low) & (fit.values <= high))
    objective = Objective(BeeColony().problem(robot, data), 500)
    assert objective(fit.values[:, None])[0] == pytest.approx(fit.history["objective"], rel=1e-9)
    assert curve[-1] == fit.history["objective"]
    again = BeeColony(bounds=box, seed=3).fit(robot, data)
    np.testing.assert_array_equal(again.values, fit.values)
    assert np.any(BeeColony(bounds=box, seed=4).fit(robot, data).values != fit.values)


def test_scouts_replace_sources_past_their_limit(robot, data):
    box = published_box(robot, "table-2")
    patient = BeeColony(bounds=box, limit=10**6).fit(robot, data)
    hasty = BeeColony(bounds=box, limit=1).fit(robot, data)
    assert patient.history["evaluations"] == 1530
    assert hasty.history["evaluations"] > 1600


def test_fifty_iterations_are_not_enough_and_least_squares_needs_none(robot, data):
    """ER-10: the paper's settings stop far from the optimum; least squares is there at once."""
    box = larger_box(robot)
    least = WeightedLeastSquares().fit(robot, data)
    assert correlation(least, data).min() > 0.99
    short = [correlation(BeeColony(bounds=box, seed=s).fit(robot, data), data).min() for s in range(5)]
    assert np.median(short) < 0.99
    long = BeeColony(bounds=box, iterations=500).fit(robot, data)
    assert correlation(long, data).min() > 0.99


def test_intervals_admit_the_distance_to_the_optimum(robot, data):
    fit = BeeColony(bounds=larger_box(robot)).fit(robot, data)
    least = WeightedLeastSquares().fit(robot, data)
    assert np.all(np.abs(fit.values - least.values) < 1.01 * fit.sigma)


def test_differential_evolution_gets_as_far_as_least_squares(robot, data, tmp_path):
    fit = DifferentialEvolution(bounds=larger_box(robot)).fit(robot, data)
    assert correlation(fit, data).min() > 0.99
    assert np.all(np.diff(fit.history["convergence"]) <= 0.0)
    fit.save(tmp_path / "fit.json")
    assert load_fit(tmp_path / "fit.json").history["convergence"] == fit.history["convergence"]


def test_bounds_are_needed_and_checked(robot, data):
    with pytest.raises(EstimationError, match="bounds for Izz1"):
        BeeColony().fit(robot, data)
    box = published_box(robot, "table-2")
    with pytest.raises(EstimationError, match="bounds of fv1 are 1 and 1"):
        BeeColony(bounds={**box, "fv1": (1.0, 1.0)}).fit(robot, data)
    with pytest.raises(EstimationError, match="colony is 5"):
        BeeColony(bounds=box, colony=5).fit(robot, data)
    with pytest.raises(EstimationError, match="limit is 0"):
        BeeColony(bounds=box, limit=0).fit(robot, data)


@pytest.mark.prove
def test_published_settings_on_the_virtual_arm(robot):
    """R10: one period at 1 kHz in the drives' loop, smoothing (17), Fourier series; ten seeds as they are."""
    sets = []
    for seed, (path, harmonics) in enumerate(((er16_beta_1(), 5), (er16_beta_2(), 3))):
        start = path.at(np.zeros(1)).q[0]
        log = VirtualRobot(robot, rate_hz=1000.0, seed=seed, posture=start).run(path, periods=1)
        made = process(log, FourierFit(frequency_hz=0.05, harmonics=harmonics))
        sets.append(replace(made, torque=smooth(made.torque)))
    train, other = sets
    least = WeightedLeastSquares().fit(robot, train)
    print("least squares", correlation(least, train), correlation(least, other))
    assert correlation(least, train).min() >= 0.99
    for label, box in (("published", published_box(robot, "table-2")), ("1.25 truth", larger_box(robot))):
        for seed in range(10):
            fit = BeeColony(bounds=box, seed=seed).fit(robot, train)
            print(
                f"{label} 30/15/50 seed {seed}: F {fit.history['objective']:.3f}, rho_id",
                np.round(correlation(fit, train), 3),
                "rho_val",
                np.round(correlation(fit, other), 3),
            )
        evolved = DifferentialEvolution(bounds=box).fit(robot, train)
        print(label, "differential evolution", evolved.history["objective"], correlation(evolved, train))
    for seed in range(5):
        fit = BeeColony(bounds=larger_box(robot), seed=seed, iterations=500).fit(robot, train)
        print(f"500 iterations seed {seed}: F {fit.history['objective']:.4f}", correlation(fit, train))
        assert correlation(fit, train).min() >= 0.99
