"""Finding a fleet's logs: ``robot=NAME/date=YYYY-MM-DD/*`` in a folder or at an address of fsspec."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from armid.errors import ArmidError, MissingExtraError
from armid.escaping import LONGEST, one_line, unprintable
from armid.files import plain
from armid.fleet.day import ALL, DayProblem
from armid.fleet.description import Fleet

SUFFIXES = (".parquet", ".csv", ".mcap")
ENDINGS = ", ".join(SUFFIXES)
#: Kinds of addresses: other ones of fsspec unfold archives, follow references or run programs.
PROTOCOLS = ("file", "memory", "s3", "gs", "gcs", "az", "abfs", "abfss", "http", "https", "sftp", "smb", "hdfs")
SHOWN = 5  # names that a message lists
_ARM = re.compile(r"(?:^|(.*)/)robot=([^/]*)(?:/(.*))?\Z", re.DOTALL)


@dataclass(frozen=True)
class LogFile:
    """One file of a partition.

    Attributes:
        path: on its file system.
        size: [bytes].
        stamp: changes when the file changes: ETag, checksum or time of modification.
    """

    path: str
    size: int
    stamp: str


@dataclass(frozen=True)
class Partition:
    """The logs of one arm on one day.

    Attributes:
        robot: which arm.
        date: ISO date; empty for what is wrong with the arm's folder itself.
        files: in the order of their names, numbers by their size: log_2 before log_10.
        problems: what is wrong with the folder.
    """

    robot: str
    date: str
    files: tuple[LogFile, ...]
    problems: tuple[DayProblem, ...] = ()

    def key(self, options_key: str) -> str:
        """Hash of the files' names, sizes and stamps, and of the options: unchanged, nothing has to be read again."""
        files = [(Path(file.path).name, file.size, file.stamp) for file in self.files]
        what = plain([options_key, self.robot, self.date, files, self.problems])
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def find_partitions(fleet: Fleet) -> list[Partition]:
    """All partitions, sorted by robot and date.

    A folder of a day without any log, and what lies in an arm's folder but in none of its days, are partitions without
    files that say so. (Object stores have no empty folders; there, they cannot be seen.)

    Raises:
        ArmidError: the address cannot be read, holds no log, or two folders are of one arm.
    """
    system, root = file_system(fleet)
    try:
        if not system.exists(root):
            raise ArmidError(f"{fleet.source}: logs: {fleet.logs} is not there; name the folder that holds robot=…")
        found: dict[str, dict[str, Any]] = system.find(root, detail=True, withdirs=True)
    except ArmidError:
        raise
    except Exception as error:  # each file system raises its own
        reason = one_line(str(error))[:LONGEST]
        raise ArmidError(f"{fleet.source}: logs: {fleet.logs} cannot be read ({reason})") from None
    arms = _arms(fleet, root, found)
    partitions = [one for name in sorted(arms) for one in arms[name].partitions(fleet, name)]
    if not any(one.files for one in partitions):
        seen = _endings(path for path, info in found.items() if info.get("type") != "directory")
        raise ArmidError(
            f"{fleet.source}: logs: {fleet.logs} holds no log{seen}; they must lie as robot=NAME/date=YYYY-MM-DD/file "
            f"with one of the endings {ENDINGS}"
        )
    return partitions


@dataclass
class _Arm:
    """What lies in the folder of an arm: files by date, folders of dates, and the rest."""

    parent: str
    days: dict[str, list[LogFile]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    def add(self, inside: str, path: str, info: dict[str, Any]) -> None:
        """Note a file or folder; `inside` is its path within the folder of the arm."""
        is_folder = info.get("type") == "directory"
        first, _, rest = inside.partition("/")
        if first.startswith("date=") and (rest or is_folder):
            files = self.days.setdefault(first.removeprefix("date="), [])
            if rest and not is_folder:
                files.append(LogFile(path, int(info.get("size") or 0), _stamp(info)))
        elif first and not first.startswith((".", "_")) and (is_folder or rest or path.lower().endswith(SUFFIXES)):
            self.others.add(first)

    def partitions(self, fleet: Fleet, robot: str) -> Iterator[Partition]:
        """One for each date, and one without a date where the folder holds something else."""
        there = f"robot={robot}"
        advice = f"is not read; logs must lie in {there}/date=YYYY-MM-DD, with one of the endings {ENDINGS}"
        wrong = [DayProblem(name, advice) for name in sorted(self.others)]
        if not self.days and not wrong:
            wrong = [DayProblem(there, "holds no folder date=YYYY-MM-DD with logs")]
        if wrong:
            yield Partition(robot, "", (), tuple(wrong))
        for date, files in sorted(self.days.items()):
            _check_date(fleet, f"{there}/date={date}", date)
            logs = [file for file in files if file.path.lower().endswith(SUFFIXES)]
            good = [file for file in logs if Path(file.path).parent.name == f"date={date}"]
            reason = f"the folder holds no log with one of the endings {ENDINGS}{_endings(f.path for f in files)}"
            if logs:
                reason = "holds logs in folders below only; they must lie in the folder of the date itself"
            problems = () if good else (DayProblem(ALL, reason),)
            yield Partition(robot, date, tuple(sorted(good, key=lambda file: _natural(file.path))), problems)


def _arms(fleet: Fleet, root: str, found: dict[str, dict[str, Any]]) -> dict[str, _Arm]:
    """What was found, by arm."""
    arms: dict[str, _Arm] = {}
    start = root.rstrip("/")
    start = start[: start.rfind("/") + 1] if "/robot=" in start[start.rfind("/") :] else start + "/"
    for path, info in found.items():
        place = _ARM.search(path.removeprefix(start)) if path.startswith(start) else None
        if place is None or (place[3] is None and info.get("type") != "directory"):
            continue
        parent, robot = place[1] or "", place[2]
        if unprintable(robot) or not robot.strip(". "):
            where = f"{fleet.source}: logs: robot={one_line(robot)}"
            raise ArmidError(f"{where} is no name of an arm; rename the folder with letters and digits")
        arm = arms.setdefault(robot, _Arm(parent))
        if arm.parent != parent:
            first, second = (f"{one}/robot={robot}".lstrip("/") for one in (arm.parent, parent))
            raise ArmidError(
                f"{fleet.source}: logs: {first} and {second} are two folders of one arm; rename one of them, or write "
                "a fleet file for each"
            )
        arm.add((place[3] or "").rstrip("/"), path, info)
    return arms


def _endings(paths: Iterable[str]) -> str:
    """Endings of files, for a message."""
    seen = sorted({"".join(Path(path).suffixes[-2:]) or Path(path).name for path in paths})
    more = ", …" if len(seen) > SHOWN else ""
    return f" (there are: {', '.join(seen[:SHOWN])}{more})" if seen else " (it is empty)"


def _natural(path: str) -> tuple[list[str | int], str]:
    """Sorts log_2 before log_10."""
    return [int(part) if part.isdigit() else part for part in re.split("([0-9]+)", Path(path).name)], path


def file_system(fleet: Fleet) -> tuple[Any, str]:
    """The file system of the logs and their path on it."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("fleets", "fleet") from None
    where = f"{fleet.source}: logs: {fleet.logs}"
    protocol = fsspec.utils.get_protocol(fleet.logs)
    if protocol not in PROTOCOLS or "::" in fleet.logs:
        raise ArmidError(f"{where} is of no kind that is read; use a folder or one of {', '.join(PROTOCOLS)}")
    try:
        system, root = fsspec.core.url_to_fs(fleet.logs, **fleet.storage)
    except Exception as error:  # each file system raises its own
        raise ArmidError(f"{where} cannot be opened ({one_line(str(error))[:LONGEST]})") from None
    return system, root


@contextmanager
def local_copy(system: Any, file: LogFile) -> Iterator[Path]:
    """The file on this machine: itself where it is local, else a copy that is removed afterwards."""
    if "file" in (system.protocol if isinstance(system.protocol, tuple | list) else (system.protocol,)):
        yield Path(file.path)
        return
    with TemporaryDirectory(prefix="armid-") as folder:
        target = Path(folder) / Path(file.path).name
        with system.open(file.path, "rb") as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        yield target


def _stamp(info: dict[str, Any]) -> str:
    for name in ("ETag", "etag", "checksum", "md5Hash", "mtime", "LastModified", "created"):
        if info.get(name) is not None:
            return str(info[name])
    return ""


def _check_date(fleet: Fleet, path: str, date: str) -> None:
    try:
        good = str(datetime.date.fromisoformat(date)) == date  # 20260105 and 2026-W02-2 are dates, too, for Python
    except ValueError:
        good = False
    if not good:
        raise ArmidError(f"{fleet.source}: {path}: date={date} is no date; name the folder date=YYYY-MM-DD")
