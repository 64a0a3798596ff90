"""`armid predict` on a log and a plan of a small arm."""

import csv
import json

import numpy as np
import pytest

from armid.excitation.fourier import FourierSeries
from armid.excitation.trajectory import save_trajectory
from tests.validation.arms import write_files


@pytest.fixture
def files(armid, tmp_path):
    """Logs, and a fit to one of them."""
    write_files(tmp_path)
    arguments = ("--friction", "linear", "--method", "wls", "-o", tmp_path / "fit.json")
    assert armid("identify", tmp_path / "planar.yaml", tmp_path / "train.csv", *arguments).code == 0
    return tmp_path


def read(path):
    """Columns of a prediction."""
    if path.suffix == ".csv":
        rows = list(csv.DictReader(path.read_text().splitlines()))
        return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    if path.suffix == ".json":
        data = json.loads(path.read_text())
        return {f"{key}.joint1": np.array(data[key])[:, 0] for key in ("torque", "lower", "upper", "measured")}
    parquet = pytest.importorskip("pyarrow.parquet")
    return {name: np.array(values) for name, values in parquet.read_table(path).to_pydict().items()}


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_a_log(armid, files, suffix):
    """A torque for every sample away from the ends, with the interval around it, near what was measured all along."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = files / f"torque.{suffix}"
    result = armid("predict", files / "fit.json", files / "other.csv", "-o", path)
    assert result.code == 0, result.err
    columns = read(path)
    assert 2700 < len(columns["torque.joint1"]) < 3000
    assert f"Left out {3000 - len(columns['torque.joint1'])} samples" in result.out
    assert np.all(columns["lower.joint1"] <= columns["torque.joint1"])
    error = columns["torque.joint1"] - columns["measured.joint1"]
    for part in (slice(None), slice(0, 100), slice(-100, None)):
        assert np.sqrt(np.mean(error[part] ** 2)) < 0.1 * columns["measured.joint1"].std()


def test_a_trajectory(armid, files):
    """A motion that has not been run yet; all of it in JSON where no file is asked for."""
    series = FourierSeries(0.1, (1, 2), np.full((2, 2), 0.2), np.full((2, 2), 0.1), np.zeros(2))
    save_trajectory(series, files / "motion.json")
    result = armid("predict", files / "fit.json", files / "motion.json", "--rate", "50", "--json", "--level", "0.5")
    data = json.loads(result.out)
    assert (result.code, data["samples"], data["level"]) == (0, 500, 0.5)
    assert len(data["torque"]) == 500


def test_bad_input(armid, files):
    """An unknown ending, a file that is no plan, two logs at once, a rate below zero."""
    assert ".csv, .json" in armid("predict", files / "fit.json", files / "other.csv", "-o", files / "x.txt").err
    assert armid("predict", files / "fit.json", files / "fit.json").code == 2
    assert armid("predict", files / "fit.json", files / "other.csv", files / "train.csv").code == 2
    assert armid("predict", files / "fit.json", files / "other.csv", "--rate", "-1").code == 2
