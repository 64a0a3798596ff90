"""`armid report` on the fit of a small arm."""

import json

import pytest

from armid.reporting import page
from tests.validation.arms import write_files


@pytest.fixture
def files(armid, tmp_path):
    """Logs, a fit and its validation."""
    write_files(tmp_path)
    arguments = ("--friction", "linear", "--method", "wls", "-o", tmp_path / "fit.json")
    assert armid("identify", tmp_path / "planar.yaml", tmp_path / "train.csv", *arguments).code == 0
    assert armid("validate", tmp_path / "fit.json", tmp_path / "other.csv", "-o", tmp_path / "check.json").code == 0
    return tmp_path


def test_a_fit_and_its_validation(armid, files):
    """The page is written where -o says; --json lists sections and file."""
    arguments = ("--validation", files / "check.json", "--log", files / "other.csv", "-o", files / "page.html")
    result = armid("report", files / "fit.json", *arguments, "--json", "--title", "My arm")
    data = json.loads(result.out)
    assert (result.code, data["title"], data["files"]) == (0, "My arm", [str(files / "page.html")])
    sections = {section["name"]: section for section in data["sections"]}
    assert not sections["torque"]["empty"]
    assert sections["excitation"]["empty"]
    assert data["bytes"] == (files / "page.html").stat().st_size < 8_000_000


def test_a_log_alone_is_validated_on(armid, files):
    """Without --validation the given log takes its place; training data are called so."""
    armid("report", files / "fit.json", "--log", files / "other.csv")
    assert 'class="stamp good"' in (files / "report.html").read_text("utf-8")
    armid("report", files / "fit.json", "--log", files / "train.csv")
    assert "training data: no proof" in (files / "report.html").read_text("utf-8")


def test_the_validation_of_another_fit_is_refused(armid, files):
    """Another fit of the same log, and a fit of the log that was validated on; the page is not written."""
    common = ("--method", "wls", "-o", files / "fit2.json")
    for log, friction in (("train.csv", "stribeck"), ("other.csv", "linear")):
        result = armid("identify", files / "planar.yaml", files / log, "--friction", friction, *common)
        assert result.code == 0, result.err
        result = armid("report", files / "fit2.json", "--validation", files / "check.json")
        assert (result.code, result.out) == (2, "")
        assert "armid validate" in result.err
        assert len(result.err.strip().splitlines()) == 1
    assert not (files / "report.html").exists()


def test_the_folder_of_a_run(armid, files):
    """What lies in the folder is found, and the page is written into it."""
    (files / "check.json").rename(files / "validation.json")
    result = armid("report", files)
    assert result.code == 0
    assert "its error is" in result.out
    assert (files / "report.html").exists()


def test_bad_input(armid, files, tmp_path, monkeypatch):
    """Each mistake is one sentence and exit code 2, and nothing is written."""
    (tmp_path / "empty").mkdir()
    (files / "odd.json").write_text('{"joints": [{"joint": "a", "drop": 0.1, "time": 3, "means": []}]}')
    cases = {
        (files / "planar.yaml",): "is not JSON",
        (files / "check.json",): "is not a fit",
        (tmp_path / "empty",): "holds no fit.json",
        (files / "nothing.json",): "there is no such file",
        (files / "fit.json", "--validation", files / "fit.json"): "is not a validation",
        (files / "fit.json", "--plan", files / "fit.json"): "is not a plan",
        (files / "fit.json", "--warmup", files / "odd.json"): "warmup.json: joints[1].time: must be a list",
        (files / "fit.json", "-o", files / "fit.json"): "cannot be written too",
        (files / "fit.json", "-o", files / "no" / "page.html"): "there is no folder",
    }
    for arguments, words in cases.items():
        result = armid("report", *arguments)
        assert (result.code, result.out) == (2, "")
        assert words in result.err
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    result = armid("report", files / "fit.json")
    assert result.code == 2
    assert "armid[report]" in result.err
    assert not (files / "report.html").exists()
