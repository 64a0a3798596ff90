"""`armid export FIT --to urdf,mjcf,c,python,yaml -o DIR`: use the identified arm elsewhere."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.log_options import check_folder, hashes
from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError
from armid.files import plain
from armid.progress import report_progress

if TYPE_CHECKING:
    from armid.exporting import Export


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "export",
        help="write a fit as URDF, MJCF, C, Python or a robot file",
        description="Write the identified arm for other programs. Every file is read back by another program and "
        "compared with the fit before it is kept; EXPORT.json and EXPORT.md say how well it agrees and what the format "
        "cannot hold. Exit code 1 where a file was not kept.",
    )
    command.add_argument("fit", metavar="FIT", help="fit, written by `armid identify`")
    command.add_argument("--to", required=True, metavar="FORMATS", help="urdf, mjcf, c, python, yaml; with commas")
    command.add_argument("-o", "--output", metavar="DIR", required=True, help="folder to write to")
    command.add_argument(
        "--urdf", metavar="FILE", help="the robot's own URDF to complete (default: where the fit read it)"
    )
    command.add_argument("--seed", type=int, default=0, help="of the random states of the proofs")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.exporting import export

    formats = [name.strip() for name in options.to.split(",") if name.strip()]
    folder = Path(options.output)
    if folder.exists() and not folder.is_dir():
        raise ArmidError(f"{folder}: is a file; name a folder with -o")
    check_folder(folder)
    fit = load_fit(options.fit)
    done = export(
        fit,
        formats,
        folder,
        urdf=options.urdf,
        seed=options.seed,
        history={"files_sha256": hashes([options.fit])},
    )
    report_progress("done", 1.0)
    if options.json:
        print_json(_data(done))
    else:
        paths = [*(file.name for file in done.files), "EXPORT.json", "EXPORT.md"]
        sys.stdout.write("\n".join([done.summary(), "", *(f"wrote {folder / name}" for name in paths)]) + "\n")
    return 1 if done.refused else 0


def _data(done: Export) -> dict[str, Any]:
    data = done.to_data()
    files = [str(done.folder / file.name) for file in done.files]
    return {
        "robot": done.robot,
        "files": [*files, str(done.folder / "EXPORT.json"), str(done.folder / "EXPORT.md")],
        "proofs": [plain(file.proof) for file in done.files],
        "refused": data["refused"],
        "cannot_hold": [{"file": file["file"], **row} for file in data["files"] for row in file["cannot_hold"]],
        "notes": data["notes"],
        "history": data["history"],
    }
