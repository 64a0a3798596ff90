"""`armid track` with a small arm."""

import json

import pytest

from armid.cli.options import check_pictures
from tests.control.arms import circle_csv, fitted, small_arm

pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A fit of a small arm and a path it can follow."""
    folder = tmp_path_factory.mktemp("track")
    robot = small_arm(folder)
    fitted(robot).save(folder / "fit.json")
    circle_csv(robot, folder / "circle.csv", seconds=1.5)
    return folder


def test_comparison(armid, files, tmp_path):
    """A table, a file with series, pictures; computed torque is better than PID; nominal is left out with a reason."""
    pytest.importorskip("matplotlib")
    result = armid(
        "track", files / "fit.json", files / "circle.csv", "-o", tmp_path / "out.json", "--pictures", tmp_path
    )
    assert result.code == 0, result.err
    assert "computed torque, identified model" in result.out
    assert "Without the nominal model" in result.out
    data = json.loads((tmp_path / "out.json").read_text())
    errors = {run["controller"]: run["mean_cartesian_error"] for run in data["runs"]}
    assert set(errors) == {"pid", "feedforward", "computed-torque"}
    assert errors["computed-torque"] < 0.3 * errors["pid"]
    assert data["options"]["seed"] == 0
    assert len(list(tmp_path.glob("small-tracking-*.png"))) == 3


def test_json(armid, files):
    """One object with the figures and without series."""
    arguments = ("--controller", "computed-torque", "--bandwidth", "4", "--json", "--seed", "3")
    result = armid("track", files / "fit.json", files / "circle.csv", *arguments)
    assert result.code == 0, result.err
    data = json.loads(result.out)
    assert data["gains"]["bandwidth_hz"] == pytest.approx([4.0] * 3)
    (run,) = data["runs"]
    keys = {"max_joint_error", "mean_cartesian_error", "max_cartesian_error", "feedback_share", "timing", "computing"}
    assert keys <= set(run)
    assert "series" not in run
    assert run["timing"]["steady"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "pa10-figure"),
        (["circle.csv", "--controller", "lqr"], "computed-torque"),
        (["circle.csv", "--controller", "nominal"], "no nominal inertia"),
        (["circle.csv", "--bandwidth", "-1"], "bandwidth"),
        (["circle.csv", "--bandwidth", "1", "2"], "one for each"),
        (["circle.csv", "--cycle", "0"], "--cycle 0"),
        (["circle.csv", "--robot", "pa10"], "the fit is of"),
        (["circle.csv", "--pictures", "fit.json"], "cannot be a folder"),
        (["circle.csv", "--laps", "2"], "circle.csv: is an open path"),
        (["circle.csv", "-o", "none/out.json"], "there is no folder"),
        (["pa10-figure"], "cannot reach"),
    ],
)
def test_bad_input(armid, files, arguments, words, monkeypatch):
    """One sentence and exit code 2."""
    monkeypatch.chdir(files)
    result = armid("track", "fit.json", *arguments)
    assert result.code == 2
    assert words in result.err
    assert result.err.count("\n") == 1


def test_pictures_make_their_folder(armid, files, tmp_path):
    """A folder that is missing is made, with those above it."""
    pytest.importorskip("matplotlib")
    folder = tmp_path / "a" / "b"
    result = armid("track", files / "fit.json", files / "circle.csv", "--controller", "pid", "--pictures", folder)
    assert result.code == 0, result.err
    assert len(list(folder.glob("*.png"))) == 3


def test_experiments_of_single_joints_make_it_too(tmp_path):
    """All commands that draw share the check of where to."""
    pytest.importorskip("matplotlib")
    folder = tmp_path / "c" / "d"
    check_pictures(str(folder))
    assert folder.is_dir()
