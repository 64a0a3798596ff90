"""`armid identify ROBOT LOG...`: estimate the parameters."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from armid.cli.arguments import Parser
from armid.cli.given import check_friction, friction_entries
from armid.cli.log_options import add_log_options, check_output, hashes, kept_options, logs_from
from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError, UnknownNameError, in_words
from armid.progress import progress_part, report_progress

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.robot import Robot
    from armid.torque.known import KnownTorque

HEAVY = ("factor", "covariance", "weights", "robot")  # entries of a fit's file that --json leaves out


def add_parser(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "identify",
        help="estimate the parameters of a robot from logs",
        description="Estimate parameters with intervals. By default armid finds signal processing, friction law and "
        "torque delay of each joint itself, and returns the nearest physically consistent arm; notes say why.",
    )
    command.more_help = _methods
    add_robot_options(command)
    add_log_options(command)
    command.add_argument("-o", "--output", metavar="FIT", help="fit to write (JSON)")
    command.add_argument("--method", metavar="NAME", help="how to estimate (default: feasible, else wls)")
    command.add_argument(
        "--friction",
        metavar="LAW",
        help="auto: chosen per joint by held-out data (default; linear for searches); linear: the description's law "
        "alone; or terms to choose among, such as stribeck,load",
    )
    command.add_argument("--prior", metavar="FILE:STRENGTH", help="CAD, URDF or fit, believed to a share such as 0.05")
    command.add_argument(
        "--signals", metavar="FILE", help="pipeline: a YAML file, a step's name, or {step: LowPass, …}"
    )
    command.add_argument("--fix", metavar="NAME=VALUE", nargs="+", action="extend", help="parameters that are known")
    command.add_argument("--given-friction", metavar="FILE", help="friction found before, by `armid friction -o FILE`")
    add_json_option(command)
    return command


def _methods() -> str:
    """All estimators that there are, for --help."""
    from armid.estimation import estimators

    words = [f"{name} ({kind.about or (kind.__doc__ or '').splitlines()[0]})" for name, kind in estimators.items()]
    return f"methods: {', '.join(words)}"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation import identify
    from armid.estimation.estimator import estimators
    from armid.signals import load_pipeline, process_logs

    check_output(options.output, options.logs)
    if options.method is not None and options.method not in estimators:
        raise UnknownNameError("--method", options.method, estimators)
    robot = robot_from(options)
    known_torque = None
    if options.given_friction:
        robot, known_torque = _given_friction(options.given_friction, robot)
    prior = None
    if options.prior:
        from armid.estimation.consistent.prior import parse_prior

        prior = parse_prior(options.prior, robot)
    known, pipeline = _fixed(options.fix), load_pipeline(options.signals)
    with progress_part(0.0, 0.1):
        logs = logs_from(options)
    with progress_part(0.1, 0.3):
        sets = process_logs(logs, pipeline, robot)
    with progress_part(0.3, 0.98):
        fit = identify(
            robot,
            sets,
            method=options.method,
            friction=options.friction,
            prior=prior,
            known=known,
            known_torque=known_torque,
        )
    fit = replace(
        fit,
        options={**fit.options, "command": kept_options(options)},
        history={**fit.history, "files_sha256": hashes([*options.logs, *_extra_files(options)])},
    )
    report_progress("done", 1.0)
    if options.output:
        fit.save(options.output)
    _report(fit, options)
    return 0


def _given_friction(path: str, robot: Robot) -> tuple[Robot, KnownTorque]:
    """The robot without the friction that a file states, and that friction (PA-10, Powerball: friction first)."""
    from armid.robot.friction import Friction
    from armid.torque.known import KnownTorque

    entries = friction_entries(path, robot)
    check_friction(path, entries, robot.joint_names)
    try:
        given = tuple(
            (Friction(e["law"], False, bool(e["per_direction"])), dict(e["coefficients"])) for e in entries.values()
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ArmidError(f"{path}: is no result of `armid friction -o FILE` ({in_words(error)})") from None
    laws = tuple(Friction(offset=described.offset) for described in robot.friction)
    return replace(robot, friction=laws), KnownTorque(given)


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
        if name in result and result[name] != number:
            raise ArmidError(f"--fix {name} is given twice, {result[name]:g} and {number:g}; keep one of them")
        result[name] = number
    return result


def _extra_files(options: argparse.Namespace) -> list[str]:
    given = (options.robot, options.recipe, options.signals, options.given_friction)
    return [str(item) for item in given if item]


def counts(fit: Fit) -> dict[str, int]:
    """How many parameters there are of each kind."""
    kinds = {parameter.name: parameter.kind for parameter in fit.torque_model.model.parameters}
    base = sum(kinds.get(name) in ("inertial", "rotor") for name in fit.columns)
    springs = sum(kinds.get(name) == "spring" for name in fit.columns)
    return {"parameters": len(fit.names), "base": base, "friction": len(fit.names) - base - springs, "spring": springs}


def _report(fit: Fit, options: argparse.Namespace) -> None:
    files = [options.output] if options.output else []
    if options.json:
        light = {key: value for key, value in fit.to_data().items() if key not in HEAVY}
        print_json({**light, "robot": fit.robot.name, "counts": counts(fit), "files": files})
        return
    number = counts(fit)
    springs = f" + {number['spring']} spring" if number["spring"] else ""
    text = [
        fit.summary(),
        f"{number['base']} base + {number['friction']} friction{springs} parameters; method {fit.method}, "
        f"friction {fit.options['friction']}",
        *(f"wrote {file}" for file in files),
    ]
    sys.stdout.write("\n".join(text) + "\n")
