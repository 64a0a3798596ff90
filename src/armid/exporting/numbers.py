"""An arm as plain numbers, for programs that armid writes: what C and Python need and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from armid.arrays import Array
from armid.dynamics.layout import frame_changes, tree_of
from armid.dynamics.parameters import FRICTION, CoupledRotor, Local
from armid.estimation.fit import STANDSTILL
from armid.exporting.arm import IdentifiedArm
from armid.torque.friction.law import FrictionLaw

SMOOTHED = 0.05  # [rad/s] over which friction is compensated smoothly where the fit does not say


class Rotor(NamedTuple):
    """A rotor that feels the link it sits on; `axis` in that link's joint frame."""

    carrier: int
    joint: int
    ratio: float
    inertia: float
    axis: Array


class Line(NamedTuple):
    """Linear friction along u = weight . q: viscous and Coulomb friction for each direction, and an offset."""

    weight: Array
    viscous_up: float
    coulomb_up: float
    viscous_down: float
    coulomb_down: float
    offset: float


class Curve(NamedTuple):
    """Friction of a joint by a law: its coefficients forwards and backwards, and an offset."""

    joint: int
    law: FrictionLaw
    up: Mapping[str, float]
    down: Mapping[str, float]
    offset: float


@dataclass(frozen=True, eq=False)
class Numbers:
    """Everything that makes the torque.

    Attributes:
        parent: (n,) link that each joint hangs on, -1 for the base.
        prismatic: (n,) bool.
        rotation, translation: joint frame at zero in the parent's joint frame, (n, 3, 3) and (n, 3).
        gravity: (3,) [m/s^2].
        inertia: (n, 10) in joint frames.
        reflected: (n, n) inertia of rotors that feel no link [kg m^2].
        rotors: rotors that do.
        lines: linear friction.
        load: (n, 10) links whose torque is the load of load terms, or None.
        curves: friction laws, of the fit's terms and known beforehand.
        loss: (n, 2) slope and offset of load-proportional loss, or None.
        weight: (n, 10) links whose gravity torque it is proportional to, or None.
        springs: joint, a, b, phi, ks, kl.
        linear_springs: direction in joint space (n,), ks, kl.
        tables: joint, positions and torques of counterbalances.
        still, slow: speeds below which a joint stands still, and below which its friction is not known [rad/s].
        delay: by which torque lags motion [s].
    """

    parent: Array
    prismatic: Array
    rotation: Array
    translation: Array
    gravity: Array
    inertia: Array
    reflected: Array
    rotors: tuple[Rotor, ...]
    lines: tuple[Line, ...]
    load: Array | None
    curves: tuple[Curve, ...]
    loss: Array | None
    weight: Array | None
    springs: tuple[tuple[int, float, float, float, float, float], ...]
    linear_springs: tuple[tuple[Array, float, float], ...]
    tables: tuple[tuple[int, Array, Array], ...]
    still: Array
    slow: Array
    delay: Array


def numbers_of(arm: IdentifiedArm) -> Numbers:
    """Collect the numbers of an arm."""
    robot, tree = arm.robot, tree_of(arm.robot)
    loss, weight = (None, None) if arm.load_loss is None else arm.load_loss
    still = arm.fit.standstill[0]
    return Numbers(
        parent=tree.parent,
        prismatic=tree.prismatic,
        rotation=tree.rotation,
        translation=tree.translation,
        gravity=tree.gravity,
        inertia=_in_joint_frames(arm, arm.values),
        reflected=_reflected(arm),
        rotors=_rotors(arm),
        lines=_lines(arm),
        load=None if arm.load is None else _in_joint_frames(arm, arm.load),
        curves=curves_of(arm),
        loss=loss,
        weight=None if weight is None else _in_joint_frames(arm, weight),
        springs=tuple(
            (s.joint - 1, s.a, s.b, s.phi, arm.by_name[f"ks{i}"], arm.by_name[f"kl{i}"])
            for i, s in enumerate(robot.springs, start=1)
        ),
        linear_springs=tuple(
            (s.ratios, arm.by_name[f"ks{i}"], arm.by_name[f"kl{i}"])
            for i, s in enumerate(robot.linear_springs, start=len(robot.springs) + 1)
        ),
        tables=tuple((table.joint - 1, table.position, table.torque) for table in robot.counterbalances),
        still=still,
        slow=np.where(still > 0.0, still / STANDSTILL, SMOOTHED),
        delay=arm.fit.delay_s,
    )


def _in_joint_frames(arm: IdentifiedArm, vector: Array) -> Array:
    links = vector[: 10 * arm.robot.n_joints].reshape(-1, 10)
    result: Array = np.einsum("nij,nj->ni", frame_changes(arm.robot), links)
    return result


def _reflected(arm: IdentifiedArm) -> Array:
    result = np.zeros((arm.robot.n_joints, arm.robot.n_joints))
    for parameter in arm.model.parameters:
        column = parameter.column
        if isinstance(column, Local) and column.kind == "acceleration":
            result += arm.by_name[parameter.name] * column.constants[0] * np.outer(column.weight, column.weight)
    return result


def _rotors(arm: IdentifiedArm) -> tuple[Rotor, ...]:
    result = []
    for parameter in arm.model.parameters:
        column = parameter.column
        if isinstance(column, CoupledRotor) and arm.by_name[parameter.name] != 0.0:
            axis = arm.robot.joints[column.carrier].link_frame[:3, :3] @ column.axis
            result.append(Rotor(column.carrier, column.joint, column.ratio, arm.by_name[parameter.name], axis))
    return tuple(result)


# What each kind of column adds to a Line: viscous up, Coulomb up, viscous down, Coulomb down, offset.
_LINE = {
    "velocity": (1.0, 0.0, 1.0, 0.0, 0.0),
    "sign": (0.0, 1.0, 0.0, 1.0, 0.0),
    "one": (0.0, 0.0, 0.0, 0.0, 1.0),
    "velocity_up": (1.0, 0.0, 0.0, 0.0, 0.0),
    "velocity_down": (0.0, 0.0, 1.0, 0.0, 0.0),
    "moving_up": (0.0, 1.0, 0.0, 0.0, 0.0),
    "moving_down": (0.0, 0.0, 0.0, 1.0, 0.0),
}


def _lines(arm: IdentifiedArm) -> tuple[Line, ...]:
    sums: dict[tuple[float, ...], Array] = {}
    for parameter in arm.model.parameters:
        column = parameter.column
        if parameter.kind == FRICTION and isinstance(column, Local):
            share = arm.by_name[parameter.name] * column.constants[0] * np.array(_LINE[column.kind])
            key = tuple(column.weight.tolist())
            sums[key] = sums.get(key, np.zeros(5)) + share
    return tuple(Line(np.array(weight), *values.tolist()) for weight, values in sums.items() if values.any())


def curves_of(arm: IdentifiedArm) -> tuple[Curve, ...]:
    """Friction laws of the fit's terms and those known beforehand."""
    result = []
    for term in arm.fit.terms:
        if term.formula.weighted:  # not a curve over velocity
            continue
        linear = (arm.coefficients[name] for name in term.names)
        values = dict(zip((*term.formula.columns, *term.formula.shapes), (*linear, *term.shapes), strict=True))
        result.append(Curve(term.joint, term.formula, values, values, 0.0))
    known = arm.fit.known_torque
    for joint, entry in enumerate(() if known is None else known.friction):
        if entry is not None:
            friction, coefficients = entry
            offset = float(coefficients["fo"]) if friction.offset else 0.0
            result.append(Curve(joint, friction.formula, *friction.by_direction(coefficients), offset))
    return tuple(result)
