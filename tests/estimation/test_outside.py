"""An estimator that is not part of armid: by decorator in a program, by entry point from the command line."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import armid
from armid.estimation import Estimator, WeightedLeastSquares, estimators, load_fit
from armid.estimation.linear import solve_problem
from tests.validation.arms import data_of, planar, write_files

PLUGIN = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from armid.estimation import Estimator
from armid.estimation.linear import solve_problem

@dataclass(frozen=True, kw_only=True)
class Ridge(Estimator):
    """Least squares with a little pull to zero."""

    name: ClassVar[str] = "ridge"

    def fit(self, robot, data):
        problem = self.problem(robot, data)
        weights = np.ones(robot.n_joints)
        size = len(problem.names)
        factor, solution = solve_problem(problem, weights, prior=(1e-6 * np.eye(size), np.zeros(size)))
        return self.finished(problem, factor, solution, weights)
'''


@pytest.fixture
def halved():
    """An estimator that a program adds, and takes away again."""

    @estimators.add("halved")
    class Halved(Estimator):
        name = "halved"

        def fit(self, robot, data):
            problem = self.problem(robot, data)
            factor, solution = solve_problem(problem, np.ones(robot.n_joints))
            return self.finished(problem, factor, solution, np.full(robot.n_joints, 0.5))

    yield
    del estimators._things["halved"]


def test_by_decorator(tmp_path, halved):
    """It is listed, `identify` gives it linear friction, and the fit carries its name."""
    assert list(estimators)[-1] == "halved"
    robot = planar(tmp_path)
    data = data_of(robot, seed=1)
    fit = armid.identify(robot, data, method="halved")
    assert (fit.method, fit.options["friction"]) == ("halved", "linear")
    assert fit.weights.tolist() == [0.5, 0.5]
    best = WeightedLeastSquares().fit(robot, data)
    assert np.abs(fit.values - best.values).max() < 0.1


def test_by_entry_point(tmp_path):
    """An installed package adds a method: identify, validate, export and report take it, --help and errors list it."""
    place = tmp_path / "site" / "ridge-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: ridge\nVersion: 1.0\n")
    (place / "entry_points.txt").write_text("[armid.estimators]\nridge = armid_ridge:Ridge\n")
    (tmp_path / "site" / "armid_ridge.py").write_text(PLUGIN)
    write_files(tmp_path)
    path = os.pathsep.join(filter(None, [str(tmp_path / "site"), os.environ.get("PYTHONPATH")]))

    def call(*arguments):
        command = [sys.executable, "-m", "armid", *arguments]
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")

    words = call("identify", "--help").stdout
    assert "ridge (Least squares with a little pull to zero.)" in " ".join(words.split())
    result = call(
        *("identify", "planar.yaml", "train.csv", "--method", "ridge", "--friction", "linear", "-o", "fit.json")
    )
    assert result.returncode == 0, result.stderr
    assert load_fit(tmp_path / "fit.json").method == "ridge"
    result = call("validate", "fit.json", "other.csv", "-o", "check.json", "--json")
    assert json.loads(result.stdout)["verdict"] == "good", result.stderr
    for arguments in (("export", "fit.json", "--to", "python", "-o", "out"), ("report", "fit.json", "-o", "page.html")):
        result = call(*arguments)
        assert result.returncode == 0, result.stderr
    assert "ridge" in (tmp_path / "page.html").read_text("utf-8")
    assert "ridge" in call("identify", "planar.yaml", "train.csv", "--method", "wrong").stderr
