"""What is given from earlier steps: information for the next design, and measured friction."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.arrays import Array
    from armid.excitation import Fourier
    from armid.robot import Robot


def given_information(
    path: str, robot: Robot, shape: Fourier, options: dict[str, Any]
) -> tuple[Array, list[float] | None]:
    """Information matrix for `design`, and the torque noise it is measured in (None for the options' own).

    A plan counts as one period of it run with the same noise. A fit counts with the inverse of its covariance; its
    joints' residuals are then the noise, unless noise was given.
    """
    from armid.excitation import gathered_information, load_plan

    if not _is_fit(path):
        return gathered_information(load_plan(path), robot, shape, **options), options.get("noise")
    import numpy as np

    from armid.estimation import load_fit
    from armid.excitation import design_problem

    fit = load_fit(path)
    if fit.robot.name != robot.name or fit.robot.joint_names != robot.joint_names:
        raise ArmidError(f"{path}: is a fit of {fit.robot.name!r}, not of {robot.name!r}; give one of the same robot")
    noise = options.get("noise") or [float(sigma) for sigma in 1.0 / np.sqrt(fit.weights)]
    names = design_problem(robot, shape, **{**options, "noise": noise}).parameters
    missing = [name for name in names if name not in fit.columns]
    if missing:
        raise ArmidError(
            f"{path}: does not estimate {', '.join(missing[:5])}; fit and design must use the same --links, --simplify "
            "and --parameters"
        )
    index = [fit.columns.index(name) for name in names]
    covariance = fit.covariance[np.ix_(index, index)]
    scale = np.sqrt(np.diag(covariance))
    information = np.linalg.pinv(covariance / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    return information / (shape.period * options["rate_hz"]), noise


def _is_fit(path: str) -> bool:
    from armid.files import read_text

    text = read_text(Path(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("format", "")).startswith("armid fit")


def friction_entries(path: str, robot: Robot) -> dict[str, dict[str, Any]]:
    """Entries of a result of `armid friction` by joint.

    Raises:
        ArmidError: the file is no such result, or is about another robot.
    """
    from armid.files import read_text

    try:
        data = json.loads(read_text(Path(path)))
        if data["format"] != "armid friction 1":
            raise KeyError("format")
        whose, entries = str(data["robot"]), {int(entry["number"]): dict(entry) for entry in data["joints"]}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ArmidError(f"{path}: is no result of `armid friction -o FILE`; write one first") from None
    if whose != robot.name:
        raise ArmidError(f"{path}: is about {whose!r}, not {robot.name!r}; measure this arm's friction")
    return {name: entries[number] for number, name in enumerate(robot.joint_names, start=1) if number in entries}


def check_friction(path: str, known: Collection[str], joints: Iterable[str]) -> None:
    """Refuse a file that lacks the friction of one of the joints."""
    missing = [joint for joint in joints if joint not in known]
    if missing:
        raise ArmidError(
            f"{path}: has no friction of joint {', '.join(missing)}; measure it too (armid friction), all joints into "
            "one file"
        )
