"""Stages of a run: each turns files into files and is skipped when nothing it depends on has changed."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from armid._version import __version__
from armid.errors import ArmidError
from armid.files import code_hash, convert, file_hash, make_inside, parse_json, read_text, write_text
from armid.logs import Log
from armid.logs.files import read_copy
from armid.progress import Progress, watch_progress
from armid.run.settings import Settings

_MARKS = ".stages"  # folder with one small file per finished stage


class _Mark(TypedDict):
    key: str
    files: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class Workplace:
    """What a stage works with.

    Attributes:
        folder: of the run.
        settings: of the run.
        progress: told what is done and which share of it.
        robot: hash of the robot, which every stage depends on.
        rounds: experiments that are identified from.
        logs: those that were read, by file name.
    """

    folder: Path
    settings: Settings
    progress: Progress
    robot: str = ""
    rounds: int = 1
    logs: dict[str, Log] = field(default_factory=dict)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def log(self, name: str) -> Log:
        """A log of the folder, read once."""
        if name not in self.logs:
            self.logs[name] = read_copy(self / name)
        return self.logs[name]


@dataclass(frozen=True)
class Stage:
    """One step of the procedure.

    Attributes:
        name: short, unique.
        title: what it does, for people.
        work: does it; files are written atomically, and what is in `writes` is there at the end.
        writes: files or folders it makes, relative to the run's folder.
        reads: files of earlier stages it depends on.
        choices: settings it depends on.
        outside: the user's files it depends on.
    """

    name: str
    title: str
    work: Callable[[Workplace], None]
    writes: tuple[str, ...]
    reads: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Done:
    """A stage that has ended.

    Attributes:
        stage: its name.
        title: what it does.
        kept: nothing had changed, so it was not repeated.
        seconds: how long it took, now or when it was done.
    """

    stage: str
    title: str
    kept: bool
    seconds: float


def carry_out(stages: Sequence[Stage], place: Workplace, tell: Callable[[Done], None]) -> list[Done]:
    """Do the stages in order; what is finished and unchanged is kept.

    A stage's mark is written after its files, so that an interruption at any moment leaves either a finished stage or
    one that is done again.
    """
    marks, done = make_inside(place.folder / _MARKS), []
    for stage in stages:
        mark = marks / f"{stage.name}.json"
        key = _key(stage, place)
        earlier = _earlier(mark)
        if _kept(earlier, key, place, stage):
            done.append(Done(stage.name, stage.title, True, earlier["seconds"]))
        else:
            mark.unlink(missing_ok=True)
            place.progress(stage.title, 0.0)
            start = time.perf_counter()
            with watch_progress(place.progress):
                stage.work(place)
            seconds = time.perf_counter() - start
            files = {name: file_hash(place / name) for name in stage.writes}
            write_text(mark, json.dumps({"key": key, "files": files, "seconds": round(seconds, 2)}) + "\n")
            done.append(Done(stage.name, stage.title, False, seconds))
        tell(done[-1])
    return done


def finished(stages: Sequence[Stage], place: Workplace) -> list[str]:
    """Names of the stages whose results are there and made from what they would be made from now."""
    names: list[str] = []
    stale: set[str] = set()
    for stage in stages:
        earlier = _earlier(place.folder / _MARKS / f"{stage.name}.json")
        try:
            good = not stale & set(stage.reads) and _kept(earlier, _key(stage, place), place, stage)
        except (OSError, ArmidError):
            good = False
        if good:
            names.append(stage.name)
        else:
            stale |= set(stage.writes)
    return names


def _kept(earlier: Mapping[str, Any], key: str, place: Workplace, stage: Stage) -> bool:
    return earlier.get("key") == key and _intact(earlier["files"], place, stage)


def clear(stages: Sequence[Stage], place: Workplace) -> None:
    """Remove what earlier runs made and these stages do not, so that nothing stale is taken for a result."""
    wanted = {stage.name: stage.writes for stage in stages}
    kept = {name for names in wanted.values() for name in names}
    for mark in sorted(make_inside(place.folder / _MARKS).glob("*.json")):
        for name in _earlier(mark).get("files", ()):
            if name not in kept and Path(name).name == name:  # a mark that somebody else wrote may name any file
                path = place / name
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if mark.stem not in wanted:
            mark.unlink()


def _key(stage: Stage, place: Workplace) -> str:
    """Hash of all that decides what a stage makes."""
    settings = place.settings.to_data()
    what = {
        "armid": __version__,
        "code": code_hash(),
        "stage": stage.name,
        "robot": place.robot,
        "settings": {name: settings[name] for name in stage.choices},
        "reads": {name: file_hash(place / name) for name in stage.reads},
        "outside": {name: file_hash(Path(name)) for name in stage.outside},
    }
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()


def _earlier(mark: Path) -> dict[str, Any]:
    try:
        return dict(convert(parse_json(read_text(mark)), _Mark))
    except (ArmidError, OSError, ValueError):
        return {}


def _intact(files: Mapping[str, str], place: Workplace, stage: Stage) -> bool:
    """Whether what a stage made is still there as it was made."""
    return set(files) == set(stage.writes) and all(
        (place / name).exists() and file_hash(place / name) == digest for name, digest in files.items()
    )
