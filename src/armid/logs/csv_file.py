"""Text tables: armid's own CSV, that of others with or without header, and the UR controller's RTDE recordings."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import ClassVar, TextIO

import numpy as np

from armid.arrays import Array
from armid.logs.log import Log, LogError, LogInfo, LogStream
from armid.logs.recipe import CsvStyle, Recipe
from armid.logs.table import (
    FORMAT_VERSION,
    READERS,
    Places,
    Table,
    as_rows,
    checked_file,
    column_names,
    data_from_json,
    info_from_data,
    info_to_json,
)

_MEND = "correct the cell, or empty it: an empty one counts as missing"
_TAIL = 65_536  # bytes at the end of a file that are looked at
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")  # of a clock that is written as ISO 8601 says
_LOOKED_AT = 5  # lines that tell the decimal sign and which columns hold dates
_WITH_COMMA = re.compile(r"""['"]?[-+]?\d*,\d+(?:[eE][-+]?\d+)?['"]?""")
_MARK = re.compile(r"#\s*armid log (\d+) (\{.*\})\s*")


@READERS.add("csv")
class CsvTable(Table):
    """A text table. Only the columns that are asked for must hold numbers."""

    title: ClassVar[str] = "text table"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    @classmethod
    def open(cls, path: Path, recipe: Recipe | None) -> Table:
        """See `Table.open`; without a recipe a UR recording is known by its columns."""
        table = cls(path, None if recipe is None else recipe.style)
        return RtdeTable(path) if recipe is None and set(table.names) >= _RTDE else table

    def __init__(self, path: Path, style: CsvStyle | None = None) -> None:
        """Look at the first lines."""
        self._path, self._style = checked_file(path), style or CsvStyle()
        self.source = str(path)
        _refuse_binary(path)
        with self._open() as file:
            self._first_line = self._read_head(file)
        self._cut = self._is_cut()
        if self._cut:
            self.history = {"cut_off": True}
            self.info = (
                None if self.info is None else replace(self.info, history={**self.info.history, "cut_off": True})
            )

    def _open(self) -> TextIO:
        return self._path.open(encoding="utf-8-sig", errors="replace", newline="")

    def _read_head(self, file: TextIO) -> int:
        """Find names and delimiter; return the number of the first line with data, from 0."""
        skipped = sum(1 for _ in islice(file, self._style.skip_lines))
        line, number = _next_line(file, skipped)
        if match := _MARK.fullmatch(line):
            self._read_mark(int(match.group(1)), match.group(2))
        while line.startswith("#"):
            line, number = _next_line(file, number)
        if not line.strip():
            raise LogError(self.source, "", "is empty; a table of numbers is needed")
        self.delimiter = self._style.delimiter or ("," if self.info else _find_delimiter(line, self._style.decimal))
        self._decimal = self._style.decimal or self._find_decimal(number)
        self._dates = self._find_dates(number)
        while line.count('"') % 2 and (more := file.readline()):  # a name may hold a line break
            line, number = line + more, number + 1
        cells = self._cells(line)
        header = self._style.header
        if header is None:
            header = self.info is not None or any(_number(cell, self._decimal) is None for cell in cells)
        self.names = tuple(cells) if header else tuple(str(index + 1) for index in range(len(cells)))
        return number if header else number - 1

    def _some(self, number: int) -> list[list[str]]:
        """Cells of some lines from line `number` on."""
        with self._open() as file:
            return [self._cells(line) for line in islice(file, number - 1, number + _LOOKED_AT)]

    def _find_dates(self, number: int) -> set[int]:
        """Columns that hold dates and times, by some lines from line `number` on."""
        return {k for cells in self._some(number) for k, cell in enumerate(cells) if _DATE.match(cell)}

    def _find_decimal(self, number: int) -> str:
        """A comma where it does not separate columns and numbers of some lines from line `number` on have one."""
        if self.delimiter == "," or self.info is not None:
            return "."
        cells = [cell for line in self._some(number) for cell in line]
        point = any("." in cell and _number(cell, ".") is not None for cell in cells)
        return "," if not point and any(_WITH_COMMA.fullmatch(cell) for cell in cells) else "."

    def _read_mark(self, version: int, text: str) -> None:
        if version > FORMAT_VERSION:
            raise LogError(self.source, "line 1", f"says version {version} of the format; please update armid")
        self.exact = True
        self.info = info_from_data(data_from_json(text), self.source)

    def _cells(self, line: str) -> list[str]:
        if self.delimiter == " ":
            return line.split()
        try:
            given = [line.rstrip("\r\n")] if line.count('"') == 0 else [line]
            cells = next(csv.reader(given, delimiter=self.delimiter))
        except csv.Error as error:
            raise LogError(self.source, "", f"is no table of numbers ({error}); use another delimiter") from None
        return cells if self.info else [cell.strip() for cell in cells]

    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """See `Table.blocks`; empty cells are NaN."""
        with self._open() as file:
            number = sum(1 for _ in islice(file, self._first_line))
            source = _all_but_last(file) if self._cut else file
            while lines := list(islice(source, size)):
                values = self._parse(lines, columns, number)
                if len(values):
                    yield values
                number += len(lines)

    def _is_cut(self) -> bool:
        """Whether the last line ends too early: with columns missing, or in armid's own files without its end."""
        with self._path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().decode("utf-8", "replace").splitlines(keepends=True)
        if len(lines) < 3 or not lines[-1].strip():
            return False
        last, before = (len(self._cells(line)) for line in (lines[-1], lines[-2]))
        return last < before or (self.info is not None and not lines[-1].endswith("\n"))

    def _parse(self, lines: list[str], columns: Sequence[int], before: int) -> Array:
        if self._decimal != ".":
            lines = [line.replace(self._decimal, ".") for line in lines]
        if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
            return np.empty((0, len(columns)))
        try:
            return np.loadtxt(
                lines,
                delimiter=None if self.delimiter == " " else self.delimiter,
                usecols=list(columns),
                ndmin=2,
                quotechar='"',
                converters=dict.fromkeys(self._dates.intersection(columns), _seconds) or None,
            )
        except ValueError:
            return self._parse_slowly(lines, columns, before)

    def _parse_slowly(self, lines: list[str], columns: Sequence[int], before: int) -> Array:
        """Line by line, to allow empty cells and to name the line that is wrong."""
        rows = []
        for number, line in enumerate(lines, start=before + 1):
            content = line.partition("#")[0]
            if content.strip():
                rows.append(self._parse_line(self._cells(content), columns, number))
        return np.array(rows).reshape(-1, len(columns))

    def _parse_line(self, cells: list[str], columns: Sequence[int], number: int) -> list[float]:
        row = []
        for column in columns:
            if column >= len(cells):
                problem = f"has {len(cells)} of {len(self.names)} columns; is the file cut off? Remove or mend the line"
                raise LogError(self.source, f"line {number}", problem)
            value = _number(cells[column], ".")
            if value is None:
                where = f"line {number}, column {self.names[column]!r}"
                raise LogError(self.source, where, f"{cells[column][:40]!r} is not a number; {_MEND}")
            row.append(value)
        return row


def _all_but_last(lines: Iterable[str]) -> Iterator[str]:
    before: str | None = None
    for line in lines:
        if before is not None:
            yield before
        before = line


def _next_line(file: TextIO, number: int) -> tuple[str, int]:
    """The next line that is not blank, and its number from 1."""
    for line in file:
        number += 1
        if line.strip():
            return line, number
    return "", number


def _find_delimiter(line: str, decimal: str | None) -> str:
    return next((sign for sign in (";", "\t", ",") if sign in line and sign != decimal), " ")


def _number(cell: str, decimal: str) -> float | None:
    """The number in a cell, NaN if it is empty, None if it is text."""
    text = cell.strip().strip('"').strip()
    if not text:
        return np.nan
    if "_" in text:
        return None
    try:
        return _seconds(text) if _DATE.match(text) else float(text.replace(decimal, "."))
    except ValueError:
        return None


def _seconds(text: str) -> float:
    """Seconds since 1970 of a date and time; without a zone it is taken for that of Greenwich."""
    when = datetime.fromisoformat(text.strip().strip('"').replace(",", "."))
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _refuse_binary(path: Path) -> None:
    with path.open("rb") as file:
        start = file.read(65_536)
    if not start.strip():
        raise LogError(str(path), "", "is empty; a table of numbers is needed")
    if b"\0" in start or sum(byte < 9 or 13 < byte < 32 for byte in start[:4096]) > 8:
        raise LogError(str(path), "", "is a binary file, not text; save it as CSV in UTF-8, or give its true suffix")


def write_csv(stream: LogStream, channels: Sequence[str], path: Path) -> None:
    """Write armid's own CSV: a comment with the information, the names, then numbers that read back exactly."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# armid log {FORMAT_VERSION} {info_to_json(stream.info)}\n")
        names = column_names(stream.info.joints, channels)
        odd = any("\r" in name for name in names)  # the csv module quotes a line feed by itself, but not this one
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL if odd else csv.QUOTE_MINIMAL).writerow(names)
        for block in stream.blocks():
            write_rows(block, channels, file)


def write_rows(block: Log, channels: Sequence[str], file: TextIO) -> None:
    """Rows of armid's own CSV, below its head or others."""
    csv.writer(file, lineterminator="\n").writerows(as_rows(block, channels).tolist())


_RTDE = {"timestamp", "actual_q_0"}
#: Channels of a log and the fields of a UR controller that they hold.
RTDE_FIELDS = {
    "position": "actual_q",
    "velocity": "actual_qd",
    "current": "actual_current",
    "temperature": "joint_temperatures",
    "command": "target_q",
}


@READERS.add("rtde")
class RtdeTable(CsvTable):
    """A recording of Universal Robots' client: one column per joint, numbered from the base."""

    title: ClassVar[str] = "UR RTDE recording"
    suffixes: ClassVar[tuple[str, ...]] = ()
    joints = (
        "shoulder_pan_joint",
        "shoulder_lift_joint",
        "elbow_joint",
        "wrist_1_joint",
        "wrist_2_joint",
        "wrist_3_joint",
    )

    def __init__(self, path: Path, style: CsvStyle | None = None) -> None:
        """Look at the first lines; the controller measures currents, no torques."""
        super().__init__(path, style)
        for name in sorted(_RTDE - set(self.names), reverse=True):
            self.fail_missing(name, "format")
        self.info = LogInfo(self.joints, "current" if "actual_current_0" in self.names else "none", source=self.source)

    def places(self, joints: Sequence[str]) -> Places:
        """See `Table.places`."""
        if len(joints) != len(self.joints):
            problem = f"stands for {len(self.joints)} columns, but {len(joints)} are needed, one for each joint"
            raise LogError(self.source, "joints", problem)
        names = {channel: [f"{field}_{i}" for i in range(6)] for channel, field in RTDE_FIELDS.items()}
        there = {channel: columns for channel, columns in names.items() if set(columns) <= set(self.names)}
        return {
            channel: [index for name in columns for index in self.find(name, channel)]
            for channel, columns in {"time": ["timestamp"], **there}.items()
        }
