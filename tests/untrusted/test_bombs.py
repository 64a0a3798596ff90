"""Small files that stand for much: refused in a sentence before the work."""

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.files import read_text
from armid.fleet.day import ArmDay
from armid.fleet.description import load_fleet
from armid.fleet.partitions import find_partitions
from armid.logs import read_log

ARM = '<body name="a"><joint name="j"/><geom size="0.1"/>{inside}</body>'
MJCF = f"<mujoco>{{before}}<worldbody>{ARM}</worldbody>{{after}}</mujoco>"


@pytest.mark.parametrize(
    "parts",
    [
        {"inside": '<replicate count="3000000" offset="1 0 0"><geom size="0.1"/></replicate>'},
        {"inside": '<replicate count="900"><replicate count="900"><geom size="0.1"/></replicate></replicate>'},
        {"inside": '<flexcomp name="f" type="grid" dim="3" count="400 400 400" spacing="1 1 1"/>'},
        {"before": '<asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>'},
        {"before": '<size nuser_geom="100000000"/>'},
        {"before": '<custom><numeric name="n" size="1000000000" data="0"/></custom>'},
        {"after": '<sensor><user dim="900000000"/></sensor>'},
        {"inside": '<include file="more.xml"/>'},
        {"before": '<include file="arm.xml"/>'},  # itself
    ],
)
def test_mjcf(tmp_path, parts):
    """What MuJoCo would make of an element is counted before it does, in included files too."""
    (tmp_path / "more.xml").write_text('<mujoco><replicate count="3000000"><geom size="0.1"/></replicate></mujoco>')
    (tmp_path / "arm.xml").write_text(MJCF.format(**{"before": "", "inside": "", "after": "", **parts}))
    with pytest.raises(ArmidError, match="far more than an arm has"):
        armid.load_robot(tmp_path / "arm.xml")


def test_textures_are_not_read(tmp_path):
    """A picture of ten gigabytes, which no torque depends on."""
    texture = '<texture name="t" type="2d" builtin="flat" width="60000" height="60000"/>'
    before = f'<asset>{texture}<material name="m" texture="t"/></asset>'
    inside = '<geom size="0.1" material="m"/>'
    (tmp_path / "arm.xml").write_text(MJCF.format(before=before, inside=inside, after=""))
    assert armid.load_robot(tmp_path / "arm.xml").joint_names == ("j",)


def record(kind, body):
    """A record of an MCAP file."""
    return bytes([kind]) + struct.pack("<Q", len(body)) + body


def text(words):
    """A text of an MCAP file."""
    return struct.pack("<I", len(words)) + words


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_chunks_of_mcap(tmp_path, compression):
    """Half a gigabyte of zeros in a chunk of some kilobytes; rosbags unfolds it while it looks for topics."""
    size = 1 << 29
    if compression == "lz4":
        frame = pytest.importorskip("lz4.frame")
        packed = frame.compress(bytes(size))
    else:
        pytest.importorskip("rosbags")
        from rosbags.rosbag2 import storage_mcap

        packed = storage_mcap.zstd.compress(bytes(size))
    start = struct.pack("<QQQI", 0, 0, size, 0)
    chunk = record(6, start + text(compression.encode()) + struct.pack("<Q", len(packed)) + packed)
    ends = record(15, bytes(4)), record(2, bytes(20))
    magic = b"\x89MCAP0\r\n"
    (tmp_path / "log.mcap").write_bytes(magic + record(1, text(b"ros2") + text(b"x")) + chunk + b"".join(ends) + magic)
    with pytest.raises(ArmidError, match="far more than its size"):
        read_log(tmp_path / "log.mcap")


def test_arm_days():
    """Sizes that the archive states are added up before an array is read."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("about.npy", bytes(1 << 27))
    with pytest.raises(ArmidError, match="far more than an arm-day has"):
        ArmDay.from_bytes(data.getvalue())


def test_rows_of_parquet(tmp_path):
    """Forty million zeros in some kilobytes."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    zeros = arrow.array(np.zeros(40_000_000))
    parquet.write_table(arrow.table({"time": zeros, "position.a": zeros}), tmp_path / "log.parquet")
    with pytest.raises(ArmidError, match="far more than its size"):
        read_log(tmp_path / "log.parquet")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="has no endless file")
def test_files_without_end(tmp_path):
    """A link in an unpacked archive may lead to a device, and a named pipe may wait for ever."""
    (tmp_path / "fit.json").symlink_to("/dev/zero")
    with pytest.raises(ArmidError, match="more than 256 MB"):
        read_text(tmp_path / "fit.json")
    os.mkfifo(tmp_path / "log.csv")
    (tmp_path / "log.mat").symlink_to("/dev/zero")
    for name in ("log.csv", "log.mat"):
        with pytest.raises(ArmidError, match="is a pipe or a device"):
            read_log(tmp_path / name)


@pytest.mark.parametrize(
    "address", ["reference://", "simplecache::file:///tmp", "zip://a.zip", "github://a:b@/", "dask://"]
)
def test_addresses_of_logs(tmp_path, address):
    """A fleet file names a folder or a store; other kinds of fsspec follow references or unfold archives."""
    (tmp_path / "fleet.yaml").write_text(f"robot: ir361\nlogs: '{address}'\nstorage: {{fo: {{gen: []}}}}\n")
    with pytest.raises(ArmidError, match="of no kind that is read"):
        find_partitions(load_fleet(tmp_path / "fleet.yaml"))


@pytest.mark.parametrize("name", ["..", "a\x1b[2Jb"])
def test_names_of_arms(tmp_path, name):
    """The folder of an arm's logs names the folder of its results, and stands in what is printed."""
    day = tmp_path / "logs" / f"robot={name}" / "date=2026-01-01"
    day.mkdir(parents=True)
    (day / "log.csv").write_text("time\n")
    (tmp_path / "fleet.yaml").write_text("robot: ir361\nlogs: logs\n")
    with pytest.raises(ArmidError, match="is no name of an arm"):
        find_partitions(load_fleet(tmp_path / "fleet.yaml"))
