"""ROS 2 bags and MCAP files, without ROS: joint states by joint name, and beside them the exact samples of armid."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from armid.arrays import Array, Indices
from armid.errors import ArmidError, MissingExtraError, nearest
from armid.logs.log import Log, LogError, LogStream
from armid.logs.recipe import Recipe
from armid.logs.table import READERS, Table, as_rows, column_names, data_from_json, info_from_data, info_to_json

JOINT_STATE = "sensor_msgs/msg/JointState"
INFO_TOPIC, SAMPLES_TOPIC = "/armid/info", "/armid/samples"
_FIELDS = ("position", "velocity", "effort")
_LOOK_AHEAD = 200
_ROWS_PER_MESSAGE = 512
_LAST_S = 2**31 - 2
_UNFOLDED, _RATIO = 1 << 27, 50  # bytes that may come out of any compressed part; more in proportion to a large one


@cache
def _limit_rosbags() -> None:
    """Let no compressed part of a bag unfold to far more than its size: rosbags itself has no limit."""
    import lz4.frame  # type: ignore[import-untyped]
    from rosbags.rosbag2 import reader, storage_mcap

    known = vars(reader)  # it does not say that it has zstd
    zstd = known["zstd"]

    def unfolded(decompressor: Any, data: bytes) -> bytes:
        found: bytes = decompressor.decompress(data, max_length=max(_UNFOLDED, _RATIO * len(data)))
        if not decompressor.eof:
            raise ValueError("a part unfolds to far more than its size, or is cut off")
        return found

    class Unfolded:
        """A compressed file, read in parts."""

        def __init__(self, file: Any, mode: str) -> None:
            self.left = max(_UNFOLDED, _RATIO * os.fstat(file.fileno()).st_size)
            self.file = zstd.open(file, mode)

        def __enter__(self) -> Unfolded:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def read(self, size: int) -> bytes:
            found: bytes = self.file.read(size)
            self.left -= len(found)
            if self.left < 0:
                raise ValueError("it unfolds to far more than its size")
            return found

    class Zstd:
        open = Unfolded

        @staticmethod
        def decompress(data: bytes) -> bytes:
            return unfolded(zstd.ZstdDecompressor(), data)

    known["zstd"] = Zstd
    storage_mcap.DECOMPRESSORS["zstd"] = lambda data, _: Zstd.decompress(data)
    storage_mcap.DECOMPRESSORS["lz4"] = lambda data, _: unfolded(lz4.frame.LZ4FrameDecompressor(), data)


@contextmanager
def opened(path: Path, source: str) -> Iterator[Any]:
    """A reader of rosbags; whatever it stumbles over becomes a LogError."""
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtraError("reading ROS bags and MCAP files", "ros") from None
    _limit_rosbags()
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.LATEST)) as reader:
            yield reader
    except ArmidError:
        raise
    except Exception as error:  # parsers, decompressors and SQLite each raise their own
        said = str(error).strip().splitlines()
        reason = said[0].rstrip(".")[:120] if said else type(error).__name__
        problem = f"cannot be read as a ROS 2 bag; is it cut off or damaged? ({reason})"
        raise LogError(source, "", problem) from None


class SamplesTable(Table):
    """A bag that armid wrote: exact samples in blocks, beside the joint states for others."""

    exact = True

    def __init__(self, path: Path) -> None:
        """Read what the columns are."""
        self._path, self.source = path, str(path)
        with opened(path, self.source) as reader:
            found = next(_messages(reader, INFO_TOPIC, self.source, "std_msgs/msg/String"), None)
        if found is None:
            raise LogError(self.source, INFO_TOPIC, "is empty; the log is damaged")
        stored = data_from_json(found[1].data)
        names = stored.get("columns") if isinstance(stored, dict) else None
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise LogError(self.source, INFO_TOPIC, "does not name the columns; the log is damaged")
        self.info, self.names = info_from_data(stored.get("info"), self.source), tuple(names)

    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """See `Table.blocks`."""
        waiting: list[Array] = []
        count = 0
        with opened(self._path, self.source) as reader:
            for _, message in _messages(reader, SAMPLES_TOPIC, self.source, "std_msgs/msg/Float64MultiArray"):
                if message.data.size % len(self.names) or checksum(message.data) != message.layout.dim[0].label:
                    raise LogError(self.source, SAMPLES_TOPIC, "is damaged; write or copy the log again")
                waiting.append(message.data.reshape(-1, len(self.names))[:, list(columns)])
                count += len(waiting[-1])
                if count >= size:
                    rows = np.concatenate(waiting)
                    cut = count - count % size
                    yield from (rows[start : start + size] for start in range(0, cut, size))
                    waiting, count = [rows[cut:]], count - cut
        if count:
            yield np.concatenate(waiting)


@dataclass(frozen=True)
class _Start:
    """What the first messages of a topic tell."""

    topic: str
    stamped: bool
    time_ns: int
    joints: tuple[str, ...]
    channels: tuple[str, ...]


@READERS.add("ros")
class JointStateTable(Table):
    """Joint states of a bag: `time` [s] from the first message, then `position.<joint>` and so on.

    Joints are found by name in every message, in whatever order it lists them. A joint that a message lacks is NaN;
    a message with none of the joints is left out.
    """

    title, suffixes = "ROS 2 bag", (".mcap", ".db3")
    starts = (b"\x89MCAP", b"SQLite format 3")
    stated_effort = "joint torque"  # sensor_msgs/JointState: the effort applied in the joint, Nm or N

    @classmethod
    def open(cls, path: Path, recipe: Recipe | None) -> Table:
        """See `Table.open`: armid's exact samples if it wrote the bag and no recipe wants others, else joint states."""
        if recipe is not None:
            return cls(path, recipe.topic, recipe.info.joints)
        with opened(path, str(path)) as reader:
            own = {SAMPLES_TOPIC, INFO_TOPIC} <= set(reader.topics)
        return SamplesTable(path) if own else cls(path)

    def __init__(self, path: Path, topic: str = "", joints: Sequence[str] = ()) -> None:
        """Look at the first messages of the topic; `joints` are those wanted, all if empty."""
        self._path, self.source = path, str(path)
        self._strict = not joints
        with opened(path, self.source) as reader:
            self.start = self._look(reader, topic, tuple(joints))
        self.history = {"start_ns": self.start.time_ns}
        self.joints = tuple(joints) or self.start.joints
        self.names = ("time", *(f"{channel}.{joint}" for channel in self.start.channels for joint in self.joints))

    def _look(self, reader: Any, topic: str, wanted: tuple[str, ...]) -> _Start:
        topic = _chosen_topic(reader, topic, self.source)
        first = list(islice(_messages(reader, topic, self.source, JOINT_STATE), _LOOK_AHEAD))
        seen = dict.fromkeys(name for _, message in first for name in message.name)
        for joint in wanted:
            if seen and joint not in seen:
                problem = f"{joint!r} is not in the joint states{nearest(joint, seen)}; there are: {', '.join(seen)}"
                raise LogError(self.source, "joints", problem)
        useful = [pair for pair in first if (set(wanted) & set(pair[1].name) if wanted else pair[1].name)]
        if not useful:
            raise LogError(self.source, topic, "holds no joint states")
        stamped = any(_stamp(message) for _, message in useful)
        channels = tuple(field for field in _FIELDS if any(len(getattr(message, field)) for _, message in useful))
        when, message = useful[0]
        return _Start(topic, stamped, _stamp(message) if stamped else when, tuple(message.name), channels)

    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """See `Table.blocks`; messages are decoded one by one."""
        places: dict[tuple[str, ...], tuple[Array, Array]] = {}
        rows = np.full((size, len(self.names)), np.nan)
        filled = number = 0
        with opened(self._path, self.source) as reader:
            for when, message in _messages(reader, self.start.topic, self.source, JOINT_STATE):
                number += 1
                names = tuple(message.name)
                if names not in places:
                    places[names] = self._places(names, number)
                here, there = places[names]
                if not len(here):
                    continue
                self._fill(rows[filled], message, when, (here, there), number)
                filled += 1
                if filled == size:
                    yield rows[:, list(columns)]
                    rows = np.full((size, len(self.names)), np.nan)
                    filled = 0
        if filled:
            yield rows[:filled, list(columns)]

    def _places(self, names: tuple[str, ...], number: int) -> tuple[Array, Array]:
        """Where the joints are in the message, and in the table."""
        if len(set(names)) != len(names):
            raise LogError(self.source, f"{self.start.topic}, message {number}", "names a joint twice")
        new = [name for name in names if name not in self.joints]
        if self._strict and new:
            problem = f"has the joint {new[0]!r}, which the first message lacks; name the wanted joints in a recipe"
            raise LogError(self.source, f"{self.start.topic}, message {number}", problem)
        pairs = [(names.index(joint), index) for index, joint in enumerate(self.joints) if joint in names]
        here, there = np.array(pairs, dtype=int).reshape(-1, 2).T
        return here, there

    def _fill(self, row: Array, message: Any, when: int, places: tuple[Array, Array], number: int) -> None:
        here, there = places
        row[0] = ((_stamp(message) if self.start.stamped else when) - self.start.time_ns) * 1e-9
        for index, channel in enumerate(self.start.channels):
            values = getattr(message, channel)
            if len(values) == len(message.name):
                row[1 + index * len(self.joints) + there] = values[here]
            elif len(values):
                where = f"{self.start.topic}, message {number}"
                problem = f"has {len(values)} values of {channel} for {len(message.name)} joints"
                raise LogError(self.source, where, problem)


def checksum(samples: Array) -> str:
    """Label of a block of samples, by which damage is found; MCAP and zstd as rosbags uses them have no checksums."""
    return f"sample, crc32 {crc32(samples.tobytes()):08x}"


def _chosen_topic(reader: Any, topic: str, source: str) -> str:
    topics = sorted(name for name, info in reader.topics.items() if info.msgtype == JOINT_STATE)
    if not topics:
        there = ", ".join(sorted(reader.topics)) or "none"
        raise LogError(source, "", f"holds no joint states (sensor_msgs/JointState); its topics are: {there}")
    if topic and topic not in topics:
        problem = f"{topic!r} is no topic with joint states{nearest(topic, topics)}; there are: {', '.join(topics)}"
        raise LogError(source, "topic", problem)
    if not topic and len(topics) > 1:
        raise LogError(source, "topic", f"must be chosen in a recipe, there are several: {', '.join(topics)}")
    return topic or topics[0]


def _messages(reader: Any, topic: str, source: str, kind: str) -> Iterator[tuple[int, Any]]:
    """Time of recording [ns] and message."""
    connections = [c for c in reader.connections if c.topic == topic and c.msgtype == kind]
    if not connections:
        raise LogError(source, topic, f"is not a topic of {kind}; the log is damaged")
    for connection, when, raw in reader.messages(connections=connections):
        yield when, reader.deserialize(raw, connection.msgtype)


def _stamp(message: Any) -> int:
    """Time of measurement [ns], 0 if whoever recorded it did not say."""
    stamp = message.header.stamp
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def write_mcap(stream: LogStream, channels: Sequence[str], path: Path) -> None:
    """Write a log as MCAP, by way of a bag, which is a folder beside it.

    ``/joint_states`` holds position, velocity and effort with stamps in whole nanoseconds. A stamp cannot hold every
    time, and a joint state not every channel, so ``/armid/samples`` repeats all columns as float64 and
    ``/armid/info`` says what they are.
    """
    try:
        from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise MissingExtraError("writing MCAP", "ros") from None
    store = get_typestore(Stores.ROS2_HUMBLE)
    bag = path.with_name("log")
    writer = Writer(bag, version=8, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        _Bag(writer, store).write(stream, channels)
    (bag / "log.mcap").replace(path)


class _Bag:
    def __init__(self, writer: Any, store: Any) -> None:
        self._writer, self._store = writer, store
        kinds = {
            INFO_TOPIC: "std_msgs/msg/String",
            SAMPLES_TOPIC: "std_msgs/msg/Float64MultiArray",
            "/joint_states": JOINT_STATE,
        }
        self._topics = {name: writer.add_connection(name, kind, typestore=store) for name, kind in kinds.items()}
        self._types = store.types
        self._latest = 0

    def write(self, stream: LogStream, channels: Sequence[str]) -> None:
        columns = column_names(stream.info.joints, channels)
        said = json.dumps({"info": json.loads(info_to_json(stream.info)), "columns": columns})
        started = False
        for block in stream.blocks():
            stamps = self._stamps(block.time)
            if not started:
                self._send(INFO_TOPIC, stamps[0], self._types["std_msgs/msg/String"](said))
                started = True
            for start in range(0, len(block), _ROWS_PER_MESSAGE):
                rows = slice(start, start + _ROWS_PER_MESSAGE)
                self._send_samples(as_rows(block.rows(rows), channels), stamps[start])
                self._send_states(block.rows(rows), stamps[rows])

    def _stamps(self, time: Array) -> Indices:
        """Times of recording [ns]; never falling, because readers sort by them."""
        known = np.nan_to_num(time, nan=0.0, posinf=0.0, neginf=0.0)
        stamps = np.rint(np.clip(known, 0.0, _LAST_S) * 1e9).astype(np.int64)
        stamps = np.maximum.accumulate(np.maximum(stamps, self._latest))
        self._latest = int(stamps[-1])
        return stamps

    def _send(self, topic: str, stamp: int, message: Any) -> None:
        connection = self._topics[topic]
        self._writer.write(connection, int(stamp), self._store.serialize_cdr(message, connection.msgtype))

    def _send_samples(self, rows: Array, stamp: int) -> None:
        types = self._types
        dimension = types["std_msgs/msg/MultiArrayDimension"]
        count, width = rows.shape
        labels = [dimension(checksum(rows), count, count * width), dimension("column", width, width)]
        layout = types["std_msgs/msg/MultiArrayLayout"](labels, 0)
        self._send(SAMPLES_TOPIC, stamp, types["std_msgs/msg/Float64MultiArray"](layout, rows.reshape(-1)))

    def _send_states(self, block: Log, stamps: Indices) -> None:
        types = self._types
        names, nothing = list(block.joints), np.empty(0)
        there = [block.channels.get(name) for name in ("position", "velocity", "effort")]
        fields = [None if values is None else np.ascontiguousarray(values) for values in there]
        for index, stamp in enumerate(stamps.tolist()):
            time = types["builtin_interfaces/msg/Time"](*divmod(stamp, 1_000_000_000))
            header = types["std_msgs/msg/Header"](time, "")
            values = [nothing if field is None else field[index] for field in fields]
            self._send("/joint_states", stamp, types[JOINT_STATE](header, names, *values))
