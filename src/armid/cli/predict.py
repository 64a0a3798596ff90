"""`armid predict FIT PLAN|LOG`: torque with intervals."""

from __future__ import annotations

import argparse
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.log_options import add_log_options, check_output, hashes, logs_from
from armid.cli.options import add_json_option, print_json
from armid.errors import ArmidError, MissingExtraError

if TYPE_CHECKING:
    from armid.validation import TorquePrediction

SUFFIXES = (".csv", ".json", ".parquet")


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="predict the torque of a plan or a log, with intervals",
        description="Predict torque: of a plan or trajectory as it acts, of a log at its own instants as its sensors "
        "would report it. Intervals follow from the parameters' covariance.",
    )
    command.add_argument("fit", metavar="FIT", help="fit, written by `armid identify`")
    add_log_options(command)
    command.add_argument("-o", "--output", metavar="FILE", help="prediction to write: .csv, .json or .parquet")
    command.add_argument("--level", type=float, default=0.95, metavar="SHARE", help="of the intervals (0.95)")
    command.add_argument("--rate", type=float, metavar="HZ", help="at which a plan is sampled (default: its own)")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.fit import load_fit
    from armid.validation import predict

    check_output(options.output, [options.fit, *options.logs])
    if options.output and Path(options.output).suffix.lower() not in SUFFIXES:
        raise ArmidError(f"{options.output}: has no known ending; use one of: {', '.join(SUFFIXES)}")
    if options.rate is not None and not options.rate > 0.0:
        raise ArmidError(f"--rate {options.rate:g}: must be above zero")
    if options.rate is not None and Path(options.logs[0]).suffix.lower() != ".json":
        raise ArmidError("--rate: is for plans; a log is predicted at its own samples")
    fit = load_fit(options.fit)
    found = predict(fit, _motion(options), level=options.level, rate_hz=options.rate)
    inputs = hashes([options.fit, *options.logs])
    found = replace(found, source=" ".join(options.logs), history={**found.history, "files_sha256": inputs})
    if options.output:
        _write(found, Path(options.output))
    files = [options.output] if options.output else []
    if options.json:
        data = found.to_data()
        if options.output:
            data = {k: v for k, v in data.items() if k not in ("time", "torque", "lower", "upper", "measured")}
        print_json({**data, "samples": len(found.time), "files": files})
    else:
        sys.stdout.write("\n".join([found.summary(), *(f"wrote {file}" for file in files)]) + "\n")
    return 0


def _motion(options: argparse.Namespace) -> Any:
    """A plan or trajectory for JSON files, else a log."""
    first = Path(options.logs[0])
    if len(options.logs) == 1 and first.suffix.lower() == ".json":
        from armid.excitation import load_plan, load_trajectory
        from armid.files import read_text

        return load_trajectory(first) if '"armid trajectory' in read_text(first)[:200] else load_plan(first)
    logs = logs_from(options)
    if len(logs) > 1:
        raise ArmidError(f"{len(logs)} logs are given; predict takes one at a time")
    return logs[0]


def _write(found: TorquePrediction, path: Path) -> None:
    from armid.files import write_text

    suffix = path.suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(found.to_data(), ensure_ascii=False) + "\n")
    elif suffix == ".csv":
        write_text(path, _csv(found))
    else:
        _write_parquet(found, path)


def _csv(found: TorquePrediction) -> str:
    import numpy as np

    columns = found.columns()
    text = io.StringIO()
    np.savetxt(text, np.column_stack(list(columns.values())), "%.10g", ",", header=",".join(columns), comments="")
    return text.getvalue()


def _write_parquet(found: TorquePrediction, path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    heavy = ("time", "torque", "lower", "upper", "measured")
    about = {key: value for key, value in found.to_data().items() if key not in heavy}
    table = pyarrow.table({name: pyarrow.array(values) for name, values in found.columns().items()})
    table = table.replace_schema_metadata({"armid": json.dumps(about)})
    temporary = path.with_name(f".{path.name}.new")
    try:
        parquet.write_table(table, temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ArmidError(f"{path}: cannot be written ({error.strerror or error})") from None
