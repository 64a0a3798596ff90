"""Information gathered already, from an earlier plan or a fit, for the design of the next trajectory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.excitation import Fourier
    from armid.robot import Robot
    from armid.robot.inertia import Array


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
    missing = [name for name in names if name not in fit.names]
    if missing:
        raise ArmidError(
            f"{path}: does not estimate {', '.join(missing[:5])}; fit and design must use the same --links, --simplify "
            "and --parameters"
        )
    index = [fit.names.index(name) for name in names]
    covariance = fit.covariance[np.ix_(index, index)]
    scale = np.sqrt(np.diag(covariance))
    information = np.linalg.pinv(covariance / np.outer(scale, scale), hermitian=True) / np.outer(scale, scale)
    return information / (shape.period * options["rate_hz"]), noise


def _is_fit(path: str) -> bool:
    from armid.robot.schema import read_text

    text = read_text(Path(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and str(data.get("format", "")).startswith("armid fit")
