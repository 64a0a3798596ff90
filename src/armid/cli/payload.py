"""`armid payload FIT LOG...`: what the arm carries."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from armid.cli.log_options import add_log_options, check_folder, check_output, hashes, kept_options, logs_from
from armid.cli.options import add_json_option, print_json
from armid.progress import report_progress

_EPILOG = (
    "A plan for it, moving few joints in a small space: armid design ROBOT --parameters payload --joints 3,4,5,6 "
    "--harmonics 1,20 --period 30 --box x y z x y z -o plan.json"
)


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "payload",
        help="mass, centre of mass and inertia of what the arm carries",
        description="Estimate a payload with intervals from logs with it, given a fit of the arm without it. Friction "
        "is found anew, joints at rest take no part. Exit code 1 where it is not known well enough, or contradicts "
        "the reference.",
        epilog=_EPILOG,
    )
    command.add_argument("fit", metavar="FIT", help="fit of the arm without payload, written by `armid identify`")
    add_log_options(command)
    command.add_argument("-o", "--output", metavar="FILE", help="payload to write (JSON)")
    command.add_argument(
        "--reference", metavar="FILE", help="known payload to compare with: mass, com, inertia (YAML or JSON)"
    )
    command.add_argument(
        "--empty", metavar="LOG", action="append", default=[], help="the same motion without payload; may be repeated"
    )
    command.add_argument("--loaded", metavar="FIT", help="fit of the arm with the payload attached to write (JSON)")
    command.add_argument("--pictures", metavar="FOLDER", help="draw measured and predicted torque there")
    command.add_argument("--mass-within", type=float, metavar="SHARE", help="how well the mass must be known (0.05)")
    command.add_argument("--com-within", type=float, metavar="M", help="and the centre of mass [m] (0.01)")
    command.add_argument(
        "--gain", type=float, default=0.01, metavar="SHARE", help="how well the scale of the torque is known (0.01)"
    )
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.payload import identify_payload, load_reference

    inputs = [options.fit, *options.logs, *options.empty, *([options.reference] if options.reference else [])]
    for path in (options.output, options.loaded):
        check_output(path, inputs)
    folder = _folder(options.pictures)
    fit = load_fit(options.fit)
    reference = load_reference(options.reference) if options.reference else None
    empty = logs_from(argparse.Namespace(**{**vars(options), "logs": options.empty})) if options.empty else []
    found = identify_payload(
        fit,
        logs_from(options),
        empty=empty,
        reference=reference,
        requirement=_requirement(options),
        gain=options.gain,
    )
    report_progress("done", 1.0)
    found = replace(found, options=kept_options(options), history={**found.history, "files_sha256": hashes(inputs)})
    written = []
    if options.output:
        found.save(options.output)
        written.append(options.output)
    if options.loaded:
        found.apply(fit).save(options.loaded)
        written.append(options.loaded)
    if folder is not None:
        from armid import theme
        from armid.payload.pictures import payload_figure

        written.append(str(folder / "payload-torque.png"))
        theme.save(payload_figure(found), Path(written[-1]))
    if options.json:
        heavy = ("loaded_values", "loaded_covariance")
        print_json({**{k: v for k, v in found.to_data().items() if k not in heavy}, "files": written})
    else:
        sys.stdout.write("\n".join([found.summary(), *(f"wrote {file}" for file in written)]) + "\n")
    return 0 if found.good else 1


def _requirement(options: argparse.Namespace) -> Any:
    from armid.payload import Requirement

    given = {"mass": options.mass_within, "com_m": options.com_within}
    return Requirement(**{name: value for name, value in given.items() if value is not None})


def _folder(path: str | None) -> Path | None:
    """The folder for pictures, made if it is not there."""
    if path is None:
        return None
    from armid import theme
    from armid.errors import ArmidError

    theme.need_matplotlib()
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArmidError(f"--pictures {path}: cannot be made ({error.strerror})") from None
    check_folder(folder)
    return folder
