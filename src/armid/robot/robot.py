"""What a robot is: an immutable description, independent of the file it came from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.display import html_table, short
from armid.errors import DescriptionError, UnknownNameError
from armid.escaping import unprintable
from armid.files import LARGEST, FieldError, shown
from armid.robot.inertia import INERTIAL_NAMES
from armid.robot.parts import Capsule as Capsule
from armid.robot.parts import Counterbalance as Counterbalance
from armid.robot.parts import Dependent as Dependent
from armid.robot.parts import Drive as Drive
from armid.robot.parts import Friction
from armid.robot.parts import GravitySpring as GravitySpring
from armid.robot.parts import Joint as Joint
from armid.robot.parts import Length as Length
from armid.robot.parts import Limits as Limits
from armid.robot.parts import LinearSpring as LinearSpring
from armid.robot.parts import Mesh as Mesh
from armid.robot.parts import Provenance as Provenance
from armid.robot.parts import Simplification as Simplification
from armid.robot.parts import UnreadShape as UnreadShape
from armid.robot.parts import Virtual as Virtual

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
_PER_JOINT = ("lower", "upper", "velocity", "acceleration", "torque")  # limits
_STRETCH = 1e-3  # of a rotation, by rounded entries


@dataclass(frozen=True, eq=False)
class Robot:
    """A robot arm as data. Methods return changed copies.

    Attributes:
        name, title: short name and one line for people.
        source: library name or path it was read from.
        joints: one entry per joint, parents first; those that follow others stand in `dependent`.
        dependent: joints that follow others; their links are numbered on after the others'.
        gravity: in the base frame [m/s^2].
        tool: tool frame in the last link's frame, (4, 4).
        lengths: named geometric constants.
        limits: of position, velocity, acceleration, torque, workspace; unknown ones are NaN.
        drives: one per joint.
        passive: per joint, whether no motor drives it, so that its effort says nothing; empty if all are driven.
        rotors: whether rotor inertias are part of the model.
        coupling: (n, n) matrix R with q_motor = R q_joint, or None.
        current_gain: per joint a polynomial from current [A] to joint torque [N m], lowest power first; or None.
        friction: law per joint.
        springs: gravity-compensating springs with unknown parameters.
        linear_springs: springs along joints or combinations of them, numbered on after those.
        counterbalances: known torques.
        capsules: shapes of the links for collision checks; empty if none are known.
        unread_shapes: collision shapes that a file names and that could not be read.
        meshes: surfaces of links whose files are at hand, for pictures.
        simplifications: named sets of zero parameters; `zero` holds the active one.
        known: values of parameters that need no estimation.
        nominal_inertia: (links, 10) inertial parameters stated by a URDF or MJCF file, or None.
        nominal_friction: (n, 2) viscous and Coulomb friction stated by such a file, or None.
        nominal_rotors: (n,) reflected rotor inertia (armature) stated by an MJCF file, or None.
        nominal_joints: the joints with rounded angles replaced by what was meant, for rank decisions.
        published: named sets from the literature, as in the description.
        virtual: ground truth for simulation, or None.
        provenance: where the numbers come from.
    """

    name: str
    source: str
    joints: tuple[Joint, ...]
    dependent: tuple[Dependent, ...] = ()
    title: str = ""
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    tool: Array = field(default_factory=lambda: np.eye(4))
    lengths: tuple[Length, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits.unknown(0))
    drives: tuple[Drive, ...] = ()
    passive: tuple[bool, ...] = ()
    rotors: bool = True
    coupling: Array | None = None
    current_gain: tuple[tuple[float, ...], ...] | None = None
    friction: tuple[Friction, ...] = ()
    springs: tuple[GravitySpring, ...] = ()
    linear_springs: tuple[LinearSpring, ...] = ()
    counterbalances: tuple[Counterbalance, ...] = ()
    capsules: tuple[Capsule, ...] = ()
    unread_shapes: tuple[UnreadShape, ...] = ()
    simplifications: Mapping[str, Simplification] = field(default_factory=dict)
    zero: frozenset[str] = frozenset()
    known: Mapping[str, float] = field(default_factory=dict)
    nominal_inertia: Array | None = None
    nominal_friction: Array | None = None
    nominal_rotors: Array | None = None
    nominal_joints: tuple[Joint, ...] | None = None
    # What is seen, where numbers come from, what a simulation takes for the truth: not in result files (repr=False).
    meshes: tuple[Mesh, ...] = field(default=(), repr=False)
    published: Mapping[str, Any] = field(default_factory=dict, repr=False)
    virtual: Virtual | None = field(default=None, repr=False)
    provenance: tuple[Provenance, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse parts that do not fit together: files of results hold robots too, and can be damaged."""
        if not len(self.limits.lower):
            object.__setattr__(self, "limits", Limits.unknown(self.n_joints))
        _check_parts(self)

    def __repr__(self) -> str:
        """One line."""
        return short(self, self.name, f"{self.n_joints} joints", self.source)

    def _repr_html_(self) -> str:
        """A table of the joints for notebooks."""
        law = [friction.law for friction in self.friction] or [""] * self.n_joints
        ratio = [f"{drive.gear_ratio:g}" for drive in self.drives] or [""] * self.n_joints
        rows = [
            (k + 1, joint.name, "prismatic" if joint.prismatic else "revolute", ratio[k], law[k])
            for k, joint in enumerate(self.joints)
        ]
        header = ("", "joint", "kind", "gear ratio", "friction")
        return html_table(self.title or self.name, header, rows, [f"{self.name}, from {self.source}"])

    @property
    def n_joints(self) -> int:
        """Number of joints in use."""
        return len(self.joints)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints in use."""
        return tuple(joint.name for joint in self.joints)

    @property
    def links(self) -> tuple[Joint, ...]:
        """The joint of each link, in the links' order: `joints`, then those that follow others."""
        return (*self.joints, *(follower.joint for follower in self.dependent)) if self.dependent else self.joints

    @property
    def ratios(self) -> Array:
        """(links, joints): speed of each link's own joint per unit of that of the joints."""
        return np.vstack([np.eye(self.n_joints), *(follower.ratios for follower in self.dependent)])

    @property
    def outward(self) -> list[int]:
        """Indices of the links, parents first."""
        numbers = range(len(self.links))
        return sorted(numbers, key=lambda k: len(self.path_to(k + 1))) if self.dependent else list(numbers)

    def all_positions(self, q: Array) -> Array:
        """Positions (samples, links) of all joints, those that follow included, for positions (samples, joints)."""
        if not self.dependent:
            return q
        offsets = [0.0] * self.n_joints + [follower.offset for follower in self.dependent]
        return np.asarray(q @ self.ratios.T + offsets)

    def path_to(self, link: int) -> tuple[int, ...]:
        """Indices (from 0) of the links, and so of their joints, from the base to link number `link`, base first."""
        path: list[int] = []
        while link > 0:
            path.append(link - 1)
            link = self.links[link - 1].parent
        return tuple(reversed(path))

    def first_links(self, count: int) -> Robot:
        """The robot without the links after the first `count`, and without the tool and payload that hung on them.

        The shape of those links remains, as capsules on the links that carry them: they are locked at zero.
        """
        if not isinstance(count, int) or not 1 <= count <= self.n_joints:
            raise DescriptionError(self.source, "links", f"is {count}; use 1 to {self.n_joints}, the joints there are")
        if count == self.n_joints:
            return self
        if self.dependent:
            raise DescriptionError(self.source, "links", "cannot be cut where joints follow others; name joints")
        if self.coupling is not None and np.linalg.cond(self.coupling[:count, :count]) > 1e12:
            problem = f"cut to {count} links is singular; use more links"
            raise DescriptionError(self.source, "drives.coupling_matrix", problem)
        names = {name for name in self.zero if parameter_number(name) <= count}
        cut: dict[str, Any] = {
            "joints": self.joints[:count],
            "tool": np.eye(4),
            "lengths": tuple(length for length in self.lengths if length.joint < count),
            "limits": replace(self.limits, **{name: getattr(self.limits, name)[:count] for name in _PER_JOINT}),
            "drives": self.drives[:count],
            "passive": self.passive[:count],
            "coupling": None if self.coupling is None else self.coupling[:count, :count],
            "current_gain": None if self.current_gain is None else self.current_gain[:count],
            "friction": self.friction[:count],
            "springs": tuple(spring for spring in self.springs if spring.joint <= count),
            "linear_springs": tuple(
                replace(spring, ratios=spring.ratios[:count])
                for spring in self.linear_springs
                if not spring.ratios[count:].any()
            ),
            "counterbalances": tuple(known for known in self.counterbalances if known.joint <= count),
            **_locked_shapes(self, count),
            "unread_shapes": tuple(UnreadShape(min(shape.link, count), shape.name) for shape in self.unread_shapes),
            "zero": frozenset(names),
            "known": {name: value for name, value in self.known.items() if parameter_number(name) <= count},
            "virtual": None if self.virtual is None else _cut_virtual(self.virtual, self, count),
        }
        for name in ("nominal_inertia", "nominal_friction", "nominal_rotors", "nominal_joints"):
            value = getattr(self, name)
            cut[name] = None if value is None else value[:count]
        return replace(self, **cut)

    def refuse_undriven(self, what: str, *, passive: bool = True) -> None:
        """Refuse an arm with a joint that no motor of its own drives; `what` says what cannot be done with it."""
        for name, swings in zip(self.joint_names, self.passive, strict=False):
            if swings and passive:
                raise DescriptionError(self.source, "drives.passive", f"holds {name}, so that {what}")
        for follower in self.dependent:
            advice = "`armid new FILE --joints NAME...` describes the arm without it"
            problem = f"follows other joints, so that {what}; {advice}"
            raise DescriptionError(self.source, f"joint {follower.joint.name!r}", problem)

    def without_rotors(self) -> Robot:
        """The robot with rotor inertias left out."""
        return replace(self, rotors=False)

    def with_gravity(self, gravity: ArrayLike) -> Robot:
        """The robot in another mounting; `gravity` in the base frame [m/s^2]."""
        try:
            vector = np.array(gravity, dtype=float)
        except ValueError:
            vector = np.zeros(0)
        if vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise DescriptionError(self.source, "gravity", "must be three finite numbers, such as 0 0 -9.81")
        return replace(self, gravity=vector)

    def simplified(self, name: str) -> Robot:
        """The robot with the named set of zeros; with none for ``none``, or for ``published`` where there are none."""
        if name == "none" or (name == "published" and name not in self.simplifications):
            return replace(self, zero=frozenset())
        if name not in self.simplifications:
            raise UnknownNameError(f"simplification of {self.name}", name, ("none", *self.simplifications))
        zero = {name for name in self.simplifications[name].zero if parameter_number(name) <= self.n_joints}
        return replace(self, zero=frozenset(zero))

    def with_lengths(self, values: Mapping[str, float]) -> Robot:
        """The robot with other geometric constants; those not named keep their value."""
        lengths = tuple(replace(length, value=values.get(length.name, length.value)) for length in self.lengths)
        joints = list(self.joints)
        for index, joint in enumerate(joints):
            for in_link_frame, name in ((False, "placement"), (True, "link_frame")):
                parts = [p for p in lengths if p.joint == index and p.in_link_frame == in_link_frame]
                if parts:
                    matrix = getattr(joint, name).copy()
                    matrix[:3, 3] = sum(part.value * part.direction for part in parts)
                    joint = replace(joint, **{name: matrix})
            joints[index] = joint
        return replace(self, lengths=lengths, joints=tuple(joints), nominal_joints=None)

    def for_rank(self) -> Robot:
        """The robot with rounded angles replaced by what was meant, for rank decisions only."""
        if self.nominal_joints is None:
            return self
        n, meant = self.n_joints, self.nominal_joints
        dependent = tuple(replace(one, joint=joint) for one, joint in zip(self.dependent, meant[n:], strict=True))
        return replace(self, joints=meant[:n], dependent=dependent, nominal_joints=None)


def inertial_names(link: int) -> tuple[str, ...]:
    """Names of the ten inertial parameters of link number `link`."""
    return tuple(f"{name}{link}" for name in INERTIAL_NAMES)


_PARAMETER = re.compile(r"(?:m|mx|my|mz|Ixx|Ixy|Iyy|Ixz|Iyz|Izz|Im|Imc|fv|fc|fo|fvc|fcc|ks|kl)(\d{1,4})([pn]?)")


def parameter_number(name: str) -> int:
    """Number of the link, joint or spring that a parameter's name ends in; 0 if it is no parameter's name."""
    match = _PARAMETER.fullmatch(name)
    return int(match.group(1)) if match and (not match.group(2) or name[:2] in ("fv", "fc")) else 0


def _locked_shapes(robot: Robot, count: int) -> dict[str, tuple[Any, ...]]:
    """Capsules and meshes of a robot whose joints after the first `count` are locked at zero, on the links that remain.

    Links that are cut off, and those that carried them, get capsules from joint to joint where they have no shape.
    """
    described = {capsule.link for capsule in robot.capsules}
    places = {link: (link, np.eye(4)) for link in range(count + 1)}
    ends: list[tuple[int, Array]] = []
    for number, joint in enumerate(robot.joints[count:], start=count + 1):
        link, frame = places[joint.parent]
        places[number] = link, frame @ joint.placement @ joint.link_frame
        ends.append((joint.parent, joint.placement[:3, 3]))
    capsules = list(robot.capsules)
    for parent, end in [*ends, (robot.n_joints, robot.tool[:3, 3])]:
        start = np.asarray(np.linalg.inv(robot.joints[parent - 1].link_frame)[:3, 3] if parent else np.zeros(3))
        if parent not in described and np.linalg.norm(end - start) > 1e-9:
            capsules.append(Capsule(parent, start, end, 0.0))
    shapes: dict[str, Sequence[Any]] = {"capsules": capsules, "meshes": robot.meshes}
    return {name: tuple(one.moved(*places[one.link][::-1]) for one in found) for name, found in shapes.items()}


def _cut_virtual(virtual: Virtual, robot: Robot, count: int) -> Virtual:
    names = ("inertia", "rotor_inertia", "friction", "coefficients", "load_loss", "torque_noise")
    cut: dict[str, Any] = {name: getattr(virtual, name)[:count] for name in names}
    if count < len(virtual.inertia):
        cut["payload"] = None  # it hangs on a link that is gone
    kept = [spring.joint <= count for spring in robot.springs]
    kept += [not spring.ratios[count:].any() for spring in robot.linear_springs]
    pairs = zip(virtual.springs, kept, strict=True)
    return replace(virtual, **cut, springs=tuple(truth for truth, keep in pairs if keep))


def _check_name(field: str, name: str) -> None:
    """Names reach other programs' files: refuse what nobody can see or type."""
    if unprintable(name):
        raise FieldError(field, f"is {shown(name)}, with invisible characters or line breaks; use printable ones")


def _check_parts(robot: Robot) -> None:
    n, links = len(robot.joints), len(robot.joints) + len(robot.dependent)
    _check_name("name", robot.name)
    for index, joint in enumerate(robot.links):
        for part, name in (("name", joint.name), ("link_name", joint.link_name)):
            _check_name(f"joints[{index + 1}].{part}", name)
        if not 0 <= joint.parent <= (links if robot.dependent else index):
            raise FieldError(f"joints[{index + 1}].parent", f"is {joint.parent}; links hang on earlier ones")
    if robot.dependent:
        _check_no_loop([joint.parent for joint in robot.links])
    arrays: list[tuple[str, Array | None, tuple[int, ...]]] = [
        ("gravity", robot.gravity, (3,)),
        ("tool", robot.tool, (4, 4)),
        ("coupling", robot.coupling, (n, n)),
        ("limits.box", robot.limits.box, (2, 3)),
        ("nominal_inertia", robot.nominal_inertia, (links, 10)),
        ("nominal_friction", robot.nominal_friction, (n, 2)),
        ("nominal_rotors", robot.nominal_rotors, (n,)),
        *(("drives", drive.axis, (3,)) for drive in robot.drives),
        *(("dependent", follower.ratios, (n,)) for follower in robot.dependent),
        *(("linear_springs", spring.ratios, (n,)) for spring in robot.linear_springs),
        *(("lengths", np.append(length.direction, length.value), (4,)) for length in robot.lengths),
        *(("capsules", end, (3,)) for capsule in robot.capsules for end in (capsule.start, capsule.end)),
    ]
    arrays += [
        ("joints", frame, (4, 4))
        for joint in (*robot.links, *(robot.nominal_joints or ()))
        for frame in (joint.placement, joint.link_frame)
    ]
    arrays += [(f"limits.{name}", getattr(robot.limits, name), (n,)) for name in _PER_JOINT]
    for name, array, shape in arrays:
        if array is not None and array.shape != shape:
            raise FieldError(name, f"has an array of shape {array.shape}; it must be {shape}")
        if array is None or name.startswith("limits"):
            continue
        unknown = np.isnan(array) & name.startswith("nominal_")
        if not np.all((np.abs(array) <= LARGEST) | unknown):
            raise FieldError(name, "holds numbers that are none, or larger than anything in mechanics")
        if shape == (4, 4) and name != "coupling" and not _is_frame(array):
            raise FieldError(name, "has a matrix that is no rotation and translation")
    if not all(0.0 < abs(drive.gear_ratio) <= LARGEST for drive in robot.drives):
        raise FieldError("drives", "has a gear ratio of zero or none; give motor speed over joint speed")
    for name in ("drives", "passive", "friction", "current_gain", "nominal_joints"):
        there, needed = len(getattr(robot, name) or ()), links if name == "nominal_joints" else n
        if there not in (0, needed):
            raise FieldError(name, f"has {there} entries for {needed} joints")
    numbers = [("springs", spring.joint) for spring in robot.springs]
    numbers += [("counterbalances", table.joint) for table in robot.counterbalances]
    numbers += [("capsules", capsule.link) for capsule in robot.capsules]
    for name, number in [*numbers, *(("lengths", length.joint) for length in robot.lengths)]:
        if not 0 <= number <= links:
            raise FieldError(name, f"names joint or link {number}; there are {links}")


def _is_frame(matrix: Array) -> bool:
    """Whether a matrix (4, 4) turns and moves without stretching, to the digits that people write."""
    turn = matrix[:3, :3]
    stretch = np.abs(turn @ turn.T - np.eye(3)).max()
    still = (matrix[3] == (0.0, 0.0, 0.0, 1.0)).all()
    return bool(still and stretch < _STRETCH and np.linalg.det(turn) > 0.0)


def _check_no_loop(parents: list[int]) -> None:
    """Refuse links that hang on each other."""
    for number in range(1, len(parents) + 1):
        for _ in parents:
            number = parents[number - 1] if number else 0
        if number:
            raise FieldError("joints", "form a loop; every link must hang on the base in the end")
