"""The whole run: every file is there, nothing is repeated without a reason, and no kill leaves a trace."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.cli import main
from armid.errors import ArmidError
from armid.estimation import load_fit
from armid.excitation import load_plan
from armid.files import file_hash
from armid.logs import Log, read_log, write_log
from armid.robot.load import robot_digest
from armid.run.outcome import in_words
from armid.run.procedure import robot_of, run, run_stages, stages_of
from armid.run.settings import Settings, make_settings
from armid.run.stages import Workplace, _key
from armid.validation.result import load_validation

SMALL = {
    "robot": "ir361",
    "no_warmup": True,
    "starts": 1,
    "harmonics": 3,
    "period": 6.0,
    "rate": 100.0,
    "periods": 3,
    "to": ("c", "yaml"),
}
FLAGS = [
    *("--no-warmup", "--starts", "1", "--harmonics", "3", "--period", "6", "--rate", "100"),
    *("--periods", "3", "--to", "c", "yaml"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run that was never interrupted."""
    folder = tmp_path_factory.mktemp("run") / "whole"
    return folder, run(make_settings(SMALL), folder)


def results(folder):
    """What a run found, without times of computing."""
    fit, check = load_fit(folder / "fit.json"), load_validation(folder / "validation.json")
    plan = json.loads((folder / "plan.json").read_text())
    return fit.values, fit.covariance, [j.nrms_moving for j in check.joints], plan["trajectory"], plan["value"]


def assert_same(one, other):
    for mine, theirs in zip(results(one), results(other), strict=True):
        if isinstance(mine, dict):
            assert mine == theirs
        else:
            np.testing.assert_array_equal(mine, theirs)


def test_everything_is_there(finished):
    folder, outcome = finished
    made = {name for stage in stages_of(make_settings(SMALL)) for name in stage.writes}
    assert made >= {"plan.json", "fit.json", "validation.json", "audit.json", "report.html", "exports"}
    assert all((folder / name).exists() for name in made)
    assert outcome.check.good
    assert len(list(in_words(outcome.numbers))) == 5
    assert outcome.numbers["worst_nrms_moving"] == max(
        joint.nrms_moving for joint in load_validation(folder / "validation.json").joints
    )
    assert (
        load_fit(folder / "fit.json").standard_parameters is not None
    )  # physically possible, so that exports can hold it


def test_validation_is_on_another_motion(finished):
    folder, _ = finished
    training, other = (read_log(folder / f"{name}.parquet") for name in ("training", "validation"))
    rows = min(len(training), len(other))
    assert np.abs(training["position"][:rows] - other["position"][:rows]).max() > 0.3
    assert not load_validation(folder / "validation.json").same_as_training


def test_report_holds_the_numbers_of_the_files(finished):
    folder, _ = finished
    page = (folder / "report.html").read_text("utf-8")
    check = load_validation(folder / "validation.json")
    for joint in check.joints:
        assert repr(joint.nrms_moving) in page


def test_a_log_is_read_and_processed_once(finished, tmp_path, monkeypatch):
    """Inspection, identification, validation and report share the log and its data set."""
    from armid.run import stages
    from armid.signals import pipeline

    read, processed, counts = stages.read_copy, pipeline._processed, {"read": [], "processed": []}

    def reading(path):
        counts["read"].append(Path(path).name)
        return read(path)

    def processing(log, *more):
        counts["processed"].append(log.info.source)
        return processed(log, *more)

    monkeypatch.setattr(stages, "read_copy", reading)
    monkeypatch.setattr("armid.reporting.evidence.read_copy", reading)
    monkeypatch.setattr(pipeline, "_processed", processing)
    settings = {"robot": "ir361", "log": (str(finished[0] / "training.parquet"),), "to": ("none",)}
    run(make_settings(settings), tmp_path / "once")
    assert sorted(counts["read"]) == ["training.parquet", "validation.parquet"]
    assert len(counts["processed"]) == 2


def test_a_second_run_does_nothing(finished):
    folder, first = finished
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and path.name != "run.json"}
    again = run(make_settings(SMALL), folder)
    assert all(stage.kept for stage in again.stages)
    assert again.numbers == first.numbers
    assert stamps == {path: path.stat().st_mtime_ns for path in stamps}


@pytest.mark.parametrize("name", ["audit", "inspection", "validation"])
@pytest.mark.parametrize("forged", ["{}", '{"possible": 7, "logs": {"a": {"findings": [{"code": []}]}}}', "[" * 20_000])
def test_forged_results_are_refused_in_a_sentence(finished, tmp_path, name, forged):
    """A folder from elsewhere may hold other results, under marks that say they are a stage's own."""
    folder = shutil.copytree(finished[0], tmp_path / "copy")
    (folder / f"{name}.json").write_text(forged)
    settings = make_settings(SMALL)
    place = Workplace(folder, settings, lambda text, share: None, robot_digest(robot_of(settings)))
    for stage in stages_of(settings):  # as one who knows how marks are made would leave them
        files = {file: file_hash(folder / file) for file in stage.writes}
        mark = {"key": _key(stage, place), "files": files, "seconds": 1.0}
        (folder / ".stages" / f"{stage.name}.json").write_text(json.dumps(mark))
    with pytest.raises(ArmidError, match=f"{name}.json: "):
        run(settings, folder)


@pytest.mark.parametrize("mark", ['{"key": "", "files": {"NAME": ""}, "seconds": 1}', '{"seconds": {}}', "[" * 20_000])
def test_forged_marks_remove_nothing_elsewhere(finished, tmp_path, mark):
    """A mark names the files that a stage no longer makes; none outside the folder, and a broken one counts as none."""
    folder = shutil.copytree(finished[0], tmp_path / "copy")
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    for name in ("../mine.txt", str(mine)):
        (folder / ".stages" / "old.json").write_text(mark.replace("NAME", name))
        run_stages(make_settings(SMALL), folder, "model")
        assert mine.read_text() == "mine"


def test_a_link_for_the_marks_is_refused(finished, tmp_path):
    """It could lead to a folder of other files, of which those that are no marks would be removed."""
    folder, elsewhere = shutil.copytree(finished[0], tmp_path / "copy"), tmp_path / "elsewhere"
    (folder / ".stages").rename(elsewhere)
    (elsewhere / "mine.json").write_text("{}")
    (folder / ".stages").symlink_to(elsewhere)
    with pytest.raises(ArmidError, match="is a link"):
        run(make_settings(SMALL), folder)
    assert (elsewhere / "mine.json").exists()


def test_a_changed_setting_repeats_what_depends_on_it(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "copy")
    again = run(make_settings({**SMALL, "method": "wls", "to": ("none",)}), tmp_path / "copy")
    kept = {stage.stage: stage.kept for stage in again.stages}
    assert kept["excitation"]
    assert kept["inspection"]
    assert not kept["identification"]
    assert not kept["report"]
    assert "export" not in kept


def test_logs_of_the_user_take_the_place_of_the_virtual_robot(finished, tmp_path, capsys):
    folder, _ = finished
    logs = ["--log", str(folder / "training.parquet"), "--validation", str(folder / "validation.parquet")]
    assert main(["run", "ir361", *logs, "--to", "none", "-o", str(tmp_path / "mine"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {stage["stage"] for stage in data["stages"]}.isdisjoint({"design", "warmup", "excitation"})
    np.testing.assert_allclose(
        load_fit(tmp_path / "mine" / "fit.json").values, load_fit(folder / "fit.json").values, rtol=1e-9
    )


def test_without_validation_logs_a_part_is_kept_for_it(finished, tmp_path):
    folder, _ = finished
    run(Settings(robot="ir361", log=(str(folder / "training.parquet"),), to=("none",)), tmp_path / "part")
    whole = read_log(folder / "training.parquet")
    first, rest = (read_log(tmp_path / "part" / f"{name}.parquet") for name in ("training", "validation"))
    assert (len(first), len(rest)) == (1200, 600)  # whole periods of 600 samples
    np.testing.assert_array_equal(np.vstack([first["effort"], rest["effort"]]), whole["effort"])


def test_changed_files_are_noticed_wherever_they_are_read_from(finished, tmp_path, monkeypatch):
    """The robot's own file, a file it names, and a log that a recipe names."""
    monkeypatch.chdir(tmp_path)
    examples = Path(__file__).parents[2] / "examples"
    for name in ("arm.yaml", "arm.urdf"):
        shutil.copy(examples / name, name)
    settings = make_settings({**SMALL, "robot": "arm.yaml", "periods": 2, "to": ("none",)})
    keys = [_keys(settings)]
    for name, old, new in (("arm.yaml", "[8.0, 8.0,", "[7.0, 8.0,"), ("arm.urdf", 'xyz="0.3 0 0"', 'xyz="0.31 0 0"')):
        text = Path(name).read_text()
        assert old in text
        Path(name).write_text(text.replace(old, new))
        keys.append(_keys(settings))
    assert len(set(keys)) == 3
    Path("recipe.yaml").write_text("joints: [a]\neffort: none\nrate: 10\nfiles: [m.csv]\ncolumns: {position: 1}\n")
    Path("m.csv").write_text("1\n2\n")
    (logs,) = (s for s in stages_of(make_settings({"robot": "ir361", "log": ("recipe.yaml",)})) if s.name == "logs")
    assert {Path(name).name for name in logs.outside} == {"recipe.yaml", "m.csv"}


def _keys(settings):
    return robot_digest(robot_of(settings))


def test_limits_that_a_file_does_not_state_have_stand_ins(tmp_path):
    """A URDF knows no accelerations: the plan is made all the same, and says what is assumed."""
    links = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for k in range(3)
    )
    joints = "".join(
        f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/><origin xyz="0.3 0 0.3"/>'
        '<axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="50"/></joint>'
        for k in (1, 2)
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    settings = make_settings({**SMALL, "robot": str(tmp_path / "arm.urdf")})
    assert robot_of(replace(settings, joints=("j2",))).joint_names == ("j2",)
    run_stages(settings, tmp_path / "run", "design")
    plan = load_plan(tmp_path / "run" / "plan.json")
    assert any(
        note.code == "excitation.assumed-limits" and "acceleration" in note.values["fields"] for note in plan.notes
    )


def test_an_error_of_the_doctor_stops_the_run(finished, tmp_path):
    """Degrees called radians: said at once, before anything is identified from them; whoever knows better goes on."""
    log = read_log(finished[0] / "training.parquet")
    write_log(log.with_channels({"position": np.degrees(log["position"])}), tmp_path / "degrees.parquet")
    settings = Settings(robot="ir361", log=(str(tmp_path / "degrees.parquet"),), to=("none",))
    with pytest.raises(ArmidError, match=r"degrees.* --accept degrees"):
        run(settings, tmp_path / "run")
    assert not (tmp_path / "run" / "fit.json").exists()
    run_stages(replace(settings, accept=("degrees", "velocity-scale")), tmp_path / "run", "inspection")


def test_parts_of_a_log_that_overlap_are_refused(finished, tmp_path):
    """What was trained on validates nothing."""
    log = (str(finished[0] / "training.parquet"),)
    with pytest.raises(ArmidError, match=r"--train 0:60% and --validate 50%:100% share rows of .*training.parquet"):
        run(Settings(robot="ir361", log=log, train="0:60%", validate="50%:100%", to=("none",)), tmp_path / "run")


def test_parts_of_a_log_whose_clock_was_set_back(finished, tmp_path):
    """They are those of the motion: 60 % of the rows, then the others, each with time that increases."""
    log = read_log(finished[0] / "training.parquet")
    back = np.where(np.arange(len(log)) < len(log) // 2, log.time, log.time - 0.3 * log.duration)
    write_log(Log(back, log.channels, log.info), tmp_path / "back.parquet")
    given = (str(tmp_path / "back.parquet"),)
    settings = Settings(robot="ir361", log=given, train="0:60%", validate="60%:100%", to=("none",))
    run_stages(settings, tmp_path / "run", "inspection")
    first, rest = (read_log(tmp_path / "run" / f"{name}.parquet") for name in ("training", "validation"))
    assert len(first) == pytest.approx(0.6 * len(log), abs=2)
    np.testing.assert_array_equal(np.vstack([first["position"], rest["position"]]), log["position"])
    assert all(np.all(np.diff(part.time) > 0.0) for part in (first, rest))


def test_a_log_of_another_robot_is_refused(finished, tmp_path, capsys):
    """As identify does: three joints of the same names are not enough."""
    log, folder = str(finished[0] / "training.parquet"), tmp_path / "run"
    robot = ["er16", "--links", "3"]
    for command in (["identify", *robot, log], ["run", *robot, "--log", log, "--to", "none", "-o", str(folder)]):
        assert main(command) == 2
        assert "robot: is 'ir361', not 'er16'" in capsys.readouterr().err
    assert not (folder / "fit.json").exists()


def test_what_cannot_be_exported_does_not_cost_the_report(finished, tmp_path):
    folder, _ = finished
    shutil.copytree(folder, tmp_path / "copy")
    outcome = run(make_settings({**SMALL, "method": "wls", "to": ("urdf", "c")}), tmp_path / "copy")
    assert "urdf not written" in outcome.note
    assert outcome.report.exists()
    assert {path.suffix for path in (tmp_path / "copy" / "exports").iterdir()} >= {".h"}
    assert not list((tmp_path / "copy" / "exports").glob("*.yaml"))  # of the run before


def test_a_path_that_the_arm_cannot_follow_costs_no_report(finished, tmp_path):
    """Ten metres away: the report is there and says so; numbers of tracking are missing, nothing else is."""
    folder = shutil.copytree(finished[0], tmp_path / "far")
    (tmp_path / "far.csv").write_text("time,x,y,z,qw,qx,qy,qz\n" + "".join(f"{t},10,0,0,1,0,0,0\n" for t in range(8)))
    (folder / "report.html").unlink()
    outcome = run(make_settings({**SMALL, "track": str(tmp_path / "far.csv")}), folder)
    assert "could not follow a path" in (folder / "report.html").read_text()
    assert outcome.numbers["tracking_error_m"] is None
    assert json.loads((folder / "tracking.json").read_text())["runs"] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "name a ROBOT"),
        (["run", "irr361"], "did you mean 'ir361'"),
        (["run", "ir361", "--log", "nowhere.csv"], "nowhere.csv: there is no such file"),
        (["run", "ir361", "--settings", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["run", "ir361", "--periods", "0"], "periods is 0"),
        (["run", "ir361", "--method", "wlss"], "did you mean 'wls'"),
        (["run", "ir361", "--friction", "stribek"], "did you mean 'stribeck'"),
        (["run", "ir361", "--to", "urdf,d"], "'d' is not known"),
        (["run", "ir361", "--accept", "zero-positon"], "did you mean 'zero-position'"),
        (["run", "ir361", "--track", "nowhere.csv"], "nowhere.csv"),
        (["run", "ir361", "--prior", "nowhere.yaml:0.1"], "nowhere.yaml"),
        (["run", "ir361", "--signals", "LowPas"], "LowPass"),
        (["run", "ir361", "--signals", "bad.yaml"], "bad.yaml: line 1, column 6: is not valid YAML"),
        (["run", "ir361", "--signals", "empty.yaml"], "empty.yaml: names no steps"),
        (["run", "ir361", "-o", "file/below"], "cannot be a folder"),
    ],
)
def test_bad_input_is_one_sentence(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("")
    Path("bad.yaml").write_text("[1, {")
    Path("empty.yaml").write_text("")
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert "excitation" not in error  # found before the first experiment
    assert not list(Path().glob("run-*"))


def _killed(folder, after):
    """Start a run as a process of its own and kill it in the stage that follows the first `after`; returns those."""
    command = [sys.executable, "-m", "armid", "run", "ir361", *FLAGS, "-o", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    marks, end = folder / ".stages", time.monotonic() + 120.0
    while len(list(marks.glob("*.json"))) < after:
        assert process.poll() is None, "the run ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.005)
    time.sleep(random.Random(after).uniform(0.0, 0.05))
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL  # it was still running
    return {mark.stem for mark in marks.glob("*.json")}


def _kill_and_go_on(finished, folder, moments):
    """Each kill lands inside a run; what had ended before the last one is kept, and the result is that of no kill."""
    for after in moments:
        ended = _killed(folder, after)
        assert "report" not in ended
    again = run(make_settings(SMALL), folder)
    assert ended <= {stage.stage for stage in again.stages if stage.kept}
    assert_same(folder, finished[0])


def test_killed_it_ends_with_the_same_result(finished, tmp_path):
    _kill_and_go_on(finished, tmp_path / "killed", (4,))


@pytest.mark.prove
def test_killed_in_every_stage_it_ends_with_the_same_result(finished, tmp_path):
    stages = len(finished[1].stages)
    for number in range(stages):
        _kill_and_go_on(finished, tmp_path / str(number), (number,))
    _kill_and_go_on(finished, tmp_path / "twice", (1, 4))
