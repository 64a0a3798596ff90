"""What every file format is to the readers: a table with named columns, its units, and what the numbers mean."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, nearest
from armid.files import checked, parse_json
from armid.logs.log import CHANNELS, Log, LogError, LogInfo
from armid.registry import Registry

FORMAT_VERSION = 1

_ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": math.radians(1.0), "rev": 2.0 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2}
_FORCE = {"N": 1.0, "kN": 1e3, "mN": 1e-3}
_TORQUE = {
    "N m": 1.0,
    "mN m": 1e-3,
    "kN m": 1e3,
    "N cm": 1e-2,
    "N mm": 1e-3,
    "kgf m": 9.80665,
}
_PLACE = _ANGLE | _LENGTH
_SPEED = {f"{name}/s": factor for name, factor in _PLACE.items()} | {"rpm": math.pi / 30.0}
_ACCELERATION = {f"{name}/s^2": factor for name, factor in _PLACE.items()}

#: Factors to SI by channel, that of SI first.
UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "position": _PLACE,
    "velocity": _SPEED,
    "acceleration": _ACCELERATION,
    "effort": _TORQUE | _FORCE,
    "current": {"A": 1.0, "mA": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},
}
_COMMANDS = {"position": "position", "velocity": "velocity", "torque": "effort"}
_SPELLINGS = {"°": "deg", "°C": "degC", "C": "degC", "µs": "us", "1/min": "rpm", "r/min": "rpm", "rad/s2": "rad/s^2"}


def column_names(joints: Iterable[str], channels: Iterable[str]) -> tuple[str, ...]:
    """``time`` and ``channel.joint`` for every channel and joint."""
    names = tuple(joints)
    return ("time", *(f"{channel}.{joint}" for channel in channels for joint in names))


def unit_of(column: str, info: LogInfo) -> str:
    """Unit of a column of armid's own files, in SI; joints that slide have m where others have rad, and N for N m."""
    return next(iter(units_for(column.split(".", 1)[0], info.mode)))


def ordered(channels: Iterable[str]) -> tuple[str, ...]:
    """Channels in the order in which files hold them."""
    there = set(channels)
    return tuple(channel for channel in CHANNELS if channel in there)


def info_to_json(info: LogInfo) -> str:
    """The information as JSON on one line; numbers are exact."""
    data = {field.name: getattr(info, field.name) for field in fields(info)} | {"history": dict(info.history)}
    try:
        return json.dumps(data, ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise LogError(info.source, "history", f"cannot be written as JSON ({error})") from None


def data_from_json(text: str | bytes) -> Any:
    """What JSON text holds, None if it is no JSON."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def info_from_data(data: Any, source: str) -> LogInfo:
    """The information from what JSON holds; `source` is the file it was found in, its name from then on.

    What the log was called when it was written is the history's ``origin``.
    """
    if not isinstance(data, dict):
        raise LogError(source, "armid log", "the description of the log is not valid JSON; the file is damaged")
    known = {field.name for field in fields(LogInfo)}
    if unknown := sorted(set(data) - known):
        hint = nearest(unknown[0], known)
        problem = f"is not known{hint or ' here'}; correct the name, or update armid if a newer one wrote it"
        raise LogError(source, unknown[0], problem)
    try:
        info = checked(data, LogInfo, source)
    except (DescriptionError, LogError) as error:
        raise LogError(source, error.field or "armid log", f"{error.problem}; the description is damaged") from None
    origin = {"origin": info.source} if info.source else {}
    return replace(info, source=source, history={**info.history, **origin})


def as_rows(log: Log, channels: Iterable[str]) -> Array:
    """Time and channels side by side, (samples, 1 + channels * joints)."""
    return np.column_stack([log.time, *(log[channel] for channel in channels)])


@dataclass(frozen=True)
class Unit:
    """SI value = factor * value + offset."""

    factor: float = 1.0
    offset: float = 0.0


def units_for(channel: str, mode: str) -> dict[str, float]:
    """Units that a channel can have; those of `command` depend on the mode."""
    return UNITS[_COMMANDS[mode] if channel == "command" else channel]


def unit(name: str, channel: str, mode: str = "position") -> Unit | None:
    """The unit of that name for a channel, None if there is none; ``N m``, ``Nm`` and ``N*m`` are the same."""
    valid = units_for(channel, mode)
    spelt = _SPELLINGS.get(name.strip(), name.strip()).replace("*", " ").replace("·", " ").replace("²", "^2")
    by_letters = {key.replace(" ", ""): factor for key, factor in valid.items()}
    factor = valid.get(spelt, by_letters.get(spelt.replace(" ", "")))
    if factor is None:
        return None
    return Unit(factor, -273.15 if channel == "temperature" and spelt == "K" else 0.0)


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
        stated_effort: what the format's definition says that an effort is, where the file does not.
    """

    title: ClassVar[str] = ""
    part: ClassVar[str] = "column"
    suffixes: ClassVar[tuple[str, ...]] = ()
    starts: ClassVar[tuple[bytes, ...]] = ()
    stated_effort: ClassVar[str] = ""
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


READERS: Registry[type[Table]] = Registry("log reader", "armid.readers", "armid.logs.files")


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
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise LogError(str(path), "", "is a pipe or a device, of which no end is known; save the log to a file")
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
