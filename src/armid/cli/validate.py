"""`armid validate FIT LOG...`: evidence on other data."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from armid.cli.log_options import add_log_options, check_output, hashes, kept_options, logs_from
from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError
from armid.progress import progress_part, report_progress


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "validate",
        help="compare a fit with data it has not seen",
        description="Predict the torque of logs that the fit was not made from, processed with the fit's own signal "
        "pipeline; say how good it is and what to change next. Exit code 1 for a poor verdict.",
    )
    command.add_argument("fit", metavar="FIT", help="fit, written by `armid identify`")
    add_log_options(command)
    command.add_argument("-o", "--output", metavar="FILE", help="validation to write (JSON)")
    command.add_argument("--low-pass", type=float, metavar="HZ", help="compare after a low-pass at this frequency")
    command.add_argument("--allow-training", action="store_true", help="accept the fit's own training data")
    command.add_argument("--nrms", type=float, metavar="SHARE", help="largest error over torque's spread (0.1)")
    command.add_argument("--noise-ratio", type=float, metavar="X", help="or largest error over the noise (2)")
    command.add_argument("--relative-error", type=float, metavar="SHARE", help="largest error of all joints together")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.validation import validate

    check_output(options.output, [options.fit, *options.logs])
    fit = load_fit(options.fit)
    thresholds = _thresholds(options)
    with progress_part(0.0, 0.3):
        logs = logs_from(options)
    with progress_part(0.3, 0.95):
        check = validate(
            fit, logs, thresholds=thresholds, allow_training=options.allow_training, low_pass_hz=options.low_pass
        )
    report_progress("done", 1.0)
    check = replace(
        check,
        options={**kept_options(options), "files_sha256": hashes([*options.logs, options.fit])},
    )
    written = [options.output] if options.output else []
    if options.output:
        check.save(options.output)
    if options.json:
        print_json({**{k: v for k, v in check.to_data().items() if k != "series"}, "files": written})
    else:
        sys.stdout.write("\n".join([check.summary(), *(f"wrote {file}" for file in written)]) + "\n")
    return 0 if check.good else 1


def _thresholds(options: argparse.Namespace) -> Any:
    from armid.validation import Thresholds

    given = {
        "nrms_moving": options.nrms,
        "noise_ratio": options.noise_ratio,
        "relative_error": options.relative_error,
    }
    for name, value in given.items():
        if value is not None and not value > 0.0:
            raise ArmidError(f"--{name.replace('_moving', '').replace('_', '-')} {value:g}: must be above zero")
    return Thresholds(**{name: value for name, value in given.items() if value is not None})
