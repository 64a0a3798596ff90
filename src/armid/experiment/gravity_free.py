"""Where gravity does not act on a joint, or acts most: posture, and mounting if need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.kinematics import all_frames
from armid.dynamics.model import Model
from armid.errors import ArmidError
from armid.excitation.constraints import prior_values
from armid.experiment.drive import joint_number
from armid.files import plain
from armid.robot.inertia import change_of_frame
from armid.robot.robot import Robot, inertial_names

FREE = 0.01  # of the largest gravity torque on the joint that counts as none
MOST = 20_000  # postures that are tried

MOUNTINGS = (
    ("as mounted", None),
    ("base upright", (0.0, 0.0, -1.0)),
    ("base horizontal, x0 up", (-1.0, 0.0, 0.0)),
    ("base horizontal, y0 up", (0.0, -1.0, 0.0)),
    ("base horizontal, x0 down", (1.0, 0.0, 0.0)),
    ("base horizontal, y0 down", (0.0, 1.0, 0.0)),
    ("base upside down", (0.0, 0.0, 1.0)),
)


@dataclass(frozen=True, eq=False)
class Posture:
    """A posture for an experiment on one joint.

    Attributes:
        joint: index of the joint, from 0.
        position: of all joints [rad or m]; the joint itself in the middle of its range.
        mounting: in words.
        gravity: in the base frame, with that mounting [m/s^2].
        torque: largest torque of gravity on the joint over its whole turn [N m]; NaN if masses are not known.
        axis_angle: largest angle between the joint's axis and the vertical [rad]; 0 is parallel.
        reason: in words.
    """

    joint: int
    position: Array
    mounting: str
    gravity: Array
    torque: float
    axis_angle: float
    reason: str

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        names = ("position", "mounting", "gravity", "reason")
        return {**{name: plain(getattr(self, name)) for name in names}, "gravity_torque": plain(self.torque)}

    @property
    def as_mounted(self) -> bool:
        """Whether the arm need not be mounted in another way."""
        return self.mounting == MOUNTINGS[0][0]


def gravity_free(robot: Robot, joint: int | str, *, remount: bool = True) -> Posture:
    """A posture, and a mounting, in which gravity does not act on a joint.

    Tried in this order: the joint's axis along gravity as mounted; carried links balanced about the axis as mounted,
    where masses are known (the virtual or nominal arm's); the axis along gravity in another mounting; the least
    gravity torque of all. The other joints take multiples of 90° inside their limits; as few as possible bend.

    Args:
        robot: with the gravity of its present mounting.
        joint: number from 1, or name.
        remount: whether other mountings may be proposed.
    """
    index = joint_number(robot, joint)
    found = [
        best
        for name, direction in (MOUNTINGS if remount else MOUNTINGS[:1])
        if (best := _best(robot, index, name, direction)) is not None
    ]
    if not found:
        raise ArmidError(f"{robot.name}: gravity is zero; any posture is free of it")
    first = found[0]
    largest = max((p.torque for p in found if np.isfinite(p.torque)), default=np.nan)
    scale = _largest_torque(robot, index)
    for posture in found:
        if _parallel(robot, index, posture) or posture.torque <= FREE * scale:
            return posture
    if np.isfinite(largest):
        return min(found, key=lambda posture: posture.torque)
    return replace(first, reason="no posture with its axis along gravity was found, and masses are not known")


def gravity_loaded(robot: Robot, joint: int | str) -> Posture:
    """The posture, as mounted, in which gravity acts most on a joint; masses must be known (virtual or nominal)."""
    index = joint_number(robot, joint)
    candidates = _candidates(robot, index, margin=0.005)
    torque = _torques(robot, index, candidates)
    if torque is None:
        raise ArmidError(f"{robot.source}: the weight of the links is not known; give virtual or nominal inertia")
    bent = _bends(robot, index, candidates)
    order = np.lexsort([bent, -np.round(torque / max(torque.max(), 1e-12), 3)])
    best = int(order[0])
    reason = f"gravity acts on it with up to {torque[best]:.3g} N m"
    return _posture(robot, index, candidates[best], MOUNTINGS[0][0], float(torque[best]), reason)


def _best(robot: Robot, index: int, name: str, direction: Sequence[float] | None) -> Posture | None:
    """The best posture in one mounting."""
    strength = float(np.linalg.norm(robot.gravity)) or 9.81
    mounted = robot if direction is None else robot.with_gravity(strength * np.array(direction))
    if not np.any(mounted.gravity):
        return None
    if direction is not None and np.allclose(mounted.gravity, robot.gravity):
        return None
    candidates = _candidates(robot, index)
    angle = _axis_angles(mounted, index, candidates)
    torque = _torques(mounted, index, candidates)
    bent = _bends(robot, index, candidates)
    scale = _largest_torque(robot, index)
    level = np.full(len(angle), np.nan) if torque is None else torque
    # Axis along gravity first, since it needs no knowledge of masses; then balance; then few bends.
    tilt = np.round(np.sin(angle) if not robot.joints[index].prismatic else np.abs(np.cos(angle)), 6)
    rest = np.zeros_like(angle) if torque is None else np.round(torque / max(scale, 1e-12), 4)
    along = tilt < 1e-6
    key = np.where(along, 0.0, np.where(rest <= FREE, 1.0, 2.0)) if torque is not None else tilt
    best = int(np.lexsort([bent, np.where(along, 0.0, rest), key])[0])
    reason = "its axis is along gravity"
    if not along[best]:
        reason = f"links are balanced: {level[best]:.2g} N m of {scale:.3g} N m are left"
        if torque is None or rest[best] > FREE:
            reason = f"gravity still acts with up to {level[best]:.3g} N m"
    return _posture(mounted, index, candidates[best], name, float(level[best]), reason)


def _posture(robot: Robot, index: int, q: Array, name: str, torque: float, reason: str) -> Posture:
    angle = float(_axis_angles(robot, index, q[None])[0])
    return Posture(index, q, name, robot.gravity.copy(), torque, angle, reason)


def _parallel(robot: Robot, index: int, posture: Posture) -> bool:
    tilt = np.sin(posture.axis_angle) if not robot.joints[index].prismatic else np.cos(posture.axis_angle)
    return bool(abs(tilt) < 1e-6)


def _candidates(robot: Robot, index: int, margin: float = 0.02) -> Array:
    """Postures in which other joints take multiples of 90°, a share of their range away from its ends."""
    choices: list[list[float]] = []
    for j, joint in enumerate(robot.joints):
        lower, upper = robot.limits.lower[j], robot.limits.upper[j]
        middle = 0.5 * (lower + upper) if np.isfinite(lower + upper) else 0.0
        if j == index:
            choices.append([middle])
            continue
        steps = [0.0] if joint.prismatic else [0.0, 0.5 * np.pi, -0.5 * np.pi, np.pi, -np.pi]
        free = margin * (upper - lower) if np.isfinite(lower + upper) else 0.0
        near = 0.0 if not np.isfinite(lower + upper) or lower < 0.0 < upper else round(middle / (np.pi / 2)) * np.pi / 2
        inside = [near + s for s in steps if not (near + s < lower + free or near + s > upper - free)]
        choices.append(inside or [middle])
    # Joints far from the swept one, towards the tool, are left alone first where there are too many postures.
    for j in reversed(range(robot.n_joints)):
        if np.prod([len(choice) for choice in choices]) <= MOST:
            break
        choices[j] = choices[j][:1]
    return np.array(list(product(*choices)), dtype=float)


def _bends(robot: Robot, index: int, candidates: Array) -> Array:
    away = np.abs(candidates) > 1e-9
    away[:, index] = False
    result: Array = away.sum(axis=1) + 1e-3 * np.abs(candidates).sum(axis=1) + 1e-6 * (candidates < 0.0).sum(axis=1)
    return result


def _axis_angles(robot: Robot, index: int, candidates: Array) -> Array:
    """Angle between the joint's axis and the vertical line, 0 to 90° [rad]."""
    axes = all_frames(robot, candidates)[0][:, index, :3, 2]
    down = robot.gravity / np.linalg.norm(robot.gravity)
    crossed: Array = np.linalg.norm(np.cross(axes, down), axis=1)
    return np.arctan2(crossed, np.abs(axes @ down))


def foreseen_values(model: Model, payload: ArrayLike | None = None) -> Array:
    """Parameter values to foresee gravity with: `prior_values`, and what the arm carries on its last link.

    Args:
        model: of the robot.
        payload: ten inertial parameters in the tool frame; the virtual arm's own if not given.
    """
    values, virtual = prior_values(model), model.robot.virtual
    carried = payload if payload is not None or virtual is None else virtual.payload
    if carried is not None:
        last = [model.names.index(name) for name in inertial_names(model.robot.n_joints)]
        values[last] += change_of_frame(model.robot.tool) @ np.asarray(carried, dtype=float)
    return values


def _torques(robot: Robot, index: int, candidates: Array) -> Array | None:
    """Largest gravity torque on the joint over a whole turn; it is A cos q + B sin q. None if masses are unknown."""
    model = Model(robot)
    try:
        values = foreseen_values(model)
    except ArmidError:
        return None
    return gravity_amplitude(model, values, index, candidates)


def gravity_amplitude(model: Model, values: ArrayLike, index: int, candidates: Array) -> Array:
    """Largest gravity torque [N m] on a joint over a whole turn of it, for each posture."""
    if model.robot.joints[index].prismatic:
        return np.abs(model.gravity_torque(candidates, values)[:, index])
    parts = []
    for shift in (0.0, 0.5 * np.pi):
        turned = candidates.copy()
        turned[:, index] += shift
        parts.append(model.gravity_torque(turned, values)[:, index])
    return np.hypot(*parts)


def _largest_torque(robot: Robot, index: int) -> float:
    """Largest gravity torque on the joint in any posture and any of three mountings; NaN if masses are unknown."""
    candidates = _candidates(robot, index)
    mounted = [robot.with_gravity(9.81 * np.array(direction)) for _, direction in MOUNTINGS[1:4]]
    torques = [_torques(arm, index, candidates) for arm in mounted]
    return max((float(torque.max()) for torque in torques if torque is not None), default=float("nan"))
