"""Friction points from logs: strokes with and without commands, single-joint motion, and logs that do not serve."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.estimation.single_joint.friction_fit import fit_friction
from armid.estimation.single_joint.friction_points import friction_points, moving_joints
from armid.estimation.single_joint.strokes import constant_velocity_segments, joint_side
from armid.excitation import FourierSeries
from armid.experiment.excite import excite
from armid.experiment.friction_runs import friction_sweep
from armid.logs.log import Log, LogError, LogInfo
from tests.experiment.fake_arm import FakeArm

POWERBALL = armid.load_robot("powerball")
SPEEDS = [0.01, 0.05, 0.1, 0.2, 0.3, 0.45, 0.55]


@pytest.fixture(scope="module")
def arm():
    return FakeArm(POWERBALL, rate_hz=200.0)


@pytest.fixture(scope="module")
def sweep(arm):
    return friction_sweep(arm, POWERBALL, 4, speeds=SPEEDS, seconds=4.0).log


@pytest.mark.parametrize("commands", [True, False])
def test_means_of_strokes_are_the_truth(arm, sweep, commands):
    """Each speed in both directions, within four standard errors; the log without its commands gives the same."""
    log = sweep if commands else sweep.with_channels({"command": None})
    points = friction_points(log, POWERBALL, 4)
    assert np.sort(points.speed) == pytest.approx(np.sort([*SPEEDS, *(-s for s in SPEEDS)]), rel=0.02)
    assert np.all(np.abs(points.torque - arm.friction(3, points.speed)) < 4.0 * points.error)
    assert points.error == pytest.approx(0.3 / np.sqrt(200.0 * 4.0), rel=0.5)
    assert "strokes" in points.method


def test_several_logs_make_one_curve(arm):
    """Slow and fast speeds may lie in different logs."""
    logs = [friction_sweep(arm, POWERBALL, 4, speeds=part, seconds=3.0).log for part in (SPEEDS[:4], SPEEDS[3:])]
    assert len(friction_points(logs, POWERBALL, "joint4")) == 2 * len(SPEEDS)


def test_waves_of_a_harmonic_drive_are_no_friction(arm, sweep):
    """Two waves per turn of the motor: strokes within one wave keep the truth, and without waves nothing changes."""
    effort = sweep["effort"].copy()
    effort[:, 3] += 0.5 * np.sin(2.0 * 160.0 * sweep["position"][:, 3] + 1.0)
    wavy = friction_points(sweep.with_channels({"effort": effort}), POWERBALL, 4)
    assert np.all(np.abs(wavy.torque - arm.friction(3, wavy.speed)) < 4.0 * wavy.error)
    assert wavy.error == pytest.approx(friction_points(sweep, POWERBALL, 4).error, rel=0.2)


def test_correlated_noise_enlarges_the_errors(sweep):
    """Noise with a correlation time of 20 samples makes means worse, and the stated errors say so."""
    rng = np.random.default_rng(0)
    slow = np.convolve(rng.normal(size=len(sweep) + 19), np.ones(20) / np.sqrt(20), "valid")
    effort = sweep["effort"].copy()
    effort[:, 3] += 2.0 * slow
    rough = friction_points(sweep.with_channels({"effort": effort}), POWERBALL, 4)
    white = effort[:, 3].copy()
    effort[:, 3] = sweep["effort"][:, 3] + 2.0 * rng.normal(size=len(white))
    plain = friction_points(sweep.with_channels({"effort": effort}), POWERBALL, 4)
    assert np.median(rough.error / plain.error) > 2.5


def test_a_slow_sinusoid_of_one_joint_serves_too():
    """No constant speed anywhere, gravity acts: the split of the torque still gives the friction curve."""
    arm = FakeArm(POWERBALL, rate_hz=200.0)
    sine = np.zeros((6, 1))
    sine[1] = 1.2
    log = excite(arm, FourierSeries(0.05, (1,), sine, np.zeros((6, 1)), np.full(6, 0.3)), periods=4)
    points = friction_points(log, POWERBALL, 2)
    assert points.symmetric
    assert "moving alone" in points.method
    assert moving_joints(log, POWERBALL) == [1]
    assert points.torque == pytest.approx(arm.friction(1, points.speed), rel=0.02)
    fit = fit_friction(points, "hyperbolic")
    v = np.linspace(0.05, 0.35, 10)
    assert fit.curve(v) == pytest.approx(arm.friction(1, v), rel=0.02)


def test_segments_end_at_gaps_and_when_others_move():
    """Two strokes with a gap in time are two; a stroke during which another joint moves is none."""
    t = np.concatenate([np.arange(0.0, 2.0, 0.01), np.arange(5.0, 7.0, 0.01)])
    q = np.column_stack([0.5 * t, np.zeros_like(t)])
    found = constant_velocity_segments(t, q, 0)
    assert [(part.start, part.stop) for part in found] == [(0, 180), (200, 380)] or len(found) == 2
    assert [part.speed for part in found] == pytest.approx([0.5, 0.5])
    assert constant_velocity_segments(t, np.column_stack([0.5 * t, 0.1 * t]), 0) == []
    assert constant_velocity_segments(t[:2], q[:2], 0) == []


def test_motor_torque_and_current_are_brought_to_the_joint():
    """Gear ratios and current gains of the description; without gains a current is refused."""
    shape = (300, 6)
    rng = np.random.default_rng(0)
    raw = rng.normal(size=shape)
    names = POWERBALL.joint_names
    time, q = np.arange(300) / 100.0, rng.normal(size=shape)
    motor = Log(time, {"position": q, "effort": raw}, LogInfo(names, "motor torque", side="motor"))
    ratio = np.array([drive.gear_ratio for drive in POWERBALL.drives])
    assert joint_side(motor, POWERBALL)["effort"] == pytest.approx(raw * ratio)
    assert joint_side(motor, POWERBALL)["position"] == pytest.approx(q / ratio)
    current = Log(time, {"position": q, "current": raw}, LogInfo(names, "current"))
    with pytest.raises(LogError, match="no current gains"):
        joint_side(current, POWERBALL)
    known = replace(POWERBALL, current_gain=((0.0, 3.0),) * 6)
    assert joint_side(current, known)["effort"] == pytest.approx(3.0 * raw)


def test_logs_that_do_not_serve(sweep):
    """No effort, a joint at rest, an unknown joint: each error says what is needed."""
    silent = sweep.with_channels({"effort": None}, effort="none")
    with pytest.raises(LogError, match="a log with torque or current is needed"):
        friction_points(silent, POWERBALL, 4)
    with pytest.raises(LogError, match="drive it up and down alone"):
        friction_points(sweep, POWERBALL, 1)
    with pytest.raises(armid.ArmidError, match="numbered 1 to 6"):
        friction_points(sweep, POWERBALL, 7)
    with pytest.raises(armid.ArmidError, match="joint4"):
        friction_points(sweep, POWERBALL, "join4")
    with pytest.raises(LogError, match="2 samples"):
        friction_points(sweep.rows(slice(0, 2)), POWERBALL, 4)


# fv and fc of a least-squares regression of all parameters on another day's log of all joints, 30sec_12harm.
UR10E = {1: (22.8, 16.9), 2: (19.7, 16.4), 3: (9.9, 7.0), 4: (3.5, 2.7), 5: (2.1, 3.4), 6: (3.0, 2.7)}


@pytest.mark.parametrize("joint", UR10E)
@pytest.mark.filterwarnings("ignore::armid.errors.ArmidWarning")
def test_real_ur10e_sweeps(data, joint):
    """The swept joints of a real arm: slow sinusoids; positive friction that rises with speed, of the size
    that another experiment gives."""
    from armid.logs import read_log

    robot = armid.load_robot(data / "ur10e" / "ur10e.urdf")
    log = read_log(data / "ur10e" / f"ur-20_01_22-joint_{joint}.csv", "ur10e")
    points = friction_points(log, robot, joint)
    assert len(points) >= 12
    assert points.symmetric
    assert np.all(points.torque > 0.0)
    fit = fit_friction(points, "coulomb-viscous")
    fv, fc = UR10E[joint]
    assert fit.coefficients["fv"] == pytest.approx(fv, rel=0.25)
    assert fit.coefficients["fc"] == pytest.approx(fc, rel=0.1)
