"""Torque that is known before the inertial parameters are estimated: friction from a sweep, load-proportional loss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.errors import ArmidError
from armid.files import FieldError, checked, read_result
from armid.robot.parts import Friction
from armid.robot.robot import Robot

Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class KnownTorque:
    """Friction and loss to subtract, as the PA-10 and Powerball papers do (sequential identification).

    Attributes:
        friction: law and coefficients of each joint, joint side; None for a joint without.
        load_loss: slope and offset [N m] per joint of the loss S = a tau_L + b, PA-10 (19), or None.
        weight: parameter values whose gravity torque is the load tau_L (needed with `load_loss`).
    """

    friction: tuple[tuple[Friction, Mapping[str, float]] | None, ...]
    load_loss: Array | None = None
    weight: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Refuse a law without its coefficients."""
        for joint, known in enumerate(self.friction):
            missing = [] if known is None else [name for name in known[0].coefficient_names if name not in known[1]]
            if known is not None and missing:
                raise FieldError(f"friction[{joint + 1}]", f"lacks {', '.join(missing)} of the law {known[0].law!r}")

    def torque(self, model: Model, motion: Motion) -> Array:
        """Torque (samples, joints)."""
        result = np.zeros_like(motion.q)
        for joint, known in enumerate(self.friction):
            if known is not None:
                law, coefficients = known
                result[:, joint] = law.torque(motion.qd[:, joint], coefficients)
        if self.load_loss is not None:
            weight = model.gravity_torque(motion.q, dict(self.weight or {}))
            result += self.load_loss[:, 0] * weight + self.load_loss[:, 1]
        return result


@dataclass(frozen=True)
class _Curve:
    """What a result of `armid friction` must say of a joint at least."""

    law: str
    per_direction: bool
    coefficients: dict[str, float]


@dataclass(frozen=True)
class _Result:
    robot: str
    joints: tuple[dict[str, Any], ...]


def friction_file(path: str | Path, robot: Robot, kind: type[Kind], joints: Iterable[str] = ()) -> dict[str, Kind]:
    """Entries of a result of `armid friction -o FILE` as instances of `kind`, by name of the joint.

    Args:
        path: the file.
        robot: whose friction it must be.
        kind: a dataclass of entries, such as `armid.estimation.single_joint.friction_fit.FrictionFit`.
        joints: that must be there.

    Raises:
        ArmidError: the file is no such result, is about another robot, or lacks a joint.
    """
    result = read_result(path, _Result, "a result of `armid friction`", "armid friction 1", "armid friction -o FILE")
    if result.robot != robot.name:
        raise ArmidError(f"{path}: is about {result.robot!r}, not {robot.name!r}; measure this arm's friction")
    entries = {entry.get("number"): entry for entry in result.joints if isinstance(entry.get("number"), int)}
    numbers = {number: name for number, name in enumerate(robot.joint_names, start=1) if number in entries}
    missing = [joint for joint in joints if joint not in numbers.values()]
    if missing:
        raise ArmidError(
            f"{path}: has no friction of joint {', '.join(missing)}; measure it too (armid friction), all joints into "
            "one file"
        )
    return {name: checked(entries[number], kind, f"{path}: {name}") for number, name in numbers.items()}


def given_friction(path: str | Path, robot: Robot) -> tuple[Robot, KnownTorque]:
    """The robot without friction but for offsets, and the friction that a file states (PA-10, Powerball: first)."""
    entries = friction_file(path, robot, _Curve, robot.joint_names)
    known = tuple((Friction(one.law, False, one.per_direction), one.coefficients) for one in entries.values())
    bare = tuple(Friction(offset=described.offset) for described in robot.friction)
    try:
        return replace(robot, friction=bare), KnownTorque(known)
    except FieldError as error:
        raise ArmidError(f"{path}: {error}; write the file again with armid friction -o FILE") from None
