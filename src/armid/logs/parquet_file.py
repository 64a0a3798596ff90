"""Parquet: armid's own format for long logs, and tables of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import MissingExtraError
from armid.logs.log import Log, LogError, LogStream, concatenate
from armid.logs.table import (
    FORMAT_VERSION,
    READERS,
    Table,
    checked_file,
    column_names,
    data_from_json,
    info_from_data,
    info_to_json,
    unit_of,
)

_INFO, _VERSION = b"armid.log", b"armid.log.version"
_ROWS_PER_GROUP = 65_536
_UNFOLDED, _RATIO = 1 << 29, 50  # bytes that may come out of any file; more in proportion to a large one
_OPTIONS = {
    "compression": "zstd",
    "use_dictionary": False,
    "use_byte_stream_split": True,  # makes floats compress
    "write_page_checksum": True,
}


def _pyarrow(what: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(what, "parquet") from None
    return pyarrow, pyarrow.parquet


@READERS.add("parquet")
class ParquetTable(Table):
    """A Parquet file; missing values are NaN, and points in time become seconds."""

    title, suffixes, starts = "Parquet", (".parquet",), (b"PAR1",)

    def __init__(self, path: Path) -> None:
        """Read the schema."""
        self._path, self.source = checked_file(path), str(path)
        self._arrow, self._parquet = _pyarrow("reading Parquet")
        if path.stat().st_size == 0:
            raise LogError(self.source, "", "is empty; a Parquet file is needed")
        with self._open() as file:
            schema, about = file.schema_arrow, file.metadata
            rows = sum(about.row_group(number).num_rows for number in range(about.num_row_groups))
        cells = max(rows, about.num_rows) * len(schema)  # a damaged file states both
        if 8 * cells > max(_UNFOLDED, _RATIO * path.stat().st_size):
            raise LogError(self.source, "", f"unfolds to {cells} numbers, far more than its size; write fewer rows")
        self.names = tuple(schema.names)
        self._types = {index: schema.field(index).type for index in range(len(schema.names))}
        metadata = schema.metadata or {}
        if _INFO in metadata:
            version = metadata.get(_VERSION, b"1")
            if not version.isdigit() or int(version) > FORMAT_VERSION:
                raise LogError(self.source, "armid.log.version", f"is {version.decode()!r}; please update armid")
            self.exact = True
            self.info = info_from_data(data_from_json(metadata[_INFO]), self.source)

    def _open(self) -> Any:
        try:
            # Buffering ahead would keep the whole file in memory.
            return self._parquet.ParquetFile(self._path, pre_buffer=False, page_checksum_verification=True)
        except (self._arrow.ArrowException, OSError, ValueError):
            problem = "is not a Parquet file, or it is cut off or damaged; write or copy it again"
            raise LogError(self.source, "", problem) from None

    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """See `Table.blocks`."""
        names = list(dict.fromkeys(self.names[column] for column in columns))
        kinds = self._arrow.types
        for column in columns:
            kind = self._types[column]
            if not (kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_timestamp(kind)):
                raise LogError(self.source, self.names[column], f"holds {kind}, not numbers")
        places = [names.index(self.names[column]) for column in columns]
        with self._open() as file:
            batches = file.iter_batches(batch_size=size, columns=names, use_threads=False)
            while (batch := self._next(batches)) is not None:
                values = np.empty((batch.num_rows, len(columns)))
                for index, place in enumerate(places):
                    values[:, index] = self._numbers(batch.column(batch.schema.get_field_index(names[place])))
                yield values

    def _next(self, batches: Iterator[Any]) -> Any:
        try:
            return next(batches, None)
        except (self._arrow.ArrowException, OSError, ValueError):
            raise LogError(self.source, "", "is damaged; write or copy it again") from None

    def _numbers(self, column: Any) -> Array:
        if self._arrow.types.is_timestamp(column.type):
            count = column.cast(self._arrow.timestamp("ns"), safe=False).cast(self._arrow.int64())
            return np.asarray(count.cast(self._arrow.float64(), safe=False).to_numpy(zero_copy_only=False)) * 1e-9
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def write_parquet(stream: LogStream, channels: Sequence[str], path: Path) -> None:
    """Write a log as Parquet: float64, the unit of each column and the information in the metadata."""
    arrow, parquet = _pyarrow("writing Parquet")
    info = stream.info
    columns = column_names(info.joints, channels)
    fields = [
        arrow.field(name, arrow.float64(), nullable=False, metadata={"unit": unit_of(name, info)}) for name in columns
    ]
    metadata = {_INFO: info_to_json(info).encode(), _VERSION: str(FORMAT_VERSION).encode()}
    schema = arrow.schema(fields, metadata=metadata)
    with parquet.ParquetWriter(path, schema, **_OPTIONS) as writer:
        for block in _gathered(stream.blocks(_ROWS_PER_GROUP)):
            arrays = [arrow.array(values) for values in _columns(block, channels)]
            writer.write_batch(arrow.record_batch(arrays, schema), row_group_size=_ROWS_PER_GROUP)


def _gathered(blocks: Iterator[Log]) -> Iterator[Log]:
    """Small blocks together, because each becomes a group of rows with its own index."""
    waiting: list[Log] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= _ROWS_PER_GROUP:
            yield concatenate(waiting)
            waiting, count = [], 0
    if waiting:
        yield concatenate(waiting)


def _columns(block: Log, channels: Sequence[str]) -> Iterator[Array]:
    yield block.time
    for channel in channels:
        yield from np.ascontiguousarray(block[channel].T)
