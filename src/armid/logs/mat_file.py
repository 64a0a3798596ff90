"""MATLAB files up to version 7: fields of structs as columns.

The format is published by MathWorks ("MAT-File Format"). SciPy 1.17 reads more of it, but a single damaged byte can
crash the whole program (tests/logs/test_mat.py has one). Here every length is checked before it is used; objects,
cells, text and complex numbers are passed over.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.logs.log import LogError
from armid.logs.recipe import Recipe
from armid.logs.table import READERS, Table, checked_file

_COLUMN = re.compile(r"(.+)\[(\d+)\]")
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _FIRST_NUMERIC, _LAST_NUMERIC = 2, 6, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_COMPLEX = 0x0800
_DEEPEST = 20
_UNFOLDED, _RATIO = 1 << 28, 20  # bytes that may come out of any file; more in proportion to a large one


@READERS.add("mat")
class MatTable(Table):
    """A MATLAB file. `rec.q` stands for all columns of that field, `rec.q[2]` for the second.

    A field with more columns than rows is taken as (joints, samples) unless `samples_in_rows` says otherwise.
    """

    part, title, suffixes, starts = "field", "MATLAB", (".mat",), (b"MATLAB 5.0", b"MATLAB 7.3", b"\x89HDF")

    @classmethod
    def open(cls, path: Path, recipe: Recipe | None) -> Table:
        """See `Table.open`."""
        return cls(path, None if recipe is None else recipe.samples_in_rows)

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
    except DamagedFileError as error:
        problem = str(error) or "is cut off or damaged; save or copy it again"
        raise LogError(source, "", problem) from None


class DamagedFileError(Exception):
    """The bytes do not follow the format, or unfold to too much."""


@dataclass
class _Format:
    """Order of bytes, and how much may still come out of a file."""

    order: str
    bytes: int
    elements: int = 100_000

    def take(self, size: int) -> None:
        """Count an element and its bytes before they are made; refuse what only a file made for that unfolds to."""
        self.bytes, self.elements = self.bytes - size, self.elements - 1
        if min(self.bytes, self.elements) < 0:
            raise DamagedFileError("unfolds to far more than its size; save it in MATLAB with fewer variables")


def numeric_arrays(content: bytes) -> dict[str, Array]:
    """All real matrices of a file by name, ``rec.drive.q`` for a field of a struct within a struct; (rows, columns).

    Raises:
        DamagedFileError: the file is cut off or damaged.
    """
    form = _Format(">" if content[126:128] == b"MI" else "<", max(_UNFOLDED, _RATIO * len(content)))
    found: dict[str, Array] = {}
    for kind, data in _elements(memoryview(content)[128:], form, padded=False):
        if kind == _COMPRESSED:
            for inner, part in _elements(memoryview(_decompressed(data, form)), form):
                if inner == _MATRIX:
                    found |= _matrix(part, form, "", 0)
        elif kind == _MATRIX:
            found |= _matrix(data, form, "", 0)
        else:
            raise DamagedFileError
    return found


def _decompressed(data: memoryview, form: _Format) -> bytes:
    try:
        stream = zlib.decompressobj()
        found = stream.decompress(data, form.bytes + 1)
        form.take(len(found))
        if not stream.eof:
            raise DamagedFileError
        return found
    except zlib.error:
        raise DamagedFileError from None


def _elements(data: memoryview, form: _Format, padded: bool = True) -> Iterator[tuple[int, memoryview]]:
    """Type and content of the elements that follow each other; inside a matrix they start at multiples of 8 bytes."""
    place = 0
    while place < len(data):
        if len(data) - place < 8:
            raise DamagedFileError
        kind, length = struct.unpack_from(f"{form.order}II", data, place)
        start = place + 8
        if kind >> 16:  # a small element has type, length and content in eight bytes
            kind, length, start = kind & 0xFFFF, kind >> 16, place + 4
            if length > 4:
                raise DamagedFileError
        if start + length > len(data):
            raise DamagedFileError
        form.take(0)
        yield kind, data[start : start + length]
        place = max(start + length, place + 8)
        place += -place % 8 if padded else 0


def _matrix(data: memoryview, form: _Format, parent: str, depth: int) -> dict[str, Array]:
    """The numeric arrays in a matrix element; `parent` is the path of the struct it is in, which names it."""
    if not len(data) or depth > _DEEPEST:
        return {}
    parts = _elements(data, form)
    flags = _integers(_next(parts), form)
    word = int(flags[0]) if len(flags) else 0
    kind = word & 0xFF
    if word & _COMPLEX or (kind != _STRUCT and not _FIRST_NUMERIC <= kind <= _LAST_NUMERIC):
        return {}
    shape = _integers(_next(parts), form)
    name = parent or bytes(_next(parts)[1]).decode("latin-1")
    if parent:
        _next(parts)
    if len(shape) != 2 or np.any(shape < 0):
        return {}
    rows, columns = int(shape[0]), int(shape[1])
    if kind == _STRUCT:
        return _struct(parts, form, name, depth) if rows * columns == 1 else {}
    values = _numbers(_next(parts), form)
    if len(values) != rows * columns:
        raise DamagedFileError
    return {name: values.reshape((rows, columns), order="F")} if len(values) else {}


def _struct(parts: Iterator[tuple[int, memoryview]], form: _Format, name: str, depth: int) -> dict[str, Array]:
    width = _integers(_next(parts), form)
    names = bytes(_next(parts)[1])
    step = int(width[0]) if len(width) == 1 else 0
    if not 0 < step <= 1024 or len(names) % step or len(names) // step > form.elements:
        raise DamagedFileError
    fields = [names[i : i + step].split(b"\0")[0].decode("latin-1") for i in range(0, len(names), step)]
    found: dict[str, Array] = {}
    for field in fields:
        kind, data = _next(parts)
        if kind != _MATRIX:
            raise DamagedFileError
        found |= _matrix(data, form, f"{name}.{field}", depth + 1)
    return found


def _next(parts: Iterator[tuple[int, memoryview]]) -> tuple[int, memoryview]:
    part = next(parts, None)
    if part is None:
        raise DamagedFileError
    return part


def _numbers(element: tuple[int, memoryview], form: _Format) -> Array:
    """Numbers, which MATLAB stores in the smallest type that holds them."""
    kind, data = element
    if kind not in _STORED or len(data) % int(_STORED[kind][1]):
        raise DamagedFileError
    values = np.frombuffer(data, dtype=f"{form.order}{_STORED[kind]}")
    form.take(8 * len(values))
    return values.astype(np.float64)


def _integers(element: tuple[int, memoryview], form: _Format) -> Array:
    if element[0] not in (5, 6):
        raise DamagedFileError
    return _numbers(element, form)
