"""`armid identify ROBOT LOG...`: estimate the parameters."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.cli.options import add_json_option, add_robot_options, print_json, robot_from
from armid.errors import ArmidError, UnknownNameError

if TYPE_CHECKING:
    from armid.estimation.compensation import Compensation
    from armid.estimation.fit import Fit
    from armid.logs import Log
    from armid.robot import Robot
    from armid.signals import Dataset

_SEARCHES = ("abc", "de")
_EPILOG = (
    "methods: feasible (weighted least squares over arms that can exist), wls (each joint weighted by its noise), ols, "
    "svd (rank decision), ml (noise on positions too), robust (outliers count less), tls (errors in the regressor), "
    "iv (unbiased under feedback), abc (bee colony of the ER-16 paper), de (differential evolution)"
)


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "identify",
        help="estimate the parameters of a robot from logs",
        description="Estimate parameters with intervals. By default armid finds signal processing, friction law and "
        "torque delay of each joint itself, and returns the nearest arm that can exist; it says what it chose.",
        epilog=_EPILOG,
    )
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


def add_log_options(command: argparse.ArgumentParser) -> None:
    """LOG... and what says how to read them."""
    command.add_argument("logs", metavar="LOG", nargs="+", help="log files, or recipes (.yaml) that name files")
    command.add_argument("--recipe", metavar="FILE", help="what the columns of LOG mean: a recipe or its name")
    command.add_argument("--effort", metavar="KIND", help="what was measured, for logs that do not say it")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.estimation.identify import METHODS, identify

    check_output(options.output, options.logs)
    if options.method is not None and options.method not in METHODS:
        raise UnknownNameError("--method", options.method, METHODS)
    friction = options.friction or ("linear" if options.method in _SEARCHES else "auto")
    robot = robot_from(options)
    compensation = None
    if options.given_friction:
        robot, compensation = _given_friction(options.given_friction, robot)
    prior = None
    if options.prior:
        from armid.estimation.possible.prior_file import parse_prior

        prior = parse_prior(options.prior, robot)
    sets = datasets_from(logs_from(options), _pipeline(options.signals), robot)
    fit = identify(
        robot,
        sets,
        method=options.method,
        friction=friction,
        prior=prior,
        known=_fixed(options.fix),
        compensation=compensation,
    )
    chosen = {key: value for key, value in vars(options).items() if key not in ("run", "json", "quiet", "output")}
    fit = replace(
        fit,
        options={**fit.options, "friction": friction, "command": chosen},
        history={**fit.history, "files_sha256": hashes([*options.logs, *_extra_files(options)])},
    )
    if options.output:
        fit.save(options.output)
    _report(fit, options)
    return 0


def _given_friction(path: str, robot: Robot) -> tuple[Robot, Compensation]:
    """The robot without the friction that a file states, and that friction (PA-10, Powerball: friction first)."""
    from armid.estimation.compensation import Compensation
    from armid.robot.friction import Friction, friction_law
    from armid.robot.schema import read_text

    try:
        entries = {int(entry["number"]): entry for entry in json.loads(read_text(Path(path)))["joints"]}
        given = [
            (Friction(friction_law(e["law"]), False, bool(e["per_direction"])), dict(e["coefficients"])) if e else None
            for e in (entries.get(number) for number in range(1, robot.n_joints + 1))
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise ArmidError(f"{path}: is no result of `armid friction` ({type(error).__name__}: {error})") from None
    laws = [
        described if known is None else Friction(offset=described.offset)
        for described, known in zip(robot.friction, given, strict=True)
    ]
    return replace(robot, friction=tuple(laws)), Compensation(tuple(given))


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


def _pipeline(text: str | None) -> Any:
    """Signal processing from a YAML file, YAML text, or a step's name; None to choose."""
    if text is None or text == "auto":
        return None
    import yaml

    from armid.robot.schema import read_text
    from armid.signals import Pipeline

    inline = text.lstrip().startswith(("{", "["))
    if not inline and Path(text).suffix not in (".yaml", ".yml", ".json"):
        return Pipeline.of(text)
    try:
        data = yaml.safe_load(text if inline else read_text(Path(text)))
    except yaml.YAMLError as error:
        raise ArmidError(f"--signals {text}: is not YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(data, dict | list | str):
        raise ArmidError(f"--signals {text}: names no steps; write a list such as [{{step: LowPass, cutoff_hz: 5}}]")
    return Pipeline.of(data)


def logs_from(options: argparse.Namespace) -> list[Log]:
    """The logs that were named: one for each file, or one for all where the recipe puts files side by side."""
    from armid.logs import Recipe, read_log

    if options.recipe is not None:
        recipe = Recipe.load(options.recipe)
        groups = [options.logs] if recipe.join == "columns" else [[path] for path in options.logs]
        return [read_log(group, recipe, effort=options.effort) for group in groups]
    return [read_log(path, effort=options.effort) for path in options.logs]


def datasets_from(logs: Sequence[Log], pipeline: Any, robot: Robot) -> list[Dataset]:
    """The logs processed; all by the pipeline of the first where none is given."""
    from armid.signals import process

    sets: list[Dataset] = []
    for log in logs:
        _check_robot(log, robot)
        data = process(log, pipeline, robot=robot)
        pipeline = list(data.pipeline) if pipeline is None else pipeline
        sets.append(replace(data, history={**data.history, "source": log.info.source}))
    return sets


def _check_robot(log: Log, robot: Robot) -> None:
    """Refuse a log that says it is of another robot; one name may be part of the other, as in staubli_tx40."""
    one, other = log.info.robot.lower(), robot.name.lower()
    if one and one not in other and other not in one:
        raise ArmidError(
            f"{log.info.source}: was recorded on {log.info.robot!r}, not on {robot.name!r}; give the robot it is of, "
            "or correct the name in its recipe"
        )


def check_output(path: str | None, inputs: Sequence[str] = ()) -> None:
    """Find out before long work whether its result can be written, and that it does not replace an input."""
    if path and any(Path(path).resolve() == Path(given).resolve() for given in inputs):
        raise ArmidError(f"{path}: is read, so it cannot be written too; choose another name for -o")
    if path and not Path(path).absolute().parent.is_dir():
        raise ArmidError(f"{path}: cannot be written (there is no folder {Path(path).parent})")


def hashes(paths: Sequence[str]) -> dict[str, str]:
    """SHA-256 of files, by name."""
    files = [Path(path) for path in paths if Path(path).is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _extra_files(options: argparse.Namespace) -> list[str]:
    given = (options.robot, options.recipe, options.signals, options.given_friction)
    return [str(item) for item in given if item]


def counts(fit: Fit) -> dict[str, int]:
    """How many parameters there are of each kind."""
    kinds = {parameter.name: parameter.kind for parameter in fit.torque_model.model.parameters}
    base = sum(kinds.get(name) in ("inertial", "rotor") for name in fit.names)
    springs = sum(kinds.get(name) == "spring" for name in fit.names)
    return {"parameters": len(fit.names), "base": base, "friction": len(fit.names) - base - springs, "spring": springs}


def _report(fit: Fit, options: argparse.Namespace) -> None:
    files = [options.output] if options.output else []
    if options.json:
        heavy = ("factor", "covariance", "robot", "weights")
        data = {key: value for key, value in fit.to_data().items() if key not in heavy}
        print_json({"robot": fit.robot.name, "counts": counts(fit), **data, "files": files})
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
