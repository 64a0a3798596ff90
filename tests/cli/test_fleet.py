"""armid fleet: simulate and identify from the command line, exit codes, and bad input in one sentence."""

import argparse
import json

import pytest

from armid.cli import fleet
from armid.errors import ArmidError
from tests.fleet.arms import arm_file, write_fleet


def command(*words):
    """Run the command as the entry point does; returns its exit code."""
    parser = argparse.ArgumentParser()
    made = fleet.add_parser(parser.add_subparsers())
    made.add_argument("--quiet", action="store_true")
    return fleet.run(parser.parse_args(["fleet", *map(str, words)]))


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
    assert command("identify", home / "fleet.yaml", "-o", home / "result", "--quiet") == 0
    assert "4 known from before" in capsys.readouterr().out


def test_bad_recordings_are_exit_code_one(tmp_path, capsys):
    """One damaged file of two: a summary that names it, and exit code 1."""
    file = write_fleet(tmp_path, 1, 2)
    path = sorted((tmp_path / "logs").rglob("*.parquet"))[1]
    path.write_bytes(b"nonsense")
    assert command("identify", file, "-o", tmp_path / "result") == 1
    out = capsys.readouterr().out
    assert "1 recording could not be used" in out
    assert "arm001 2026-03-02 log.parquet" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["identify", "no.yaml", "-o", "x"], "no.yaml"),
        (["identify", "fleet.yaml", "-o", "x", "--false-alarms", "0"], "false_alarms is 0"),
        (["identify", "fleet.yaml", "-o", "x", "--workers", "-1"], "--workers -1"),
        (["identify", "odd.yaml", "-o", "x"], "cutoff_hz"),
        (["identify", "lost.yaml", "-o", "x"], "is not there"),
        (["simulate", "arm.yaml", "--robots", "0", "--days", "1", "-o", "x"], "at least one"),
        (["simulate", "arm.yaml", "--robots", "1", "--days", "1", "-o", "arm.yaml"], "cannot be written"),
        (["simulate", "arm.yaml", "--robots", "2", "--days", "1", "--faults", "3", "-o", "x"], "3 faults need"),
        (["simulate", "arm.yaml", "--robots", "2", "--days", "1", "--poor", "2", "-o", "x"], "--poor 2"),
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
