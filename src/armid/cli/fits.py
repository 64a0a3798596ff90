"""`armid identify`, `validate`, `predict`, `audit` and `update`: a fit and its evidence."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import armid
from armid.cli.arguments import arg
from armid.cli.options import (
    ARM_CHOICE,
    FIT,
    LOGS,
    SEED,
    command,
    finish,
    fit_from,
    hashes,
    kept_options,
    logs_from,
    motion_from,
    output,
    robot_arguments,
    robot_from,
    streams_from,
    written,
)
from armid.errors import ArmidError, MissingExtraError
from armid.progress import progress_part

_POSITIVE = re.compile(r"(m|Im|Ixx|Iyy|Izz|fv|fc)\d+")  # masses, moments of inertia, friction
HEAVY = ("factor", "covariance", "weights", "robot")  # entries of a fit's file that --json leaves out


def _methods() -> str:
    """All estimators that there are, for --help."""
    kinds = armid.estimators.items()
    words = [f"{name} ({kind.about or (kind.__doc__ or '').splitlines()[0]})" for name, kind in kinds]
    return f"methods: {', '.join(words)}"


@command(
    "identify",
    "estimate the parameters of a robot from logs",
    "Estimate parameters with intervals. By default armid chooses the signal processing, finds friction of any smooth "
    "form and the delay of each joint's torque, and returns a physically consistent arm; it says what it found.",
    *robot_arguments(),
    *ARM_CHOICE,
    *LOGS,
    output("fit to write (JSON)", "FIT"),
    arg(
        "--method NAME",
        "how to estimate, see below (default: mixed; feasible with a friction that is given; else wls)",
        values="armid.estimation:estimators",
    ),
    arg(
        "--friction LAW",
        "auto: of any form, found from the data (default; method mixed); linear: viscous and Coulomb friction alone; "
        "or a law for all joints. There are: {values}",
        values="auto linear armid.registry:friction_laws",
    ),
    arg("--prior FILE:STRENGTH", "CAD, URDF or fit, trusted to a share such as 0.05"),
    arg("--signals FILE", "pipeline: a YAML file, a step's name, or {step: LowPass, …}"),
    arg("--fix NAME=VALUE...", "parameters that are known", action="extend"),
    arg("--given-friction FILE", "friction found before, by `armid friction -o FILE`"),
    epilog=_methods,
)
def identify(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.consistent.prior import parse_prior
    from armid.estimation.identifying import check_method
    from armid.torque.known import given_friction

    robot, known_torque = robot_from(options), None
    if options.given_friction:
        robot, known_torque = given_friction(options.given_friction, robot)
    prior = parse_prior(options.prior, robot) if options.prior else None
    known, pipeline = _fixed(options.fix), armid.load_pipeline(options.signals)
    check_method(options.method, options.friction)
    with progress_part(0.0, 0.1):
        logs = streams_from(options)
    with progress_part(0.1, 0.3):
        sets = armid.process_logs(logs, pipeline, robot)
    with progress_part(0.3, 0.98):
        fit = armid.identify(
            robot,
            sets,
            method=options.method,
            friction=options.friction,
            prior=prior,
            known=known,
            known_torque=known_torque,
        )
    given = (options.robot, options.recipe, options.signals, options.given_friction)
    files = hashes([*options.logs, *(item for item in given if item)])
    fit = replace(
        fit,
        options={**fit.options, "command": kept_options(options)},
        history={**fit.history, "files_sha256": files},
    )
    number = counts(fit)
    light = {key: value for key, value in fit.to_data().items() if key not in HEAVY}
    springs = f" + {number['spring']} spring" if number["spring"] else ""
    text = (
        f"{number['base']} base + {number['friction']} friction{springs} parameters; method {fit.method}, "
        f"friction {fit.options['friction']}"
    )
    data = {**light, "robot": fit.robot.name, "counts": number}
    return finish(options, data, [fit.summary(), text], written((options.output, fit.save)))


def _fixed(pairs: Sequence[str] | None) -> dict[str, float]:
    result: dict[str, float] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
        if not equals:
            raise ArmidError(f"--fix {pair}: write it as NAME=VALUE, such as Im1=0.012")
        if number < 0.0 and _POSITIVE.fullmatch(name):
            raise ArmidError(f"--fix {pair}: {name} cannot be negative; give 0 or more")
        if name in result and result[name] != number:
            raise ArmidError(f"--fix {name} is given twice, {result[name]:g} and {number:g}; keep one of them")
        result[name] = number
    return result


def counts(fit: armid.Fit) -> dict[str, int]:
    """How many parameters there are of each kind."""
    kinds = {parameter.name: parameter.kind for parameter in fit.torque_model.model.parameters}
    base = sum(kinds.get(name) in ("inertial", "rotor") for name in fit.columns)
    springs = sum(kinds.get(name) == "spring" for name in fit.columns)
    return {"parameters": len(fit.names), "base": base, "friction": len(fit.names) - base - springs, "spring": springs}


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
    arg("--nrms SHARE", "largest error over torque's spread (0.1)", float, least=1e-6),
    arg("--noise-ratio X", "or largest error over the noise (2)", float, least=1e-6),
)
def validate(options: argparse.Namespace) -> int:
    """Run the command."""
    fit = fit_from(options)
    given = {"nrms_moving": options.nrms, "noise_ratio": options.noise_ratio}
    thresholds = armid.Thresholds(**{name: value for name, value in given.items() if value is not None})
    with progress_part(0.0, 0.3):
        logs = logs_from(options)
    with progress_part(0.3, 0.95):
        check = armid.validate(
            fit, logs, thresholds=thresholds, allow_training=options.allow_training, low_pass_hz=options.low_pass
        )
    inputs = hashes([*options.logs, options.fit])
    check = replace(check, options={**kept_options(options), "files_sha256": inputs})
    data = {key: value for key, value in check.to_data().items() if key != "series"}
    files = written((options.output, check.save))
    return finish(options, data, check.summary(), files, good=check.verdict != "poor")


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
    if options.output and Path(options.output).suffix.lower() not in SUFFIXES:
        raise ArmidError(f"{options.output}: has no known ending; use one of: {', '.join(SUFFIXES)}")
    is_plan = len(options.logs) == 1 and Path(options.logs[0]).suffix.lower() == ".json"
    if options.rate is not None and not is_plan:
        raise ArmidError("--rate: is for plans; a log is predicted at its own samples")
    fit = fit_from(options)
    motions = [motion_from(options.logs[0])] if is_plan else logs_from(options)
    if len(motions) > 1:
        raise ArmidError(f"{len(motions)} logs are given; predict takes one at a time")
    found = armid.predict(fit, motions[0], level=options.level, rate_hz=options.rate)
    inputs = hashes([options.fit, *options.logs])
    found = replace(found, source=" ".join(options.logs), history={**found.history, "files_sha256": inputs})
    data = {**found.to_data(), "samples": len(found.time)}
    if options.output:
        data = {key: value for key, value in data.items() if key not in _SERIES}
    return finish(options, data, found.summary(), written((options.output, lambda path: _write(found, Path(path)))))


def _write(found: armid.TorquePrediction, path: Path) -> None:
    from armid.files import write_csv, write_text

    suffix = path.suffix.lower()
    if suffix == ".json":
        write_text(path, json.dumps(found.to_data(), ensure_ascii=False) + "\n")
    elif suffix == ".csv":
        write_csv(path, found.columns())
    else:
        _write_parquet(found, path)


def _write_parquet(found: armid.TorquePrediction, path: Path) -> None:
    from armid.files import write_bytes

    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError:
        raise MissingExtraError("writing Parquet", "parquet") from None
    about = {key: value for key, value in found.to_data().items() if key not in _SERIES}
    table = pyarrow.table({name: pyarrow.array(values) for name, values in found.columns().items()})
    table = table.replace_schema_metadata({"armid": json.dumps(about)})
    content = BytesIO()
    parquet.write_table(table, content)
    write_bytes(path, content.getvalue())


@command(
    "audit",
    "say whether given parameters are physically consistent",
    "Say whether the parameters of a fit (fit.json), a URDF or a robot file are physically consistent; if not, why not "
    "and which consistent set is nearest. Exit code 1 if they are not.",
    *robot_arguments(also="; or a fit (.json), written by `armid identify`"),
    *ARM_CHOICE,
    arg("--published", "audit the published sets of ROBOT instead"),
    arg("--set NAME", "only this published set (see `armid robots ROBOT`)"),
    SEED,
    output("audit to write (JSON), nearest consistent set included"),
)
def audit(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text

    is_fit = options.robot.endswith(".json")
    if is_fit and (options.links or options.no_rotors or options.gravity or options.simplify):
        raise ArmidError(
            f"{options.robot}: is a fit, which has its robot with it; leave --links, --no-rotors, --gravity and "
            "--simplify out"
        )
    what = armid.load_fit(options.robot) if is_fit else robot_from(options)
    found = armid.audit(what, published=options.published, name=options.set, seed=options.seed)
    # With several sets the first that is impossible speaks for all.
    worst = next((one for one in found if not one.possible), found[0])
    data = worst.to_data()
    if len(found) > 1:
        data["sets"] = [one.to_data() for one in found]
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    files = written((options.output, lambda path: write_text(path, text)))
    return finish(options, data, (one.summary() for one in found), files, good=worst.possible)


@command(
    "update",
    "bring friction, delay and load of a fit up to date",
    "Find what has changed since a fit from a few seconds of ordinary motion: friction levels, offsets, delay of the "
    "torque and load, and whether that is more than usual. The inertia of the arm stays.",
    FIT,
    *LOGS,
    output("fit to write (JSON), brought up to date"),
)
def update(options: argparse.Namespace) -> int:
    """Run the command."""
    logs = logs_from(options)
    if len(logs) > 1:
        raise ArmidError(f"{len(logs)} logs are given; update takes one at a time")
    found = armid.update(fit_from(options), logs[0])
    return finish(options, found.to_data(), found.summary(), written((options.output, found.fit.save)))
