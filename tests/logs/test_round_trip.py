"""What is written is read back bit for bit, whole or in blocks, and files are whole or not there."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from armid.logs import Log, LogError, LogInfo, open_log, read_log, write_log
from armid.logs.files import read_copy
from armid.logs.log import CHANNELS, LogStream, concatenate
from tests.logs.samples import assert_same, full_log, random_log

SUFFIXES = ("parquet", "csv", "mcap")
NAMES = st.lists(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=8), min_size=1, max_size=4, unique=True
)
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_everything_comes_back(tmp_path, suffix):
    """Every channel, NaN, the sign of zero, infinities, the largest and smallest numbers, and all information."""
    log = full_log(samples=2000)
    write_log(log, tmp_path / f"log.{suffix}")
    assert_same(log, read_log(tmp_path / f"log.{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), joints=NAMES, samples=st.integers(1, 5), picked=st.sets(st.sampled_from(CHANNELS), min_size=1))
def test_any_log_comes_back(tmp_path, suffix, data, joints, samples, picked):
    """Whatever the names of the joints, the times (also backwards, negative or NaN) and the numbers."""

    def array(*shape):
        count = int(np.prod(shape))
        return np.array(data.draw(st.lists(NUMBERS, min_size=count, max_size=count))).reshape(shape)

    channels = {name: array(samples, len(joints)) for name in picked}
    effort = "joint torque" if "effort" in picked else "current" if "current" in picked else "none"
    log = Log(array(samples), channels, LogInfo(tuple(joints), effort, source="made"))
    write_log(log, tmp_path / f"log.{suffix}")
    assert_same(log, read_log(tmp_path / f"log.{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("joints", [("ä.b", "c.d.e"), ("a,b", 'q"q', " x "), ("two\nlines", "tab\t", "cr\rcr")])
def test_odd_joint_names(tmp_path, suffix, joints):
    """Names with dots, commas, quotes, blanks at the ends and line breaks."""
    log = random_log(joints=joints)
    write_log(log, tmp_path / f"log.{suffix}")
    assert_same(log, read_log(tmp_path / f"log.{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("size", [1, 7, 512, 1000, 5000])
def test_blocks_are_the_log(tmp_path, suffix, size):
    """Reading in blocks of any size gives the log, and no block is larger than asked."""
    log = random_log(samples=1300)
    write_log(log, tmp_path / f"log.{suffix}")
    stream = open_log(tmp_path / f"log.{suffix}")
    blocks = list(stream.blocks(size))
    assert max(map(len, blocks)) <= size
    assert (stream.info.joints, set(stream.channels)) == (log.joints, set(log.channels))
    assert_same(log, concatenate(blocks))
    assert_same(log, stream.read())  # a stream can be read again


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_streams_are_written_as_they_come(tmp_path, suffix):
    """A stream of blocks makes the same file as the whole log, also when time steps back between blocks."""
    parts = [random_log(seed, samples=700) for seed in (1, 2, 3)]
    stream = LogStream(parts[0].info, ("velocity", "effort", "position"), lambda size: iter(parts))
    write_log(stream, tmp_path / f"log.{suffix}")
    assert_same(concatenate(parts), read_log(tmp_path / f"log.{suffix}"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_write_leaves_the_old_file(tmp_path, suffix):
    """If the source breaks off, what was there stays, and no temporary file remains."""
    path = tmp_path / f"log.{suffix}"
    log = random_log()
    write_log(log, path)

    def broken(size):
        yield log
        raise LogError("robot", "", "was switched off")

    with pytest.raises(LogError, match="switched off"):
        write_log(LogStream(log.info, tuple(log.channels), broken), path)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    assert_same(log, read_log(path))
    write_log(random_log(9), path)  # and a good one replaces it
    assert_same(random_log(9), read_log(path))


def test_several_logs_follow_each_other(tmp_path):
    """A list of logs is read as one; logs that mean something else are refused."""
    one, two = random_log(1), random_log(2)
    write_log(one, tmp_path / "one.csv")
    write_log(two, tmp_path / "two.parquet")
    assert_same(concatenate([one, two]), read_log([tmp_path / "one.csv", tmp_path / "two.parquet"]))
    write_log(random_log(effort="motor torque"), tmp_path / "three.csv")
    with pytest.raises(LogError, match=r"three.csv: effort: means something else than in .*one.csv"):
        read_log([tmp_path / "one.csv", tmp_path / "three.csv"])


def test_parquet_says_its_units(tmp_path):
    """Other tools find the unit of each column and the information in the metadata."""
    import pyarrow.parquet

    write_log(full_log(), tmp_path / "log.parquet")
    schema = pyarrow.parquet.read_schema(tmp_path / "log.parquet")
    units = {name: schema.field(name).metadata[b"unit"].decode() for name in schema.names}
    assert units["time"] == "s"
    assert (units["position.a"], units["effort.b"], units["temperature.c"]) == ("rad", "N m", "degC")
    assert units["command.a"] == "rad/s"
    assert json.loads(schema.metadata[b"armid.log"])["joints"] == ["a", "b", "c"]


def test_csv_is_readable_by_others(tmp_path):
    """Two lines of text, then numbers that NumPy reads exactly."""
    log = random_log()
    write_log(log, tmp_path / "log.csv")
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0].startswith('# armid log 1 {"joints": ["a", "b", "c"], "effort": "joint torque"')
    assert lines[1].startswith("time,position.a,position.b,position.c,velocity.a")
    np.testing.assert_array_equal(np.loadtxt(lines[2:], delimiter=",")[:, 7:], log["effort"])


def test_mcap_is_readable_by_ros(tmp_path):
    """A plain reader of joint states finds names, stamps to the nanosecond, position, velocity and effort."""
    rng = np.random.default_rng(0)
    time = np.arange(600) * 0.001 + 1.7e9
    channels = {name: rng.standard_normal((600, 2)) for name in ("position", "effort")}
    log = Log(time, channels, LogInfo(("x", "y"), "joint torque"))
    write_log(log, tmp_path / "log.mcap")
    with AnyReader([tmp_path / "log.mcap"]) as reader:
        connections = [c for c in reader.connections if c.topic == "/joint_states"]
        messages = [reader.deserialize(raw, c.msgtype) for c, _, raw in reader.messages(connections)]
    assert len(messages) == 600
    assert messages[7].name == ["x", "y"]
    np.testing.assert_array_equal([m.position for m in messages], log["position"])
    np.testing.assert_array_equal([m.effort for m in messages], log["effort"])
    assert len(messages[0].velocity) == 0
    stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in messages]
    np.testing.assert_allclose(stamps, time, rtol=0, atol=3e-7)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("source", ["", "virtual arm", "ur://10.0.0.1"])
def test_a_log_is_named_after_its_file(tmp_path, suffix, source):
    """Two logs of one arm or controller are told apart; where they came from stays in their history."""
    log = Log(np.arange(3.0), {"position": np.zeros((3, 1))}, LogInfo(("a",), "none", source=source))
    write_log(log, tmp_path / f"log.{suffix}")
    info = read_log(tmp_path / f"log.{suffix}").info
    assert info.source == str(tmp_path / f"log.{suffix}")
    assert info.history.get("origin", "") == source
    assert read_copy(tmp_path / f"log.{suffix}").info.source == (source or info.source)


@pytest.mark.parametrize("name", ["log", "log.xlsx", "log.parqet", "lo\0g.csv", "missing/log.csv", "x" * 300 + ".csv"])
def test_what_cannot_be_written(tmp_path, name):
    """A wrong suffix, an impossible name, a missing folder: one sentence, and nothing is left behind."""
    with pytest.raises(LogError) as caught:
        write_log(random_log(), f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_empty_and_unwritable_logs(tmp_path, suffix):
    """A log without samples, and a history that JSON cannot hold, are refused."""
    path = tmp_path / f"log.{suffix}"
    with pytest.raises(LogError, match="made: holds no samples"):
        write_log(random_log().rows(slice(0, 0)), path)
    with pytest.raises(LogError, match="history: cannot be written as JSON"):
        write_log(random_log(history={"x": object()}), path)
    assert not list(tmp_path.iterdir())
