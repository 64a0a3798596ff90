"""Predicted torque and its intervals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.excitation.fourier import FourierSeries
from armid.logs.log import Log, LogInfo
from armid.signals import LowPass, PeriodicAverage, process
from armid.torque.friction.term import FrictionTerm
from armid.torque.model import TorqueModel, model_of
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
    """What acts at each instant, by the prediction of the fit, which knows of joints at rest."""
    series = FourierSeries(0.1, (1, 2), np.full((2, 2), 0.2), np.full((2, 2), 0.1), np.zeros(2))
    found = predict(replace(fit, delay_s=np.full(2, 0.05)), series, rate_hz=50.0)
    time, motion = series.sample(50.0)
    np.testing.assert_array_equal(found.time, time)
    np.testing.assert_allclose(found.torque, fit.predict_at_rest(motion).torque, rtol=1e-12)
    moving = (np.abs(motion.qd) > 0.01).all(axis=1)
    np.testing.assert_allclose(found.torque[moving], fit.predict(motion).torque[moving], rtol=1e-12)
    assert found.measured is None
    with pytest.raises(ArmidError, match="joints"):
        predict(fit, FourierSeries(0.1, (1,), np.ones((3, 1)), np.ones((3, 1)), np.zeros(3)))


def test_a_log_is_predicted_at_its_own_instants_and_delayed(robot, fit):
    """Samples away from the ends have a torque, near the measured one; without effort too."""
    t, motion = swing(seed=4)
    torque = data_of(robot, seed=4).torque
    late = np.column_stack([np.interp(t - 0.03, t, c) for c in torque.T])
    log = Log(t, {"position": motion.q, "effort": late}, LogInfo(robot.joint_names, "joint torque", rate_hz=150.0))
    found = predict(replace(fit, delay_s=np.full(2, 0.03)), log)
    kept = np.isin(t, found.time)
    assert kept.sum() == len(found.time) > 2700
    assert kept[300:-300].all()
    assert np.sqrt(np.mean((found.torque - late[kept]) ** 2)) < 0.1 * late.std()
    np.testing.assert_allclose(found.measured, late[kept], atol=1e-9)
    bare = Log(t, {"position": motion.q}, LogInfo(robot.joint_names, "none", rate_hz=150.0))
    silent = predict(replace(fit, delay_s=np.full(2, 0.03)), bare)
    assert silent.measured is None
    np.testing.assert_allclose(silent.torque, found.torque, atol=1e-9)


def bare_log(robot, t, motion):
    """Positions alone."""
    return Log(t, {"position": motion.q}, LogInfo(robot.joint_names, "none", rate_hz=150.0))


@pytest.mark.parametrize("steps", [(), ({"step": "Smoothed"},)])
def test_no_row_feels_the_ends(robot, fit, steps):
    """Every torque is that of the true motion to 0.5 % of its spread, where no joint turns round; the note counts."""
    t, motion = swing(seed=4)
    found = predict(replace(fit, pipeline=steps), bare_log(robot, t, motion))
    kept = np.isin(t, found.time)
    error = np.abs(found.torque - fit.predict(motion).torque[kept])
    away = (np.abs(motion.qd[kept]) > 0.02).all(axis=1)
    assert (error[away].max(axis=0) < 5e-3 * found.torque.std(axis=0)).all()
    lost = [int(np.argmax(kept)), int(np.argmax(kept[::-1]))]
    assert min(lost) > 0
    assert max(lost) < 100
    assert f"Left out {sum(lost)} samples ({lost[0]} at the start, {lost[1]} at the end)" in str(found.notes[0])
    assert str(found.notes[0]) in found.summary()
    assert json.loads(json.dumps(found.to_data()))["notes"][0]["text"] == str(found.notes[0])


def test_a_delay_moves_what_the_ends_spoil(robot, fit):
    """The torque reported at an instant belongs to an earlier motion: more is lost at the start, less at the end."""
    t, motion = swing(seed=4)
    log = bare_log(robot, t, motion)
    now, late = (predict(replace(fit, delay_s=np.full(2, delay)), log).time for delay in (0.0, 0.1))
    assert late[0] == pytest.approx(now[0] + 0.1, abs=0.007)
    assert late[-1] == pytest.approx(min(now[-1] + 0.1, t[-1]), abs=0.007)


def test_rows_around_a_hole_are_left_out(robot, fit):
    """Rows lost and positions missing for 0.4 s: no torque is predicted where they would have to be guessed."""
    t, motion = swing(seed=4)
    position = np.array(motion.q)
    position[2000:2060, 1] = np.nan
    rows = np.r_[0:1000, 1060:3000]
    log = bare_log(robot, t, motion._replace(q=position)).rows(rows)
    found = predict(fit, log)
    kept = np.isin(t, found.time)
    assert "around 2 holes" in str(found.notes[0])
    assert not kept[970:1090].any()
    assert not kept[1970:2090].any()
    error = np.abs(found.torque - fit.predict(motion).torque[kept])
    away = (np.abs(motion.qd[kept]) > 0.02).all(axis=1)
    assert (error[away].max(axis=0) < 5e-3 * found.torque.std(axis=0)).all()


def test_a_log_that_is_all_ends_is_refused(robot, fit):
    t, motion = swing(seed=4)
    with pytest.raises(ArmidError, match="too short to differentiate"):
        predict(replace(fit, pipeline=({"step": "Smoothed"},)), bare_log(robot, t, motion).rows(slice(0, 15)))


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


@pytest.mark.parametrize("averaged", [True, False])
def test_one_sample_scatters_as_it_was_recorded(robot, averaged):
    """Whether a fit is from 16 averaged periods or from filtered torque, one sample scatters by the noise there was."""
    t, motion = swing(seed=1)
    truth = model_of(robot).inverse_dynamics(*motion, VALUES)
    noise, laps = np.array([0.5, 0.2]), 16
    rng = np.random.default_rng(7)
    torque = np.tile(truth, (laps, 1)) + noise * rng.normal(size=(laps * len(t), 2))
    time = np.arange(laps * len(t)) * (t[1] - t[0])
    info = LogInfo(robot.joint_names, "joint torque", rate_hz=150.0, period_s=20.0)
    log = Log(time, {"position": np.tile(motion.q, (laps, 1)), "effort": torque}, info)
    strategy = PeriodicAverage() if averaged else LowPass(cutoff_hz=8.0)
    fit = WeightedLeastSquares().fit(robot, process(log, strategy, robot=robot))
    found = predict(fit, data_of(robot, seed=2))
    assert np.all(fit.residual_rms < 0.6 * noise)
    np.testing.assert_allclose(found.sample_rms, noise, rtol=0.1)
    half = 0.5 * (found.sample_upper - found.sample_lower)
    np.testing.assert_allclose(half, np.hypot(1.959963985 * found.sample_rms, found.upper - found.torque))
    assert f"one recorded sample ± {np.median(half[:, 0]):.2g}" in found.summary()
    data = found.to_data()
    assert data["sample_rms"] == pytest.approx(found.sample_rms.tolist())
    assert data["residual_rms"] == pytest.approx(fit.residual_rms.tolist())


def test_friction_differs_between_recordings_and_at_rest(robot, fit):
    """A sample's interval knows of another recording's friction; at standstill the model's interval is a band."""
    level = np.array([3.0, 2.0])
    rest = tuple(FrictionTerm("rest", joint, (0.5,)) for joint in range(2))
    names = TorqueModel(robot, terms=rest).names
    wide = np.zeros((len(names), len(names)))
    wide[: len(fit.values), : len(fit.values)] = fit.covariance
    values = np.append(fit.values, [0.0, 0.0])
    for joint in range(2):
        values[names.index(f"fc{joint + 1}")], values[names.index(f"fv{joint + 1}")] = level[joint], 0.0
    spread = np.array([[0.3, 0.0, 0.4], [0.0, 0.1, 0.0]])
    classes = (*fit.identifiability.classes, "curve", "curve")
    other = replace(
        fit,
        columns=names,
        values=values,
        covariance=wide,
        terms=rest,
        recording=spread,
        identifiability=replace(fit.identifiability, classes=classes),
    )
    data = data_of(robot, seed=2)
    found = predict(other, data)
    factor = 1.9599640
    expected = [np.full(len(data.qd), 0.5), 0.1 * np.abs(data.qd[:, 1])]
    for joint in range(2):
        model, sample = ((found.upper, found.torque), (found.sample_upper, found.torque))
        parts = [(high - low)[:, joint] / factor for high, low in (model, sample)]
        left = parts[1] ** 2 - parts[0] ** 2 - found.sample_rms[joint] ** 2
        moving = np.abs(data.qd[:, joint]) > 0.06
        np.testing.assert_allclose(left[moving], expected[joint][moving] ** 2, atol=1e-9)
    still = replace(data, qd=np.zeros_like(data.qd) + 0.01, qdd=np.zeros_like(data.qdd))
    here, there = predict(other, still), predict(other, replace(still, qd=-still.qd))
    np.testing.assert_allclose(here.torque, there.torque, atol=1e-6)
    assert np.all(here.upper - here.torque >= level)
