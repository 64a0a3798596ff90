"""`armid datasets [NAME]`: logs of real robots that others have published."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import arg
from armid.cli.options import command, finish
from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.logs.public import PublicLogs


@command(
    "datasets",
    "list published logs of real robots, and fetch them",
    "List logs of real robots that others have published, with origin, licence and checksums. armid holds none of "
    "them: --fetch downloads one from its origin, or ARMID_DATA names a folder with copies.",
    arg("name [NAME]", "show one of them", values="armid.logs.public:public_logs"),
    arg("--fetch", "download what is missing, and check it"),
    arg("--folder DIR", "folder with the data sets (default: what ARMID_DATA names)"),
)
def datasets(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.logs.public import VARIABLE, public_log, public_logs

    folder = options.folder or os.environ.get(VARIABLE)
    chosen = [public_log(options.name)] if options.name else list(public_logs().values())
    written: list[Path] = []
    if options.fetch:
        if not options.name:
            raise ArmidError(f"--fetch needs a NAME: one of {', '.join(entry.name for entry in chosen)}")
        if not folder:
            raise ArmidError(f"--fetch needs a folder: give --folder DIR, or set {VARIABLE}")
        written = chosen[0].fetch(folder)
    data = {"folder": folder, "datasets": [_as_data(entry, folder) for entry in chosen]}
    lines = _describe(chosen[0], folder) if options.name else _table(chosen, folder)
    return finish(options, data, lines, written)


def _as_data(entry: PublicLogs, folder: str | None) -> dict[str, Any]:
    where, named = entry.folder(folder), ("name", "title", "origin", "commit", "licence", "recipe")
    return {
        **{name: getattr(entry, name) for name in named},
        "robot": entry.robot_path(folder),
        "prior": entry.prior_path(folder),
        "files": [{**vars(file), "state": None if where is None else file.state(where)} for file in entry.files],
    }


def _table(entries: list[PublicLogs], folder: str | None) -> Iterator[str]:
    for entry in entries:
        megabytes = sum(file.bytes for file in entry.files) / 1e6
        yield f"{entry.name:<8} {entry.title}"
        yield f"{'':<8} {megabytes:.1f} MB, {entry.licence}; {_have(entry, folder)}"
    yield "`armid datasets NAME` shows one, `armid datasets NAME --fetch --folder DIR` fetches it"


def _have(entry: PublicLogs, folder: str | None) -> str:
    where = entry.folder(folder)
    if where is None:
        return entry.origin
    states = [file.state(where) for file in entry.files]
    if "different" in states:
        return f"{states.count('different')} of {len(states)} files in {where} are not the published ones"
    return f"{states.count('there')} of {len(states)} files are in {where}"


def _describe(entry: PublicLogs, folder: str | None) -> Iterator[str]:
    yield f"{entry.name}: {entry.title}"
    yield f"origin   {entry.origin} at {entry.commit}"
    yield f"licence  {entry.licence}"
    yield f"recipe   {entry.recipe}"
    yield f"robot    {entry.robot_path(folder)}"
    if entry.prior_path(folder) is not None:
        yield f"prior    {entry.prior_path(folder)}"
    where = entry.folder(folder)
    width = max(len(file.name) for file in entry.files)
    for file in entry.files:
        state = "" if where is None else f"  {file.state(where)}"
        source = "" if file.addresses else "  (not offered by the origin)"
        yield f"  {file.name:<{width}}  {file.use:<9} {file.bytes / 1e6:5.1f} MB  {file.sha256[:12]}…{state}{source}"
    base = where or Path(entry.name)
    train, other = ([str(base / name) for name in entry.of_use(use)] for use in ("train", "validate"))
    prior = "" if entry.prior_path(folder) is None else f" --prior {shlex.quote(f'{entry.prior_path(folder)}:0.05')}"
    yield "use it with"
    robot = shlex.quote(str(entry.robot_path(folder)))
    yield f"  armid identify {robot} {shlex.join(train)} --recipe {entry.recipe}{prior} -o fit.json"
    if other:
        yield f"  armid validate fit.json {shlex.join(other)} --recipe {entry.recipe}"
