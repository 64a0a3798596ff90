"""Finding a fleet's logs: ``robot=NAME/date=YYYY-MM-DD/*`` in a folder or any fsspec address."""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from armid.errors import ArmidError, MissingExtraError
from armid.fleet.description import Fleet

SUFFIXES = (".parquet", ".csv", ".mcap")
_PLACE = re.compile(r"(?:^|/)robot=([^/]+)/date=([^/]+)/[^/]+$")


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
        date: ISO date.
        files: in the order of their names.
    """

    robot: str
    date: str
    files: tuple[LogFile, ...]

    def key(self, options_key: str) -> str:
        """Hash of the files' names, sizes and stamps, and of the options: unchanged, nothing has to be read again."""
        what = [options_key, self.robot, self.date, [(Path(f.path).name, f.size, f.stamp) for f in self.files]]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def find_partitions(fleet: Fleet) -> list[Partition]:
    """All partitions, sorted by robot and date.

    Raises:
        ArmidError: the address cannot be read, or holds no partition.
    """
    system, root = file_system(fleet)
    try:
        if not system.exists(root):
            raise ArmidError(f"{fleet.source}: logs: {fleet.logs} is not there; name the folder that holds robot=…")
        found: dict[str, dict[str, Any]] = system.find(root, detail=True)
    except (OSError, ValueError) as error:
        raise ArmidError(f"{fleet.source}: logs: {fleet.logs} cannot be read ({error})") from None
    groups: dict[tuple[str, str], list[LogFile]] = {}
    for path, info in found.items():
        place = _PLACE.search(path)
        if place is None or not path.lower().endswith(SUFFIXES):
            continue
        robot, date = place.groups()
        _check_date(fleet, path, date)
        groups.setdefault((robot, date), []).append(LogFile(path, int(info.get("size") or 0), _stamp(info)))
    if not groups:
        raise ArmidError(
            f"{fleet.source}: logs: {fleet.logs} holds no log; they must lie as robot=NAME/date=YYYY-MM-DD/file with "
            f"one of the endings {', '.join(SUFFIXES)}"
        )
    return [
        Partition(robot, date, tuple(sorted(files, key=lambda file: file.path)))
        for (robot, date), files in sorted(groups.items())
    ]


def file_system(fleet: Fleet) -> tuple[Any, str]:
    """The file system of the logs and their path on it."""
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError("fleets", "fleet") from None
    try:
        system, root = fsspec.core.url_to_fs(fleet.logs, **fleet.storage)
    except (ImportError, ValueError) as error:
        raise ArmidError(f"{fleet.source}: logs: {fleet.logs} cannot be opened ({error})") from None
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
        datetime.date.fromisoformat(date)
    except ValueError:
        raise ArmidError(f"{fleet.source}: {path}: date={date} is no date; name the folder date=YYYY-MM-DD") from None
