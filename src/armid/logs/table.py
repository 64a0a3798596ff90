"""What every file format is to the readers: a table with named columns, read in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from armid.arrays import Array
from armid.errors import nearest
from armid.logs.log import CHANNELS, LogError, LogInfo
from armid.registry import Registry

_LISTED = 40
ALIKE = 0.8  # how like the name of a missing file another one must be to be offered, 0 to 1


Places = dict[str, list[int | None]]  # where time and channels are: indices of columns, None where there is none


class Table(ABC):
    """Columns of numbers in a file; a reader is a subclass, entered into `READERS` under the name of its format.

    ``@READERS.add("mine")`` above a class, or an entry point of the group ``armid.readers``, is all that a format of
    another package needs: files are recognised by `suffixes` and `starts`, a recipe may name the format, and where
    `info` says what the numbers mean no recipe is needed.

    Attributes:
        title: what the format is, for people.
        part: what it calls a column.
        suffixes: of its files, such as ``.csv``.
        starts: first bytes of its files, which count more than the suffix.
        joints: names, where the format knows them.
        source: the file, for messages.
        names: of the columns; numbers from 1 where the file has no names.
        info: what the numbers mean, if the file says so.
        exact: armid wrote the file, so that it is read as it is.
        history: what else is worth keeping about the file's origin.
    """

    title: ClassVar[str] = ""
    part: ClassVar[str] = "column"
    suffixes: ClassVar[tuple[str, ...]] = ()
    starts: ClassVar[tuple[bytes, ...]] = ()
    joints: Sequence[str] = ()
    exact: bool = False
    source: str
    names: tuple[str, ...]
    info: LogInfo | None = None
    history: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def open(cls, path: Path, recipe: Any) -> Table:
        """The table in a file; the `Recipe`, None where there is none, says how it is written."""
        return cls(path)  # type: ignore[call-arg]

    @abstractmethod
    def blocks(self, columns: Sequence[int], size: int) -> Iterator[Array]:
        """The columns with these indices (from 0), at most `size` rows at a time, (rows, columns)."""

    def find(self, name: str, field: str) -> list[int]:
        """Indices of the column, or columns, that a name stands for; `field` is the entry that asks for it."""
        if name not in self.names:
            self.fail_missing(name, field)
        return [self.names.index(name)]

    def places(self, joints: Sequence[str]) -> Places:
        """Where time and channels are by the format's own names: ``time`` and ``channel.joint``."""
        named = split_names(self.names)
        position = {name: index for index, name in enumerate(self.names)}
        places: Places = {"time": list(self.find("time", ""))}
        for channel in named[1]:
            found = [position.get(f"{channel}.{joint}") for joint in joints]
            if any(index is not None for index in found):
                places[channel] = found
        for joint in joints:
            if joint not in named[0]:
                self.fail_missing(f"{(*named[1], 'position')[0]}.{joint}", "joints")
        return places

    def number(self, number: int, field: str) -> int:
        """Index of the column with a number from 1."""
        if not 1 <= number <= len(self.names):
            raise LogError(
                self.source, field, f"there is no column {number}; it has the columns 1 to {len(self.names)}"
            )
        return number - 1

    def fail_missing(self, name: str, field: str) -> NoReturn:
        """Raise the error about a column that is not there."""
        there = ", ".join(name[:80] for name in self.names[:_LISTED]) + (", ..." if len(self.names) > _LISTED else "")
        hint = nearest(name[:80], self.names)
        listing = f"it has: {there}" if self.names else "it has none"
        link = f"{hint} " if hint else "; "
        raise LogError(self.source, field, f"there is no column {name[:80]!r}{link}{listing}")


READERS: Registry[type[Table]] = Registry("log reader", "armid.readers", "armid.logs.read")


def formats() -> str:
    """Suffixes of all files that can be read, for messages and help: ``.parquet, .csv``."""
    return ", ".join(dict.fromkeys(suffix for reader in READERS.values() for suffix in reader.suffixes))


def split_names(columns: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints and channels of columns named ``channel.joint``; other columns are left out."""
    pairs = [(channel, joint) for channel, _, joint in (name.partition(".") for name in columns)]
    known = [(channel, joint) for channel, joint in pairs if joint and channel in CHANNELS]
    there = {channel for channel, _ in known}
    return tuple(dict.fromkeys(joint for _, joint in known)), tuple(name for name in CHANNELS if name in there)


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
