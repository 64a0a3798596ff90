"""The log doctor on wrong units: time, angles and torques off by what people get wrong, and sound logs beside them."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest

from armid.estimation import identify
from armid.logs.files import read_log
from armid.logs.log import Log, LogError, LogInfo
from armid.monitoring import update
from armid.payload import identify_payload
from armid.robot import load_robot
from armid.signals import process
from armid.signals.doctor import examine
from armid.signals.doctor.robot import check_torque
from armid.validation import validate

EXAMPLE = Path(__file__).parents[2] / "examples" / "arm.yaml"


def swinging(rate: float = 200.0, seconds: float = 20.0, *, velocity: bool = True, size: float = 1.0, **info) -> Log:
    """Two joints that swing by 1 rad at 0.3 and 0.5 Hz."""
    time = np.arange(int(seconds * rate)) / rate
    omega = 2.0 * np.pi * np.array([0.3, 0.5])
    q, qd = size * np.sin(time[:, None] * omega), size * omega * np.cos(time[:, None] * omega)
    effort = -(omega**2) * q + 0.5 * np.sign(qd) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    channels = {"position": q, "effort": effort} | ({"velocity": qd} if velocity else {})
    return Log(time, channels, LogInfo(("a", "b"), "joint torque", **info))


def stretched(log: Log, factor: float) -> Log:
    """The log with a time that is short by the factor."""
    return Log(log.time / factor, log.channels, log.info)


def codes(log: Log, robot=None, severity: str = "warning") -> set[str]:
    return {finding.code for finding in examine(log, robot).at_least(severity)}


@pytest.mark.parametrize("velocity", [True, False])
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e9, 1e-3, 1e-6, 1e-9])
def test_time_in_another_unit_is_named_and_nothing_that_follows_from_it(factor, velocity):
    report = examine(stretched(swinging(velocity=velocity, rate_hz=200.0), factor))
    (finding,) = report.at_least("warning")
    assert (finding.code, finding.severity) == ("time-unit", "error")
    assert finding.values["factor"] == factor
    assert finding.values["likely_hz"] == pytest.approx(200.0)
    assert "200 Hz as the log states" in finding.what
    assert "unit of time in the recipe" in finding.advice


@pytest.mark.parametrize("rate", [100.0, 1000.0])
@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_time_in_another_unit_without_a_witness(rate, factor):
    """Neither a stated rate nor a velocity: rate and speeds alone."""
    report = examine(stretched(swinging(rate, velocity=False), factor))
    assert [(f.code, f.values["factor"]) for f in report.at_least("warning")] == [("time-unit", factor)]


def test_time_and_angles_in_other_units():
    """Degrees are still named where the way is too long, whatever time is."""
    log = swinging(velocity=False)
    degrees = log.with_channels({"position": np.rad2deg(log["position"])})
    assert codes(stretched(degrees, 1e3)) == {"time-unit", "degrees"}


@pytest.mark.parametrize("rate", [20.0, 200.0, 5000.0, 19_000.0])
def test_degrees_are_not_taken_for_another_unit_of_time(rate):
    log = swinging(rate, 10.0, velocity=False, size=0.3)
    assert codes(log.with_channels({"position": np.rad2deg(log["position"])})) == {"degrees"}


@pytest.mark.parametrize(("rate", "seconds"), [(10.0, 60.0), (30_000.0, 4.0)])
def test_slow_and_fast_recorders_are_sound(rate, seconds):
    assert "time-unit" not in codes(swinging(rate, seconds), severity="info")
    assert "time-unit" not in codes(swinging(rate, seconds, velocity=False), severity="info")


def test_a_creeping_motion_with_its_velocity_is_sound():
    """One sample in two seconds of a motion that takes hours: the velocities speak for the time."""
    log = swinging(500.0)
    slow = Log(1e3 * log.time, {**log.channels, "velocity": 1e-3 * log["velocity"]}, log.info)
    assert "time-unit" not in codes(slow)


@pytest.mark.parametrize("factor", [1e3, 1e-3])
def test_a_real_log_with_time_in_another_unit(data: Path, factor):
    log = read_log(data / "xmate7p" / "traj1.csv", recipe="xmate7p")
    assert "time-unit" not in codes(log, severity="info")
    found = codes(stretched(log, factor))
    assert "time-unit" in found
    assert not found & {"degrees", "little-motion", "velocity-scale", "rate-differs"}


def test_radians_taken_for_degrees_are_a_possible_reason_for_little_motion():
    log = swinging(size=np.deg2rad(1.0))
    found = examine(log).of("little-motion")
    assert {finding.joint for finding in found} == {"a", "b"}
    assert all("radians taken for degrees" in finding.advice for finding in found)


def test_one_joint_with_little_motion_is_no_matter_of_units():
    log = swinging()
    small = {name: log[name] * [1.0, np.deg2rad(1.0)] for name in ("position", "velocity")}
    (finding,) = examine(log.with_channels(small)).of("little-motion")
    assert finding.joint == "b"
    assert "degrees" not in finding.advice


@lru_cache(maxsize=1)
def recorded():
    """The example's arm, heavier than its URDF says; and a log of it."""
    pytest.importorskip("mujoco")
    from armid.experiment.virtual import VirtualRobot
    from tests.signals.test_doctor import motion

    robot = load_robot(EXAMPLE)
    arm = VirtualRobot(robot, rate_hz=200.0, seed=1)
    return robot, arm.run(motion(robot, np.random.default_rng(1)), periods=2)


@pytest.mark.parametrize(("factor", "word"), [(1e-3, "smaller"), (1.0 / 60.0, "smaller"), (1e3, "larger")])
def test_torque_in_another_unit_is_named(factor, word):
    robot, log = recorded()
    report = examine(log.with_channels({"effort": factor * log["effort"]}), robot)
    (finding,) = report.at_least("warning")
    assert (finding.code, finding.severity, finding.joint) == ("effort-scale", "error", None)
    assert 0.3 < finding.values["factor"] / factor < 3.0  # as well as masses are known
    assert word in finding.what
    assert "unit" in finding.advice
    assert "gain" in finding.advice


def test_torque_of_a_single_joint_in_another_unit():
    robot, log = recorded()
    (finding,) = examine(log.with_channels({"effort": log["effort"] * [1.0, 1e-3, 1.0, 1.0]}), robot).of("effort-scale")
    assert finding.joint == "lift"


def test_torque_is_not_judged_without_stated_masses_nor_within_their_doubt():
    robot, log = recorded()
    assert codes(log, robot) == set()
    for factor in (0.15, 5.0):
        assert "effort-scale" not in codes(log.with_channels({"effort": factor * log["effort"]}), robot)
    bare = replace(robot, nominal_inertia=None)
    assert "effort-scale" not in codes(log.with_channels({"effort": 1e-3 * log["effort"]}), bare)


@pytest.mark.parametrize(("factor", "code"), [(1e-3, "effort-kind"), (1e3, "effort-out-of-range")])
def test_torque_far_from_all_limits_is_an_error(factor, code):
    """Of an arm without stated masses, with gears and limits of torque; a factor of ten leaves room for doubt."""
    from tests.signals import test_doctor

    case = test_doctor.recorded("rx60", 14)
    severities = []
    for times in (factor, factor ** (1.0 / 3.0)):
        report = examine(case.log.with_channels({"effort": times * case.log["effort"]}), case.robot)
        severities += [{finding.severity for finding in report.of(code)}]
    assert severities[0] == {"error"}
    assert "error" not in severities[1]


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_identify_refuses_what_inspect_does(factor):
    """By the masses of a URDF, whatever its limits; by limits that differ, where no masses are stated."""
    from tests.signals import test_doctor

    robot, log = recorded()
    alike = replace(robot.limits, torque=np.full(robot.n_joints, 1.0))
    case = test_doctor.recorded("rx60", 14)
    for arm, own in ((replace(robot, limits=alike), log), (case.robot, case.log)):
        data = process(own, robot=arm)
        check_torque(data, arm)
        with pytest.raises(LogError, match=r"effort: The effort of .* (limit|masses)"):
            identify(arm, replace(data, torque=factor * data.torque))
    bare = replace(robot, nominal_inertia=None, limits=alike)
    assert "error" not in {finding.severity for finding in examine(log, bare).findings}
    check_torque(process(log, robot=bare), bare)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_another_scale_than_that_of_the_fit_is_refused(factor):
    """Whoever has a fit needs neither masses nor limits; nor do `update` and its kin take a zero that moves."""
    robot, log = recorded()
    bare = replace(robot, nominal_inertia=None)
    fit = identify(bare, process(log, robot=bare), method="wls")
    other = log.with_channels({"effort": factor * log["effort"]})
    for use in (partial(validate, fit, other), partial(identify_payload, fit, other), partial(update, fit, other)):
        with pytest.raises(LogError, match=r"times (smaller|larger) than the fit of this arm calls for"):
            use()
    moved = np.array(log["position"])
    moved[len(log) // 2 :, 1] += 0.2
    with pytest.raises(LogError, match="alone jumps by"):
        update(fit, log.with_channels({"position": moved}))


@pytest.mark.parametrize("name", ["ur-20_02_10-30sec_12harm", "ur-20_01_22-joint_1", "ur-20_01_22-joint_4"])
def test_real_torques_and_the_masses_of_the_urdf(data: Path, name):
    """All joints, a joint about the vertical (rotors make 11 times the stated torque), and a light wrist alone."""
    robot = load_robot(data / "ur10e" / "ur10e.urdf")
    log = read_log(data / "ur10e" / f"{name}.csv", recipe="ur10e")
    assert "effort-scale" not in codes(log, robot, "info")
    assert "effort-scale" in codes(log.with_channels({"effort": 1e-3 * log["effort"]}), robot)


@pytest.mark.parametrize("rows", range(2, 12))
def test_a_handful_of_rows_is_too_short_and_nothing_else(rows):
    """No warning of NumPy (they are errors here), and no rate that is no number."""
    log = swinging(velocity=False, rate_hz=200.0).rows(slice(0, rows))
    report = examine(log)
    assert [finding.code for finding in report.at_least("warning")] == ["too-short"]
    assert "nan" not in report.summary()
