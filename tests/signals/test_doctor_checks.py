"""Single checks of the log doctor on signals made by hand: broken logs, and numbers that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from armid.logs.log import Log, LogInfo
from armid.signals.doctor import examine
from armid.signals.doctor.channels import noise_level, quantum, spikes
from armid.signals.doctor.mistakes import Mistake, mistaken
from armid.signals.doctor.robot import _late

RATE = 200.0


def swinging(seconds: float = 20.0, **changes) -> Log:
    """Two joints with different frequencies, effort with friction and noise, all consistent."""
    rng = np.random.default_rng(0)
    time = np.arange(int(seconds * RATE)) / RATE
    omega = 2.0 * np.pi * np.array([0.3, 0.5])
    q, qd = np.sin(time[:, None] * omega), omega * np.cos(time[:, None] * omega)
    effort = -(omega**2) * q + 0.5 * np.sign(qd) + 0.05 * rng.normal(size=q.shape)
    channels = {"position": q, "velocity": qd, "effort": effort, **changes}
    return Log(time, channels, LogInfo(("a", "b"), "joint torque"))


def codes(log: Log, severity: str = "warning") -> set[str]:
    return {finding.code for finding in examine(log).at_least(severity)}


def test_consistent_signals_raise_nothing():
    assert codes(swinging()) == set()


def test_noise_level_of_white_noise_on_a_smooth_signal():
    rng = np.random.default_rng(1)
    x = 5.0 * np.sin(np.linspace(0.0, 20.0, 20_000)) + 0.1 * rng.normal(size=20_000)
    assert noise_level(x) == pytest.approx(0.1, rel=0.05)


def test_quantum_is_found_and_continuous_values_have_none():
    rng = np.random.default_rng(2)
    x = np.cumsum(rng.normal(size=20_000))
    assert quantum(0.25 * np.round(x / 0.25)) == pytest.approx(0.25)
    assert quantum(np.deg2rad(0.1) * np.round(x / np.deg2rad(0.1))) == pytest.approx(np.deg2rad(0.1))
    assert quantum(x) == 0.0


def test_steps_sharp_peaks_and_vibration_are_no_spikes():
    time = np.arange(4000) / RATE
    square = np.sign(np.sin(2.0 * np.pi * 0.7 * time))
    triangle = np.abs(np.mod(time, 1.0) - 0.5)
    shock = np.where(time > 5.0, np.exp(-20.0 * (time - 5.0)) * np.sin(300.0 * (time - 5.0)), 0.0)
    noise = 1e-3 * np.random.default_rng(3).normal(size=len(time))
    for x in (square, triangle, shock, square - triangle):
        assert len(spikes(x + noise)) == 0
        assert len(spikes(x + 1e-6 * noise)) == 0


def test_a_peak_of_every_period_is_no_spike():
    """One sample at one phase of each period of 10 s is part of the motion; one in a single period is not."""
    log = swinging(seconds=60.0)
    effort = np.array(log["effort"])
    effort[300::2000, 0] += 3.0
    assert "spikes" not in codes(log.with_channels({"effort": effort}))
    effort[5000, 1] += 3.0
    report = examine(log.with_channels({"effort": effort}))
    assert [finding.joint for finding in report.of("spikes")] == ["b"]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_gaussian_noise_has_no_spikes_at_any_scale(scale):
    x = scale * np.random.default_rng(4).normal(size=300_000)
    assert len(spikes(x)) == 0


def test_no_rows_one_row_and_time_that_stands_still():
    log = swinging()
    for rows in (slice(0, 0), slice(0, 1)):
        assert codes(log.rows(rows)) >= {"no-time"}
    still = Log(np.zeros(len(log)), log.channels, log.info)
    assert "no-time" in codes(still, "error")
    lost = Log(np.full(len(log), np.nan), log.channels, log.info)
    assert {"no-time", "time-not-a-number"} <= codes(lost, "error")


def test_a_few_rows_are_too_few():
    assert "too-short" in codes(swinging().rows(slice(0, 50)), "error")


def test_channels_without_values():
    missing = np.column_stack([np.full(4000, np.nan), swinging()["position"][:, 1]])
    assert "position-missing" in codes(swinging(position=missing), "error")
    assert codes(swinging(position=np.full((4000, 2), np.nan))) == {"position-missing"}
    assert "effort-missing" in codes(swinging(effort=np.full((4000, 2), np.nan)))
    log = swinging()
    bare = Log(log.time, {"position": log["position"]}, LogInfo(("a", "b"), "none"))
    assert codes(bare) == {"effort-missing"}
    without = Log(log.time, {"effort": log["effort"]}, LogInfo(("a", "b"), "joint torque"))
    assert "position-missing" in codes(without, "error")


def test_a_joint_without_effort_and_current_is_named_once():
    """The current, of which the effort is made, is no second finding, also where a joint has neither."""
    effort = swinging()["effort"] * np.array([1.0, np.nan])
    log = swinging(effort=effort, current=effort / 11.0)
    found = [finding for finding in examine(log).at_least("warning") if finding.code == "effort-missing"]
    assert [finding.joint for finding in found] == ["b"]


def test_infinite_values_are_told_like_missing_ones():
    effort = swinging()["effort"].copy()
    effort[100:110, 0] = np.inf
    (finding,) = examine(swinging(effort=effort)).of("not-a-number")
    assert (finding.joint, finding.values["count"]) == ("a", 10)


def test_joint_at_rest_may_have_zero_velocity_and_constant_position():
    log = swinging()
    rest = {name: log[name] * [1.0, 0.0] for name in ("position", "velocity")}
    rest["effort"] = log["effort"] * [1.0, 0.0] + 0.05 * np.random.default_rng(5).normal(size=(4000, 2))
    assert codes(swinging(**rest)) == {"joint-at-rest"}


def test_dead_position_is_told_from_rest_by_the_velocity():
    dead = swinging()["position"] * [1.0, 0.0]
    findings = examine(swinging(position=dead)).at_least("warning")
    assert ("dead-channel", "b") in {(f.code, f.joint) for f in findings}
    assert "joint-at-rest" not in {f.code for f in findings}


def test_quantised_encoder_with_fine_steps_is_fine():
    step = 1e-4
    assert codes(swinging(position=step * np.round(swinging()["position"] / step))) == set()


def test_stated_rate_against_timestamps():
    log = swinging()
    info = LogInfo(("a", "b"), "joint torque", rate_hz=250.0)
    (finding,) = examine(Log(log.time, log.channels, info)).of("rate-differs")
    assert finding.values["actual_hz"] == pytest.approx(RATE)
    assert finding.severity == "error"
    near = LogInfo(("a", "b"), "joint torque", rate_hz=1.02 * RATE)
    assert examine(Log(log.time, log.channels, near)).of("rate-differs")[0].severity == "warning"


def test_lag_of_velocity_is_measured():
    log = swinging()
    late = np.column_stack([np.interp(log.time - 0.02, log.time, x) for x in log["velocity"].T])
    found = examine(swinging(velocity=late)).of("velocity-lag")
    assert {f.joint for f in found} == {"a", "b"}
    assert all(f.values["lag_s"] == pytest.approx(0.02, abs=5e-4) for f in found)


def test_half_a_sample_of_lag_is_no_fault():
    log = swinging()
    backward = np.vstack([log["velocity"][:1], np.diff(log["position"], axis=0) * RATE])
    assert codes(swinging(velocity=backward)) == set()


@pytest.mark.parametrize(
    ("kind", "of", "words"),
    [
        ("flip", "both", "all channels of a have the other sign"),
        ("flip", "motion", "position and velocity of a have the other sign"),
        ("flip", "effort", "the effort of a has the other sign"),
        ("swap", "both", "all channels of a are exchanged with those of b"),
        ("swap", "effort", "the effort of a is exchanged with that of b"),
    ],
)
def test_wiring_is_told_in_plain_words(kind, of, words):
    """Singular, plural, and no powers of ten: exp(2 * 5.48 / 2) is 240."""
    mistake = Mistake(kind, (0,) if kind == "flip" else (0, 1), of)
    arm = SimpleNamespace(robot=SimpleNamespace(joint_names=("a", "b")))
    first = next(mistaken(mistake, 2.0 * 5.48, arm))
    assert "fits 240 times better" in first.what
    assert first.what.endswith(f"if {words}.")


def test_standstill_is_told_with_its_limits():
    log = swinging()
    still = np.vstack([np.repeat(log["position"][:1], 600, axis=0), log["position"]])
    speed = np.vstack([np.zeros((600, 2)), log["velocity"]])
    effort = np.vstack([log["effort"][:600] * 0.1, log["effort"]])
    time = np.arange(len(still)) / RATE
    longer = Log(time, {"position": still, "velocity": speed, "effort": effort}, log.info)
    (finding,) = examine(longer).of("standstill")
    assert finding.values["before_s"] == pytest.approx(3.0, abs=0.3)


def test_joints_that_show_nothing_of_a_delay_have_none():
    """Effort that would be as large as the residual at no delay: nothing is said, by joint or by all together."""
    fitted = SimpleNamespace(residual=np.full(2, 0.1), delay_s=np.array([0.02, 0.02]))
    moving = np.ones(2, dtype=bool)
    assert list(_late(("a", "b"), fitted, np.full(2, np.inf), moving, 0.01)) == []
    assert [one.code for one in _late(("a", "b"), fitted, np.full(2, 1e-3), moving, 0.01)] == ["effort-delay"]
