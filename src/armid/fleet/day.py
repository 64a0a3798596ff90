"""Arm-days: what is kept of one arm's recordings of one day, the folder that holds them, and those of a whole fleet."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tokenize import TokenError
from typing import Any, NamedTuple

import msgspec
import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.errors import ArmidError
from armid.files import checked, parse_json, plain, shown, write_bytes
from armid.notes import note

FORMAT = "armid arm-day 3"
ALL = "all"  # file of a day that was not used as a whole
#: What reading a damaged archive may raise, beside the usual.
DAMAGED = (zipfile.BadZipFile, zlib.error, TokenError, NotImplementedError, RuntimeError, MemoryError)
_UNFOLDED = 1 << 26  # bytes of an arm-day that is read; one has some tens of kilobytes
HELD = 1 << 29  # bytes of factors that are kept in memory; arm-days beyond are read again when they are needed


class DayFinding(msgspec.Struct, frozen=True):
    """What the log doctor, or the reading itself, found in a file; code, severity and values are the doctor's."""

    code: str
    severity: str
    file: str
    joint: str | None = None
    values: dict[str, Any] = {}


class DayProblem(msgspec.Struct, frozen=True):
    """A file that could not be used, or ``all`` of a day, and why."""

    file: str
    reason: str


class UnusedRecording(msgspec.Struct, frozen=True):
    """A recording that was not used; `file` is ``all`` for a day on which a torque is wrong or that fits nothing."""

    robot: str
    date: str
    file: str
    reason: str


@dataclass(frozen=True, eq=False)
class ArmDay:
    """One arm on one day, reduced: some tens of kilobytes, and no raw data.

    Attributes:
        robot: which arm, by the name of its partition (``robot=…``).
        date: ISO date, ``2026-11-15``; empty for what is wrong with the arm's folder itself.
        rms: of the residuals of the day's own least-squares fit, per joint [N m]; NaN where it could not be made.
        inflation: factor by which residuals that are correlated in time enlarge the variance of estimates, per joint,
            at least 1.
        temperature: mean over the day, per joint [°C]; NaN without a sensor.
        reversal: rms of the residuals shortly after changes of direction over the rms elsewhere, per joint; NaN where
            there were too few.
        samples: rows that were read.
        seconds: time that was recorded.
        findings: of the log doctor.
        problems: recordings that could not be used.
        key: hash of the data and the options it was made from.
        files_sha256: hashes of the files, by name.
        factor: compact factor of all usable recordings of the day; None if there were none.
    """

    robot: str
    date: str
    rms: Array
    inflation: Array
    temperature: Array
    reversal: Array
    samples: int
    seconds: float
    findings: tuple[DayFinding, ...] = ()
    problems: tuple[DayProblem, ...] = ()
    key: str = ""
    files_sha256: dict[str, str] = field(default_factory=dict)
    factor: CompactFactor | None = field(default=None, repr=False)  # not part of the plain data

    @property
    def usable(self) -> bool:
        """Whether there is anything to estimate from."""
        return self.factor is not None

    def to_bytes(self) -> bytes:
        """A NumPy archive without pickles: arrays of the factor, all else as JSON."""
        about: dict[str, Any] = {"format": FORMAT, **plain(self)}
        arrays: dict[str, Any] = {}
        if self.factor is not None:
            factor = self.factor
            sizes = [len(columns) for columns in factor.columns]
            about["stated"] = [factor.names, sizes, factor.samples, factor.triangular, factor.counts]
            arrays["columns"] = np.concatenate(factor.columns)
            arrays["matrices"] = np.concatenate([matrix.ravel() for matrix in factor.matrices])
        buffer = io.BytesIO()
        np.savez_compressed(buffer, about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8), **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, source: str = "arm-day") -> ArmDay:
        """Read what `to_bytes` wrote.

        Raises:
            ArmidError: it is something else, or damaged.
        """
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                _check_sizes(archive)
                about = parse_json(_member(archive, "about").tobytes())
                if about["format"] != FORMAT:
                    raise ArmidError(f"{source}: was written by another version of armid; remove it")
                day = checked(about, cls, source)
                if "stated" not in about:
                    return day
                names, sizes, samples, triangular, counts = about["stated"]
                columns, numbers = _member(archive, "columns"), _member(archive, "matrices")
            ends = np.array([[size, (size + 1) ** 2] for size in sizes]).cumsum(axis=0)[:-1]
            own, flat = np.split(columns, ends[:, 0]), np.split(numbers, ends[:, 1])
            matrices = tuple(part.reshape(size + 1, size + 1) for part, size in zip(flat, sizes, strict=True))
            factor = CompactFactor(tuple(names), tuple(own), matrices, samples, triangular, tuple(counts))
            return replace(day, factor=factor)
        except (LookupError, ValueError, TypeError, OverflowError, OSError, EOFError, *DAMAGED) as error:
            problem = shown(str(error))
            raise ArmidError(f"{source}: is damaged or not an arm-day of armid ({problem}); remove it") from None


def _member(archive: zipfile.ZipFile, name: str) -> Any:
    """One array; `np.load` takes thrice as long."""
    with archive.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _check_sizes(archive: zipfile.ZipFile) -> None:
    """Refuse what unfolds to more than any factor has, before it does."""
    if sum(part.file_size for part in archive.infolist()) > _UNFOLDED:
        raise ValueError("it unfolds to far more than an arm-day has")


class Store:
    """A folder of arm-days, each under the hash of its data and options; what is in it need not be computed again.

    Attributes:
        folder: where they lie.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder, and find out now whether it can be written."""
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / ".writable"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise ArmidError(f"{folder}: cannot be written ({error.strerror}); choose another folder with -o") from None

    def has(self, key: str) -> bool:
        """Whether the arm-day of a key is there, and undamaged by its check sums."""
        try:
            with zipfile.ZipFile(self._path(key)) as archive:
                _check_sizes(archive)
                return archive.testzip() is None
        except (OSError, EOFError, ValueError, *DAMAGED):
            return False

    def get(self, key: str) -> ArmDay:
        """The arm-day of a key.

        Raises:
            ArmidError: it is not there, or damaged.
        """
        path = self._path(key)
        try:
            return ArmDay.from_bytes(path.read_bytes(), str(path))
        except OSError as error:
            raise ArmidError(f"{path}: cannot be read ({error.strerror})") from None

    def put(self, day: ArmDay) -> None:
        """Keep an arm-day; the file is complete or not there."""
        write_bytes(self._path(day.key), day.to_bytes())

    def remove(self, key: str) -> None:
        """Do not keep the arm-day of a key."""
        self._path(key).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


class DayFacts(NamedTuple):
    """What is remembered of an arm-day that is not held."""

    date: str
    samples: int
    seconds: float
    usable: bool
    key: str


class Days:
    """The arm-days of each arm, without recordings that are there twice; read when they are asked for.

    Attributes:
        keys: of the arm-days of each arm, by date.
        total: number of arm-days.
        facts: of each arm-day, by arm.
        problems: recordings that are there twice, and folders that are of no day.
    """

    def __init__(self, keys: Mapping[str, Sequence[str]], store: Store) -> None:
        """Read all once."""
        self.keys, self._store = keys, store
        self.total = sum(len(some) for some in keys.values())
        self._held: dict[str, tuple[ArmDay, ...]] = {}
        self._room = HELD
        self.problems: list[UnusedRecording] = []
        self._seen: dict[str, tuple[str, str, str]] = {}  # arm, date and file of each hash
        self._left_out: set[str] = set()
        self.facts: dict[str, list[DayFacts]] = {name: [] for name in keys}
        for name in keys:
            for day in self._read(name):
                self._note(day)

    def _note(self, day: ArmDay) -> None:
        if not day.date:  # what is wrong with the folder of an arm
            self.problems += [UnusedRecording(day.robot, "", one.file, one.reason) for one in day.problems]
            self._left_out.add(day.key)
            self.total -= 1
            return
        copies = {file: self._seen[sha] for file, sha in day.files_sha256.items() if sha in self._seen}
        if copies and day.usable:
            # A file of another arm spoils the day. One of another day of the same arm only counts twice in its sums.
            whole = len(copies) == len(day.files_sha256) or any(robot != day.robot for robot, *_ in copies.values())
            for file, (robot, date, other) in copies.items():
                reason = str(note("fleet.same-file", robot=robot, date=date, file=other, whole=whole))
                self.problems.append(UnusedRecording(day.robot, day.date, file, reason))
            if whole:
                self._left_out.add(day.key)
        for file, sha in day.files_sha256.items():
            self._seen.setdefault(sha, (day.robot, day.date, file))
        self.facts[day.robot].append(DayFacts(day.date, day.samples, day.seconds, day.usable, day.key))

    def _read(self, name: str) -> tuple[ArmDay, ...]:
        if name in self._held:
            return self._held[name]
        days = tuple(self._store.get(key) for key in self.keys[name])
        size = sum(matrix.nbytes for day in days if day.factor is not None for matrix in day.factor.matrices)
        if size <= self._room:
            self._room -= size
            self._held[name] = days
        return days

    def held(self, name: str) -> bool:
        """Whether the days of an arm are kept in memory."""
        return name in self._held

    def __call__(self, name: str) -> tuple[ArmDay, ...]:
        """The arm-days of one arm, by date."""
        return tuple(day for day in self._read(name) if day.key not in self._left_out)

    def usable(self, name: str) -> bool:
        """Whether anything can be estimated."""
        return any(fact.usable and fact.key not in self._left_out for fact in self.facts[name])
