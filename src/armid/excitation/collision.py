"""Keeping the arm off itself and off the floor: capsules around the links."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import all_frames, point_jacobian
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.excitation.constraints import MotionConstraint, lever_arms
from armid.excitation.trajectory import Extrema
from armid.robot.geometry import inverse
from armid.robot.robot import Capsule, Robot

_log = logging.getLogger(__name__)
_ALWAYS = 0.9  # pairs that touch in more than this share of all postures touch by construction
_TOUCH_SAMPLES = 300


def link_capsules(robot: Robot, radius: float = 0.06) -> tuple[Capsule, ...]:
    """The robot's own capsules; for links without any, stand-ins from each joint to the joints that follow it.

    The base's stand-in starts at the origin of the base frame, the last link's ends at the tool.
    """
    if not 0.0 < radius < np.inf:
        raise ArmidError(f"the radius of links without a known shape is {radius} m; it must be positive")
    result = list(robot.capsules)
    described = {capsule.link for capsule in robot.capsules}
    for number in range(robot.n_joints + 1):
        if number in described:
            continue
        pivot = inverse(robot.joints[number - 1].link_frame)[:3, 3] if number else np.zeros(3)
        ends = [child.placement[:3, 3] for child in robot.joints if child.parent == number]
        if not ends:
            ends = [robot.tool[:3, 3] if number == robot.n_joints else np.zeros(3)]
        result += [Capsule(number, pivot, end, radius) for end in ends if np.linalg.norm(end - pivot) > 1e-9]
    if not any(capsule.link for capsule in result):
        raise ArmidError(f"{robot.source}: no link has a length, so collisions cannot be foreseen; give `capsules`")
    return tuple(result)


class _Placed:
    """Capsules placed in the base frame along a motion."""

    def __init__(self, robot: Robot, q: Array, capsules: Sequence[Capsule]) -> None:
        self.robot = robot
        self.joint_frames, frames = all_frames(robot, q)
        base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
        self._frames = np.concatenate([base, frames], axis=1)
        self.ends = [(self._point(c.link, c.start), self._point(c.link, c.end)) for c in capsules]

    def _point(self, link: int, local: Array) -> Array:
        frame = self._frames[:, link]
        result: Array = frame[:, :3, :3] @ local + frame[:, :3, 3]
        return result

    def linear(self, link: int, points: Array) -> Array:
        """Linear Jacobian (samples, 3, joints) of points that move with a link."""
        return point_jacobian(self.robot, self.joint_frames, link, points)[:, :3]


@dataclass(frozen=True, eq=False)
class SelfCollision(MotionConstraint):
    """Links keep a distance from each other.

    Neighbours are left out, and so are pairs that touch in nearly every posture because of how the arm is built.

    Attributes:
        robot: the robot.
        capsules: shapes of its links (see `link_capsules`).
        clearance: smallest distance between surfaces [m].
    """

    robot: Robot
    capsules: tuple[Capsule, ...]
    clearance: float = 0.01
    name: str = "self-collision"
    unit: ClassVar[str] = "m"
    pairs: tuple[tuple[int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Choose the pairs that can collide."""
        pairs, touching = _pairs(self.robot, self.capsules)
        object.__setattr__(self, "pairs", pairs)
        links = sorted({tuple(sorted((self.capsules[i].link, self.capsules[j].link))) for i, j in touching})
        if links:
            words = ", ".join(f"{a} and {b}" for a, b in links)
            _log.warning("links %s touch in nearly every posture and are not kept apart (smaller radius?)", words)

    @property
    def lower(self) -> Array:  # type: ignore[override]
        """Smallest distances allowed."""
        return np.full(len(self.pairs), self.clearance)

    @property
    def upper(self) -> Array:  # type: ignore[override]
        """No largest distance."""
        return np.full(len(self.pairs), np.inf)

    def values(self, motion: Motion) -> Array:
        """Distances between the surfaces of each pair."""
        placed = _Placed(self.robot, motion.q, self.capsules)
        distances = [_closest(*placed.ends[i], *placed.ends[j])[0] for i, j in self.pairs]
        return np.column_stack(distances) - self._radii if distances else np.zeros((len(motion.q), 0))

    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Derivatives: the closest points may be taken as fixed to their links."""
        placed = _Placed(self.robot, motion.q, self.capsules)
        result = np.zeros((len(motion.q), len(self.pairs), self.robot.n_joints))
        for k, (i, j) in enumerate(self.pairs):
            distance, first, second = _closest(*placed.ends[i], *placed.ends[j])
            normal = (first - second) / np.maximum(distance, 1e-9)[:, None]
            moving = placed.linear(self.capsules[i].link, first) - placed.linear(self.capsules[j].link, second)
            result[:, k] = np.einsum("ki,kij->kj", normal, moving)
        return result, np.zeros_like(result), np.zeros_like(result)

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest relative speeds of the links of each pair: joints that carry both do not change their distance."""
        arms = [_capsule_arms(self.robot, capsule, extrema) for capsule in self.capsules]
        result = np.zeros((len(speed), len(self.pairs)))
        for k, (i, j) in enumerate(self.pairs):
            paths = [set(self.robot.path_to(self.capsules[index].link)) for index in (i, j)]
            between = list(paths[0] ^ paths[1])
            result[:, k] = speed[:, between] @ (arms[i] + arms[j]).max(axis=0)[between]
        return result

    @property
    def _radii(self) -> Array:
        return np.array([self.capsules[i].radius + self.capsules[j].radius for i, j in self.pairs])


@dataclass(frozen=True, eq=False)
class Floor(MotionConstraint):
    """All links but the first, which may stand on it, stay above a horizontal plane.

    Attributes:
        robot: the robot.
        capsules: shapes of its links.
        height: of the plane above the base frame's origin, against gravity [m].
        clearance: smallest distance [m].
    """

    robot: Robot
    capsules: tuple[Capsule, ...]
    height: float = 0.0
    clearance: float = 0.01
    name: str = "floor"
    unit: ClassVar[str] = "m"

    def __post_init__(self) -> None:
        """Refuse a height that is no number."""
        if not np.isfinite(self.height):
            raise ArmidError(f"the floor is at a height of {self.height} m; it must be a finite number")

    @property
    def lower(self) -> Array:  # type: ignore[override]
        """Smallest heights allowed."""
        return np.full(2 * len(self._free), self.clearance)

    @property
    def upper(self) -> Array:  # type: ignore[override]
        """No largest height."""
        return np.full(2 * len(self._free), np.inf)

    def values(self, motion: Motion) -> Array:
        """Heights of the lowest points of both ends of each capsule above the plane."""
        placed = _Placed(self.robot, motion.q, self._free)
        up = self._up
        heights = [
            end @ up - self.height - capsule.radius
            for capsule, ends in zip(self._free, placed.ends, strict=True)
            for end in ends
        ]
        return np.column_stack(heights) if heights else np.zeros((len(motion.q), 0))

    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Derivatives of the heights."""
        placed = _Placed(self.robot, motion.q, self._free)
        up = self._up
        rows = [
            np.einsum("i,kij->kj", up, placed.linear(capsule.link, end))
            for capsule, ends in zip(self._free, placed.ends, strict=True)
            for end in ends
        ]
        result = np.stack(rows, axis=1) if rows else np.zeros((len(motion.q), 0, self.robot.n_joints))
        return result, np.zeros_like(result), np.zeros_like(result)

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest speeds of the ends of the capsules."""
        arms = [_capsule_arms(self.robot, capsule, extrema) for capsule in self._free]
        return speed @ np.vstack([np.zeros((0, self.robot.n_joints)), *arms]).T

    @property
    def _up(self) -> Array:
        length = float(np.linalg.norm(self.robot.gravity))
        return -self.robot.gravity / length if length > 0.0 else np.array([0.0, 0.0, 1.0])

    @property
    def _free(self) -> tuple[Capsule, ...]:
        return tuple(capsule for capsule in self.capsules if capsule.link > 1)


def _capsule_arms(robot: Robot, capsule: Capsule, extrema: Extrema) -> Array:
    """Lever arms (2, joints) of both ends of a capsule's axis; no point between them has longer ones."""
    return np.array([lever_arms(robot, capsule.link, end, extrema) for end in (capsule.start, capsule.end)])


#: Pairs of capsules, by their indices.
_Pairs = tuple[tuple[int, int], ...]


def _pairs(robot: Robot, capsules: Sequence[Capsule]) -> tuple[_Pairs, _Pairs]:
    """Pairs of capsules on links that are not neighbours: those that can be apart, and those that always touch."""
    rng = np.random.default_rng(0)
    lower, upper = np.nan_to_num(robot.limits.lower, nan=-np.pi), np.nan_to_num(robot.limits.upper, nan=np.pi)
    q = rng.uniform(lower, upper, (_TOUCH_SAMPLES, robot.n_joints))
    placed = _Placed(robot, q, capsules)
    parents = [0, *(joint.parent for joint in robot.joints)]
    apart: list[tuple[int, int]] = []
    touching: list[tuple[int, int]] = []
    for i, j in combinations(range(len(capsules)), 2):
        a, b = capsules[i].link, capsules[j].link
        if a == b or (a > 0 and parents[a] == b) or (b > 0 and parents[b] == a):
            continue
        gap = _closest(*placed.ends[i], *placed.ends[j])[0] - capsules[i].radius - capsules[j].radius
        (apart if np.mean(gap < 0.0) < _ALWAYS else touching).append((i, j))
    return tuple(apart), tuple(touching)


def _closest(a: Array, b: Array, c: Array, d: Array) -> tuple[Array, Array, Array]:
    """Distance between segments a-b and c-d, and the closest points, for each sample (rows)."""
    u, v, w = b - a, d - c, a - c
    uu, vv = np.einsum("ki,ki->k", u, u), np.einsum("ki,ki->k", v, v)
    uv, uw, vw = np.einsum("ki,ki->k", u, v), np.einsum("ki,ki->k", u, w), np.einsum("ki,ki->k", v, w)
    denominator = uu * vv - uv * uv
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(denominator > 1e-12 * uu * vv, (uv * vw - vv * uw) / denominator, 0.0)
        s = np.clip(np.nan_to_num(s), 0.0, 1.0)
        t = np.where(vv > 0.0, (uv * s + vw) / vv, 0.0)
        clipped = np.clip(np.nan_to_num(t), 0.0, 1.0)
        s = np.where(uu > 0.0, np.clip((uv * clipped - uw) / uu, 0.0, 1.0), 0.0)
    first, second = a + s[:, None] * u, c + clipped[:, None] * v
    return np.linalg.norm(first - second, axis=1), first, second
