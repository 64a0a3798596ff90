"""The folder that page and command line share: settings, dropped files, what is up to date, and work in a process."""

import subprocess
import sys
import time

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.reporting.evidence import load_mapping
from armid.run.procedure import run_stages
from armid.studio.folder import Studio, read_settings
from armid.studio.recipes import load_draft, propose, say_effort
from armid.studio.work import Work
from tests.excitation.test_safe_plans import bent_tube, write_stl
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


def test_pictures_of_others_are_not_shown(studio):
    """A folder that was sent may hold pages with scripts; pictures are drawn again by the studio that shows them."""
    (studio.folder / ".studio" / "model.html").write_text("<script>steal()</script>")
    Studio(studio.folder)
    assert list((studio.folder / ".studio").glob("*.html")) == []


def test_pages_of_the_folder_are_kept_apart(tmp_path):
    """A page that is opened from the folder has an origin of its own, and cannot act as the studio."""
    pytest.importorskip("nicegui")
    from armid.studio.screens import _file

    (tmp_path / "report.html").write_text("<script>steal()</script>")
    (tmp_path / "fit.json").write_text("{}")
    page, other = (_file(tmp_path, name, "sandbox allow-scripts") for name in ("report.html", "fit.json"))
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert other.headers["content-disposition"].startswith("attachment")
    assert _file(tmp_path, "../etc/passwd").status_code == 404


def test_a_dropped_mesh_is_seen(studio):
    """An arm whose mesh comes later is drawn with it, and no longer lacks it for collision checks."""
    link = (
        '<link name="{}"><collision><geometry><mesh filename="package://gone/Tube.STL"/></geometry></collision></link>'
    )
    joint = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    place = studio.place_for("arm.urdf")
    place.write_text(f"<robot name='r'>{link.format('a')}{link.format('b')}{joint}</robot>")
    studio.change(robot=str(place))
    assert (studio.surfaces(), len(studio.robot().unread_shapes)) == ({}, 2)
    write_stl(studio.place_for("Tube.STL"), bent_tube((0.1, 0.0, 0.2), 0.02))
    assert (sorted(studio.surfaces()), studio.robot().unread_shapes) == ([0, 1], ())


def test_a_preview_redraws_no_screen(studio):
    """Signals are drawn while somebody chooses in a list, which must stay open; a new result draws the screen again."""
    before = studio.stamp()
    (studio.folder / ".studio" / "preview.html").write_text("x")
    assert studio.stamp() == before
    (studio.folder / ".studio" / "model.html").write_text("x")
    assert studio.stamp() != before


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


def test_a_killed_studio_leaves_no_job(studio):
    """A process whose page is gone has nobody to work for; the system closes what a killed one held open."""
    studio.change(robot="pa10", starts=200)
    command = [sys.executable, "-m", "armid.studio.work", str(studio.folder), "stages", "{}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as job:
        job.stdin.close()
        assert job.wait(30.0) == 1


def test_a_drawing_gives_way(studio):
    """Who asks for a step while a picture is being drawn is not refused."""
    studio.change(robot="ir361")
    studio.work.start("drawing", studio.folder, "view", names=[])
    studio.carry_out("base parameters", "model")
    _wait(studio.work)
    assert (studio.work.title, studio.work.state) == ("base parameters", "done")


def _wait(work):
    end = time.monotonic() + 60.0
    while work.running and time.monotonic() < end:
        time.sleep(0.05)


def test_a_recipe_is_proposed_and_asks_what_cannot_be_told(studio):
    """armid's own guesser fills the table; effort is asked for, and its likely columns come with the answer."""
    from armid.logs import read_log

    path = studio.place_for("log.csv")
    time, rng = np.arange(2000) / 100.0, np.random.default_rng(0)
    w = 2.0 * np.pi * np.array([0.3, 0.5, 0.7])
    q, qd = np.sin(np.outer(time, w)), w * np.cos(np.outer(time, w))
    table = np.column_stack([time, q, qd, rng.normal(size=(2000, 3))])
    np.savetxt(path, table, delimiter=",", header="time,q1,q2,q3,qd1,qd2,qd3,tau1,tau2,tau3", comments="")
    studio.change(robot="ir361", log=(str(path),))
    studio.write_recipe(*propose(str(path), studio.robot()))
    draft, asked = load_draft(studio.folder / "recipe.yaml"), load_mapping(studio.folder / ".studio" / "asked.json")
    assert draft["columns"]["position"] == ["q1", "q2", "q3"]
    assert draft["columns"]["velocity"] == ["qd1", "qd2", "qd3"]
    assert draft["effort"] == "none"
    assert any(words.startswith(("effort", "columns.effort")) for words in asked["open"])
    draft["columns"]["effort"] = [None, None, None]  # as the table shows it
    say_effort(draft, "joint torque", ["tau1", "tau2", "tau3"])
    studio.write_recipe(draft)
    assert np.array_equal(read_log(path, studio.settings.recipe)["effort"], table[:, 7:])
    say_effort(draft, "current")
    draft["sign"] = [1.0, -1.0, 1.0]
    studio.write_recipe(draft)
    log = read_log(path, studio.settings.recipe)
    assert log.info.effort == "current"
    assert np.allclose(log["position"], table[:, 1:4] * [1.0, -1.0, 1.0])


def test_a_file_that_nobody_understands_is_asked_about(studio):
    """No traceback: an empty table to fill, and the sentence of the reader."""
    path = studio.place_for("odd.csv")
    path.write_text("a,b\nx,y\n")
    studio.change(robot="ir361")
    draft, asked = propose(str(path), studio.robot())
    assert (draft["effort"], draft["columns"], len(asked["open"])) == ("none", {}, 1)
