"""`armid validate FIT LOG...`: evidence on other data."""

from __future__ import annotations

import argparse
from dataclasses import replace

from armid.cli.arguments import arg
from armid.cli.options import FIT, LOGS, command, finish, hashes, kept_options, logs_from, output, positive
from armid.progress import progress_part


@command(
    "validate",
    "compare a fit with data it has not seen",
    "Predict the torque of logs that the fit was not made from, processed with the fit's own signal pipeline; say what "
    "speaks against it, what it can be used for and what to change next. Exit code 1 for a poor verdict.",
    FIT,
    *LOGS,
    output("validation to write (JSON)"),
    arg("--low-pass HZ", "compare after a low-pass at this frequency", float),
    arg("--allow-training", "accept the fit's own training data"),
    arg("--nrms SHARE", "largest error over torque's spread (0.1)", float),
    arg("--noise-ratio X", "or largest error over the noise (2)", float),
)
def validate(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.validation import Thresholds, validate

    fit = load_fit(options.fit)
    positive("--nrms", options.nrms)
    positive("--noise-ratio", options.noise_ratio)
    given = {"nrms_moving": options.nrms, "noise_ratio": options.noise_ratio}
    thresholds = Thresholds(**{name: value for name, value in given.items() if value is not None})
    with progress_part(0.0, 0.3):
        logs = logs_from(options)
    with progress_part(0.3, 0.95):
        check = validate(
            fit, logs, thresholds=thresholds, allow_training=options.allow_training, low_pass_hz=options.low_pass
        )
    check = replace(
        check,
        options={**kept_options(options), "files_sha256": hashes([*options.logs, options.fit])},
    )
    if options.output:
        check.save(options.output)
    data = {key: value for key, value in check.to_data().items() if key != "series"}
    written = [options.output] if options.output else []
    return finish(options, data, check.summary(), written, good=check.verdict != "poor")
