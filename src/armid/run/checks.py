"""Mistakes in the settings of a run, found before the first experiment and not after it."""

from __future__ import annotations

from pathlib import Path

from armid.errors import ArmidError, UnknownNameError
from armid.robot.robot import Robot
from armid.run.settings import Settings
from armid.run.work import path_to_track


def check_settings(settings: Settings, robot: Robot) -> None:
    """Refuse names that no stage knows and files that cannot be read.

    Raises:
        ArmidError: what is wrong, and what would be valid.
    """
    from armid.control.tool_poses import tool_path
    from armid.estimation.consistent.prior import parse_prior
    from armid.estimation.estimator import estimators
    from armid.excitation import criterion
    from armid.exporting import exporters
    from armid.logs import Recipe
    from armid.signals import load_pipeline
    from armid.torque.friction.added import friction_choice

    for name in (*settings.log, *settings.validation):
        if not Path(name).exists():
            raise ArmidError(f"{name}: there is no such file")
    if settings.method is not None and settings.method not in estimators:
        raise UnknownNameError("--method", settings.method, estimators)
    if settings.friction != "linear":
        friction_choice(settings.friction)
    for name in settings.to:
        if name not in exporters and settings.to != ("none",):
            raise UnknownNameError("--to", name, (*exporters, "none"))
    criterion(settings.criterion)
    load_pipeline(settings.signals)
    if settings.prior:
        parse_prior(settings.prior, robot)
    if settings.recipe:
        Recipe.load(settings.recipe)
    if (path := path_to_track(settings)) is not None:
        tool_path(path)
