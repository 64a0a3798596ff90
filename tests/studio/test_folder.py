"""The folder that page and command line share: settings, dropped files, what is up to date, and work in a process."""

import time

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.robot import load_robot
from armid.run.procedure import run_stages
from armid.studio.folder import Studio, read_settings
from armid.studio.recipes import load_draft, propose, say_effort
from armid.studio.work import Work
from tests.untrusted.names import names


@pytest.fixture
def studio(tmp_path):
    return Studio(tmp_path / "run")


def test_no_name_leads_out_of_the_folder(studio):
    """Whatever a dropped file is called, it is kept in the folder for such files, and two names stay two files."""
    given = [f"{name}{end}" for name in names("/tmp/mark") for end in ("", ".urdf", ".csv", "/../../x.csv")]
    places = [studio.place_for(name) for name in given]
    assert {place.resolve().parent for place in places} == {studio.folder / "uploads"}
    assert studio.place_for("arm.URDF").name == "arm.urdf"
    assert studio.place_for("a.csv") != studio.place_for("b.csv")


def test_settings_are_those_of_the_command_line(studio):
    """What the page chooses, `armid run` takes up, and the other way round; None stands for the default."""
    log = studio.place_for("monday.csv")
    log.write_text("x")
    studio.change(robot="ir361", log=(str(log),), harmonics=7)
    assert "uploads/monday.csv" in (studio.folder / "settings.yaml").read_text()  # the folder can be moved
    assert read_settings(studio.folder).log == (str(log),)
    assert studio.change(harmonics=None).harmonics == 5
    with pytest.raises(ArmidError, match="validation logs are given without"):
        studio.change(log=None, validation=("x",))
    assert studio.settings.log == (str(log),)


def test_results_of_another_arm_are_out_of_date(studio):
    """A stage counts as finished only with the settings it was made with, whoever carried it out."""
    assert studio.settings is None
    assert studio.finished() == frozenset()
    settings = studio.change(robot="ir361")
    run_stages(settings, studio.folder, last="model")
    assert studio.finished() == {"model"}
    studio.change(robot="rx60")
    assert studio.finished() == frozenset()
    studio.change(robot="ir361")
    assert studio.finished() == {"model"}


def test_a_job_reports_its_refusal_in_a_sentence(studio):
    """A process that cannot do its task says why, and the page has the words."""
    work = Work()
    work.start("base parameters", studio.folder, "stages", last="model")
    with pytest.raises(ArmidError, match="still going on"):
        work.start("another", studio.folder, "stages")
    _wait(work)
    assert (work.state, "choose an arm" in work.error) == ("failed", True)


def test_a_job_can_be_stopped(studio):
    """Stopping ends the process at once, and another job can begin."""
    studio.change(robot="pa10", starts=200)
    studio.carry_out("design", "design")
    process = studio.work._process
    studio.work.stop()
    assert (studio.work.state, process.wait(10) != 0) == ("stopped", True)
    assert not (studio.folder / "plan.json").exists()


def _wait(work):
    end = time.monotonic() + 60.0
    while work.running and time.monotonic() < end:
        time.sleep(0.05)


def test_a_recipe_is_proposed_from_names():
    """Columns that differ in a number alone belong together; set values are not measured ones."""
    robot = load_robot("ir361")
    families = ("actual_q_{}", "actual_qd_{}", "target_q_{}", "motor_torque{}")
    header = ["timestamp", *(name.format(j) for name in families for j in range(3)), "status"]
    made = propose(header, robot)
    assert made["columns"] == {
        "time": "timestamp",
        "position": ["actual_q_0", "actual_q_1", "actual_q_2"],
        "velocity": ["actual_qd_0", "actual_qd_1", "actual_qd_2"],
        "effort": ["motor_torque0", "motor_torque1", "motor_torque2"],
    }
    numbered = propose([str(k) for k in range(1, 8)], robot)["columns"]
    assert numbered == {"time": "1", "position": ["2", "3", "4"], "velocity": ["5", "6", "7"]}


def test_a_recipe_follows_what_was_measured(studio):
    """Torque or current: the same columns under the right name, and a file that `Recipe` takes."""
    from armid.logs import read_log

    path = studio.place_for("log.csv")
    table = np.column_stack([np.arange(5) / 10.0, *np.random.default_rng(0).normal(size=(9, 5))])
    np.savetxt(path, table, delimiter=",", header="time,q1,q2,q3,qd1,qd2,qd3,tau1,tau2,tau3", comments="")
    studio.change(robot="ir361", log=(str(path),))
    studio.write_recipe(propose(path.read_text().splitlines()[0].split(","), studio.robot()))
    draft = load_draft(studio.folder / "recipe.yaml")
    assert np.array_equal(read_log(path, studio.settings.recipe)["effort"], table[:, 7:])
    say_effort(draft, "current")
    draft["sign"] = [1.0, -1.0, 1.0]
    studio.write_recipe(draft)
    log = read_log(path, studio.settings.recipe)
    assert log.info.effort == "current"
    assert np.array_equal(log["position"], table[:, 1:4] * [1.0, -1.0, 1.0])
