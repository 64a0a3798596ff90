"""`armid inspect`: what it prints, its JSON, its exit codes."""

import json

import numpy as np
import pytest

from armid.logs.files import write_log
from armid.logs.log import Log, LogInfo

KEYS = {"code", "severity", "joint", "where", "confidence", "what", "advice"}


@pytest.fixture
def log() -> Log:
    time = np.arange(4000) / 200.0
    omega = 2.0 * np.pi * np.array([0.3, 0.5])
    q, qd = np.sin(time[:, None] * omega), omega * np.cos(time[:, None] * omega)
    effort = -(omega**2) * q + 0.5 * np.sign(qd) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    return Log(time, {"position": q, "velocity": qd, "effort": effort}, LogInfo(("joint1", "joint2"), "joint torque"))


def test_clean_log(armid, log, tmp_path):
    write_log(log, tmp_path / "run.csv")
    outcome = armid("inspect", tmp_path / "run.csv")
    assert outcome.code == 0
    assert "4000 rows, 20 s at 200 Hz" in outcome.out
    assert "joint   from [rad]  to [rad]  speed [rad/s]  effort rms [N m]  effort noise [N m]\n" in outcome.out
    assert "WARNING" not in outcome.out


def test_faulty_log_in_json(armid, log, tmp_path):
    write_log(log.with_channels({"velocity": -log["velocity"]}), tmp_path / "run.csv")
    outcome = armid("inspect", tmp_path / "run.csv", "--json")
    assert outcome.code == 1
    data = json.loads(outcome.out)
    assert not data["usable"]
    assert all(set(finding) >= KEYS for finding in data["findings"])
    flipped = [finding for finding in data["findings"] if finding["code"] == "sign-flipped"]
    assert [finding["joint"] for finding in flipped] == ["joint1", "joint2"]
    assert data["facts"]["rate_hz"] == pytest.approx(200.0)


def test_gravity_is_that_of_a_robot(armid, log, tmp_path):
    write_log(log, tmp_path / "run.csv")
    outcome = armid("inspect", tmp_path / "run.csv", "--gravity", "0", "0", "9.81")
    assert outcome.code == 2
    assert "give that with --robot" in outcome.err


def test_warnings_alone_end_with_zero(armid, log, tmp_path):
    write_log(log.rows(np.r_[0:1000, 1020:4000]), tmp_path / "run.csv")
    outcome = armid("inspect", tmp_path / "run.csv")
    assert outcome.code == 0
    assert "WARNING gaps" in outcome.out


def test_units_and_numbers_of_one(armid, log, tmp_path):
    """Currents are in A; a single fault is told in the singular, and no joint is called twice."""
    current = np.array(log["effort"])
    current[1234, 0] += 5.0
    bent = np.array(log["velocity"])
    bent[77, 1] = np.nan
    channels = {"current": current, "effort": None, "velocity": bent}
    write_log(log.with_channels(channels, effort="current").rows(np.r_[0:3000, 3001:4000]), tmp_path / "run.csv")
    outcome = armid("inspect", tmp_path / "run.csv")
    assert "effort rms [A]  effort noise [A]" in outcome.out
    assert "1 gap: about 1 sample (0.03%) is missing" in outcome.out
    assert "1 value (0.03%) of the velocity of joint2 is no number." in outcome.out
    assert "1 single sample of the current of joint1 stands out" in outcome.out
    assert "oint joint" not in outcome.out


def test_several_logs_and_another_robot(armid, log, tmp_path):
    for name in ("a.csv", "b.csv"):
        write_log(log, tmp_path / name)
    outcome = armid("inspect", tmp_path / "a.csv", tmp_path / "b.csv", "--robot", "rx60", "--json")
    assert outcome.code == 1
    data = json.loads(outcome.out)
    assert len(data["logs"]) == 2
    assert {finding["code"] for finding in data["findings"]} >= {"other-robot"}
    assert all(finding["source"] for finding in data["findings"])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["missing.csv"], "missing.csv"),
        (["run.csv", "--robot", "nosuchrobot"], "nosuchrobot"),
        (["run.csv", "--recipe", "nosuchrecipe"], "nosuchrecipe"),
    ],
)
def test_bad_input(armid, log, tmp_path, monkeypatch, arguments, part):
    monkeypatch.chdir(tmp_path)
    write_log(log, tmp_path / "run.csv")
    outcome = armid("inspect", *arguments)
    assert outcome.code == 2
    assert part in outcome.err
    assert outcome.out == ""
