"""`armid record`: what it prints, and how it ends."""

import json

import pytest

from armid.cli import main
from armid.logs import read_log
from tests.experiment.rtde_server import RtdeServer


@pytest.mark.filterwarnings("ignore::armid.errors.ArmidWarning")
def test_json_names_rows_gaps_and_findings(tmp_path, capsys):
    """One object, a dropped connection among the gaps, exit code 1 where it ended before its time."""
    path = tmp_path / "log.csv"
    with RtdeServer(fast=True, drop_after=1000, away=0.1, stop_after=3000) as server:
        words = ["record", server.address, "-o", str(path), "--seconds", "60", "--patience", "0.2", "--json"]
        assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == 3000
    assert found["ended"] == "connection lost"
    assert [(gap["rows"], gap["dropped"]) for gap in found["gaps"]] == [(50, True)]
    assert "gaps" in [finding["code"] for finding in found["findings"]]
    assert found["files"] == [str(path)]


def test_a_recording_is_overwritten_only_by_force(tmp_path, capsys):
    """The first one stays, before anything is recorded; with --force the second is there."""
    path = tmp_path / "log.csv"
    with RtdeServer(fast=True) as server:
        words = ["record", server.address, "-o", str(path), "--seconds"]
        assert main([*words, "4"]) == 1  # these numbers are no arm's, which the log doctor objects to
        first = path.read_bytes()
        assert main([*words, "2"]) == 2
        message = capsys.readouterr().err
        assert message.endswith(f"{path}: exists already; choose another name with -o or overwrite it with --force\n")
        assert path.read_bytes() == first
        assert main([*words, "2", "--force"]) == 1
    assert len(read_log(path)) == 1000


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["ur://127.0.0.1:1", "-o", "log.csv"], "cannot be reached"),
        (["ur://127.0.0.1:1"], "-o log.parquet"),
        (["ur://127.0.0.1:1", "-o", "log.txt"], "suffix"),
        (["tcp://robot", "-o", "log.csv"], "ur://HOST"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, words, problem):
    monkeypatch.chdir(tmp_path)
    assert main(["record", *words]) == 2
    message = capsys.readouterr().err
    assert problem in message
    assert message.count("\n") == 1
