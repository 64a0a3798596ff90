"""What a robot is made of: joints, lengths, limits, drives, friction, springs, shapes, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from armid.arrays import Array
from armid.registry import friction_laws


@dataclass(frozen=True)
class Friction:
    """How friction of one joint is described: a law, and whether it has an offset and two directions.

    Attributes:
        law: its name; `armid.torque.friction` holds the laws.
        offset: a constant torque is added.
        per_direction: the two directions of motion have their own coefficients.
    """

    law: str = "none"
    offset: bool = False
    per_direction: bool = False

    def __post_init__(self) -> None:
        """Refuse a law that nobody has defined."""
        friction_laws[self.law]

    @property
    def formula(self) -> Any:
        """The law itself, a `armid.torque.friction.law.FrictionLaw`."""
        return friction_laws[self.law]

    @property
    def coefficient_names(self) -> tuple[str, ...]:
        """Names of the coefficients without the joint's number; `p` and `n` mark the direction."""
        names: tuple[str, ...] = self.formula.coefficients
        if self.per_direction:
            names = tuple(f"{name}{sign}" for sign in "pn" for name in names)
        return (*names, "fo") if self.offset else names

    def torque(self, velocity: Array, coefficients: Mapping[str, float]) -> Array:
        """Torque [N m] that overcomes friction at `velocity` [rad/s]: it has the velocity's sign."""
        up, down = self.by_direction(coefficients)
        result: Array = self.formula.torque(velocity, up)
        if self.per_direction:
            result = np.where(np.asarray(velocity) >= 0.0, result, self.formula.torque(velocity, down))
        return result + coefficients["fo"] if self.offset else result

    def by_direction(self, coefficients: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
        """The law's coefficients for motion forwards and backwards."""
        ways = ("p", "n") if self.per_direction else ("", "")
        up, down = ({name: float(coefficients[name + way]) for name in self.formula.coefficients} for way in ways)
        return up, down


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint and the link it moves.

    The joint frame has the joint's axis as z. At joint position q the link's frame in the parent link's frame is
    ``placement @ (rotation about z by q, or translation along z by q) @ link_frame``.

    Attributes:
        name: joint name.
        link_name: name of the link it moves.
        parent: number of the link it hangs on, 0 for the base; always smaller than its own number.
        prismatic: slides along z instead of turning about it.
        placement: joint frame at q = 0 in the parent link's frame, (4, 4).
        link_frame: link frame in the joint frame, (4, 4); the identity with modified DH.
    """

    name: str
    link_name: str
    parent: int
    prismatic: bool
    placement: Array
    link_frame: Array


@dataclass(frozen=True, eq=False)
class Dependent:
    """A joint that no drive moves by itself: its position is ``ratios . q + offset``, with q those of the others.

    Attributes:
        joint: where it is, and the link it moves.
        ratios: (n,) its speed per unit of each joint's.
        offset: its position at q = 0 [rad or m].
    """

    joint: Joint
    ratios: Array
    offset: float


@dataclass(frozen=True, eq=False)
class Length:
    """A named geometric constant: `value` times `direction` is part of a placement's translation.

    Attributes:
        name: such as ``a2`` or ``d3``.
        value: length [m].
        joint: index of the joint, from 0.
        in_link_frame: part of the joint's `link_frame` (standard DH) instead of its `placement`.
        direction: unit vector, in the frame the placement is expressed in.
    """

    name: str
    value: float
    joint: int
    in_link_frame: bool
    direction: Array


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits per joint, NaN where unknown; `box` holds two corners for the tool [m] or is None.

    Attributes:
        lower, upper: position [rad or m].
        velocity: largest speed [rad/s or m/s].
        acceleration: largest acceleration [rad/s^2 or m/s^2].
        torque: largest torque [N m or N].
        box: (2, 3) lower and upper corner, base frame.
        tool_speed: largest speed of the tool [m/s], None where it is not stated.
        floor: height of the floor above the origin of the base frame [m], None where it is not stated.
        assumed: names of the fields nobody has published.
    """

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array
    torque: Array
    box: Array | None = None
    tool_speed: float | None = None
    floor: float | None = None
    assumed: frozenset[str] = frozenset()

    @classmethod
    def unknown(cls, joints: int) -> Limits:
        """No limit known."""
        lower, upper, velocity, acceleration, torque = np.full((5, joints), np.nan)
        return cls(lower, upper, velocity, acceleration, torque)


@dataclass(frozen=True, eq=False)
class Drive:
    """Motor and gear of one joint.

    Attributes:
        gear_ratio: motor turns per joint turn (rad per m for a prismatic joint).
        rotor_inertia: about the rotor's axis, motor side [kg m^2]; None if it is to be estimated.
        carrier: number of the link the rotor sits on, 0 for the base.
        axis: unit vector of the rotor axis in the carrier's frame.
        coupled: feels the carrier's rotation; otherwise a reflected inertia on the joint alone.
    """

    gear_ratio: float
    rotor_inertia: float | None
    carrier: int
    axis: Array
    coupled: bool


@dataclass(frozen=True)
class GravitySpring:
    """Preloaded spring between a link and its parent, compensating gravity on the joint between them.

    With one end at distance `a` and the other at distance `b` from the axis, its length is
    l = sqrt(a^2 + b^2 - 2 a b cos(q - phi)) and it loads the joint with k a b sin(q - phi) (1 - l0 / l): linear in
    the stiffness k and in k l0. The form is ours; Swevers et al. print none (erratum SW-9).
    """

    joint: int
    a: float
    b: float
    phi: float


@dataclass(frozen=True, eq=False)
class LinearSpring:
    """Spring along u = ratios . q, a joint, a difference of joints or a tendon, against which drives supply k (u - u0).

    The torque, times the ratios, is linear in the stiffness k and in k u0.

    Attributes:
        ratios: (n,).
        stiffness, rest: k and u0 that a file states, where it does.
    """

    ratios: Array
    stiffness: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, eq=False)
class Counterbalance:
    """Known torque of a counterbalance on one joint, tabulated over its position."""

    joint: int
    position: Array
    torque: Array


@dataclass(frozen=True, eq=False)
class Capsule:
    """A link's shape for collision checks: all points within `radius` [m] of the segment from `start` to `end`.

    Attributes:
        link: number of the link, 0 for the base.
        start, end: in the link's frame [m].
        radius: [m]; 0 where only the length is known.
    """

    link: int
    start: Array
    end: Array
    radius: float

    def moved(self, frame: Array, link: int) -> Capsule:
        """The capsule in the frame of another link, in which its own has the placement `frame`."""
        start, end = (frame[:3, :3] @ point + frame[:3, 3] for point in (self.start, self.end))
        return Capsule(link, start, end, self.radius)


@dataclass(frozen=True, eq=False)
class Mesh:
    """The surface of a link, for pictures.

    Attributes:
        link: number of the link, 0 for the base.
        file: STL or OBJ.
        frame: (4, 4), from the file's coordinates to the link's; it may stretch and mirror.
    """

    link: int
    file: str
    frame: Array

    def moved(self, frame: Array, link: int) -> Mesh:
        """The mesh in the frame of another link, in which its own has the placement `frame`."""
        return Mesh(link, self.file, frame @ self.frame)


@dataclass(frozen=True)
class UnreadShape:
    """A collision shape of a link (0: the base) that could not be read, by the name of its file."""

    link: int
    name: str


@dataclass(frozen=True)
class Simplification:
    """Parameters that are zero by symmetry, or because a link is neglected."""

    zero: frozenset[str]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Virtual:
    """Ground truth for simulation.

    Attributes:
        inertia: (links, 10), in link frames.
        rotor_inertia: (links,), motor side [kg m^2].
        friction: law per joint.
        coefficients: friction coefficients per joint, joint side.
        springs: stiffness k [N/m] and free length l0 [m] of each gravity spring, then k and u0 of each linear one.
        load_loss: slope and offset [N m, joint side] per joint of the torque lost in proportion to the load.
        torque_noise: standard deviation per joint [N m].
        encoder_resolution: [rad or m], 0 for none.
        payload: ten parameters in the tool frame, or None.
        note: where the numbers come from.
    """

    inertia: Array
    rotor_inertia: Array
    friction: tuple[Friction, ...]
    coefficients: tuple[Mapping[str, float], ...]
    springs: tuple[tuple[float, float], ...]
    load_loss: Array
    torque_noise: Array
    encoder_resolution: float
    payload: Array | None
    note: str = ""


class Provenance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number comes from."""

    status: Literal["printed", "corrected", "assumed", "third-party", "derived"]
    field: str = ""
    source: str = ""
    note: str = ""
    errata: tuple[str, ...] = ()
