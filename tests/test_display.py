"""What people see of an object: a repr that fits on a screen, a table in a notebook, a figure."""

import pytest

import armid
from armid.display import html_table
from armid.dynamics.model import Model
from armid.estimation import WeightedLeastSquares
from armid.logs.log import Log, LogInfo
from armid.validation import validate
from tests.validation.arms import data_of, planar


@pytest.fixture
def results(tmp_path):
    """A robot, its model, data, a fit and its validation."""
    robot = planar(tmp_path)
    data = data_of(robot, seed=1)
    fit = WeightedLeastSquares().fit(robot, data)
    return robot, Model(robot), data, fit, validate(fit, data_of(robot, seed=2))


@pytest.fixture
def more(results, tmp_path):
    """What follows from a fit: base parameters, its factor, a log, a prediction, an audit, an export, a report."""
    robot, model, data, fit, check = results
    log = Log(data.time, {"position": data.q, "effort": data.torque}, LogInfo(robot.joint_names, "joint torque"))
    exported = armid.export(fit, ["python"], tmp_path / "out")
    return model.base, fit.factor, log, armid.predict(fit, data), *armid.audit(fit), exported, armid.report(fit, check)


def test_repr_fits_on_a_screen(results, more):
    """One line that names the kind and the robot; arrays are left to those who ask for them."""
    for thing in (*results, *more, armid.load_robot("pa10")):
        text = repr(thing)
        assert text.startswith(type(thing).__name__)
        assert len(text) < 400
        assert "\n" not in text


def test_tables_for_notebooks(results):
    """Robot, fit and validation have a row for each joint or parameter, and everything is escaped."""
    robot, _, _, fit, check = results
    assert robot._repr_html_().count("<tr>") == 1 + robot.n_joints
    assert fit._repr_html_().count("<tr>") == 1 + len(fit.names)
    assert check._repr_html_().count("<tr>") == 1 + robot.n_joints
    assert "<script>" not in html_table("<script>", ["<script>"], [["<script>"]], ["<script>"])


def test_figures(results):
    """Fit and validation draw themselves; matplotlib is loaded only then."""
    pytest.importorskip("matplotlib")
    *_, fit, check = results
    assert len(fit.plot().axes) == 1
    assert len(check.plot().axes) == 2 * len(check.joints)
