"""`armid validate` on logs of a small arm."""

import json

import pytest

from tests.validation.arms import write_files


@pytest.fixture
def files(armid, tmp_path):
    """Logs, and a fit to one of them."""
    write_files(tmp_path)
    arguments = ("--friction", "linear", "--method", "wls", "-o", tmp_path / "fit.json")
    assert armid("identify", tmp_path / "planar.yaml", tmp_path / "train.csv", *arguments).code == 0
    return tmp_path


def test_good_on_other_data(armid, files):
    """Exit code 0, stable keys, a file that records its inputs."""
    result = armid("validate", files / "fit.json", files / "other.csv", "--json", "-o", files / "check.json")
    data = json.loads(result.out)
    assert (result.code, data["verdict"], data["same_as_training"]) == (0, "good", False)
    assert 0.0 < data["relative_error"] < 0.05
    keys = {"name", "rms", "nrms", "nrms_moving", "r2", "correlation", "mse", "noise_ratio"}
    assert keys <= set(data["joints"][0])
    assert len(json.loads((files / "check.json").read_text())["options"]["files_sha256"]) == 2


def test_training_data_are_refused(armid, files):
    """By its name or as a copy; allowed, the result says so."""
    (files / "copy.csv").write_bytes((files / "train.csv").read_bytes())
    for name in ("train.csv", "copy.csv"):
        refused = armid("validate", files / "fit.json", files / name)
        assert refused.code == 2
        assert "--allow-training" in refused.err
    allowed = armid("validate", files / "fit.json", files / "train.csv", "--allow-training", "--json")
    assert json.loads(allowed.out)["same_as_training"]


def test_a_poor_verdict_has_exit_code_1(armid, files):
    """Limits can be set; what misses them is named."""
    strict = armid("validate", files / "fit.json", files / "other.csv", "--nrms", "1e-4", "--noise-ratio", "0.01")
    assert strict.code == 1
    assert "poor" in strict.out
    assert "joint1" in strict.out


def test_another_low_pass(armid, files):
    """The comparison can be made at another frequency than the fit's."""
    result = armid("validate", files / "fit.json", files / "other.csv", "--low-pass", "2", "--json")
    assert json.loads(result.out)["pipeline"][-1]["cutoff_hz"] == 2.0


def test_bad_input(armid, files):
    """A limit below zero, a file that is no fit, a log that is not there."""
    assert armid("validate", files / "fit.json", files / "other.csv", "--nrms", "-1").code == 2
    assert armid("validate", files / "planar.yaml", files / "other.csv").code == 2
    missing = armid("validate", files / "fit.json", files / "nothing.csv")
    assert missing.code == 2
    assert "nothing.csv" in missing.err
