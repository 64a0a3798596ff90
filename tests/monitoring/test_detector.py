"""Limits calibrated on contact-free recordings: the stated rate of false alarms, and what is found."""

import json
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.kinematics import jacobian
from armid.monitoring import calibrate, stretches
from armid.monitoring.detector import _tail, _wider, alarm_rows
from tests.monitoring import stand

ARMS = ("er16", "ir361", "powerball", *(f"random{seed}" for seed in (217, 219, 221, 223, 227, 241, 247, 255)))
OTHERS = 1000, 2000  # first seeds of other recordings: what one set of them shows may be chance


def quiet(name, count, length, first):
    """Contact-free recordings of a length [s]."""
    fit = stand.fitted(name)
    return [stretches(fit, stand.recording(name, length, first + k)) for k in range(count)]


def rate(fit, limits, recordings):
    """Alarms per hour of contact-free recordings."""
    alarms, hours = 0, 0.0
    for recording in recordings:
        for part in recording:
            found = armid.Detector(fit, limits).run(part.dt, part.q, part.qd, part.tau)
            alarms += len(alarm_rows(part.time, found.over))
            hours += part.duration / 3600.0
    return alarms / hours


def pushes(name, count, seed, limits):
    """Contacts of 10 to 200 ms at random links, three seconds apart, with forces around the sensitivity and beyond."""
    robot = stand.truth(name)[0]
    rng = np.random.default_rng([seed, 2])
    _, q, *_ = stand.motion(robot, 3.0 * count + 6.0, seed)
    result = []
    for k in range(count):
        start, link = 5.0 + 3.0 * k, int(rng.integers(1, robot.n_joints + 1))
        at = int(start * stand.RATE_HZ)
        direction = rng.normal(size=3)
        torque = jacobian(robot, q[at][None], link, [0.1, 0.1, 0.1])[0, :3].T @ direction
        duration = rng.uniform(0.01, 0.2)
        size = np.exp(rng.uniform(0.0, 1.5)) / (np.abs(torque) / limits.sensitivity(duration)).max()
        result.append(stand.Push(start, duration, link, size * torque))
    return result


def found_above(fit, name, limits, count, seed):
    """How many contacts above the sensitivity at their time there are, and how many of them are found in time."""
    made = pushes(name, count, seed, limits)
    (part,) = stretches(fit, stand.recording(name, 3.0 * count + 6.0, seed, made))
    got = armid.Detector(fit, limits).run(part.dt, part.q, part.qd, part.tau)
    above = hits = 0
    for push in made:
        rows = (part.time >= push.start) & (part.time < push.start + push.duration)
        reach = -np.expm1(-limits.gain * rows.sum() / stand.RATE_HZ)
        least = (got.limit[rows].max(axis=0) + 2.0 * got.sigma[rows].max(axis=0)) / reach
        if np.any(np.abs(push.torque) > least):
            above += 1
            later = (part.time >= push.start) & (part.time < push.start + push.duration + 0.1)
            hits += bool(got.over[later].any())
    return above, hits


def check(name, length, rates, contacts, within, first=0):
    """The rows of the promise, for one arm: 12 recordings calibrate, 24 others, as long together, are judged."""
    fit = stand.fitted(name)
    training, test = quiet(name, 12, 2.0 * length, first), quiet(name, 24, length, first + 100)
    figures = {}
    for stated in rates:
        limits = calibrate(fit, training, false_alarms=stated)
        observed = rate(fit, limits, test)
        above, hits = found_above(fit, name, limits, contacts, 500)
        figures[stated] = (observed, above, hits)
        assert stated / within <= observed <= stated * within, (name, figures)
        assert above >= 0.3 * contacts
        assert hits >= 0.95 * above, (name, figures)
    print(name, figures)


def test_stated_rate_and_sensitivity():
    """A small arm, 24 minutes at 120 alarms an hour: observed within a factor 2, 95 % of contacts above it found."""
    check("er16", 60.0, (120.0,), 40, 2.0)


@pytest.mark.prove
@pytest.mark.parametrize("name", ARMS)
def test_stated_rates_over_two_hours(name):
    """Eleven arms, two hours, 200 contacts: 30 and 10 alarms an hour within a factor 2, 95 % of contacts found."""
    check(name, 300.0, (30.0, 10.0), 200, 2.0)


@pytest.mark.prove
@pytest.mark.parametrize("first", OTHERS)
@pytest.mark.parametrize("name", ARMS[::3])
def test_stated_rates_on_other_recordings(name, first):
    """The same with calibrations of other hours, which limits must not follow."""
    check(name, 300.0, (30.0, 10.0), 20, 2.0, first)


def test_speeds_beyond_the_calibration_raise_the_limit():
    """By friction per speed, times the excess, then fading; nothing is learnt of friction there."""
    fit = stand.fitted("er16")
    limits = calibrate(fit, quiet("er16", 3, 60.0, 0), false_alarms=30.0)
    slow = replace(limits, usual_speed=0.2 * limits.usual_speed)
    (part,) = stretches(fit, stand.recording("er16", 60.0, 50))
    usual, found = (armid.Detector(fit, one).run(part.dt, part.q, part.qd, part.tau) for one in (limits, slow))
    excess = np.abs(part.qd) - slow.usual_speed
    fast = excess > 0.0
    assert 0.2 < fast.mean() < 0.9
    assert (found.fast[fast] >= excess[fast]).all()
    np.testing.assert_allclose(found.limit - limits.scale * found.sigma - (usual.limit - limits.scale * usual.sigma),
                               slow.steepness * (found.fast - usual.fast), atol=1e-9)  # fmt: skip
    assert (found.sigma[-1] > usual.sigma[-1]).all()  # less is known of today's friction


def test_leaving_one_out_and_marking_what_is_extrapolated(tmp_path):
    """Each recording is judged by the others, half an alarm in the calibration is extrapolated, files round-trip."""
    fit = stand.fitted("er16")
    parts = [stretches(fit, stand.recording("er16", 40.0, k)) for k in range(3)]
    limits = calibrate(fit, parts, false_alarms=10.0)
    assert limits.extrapolated
    assert set(limits.left_out) == {"er16 0", "er16 1", "er16 2"}
    assert not calibrate(fit, parts, false_alarms=1000.0).extrapolated
    assert limits.rate_factor is None
    assert replace(limits, false_alarms=10.0, hours=1.0).rate_factor == pytest.approx(
        np.exp(1.96 / np.sqrt(10.0)), 1e-3
    )
    assert calibrate(fit, parts[:1], false_alarms=1000.0).extrapolated  # one does not show how recordings differ
    for hours in (0.1 - 1e-12, 0.1 + 1e-12, 0.12):  # 3 x 120 s: its length in digits does not decide
        assert replace(limits, false_alarms=30.0, hours=hours).extrapolated == (hours < 0.11)
    limits.save(tmp_path / "limits.json")
    again = armid.load_limits(tmp_path / "limits.json")
    assert np.array_equal(again.variance, limits.variance)
    assert again.left_out == limits.left_out
    broken = json.loads((tmp_path / "limits.json").read_text())
    broken["scale"] = [-1.0, 1.0, 1.0]
    (tmp_path / "limits.json").write_text(json.dumps(broken))
    with pytest.raises(armid.ArmidError, match="scale"):
        armid.load_limits(tmp_path / "limits.json")


def test_few_recordings_widen_the_limits_by_more():
    """The same peaks in two recordings ask for wider limits than in twenty; both for no less than the tail says."""
    peaks = np.random.default_rng(0).exponential(0.2, 2400) + 0.5
    factors = [_wider(np.split(peaks, count), 10.0) for count in (2, 20)]
    assert factors[0] > 1.1 * factors[1] > 1.1 * _tail(peaks, 20.0)


def test_a_slow_joint_has_a_dead_zone_and_a_hard_stop_raises_the_limit():
    """Standing still the limit is wider by the friction's level; an acceleration beyond the usual widens it too."""
    fit = stand.fitted("er16")
    limits = calibrate(fit, [stretches(fit, stand.recording("er16", 60.0, 1))])
    still = armid.Detector(fit, limits)
    rest = still.step(np.zeros(3), np.zeros(3), np.zeros(3), 0.01)
    assert rest.still.all()
    assert np.allclose(rest.limit[0], limits.scale * rest.sigma[0] + limits.level)
    moving = armid.Detector(fit, limits)
    speed = 0.5 * np.ones(3)
    assert np.all(moving.step(np.zeros(3), speed, np.zeros(3), 0.01).gate == 0.0)
    stopped = moving.step(np.zeros(3), 0.2 * speed, np.zeros(3), 0.01)
    assert np.all(stopped.stop > 0.0)
    assert np.all(stopped.limit > limits.scale * stopped.sigma)


def test_a_fit_of_simple_friction_has_a_dead_zone_too():
    """Least squares with Coulomb friction: an arm that holds still within 1.4 times its friction is in no contact."""
    robot = stand.truth("er16")[0]
    data = armid.process(stand.recording("er16", 60.0, 999), robot=robot)
    fit = armid.identify(robot, data, method="wls", friction="linear")
    limits = calibrate(fit, [stretches(fit, stand.recording("er16", 60.0, 1))])
    coulomb = np.array([fit.values[fit.columns.index(f"fc{k}")] for k in (1, 2, 3)])
    assert np.all(limits.level > 1.4 * coulomb)
    rows = np.zeros((200, 3))
    held = stand.torque_of("er16", rows, rows, rows) + 1.4 * coulomb
    found = armid.Detector(fit, limits).run(np.full(200, 0.01), rows, rows, held)
    assert not found.over.any()


def test_friction_of_the_day_is_learnt_and_a_long_contact_is_not():
    """Friction up by 6 %: after ten seconds a third of its torque is left. A push of 30 s keeps its torque to 3 %."""
    fit = stand.fitted("er16")
    limits = calibrate(fit, [stretches(fit, stand.recording("er16", 60.0, 1))])
    (part,) = stretches(fit, stand.recording("er16", 60.0, 8, friction=1.06, noise=0.0))
    found = armid.Detector(fit, limits).run(part.dt, part.q, part.qd, part.tau)
    raw = armid.Observer(fit).run(part.dt, part.q, part.qd, part.tau).torque
    joint = int(np.argmax(fit.standstill[1] / limits.sensitivity(0.1)))  # whose friction shows best
    usual = (part.time > 10.0) & (found.gate[:, joint] < 0.05)
    assert np.std(found.torque[usual, joint]) < 0.4 * np.std(raw[usual, joint])
    push = stand.Push(20.0, 30.0, 3, 2.0 * limits.sensitivity(0.1))
    (part,) = stretches(fit, stand.recording("er16", 60.0, 8, [push]))
    found = armid.Detector(fit, limits).run(part.dt, part.q, part.qd, part.tau)
    during = (part.time > 21.0) & (part.time < 49.0)
    assert np.abs(found.torque[during].mean(axis=0) / push.torque - 1.0).max() < 0.03


def test_friction_of_the_day_keeps_the_shape_of_its_curve():
    """Friction without a step at rest, 8 % up: after 20 s a tenth of that is left at slow speeds, learnt at all."""
    fit = stand.fitted("random223")
    limits = calibrate(fit, [stretches(fit, stand.recording("random223", 60.0, 1))])
    (part,) = stretches(fit, stand.recording("random223", 60.0, 8, friction=1.08, noise=0.0))
    found = armid.Detector(fit, limits).run(part.dt, part.q, part.qd, part.tau)
    slow = (np.abs(part.qd[:, 4]) < 2.0 * limits.slow_speed[4]) & (found.gate[:, 4] < 0.05) & (part.time > 20.0)
    assert np.abs(found.torque[slow, 4]).mean() < 0.1 * 0.08 * fit.standstill[1][4]


def test_too_little_to_calibrate_on_is_refused():
    """Ten seconds are not enough; a rate of zero is none; other joints are another arm."""
    fit = stand.fitted("er16")
    short = [stretches(fit, stand.recording("er16", 10.0, 1))]
    with pytest.raises(armid.ArmidError, match="at least 20 s"):
        calibrate(fit, short)
    with pytest.raises(armid.ArmidError, match="above zero"):
        calibrate(fit, short, false_alarms=0.0)
