"""The four public data sets, read through armid's own recipes and compared with plain NumPy and SciPy."""

import numpy as np
import pytest
from scipy.io import loadmat

import armid
from armid.errors import RoundedAngleWarning
from armid.logs import LogError, open_log, read_log
from armid.logs.recipe import recipe_names

UR10E = ["ur-20_01_17-ptp_10_points.csv", "ur-20_02_10-30sec_12harm.csv", "ur-20_01_22-joint_6.csv"]


@pytest.mark.parametrize("name", UR10E)
def test_ur10e(data, name):
    """Torque is the gain times the measured current; the whole file is kept, with its own times."""
    raw = np.loadtxt(data / "ur10e" / name, delimiter=",")
    log = read_log(data / "ur10e" / name, "ur10e")
    gain = [11.976, 11.976, 9.8386, 10.763, 10.763, 10.763]
    np.testing.assert_array_equal(log.time, raw[:, 0])
    np.testing.assert_array_equal(log["position"], raw[:, 1:7])
    np.testing.assert_array_equal(log["velocity"], raw[:, 7:13])
    np.testing.assert_array_equal(log["current"], raw[:, 13:19])
    np.testing.assert_allclose(log["effort"], raw[:, 13:19] * gain, rtol=1e-15)
    np.testing.assert_array_equal(log["command"], raw[:, 25:31])
    assert (log.info.effort, log.info.mode, log.info.robot) == ("joint torque", "torque", "ur10e")
    assert log.joints == armid.load_robot(data / "ur10e" / "ur10e.urdf").joint_names


def test_the_gain_of_ur10e_is_that_of_its_controller(data):
    """Desired torque over desired current at standstill, in the file itself."""
    raw = np.loadtxt(data / "ur10e" / UR10E[1], delimiter=",")
    still = np.all(np.abs(raw[:, 7:13]) < 1e-4, axis=1)
    desired_current, desired_torque = raw[still, 19:25], raw[still, 25:31]
    for joint, gain in ((1, 11.976), (2, 9.8386), (3, 10.763)):
        slope = desired_current[:, joint] @ desired_torque[:, joint] / (desired_current[:, joint] ** 2).sum()
        assert slope == pytest.approx(gain, rel=2e-3)


def test_tx40(data):
    """Two files side by side: q = R^-1 q_motor with offsets, tau = R^T tau_motor, 5 kHz."""
    files = [data / "tx40" / "pos_read_data.csv", data / "tx40" / "curr_data.csv"]
    motor_position, motor_torque = (np.loadtxt(path, delimiter=",", skiprows=1) for path in files)
    ratio = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    ratio[5, 4] = 32.0
    log = read_log(files, "tx40")
    offset = np.array([0, -np.pi / 2, np.pi / 2, 0, 0, 0])
    position = np.linalg.solve(ratio, motor_position.T).T + offset
    np.testing.assert_allclose(log["position"], position, rtol=0, atol=1e-14)
    np.testing.assert_allclose(log["effort"], motor_torque @ ratio, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(log.time, np.arange(45000) / 5000.0, rtol=1e-15)
    assert (log.info.effort, log.info.side, log.rate_hz) == ("joint torque", "joint", 5000.0)
    assert log.joints == armid.load_robot(data / "tx40" / "tx40.urdf").joint_names
    assert np.abs(position[0]).max() < 1e-4  # the arm starts at the model's zero


def test_tx40_with_files_exchanged_or_missing(data):
    """One file of two is refused, and says which channel lacks its file."""
    with pytest.raises(LogError, match=r"columns.effort: asks for file 2, but there are 1 files"):
        read_log(data / "tx40" / "pos_read_data.csv", "tx40")


@pytest.mark.parametrize("name", ["traj1.csv", "traj2.csv"])
def test_xmate7p(data, name):
    """Positions, velocities, accelerations and joint torques as they are, 50 Hz, period 20 s."""
    raw = np.loadtxt(data / "xmate7p" / name, delimiter=",")
    log = read_log(data / "xmate7p" / name, "xmate7p")
    for index, channel in enumerate(("position", "velocity", "acceleration", "effort")):
        np.testing.assert_array_equal(log[channel], raw[:, 7 * index : 7 * index + 7])
    np.testing.assert_allclose(log.time, np.arange(3001) / 50.0)
    assert (log.info.effort, log.info.period_s) == ("joint torque", 20.0)
    with pytest.warns(RoundedAngleWarning):
        assert log.joints == armid.load_robot(data / "xmate7p" / "xmate7p.urdf").joint_names


@pytest.mark.parametrize("name", ["A.mat", "B.mat"])
def test_kr300(data, name):
    """Degrees become radians with the model's zeros; motor torques are multiplied by the gear that the file states."""
    content = loadmat(data / "kr300" / name, variable_names=["rec", "para"])
    rec, gear = content["rec"][0, 0], content["para"][0, 0]["u"]
    log = read_log(data / "kr300" / name, "kr300")
    offset = [0, -np.pi / 2, np.pi / 2, 0, 0, 0]
    np.testing.assert_allclose(log["position"], np.deg2rad(rec["act_pos_mot_deg"].T) + offset, rtol=1e-14)
    np.testing.assert_allclose(log["velocity"], np.deg2rad(rec["act_vel_mot_deg_per_s"].T), rtol=1e-14)
    np.testing.assert_allclose(log["command"], np.deg2rad(rec["ref_pos_deg"].T) + offset, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(log["effort"], (rec["act_torque_abs_nm"] * gear).T, rtol=1e-14)
    np.testing.assert_allclose(log.time, rec["time_cont"][0], atol=1e-5)
    assert (log.info.effort, log.info.side, log.joints[0]) == ("joint torque", "joint", "joint1")


@pytest.mark.parametrize("size", [1, 1000, 3691])
def test_recipes_stream(data, size):
    """A recipe applied block by block gives what it gives at once."""
    path = data / "ur10e" / UR10E[1]
    whole, stream = read_log(path, "ur10e"), open_log(path, "ur10e")
    assert (stream.info.effort, set(stream.channels)) == ("joint torque", set(whole.channels))
    blocks = list(stream.blocks(size)) if size > 1 else list(stream.blocks(1))[:50]
    samples = sum(map(len, blocks))
    np.testing.assert_array_equal(np.concatenate([block["effort"] for block in blocks]), whole["effort"][:samples])


def test_the_library_of_recipes():
    """The four recipes are there; a wrong name is answered with the nearest."""
    assert set(recipe_names()) >= {"ur10e", "tx40", "xmate7p", "kr300"}
    with pytest.raises(armid.ArmidError, match="did you mean 'kr300'"):
        read_log("x.csv", "kr30")
