"""Estimators that are linear, or become so without noise: exact on MuJoCo's torque; weighting pays as it should."""

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.errors_in_variables import MaximumLikelihood, TotalLeastSquares
from armid.estimation.instruments import InstrumentalVariables
from armid.estimation.least_squares import OrdinaryLeastSquares, SingularValueSolution, WeightedLeastSquares
from armid.estimation.robust import RobustLeastSquares
from armid.robot.parts import Friction
from tests.estimation.virtual_arms import (
    arm,
    dataset,
    errors,
    excitation,
    mujoco_torque,
    prediction_error,
    sampled,
    true_values,
)

RATE_HZ = 100.0
EXACT = 1e-8
estimators = {
    "ols": OrdinaryLeastSquares(),
    "svd": SingularValueSolution(),
    "wls residual": WeightedLeastSquares(noise="residual"),
    "wls measured": WeightedLeastSquares(noise="measured"),
    "wls covariance": WeightedLeastSquares(noise="covariance"),
    "huber": RobustLeastSquares(),
    "tukey": RobustLeastSquares(loss="tukey"),
    "tls motion": TotalLeastSquares(),
    "tls columns": TotalLeastSquares(column_error=1.0),
    "iv": InstrumentalVariables(),
    "ml periodic": MaximumLikelihood(),
    "ml effective": MaximumLikelihood(motion_noise=(1e-4, 1e-3, 1e-2)),
}


def linear_friction(robot):
    """The arm with Coulomb and viscous friction in place of laws that are not linear."""
    law = (Friction("coulomb-viscous"),) * robot.n_joints
    coefficients = tuple({"fv": 5.0 - 0.5 * j, "fc": 3.0 - 0.3 * j} for j in range(robot.n_joints))
    return replace(robot, friction=law, virtual=replace(robot.virtual, friction=law, coefficients=coefficients))


def exact_data(robot):
    motion = sampled(excitation(robot), RATE_HZ)
    n = robot.n_joints
    stated = {"torque_noise": np.ones(n), "noise_covariance": np.eye(n), "position_noise": np.full(n, 1e-6)}
    return dataset(robot, motion, mujoco_torque(robot, motion), RATE_HZ, periods=2, **stated)


def check_exact(robot, data, label):
    estimator = estimators[label]
    if label == "iv":
        estimator = replace(estimator, command=data.motion)
    if label == "ml effective":
        data = replace(data, periods=0)
    fit = estimator.fit(robot, data)
    assert errors(fit.values, true_values(robot)).max() < EXACT
    assert fit.method == estimator.name
    assert np.all(np.isfinite(fit.covariance))


@pytest.fixture(scope="module")
def exact():
    arms = {name: arm(name) for name in ("ir361", "er16")}
    return {name: (robot, exact_data(robot)) for name, robot in arms.items()}


@pytest.mark.parametrize("label", estimators)
@pytest.mark.parametrize("name", ["ir361", "er16"])
def test_exact_on_torque_from_mujoco(exact, name, label):
    robot, data = exact[name]
    check_exact(robot, data, label)


@pytest.mark.prove
@pytest.mark.parametrize("name", ["pa10", "powerball"])
def test_exact_on_six_and_seven_joints(name):
    robot = linear_friction(arm(name))
    data = exact_data(robot)
    for label in estimators:
        check_exact(robot, data, label)


def weighting_gain(seeds):
    """Prediction and parameter errors (seeds, 2, estimators) where joint 2 has a tenth of the others' noise."""
    robot = arm("ir361")
    motion = sampled(excitation(robot), RATE_HZ)
    torque, truth, noise = mujoco_torque(robot, motion), true_values(robot), np.array([10.0, 1.0, 10.0])
    judge = prediction_error(robot)
    result = []
    for seed in range(seeds):
        drawn = torque + noise * np.random.default_rng(seed).normal(size=torque.shape)
        data = dataset(robot, motion, drawn, RATE_HZ, torque_noise=noise)
        fits = [e.fit(robot, data).values for e in (estimators["ols"], estimators["wls residual"])]
        result.append([[judge(v) for v in fits], [np.median(errors(v, truth)) for v in fits]])
    return np.array(result)


def test_weighting_beats_plain_least_squares_when_joint_noise_differs_tenfold():
    plain, weighted = np.median(weighting_gain(9), axis=0).T
    assert np.all(weighted < 0.8 * plain)


@pytest.mark.prove
def test_weighting_over_many_draws(record_property):
    found = weighting_gain(200)
    record_property("median", np.median(found, axis=0).tolist())
    print(
        "WLS against OLS, medians of 200:", np.median(found, axis=0), np.mean(found[:, :, 1] < found[:, :, 0], axis=0)
    )
    assert np.all(np.median(found, axis=0)[:, 1] < 0.8 * np.median(found, axis=0)[:, 0])


def test_options_and_fit_survive_json(exact, tmp_path):
    from armid.estimation.fit import load_fit

    robot, data = exact["er16"]
    for label in ("huber", "tls motion", "iv", "ml periodic"):
        estimator = replace(estimators[label], command=data.motion) if label == "iv" else estimators[label]
        fit = estimator.fit(robot, data)
        fit.save(tmp_path / "fit.json")
        again = load_fit(tmp_path / "fit.json")
        assert again.method == fit.method
        np.testing.assert_array_equal(again.values, fit.values)
        assert fit.history["data_sha256"] == estimators["ols"].fit(robot, data).history["data_sha256"]
