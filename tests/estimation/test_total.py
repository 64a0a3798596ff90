"""Total least squares: the textbook's solution on the compact factor, and less bias where the motion is noisy."""

import numpy as np
import pytest

from armid.errors import UnknownNameError
from armid.estimation.errors_in_variables import TotalLeastSquares
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.logs.log import Log, LogInfo
from armid.signals import LowPass, process
from tests.estimation.virtual_arms import arm, dataset, excitation, mujoco_torque, prediction_error, sampled

RATE_HZ = 100.0
NOISE = np.array([13.2, 18.4, 6.0])


@pytest.fixture(scope="module")
def noisy():
    robot = arm("ir361")
    motion = sampled(excitation(robot), RATE_HZ)
    torque = mujoco_torque(robot, motion)
    return robot, dataset(robot, motion, torque + np.random.default_rng(0).normal(size=torque.shape), RATE_HZ)


def stacked(robot, data, weights):
    """The weighted regressor and torque, materialised."""
    blocks = list(WeightedLeastSquares().problem(robot, data).blocks())
    use = np.concatenate([b.use for b in blocks])
    root = np.sqrt(weights) * np.ones(use.shape)
    regressor = np.concatenate([b.regressor for b in blocks]) * root[:, :, None]
    torque = np.concatenate([b.torque for b in blocks]) * root
    return regressor[use], torque[use]


def test_classical_solution_is_that_of_the_singular_value_decomposition(noisy):
    """Golub and Van Loan, with all columns and the torque scaled to unit length."""
    robot, data = noisy
    fit = TotalLeastSquares(column_error=0.02, exact=()).fit(robot, data)
    regressor, torque = stacked(robot, data, fit.weights)
    lengths = np.linalg.norm(regressor, axis=0) * 0.02
    scaled = np.column_stack([regressor / lengths, torque / np.linalg.norm(torque)])
    last = np.linalg.svd(scaled, full_matrices=False)[2][-1]
    wanted = -last[:-1] / last[-1] / lengths * np.linalg.norm(torque)
    np.testing.assert_allclose(fit.values, wanted, rtol=1e-6)


def test_exact_columns_are_those_of_mixed_least_squares(noisy):
    """Van Huffel: eliminate the exact columns by QR, total least squares on what is left."""
    robot, data = noisy
    fit = TotalLeastSquares(column_error=0.02).fit(robot, data)
    regressor, torque = stacked(robot, data, fit.weights)
    exact = np.array([name.startswith("fc") for name in fit.names])
    assert exact.sum() == 3
    lengths = np.linalg.norm(regressor, axis=0) * np.where(exact, 1.0, 0.02)
    size = np.linalg.norm(torque)
    order = np.concatenate([np.flatnonzero(exact), np.flatnonzero(~exact)])
    upper = np.linalg.qr(np.column_stack([(regressor / lengths)[:, order], torque / size]), mode="r")
    lower = upper[3:, 3:]
    last = np.linalg.svd(lower, full_matrices=False)[2][-1]
    noisy_part = -last[:-1] / last[-1]
    exact_part = np.linalg.solve(upper[:3, :3], upper[:3, -1] - upper[:3, 3:-1] @ noisy_part)
    wanted = np.empty(len(order))
    wanted[order] = np.concatenate([exact_part, noisy_part])
    np.testing.assert_allclose(fit.values, wanted / lengths * size, rtol=1e-6)


def test_without_errors_in_columns_it_is_weighted_least_squares(noisy):
    robot, data = noisy
    fit = TotalLeastSquares(column_error=0.0).fit(robot, data)
    plain = WeightedLeastSquares().fit(robot, data)
    np.testing.assert_allclose(fit.values, plain.values, atol=1e-3 * plain.sigma.min())
    np.testing.assert_allclose(fit.sigma, plain.sigma, rtol=0.15)


def noisy_position_errors(seeds, noise=1e-3):
    """Prediction errors of WLS and TLS, positions with white noise, low-passed only lightly."""
    robot = arm("ir361")
    rate = 200.0
    motion = sampled(excitation(robot, seed=3), rate)
    torque = mujoco_torque(robot, motion)
    judge = prediction_error(robot)
    info = LogInfo(joints=robot.joint_names, effort="joint torque", rate_hz=rate)
    result = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        channels = {
            "position": motion.q + noise * rng.normal(size=motion.q.shape),
            "effort": torque + NOISE * rng.normal(size=torque.shape),
        }
        data = process(Log(np.arange(len(torque)) / rate, channels, info), LowPass(cutoff_hz=10.0))
        fits = [WeightedLeastSquares(), TotalLeastSquares(position_noise=noise)]
        result.append([judge(e.fit(robot, data).values) for e in fits])
    return np.array(result)


def test_less_bias_than_least_squares_where_positions_are_noisy():
    weighted, total = np.median(noisy_position_errors(5), axis=0)
    assert total < 0.6 * weighted


@pytest.mark.prove
def test_less_bias_over_many_draws():
    found = noisy_position_errors(40)
    print("TLS against WLS, medians of 40:", np.median(found, axis=0), np.mean(found[:, 1] < found[:, 0]))
    assert np.median(found[:, 1]) < 0.6 * np.median(found[:, 0])


def test_it_says_what_it_needs(noisy):
    robot, data = noisy
    with pytest.raises(EstimationError, match="position_noise"):
        TotalLeastSquares().fit(robot, data)
    with pytest.raises(UnknownNameError, match="fc9"):
        TotalLeastSquares(column_error=1.0, exact=("fc9",)).fit(robot, data)
    with pytest.raises(EstimationError, match="column_error is -1"):
        TotalLeastSquares(column_error=-1.0).fit(robot, data)
