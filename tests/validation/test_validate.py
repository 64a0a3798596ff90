"""Validation finds what is wrong, and says what was planted."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import firwin

from armid.errors import ArmidError
from armid.estimation.fit import load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.files import plain
from armid.logs.log import Log, LogInfo
from armid.signals import LowPass, process
from armid.signals.filters import filtered
from armid.validation import (
    Thresholds,
    TrainingDataError,
    against_reference,
    compare,
    load_validation,
    own_pipeline,
    validate,
)
from armid.validation.validating import telling
from tests.validation.arms import VALUES, data_of, planar, swing


@pytest.fixture
def robot(tmp_path):
    return planar(tmp_path)


@pytest.fixture
def fit(robot):
    return WeightedLeastSquares().fit(robot, data_of(robot, seed=1))


def test_a_right_model_is_good_down_to_the_noise(robot, fit):
    """On other motion the error is the noise: ratio 1, white, no advice."""
    check = validate(fit, data_of(robot, seed=2))
    assert (check.good, check.verdict, check.advice, check.same_as_training) == (True, "good", (), False)
    for joint, look in zip(check.joints, check.residuals, strict=True):
        assert joint.noise_ratio == pytest.approx(1.0, abs=0.05)
        assert joint.correlation > 0.9999
        assert look.memory_s <= 0.01
        assert look.velocity_share < 0.02
    assert check.relative_error < 0.01
    assert "good" in check.summary()


def test_training_data_are_refused_unless_allowed(robot, fit):
    """The same data set is recognised; allowed, the result says so."""
    with pytest.raises(TrainingDataError, match=r"made from.*`armid validate --allow-training`"):
        validate(fit, data_of(robot, seed=1))
    check = validate(fit, [data_of(robot, seed=2), data_of(robot, seed=1)], allow_training=True)
    assert check.same_as_training
    assert "TRAINING" in check.summary()


@pytest.mark.parametrize(
    ("extra", "share", "words"),
    [
        (lambda t, m: np.column_stack([3.0 * np.exp(-((m.qd[:, 0] / 0.3) ** 2)), 0 * t]), "velocity_share", "velocity"),
        (lambda t, m: np.column_stack([0 * t + 4.0, 0 * t]), "bias_share", "constant"),
        (lambda t, m: np.column_stack([0.4 * np.sign(m.qd[:, 0]) * (t - 10), 0 * t]), "drift_share", None),
    ],
)
def test_planted_causes_are_named(robot, fit, extra, share, words):
    """Friction of another shape, an offset and friction that drifts each show in their own share."""
    limits = Thresholds(nrms_moving=0.02)
    check = validate(fit, data_of(robot, seed=2, extra=extra), thresholds=limits)
    assert not check.good
    assert getattr(check.residuals[0], share) > 0.5
    assert getattr(check.residuals[1], share) < 0.1
    if words:
        assert any(words in line and "joint1" in line for line in map(str, check.advice))
        assert not any("joint2" in line for line in map(str, check.advice))


def test_a_drift_is_called_warming_only_in_a_long_record(robot, fit):
    """Twenty seconds cannot show grease that warms up, twenty minutes can."""
    changed = data_of(robot, seed=2, extra=lambda t, m: 0.4 * np.sign(m.qd) * (t - 10)[:, None])
    limits = Thresholds(nrms_moving=0.02)
    short = validate(fit, changed, thresholds=limits)
    assert not any("warmup" in line for line in map(str, short.advice))
    slow = replace(changed, time=60.0 * changed.time)
    assert any("warmup" in line for line in map(str, validate(fit, slow, thresholds=limits).advice))
    assert short.residuals[0].drift == pytest.approx(8.0, rel=0.2)  # 0.4 N m/s over 20 s


def test_load_friction_is_told_from_velocity(robot, fit):
    """Friction that grows with the load shows as such."""
    from armid.torque.model import model_of

    def extra(t, m):
        load = model_of(robot).inverse_dynamics(*m, {k: v for k, v in VALUES.items() if not k.startswith("f")})
        return 0.15 * np.sign(m.qd) * np.abs(load)

    look = validate(fit, data_of(robot, seed=2, extra=extra)).residuals[0]
    assert look.load_share > 2.0 * max(look.drift_share, look.delay_share)


def test_another_payload_is_recognised(robot, fit):
    """Half a kilogram more at the end of the arm is found as such, in both joints, and named."""
    from armid.torque.model import model_of

    carried = {"m2": 0.5, "mx2": 0.5 * 0.3, "Izz2": 0.5 * 0.3**2}

    def extra(t, m):
        return model_of(robot).inverse_dynamics(*m, carried)

    check = validate(fit, data_of(robot, seed=2, extra=extra), thresholds=Thresholds(nrms_moving=0.02))
    assert not check.good
    for look in check.residuals:
        assert look.payload_share > 0.8
        assert look.payload_mass == pytest.approx(0.5, rel=0.1)
    assert any("another payload of +0.5" in line and "armid payload" in line for line in map(str, check.advice))
    assert max(look.payload_share for look in validate(fit, data_of(robot, seed=2)).residuals) < 0.05


def test_noise_is_called_noise(robot, fit):
    """Where the error is white and as large as the noise, kinematics are not blamed."""
    noisy = data_of(robot, seed=2, noise=1.0)
    check = validate(fit, noisy, thresholds=Thresholds(nrms_moving=0.001, noise_ratio=0.5))
    assert not check.good
    assert all("noise of the torque itself" in line for line in map(str, check.advice))


def test_friction_that_goes_with_the_temperature(robot):
    """Friction that falls with the temperature of a log is told, also where the log's clock starts late."""
    logs = []
    for seed, falling in ((1, 0.0), (2, 0.25)):
        t, motion = swing(seed=seed)
        warm = 30.0 + 10.0 * np.sin(2.0 * np.pi * t / 20.0)[:, None] * np.ones(2)
        torque = data_of(robot, seed=seed).torque - falling * (warm - 30.0) * np.sign(motion.qd)
        info = LogInfo(robot.joint_names, "joint torque", rate_hz=150.0, source=f"log{seed}")
        logs.append(Log(1000.0 + t, {"position": motion.q, "effort": torque, "temperature": warm}, info))
    own = WeightedLeastSquares().fit(robot, process(logs[0], LowPass(cutoff_hz=4.0), robot=robot))
    check = validate(own, logs[1], thresholds=Thresholds(nrms_moving=0.02))
    for look in check.residuals:
        assert look.temperature < -0.8
        assert look.temperature_share > 0.5
    assert any("goes with the temperature" in line for line in map(str, check.advice))


def test_a_delay_is_measured(robot, fit):
    """Torque reported 20 ms late is found as 20 ms; a fit that knows of it has no error left."""
    data = data_of(robot, seed=2, noise=0.02)
    late = np.column_stack([np.interp(data.time - 0.02, data.time, c, period=20.0) for c in data.torque.T])
    data = replace(data, torque=late, periods=1)
    look = validate(fit, data).residuals
    assert look[0].delay_s == pytest.approx(0.02, rel=0.3)
    knowing = validate(replace(fit, delay_s=np.full(2, 0.02)), data)
    assert abs(knowing.residuals[0].delay_s) < 0.003
    assert knowing.joints[0].rms < 0.5 * validate(fit, data).joints[0].rms


def test_friction_that_changes_sides_late(robot, fit):
    """A fit that knows how late friction changes sides predicts it there, and everywhere else as before."""
    data = data_of(robot, seed=2, noise=0.0)
    late = replace(fit, friction_lag_s=np.array([0.03, 0.0]))
    turned = np.interp(data.time - 0.03, data.time, data.qd[:, 0]) * data.qd[:, 0] < 0.0
    assert 10 < turned.sum() < 0.1 * len(turned)
    change = compare(late, data).predicted - compare(fit, data).predicted
    coulomb = fit.values[fit.columns.index("fc1")]
    assert np.all(np.abs(change[turned, 0] + 2.0 * coulomb * np.sign(data.qd[turned, 0])) < 0.5 * coulomb)
    assert not change[~turned].any()


def test_errors_at_reversals_are_found(robot, fit):
    """An error that exists only at changes of direction is seen there, and named."""
    check = validate(
        fit,
        data_of(robot, seed=2, extra=lambda t, m: 8.0 * np.exp(-((m.qd / 0.04) ** 2)) * np.sin(40 * t)[:, None]),
        thresholds=Thresholds(nrms_moving=0.005, noise_ratio=1.1),
    )
    look = check.residuals[0]
    assert look.reversal_rms > 3.0 * look.elsewhere_rms
    assert any("changes of direction" in line for line in map(str, check.advice))


def test_prediction_is_filtered_as_the_torque_was(robot, fit):
    """With a kernel on torque alone the comparison would fail at each step of friction; it does not."""
    plain = data_of(robot, seed=2, noise=1e-6)
    kernel = firwin(101, 2.0, fs=150.0)
    kernel = (kernel + kernel[::-1]) / (2 * kernel.sum())
    rows = np.arange(60, 2940, 10)
    data = replace(
        plain, torque=filtered(plain.torque, kernel, rows), rows=rows, kernel=kernel, measured=plain.torque,
        torque_noise=None,
    )  # fmt: skip
    check = validate(fit, data)
    assert check.relative_error < 0.01
    assert check.relative_error_raw < 0.02
    found = compare(fit, data)
    np.testing.assert_allclose(found.predicted, filtered(fit.predict(plain.motion).torque, kernel, rows), rtol=1e-12)


def test_logs_are_processed_with_the_fits_own_pipeline(robot):
    """A log and the data set made from it by the fit's pipeline give the same figures; a temperature is used."""
    logs = []
    for seed in (1, 2):
        t, motion = swing(seed=seed)
        torque = data_of(robot, seed=seed).torque
        warm = 30.0 + np.outer(t, [1.0, 1.0])
        info = LogInfo(robot.joint_names, "joint torque", rate_hz=150.0, source=f"log{seed}")
        logs.append(Log(t, {"position": motion.q, "effort": torque, "temperature": warm}, info))
    own = WeightedLeastSquares().fit(robot, process(logs[0], LowPass(cutoff_hz=4.0), robot=robot))
    check = validate(own, logs[1])
    again = validate(own, process(logs[1], own_pipeline(own), robot=robot))
    assert check.relative_error == again.relative_error
    assert np.isfinite(check.residuals[0].temperature)
    assert np.isnan(again.residuals[0].temperature)
    assert check.sources == ("log2",)
    with pytest.raises(TrainingDataError):
        validate(own, logs[0], low_pass_hz=3.0)
    assert validate(own, logs[1], low_pass_hz=3.0).pipeline[-1]["cutoff_hz"] == 3.0


def test_saved_and_loaded(robot, fit, tmp_path):
    """Everything comes back; what is no validation is refused."""
    check = validate(fit, data_of(robot, seed=2), reference={"fc1": 3.0})
    check.save(tmp_path / "check.json")
    assert load_validation(tmp_path / "check.json").to_data() == check.to_data()
    fit.save(tmp_path / "fit.json")
    again = validate(load_fit(tmp_path / "fit.json"), data_of(robot, seed=2))
    assert plain(again.joints) == plain(check.joints)
    for text, words in (("{", "JSON"), ("{}", "format"), ('{"format": "armid validation 1"}', "robot: is missing")):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ArmidError, match=words):
            load_validation(tmp_path / "bad.json")


def test_references(robot, fit):
    """Groups are made from the values of their parameters; the truth lies within two sigma almost always."""
    every = {name: VALUES.get(name, 0.0) for name in fit.torque_model.model.names}
    rows = against_reference(fit, every)
    assert len(rows) == len(fit.names)
    assert sum(row.within_2_sigma for row in rows) >= len(rows) - 2
    (row,) = against_reference(fit, {"fc1": 3.3})
    assert row.accuracy == pytest.approx(100 * (1 - abs(row.value - 3.3) / 3.3))
    assert not row.within_2_sigma
    with pytest.raises(ArmidError, match="fc9"):
        against_reference(fit, {"fc9": 1.0})


def test_nominal_inertia_is_put_beside(robot, fit):
    """With the right inertia in the file the nominal model is as good as ours; with a wrong one much worse."""
    inertia = np.zeros((2, 10))
    for link in (1, 2):
        names = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        inertia[link - 1] = [VALUES.get(f"{name}{link}", 0.0) for name in names]
    right = replace(fit, robot=replace(fit.robot, nominal_inertia=inertia))
    wrong = replace(fit, robot=replace(fit.robot, nominal_inertia=1.5 * inertia))
    data = data_of(robot, seed=2)
    assert validate(right, data).joints[1].nominal_nrms_moving == pytest.approx(
        validate(fit, data).joints[1].nrms_moving, rel=0.1
    )
    assert validate(wrong, data).joints[1].nominal_nrms_moving > 0.1


def test_data_of_another_robot_are_refused(robot, fit):
    """Other joint names, other gravity, no data."""
    data = data_of(robot, seed=2)
    with pytest.raises(ArmidError, match="elbow"):
        validate(fit, replace(data, joints=("shoulder", "elbow")))
    with pytest.raises(ArmidError, match="gravity"):
        validate(fit, replace(data, gravity=(0.0, 0.0, -9.81)))
    with pytest.raises(ArmidError, match="no data set"):
        validate(fit, [])


@pytest.mark.parametrize(
    ("shares", "named"),
    [
        ((0.92, 0.24), "a"),  # b is in what a explains already
        ((0.60, 0.35), "ab"),  # both fit beside each other
        ((0.90, 0.80), "ab"),  # rivals: who knows which
        ((0.50, 0.10), "a"),
        ((0.10, 0.05), ""),
    ],
)
def test_second_cause_must_add_something(shares, named):
    """A cause that the first one covers is not named beside it."""
    causes = [(share, name, {}) for share, name in zip(shares, "ab", strict=True)]
    assert [name for _, name, _ in telling(causes)] == list(named)
