"""`armid predict FIT PLAN|LOG`: torque with intervals."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from armid.cli.arguments import arg
from armid.cli.options import FIT, LOGS, command, finish, hashes, logs_from, motion_from, output, positive
from armid.errors import ArmidError, MissingExtraError

if TYPE_CHECKING:
    from armid.validation import TorquePrediction

SUFFIXES = (".csv", ".json", ".parquet")
_SERIES = ("time", "torque", "lower", "upper", "measured")


@command(
    "predict",
    "predict the torque of a plan or a log, with intervals",
    "Predict torque: of a plan or trajectory (.json) as it acts, of a log at its own instants as its sensors would "
    "report it. Intervals follow from the parameters' covariance.",
    FIT,
    *LOGS,
    output("prediction to write: .csv, .json or .parquet"),
    arg("--level SHARE", "of the intervals", default=0.95),
    arg("--rate HZ", "at which a plan is sampled (default: its own)", float),
)
def predict(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.validation import predict

    if options.output and Path(options.output).suffix.lower() not in SUFFIXES:
        raise ArmidError(f"{options.output}: has no known ending; use one of: {', '.join(SUFFIXES)}")
    positive("--rate", options.rate)
    is_plan = len(options.logs) == 1 and Path(options.logs[0]).suffix.lower() == ".json"
    if options.rate is not None and not is_plan:
        raise ArmidError("--rate: is for plans; a log is predicted at its own samples")
    fit = load_fit(options.fit)
    motions = [motion_from(options.logs[0])] if is_plan else logs_from(options)
    if len(motions) > 1:
        raise ArmidError(f"{len(motions)} logs are given; predict takes one at a time")
    found = predict(fit, motions[0], level=options.level, rate_hz=options.rate)
    inputs = hashes([options.fit, *options.logs])
    found = replace(found, source=" ".join(options.logs), history={**found.history, "files_sha256": inputs})
    data = {**found.to_data(), "samples": len(found.time)}
    if options.output:
        _write(found, Path(options.output))
        data = {key: value for key, value in data.items() if key not in _SERIES}
    return finish(options, data, found.summary(), [options.output] if options.output else [])


def _write(found: TorquePrediction, path: Path) -> None:
    from armid.files import write_csv, write_text

    suffix = path.suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(found.to_data(), ensure_ascii=False) + "\n")
    elif suffix == ".csv":
        write_csv(path, found.columns())
    else:
        _write_parquet(found, path)


def _write_parquet(found: TorquePrediction, path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    about = {key: value for key, value in found.to_data().items() if key not in _SERIES}
    table = pyarrow.table({name: pyarrow.array(values) for name, values in found.columns().items()})
    table = table.replace_schema_metadata({"armid": json.dumps(about)})
    temporary = path.with_name(f".{path.name}.new")
    try:
        parquet.write_table(table, temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ArmidError(f"{path}: cannot be written ({error.strerror or error})") from None
