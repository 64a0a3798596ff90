"""Arm-days: survive the disk bit by bit, and what is damaged is said to be."""

import zipfile

import numpy as np
import pytest

from armid.dynamics.factor import CompactFactor
from armid.errors import ArmidError
from armid.fleet.day import ArmDay, DayFinding, DayProblem, Store


def arm_day(factor=True):
    rng = np.random.default_rng(0)
    matrices = tuple(rng.standard_normal((n + 1, n + 1)) for n in (2, 3))
    made = CompactFactor(("a", "b", "c"), (np.array([0, 1]), np.array([0, 1, 2])), matrices, 50, False, (48, 50))
    return ArmDay(
        robot="left",
        date="2026-11-15",
        factor=made if factor else None,
        rms=np.array([0.1, np.nan]),
        inflation=np.array([1.0, 3.0]),
        temperature=np.array([np.nan, 31.5]),
        reversal=np.array([1.2, 1.1]),
        samples=50,
        seconds=0.5,
        findings=(DayFinding("spikes", "warning", "a.parquet", "joint1", {"channel": "effort"}),),
        problems=(DayProblem("a.parquet", "empty"),),
        key="day",
        files_sha256={"a.parquet": "0123"},
    )


@pytest.mark.parametrize("factor", [True, False])
def test_survives_the_disk(tmp_path, factor):
    day = arm_day(factor)
    Store(tmp_path).put(day)
    again = Store(tmp_path).get("day")
    for name in ("rms", "inflation", "temperature", "reversal"):
        np.testing.assert_array_equal(getattr(again, name), getattr(day, name))
    assert [
        getattr(again, n) for n in ("robot", "date", "samples", "findings", "problems", "key", "files_sha256", "usable")
    ] == [
        getattr(day, n) for n in ("robot", "date", "samples", "findings", "problems", "key", "files_sha256", "usable")
    ]
    if factor:
        assert (again.factor.names, again.factor.counts) == (day.factor.names, day.factor.counts)
        for mine, theirs in zip(again.factor.matrices, day.factor.matrices, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_damage_is_named(tmp_path, cut):
    Store(tmp_path).put(arm_day())
    (tmp_path / "day.npz").write_bytes((tmp_path / "day.npz").read_bytes()[:cut])
    with pytest.raises(ArmidError, match=r"day\.npz: is damaged"):
        Store(tmp_path).get("day")


def test_changed_bytes_are_named(tmp_path):
    """Bytes of the compressed numbers that have changed are seen, wherever they are."""
    Store(tmp_path).put(arm_day())
    whole = (tmp_path / "day.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "day.npz") as archive:
        middles = [one.header_offset + 60 + one.compress_size // 2 for one in archive.infolist()]
    for middle in middles:
        changed = bytes(255 - byte for byte in whole[middle : middle + 16])
        (tmp_path / "day.npz").write_bytes(whole[:middle] + changed + whole[middle + 16 :])
        with pytest.raises(ArmidError, match=r"day\.npz: is damaged"):
            Store(tmp_path).get("day")
