"""Robust least squares: outliers do not matter, clean data cost little, and intervals stay honest."""

from dataclasses import replace

import numpy as np
import pytest

from armid.errors import UnknownNameError
from armid.estimation import robust
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.estimation.robust import RobustLeastSquares
from armid.signals.filters import filtered
from tests.estimation.virtual_arms import (
    arm,
    dataset,
    excitation,
    mujoco_torque,
    prediction_error,
    sampled,
    true_values,
)

RATE_HZ = 100.0
NOISE = np.array([3.3, 4.6, 1.5])  # averaged torque noise of the IR 361, Table 1


@pytest.fixture(scope="module")
def setting():
    robot = arm("ir361")
    motion = sampled(excitation(robot), RATE_HZ)
    return robot, motion, mujoco_torque(robot, motion)


def with_outliers(setting, seed, share=0.05, size=200.0):
    robot, motion, torque = setting
    rng = np.random.default_rng(seed)
    noise = NOISE * rng.normal(size=torque.shape)
    bad = rng.random(len(torque)) < share
    noise[bad] += size * rng.normal(size=(bad.sum(), 3))
    return dataset(robot, motion, torque + noise, RATE_HZ)


def test_five_percent_of_outliers_hardly_matter(setting):
    robot = setting[0]
    judge = prediction_error(robot)
    estimators = (WeightedLeastSquares(), RobustLeastSquares(), RobustLeastSquares(loss="tukey"))
    found = np.array(
        [[judge(e.fit(robot, with_outliers(setting, seed)).values) for e in estimators] for seed in range(5)]
    )
    clean = [judge(WeightedLeastSquares().fit(robot, with_outliers(setting, s, share=0.0)).values) for s in range(5)]
    plain, huber, tukey = np.median(found, axis=0)
    assert huber < 0.2 * plain
    assert tukey < 0.2 * plain
    assert tukey < 1.5 * np.median(clean)


@pytest.mark.parametrize("loss", ["huber", "tukey"])
def test_intervals_cover_the_truth_despite_outliers(setting, loss):
    robot = setting[0]
    truth = true_values(robot)
    inside = []
    for seed in range(12):
        fit = RobustLeastSquares(loss=loss).fit(robot, with_outliers(setting, seed))
        inside.append(np.abs(fit.values - truth) < 1.96 * fit.sigma)
    assert 0.9 < np.mean(inside) < 0.99


def test_without_outliers_it_is_nearly_as_good_as_least_squares(setting):
    robot = setting[0]
    clean = with_outliers(setting, 3, share=0.0)
    huber, plain = RobustLeastSquares().fit(robot, clean), WeightedLeastSquares().fit(robot, clean)
    assert np.median(huber.sigma / plain.sigma) == pytest.approx(1.0 / np.sqrt(0.95), abs=0.06)
    assert np.all(np.abs(huber.values - plain.values) < 1.5 * plain.sigma)


def test_the_scale_is_the_median_absolute_deviation(setting):
    robot = setting[0]
    data = with_outliers(setting, 1)
    fit = RobustLeastSquares().fit(robot, data)
    problem = RobustLeastSquares().problem(robot, data)
    error = np.concatenate([b.torque - b.regressor @ fit.values for b in problem.blocks()])
    use = np.concatenate([b.use for b in problem.blocks()])
    wanted = [1.4826 * np.median(np.abs(error[use[:, j], j])) for j in range(3)]
    np.testing.assert_allclose(1.0 / np.sqrt(fit.weights), wanted, rtol=0.01)
    np.testing.assert_allclose(fit.residual_rms, [np.sqrt(np.mean(error[use[:, j], j] ** 2)) for j in range(3)])


def test_blocks_do_not_change_the_estimate(setting, monkeypatch):
    """Constant memory: the same result from many small blocks, filtered rows included."""
    robot = setting[0]
    data = with_outliers(setting, 2)
    kernel = np.array([0.25, 0.5, 0.25])
    rows = np.arange(1, len(data.q) - 1, 2)
    thin = replace(data, torque=filtered(data.torque, kernel, rows), rows=rows, kernel=kernel)
    whole = RobustLeastSquares().fit(robot, thin)
    monkeypatch.setattr("armid.estimation.problem.BLOCK_SAMPLES", 64)
    np.testing.assert_allclose(RobustLeastSquares().fit(robot, thin).values, whole.values, rtol=1e-5)


def test_weights_are_psi_over_residual():
    u = np.linspace(-8.0, 8.0, 401)
    step = 1e-6
    for loss, cutoff in robust.CUTOFFS.items():
        rho = robust._Loss(loss, cutoff)
        psi = u * rho.weights(u)
        slope = ((u + step) * rho.weights(u + step) - psi) / step
        away = np.abs(np.abs(u) - cutoff) > 1e-2
        np.testing.assert_allclose(rho.slopes(u)[away], slope[away], atol=1e-4)


def test_bad_options_are_named(setting):
    robot = setting[0]
    data = with_outliers(setting, 0)
    with pytest.raises(UnknownNameError, match="huber"):
        RobustLeastSquares(loss="cauchy").fit(robot, data)
    with pytest.raises(EstimationError, match="cutoff is 0"):
        RobustLeastSquares(cutoff=0.0).fit(robot, data)
    assert "Not converged" in " ".join(map(str, RobustLeastSquares(iterations=1).fit(robot, data).notes))
