"""MATLAB files up to version 7: fields of structs as columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.logs.log import LogError
from armid.logs.mat_format import DamagedFileError, numeric_arrays
from armid.logs.table import Table, checked_file

_COLUMN = re.compile(r"(.+)\[(\d+)\]")


class MatTable(Table):
    """A MATLAB file. `rec.q` stands for all columns of that field, `rec.q[2]` for the second.

    A field with more columns than rows is taken as (joints, samples) unless `samples_in_rows` says otherwise.
    """

    def __init__(self, path: Path, samples_in_rows: bool | None = None) -> None:
        """Read the file; objects in it are left out."""
        self.source = str(checked_file(path))
        self._samples_in_rows = samples_in_rows
        self._arrays = {name: self._upright(array) for name, array in _load(path, self.source).items()}
        self.names = tuple(self._arrays)
        self._picked: list[tuple[str, int]] = []

    def _upright(self, array: Array) -> Array:
        """The array as (samples, columns)."""
        rows = self._samples_in_rows if self._samples_in_rows is not None else array.shape[0] >= array.shape[1]
        if 1 in array.shape:  # one channel, lying or standing
            rows = array.shape[1] == 1
        return array if rows else array.T

    def find(self, name: str, field: str) -> list[int]:
        """Indices for all columns of a field, or for the one in brackets."""
        match = _COLUMN.fullmatch(name)
        base, number = (match.group(1), int(match.group(2))) if match else (name, 0)
        if base not in self._arrays:
            self.fail_missing(base, field)
        count = self._arrays[base].shape[1]
        if number > count or (match and number == 0):
            raise LogError(self.source, field, f"there is no {name!r}; {base} has the columns 1 to {count}")
        chosen = [(base, number - 1)] if match else [(base, index) for index in range(count)]
        self._picked += chosen
        return list(range(len(self._picked) - len(chosen), len(self._picked)))

    def number(self, number: int, field: str) -> int:
        """A MATLAB file has no numbered columns."""
        problem = f"is number {number}, but a MATLAB file has fields; write a name such as {(*self.names, 'rec.q')[0]}"
        raise LogError(self.source, field, problem)

    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """See `Table.blocks`; all columns must be equally long."""
        picked = [self._picked[column] for column in columns]
        arrays = [self._arrays[name][:, index] for name, index in picked]
        lengths = [len(values) for values in arrays]
        if len(set(lengths)) > 1:
            short, long = (picked[int(find(lengths))][0] for find in (np.argmin, np.argmax))
            problem = f"has {min(lengths)} samples, but {long} has {max(lengths)}; say `samples: rows` or `columns`"
            raise LogError(self.source, short, problem)
        for start in range(0, lengths[0], size):
            yield np.column_stack([values[start : start + size] for values in arrays])


def _load(path: Path, source: str) -> dict[str, Array]:
    content = path.read_bytes()
    start = content[:128]
    if not start:
        raise LogError(source, "", "is empty; a MATLAB file is needed")
    if start.startswith(b"\x89HDF") or b"MATLAB 7.3" in start:
        raise LogError(source, "", "is a MATLAB 7.3 file; save it in MATLAB with save('file.mat', '-v7')")
    if not start.startswith(b"MATLAB 5.0"):
        raise LogError(source, "", "is not a MATLAB file of version 5 to 7")
    try:
        return numeric_arrays(content)
    except DamagedFileError:
        raise LogError(source, "", "is cut off or damaged; save or copy it again") from None
