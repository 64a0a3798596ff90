"""An estimator that is not part of armid: by decorator in a program, by entry point from the command line."""

import json

import numpy as np
import pytest

import armid
from armid.estimation import Estimator, WeightedLeastSquares, estimators, load_fit
from armid.estimation.linear import solve_problem
from armid.exporting.c import compiler
from tests.plugins import armid_with_plugins, install
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
    install(tmp_path, "armid.estimators", "ridge = armid_ridge:Ridge", PLUGIN)
    write_files(tmp_path)
    given = ("identify", "planar.yaml", "train.csv", "--method")
    shown, refused, *done = armid_with_plugins(
        tmp_path,
        ("identify", "--help"),
        (*given, "wrong"),
        (*given, "ridge", "--friction", "linear", "-o", "fit.json"),
        ("validate", "fit.json", "other.csv", "-o", "check.json", "--json"),
        ("export", "fit.json", "--to", "c", "-o", "out"),
        ("report", "fit.json", "-o", "page.html"),
    )
    assert "ridge (Least squares with a little pull to zero.)" in shown.words
    assert "ridge" in refused.err
    assert [one.code for one in done] == [0] * 4, done
    assert load_fit(tmp_path / "fit.json").method == "ridge"
    assert json.loads(done[1].out)["verdict"] == "good"
    (written,) = json.loads((tmp_path / "out" / "EXPORT.json").read_text())["files"]
    assert compiler() is None or written["proof"]["error"] < 1e-10
    assert "ridge" in (tmp_path / "page.html").read_text("utf-8")
