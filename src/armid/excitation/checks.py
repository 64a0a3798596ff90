"""The limits that every plan keeps without being asked, what is assumed for them, and what cannot be checked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from armid.dynamics.model import Model
from armid.errors import ArmidError, UnknownNameError
from armid.excitation.collision import Floor, SelfCollision, ShapelessError, ToolSpeed, link_capsules
from armid.excitation.constraints import MotionConstraint, ToolBox, TorqueLimit, prior_values
from armid.excitation.plan import CHECKS
from armid.notes import Note, note
from armid.robot.robot import Capsule, Limits, Robot

TOOL_SPEED = 2.0  # [m/s] where a description states none
_UPRIGHT = np.cos(np.radians(45.0))  # an arm stands, unless gravity is further than this from its base's -z


@dataclass(frozen=True, kw_only=True)
class Checks:
    """How limits are checked that a description states, or that common sense does.

    Attributes:
        without: checks to leave out, of torque, self-collision, floor, tool speed; the plan names them.
        torque_share: of the torque limits that may be used, the rest being the uncertainty of the model.
        radius: of links whose shape is not known [m] (default: 7 % of the arm's length).
        floor: height of the floor above the origin of the base frame [m] (default: the description's, else 0 for an arm
            that stands upright to 45 degrees).
        tool_speed: largest speed of the tool [m/s] (default: the description's, else 2).
    """

    without: tuple[str, ...] = ()
    torque_share: float = 0.8
    radius: float | None = None
    floor: float | None = None
    tool_speed: float | None = None

    def __post_init__(self) -> None:
        """Refuse checks that there are not, and shares that are none."""
        for name in self.without:
            if name not in CHECKS:
                raise UnknownNameError("check", name, CHECKS)
        if not 0.0 < self.torque_share <= 1.0:
            raise ArmidError(f"torque_share is {self.torque_share}; it is a share of the limits, above 0 and at most 1")


def known_limits(
    model: Model, limits: Limits, checks: Checks | None, given: Collection[str] = ()
) -> tuple[list[MotionConstraint], list[Note]]:
    """The constraints that follow from what is known of an arm, and notes on what is assumed or cannot be checked.

    Args:
        model: of the robot.
        limits: of the robot.
        checks: how to check; None checks nothing.
        given: names of constraints that somebody else has stated.
    """
    if checks is None:
        return [], [note("excitation.unchecked-off", check=name) for name in CHECKS if name not in given]
    robot = model.robot
    notes = [note("excitation.unchecked-off", check=name) for name in checks.without if name not in given]
    wanted = [name for name in CHECKS if name not in checks.without and name not in given]
    found: list[MotionConstraint] = []
    if limits.assumed:
        notes.append(note("excitation.assumed-limits", fields=", ".join(sorted(limits.assumed))))
    if limits.box is not None and "tool box" not in given:
        found.append(ToolBox(robot, limits.box.min(axis=0), limits.box.max(axis=0)))
    if "torque" in wanted:
        found += _torque(model, limits, checks.torque_share, notes)
    try:
        capsules = link_capsules(robot, checks.radius)
    except ShapelessError:
        notes += [note("excitation.unchecked-lengths", check=name) for name in CHECKS[1:3] if name in wanted]
        wanted, capsules = [name for name in wanted if name not in CHECKS[1:3]], ()
    if {"self-collision", "floor"} & set(wanted):
        notes += _about_shapes(robot, capsules)
    if "self-collision" in wanted:
        apart = SelfCollision(robot, capsules)
        found.append(apart)
        if apart.touching:
            links = ", ".join(f"{_link(robot, a)} and {_link(robot, b)}" for a, b in apart.touching)
            notes.append(note("excitation.unchecked-touching", links=links))
    if "floor" in wanted:
        found += _floor(robot, capsules, limits.floor if checks.floor is None else checks.floor, notes)
    if "tool speed" in wanted:
        speed = limits.tool_speed if checks.tool_speed is None else checks.tool_speed
        if speed is None:
            notes.append(note("excitation.assumed-tool-speed", limit=TOOL_SPEED))
        found.append(ToolSpeed(robot, capsules, TOOL_SPEED if speed is None else speed))
    return found, notes


def _torque(model: Model, limits: Limits, share: float, notes: list[Note]) -> list[MotionConstraint]:
    """The limits of torque that are known, if there is an inertia to foresee torque with."""
    unknown = [joint.name for joint, limit in zip(model.robot.joints, limits.torque, strict=True) if np.isnan(limit)]
    if unknown:
        named = "all joints" if len(unknown) == len(limits.torque) else ", ".join(unknown)
        notes.append(note("excitation.unchecked-torque-limits", joints=named, check="torque"))
    try:
        values = prior_values(model)
    except ArmidError:
        values = np.zeros(0)
    if not values.any():
        notes.append(note("excitation.unchecked-torque-inertia", check="torque"))
        return []
    known = np.where(np.isnan(limits.torque), np.inf, limits.torque)
    return [TorqueLimit(model, values, known, share)] if np.isfinite(known).any() else []


def _floor(robot: Robot, capsules: tuple[Capsule, ...], height: float | None, notes: list[Note]) -> list[Floor]:
    """The floor at a height that is stated, or at the base plane of an arm that stands and can stay above it."""
    floor = Floor(robot, capsules, 0.0 if height is None else height)
    if height is None:
        gravity = float(np.linalg.norm(robot.gravity))
        upright = -robot.gravity[2] / gravity if gravity > 0.0 else 0.0
        if gravity == 0.0:
            notes.append(note("excitation.unchecked-weightless", check="floor"))
            return []
        if upright < _UPRIGHT - 1e-9:
            angle = float(np.degrees(np.arccos(np.clip(upright, -1.0, 1.0))))
            notes.append(note("excitation.unchecked-hangs", angle=angle, check="floor"))
            return []
        if not floor.can_be_kept():
            notes.append(note("excitation.unchecked-below", check="floor"))
            return []
        notes.append(note("excitation.assumed-floor"))
    return [floor]


def _about_shapes(robot: Robot, capsules: tuple[Capsule, ...]) -> list[Note]:
    """Which links have stand-ins for a shape, and which shapes could not be read."""
    notes = []
    described = {capsule.link for capsule in robot.capsules if capsule.radius > 0.0}
    stand_ins = {capsule.link: capsule.radius for capsule in capsules if capsule.link not in described}
    if stand_ins:
        links = ", ".join(_link(robot, number) for number in sorted(stand_ins))
        notes.append(note("excitation.assumed-shapes", links=links, radius=max(stand_ins.values())))
    if robot.unread_shapes:
        names = ", ".join(sorted({shape.name for shape in robot.unread_shapes}))
        notes.append(note("excitation.unchecked-shapes", names=names))
    return notes


def _link(robot: Robot, number: int) -> str:
    return robot.joints[number - 1].link_name if number else "the base"
