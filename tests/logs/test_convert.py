"""Motor side to joint side, current to torque, signs and offsets."""

import numpy as np
import pytest

import armid
from armid.logs import Log, LogError, LogInfo
from armid.logs.convert import reoriented, to_joint_side, torque_from_current

RATIO = np.array([[50.0, 0.0, 0.0], [0.0, -80.0, 0.0], [0.0, 20.0, 40.0]])


def joint_and_motor(rng, **info):
    """Motion and torque of three joints, and what their motors see of it."""
    q, v, a, tau, target = rng.standard_normal((5, 20, 3))
    motor_torque = np.linalg.solve(RATIO.T, tau.T).T
    channels = {"position": q @ RATIO.T, "velocity": v @ RATIO.T, "acceleration": a @ RATIO.T, "effort": motor_torque}
    channels |= {"command": target @ RATIO.T, "temperature": np.full((20, 3), 30.0), "current": tau}
    info = {"effort": "motor torque", "side": "motor"} | info
    log = Log(np.arange(20.0), channels, LogInfo(("a", "b", "c"), **info))
    return {"position": q, "velocity": v, "acceleration": a, "effort": tau, "command": target}, log


def test_motor_side_becomes_joint_side():
    """q = R^-1 q_motor, tau = R^T tau_motor, and power is the same on both sides."""
    truth, log = joint_and_motor(np.random.default_rng(0))
    result = to_joint_side(log, RATIO)
    assert (result.info.side, result.info.effort) == ("joint", "joint torque")
    for name, values in truth.items():
        np.testing.assert_allclose(result[name], values, rtol=1e-12, atol=1e-13)
    power = [np.sum(part["velocity"] * part["effort"], axis=1) for part in (log, result)]
    np.testing.assert_allclose(*power, rtol=1e-10)
    np.testing.assert_array_equal(result["temperature"], log["temperature"])
    np.testing.assert_array_equal(result["current"], log["current"])


def test_only_what_is_on_the_motor_side_changes():
    """Joint positions with motor torques: only the torque, and a torque command with it; doing it twice is harmless."""
    _, log = joint_and_motor(np.random.default_rng(1), side="joint", mode="torque")
    result = to_joint_side(log, RATIO)
    np.testing.assert_array_equal(result["position"], log["position"])
    np.testing.assert_allclose(result["effort"], log["effort"] @ RATIO)
    np.testing.assert_allclose(result["command"], log["command"] @ RATIO)
    again = to_joint_side(result, RATIO)
    np.testing.assert_array_equal(again["effort"], result["effort"])


def test_a_missing_motor_spoils_only_its_own_joints():
    """NaN of motor 1 leaves joints 2 and 3 alone; that of motor 2 reaches joint 3, which it also moves."""
    _, log = joint_and_motor(np.random.default_rng(2))
    for motor, spoilt in ((0, [True, False, False]), (1, [False, True, True]), (2, [False, False, True])):
        position = log["position"].copy()
        position[5, motor] = np.nan
        result = to_joint_side(log.with_channels({"position": position}), RATIO)
        np.testing.assert_array_equal(np.isnan(result["position"][5]), spoilt)


def test_a_robots_own_gears():
    """The ratios of a robot's drives, and a single column of ratios, are the diagonal of R."""
    robot = armid.load_robot("pa10")
    ratios = [drive.gear_ratio for drive in robot.drives]
    values = np.random.default_rng(3).standard_normal((9, robot.n_joints))
    info = LogInfo(robot.joint_names, "motor torque", side="motor")
    log = Log(np.arange(9.0), {"position": values, "effort": values}, info)
    result = to_joint_side(log, ratios)
    np.testing.assert_allclose(result["position"], values / ratios)
    np.testing.assert_allclose(result["effort"], values * ratios)
    np.testing.assert_array_equal(to_joint_side(log, np.diag(ratios))["effort"], result["effort"])


@pytest.mark.parametrize("ratio", [[1.0, 2.0], np.ones((3, 3)), np.diag([1.0, 0.0, 1.0]), [1.0, np.nan, 1.0], 5.0])
def test_ratios_that_do_not_fit(ratio):
    """Wrong size, singular, zero, not finite."""
    _, log = joint_and_motor(np.random.default_rng(4))
    with pytest.raises(LogError, match="ratio matrix"):
        to_joint_side(log, ratio)


def test_current_becomes_torque():
    """A gain, or a polynomial with the lowest power first; the current stays."""
    current = np.random.default_rng(5).standard_normal((30, 3))
    log = Log(np.arange(30.0), {"current": current}, LogInfo(("a", "b", "c"), "current"))
    result = torque_from_current(log, [(0.5, 10.0), (0.0, 8.0, 0.0, 0.25), 3.0])
    expected = [0.5 + 10.0 * current[:, 0], 8.0 * current[:, 1] + 0.25 * current[:, 1] ** 3, 3.0 * current[:, 2]]
    np.testing.assert_allclose(result["effort"], np.column_stack(expected), rtol=1e-12)
    np.testing.assert_array_equal(result["current"], current)
    assert result.info.effort == "joint torque"
    with pytest.raises(LogError, match="is a joint torque already"):
        torque_from_current(result, [1.0, 1.0, 1.0])
    with pytest.raises(LogError, match="given for 2 of 3 joints"):
        torque_from_current(log, [1.0, 1.0])


def test_current_that_is_not_there():
    """A log without the channel says which channels it has."""
    log = Log(np.arange(3.0), {"position": np.zeros((3, 1))}, LogInfo(("a",), "none"))
    with pytest.raises(LogError, match="current: is not in the log; there are: position"):
        torque_from_current(log, [1.0])


def test_signs_and_offsets():
    """q_model = sign q + offset; all but temperatures turn with the sign, offsets go to positions alone."""
    _, log = joint_and_motor(np.random.default_rng(6))
    result = reoriented(log, [1, -1, 1], [0.0, 0.5, -1.0])
    np.testing.assert_array_equal(result["position"], log["position"] * [1, -1, 1] + [0.0, 0.5, -1.0])
    np.testing.assert_array_equal(result["command"], log["command"] * [1, -1, 1] + [0.0, 0.5, -1.0])
    for name in ("velocity", "acceleration", "effort", "current"):
        np.testing.assert_array_equal(result[name], log[name] * [1, -1, 1])
    np.testing.assert_array_equal(result["temperature"], log["temperature"])
