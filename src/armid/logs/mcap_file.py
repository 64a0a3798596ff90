"""Writing MCAP: joint states for ROS tools, and beside them the exact samples for armid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.errors import MissingExtraError
from armid.logs.log import Log
from armid.logs.naming import as_rows, column_names, info_to_json
from armid.logs.ros_bag import INFO_TOPIC, JOINT_STATE, SAMPLES_TOPIC, checksum
from armid.logs.stream import LogStream

_ROWS_PER_MESSAGE = 512
_LAST_S = 2**31 - 2


def write_mcap(stream: LogStream, channels: Sequence[str], folder: Path) -> Path:
    """Write a log as MCAP into a new folder and return the file in it.

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
    writer = Writer(folder, version=8, storage_plugin=StoragePlugin.MCAP)
    writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    with writer:
        _Bag(writer, store).write(stream, channels)
    return folder / f"{folder.name}.mcap"


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

    def _stamps(self, time: Array) -> NDArray[np.int64]:
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

    def _send_states(self, block: Log, stamps: NDArray[np.int64]) -> None:
        types = self._types
        names, nothing = list(block.joints), np.empty(0)
        there = [block.channels.get(name) for name in ("position", "velocity", "effort")]
        fields = [None if values is None else np.ascontiguousarray(values) for values in there]
        for index, stamp in enumerate(stamps.tolist()):
            time = types["builtin_interfaces/msg/Time"](*divmod(stamp, 1_000_000_000))
            header = types["std_msgs/msg/Header"](time, "")
            values = [nothing if field is None else field[index] for field in fields]
            self._send("/joint_states", stamp, types[JOINT_STATE](header, names, *values))
