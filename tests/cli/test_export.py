"""`armid export`: files, proofs, what is left out, and what it refuses."""

import importlib
import json
import os

import pytest

from tests.validation.arms import write_files

main = importlib.import_module("armid.cli.main")


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """A physically possible fit of a small arm, and one with base parameters only."""
    folder = write_files(tmp_path_factory.mktemp("fits"))
    for name, method in (("fit", "feasible"), ("base", "wls")):
        arguments = [folder / "planar.yaml", folder / "train.csv", "--method", method, "--friction", "linear"]
        assert main.main(["identify", *map(str, arguments), "-o", str(folder / f"{name}.json"), "--quiet"]) == 0
    return folder


def test_all_formats(armid, fits, tmp_path):
    """Every file is there, proved, and named; text for people says the same."""
    result = armid("export", fits / "fit.json", "--to", "urdf,mjcf,c,python,yaml", "-o", tmp_path / "out", "--json")
    assert result.code == 0, result.err
    data = json.loads(result.out)
    names = ["planar.urdf", "planar.xml", "planar_dynamics.h", "planar_dynamics.py", "planar.yaml"]
    assert data["files"] == [str(tmp_path / "out" / name) for name in (*names, "EXPORT.json", "EXPORT.md")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*names, "EXPORT.json", "EXPORT.md"])
    assert [proof["file"] for proof in data["proofs"]] == names
    for proof in data["proofs"]:
        assert set(proof) >= {"file", "against", "error", "states"}
        assert proof["error"] is None or proof["error"] < 1e-9
    lost = {(row["file"], row["what"]) for row in data["cannot_hold"]}
    assert ("planar.urdf", "constant torque (offset of friction or sensor)") in lost
    assert str(fits / "fit.json") in data["history"]["files_sha256"]
    again = armid("export", fits / "fit.json", "--to", "c", "-o", tmp_path / "text")
    assert "Proved with" in again.out or "not proved" in again.out
    assert f"wrote {tmp_path / 'text' / 'planar_dynamics.h'}" in again.out


def test_the_exported_file_goes_on(armid, fits, tmp_path):
    """armid itself takes what it wrote."""
    assert armid("export", fits / "fit.json", "--to", "yaml,urdf", "-o", tmp_path).code == 0
    assert armid("audit", tmp_path / "planar.urdf").code == 0
    result = armid("robots", tmp_path / "planar.yaml")
    assert result.code == 0, result.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["fit.json", "--to", "udf", "-o", "out"], "did you mean 'urdf'"),
        (["fit.json", "--to", ",", "-o", "out"], "no format is named"),
        (["base.json", "--to", "urdf", "-o", "out"], "armid identify --method feasible"),
        (["fit.json", "--to", "c", "-o", "fit.json"], "cannot be a folder"),
        (["train.csv", "--to", "c", "-o", "out"], "is not JSON"),
        (["none.json", "--to", "c", "-o", "out"], "no such file"),
        (["fit.json", "--to", "urdf", "-o", "out", "--urdf", "none.urdf"], "no such file"),
        (["fit.json", "--to", "urdf", "-o", "out", "--urdf", "train.csv"], "is not valid XML"),
    ],
)
def test_bad_input(armid, fits, monkeypatch, arguments, problem):
    """One sentence, exit code 2, nothing written."""
    monkeypatch.chdir(fits)
    result = armid("export", *arguments)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (fits / "out").exists()


def test_a_file_that_is_not_kept(armid, fits, tmp_path, monkeypatch):
    """The others are written; the reason is told in text and JSON, and the exit code is 1."""
    monkeypatch.setattr("armid.exporting.python.python_module", lambda *_: b"raise ValueError('no')\n")
    result = armid("export", fits / "fit.json", "--to", "python,yaml", "-o", tmp_path, "--json")
    data = json.loads(result.out)
    assert (result.code, [row["format"] for row in data["refused"]]) == (1, ["python"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["EXPORT.json", "EXPORT.md", "planar.yaml"]
    again = armid("export", fits / "fit.json", "--to", "python,yaml", "-o", tmp_path)
    assert again.code == 1
    assert "planar_dynamics.py: was not kept and not run, because it holds what armid does not write" in again.out


def test_folder_without_permission(armid, fits, tmp_path, monkeypatch):
    """Found out before the proofs, also for a folder that would have to be made."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **more: path != tmp_path and allowed(path, mode, **more))
    for folder in (tmp_path, tmp_path / "new" / "deep"):
        result = armid("export", fits / "fit.json", "--to", "c", "-o", folder)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"armid: error: {folder}: cannot be written (you may not ")
    assert list(tmp_path.iterdir()) == []


def test_masses_are_told(armid, fits, tmp_path):
    """EXPORT.md of a fit by `armid identify` says which masses the data determine, and names no springs."""
    assert armid("export", fits / "fit.json", "--to", "mjcf,c", "-o", tmp_path).code == 0
    text = (tmp_path / "EXPORT.md").read_text("utf-8")
    assert "determined by the data" in text
    assert "spring" not in text


def test_base_parameters_for_programs(armid, fits, tmp_path):
    """C and Python need no links, and say what that means."""
    result = armid("export", fits / "base.json", "--to", "c,python", "-o", tmp_path, "--json")
    assert result.code == 0, result.err
    assert any(note["code"] == "exporting.base_only" for note in json.loads(result.out)["notes"])
