"""An arm that is part of a larger file, and joints that follow others.

Of a larger file some joints move, while all others are locked where they are. Joints that follow others are
q_i = ratios . q + offset: URDF `mimic`, MJCF equality, parallelograms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, UnknownNameError
from armid.files import FieldError
from armid.robot.robot import Dependent, Limits, LinearSpring, Robot


@dataclass(frozen=True)
class Chain:
    """The joints of an arm within a file, by name or as those between two links; by default all.

    Attributes:
        joints: their names.
        start: link that they hang on, the file's first where it is None.
        end: link that they carry; None for all that the start carries.
    """

    joints: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None

    def __bool__(self) -> bool:
        """Whether it chooses."""
        return bool(self.joints or self.start or self.end)

    def chosen(self, source: str, joints: Mapping[str, tuple[str, ...]], parents: Mapping[str, str]) -> set[str]:
        """Names of the joints that move.

        Args:
            source: file, for messages.
            joints: that can move, by the link they carry directly.
            parents: of each link but the first.
        """
        moving = {name for names in joints.values() for name in names}
        if not self:
            return moving
        if self.joints and (self.start or self.end):
            raise DescriptionError(source, "joints", "are named, and links around them too; give one of them")
        for name in self.joints:
            if name not in moving:
                raise UnknownNameError(f"joint of {source} that can move", name, sorted(moving))
        for link in filter(None, (self.start, self.end)):
            if link not in parents and link not in parents.values():
                raise UnknownNameError(f"link of {source}", link, sorted({*parents, *parents.values()}))
        if self.joints:
            return set(self.joints)
        between = {link for link in parents if self._holds(link, parents)}
        found = {name for link in between for name in joints.get(link, ())}
        if not found:
            ends = f"from {self.start or 'the base'} to {self.end or 'the tips'}"
            raise DescriptionError(source, "joints", f"that can move: there are none {ends}; name links of one branch")
        return found

    def _holds(self, link: str, parents: Mapping[str, str]) -> bool:
        """Whether a link lies beyond the start and on the way to the end."""
        inward = _path(link, parents)[1:]
        return (self.start is None or self.start in inward) and (self.end is None or link in _path(self.end, parents))


def _path(link: str, parents: Mapping[str, str]) -> list[str]:
    """The link and those it hangs on, up to the first."""
    path = [link]
    while path[-1] in parents and len(path) <= len(parents):
        path.append(parents[path[-1]])
    return path


WHOLE = Chain()


@dataclass(frozen=True)
class Follows:
    """What a joint follows: ratios by name of the joint, and its position where these are zero [rad or m]."""

    ratios: Mapping[str, float]
    offset: float = 0.0


def with_dependent(robot: Robot, follows: Mapping[str, Follows]) -> Robot:
    """The robot with some of its joints following others, which may follow others in turn.

    Joints that move by themselves keep their order and are numbered first, with their links. Limits, friction and
    reflected rotor inertia that a file states for a joint that follows a single other become that one's.
    """
    if not follows:
        return robot
    if robot.dependent:
        raise FieldError(
            "kinematics.dependent", "adds to those of the file; state all of them here, without mimic there"
        )
    names = robot.joint_names
    for name in {*follows, *(other for one in follows.values() for other in one.ratios)}:
        if name not in names:
            raise UnknownNameError(f"joint of {robot.source}", name, names)
    free = [k for k, name in enumerate(names) if name not in follows]
    tied = [k for k, name in enumerate(names) if name in follows]
    rows = {names[k]: np.append(unit, 0.0) for k, unit in zip(free, np.eye(len(free)), strict=True)}
    for name in follows:
        _resolve(name, follows, rows, ())
    order = [*free, *tied]
    number = {0: 0, **{old + 1: new + 1 for new, old in enumerate(order)}}
    joints = [replace(robot.joints[k], parent=number[robot.joints[k].parent]) for k in order]
    dependent = tuple(
        Dependent(joint, rows[names[k]][:-1], float(rows[names[k]][-1]))
        for k, joint in zip(tied, joints[len(free) :], strict=True)
    )
    meant = robot.nominal_joints and tuple(
        replace(robot.nominal_joints[k], parent=number[robot.nominal_joints[k].parent]) for k in order
    )
    lengths = [length for length in robot.lengths if length.joint in free]
    inertia, friction, rotors = robot.nominal_inertia, robot.nominal_friction, robot.nominal_rotors
    ratios = np.array([one.ratios for one in dependent])
    alone = np.count_nonzero(ratios, axis=1) == 1
    return replace(
        robot,
        joints=tuple(joints[: len(free)]),
        dependent=dependent,
        lengths=tuple(
            replace(length, joint=free.index(length.joint), name=f"{length.name[0]}{free.index(length.joint) + 1}")
            for length in lengths
        ),
        limits=_limits(robot.limits, free, tied, dependent),
        capsules=tuple(replace(capsule, link=number[capsule.link]) for capsule in robot.capsules),
        meshes=tuple(replace(mesh, link=number[mesh.link]) for mesh in robot.meshes),
        unread_shapes=tuple(replace(shape, link=number[shape.link]) for shape in robot.unread_shapes),
        linear_springs=tuple(_spring(spring, rows, names) for spring in robot.linear_springs),
        nominal_inertia=None if inertia is None else inertia[order],
        nominal_friction=None if friction is None else _added(friction, free, tied, np.abs(ratios), alone, (2, 1)),
        nominal_rotors=None if rotors is None else _added(rotors[:, None], free, tied, ratios, alone, (2,))[:, 0],
        nominal_joints=meant or None,
    )


def _spring(spring: LinearSpring, rows: Mapping[str, Array], names: tuple[str, ...]) -> LinearSpring:
    """The spring along the joints that move by themselves; offsets of the others move its rest."""
    total = np.sum([ratio * rows[name] for name, ratio in zip(names, spring.ratios, strict=True)], axis=0)
    return replace(spring, ratios=total[:-1], rest=spring.rest - float(total[-1]))


def _resolve(name: str, follows: Mapping[str, Follows], rows: dict[str, Array], on_the_way: tuple[str, ...]) -> Array:
    """Ratios to the joints that move by themselves, and the offset behind them."""
    if name in rows:
        return rows[name]
    if name in on_the_way:
        raise FieldError(f"joint {name!r}", f"follows itself, by way of {', '.join(on_the_way)}; let one of them move")
    said = follows[name]
    inner = [ratio * _resolve(other, follows, rows, (*on_the_way, name)) for other, ratio in said.ratios.items()]
    total = np.sum(inner, axis=0)
    total[-1] += said.offset
    if not total[:-1].any():
        raise FieldError(f"joint {name!r}", "follows no joint that moves; make it fixed")
    rows[name] = total
    return np.asarray(total)


def _added(
    stated: Array, free: list[int], tied: list[int], ratios: Array, alone: Array, powers: tuple[int, ...]
) -> Array:
    """Coefficients (joints, kinds) of the free joints with those of the joints that follow one of them alone."""
    result = stated[free].copy()
    for column, power in enumerate(powers):
        result[:, column] += (ratios[alone] ** power).T @ stated[np.array(tied)[alone], column]
    return result


def _limits(limits: Limits, free: list[int], tied: list[int], dependent: tuple[Dependent, ...]) -> Limits:
    """Limits of the free joints, within which those that follow one of them alone keep theirs."""
    names = ("lower", "upper", "velocity", "acceleration", "torque")
    cut = replace(limits, **{name: getattr(limits, name)[free] for name in names})
    for k, follower in zip(tied, dependent, strict=True):
        moved = np.flatnonzero(follower.ratios)
        if len(moved) > 1:
            continue
        j, ratio = int(moved[0]), float(follower.ratios[moved[0]])
        ends = sorted((np.array([limits.lower[k], limits.upper[k]]) - follower.offset) / ratio)
        cut.lower[j], cut.upper[j] = np.fmax(cut.lower[j], ends[0]), np.fmin(cut.upper[j], ends[1])
        for name in ("velocity", "acceleration"):
            own = getattr(cut, name)
            own[j] = np.fmin(own[j], getattr(limits, name)[k] / abs(ratio))
    return cut
