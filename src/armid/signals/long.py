"""Logs that are too long for memory: processed piece by piece, their samples kept in a file without a name."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from armid.arrays import Array
from armid.logs.log import Log, LogStream, concatenate
from armid.notes import note
from armid.signals.dataset import Dataset

PIECE = 262_144  # samples that are processed at a time
WHOLE = 2 * PIECE  # up to so many are processed as a whole
SEAM = 1  # more samples at the ends of pieces that no row uses: derivatives reach over them
_SAMPLES = ("q", "qd", "qdd", "measured")


class Stored:
    """Rows of numbers in a temporary file, to be read like an array: by slices and increasing indices."""

    def __init__(self, columns: int) -> None:
        """Begin with none."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  it goes with the object
        weakref.finalize(self, self._file.close)
        self.shape = (0, columns)
        self.ndim, self.dtype = 2, np.dtype(np.float64)

    def append(self, rows: Array) -> None:
        """Add rows at the end."""
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, which: Any) -> Array:
        if isinstance(which, slice):
            start, stop, step = which.indices(len(self))
            if step == 1:
                return self._read(start, stop)
            which = np.arange(start, stop, step)
        index = np.asarray(which)
        parts, first = [np.empty((0, self.shape[1]))], 0
        while first < len(index):
            last = max(int(np.searchsorted(index, index[first] + PIECE)), first + 1)
            part = index[first:last]
            parts.append(self._read(int(part[0]), int(part[-1]) + 1)[part - part[0]])
            first = last
        return np.concatenate(parts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self._read(0, len(self)).astype(dtype or np.float64)

    def _read(self, start: int, stop: int) -> Array:
        self._file.seek(8 * start * self.shape[1])
        data = self._file.read(8 * max(stop - start, 0) * self.shape[1])
        return np.frombuffer(data).reshape(-1, self.shape[1])


def whole_or_stream(stream: LogStream) -> Log | LogStream:
    """The log where it is short enough to be processed as a whole, else the stream."""
    parts, count = [], 0
    for block in stream.blocks():
        parts.append(block)
        count += len(block)
        if count > WHOLE:
            return stream
    return concatenate(parts)


def pieces(stream: LogStream) -> Iterator[Log]:
    """The log in pieces of `PIECE` samples; what is left at the end joins the last one."""
    waiting: Log | None = None
    for block in stream.blocks(PIECE):
        both = block if waiting is None else concatenate([waiting, block])
        if len(both) >= 2 * PIECE:
            yield both.rows(slice(0, PIECE))
            both = both.rows(slice(PIECE, None))
        waiting = both
    if waiting is not None:
        yield waiting


def joined(stream: LogStream, processed: Callable[[Log], Dataset]) -> Dataset:
    """One dataset of all pieces, each of which `processed` turns into one; rows are those of the pieces."""
    stores: dict[str, Stored] = {}
    kept: dict[str, list[Any]] = {name: [] for name in ("time", "rows", "torque", "use", "torque_noise")}
    first: Dataset | None = None
    done = count = 0
    for piece in pieces(stream):
        data = processed(piece)
        if first is None:
            first = data.part(slice(0, 1))
            stores = {name: Stored(len(data.joints)) for name in _SAMPLES}
        half = (0 if data.kernel is None else len(data.kernel) // 2) + SEAM
        inside = (data.rows >= half) & (data.rows < len(data.time) - half)
        kept["rows"].append(done + data.rows[inside])
        kept["time"].append(data.time)
        kept["torque"].append(data.torque[inside])
        kept["use"].append((np.ones(data.torque.shape, dtype=bool) if data.use is None else data.use)[inside])
        kept["torque_noise"].append(np.zeros(0) if data.torque_noise is None else data.torque_noise)
        for name, store in stores.items():
            store.append(getattr(data, name))
        done, count = done + len(data.time), count + 1
    assert first is not None
    noise = kept.pop("torque_noise")
    entries: dict[str, Any] = {name: np.concatenate(parts) for name, parts in kept.items()}
    entries |= {name: cast(Array, store) for name, store in stores.items()}
    entries["torque_noise"] = np.sqrt(np.mean(np.square(noise), axis=0)) if len(noise[0]) else None
    said = note("signals.long", samples=done, pieces=count)
    return replace(first, notes=(*first.notes, said), **entries)
