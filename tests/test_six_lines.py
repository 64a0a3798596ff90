"""The main job is a handful of lines, which run as they stand here."""

from pathlib import Path

import numpy as np
import pytest

import armid
from armid.estimation import WeightedLeastSquares
from armid.excitation import DOptimal, Fourier
from armid.excitation.fourier import FourierSeries
from armid.experiment import VirtualRobot
from armid.signals import PeriodicAverage

pytest.importorskip("mujoco")

SIX_LINES = """
robot = armid.load_robot("pa10")
plan  = armid.design(robot, Fourier(harmonics=5, period=10.0), criterion=DOptimal())
log   = VirtualRobot(robot, seed=0).run(plan.trajectory, periods=16)
data  = armid.process(log, PeriodicAverage())
fit   = WeightedLeastSquares().fit(robot, data)
check = armid.validate(fit, other)
print(fit.summary(), check.summary()); armid.report(fit, check, path="report.html")
"""


def other_data(name):
    """Another motion of the virtual arm."""
    robot = armid.load_robot(name)
    sine, cosine = 0.15 * np.random.default_rng(3).normal(size=(2, robot.n_joints, 3))
    series = FourierSeries(0.125, (1, 2, 3), sine, cosine, np.zeros(robot.n_joints))
    return armid.process(VirtualRobot(robot, seed=9).run(series, periods=4), PeriodicAverage())


def run(lines, other):
    """What the lines leave behind."""
    names = {
        "armid": armid, "Fourier": Fourier, "DOptimal": DOptimal, "VirtualRobot": VirtualRobot, "other": other,
        "PeriodicAverage": PeriodicAverage, "WeightedLeastSquares": WeightedLeastSquares,
    }  # fmt: skip
    exec(lines, names)
    return names


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    """The report goes to a folder of its own."""
    monkeypatch.chdir(tmp_path)


def test_six_lines_on_a_small_arm(capsys):
    """The same lines for three joints and one start of the design: the error on other motion is the noise."""
    lines = SIX_LINES.replace('"pa10"', '"ir361"').replace("DOptimal()", "DOptimal(), starts=1").replace("16", "8")
    check = run(lines, other_data("ir361"))["check"]
    assert check.good
    assert all(joint.noise_ratio < 1.2 for joint in check.joints)
    assert "ir361: good" in capsys.readouterr().out
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")


@pytest.mark.prove
def test_six_lines(capsys):
    """They run as printed; the PA-10's friction is not linear, and the advice says just that."""
    check = run(SIX_LINES, other_data("pa10"))["check"]
    assert check.relative_error_moving < 0.08
    assert not check.same_as_training
    assert "pa10" in capsys.readouterr().out
    assert "pa10" in Path("report.html").read_text()
    assert all("velocity" in line for line in map(str, check.advice))
