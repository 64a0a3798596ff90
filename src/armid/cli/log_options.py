"""LOG... and what the commands that read logs and write results have in common."""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError
from armid.progress import report_progress

if TYPE_CHECKING:
    from armid.logs import Log


def add_log_options(command: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """LOG... and what says how to read them; where they are not needed, the virtual robot stands in."""
    command.add_argument(
        "logs",
        metavar="LOG",
        nargs="+" if needed else "*",
        help="log files, or recipes (.yaml) that name files"
        + ("" if needed else " (default: drive the virtual robot)"),
    )
    command.add_argument("--recipe", metavar="FILE", help="what the columns of LOG mean: a recipe or its name")
    command.add_argument("--effort", metavar="KIND", help="what was measured, for logs that do not say it")


def logs_from(options: argparse.Namespace) -> list[Log]:
    """The logs that were named: one for each file, or one for all where the recipe puts files side by side."""
    from armid.logs import Recipe, read_log

    if options.recipe is not None:
        recipe = Recipe.load(options.recipe)
        groups = [options.logs] if recipe.join == "columns" else [[path] for path in options.logs]
    else:
        recipe, groups = None, [[path] for path in options.logs]
    logs = []
    for number, group in enumerate(groups):
        report_progress(f"reading {group[0]}", number / len(groups))
        logs.append(read_log(group if recipe is not None else group[0], recipe, effort=options.effort))
    return logs


def check_output(path: str | None, inputs: Sequence[str] = ()) -> None:
    """Find out before long work whether its result can be written, and that it does not replace an input."""
    if path and any(Path(path).resolve() == Path(given).resolve() for given in inputs):
        raise ArmidError(f"{path}: is read, so it cannot be written too; choose another name for -o")
    if path and Path(path).is_dir():
        raise ArmidError(f"{path}: is a folder; name a file for -o")
    if path and not Path(path).absolute().parent.is_dir():
        raise ArmidError(f"{path}: cannot be written (there is no folder {Path(path).parent})")
    if path:
        _check_allowed(path, Path(path).absolute())


def check_folder(path: str | Path) -> None:
    """Find out before long work whether a folder, which may have to be made, can be written to."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise ArmidError(f"{path}: cannot be a folder ({there} is a file); name another one")
    _check_allowed(path, there)


def _check_allowed(path: str | Path, there: Path) -> None:
    """Refuse what the user has no right to write: a file that is there, or anything in its folder."""
    folder = there if there.is_dir() else there.parent
    if there.exists() and not os.access(there, os.W_OK):
        raise ArmidError(f"{path}: cannot be written (you may not change {there}); choose another place")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ArmidError(f"{path}: cannot be written (you may not write to {folder}); choose another place")


def hashes(paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of files, by name."""
    files = [Path(path) for path in paths if Path(path).is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def kept_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that decide about a result, for its file."""
    return {key: value for key, value in vars(options).items() if key not in ("run", "json", "quiet", "output")}
