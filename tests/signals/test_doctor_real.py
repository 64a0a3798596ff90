"""The log doctor on logs of real arms: it names what is known to be wrong with them, and invents nothing."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from armid.errors import ArmidWarning
from armid.logs.files import read_log
from armid.robot import load_robot
from armid.signals.doctor import Examination, examine

# Errors would say that a log must not be used; people have used all of these.
NEVER = {"degrees", "swapped-joints", "sign-flipped", "velocity-scale", "velocity-unrelated", "outside-limits", "gaps"}


def lag_by_correlation(first, second, time, most=20):
    """Lag [s] of the second signal: the top of the parabola through the largest correlation and its neighbours."""
    lags = np.arange(-most, most + 1)
    inner = slice(most, len(first) - most)
    score = [np.corrcoef(first[inner], np.roll(second, -lag)[inner])[0, 1] for lag in lags]
    top = int(np.argmax(score))
    a, b, c = score[top - 1 : top + 2]
    return (lags[top] + 0.5 * (a - c) / (a - 2.0 * b + c)) * (time[1] - time[0])


def told(report: Examination) -> set[str]:
    return {finding.code for finding in report.at_least("warning")}


@pytest.mark.parametrize(
    "name", ["ur-20_02_10-30sec_12harm", "ur-20_02_12-50sec_12harm", "ur-20_02_19_14harm50secLoad"]
)
def test_ur10e_samples_irregularly_and_has_spikes(data: Path, name):
    report = examine(read_log(data / "ur10e" / f"{name}.csv", recipe="ur10e"))
    assert {"irregular-timestamps", "spikes"} <= told(report)
    assert "effort" in {finding.values["channel"] for finding in report.of("spikes")}
    assert not told(report) & NEVER
    assert report.usable
    assert report.facts.period_s is None


def test_ur10e_known_spikes(data: Path):
    """Rows seen in the file by eye: the current of joint 1 jumps by about 2 A for one sample."""
    report = examine(read_log(data / "ur10e" / "ur-20_02_10-30sec_12harm.csv", recipe="ur10e"))
    rows = {
        finding.joint: finding.where.rows for finding in report.of("spikes") if finding.values["channel"] == "effort"
    }
    assert {803, 1967} <= set(rows["shoulder_pan_joint"])


def test_ur10e_swept_joint_by_joint(data: Path):
    """One joint sweeps, the others rest: that is said, without alarm."""
    report = examine(read_log(data / "ur10e" / "ur-20_01_22-joint_1.csv", recipe="ur10e"))
    assert told(report) <= {"irregular-timestamps", "transient"}
    assert len(report.of("joint-at-rest")) == 5
    assert report.facts.period_s == pytest.approx(10.0, abs=0.01)


@pytest.mark.prove
@pytest.mark.parametrize("arm", ["ur10e", "tx40", "xmate7p"])
def test_right_robot_is_not_accused_of_wrong_wiring(data: Path, arm):
    with pytest.warns(ArmidWarning) if arm == "xmate7p" else nullcontext():
        robot = load_robot(data / arm / f"{arm}.urdf")
    files = {
        "ur10e": [data / "ur10e" / "ur-20_02_10-30sec_12harm.csv"],
        "tx40": [data / "tx40" / "pos_read_data.csv", data / "tx40" / "curr_data.csv"],
        "xmate7p": [data / "xmate7p" / "traj1.csv"],
    }[arm]
    report = examine(read_log(files, recipe=arm), robot)
    assert not told(report) & NEVER
    assert report.usable


def test_tx40_is_clean(data: Path):
    files = [data / "tx40" / "pos_read_data.csv", data / "tx40" / "curr_data.csv"]
    report = examine(read_log(files, recipe="tx40"))
    assert told(report) == set()


def test_xmate7p_has_a_jolt_and_a_transient(data: Path):
    """Around row 1640 all torques jolt for three samples, and joint 4 needs a second to settle in its first period."""
    report = examine(read_log(data / "xmate7p" / "traj1.csv", recipe="xmate7p"))
    assert told(report) == {"spikes", "transient"}
    assert {1639, 1640} & {row for finding in report.of("spikes") for row in finding.where.rows}
    assert report.facts.period_s == pytest.approx(20.0, abs=0.01)


@pytest.mark.parametrize("name", ["A", "B"])
def test_kr300_has_single_shocks_and_a_velocity_one_sample_late(data: Path, name):
    log = read_log(data / "kr300" / f"{name}.mat", recipe="kr300")
    report = examine(log)
    assert told(report) == {"spikes", "velocity-lag"}
    assert sum(finding.where.count for finding in report.of("spikes")) < 10
    for finding in report.of("velocity-lag"):  # the same by cross-correlation
        joint = log.joints.index(finding.joint)
        rate = np.gradient(log["position"][:, joint], log.time)
        other = lag_by_correlation(rate, log["velocity"][:, joint], log.time)
        assert finding.values["lag_s"] == pytest.approx(other, abs=1e-3)
