"""Predicted torque and its intervals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.torque_model import model_of
from armid.excitation.fourier import FourierSeries
from armid.logs.log import Log, LogInfo
from armid.validation import predict
from tests.validation.arms import VALUES, data_of, planar, swing


@pytest.fixture
def robot(tmp_path):
    return planar(tmp_path)


@pytest.fixture
def fit(robot):
    return WeightedLeastSquares().fit(robot, data_of(robot, seed=1))


def test_intervals_hold_the_true_torque(robot):
    """Over 40 draws of noise 95 % intervals hold the noise-free torque in about 95 % of samples."""
    _, motion = swing(seed=5)
    truth = model_of(robot).inverse_dynamics(*motion, VALUES)
    other = data_of(robot, seed=5)
    inside = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        data = data_of(robot, seed=1, noise=0.0)
        data = replace(data, torque=data.torque + 0.5 * rng.normal(size=data.torque.shape), torque_noise=None)
        found = predict(WeightedLeastSquares().fit(robot, data), other)
        inside.append(np.mean((found.lower <= truth) & (truth <= found.upper)))
    assert 0.90 < np.mean(inside) < 0.985


def test_a_trajectory_is_sampled_and_not_delayed(robot, fit):
    """What acts at each instant, by the plain prediction of the fit."""
    series = FourierSeries(0.1, (1, 2), np.full((2, 2), 0.2), np.full((2, 2), 0.1), np.zeros(2))
    found = predict(replace(fit, delay_s=np.full(2, 0.05)), series, rate_hz=50.0)
    time, motion = series.sample(50.0)
    np.testing.assert_array_equal(found.time, time)
    np.testing.assert_allclose(found.torque, fit.predict(motion).torque, rtol=1e-12)
    assert found.measured is None
    with pytest.raises(ArmidError, match="joints"):
        predict(fit, FourierSeries(0.1, (1,), np.ones((3, 1)), np.ones((3, 1)), np.zeros(3)))


def test_a_log_is_predicted_at_its_own_instants_and_delayed(robot, fit):
    """Every sample of the log has a torque, near the measured one; without effort too."""
    t, motion = swing(seed=4)
    torque = data_of(robot, seed=4).torque
    late = np.column_stack([np.interp(t - 0.03, t, c) for c in torque.T])
    log = Log(t, {"position": motion.q, "effort": late}, LogInfo(robot.joint_names, "joint torque", rate_hz=150.0))
    found = predict(replace(fit, delay_s=np.full(2, 0.03)), log)
    np.testing.assert_array_equal(found.time, t)
    middle = slice(300, -300)
    assert np.sqrt(np.mean((found.torque - late)[middle] ** 2)) < 0.1 * late.std()
    np.testing.assert_allclose(found.measured[middle], late[middle], atol=1e-9)
    bare = Log(t, {"position": motion.q}, LogInfo(robot.joint_names, "none", rate_hz=150.0))
    silent = predict(replace(fit, delay_s=np.full(2, 0.03)), bare)
    assert silent.measured is None
    np.testing.assert_allclose(silent.torque, found.torque, atol=1e-9)


def test_columns_and_json(robot, fit):
    """Columns are named after quantity and joint; data fit into JSON."""
    found = predict(fit, data_of(robot, seed=2))
    assert list(found.columns())[:4] == ["time", "torque.joint1", "torque.joint2", "lower.joint1"]
    assert "measured.joint2" in found.columns()
    assert json.loads(json.dumps(found.to_data()))["level"] == 0.95
    assert "95%" in found.summary()
    with pytest.raises(ArmidError, match="level"):
        predict(fit, data_of(robot, seed=2), level=1.5)
    wide, narrow = (predict(fit, data_of(robot, seed=2), level=level) for level in (0.99, 0.5))
    assert np.all(wide.upper >= narrow.upper)
