"""Maximum likelihood: noise on positions is accounted for, in both forms; derivatives are right; intervals cover."""

from dataclasses import replace

import numpy as np
import pytest

from armid.dynamics.sensitivity import Sensitivity
from armid.errors import UnknownNameError
from armid.estimation.errors_in_variables import MaximumLikelihood
from armid.estimation.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from armid.estimation.likelihood import EffectivePart, FourierPart, motion_noise, motion_slopes
from armid.estimation.problem import EstimationError
from armid.logs.log import Log, LogInfo
from armid.signals import LowPass, PeriodicAverage, process
from armid.signals.filters import filtered
from armid.torque.model import TorqueModel, model_of
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

RATE_HZ, PERIODS = 100.0, 4
NOISE = np.array([13.2, 18.4, 6.0])  # raw torque noise of the IR 361


@pytest.fixture(scope="module")
def setting():
    robot = arm("ir361")
    motion = sampled(excitation(robot, seed=3), RATE_HZ)
    return robot, motion, mujoco_torque(robot, motion)


def periodic(setting, seed, noise):
    """Periods with noise on position and torque, averaged; forty harmonics are kept, as a real loop would need."""
    robot, motion, torque = setting
    rng = np.random.default_rng(seed)
    q, tau = (np.tile(array, (PERIODS, 1)) for array in (motion.q, torque))
    channels = {"position": q + noise * rng.normal(size=q.shape), "effort": tau + NOISE * rng.normal(size=tau.shape)}
    info = LogInfo(joints=robot.joint_names, effort="joint torque", rate_hz=RATE_HZ)
    log = Log(np.arange(len(q)) / RATE_HZ, channels, info)
    return process(log, PeriodicAverage(period_s=10.0, harmonics=40, discard_periods=0))


def single(setting, seed, noise, cutoff_hz=10.0):
    """One run, low-passed."""
    robot, motion, torque = setting
    rng = np.random.default_rng(seed)
    channels = {
        "position": motion.q + noise * rng.normal(size=motion.q.shape),
        "effort": torque + NOISE * rng.normal(size=torque.shape),
    }
    info = LogInfo(joints=robot.joint_names, effort="joint torque", rate_hz=RATE_HZ)
    return process(Log(np.arange(len(torque)) / RATE_HZ, channels, info), LowPass(cutoff_hz=cutoff_hz))


def compared(setting, seeds, make, estimator):
    """Prediction errors, parameter errors and coverage (seeds, 3, WLS and ML)."""
    robot = setting[0]
    truth, judge = true_values(robot), prediction_error(robot)
    result = []
    for seed in range(seeds):
        fits = [e.fit(robot, make(seed)) for e in (WeightedLeastSquares(), estimator)]
        result.append(
            [
                [judge(fit.values) for fit in fits],
                [np.median(errors(fit.values, truth)) for fit in fits],
                [np.mean(np.abs(fit.values - truth) < 1.96 * fit.sigma) for fit in fits],
            ]
        )
    return np.array(result)


def test_better_than_least_squares_on_periodic_data_with_position_noise(setting):
    found = compared(setting, 5, lambda seed: periodic(setting, seed, 1e-2), MaximumLikelihood())
    middle = np.median(found, axis=0)
    assert middle[0, 1] < 0.3 * middle[0, 0]
    assert middle[1, 1] < 0.5 * middle[1, 0]
    assert found[:, 2, 1].mean() > 0.88 > found[:, 2, 0].mean()


def test_better_than_least_squares_on_a_single_run_with_position_noise(setting):
    found = compared(setting, 3, lambda seed: single(setting, seed, 1e-3), MaximumLikelihood(position_noise=1e-3))
    middle = np.median(found, axis=0)
    assert middle[0, 1] < 0.6 * middle[0, 0]


@pytest.mark.prove
@pytest.mark.parametrize("noise", [1e-3, 3e-3, 1e-2])
def test_periodic_data_over_many_draws(setting, noise):
    found = compared(setting, 40, lambda seed: periodic(setting, seed, noise), MaximumLikelihood())
    print(f"WLS ML periodic, noise {noise}:", np.median(found, axis=0)[:2], found[:, 2].mean(axis=0))
    assert np.median(found[:, 0, 1]) <= 1.02 * np.median(found[:, 0, 0])
    assert 0.92 < found[:, 2, 1].mean() < 0.98


@pytest.mark.prove
@pytest.mark.parametrize("noise", [3e-4, 1e-3])
def test_single_runs_over_many_draws(setting, noise):
    found = compared(setting, 40, lambda seed: single(setting, seed, noise), MaximumLikelihood(position_noise=noise))
    print(f"WLS ML single, noise {noise}:", np.median(found, axis=0)[:2], found[:, 2].mean(axis=0))
    assert np.median(found[:, 0, 1]) < np.median(found[:, 0, 0])


def test_without_position_noise_it_is_weighted_least_squares(setting):
    robot = setting[0]
    data = periodic(setting, 0, 1e-3)
    fit = MaximumLikelihood(position_noise=1e-12).fit(robot, data)
    plain = WeightedLeastSquares(noise="measured").fit(robot, data)
    np.testing.assert_allclose(fit.values, plain.values, atol=1e-3 * plain.sigma.min())
    np.testing.assert_allclose(fit.sigma, plain.sigma, rtol=0.15)


def test_at_the_solution_the_estimate_is_least_squares_on_the_refined_motion(setting):
    """The likelihood is linear in the parameters once the motion is right: a check by another route."""
    robot = setting[0]
    data = periodic(setting, 1, 5e-3)
    estimator = MaximumLikelihood()
    fit = estimator.fit(robot, data)
    weights = 1.0 / data.torque_noise**2
    part = FourierPart(estimator.problem(robot, data), data, weights, motion_noise(data))
    values, converged, _ = estimator._iterate([part], WeightedLeastSquares().fit(robot, data).values)
    assert converged
    np.testing.assert_allclose(values, fit.values, rtol=1e-6)
    refined = part.refined()
    sure = replace(refined, use=part._use)
    again = WeightedLeastSquares(noise="measured", slow_share=0.0, slow_floor=0.0).fit(robot, sure)
    np.testing.assert_allclose(again.values, fit.values, atol=1e-3 * fit.sigma.min())


@pytest.mark.parametrize("kind", ["periodic", "single"])
def test_gradient_is_that_of_the_cost(setting, kind):
    """Normal equations against central differences of the cost, coefficients moved along where there are any."""
    robot = setting[0]
    data = periodic(setting, 2, 3e-3) if kind == "periodic" else single(setting, 2, 1e-3)
    problem = MaximumLikelihood().problem(robot, data)
    weights = 1.0 / np.asarray(data.torque_noise) ** 2
    if kind == "periodic":
        part = FourierPart(problem, data, weights, motion_noise(data))
    else:
        part = EffectivePart(problem, data, weights, motion_noise(data, 1e-3))
    values = 1.02 * true_values(robot)
    matrix, vector, _ = part.normal(values)
    scale = 1.0 / np.sqrt(np.diag(matrix))
    for direction in np.random.default_rng(0).normal(size=(4, len(values))):
        step = 0.1 * scale * direction
        if kind == "periodic":
            part._offset = np.zeros_like(part._offset)
            gain = part._gain
            part._gain = np.zeros_like(gain)
        slope = (part.cost(values, step, 1e-3) - part.cost(values, step, -1e-3)) / 2e-3
        if kind == "periodic":
            part._gain = gain
            fixed = np.concatenate([rows[:, : len(values)].T @ error for rows, error in part._jacobians(values)])
            fixed = fixed.reshape(-1, len(values)).sum(axis=0)
            assert slope == pytest.approx(-2.0 * float(fixed @ step), rel=1e-4)
        else:
            assert slope == pytest.approx(-2.0 * float(vector @ step), rel=1e-4)


def test_slopes_of_torque_agree_with_the_adjoint():
    """Central differences here, the hand-written adjoint of the design there."""
    robot = arm("ir361")
    motion = sampled(excitation(robot), 10.0)
    moving = np.abs(motion.qd).min(axis=1) > 0.05
    motion = type(motion)(*(np.ascontiguousarray(array[moving]) for array in motion))
    values, model = true_values(robot), model_of(robot)
    slopes = motion_slopes(TorqueModel(robot), motion, values)
    adjoint = Sensitivity(model, model.base.kept, width=0.0)
    for joint in range(robot.n_joints):
        bar = np.zeros_like(motion.q)
        bar[:, joint] = 1.0
        for mine, theirs in zip(slopes, adjoint.torque_gradient(motion, values, bar), strict=True):
            np.testing.assert_allclose(mine[:, joint], theirs, rtol=1e-6, atol=1e-5 * np.abs(mine).max())


@pytest.mark.parametrize("kind", ["periodic", "single"])
def test_motion_noise_is_what_noise_does(setting, kind):
    """Standard deviations against differences from the true motion."""
    robot = setting[0]
    data = periodic(setting, 4, 1e-3) if kind == "periodic" else single(setting, 4, 1e-3)
    clean = periodic(setting, 4, 0.0) if kind == "periodic" else single(setting, 4, 0.0)
    wanted = motion_noise(data, None if kind == "periodic" else 1e-3)
    assert wanted.shape == (3, robot.n_joints)
    for sigma, mine, true in zip(wanted, data.motion, clean.motion, strict=True):
        left = filtered(mine - true, data.kernel, data.rows)
        np.testing.assert_allclose(sigma, left.std(axis=0), rtol=0.35)


def test_several_data_sets_at_once(setting):
    robot = setting[0]
    pair = [periodic(setting, 0, 5e-3), periodic(setting, 1, 5e-3)]
    one, two = MaximumLikelihood().fit(robot, pair[0]), MaximumLikelihood().fit(robot, pair)
    assert np.median(two.sigma / one.sigma) == pytest.approx(np.sqrt(0.5), abs=0.08)


def test_it_says_what_it_needs(setting):
    robot, motion, torque = setting
    plain = dataset(robot, motion, torque, RATE_HZ)
    with pytest.raises(EstimationError, match="position_noise"):
        MaximumLikelihood().fit(robot, plain)
    with pytest.raises(EstimationError, match="motion_noise"):
        MaximumLikelihood(position_noise=1e-3).fit(robot, plain)
    with pytest.raises(UnknownNameError, match="measured"):
        MaximumLikelihood(noise="white").fit(robot, plain)
    fit = MaximumLikelihood(iterations=1, tolerance=0.0).fit(robot, periodic(setting, 0, 1e-2))
    assert "NOT converged" in " ".join(map(str, fit.notes))
    assert OrdinaryLeastSquares().fit(robot, plain).names == fit.names
