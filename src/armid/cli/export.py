"""`armid export FIT --to FORMAT... -o DIR`: use the identified arm elsewhere."""

from __future__ import annotations

import argparse
from pathlib import Path

from armid.cli.arguments import arg
from armid.cli.options import FIT, SEED, command, finish, hashes, output_folder


@command(
    "export",
    "write a fit as URDF, MJCF, C, Python or a robot file",
    "Write the identified arm for other programs. Every file is read back by another program and compared with the fit "
    "before it is kept; EXPORT.json and EXPORT.md say how well it agrees and what the format cannot hold. Exit code 1 "
    "where a file was not kept.",
    FIT,
    arg("--to FORMAT...", "{values}; with commas or blanks", required=True, values="armid.exporting:exporters"),
    output_folder("folder to write to", required=True),
    arg("--urdf FILE", "the robot's own URDF to complete (default: where the fit read it)"),
    arg("--mjcf FILE", "the robot's own MJCF to complete (default: where the fit read it)"),
    SEED,
)
def export(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.exporting import export

    formats = [name.strip() for text in options.to for name in text.split(",") if name.strip()]
    folder, history = Path(options.output), {"files_sha256": hashes([options.fit])}
    fit = load_fit(options.fit)
    done = export(fit, formats, folder, urdf=options.urdf, mjcf=options.mjcf, seed=options.seed, history=history)
    data = done.to_data()
    shown = {
        "robot": done.robot,
        "proofs": [file.proof for file in done.files],
        "refused": data["refused"],
        "cannot_hold": [{"file": file["file"], **row} for file in data["files"] for row in file["cannot_hold"]],
        "notes": data["notes"],
        "history": data["history"],
    }
    files = [folder / name for name in (*(file.file for file in done.files), "EXPORT.json", "EXPORT.md")]
    return finish(options, shown, [done.summary(), ""], files, good=not done.refused)
