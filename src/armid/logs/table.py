"""What every file format is to the readers: a table with named columns, read in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from armid.arrays import Array
from armid.errors import nearest
from armid.logs.log import LogError, LogInfo

_LISTED = 40
ALIKE = 0.8  # how like the name of a missing file another one must be to be offered, 0 to 1


class Table(ABC):
    """Columns of numbers in a file.

    Attributes:
        source: the file, for messages.
        names: of the columns; numbers from 1 where the file has no names.
        info: what the numbers mean, if armid wrote the file.
        history: what else is worth keeping about the file's origin.
    """

    source: str
    names: tuple[str, ...]
    info: LogInfo | None = None
    history: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """The columns with these indices (from 0), at most `size` rows at a time, (rows, columns)."""

    def find(self, name: str, field: str) -> list[int]:
        """Indices of the column, or columns, that a name stands for; `field` is the entry that asks for it."""
        if name not in self.names:
            self.fail_missing(name, field)
        return [self.names.index(name)]

    def number(self, number: int, field: str) -> int:
        """Index of the column with a number from 1."""
        if not 1 <= number <= len(self.names):
            raise LogError(
                self.source, field, f"there is no column {number}; it has the columns 1 to {len(self.names)}"
            )
        return number - 1

    def fail_missing(self, name: str, field: str) -> NoReturn:
        """Raise the error about a column that is not there."""
        there = ", ".join(self.names[:_LISTED]) + (", ..." if len(self.names) > _LISTED else "")
        hint = nearest(name[:80], self.names)
        listing = f"it has: {there}" if self.names else "it has none"
        link = f"{hint} " if hint else "; "
        raise LogError(self.source, field, f"there is no column {name[:80]!r}{link}{listing}")


def possible(path: str | Path) -> Path:
    """The path, if a file can have it."""
    if "\0" in str(path):
        raise LogError(repr(str(path)), "", "is not a possible name of a file; it holds a NUL character")
    path = Path(path)
    try:
        path.exists()
    except OSError as error:
        raise LogError(str(path)[:200], "", f"cannot be read or written ({error.strerror})") from None
    return path


def checked_file(path: Path) -> Path:
    """The path, which must be that of a readable file; a LogError otherwise."""
    try:
        with path.open("rb"):
            return path
    except FileNotFoundError:
        there = path.parent.iterdir() if path.parent.is_dir() else ()
        hint = nearest(path.name, (other.name for other in there if other.is_file()), cutoff=ALIKE)
        raise LogError(str(path), "", f"there is no such file{hint}") from None
    except IsADirectoryError:
        raise LogError(str(path), "", "is a folder; give a log file, or a ROS 2 bag with metadata.yaml") from None
    except OSError as error:
        raise LogError(str(path), "", f"cannot be read ({error.strerror})") from None
