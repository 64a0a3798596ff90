"""Columns as people write them in a recipe: ``2-7``, ``[a, b, c]``, ``"actual_q_{0..5}"``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from armid.logs.log import LogError
from armid.logs.table import Table
from armid.robot.schema import Fields

_NUMBERS = re.compile(r"\s*\d+\s*(-\s*\d+\s*)?(,\s*\d+\s*(-\s*\d+\s*)?)*")
_BRACES = re.compile(r"\{(-?\d+)\.\.(-?\d+)\}")
_MOST = 1000


@dataclass(frozen=True)
class Columns:
    """Where a channel is.

    Attributes:
        items: names, or numbers from 1; None for a joint without the channel.
        file: number of the file from 1, when files stand side by side.
    """

    items: tuple[str | int | None, ...]
    file: int = 1

    def indices(self, table: Table, field: str) -> list[int | None]:
        """Indices into the table, from 0; one name may stand for several columns."""
        found: list[int | None] = []
        for item in self.items:
            if item is None:
                found.append(None)
            elif isinstance(item, int):
                found.append(table.number(item, field))
            else:
                found += table.find(item, field)
        return found


def read_columns(fields: Fields, key: str) -> Columns:
    """The columns under a key: a number, a range, a name, a list, or a mapping with `file` and `columns`."""
    value = fields.require(key)
    if not isinstance(value, dict):
        return Columns(_items(fields, key, value))
    section = fields.section(key)
    file = section.checked_integer("file", section.take("file", 1))
    if file < 1:
        section.fail("file", f"is {file}; files are numbered from 1")
    items = _items(section, "columns", section.require("columns"))
    section.finish()
    return Columns(items, file)


def _items(fields: Fields, key: str, value: object) -> tuple[str | int | None, ...]:
    if isinstance(value, list):
        parts = [_names(fields, key, item) if isinstance(item, str) else [item] for item in value]
        flat = [item for part in parts for item in part]
    elif isinstance(value, str) and _NUMBERS.fullmatch(value):
        flat = [number for part in value.split(",") for number in _range(fields, key, part)]
    elif isinstance(value, str):
        flat = list(_names(fields, key, value))
    else:
        flat = [value]
    for item in flat:
        if isinstance(item, bool) or not isinstance(item, str | int | None) or (isinstance(item, int) and item < 1):
            fields.fail(key, "must be a number from 1, a range such as 2-7, a name, or a list of these")
    if not flat or all(item is None for item in flat):
        fields.fail(key, "names no column")
    return tuple(flat)


def _range(fields: Fields, key: str, text: str) -> list[int]:
    first, _, last = text.partition("-")
    start, stop = int(first[:9]), int((last or first)[:9])
    if not 1 <= start <= stop or stop - start > _MOST:
        fields.fail(key, f"{text.strip()[:40]!r} is not a range of columns; they are numbered from 1, as in 2-7")
    return list(range(start, stop + 1))


def _names(fields: Fields, key: str, text: str) -> list[str]:
    """The name, or all names if it has braces such as {0..5}."""
    match = _BRACES.search(text)
    if match is None:
        return [text]
    start, stop = int(match.group(1)[:9]), int(match.group(2)[:9])
    if abs(stop - start) > _MOST:
        fields.fail(key, f"{text[:40]!r} stands for more than {_MOST} columns")
    step = 1 if stop >= start else -1
    return [text[: match.start()] + str(i) + text[match.end() :] for i in range(start, stop + step, step)]


def check_count(indices: list[int | None], wanted: int, where: tuple[str, str], what: str) -> None:
    """Raise a LogError unless there are as many columns as wanted; `where` is the file and the entry."""
    if len(indices) != wanted:
        raise LogError(*where, f"stands for {len(indices)} columns, but {wanted} are needed, {what}")
