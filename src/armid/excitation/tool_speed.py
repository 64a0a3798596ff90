"""A limit on the speed of the tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.excitation.constraints import MotionConstraint, lever_arms
from armid.excitation.placed import LinkPoints
from armid.excitation.trajectory import Extrema
from armid.robot.robot import Capsule, Robot


@dataclass(frozen=True, eq=False)
class ToolSpeed(MotionConstraint):
    """The tool's origin, and the ends of the last link's axis, do not move faster than a limit.

    Attributes:
        robot: the robot.
        capsules: shapes of its links (see `link_capsules`); those of the last one count.
        limit: largest speed [m/s].
    """

    robot: Robot
    capsules: Sequence[Capsule]
    limit: float
    name: str = "tool speed"
    _points: LinkPoints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no speed, and collect the points."""
        if not 0.0 < self.limit < np.inf:
            raise ArmidError(f"the tool speed is limited to {self.limit} m/s; it must be positive and finite")
        last = self.robot.n_joints
        ends = [end for capsule in self.capsules if capsule.link == last for end in (capsule.start, capsule.end)]
        points: list[Array] = []
        for point in (self.robot.tool[:3, 3], *ends):
            if not any(np.allclose(point, known) for known in points):
                points.append(point)
        object.__setattr__(self, "_points", LinkPoints(self.robot, [last] * len(points), points))

    @property
    def lower(self) -> Array:  # type: ignore[override]
        """A speed cannot be negative."""
        return np.full(len(self._points.links), -self.limit)

    @property
    def upper(self) -> Array:  # type: ignore[override]
        """Largest speeds allowed."""
        return np.full(len(self._points.links), self.limit)

    @property
    def size(self) -> Array:
        """Margins are shares of the limit."""
        return np.full(len(self._points.links), self.limit)

    def values(self, motion: Motion) -> Array:
        """Speeds of the points [m/s]."""
        return np.asarray(np.linalg.norm(self._points.at(motion.q).velocities(motion.qd), axis=2))

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """Derivatives of the speeds."""
        placed = self._points.at(motion.q)
        velocity = placed.velocities(motion.qd)
        direction = velocity / np.maximum(np.linalg.norm(velocity, axis=2, keepdims=True), 1e-9)
        q, qd = placed.pull_back_velocities(motion.qd, bar[..., None] * direction)
        return Motion(q, qd, np.zeros_like(q))

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest accelerations: of the joints at their lever arms, and those of turning about moving axes.

        The axis of a joint turns the columns of the joints after it, so that their lever arms bound the second part.
        """
        turns = np.array([not joint.prismatic for joint in self.robot.joints])
        before = np.cumsum(np.where(turns, speed, 0.0), axis=1)
        bounds = []
        for point in self._points.local:
            arms = lever_arms(self.robot, self.robot.n_joints, point, extrema)
            bounds.append(arms @ extrema.acceleration + 2.0 * (speed * before) @ arms)
        return np.column_stack(bounds)
