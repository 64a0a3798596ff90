"""`armid identify ROBOT LOG...`: estimate the parameters."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from armid.cli.arguments import arg
from armid.cli.options import (
    ARM_CHOICE,
    LOGS,
    command,
    finish,
    hashes,
    kept_options,
    output,
    robot_arguments,
    robot_from,
    streams_from,
)
from armid.errors import ArmidError
from armid.progress import progress_part

if TYPE_CHECKING:
    from armid.estimation.fit import Fit

_POSITIVE = re.compile(r"(m|Im|Ixx|Iyy|Izz|fv|fc)\d+")  # masses, moments of inertia, friction
HEAVY = ("factor", "covariance", "weights", "robot")  # entries of a fit's file that --json leaves out


def _methods() -> str:
    """All estimators that there are, for --help."""
    from armid.estimation import estimators

    words = [f"{name} ({kind.about or (kind.__doc__ or '').splitlines()[0]})" for name, kind in estimators.items()]
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
    from armid.estimation import identify
    from armid.estimation.consistent.prior import parse_prior
    from armid.estimation.identifying import check_method
    from armid.signals import load_pipeline, process_logs
    from armid.torque.known import given_friction

    robot, known_torque = robot_from(options), None
    if options.given_friction:
        robot, known_torque = given_friction(options.given_friction, robot)
    prior = parse_prior(options.prior, robot) if options.prior else None
    known, pipeline = _fixed(options.fix), load_pipeline(options.signals)
    check_method(options.method, options.friction)
    with progress_part(0.0, 0.1):
        logs = streams_from(options)
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
    given = (options.robot, options.recipe, options.signals, options.given_friction)
    files = hashes([*options.logs, *(item for item in given if item)])
    fit = replace(
        fit,
        options={**fit.options, "command": kept_options(options)},
        history={**fit.history, "files_sha256": files},
    )
    if options.output:
        fit.save(options.output)
    number = counts(fit)
    light = {key: value for key, value in fit.to_data().items() if key not in HEAVY}
    springs = f" + {number['spring']} spring" if number["spring"] else ""
    text = (
        f"{number['base']} base + {number['friction']} friction{springs} parameters; method {fit.method}, "
        f"friction {fit.options['friction']}"
    )
    data = {**light, "robot": fit.robot.name, "counts": number}
    return finish(options, data, [fit.summary(), text], [options.output] if options.output else [])


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


def counts(fit: Fit) -> dict[str, int]:
    """How many parameters there are of each kind."""
    kinds = {parameter.name: parameter.kind for parameter in fit.torque_model.model.parameters}
    base = sum(kinds.get(name) in ("inertial", "rotor") for name in fit.columns)
    springs = sum(kinds.get(name) == "spring" for name in fit.columns)
    return {"parameters": len(fit.names), "base": base, "friction": len(fit.names) - base - springs, "spring": springs}
