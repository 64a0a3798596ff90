"""Where priors come from: a URDF's own inertias, a CAD table in YAML, an earlier fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.estimation.fit import Fit, load_fit
from armid.estimation.possible.prior import Prior
from armid.estimation.problem import EstimationError
from armid.files import read_text
from armid.robot.inertia import from_com
from armid.robot.load import load_robot
from armid.robot.robot import Robot, inertial_names
from armid.robot.schema import Fields, read_fields


def nominal_prior(robot: Robot, strength: float = 0.05) -> Prior:
    """Prior from the inertias that a URDF or MJCF file states; links without mass are left out."""
    if robot.nominal_inertia is None:
        raise EstimationError(
            f"{robot.source} states no inertias to serve as a prior; use a URDF with <inertial>, or a prior file"
        )
    values: dict[str, float] = {}
    for number, phi in enumerate(robot.nominal_inertia, start=1):
        if np.any(phi != 0.0):
            values |= dict(zip(inertial_names(number), phi.tolist(), strict=True))
    return Prior(values, strength, robot.source)


def fit_prior(fit: Fit, strength: float = 0.05, source: str = "an earlier fit") -> Prior:
    """Prior from the full link parameters of a physically possible fit."""
    if fit.standard_parameters is None:
        raise EstimationError(f"{source} has no link parameters; make it with the method `feasible`")
    massive = [n for n in range(1, fit.robot.n_joints + 1) if fit.standard_parameters.get(f"m{n}", 0.0) > 0.0]
    names = {name for number in massive for name in inertial_names(number)}
    return Prior(
        {name: fit.standard_parameters[name] for name in fit.standard_parameters if name in names}, strength, source
    )


def read_prior(path: str | Path, robot: Robot, strength: float | None = None) -> Prior:
    """Prior from a file: YAML (below), a URDF or MJCF file, or a fit.

    YAML holds ``links``, each with ``mass`` [kg], ``com`` [m] and ``inertia`` about it [kg m^2] as in the ``virtual``
    section of a robot file, and optionally ``link`` (its number; else its place in the list) and ``strength``. Beside
    them may stand ``strength``, ``source`` and ``rotor_inertia`` per joint [kg m^2, motor side].
    """
    path = Path(path)
    if path.suffix == ".json":
        return fit_prior(load_fit(path), strength or 0.05, str(path))
    if path.suffix in (".urdf", ".xml", ".mjcf"):
        other = load_robot(path)
        if other.n_joints != robot.n_joints:
            raise EstimationError(f"{path} has {other.n_joints} joints; {robot.name} has {robot.n_joints}")
        return nominal_prior(other, strength or 0.05)
    fields = read_fields(read_text(path), str(path))
    values: dict[str, float] = {}
    own: dict[int, float] = {}
    for place, entry in enumerate(fields.sections("links"), start=1):
        number = entry.checked_integer("link", entry.take("link", place))
        if not 1 <= number <= robot.n_joints:
            entry.fail("link", f"is {number}; {robot.name} has the links 1 to {robot.n_joints}")
        if "strength" in entry:
            own[number] = entry.number("strength")
        values |= dict(zip(inertial_names(number), _link(entry).tolist(), strict=True))
    if "rotor_inertia" in fields:
        rotors = fields.numbers_per_joint("rotor_inertia", robot.n_joints)
        values |= {f"Im{joint}": float(value) for joint, value in enumerate(rotors, start=1)}
    stated = fields.number("strength", 0.05)
    source = fields.text("source", str(path))
    fields.finish()
    if not values:
        fields.fail("links", "is empty; give mass, com and inertia of each link")
    return Prior(values, stated if strength is None else strength, source, own)


def parse_prior(text: str, robot: Robot) -> Prior:
    """Prior from ``FILE:STRENGTH``, ``FILE``, or ``nominal[:STRENGTH]`` for the robot's own URDF."""
    name, colon, number = text.rpartition(":")
    strength: float | None = None
    if colon and name:
        try:
            strength = float(number.removesuffix("%")) / (100.0 if number.endswith("%") else 1.0)
        except ValueError:
            name = text
    else:
        name = text
    if name == "nominal":
        return nominal_prior(robot, strength or 0.05)
    return read_prior(name, robot, strength)


def _link(fields: Fields) -> Array:
    mass, com = fields.number("mass"), fields.vector("com", 3)
    section = fields.section("inertia")
    xx, xy, xz, yy, yz, zz = (section.number(key) for key in ("xx", "xy", "xz", "yy", "yz", "zz"))
    section.finish()
    fields.finish()
    return from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
