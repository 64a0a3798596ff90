"""Keeping the arm off itself and off the floor, and its tool slow: capsules around the links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.excitation.constraints import DISTANCE, MotionConstraint, lever_arms, of_position
from armid.excitation.placed import LinkPoints, Placed
from armid.excitation.trajectory import Extrema
from armid.robot.geometry import inverse
from armid.robot.robot import Capsule, Robot

_SLENDER = 0.07  # radius of links of unknown shape as a share of the arm's length, as on common arms
_ALWAYS = 0.9  # pairs that touch in more than this share of all postures touch by construction
_POSTURES = 300
_LEAST = 0.005  # [m] that a pair must be able to come apart beyond the clearance
_ROOMY = 0.3  # room that every pair can reach in the search
_JOINED = 1e-6  # [m] between axes of links that meet in every posture


class ShapelessError(ArmidError):
    """An arm has neither shapes nor lengths, such as a bare wrist."""


def link_capsules(robot: Robot, radius: float | None = None) -> tuple[Capsule, ...]:
    """The robot's own capsules; for links without any, stand-ins from each joint to the joints that follow it.

    The base's stand-in starts at the origin of the base frame, the last link's ends at the tool.

    Args:
        robot: the robot.
        radius: of links without a known shape [m] (default: 7 % of the arm's length).
    """
    if radius is not None and not 0.0 < radius < np.inf:
        raise ArmidError(f"the radius of links without a known shape is {radius} m; it must be positive")
    result = list(robot.capsules)
    described = {capsule.link for capsule in robot.capsules if capsule.radius > 0.0}
    length = sum(float(np.linalg.norm(c.end - c.start)) for c in robot.capsules if c.link and c.radius == 0.0)
    for number in range(robot.n_joints + 1):
        pivot = inverse(robot.joints[number - 1].link_frame)[:3, 3] if number else np.zeros(3)
        ends = [child.placement[:3, 3] for child in robot.joints if child.parent == number]
        if not ends:
            ends = [robot.tool[:3, 3] if number == robot.n_joints else np.zeros(3)]
        lengths = [float(np.linalg.norm(end - pivot)) for end in ends]
        length += max(lengths) if number else 0.0
        if number not in described:
            result += [Capsule(number, pivot, end, 0.0) for end, far in zip(ends, lengths, strict=True) if far > 1e-9]
    if not any(capsule.link for capsule in result):
        raise ShapelessError(f"{robot.source}: no link has a length, so collisions cannot be foreseen; give `capsules`")
    default = _SLENDER * max(length, 0.01) if radius is None else radius
    return tuple(replace(capsule, radius=default) if capsule.radius == 0.0 else capsule for capsule in result)


@dataclass(frozen=True, eq=False)
class SelfCollision(MotionConstraint):
    """Links keep a distance from each other.

    Neighbours are left out, and so are pairs that touch in nearly every posture because of how the arm is built.

    Attributes:
        robot: the robot.
        capsules: shapes of its links (see `link_capsules`).
        clearance: smallest distance between surfaces [m].
        pairs: of capsules, by their indices, that are kept apart.
        touching: pairs of links that are not: their shapes touch in nearly every posture.
    """

    robot: Robot
    capsules: tuple[Capsule, ...]
    clearance: float = 0.01
    name: str = "self-collision"
    unit: ClassVar[str] = "m"
    pairs: tuple[tuple[int, int], ...] = field(init=False)
    touching: tuple[tuple[int, int], ...] = field(init=False)
    _scale: Array = field(init=False, repr=False)
    _ends: LinkPoints = field(init=False, repr=False)
    _last: list[Any] = field(init=False, repr=False, default_factory=list)

    def __post_init__(self) -> None:
        """Choose the pairs that can collide."""
        pairs, touching = _pairs(self.robot, self.capsules, self.clearance)
        self._keep(
            pairs=tuple(pairs),
            touching=touching,
            lower=np.full(len(pairs), self.clearance),
            upper=np.full(len(pairs), np.inf),
            _scale=np.array([min(DISTANCE, far / _ROOMY) for far in pairs.values()]),
            _ends=_ends(self.robot, self.capsules),
        )

    def values(self, motion: Motion) -> Array:
        """Distances between the surfaces of each pair."""
        return self._apart(self._ends.at(motion.q))[0] - self._radii

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """The closest points may be taken as fixed to their links: the ends share their force as a lever does."""
        placed = self._ends.at(motion.q)
        distance, between, shares = self._apart(placed)
        force = bar[..., None] * between / np.maximum(distance, 1e-9)[..., None]
        ends = np.zeros_like(placed.points)
        for number, sign, share in zip((0, 1), (1.0, -1.0), shares, strict=True):
            of = sign * np.equal.outer([pair[number] for pair in self.pairs], np.arange(len(self.capsules)))
            ends[:, 0::2] += np.einsum("kmi,mc->kci", (1.0 - share)[..., None] * force, of)
            ends[:, 1::2] += np.einsum("kmi,mc->kci", share[..., None] * force, of)
        return of_position(placed.pull_back(ends))

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest relative speeds of the links of each pair: joints that carry both do not change their distance."""
        arms = [_capsule_arms(self.robot, capsule, extrema) for capsule in self.capsules]
        reach = np.zeros((self.robot.n_joints, len(self.pairs)))
        for k, (i, j) in enumerate(self.pairs):
            paths = [set(self.robot.path_to(self.capsules[index].link)) for index in (i, j)]
            between = list(paths[0] ^ paths[1])
            reach[between, k] = (arms[i] + arms[j]).max(axis=0)[between]
        return speed @ reach

    def _apart(self, placed: Placed) -> tuple[Array, Array, tuple[Array, Array]]:
        """Distances of the pairs; the last are kept."""
        if self._last[:1] != [placed]:
            self._last[:] = [placed, _distances(placed, self.pairs)]
        return self._last[1]  # type: ignore[no-any-return]

    @property
    def scale(self) -> Array:
        """Smaller for pairs that can part only a little."""
        return self._scale

    @property
    def _radii(self) -> Array:
        return np.array([self.capsules[i].radius + self.capsules[j].radius for i, j in self.pairs])


@dataclass(frozen=True, eq=False)
class Floor(MotionConstraint):
    """Links stay above a horizontal plane; points whose height no joint changes may stand on it.

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
    _ends: LinkPoints = field(init=False, repr=False)
    _free: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a height that is no number, and find the ends of capsules that can move up and down."""
        if not np.isfinite(self.height):
            raise ArmidError(f"the floor is at a height of {self.height} m; it must be a finite number")
        ends = _ends(self.robot, self.capsules)
        free = np.flatnonzero(np.ptp(ends.at(some_postures(self.robot)).points @ self._up, axis=0) > _JOINED)
        self._keep(_ends=ends, _free=free, lower=np.full(len(free), self.clearance), upper=np.full(len(free), np.inf))

    def can_be_kept(self) -> bool:
        """Whether all links are above the plane in any of some postures."""
        q = some_postures(self.robot)
        return bool((self.values(Motion(q, 0.0 * q, 0.0 * q)) > self.lower).all(axis=1).any())

    def values(self, motion: Motion) -> Array:
        """Heights of the lowest points of the ends of the capsules above the plane."""
        radii = np.repeat([capsule.radius for capsule in self.capsules], 2)
        heights: Array = self._ends.at(motion.q).points @ self._up - self.height - radii
        return heights[:, self._free]

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """Derivatives of the heights."""
        placed = self._ends.at(motion.q)
        ends = np.zeros_like(placed.points)
        ends[:, self._free] = bar[..., None] * self._up
        return of_position(placed.pull_back(ends))

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest speeds of the ends of the capsules."""
        arms = np.vstack([_capsule_arms(self.robot, capsule, extrema) for capsule in self.capsules])
        return np.asarray(speed @ arms[self._free].T)

    @property
    def _up(self) -> Array:
        length = float(np.linalg.norm(self.robot.gravity))
        return -self.robot.gravity / length if length > 0.0 else np.array([0.0, 0.0, 1.0])


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
        limits = np.full(len(points), self.limit)
        self._keep(_points=LinkPoints(self.robot, [last] * len(points), points), lower=-limits, upper=limits)

    @property
    def size(self) -> Array:
        """Margins are shares of the limit."""
        return self.upper

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


def _ends(robot: Robot, capsules: Sequence[Capsule]) -> LinkPoints:
    """Starts and ends of capsules, one after the other."""
    links = [capsule.link for capsule in capsules for _ in range(2)]
    return LinkPoints(robot, links, [end for capsule in capsules for end in (capsule.start, capsule.end)])


def _capsule_arms(robot: Robot, capsule: Capsule, extrema: Extrema) -> Array:
    """Lever arms (2, joints) of both ends of a capsule's axis; no point between them has longer ones."""
    return np.array([lever_arms(robot, capsule.link, end, extrema) for end in (capsule.start, capsule.end)])


def some_postures(robot: Robot, count: int = _POSTURES) -> Array:
    """Random postures (count, joints) within the limits, half a turn where these are not known [rad]."""
    known = robot.limits
    lower, upper = (np.where(np.isfinite(x), x, end) for x, end in ((known.lower, -np.pi), (known.upper, np.pi)))
    return np.random.default_rng(0).uniform(lower, upper, (count, robot.n_joints))


def _pairs(
    robot: Robot, capsules: Sequence[Capsule], clearance: float
) -> tuple[dict[tuple[int, int], float], tuple[tuple[int, int], ...]]:
    """Pairs of capsules that can collide, with how far beyond the clearance they can part, and links that always touch.

    Neighbours are joined, and so are links whose axes meet in every posture, with links of no length between them.
    """
    parents = [0, *(joint.parent for joint in robot.joints)]
    links = [capsule.link for capsule in capsules]
    candidates = [
        (i, j)
        for i, j in combinations(range(len(capsules)), 2)
        if links[i] != links[j]
        and not (links[i] > 0 and parents[links[i]] == links[j])
        and not (links[j] > 0 and parents[links[j]] == links[i])
    ]
    distance = _distances(_ends(robot, capsules).at(some_postures(robot)), candidates)[0]
    apart: dict[tuple[int, int], float] = {}
    joined, touching = set(), set()
    for pair, axes in zip(candidates, distance.T, strict=True):
        i, j = pair
        names = min(links[i], links[j]), max(links[i], links[j])
        if axes.max() < _JOINED:
            joined.add(names)
            continue
        gap = axes - capsules[i].radius - capsules[j].radius - clearance
        if np.mean(gap < 0.0) < _ALWAYS and gap.max() > _LEAST:
            apart[pair] = float(gap.max())
        else:
            touching.add(names)
    return apart, tuple(sorted(touching - joined))


def _distances(placed: Placed, pairs: Sequence[tuple[int, int]]) -> tuple[Array, Array, tuple[Array, Array]]:
    """Distances (samples, pairs) of the capsules' axes, ways between closest points, and where on both axes they are.

    Segments as in Ericson, Real-Time Collision Detection, 5.1.9.
    """
    first, second = np.reshape(np.asarray(pairs, dtype=int), (-1, 2)).T
    ends = placed.points
    a, c = ends[:, 2 * first], ends[:, 2 * second]
    u, v, w = ends[:, 2 * first + 1] - a, ends[:, 2 * second + 1] - c, a - c
    uu, vv, uv, uw, vw = (np.einsum("kmi,kmi->km", x, y) for x, y in ((u, u), (v, v), (u, v), (u, w), (v, w)))
    denominator = uu * vv - uv * uv
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(denominator > 1e-12 * uu * vv, (uv * vw - vv * uw) / denominator, 0.0)
        s = np.clip(np.nan_to_num(s), 0.0, 1.0)
        t = np.clip(np.nan_to_num(np.where(vv > 0.0, (uv * s + vw) / vv, 0.0)), 0.0, 1.0)
        s = np.where(uu > 0.0, np.clip((uv * t - uw) / uu, 0.0, 1.0), 0.0)
    between = w + s[..., None] * u - t[..., None] * v
    return np.sqrt(np.einsum("kmi,kmi->km", between, between)), between, (s, t)
