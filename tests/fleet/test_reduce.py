"""One arm-day: pieces add up to the whole, a told payload is taken off, and what is bad is named."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.estimation.linear import solve
from armid.fleet import recording
from armid.fleet.description import load_fleet
from armid.fleet.partitions import find_partitions
from armid.fleet.reduce import reduce_partition
from armid.logs import read_log, write_log
from tests.fleet.arms import arm_file, log_of, true_parameters, write_fleet


@pytest.fixture
def fleet(tmp_path):
    return load_fleet(write_fleet(tmp_path, 1, 1, seconds=30.0))


def reduced(fleet):
    (partition,) = find_partitions(fleet)
    return reduce_partition(fleet, partition, "key")


def test_pieces_are_the_whole(fleet, monkeypatch):
    """A log cut into many pieces gives the factor of the log at once: the same rows, the same sums."""
    whole = reduced(fleet)
    monkeypatch.setattr(recording, "CHUNK", 300)
    cut = reduced(fleet)
    assert cut.factor.counts == whole.factor.counts
    for joint in range(4):
        mine, theirs = whole.factor.gram(joint), cut.factor.gram(joint)
        np.testing.assert_allclose(theirs, mine, atol=1e-10 * np.abs(mine).max(), rtol=0.0)


def test_files_that_go_on_in_one_another_are_one_log(fleet, tmp_path):
    """A day's log in three files gives the factor and residuals of one file; a bad file in between costs its rows."""
    whole = reduced(fleet)
    path = next((tmp_path / "logs").rglob("*.parquet"))
    log = read_log(path)
    path.unlink()
    parts = (slice(0, 700), slice(700, 1900), slice(1900, None))
    for number, rows in enumerate(parts):
        write_log(log.rows(rows), path.with_name(f"part{number}.parquet"))
    split = reduced(fleet)
    assert (split.factor.counts, split.samples, split.problems) == (whole.factor.counts, whole.samples, ())
    for joint in range(4):
        mine, theirs = whole.factor.gram(joint), split.factor.gram(joint)
        np.testing.assert_allclose(theirs, mine, atol=1e-10 * np.abs(mine).max(), rtol=0.0)
    np.testing.assert_allclose(split.inflation, whole.inflation, rtol=1e-9)
    path.with_name("part1.parquet").write_bytes(b"PAR1 damaged")
    broken = reduced(fleet)
    assert [problem.file for problem in broken.problems] == ["part1.parquet"]
    assert broken.samples == whole.samples - 1200
    assert 0.2 * whole.factor.counts[1] < broken.factor.counts[1] < 0.6 * whole.factor.counts[1]
    path.with_name("part1.parquet").unlink()
    rest = reduced(fleet)
    assert (rest.factor.counts, rest.samples, rest.problems) == (broken.factor.counts, broken.samples, ())


def test_time_that_jumps_is_no_motion(fleet, tmp_path):
    """A clock that is set an hour back and a day forward within a file costs a few rows and changes no value."""
    whole = reduced(fleet)
    path = next((tmp_path / "logs").rglob("*.parquet"))
    log = read_log(path)
    time = log.time.copy()
    time[800:] -= 3600.0
    time[1600:] += 86400.0
    write_log(type(log)(time, log.channels, log.info), path)
    day = reduced(fleet)
    assert 0.4 * whole.factor.counts[1] < day.factor.counts[1] < whole.factor.counts[1]
    one, other = (solve(d.factor, 1.0 / d.rms**2) for d in (whole, day))
    sigma = np.sqrt(np.diag(other.inverse))
    assert np.all(np.abs(one.values - other.values) < 5.0 * sigma)


def test_a_told_payload_is_taken_off(fleet, tmp_path):
    """With a payload that the log tells of, the arm's own parameters come out; without a word they are wrong."""
    robot = fleet.robot
    payload = (1.5, 0.0, 0.0, 0.15, 0.02, 0.0, 0.02, 0.0, 0.0, 0.002)
    from armid.robot.inertia import change_of_frame

    carried = dict(true_parameters(robot.virtual))
    added = change_of_frame(robot.tool) @ np.array(payload)
    for name, part in zip(("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"), added, strict=True):
        carried[f"{name}4"] += part
    path = next((tmp_path / "logs").rglob("*.parquet"))
    found = []
    for parameters, said in ((true_parameters(robot.virtual), None), (carried, payload), (carried, None)):
        write_log(log_of(robot, parameters, seconds=25.0, payload=said), path)
        day = reduced(fleet)
        solution = solve(day.factor, 1.0 / day.rms**2)
        found.append((solution.values, np.sqrt(np.diag(solution.inverse)), day.rms))
    (alone, sigma, rms), (told, _, told_rms), (silent, _, _) = found
    assert np.all(np.abs(told - alone) < 1e-6 * sigma)  # same noise, so the very same values
    np.testing.assert_allclose(told_rms, rms, rtol=1e-6)
    assert np.max(np.abs(silent - alone) / sigma) > 10.0


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path, _: path.write_bytes(path.read_bytes()[:500]), "parquet"),
        (lambda path, _: path.write_bytes(b""), "parquet"),
        (lambda path, robot: write_log(log_of(robot, true_parameters(robot.virtual), name="other"), path), "'other'"),
        (lambda path, robot: write_log(log_of(robot, true_parameters(robot.virtual), seconds=0.5), path), "too"),
    ],
)
def test_what_is_bad_is_named(fleet, tmp_path, spoil, reason):
    """Damage, emptiness, another type of arm, too short: no factor, and a reason that says what it is."""
    spoil(next((tmp_path / "logs").rglob("*.parquet")), fleet.robot)
    day = reduced(fleet)
    assert not day.usable
    assert len(day.problems) == 1
    assert reason in day.problems[0].reason.lower()


def test_a_clock_of_another_day_is_told(fleet, tmp_path):
    """Times since 1970 that belong to another day than the folder says are a finding; the data still count."""
    path = next((tmp_path / "logs").rglob("*.parquet"))
    log = read_log(path)
    for start, expected in ((1772323200.0 + 3600.0, 0), (1772323200.0 - 40 * 86400.0, 1)):  # 2026-03-01, 40 days before
        write_log(type(log)(log.time + start, log.channels, log.info), path)
        day = reduced(fleet)
        assert day.usable
        assert sum(finding.code == "clock-jump" for finding in day.findings) == expected


def test_absent_logs_and_wrong_dates_are_said(tmp_path):
    """A fleet file that names no logs, an empty folder, a folder that is no date."""
    arm_file(tmp_path)
    (tmp_path / "fleet.yaml").write_text("robot: arm.yaml\nlogs: logs\n")
    fleet = load_fleet(tmp_path / "fleet.yaml")
    with pytest.raises(ArmidError, match="logs is not there"):
        find_partitions(fleet)
    (tmp_path / "logs").mkdir()
    with pytest.raises(ArmidError, match="holds no log"):
        find_partitions(fleet)
    place = tmp_path / "logs" / "robot=a" / "date=yesterday"
    place.mkdir(parents=True)
    (place / "log.csv").write_text("")
    with pytest.raises(ArmidError, match="date=yesterday is no date"):
        find_partitions(fleet)


PEAK = """
import sys
from pathlib import Path
from armid.fleet.description import load_fleet
from armid.fleet.partitions import find_partitions
from armid.fleet.reduce import reduce_partition
fleet = load_fleet(sys.argv[1])
(partition,) = find_partitions(fleet)
assert reduce_partition(fleet, partition).usable
status = Path("/proc/self/status").read_text()
print(next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.prove
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_log(tmp_path):
    """Forty times the samples take the same memory, below 700 MB."""
    peaks = []
    for seconds in (100.0, 4000.0):
        file = write_fleet(tmp_path / f"{seconds:.0f}", 1, 1, seconds=seconds, rate_hz=500.0)
        done = subprocess.run([sys.executable, "-c", PEAK, str(file)], check=True, capture_output=True, text=True)
        peaks.append(float(done.stdout))
    assert peaks[1] < 700.0
    assert peaks[1] < 1.25 * peaks[0]
