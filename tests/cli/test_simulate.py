"""`armid simulate`: a log from the virtual robot, honest about how it was made."""

import json

import numpy as np
import pytest

from armid.excitation import FourierSeries
from armid.excitation.trajectory import save_trajectory
from armid.logs import read_log


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "wave.json"
    rng = np.random.default_rng(0)
    save_trajectory(FourierSeries(0.2, (1, 2), *rng.normal(scale=0.1, size=(2, 3, 2)), np.full(3, 0.1)), path)
    return path


def test_log_of_whole_periods(armid, trajectory, tmp_path):
    out = tmp_path / "log.parquet"
    result = armid("simulate", "er16", trajectory, "-o", out, "--links", 3, "--periods", 2, "--rate", 100, "--json")
    assert result.code == 0, result.err
    data = json.loads(result.out)
    assert data["rows"] == 1000
    assert data["period_s"] == 5.0
    assert data["faster_than_real_time"] > 1.0
    log = read_log(out)
    assert len(log) == 1000
    assert log.info.history["seed"] == 0
    assert len(log.info.history["plan_sha256"]) == 64
    periods = log["position"].reshape(2, 500, 3)
    assert np.abs(periods[0] - periods[1]).max() < 1e-3


def test_same_seed_same_log_and_other_noise_with_another(armid, trajectory, tmp_path):
    logs = []
    for seed, name in ((1, "a.csv"), (1, "b.csv"), (2, "c.csv")):
        assert armid("simulate", "er16", trajectory, "-o", tmp_path / name, "--seed", seed, "--rate", 100).code == 0
        logs.append(read_log(tmp_path / name)["effort"])
    assert np.array_equal(logs[0], logs[1])
    assert not np.array_equal(logs[0], logs[2])


def test_point_to_point(armid, tmp_path):
    out = tmp_path / "ptp.csv"
    result = armid("simulate", "er16", "--points", 4, "-o", out, "--rate", 100, "--perfect")
    assert result.code == 0, result.err
    assert np.ptp(read_log(out)["position"], axis=0).min() > 0.1


def test_payload_shows_in_the_torque(armid, trajectory, tmp_path):
    efforts = []
    for name, extra in (("empty.csv", ()), ("loaded.csv", ("--payload", 5, 0, 0, 0.1))):
        armid("simulate", "er16", trajectory, "-o", tmp_path / name, "--rate", 100, "--perfect", *extra)
        efforts.append(read_log(tmp_path / name)["effort"])
    assert np.abs(efforts[1] - efforts[0]).max() > 10.0


def test_a_payload_that_takes_the_place_of_another(armid):
    result = armid("simulate", "kr15", "--points", 2, "--rate", 50, "--perfect", "--payload", 1, 0, 0, 0.1)
    assert "--payload is carried instead of the description's own payload of 9.58 kg" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("simulate", "er16"), "either a PLAN file or --points"),
        (("simulate", "er16", "none.json"), "none.json"),
        (("simulate", "er16", "--points", 4, "--drop", 1.5), "--drop 1.5: must be at most 1"),
        (("simulate", "er16", "--points", 4, "--payload", 1, 2), "--payload has 2 numbers"),
        (("simulate", "er16", "--points", 4, "-o", "nowhere/log.csv"), "there is no folder"),
        (("simulate", "er16", "--points", 4, "-o", "log.foo"), "use one of: .parquet, .csv, .mcap"),
        (("simulate", "er16", "--points", 4, "--current"), "current_gain"),
        (("simulate", "er16", "--points", 4, "--noise", 1, 2), "torque_noise has 2 values"),
        (("simulate", "er16", "--points", 4, "--rate", 0), "--rate 0: must be at least"),
    ],
)
def test_bad_input(armid, arguments, words):
    result = armid(*arguments)
    assert result.code == 2
    assert words in result.err
    assert len(result.err.strip().splitlines()) == 1


@pytest.mark.parametrize("text", ["[1, 2]", '{"a": 1}', "nonsense"])
def test_a_file_that_is_no_plan(armid, tmp_path, text):
    """A sentence about plans, without the names that Python has for its errors."""
    path = tmp_path / "list.json"
    path.write_text(text)
    result = armid("simulate", "er16", path)
    assert result.code == 2
    assert "is not a plan" in result.err
    assert "Error" not in result.err


def test_without_output_it_says_that_nothing_is_kept(armid, trajectory):
    """The log of a simulation without -o is lost, and that is said."""
    result = armid("simulate", "er16", trajectory, "--rate", 100)
    assert result.code == 0
    assert "give -o LOG" in result.out


def test_period_that_does_not_fit_the_rate(armid, trajectory):
    result = armid("simulate", "er16", trajectory, "--rate", 33.3)
    assert result.code == 2
    assert "whole number" in result.err


def test_suffix_is_refused_before_simulating(armid, monkeypatch):
    """An ending that cannot be written costs no simulation."""

    def driven(*args):
        raise AssertionError("it was simulated")

    monkeypatch.setattr("armid.cli.recordings._driven", driven)
    assert armid("simulate", "er16", "--points", 4, "-o", "log.foo").code == 2
