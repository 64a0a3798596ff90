"""Long logs: the same estimate as in memory, from pieces and a file, at a memory that does not grow."""

import json
import subprocess
import sys

import numpy as np
import pytest

import armid
from armid.logs import Log, LogInfo, write_log
from armid.logs.log import LogStream
from armid.signals import dataset, process
from armid.signals.dataset import Stored
from tests.estimation.virtual_arms import arm, mujoco_torque

RATE_HZ = 100.0


def wandering(robot, seconds, seed=0):
    """Log of a motion that does not repeat, with noise: waves of all lengths, whole ones, so that copies can follow."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    q, qd, qdd = (np.zeros((len(time), robot.n_joints)) for _ in range(3))
    for joint in range(robot.n_joints):
        for rate, phase in zip(rng.uniform(0.5, 4.0, 6), rng.uniform(0.0, 6.0, 6), strict=True):
            omega = 2.0 * np.pi / seconds * round(rate * seconds / (2.0 * np.pi))
            size = 0.5 / omega
            q[:, joint] += size * np.sin(omega * time + phase)
            qd[:, joint] += size * omega * np.cos(omega * time + phase)
            qdd[:, joint] -= size * omega**2 * np.sin(omega * time + phase)
    tau = mujoco_torque(robot, armid.dynamics.model.Motion(q, qd, qdd))
    tau += 0.01 * np.std(tau, axis=0) * rng.normal(size=tau.shape)
    info = LogInfo(robot.joint_names, "joint torque", source="long", gain_uncertainty=(0.0,) * robot.n_joints)
    return Log(time, {"position": q, "effort": tau}, info)


def as_stream(log):
    """The log block by block."""

    def blocks(size):
        for start in range(0, len(log), size):
            yield log.rows(slice(start, start + size))

    return LogStream(log.info, tuple(log.channels), blocks)


def test_stored_rows_read_like_an_array():
    """Slices, steps and increasing indices give what the array gives."""
    rows = np.random.default_rng(0).normal(size=(1000, 3))
    stored = Stored(3)
    stored.append(rows[:400])
    stored.append(rows[400:])
    assert stored.shape == rows.shape
    for which in (slice(10, 20), slice(None, None, 7), slice(990, None), np.array([0, 5, 999]), np.arange(0)):
        np.testing.assert_array_equal(stored[which], rows[which])
    np.testing.assert_array_equal(np.asarray(stored), rows)


def test_pieces_tell_what_the_whole_tells(monkeypatch):
    """Identified from pieces, values and intervals are those of the log in memory, up to the rows lost at seams."""
    robot = arm("ir361")
    log = wandering(robot, 90.0)
    whole = armid.identify(robot, process(log, robot=robot), friction="linear")
    monkeypatch.setattr(dataset, "PIECE", 2500)
    monkeypatch.setattr(dataset, "WHOLE", 5000)
    data = process(as_stream(log), robot=robot)
    assert isinstance(data.q, Stored)
    assert len(data.time) == len(log)
    pieces = armid.identify(robot, data, friction="linear")
    assert pieces.columns == whole.columns
    assert np.abs((pieces.values - whole.values) / whole.sigma).max() < 1.5
    np.testing.assert_allclose(pieces.sigma, whole.sigma, rtol=0.3)
    assert any("pieces" in str(note) for note in pieces.notes)


SCRIPT = """
import json, sys
from armid.cli.main import main
code = main(["identify", "{robot}", "{log}", "-o", "{fit}", "--quiet"])
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps({{"code": code, "peak": peak}}))
"""


@pytest.mark.prove
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_ten_million_rows_below_one_gigabyte(tmp_path, suffix):
    """`armid identify` from 1e7 rows of Parquet and CSV: below 1 GB; the torque's error is that of a short log."""
    robot, rows = arm("ir361"), 10_000_000
    log = wandering(robot, 2000.0)
    short = armid.identify(robot, process(log, robot=robot))

    def blocks(size):
        for start in range(0, rows, len(log)):
            yield Log(log.time + start / RATE_HZ, log.channels, log.info)

    write_log(LogStream(log.info, tuple(log.channels), blocks), tmp_path / f"log.{suffix}")
    names = {"robot": "ir361", "log": tmp_path / f"log.{suffix}", "fit": tmp_path / "fit.json"}
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(**names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    fit = armid.load_fit(tmp_path / "fit.json")
    print(suffix, told, fit.residual_rms, short.residual_rms)
    assert told["peak"] < 1000
    np.testing.assert_allclose(fit.residual_rms, short.residual_rms, rtol=0.02)
