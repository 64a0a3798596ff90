"""armid fleet: simulate and identify from the command line, exit codes, and bad input in one sentence."""

import json

import pytest

from armid.cli.main import parser
from armid.errors import ArmidError
from armid.fleet.description import load_fleet
from tests.fleet.arms import arm_file, write_fleet


def command(*words):
    """Run the command as the entry point does; returns its exit code."""
    options = parser().parse_args(["fleet", *map(str, words)])
    return options.run(options)


def test_simulated_and_identified(tmp_path, capsys):
    """Two arms, two days: files are there, JSON has the keys, a second run keeps everything."""
    arm_file(tmp_path)
    home = tmp_path / "hall"
    assert command("simulate", tmp_path / "arm.yaml", "--robots", 2, "--days", 2, "-o", home, "--seed", 4) == 0
    assert "2 arms, 2 days" in capsys.readouterr().out
    assert (home / "fleet.yaml").read_text().splitlines()[1] == "robot: ../arm.yaml"
    assert len(list(home.rglob("log.parquet"))) == 4
    assert command("identify", home / "fleet.yaml", "-o", home / "result", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {"watch", "arms", "problems", "parameters", "summary", "files"} <= set(data)
    assert data["summary"]["kept"] == 0
    assert command("identify", home, "--quiet") == 0  # the folder's fleet.yaml, results beside it
    assert "4 known from before" in capsys.readouterr().out


def test_bad_recordings_are_exit_code_one(tmp_path, capsys):
    """One damaged file of two: a summary that names it, and exit code 1."""
    file = write_fleet(tmp_path, 1, 2)
    path = sorted((tmp_path / "logs").rglob("*.parquet"))[1]
    path.write_bytes(b"nonsense")
    assert command("identify", file, "-o", tmp_path / "result") == 1
    out = capsys.readouterr().out
    assert "1 recording could not be used" in out
    assert "arm001 2026-03-02, log.parquet: " in out
    assert "logs/robot=" not in out  # the file is named once


def test_a_long_list_is_cut(tmp_path, capsys):
    """Of many recordings that could not be used the console shows ten lines, and says where the others are."""
    file = write_fleet(tmp_path, 1, 1)
    for day in range(1, 26, 2):
        place = tmp_path / "logs" / "robot=arm002" / f"date=2026-04-{day:02d}"
        place.mkdir(parents=True)
        (place / f"log{day}.csv").write_text("")
    assert command("identify", file, "-o", tmp_path / "result", "--quiet") == 1
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("13 recordings could not be used:")
    assert len([line for line in lines[start + 1 :] if line.startswith("  arm002 2026-04-")]) == 10
    assert lines[start + 11] == "  … and 3 more, see fleet.html"


def test_numbers_of_one(tmp_path, capsys):
    """One arm, two days, one fault; options of the robot end up in the fleet file."""
    arm_file(tmp_path)
    home = tmp_path / "hall"
    words = ["--robots", 1, "--days", 2, "--faults", 1, "--links", 3, "--no-rotors", "--points", 2]
    assert command("simulate", tmp_path / "arm.yaml", "-o", home, *words) == 0
    assert "1 arm, 2 days, 1 fault planted" in capsys.readouterr().out
    assert load_fleet(home / "fleet.yaml").robot.n_joints == 3
    with pytest.raises(ArmidError, match="was made with other options"):
        command("simulate", tmp_path / "arm.yaml", "-o", home, *words, "--seed", 1)


@pytest.mark.parametrize("place", ["fleet.json", "fleet.html", "robots/arm001"])
def test_what_is_in_the_way_is_found_before_the_work(tmp_path, place):
    """A folder in the place of a file, and a file in that of a folder: nothing is read first."""
    file, target = write_fleet(tmp_path, 1, 1), tmp_path / "result" / place
    if "." in place:
        target.mkdir(parents=True)
    else:
        target.parent.mkdir(parents=True)
        target.write_text("")
    with pytest.raises(ArmidError, match=place):
        command("identify", file, "-o", tmp_path / "result", "--quiet")
    assert not (tmp_path / "result" / "factors").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["identify", "no.yaml", "-o", "x"], "no.yaml"),
        (["identify", "fleet.yaml", "-o", "x", "--false-alarms", "0"], "false_alarms is 0"),
        (["identify", "fleet.yaml", "-o", "x", "--workers", "-1"], "--workers -1"),
        (["identify", "odd.yaml", "-o", "x"], "cutoff_hz"),
        (["identify", "lost.yaml", "-o", "x"], "is not there"),
        (["simulate", "arm.yaml", "--robots", "0", "--days", "1", "-o", "x"], "at least one"),
        (["simulate", "arm.yaml", "--robots", "1", "--days", "1", "-o", "arm.yaml"], "cannot be a folder"),
        (["simulate", "arm.yaml", "--robots", "2", "--days", "1", "--faults", "3", "-o", "x"], "3 faults need"),
        (
            ["simulate", "arm.yaml", "--robots", "2", "--days", "1", "--poor", "2", "-o", "x"],
            "--poor 2: must be",
        ),
        (["simulate", "arm.yaml", "--robots", "1", "--days", "1", "--faults", "1", "-o", "x"], "at least 2 days"),
        (
            ["simulate", "arm.yaml", "--robots", "1", "--days", "1", "--rate", "1e9", "-o", "x"],
            "--rate 1e9: must be",
        ),
        (["simulate", "arm.yaml", "--robots", "1", "--days", "1", "--points", "99999", "-o", "x"], "points is 99999"),
        (["simulate", "arm.yaml", "--robots", "1", "--days", "100000000", "-o", "x"], "at most 10000 days"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, words, message):
    """Each mistake is named, before any work is done."""
    write_fleet(tmp_path, 1, 1)
    (tmp_path / "odd.yaml").write_text("robot: arm.yaml\nlogs: logs\nsignals: [{step: LowPass, cutoff_hz: auto}]\n")
    (tmp_path / "lost.yaml").write_text("robot: arm.yaml\nlogs: elsewhere\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArmidError) as error:
        command(*words)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "x").exists()  # nothing is left of what did not begin
