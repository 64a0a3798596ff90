"""Parquet files of others and damaged ones, paths that lead nowhere, and packages that are not installed."""

import sys
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armid.errors import ArmidError, MissingExtraError
from armid.logs import LogError, Recipe, open_log, read_log, write_log
from tests.logs.samples import random_log


def recipe(columns, effort="none"):
    return Recipe.parse(f"joints: [a]\neffort: {effort}\ncolumns: {columns}")


def test_parquet_of_others(tmp_path):
    """Integers, single precision, missing values and points in time become seconds and float64."""
    start = datetime(2024, 5, 1)
    table = pa.table(
        {
            "when": pa.array([start + timedelta(milliseconds=10 * k) for k in range(3)], pa.timestamp("us")),
            "q": pa.array([1, None, 3], pa.int32()),
            "v": pa.array([0.5, 1.5, None], pa.float32()),
            "state": ["a", "b", "c"],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    log = read_log(tmp_path / "t.parquet", recipe("{time: when, position: q, velocity: v}"))
    np.testing.assert_allclose(np.diff(log.time), 0.01, atol=1e-6)
    np.testing.assert_array_equal(log["position"][:, 0], [1, np.nan, 3])
    np.testing.assert_array_equal(log["velocity"][:, 0], [0.5, 1.5, np.nan])
    with pytest.raises(LogError, match="state: holds string, not numbers"):
        read_log(tmp_path / "t.parquet", recipe("{time: when, position: state}"))
    with pytest.raises(LogError, match=r"columns.position: there is no column 'w'; it has: when, q, v, state"):
        read_log(tmp_path / "t.parquet", recipe("{time: when, position: w}"))
    with pytest.raises(LogError, match="needs a recipe that says which column is what"):
        read_log(tmp_path / "t.parquet")


def test_damaged_parquet(tmp_path):
    """Cut off anywhere, changed bytes, something else with that suffix: refused, or read without harm."""
    log = random_log(samples=300)
    path = tmp_path / "x.parquet"
    write_log(log, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    broken = [whole[:cut] for cut in (0, 3, 4, 12, 100, len(whole) // 2, len(whole) - 1)]
    broken += [b"time,position.a\n0,1\n", rng.bytes(4000)]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(LogError) as caught:
            read_log(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    for _ in range(60):
        changed = bytearray(whole)
        changed[int(rng.integers(len(whole)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(changed))
        try:
            result = read_log(path)
        except LogError:
            continue
        if set(result.channels) == set(log.channels) and result.joints == log.joints:
            np.testing.assert_array_equal(result["effort"], log["effort"])


def test_newer_parquet(tmp_path):
    """A later version of the format asks for an update."""
    write_log(random_log(), tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    pq.write_table(
        table.replace_schema_metadata(table.schema.metadata | {b"armid.log.version": b"2"}), tmp_path / "x.parquet"
    )
    with pytest.raises(LogError, match=r"armid.log.version: is '2'; please update armid"):
        read_log(tmp_path / "x.parquet")


def test_content_goes_before_suffix(tmp_path):
    """A Parquet file is recognised whatever its name is."""
    write_log(random_log(), tmp_path / "x.parquet")
    (tmp_path / "x.parquet").rename(tmp_path / "x.csv")
    np.testing.assert_array_equal(read_log(tmp_path / "x.csv")["effort"], random_log()["effort"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "mcap", "mat", "yaml", "txt", "db3"])
def test_paths_that_lead_nowhere(tmp_path, suffix):
    """Missing files (with the nearest name), folders, empty files, impossible and too long names."""
    (tmp_path / f"folder.{suffix}").mkdir()
    (tmp_path / f"empty.{suffix}").touch()
    (tmp_path / f"measurement.{suffix}").touch()
    for name in ("missing", "folder", "empty", "nu\0l", "x" * 300, "empty.csv/inside"):
        for made in (None, recipe("{time: 1, position: 2}"), "ur10e", "no-such-recipe", tmp_path / "no.yaml"):
            with pytest.raises(ArmidError) as caught:
                read_log(f"{tmp_path}/{name}.{suffix}", made)
            assert "\n" not in str(caught.value)
    with pytest.raises(LogError, match=f"there is no such file, did you mean 'measurement.{suffix}'"):
        read_log(tmp_path / f"mesurement.{suffix}")


def test_no_files_and_no_rows():
    """An empty list of files, and blocks of no size."""
    with pytest.raises(LogError, match="there is no file to read"):
        read_log([])


def test_blocks_of_no_size(tmp_path):
    """A block has at least one sample."""
    write_log(random_log(), tmp_path / "x.csv")
    with pytest.raises(LogError, match="cannot be read in blocks of 0 samples"):
        list(open_log(tmp_path / "x.csv").blocks(0))


def test_effort_that_contradicts_the_file(tmp_path):
    """What the file or the recipe says is not overruled in silence."""
    write_log(random_log(), tmp_path / "x.csv")
    assert read_log(tmp_path / "x.csv", effort="joint torque").info.effort == "joint torque"
    with pytest.raises(LogError, match="effort: is 'joint torque' in the file, but 'current' is asked for"):
        read_log(tmp_path / "x.csv", effort="current")
    with pytest.raises(LogError, match="effort: is 'none' there, but 'current' is asked for"):
        read_log(tmp_path / "x.csv", recipe("{time: 1, position: 2}"), effort="current")


@pytest.mark.parametrize(
    ("package", "suffix", "extra"), [("pyarrow", "parquet", "parquet"), ("rosbags", "mcap", "ros")]
)
def test_missing_extras(tmp_path, monkeypatch, package, suffix, extra):
    """Without the package one is told how to install it; CSV needs none."""
    write_log(random_log(), tmp_path / f"x.{suffix}")
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    for call in (lambda: read_log(tmp_path / f"x.{suffix}"), lambda: write_log(random_log(), tmp_path / f"y.{suffix}")):
        with pytest.raises(MissingExtraError, match=rf"pip install 'armid\[{extra}\]'"):
            call()
    write_log(random_log(), tmp_path / "x.csv")
    read_log(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("arm.urdf", "<?xml version='1.0'?>\n<robot name='a'/>", "is XML, such as a robot description, not a log"),
        ("arm.xml", "\ufeff  <mujoco/>", "is XML"),
        ("plan.json", '{"format": "armid plan 1"}', "is JSON, such as a plan or a fit, not a log"),
        ("list.json", "[1, 2]", "is JSON"),
    ],
)
def test_other_kinds_of_files(tmp_path, name, text, words):
    """A robot description or a plan is called what it is; nobody is asked for a recipe of its lines."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    for made in (None, recipe("{time: 1, position: 2}")):
        with pytest.raises(LogError, match=words):
            read_log(tmp_path / name, made)


def test_hints_offer_files_that_are_alike(tmp_path):
    """Neither folders nor far-off names are offered for a missing file."""
    (tmp_path / "run-nosuch").mkdir()
    (tmp_path / "run-other.csv").touch()
    with pytest.raises(LogError, match=r"there is no such file$"):
        read_log(tmp_path / "run-nosuch.csv")


def test_parquet_bomb(tmp_path):
    """A few kilobytes that say they hold a billion numbers."""
    count = 5_000_000
    table = pa.table({f"c{k}": np.zeros(count, dtype=np.float32) for k in range(40)})
    pq.write_table(table, tmp_path / "x.parquet", compression="zstd")
    assert (tmp_path / "x.parquet").stat().st_size < 1_000_000
    with pytest.raises(LogError, match="far more than its size"):
        open_log(tmp_path / "x.parquet", recipe("{time: c0, position: c1}"))


def test_a_field_of_a_hundred_thousand_characters(tmp_path):
    """In the header or below it: the limit of the csv module is a sentence."""
    for text in ("time,position.a\n0," + "1" * 140_000 + "x\n", "time,position." + "a" * 140_000 + "\n0,1\n"):
        (tmp_path / "x.csv").write_text(text)
        with pytest.raises(LogError, match="field larger than field limit"):
            read_log(tmp_path / "x.csv")
