"""Which parameters a robot's torque is linear in, and how each enters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.robot.inertia import INERTIAL_UNITS
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names

INERTIAL, ROTOR, FRICTION, SPRING = "inertial", "rotor", "friction", "spring"

# Local columns: how a coefficient acts along one coordinate. Names are those of the kernel.
_FRICTION_COLUMNS = {
    "fv": "velocity",
    "fc": "sign",
    "fo": "one",
    "fvp": "velocity_up",
    "fvn": "velocity_down",
    "fcp": "moving_up",
    "fcn": "moving_down",
}
LINEAR = ("none", "viscous", "coulomb-viscous")  # laws made of these columns
_FRICTION_UNITS = {"fv": ("N m s/rad", "N s/m"), "fc": ("N m", "N"), "fo": ("N m", "N")}  # revolute, prismatic


@dataclass(frozen=True, eq=False)
class Local:
    """A column that depends on one coordinate u = weight . q and acts along it.

    Attributes:
        kind: name of the function of u and its derivatives.
        weight: (n,) the coordinate's direction in joint space.
        constants: (4,) factor, then a, b, phi of a spring.
    """

    kind: str
    weight: Array
    constants: tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class CoupledRotor:
    """A rotor that feels the rotation of the link it sits on."""

    joint: int
    carrier: int
    ratio: float
    axis: Array


@dataclass(frozen=True, eq=False)
class Parameter:
    """One unknown of the linear model.

    Attributes:
        name: such as ``Ixx3``, ``Im3``, ``fv2``, ``ks1``.
        kind: inertial, rotor, friction or spring.
        number: number of the link, joint or spring it belongs to, from 1.
        unit: SI unit.
        column: how it enters: position 0-9 among the link's inertial parameters, a coupled rotor, or a local column.
    """

    name: str
    kind: str
    number: int
    unit: str
    column: int | CoupledRotor | Local


def linear_friction(friction: Friction) -> Friction:
    """The linear stand-in for a friction law: itself where the kernels have its columns, else viscous and Coulomb."""
    return friction if friction.law in LINEAR else Friction("coulomb-viscous", offset=friction.offset)


def parameters_of(robot: Robot) -> tuple[Parameter, ...]:
    """All parameters in their standard order: links, rotors, friction, springs."""
    return (*_links(robot), *_rotors(robot), *_frictions(robot), *_coupled_drives(robot), *_springs(robot))


def _links(robot: Robot) -> list[Parameter]:
    return [
        Parameter(name, INERTIAL, link, unit, position)
        for link in range(1, len(robot.links) + 1)
        for position, (name, unit) in enumerate(zip(inertial_names(link), INERTIAL_UNITS, strict=True))
    ]


def _rotors(robot: Robot) -> list[Parameter]:
    result = []
    for index, drive in enumerate(robot.drives if robot.rotors else ()):
        column: CoupledRotor | Local
        if drive.coupled and 0 < drive.carrier <= len(robot.links):
            column = CoupledRotor(index, drive.carrier - 1, drive.gear_ratio, drive.axis)
        else:
            column = Local("acceleration", np.eye(robot.n_joints)[index], (drive.gear_ratio**2, 0.0, 0.0, 0.0))
        result.append(Parameter(f"Im{index + 1}", ROTOR, index + 1, "kg m^2", column))
    return result


def _frictions(robot: Robot) -> list[Parameter]:
    result = []
    for index, described in enumerate(robot.friction):
        for name in linear_friction(described).coefficient_names:
            column = Local(_FRICTION_COLUMNS[name], np.eye(robot.n_joints)[index], (1.0, 0.0, 0.0, 0.0))
            full = f"{name[:2]}{index + 1}{name[2:]}"
            unit = _FRICTION_UNITS[name[:2]][robot.joints[index].prismatic]
            result.append(Parameter(full, FRICTION, index + 1, unit, column))
    return result


def _coupled_drives(robot: Robot) -> list[Parameter]:
    """Rotor inertia and friction of motors that move several joints, along the motor's own coordinate.

    The coordinate is scaled to its own joint: u_i = (R q)_i / R_ii, so that values are on the joint side.
    """
    if robot.coupling is None:
        return []
    result = []
    for index, row in enumerate(robot.coupling):
        if np.count_nonzero(row) < 2:
            continue
        weight = row / row[index]
        constants = (1.0, 0.0, 0.0, 0.0)
        if robot.rotors:
            column = Local("acceleration", weight, constants)
            result.append(Parameter(f"Imc{index + 1}", ROTOR, index + 1, "kg m^2", column))
        if robot.friction[index].law != "none":
            for name, kind in (("fvc", "velocity"), ("fcc", "sign")):
                unit = _FRICTION_UNITS[name[:2]][robot.joints[index].prismatic]
                result.append(
                    Parameter(f"{name}{index + 1}", FRICTION, index + 1, unit, Local(kind, weight, constants))
                )
    return result


def _springs(robot: Robot) -> list[Parameter]:
    result = []
    for number, spring in enumerate(robot.springs, start=1):
        weight = np.eye(robot.n_joints)[spring.joint - 1]
        constants = (1.0, spring.a, spring.b, spring.phi)
        for name, kind, unit in (("ks", "spring_stiffness", "N/m"), ("kl", "spring_length", "N")):
            result.append(Parameter(f"{name}{number}", SPRING, number, unit, Local(kind, weight, constants)))
    for number, linear in enumerate(robot.linear_springs, start=len(robot.springs) + 1):
        slides = all(robot.joints[j].prismatic for j in np.flatnonzero(linear.ratios))
        units = ("N/m", "N") if slides else ("N m/rad", "N m")
        for name, kind, factor, unit in (("ks", "position", 1.0, units[0]), ("kl", "one", -1.0, units[1])):
            column = Local(kind, linear.ratios, (factor, 0.0, 0.0, 0.0))
            result.append(Parameter(f"{name}{number}", SPRING, number, unit, column))
    return result
