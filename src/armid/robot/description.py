"""The robot file as types: its sections, their entries and what can be checked within each section.

The format is explained in docs/robot-file.md; `armid.robot.build` makes a Robot of it.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec
import numpy as np

from armid.arrays import Array
from armid.files import FieldError, checked, convert, parse_yaml, shown
from armid.robot.chain import Chain
from armid.robot.geometry import DHRow
from armid.robot.inertia import from_com
from armid.robot.quantities import Number, PerJoint, Vector
from armid.robot.robot import Provenance

FORMAT = 1
ORIGIN = (Number(0.0), Number(0.0), Number(0.0))


class DescriptionSection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A mapping of a YAML file whose entries are all known."""


class RotorInertia(Number):
    """A rotor inertia [kg m^2]; NaN stands for ``unknown``."""

    @classmethod
    def from_plain(cls, value: object) -> RotorInertia:
        """Read it."""
        inertia = cls(np.nan) if value == "unknown" else cls(Number.from_plain(value))
        if inertia < 0.0:
            raise ValueError(f"is negative ({inertia:g}); write 'unknown' if it is to be estimated")
        return inertia


class Gain(tuple[float, ...]):
    """A polynomial from current to torque, lowest power first; a single number is the gain."""

    __slots__ = ()

    @classmethod
    def from_plain(cls, value: object) -> Gain:
        """Read it."""
        if not isinstance(value, list):
            return cls((0.0, Number.from_plain(value)))
        if not value:
            raise ValueError("is an empty polynomial; give a gain or coefficients, lowest power first")
        return cls(convert(value, list[Number]))


class TableRow:
    """One row of a DH table, as a list."""

    def __init__(self, row: DHRow) -> None:
        """Keep the row."""
        self.row = row

    @classmethod
    def from_plain(cls, value: object) -> TableRow:
        """Read it."""
        if not isinstance(value, list) or len(value) not in (4, 5):
            size = f"has {len(value)} entries" if isinstance(value, list) else "is not a list"
            form = "[alpha, a, d, theta offset] or [alpha, a, d, theta offset, prismatic]"
            raise ValueError(f"{size}; a DH row is {form}")
        kinds = ("revolute", "prismatic")
        if len(value) == 5 and value[4] not in kinds:
            raise ValueError(f"is {shown(value[4])} for the kind of joint; valid: {', '.join(kinds)}")
        alpha, a, d, theta = (float(Number.from_plain(item)) for item in value[:4])
        return cls(DHRow(alpha, a, d, theta, value[4:] == ["prismatic"]))


class FollowsEntries(DescriptionSection):
    """What a dependent joint follows: the ratio to each joint by name, and an offset."""

    ratios: dict[str, Number]
    offset: Number = Number(0.0)


class DHTable(DescriptionSection, tag_field="convention"):
    """Kinematics by a DH table."""

    rows: list[TableRow]
    parents: list[int] = []
    joint_names: list[str] = []
    dependent: dict[str, FollowsEntries] = {}

    def __post_init__(self) -> None:
        """Check the sizes, and that there are no loops."""
        if not self.rows:
            problem = "is empty, so there are no links; give one row [alpha, a, d, theta offset] per joint"
            raise FieldError("rows", problem)
        for name, values in (("parents", self.parents), ("joint_names", self.joint_names)):
            if values and len(values) != len(self.rows):
                raise FieldError(name, f"has {len(values)} entries for {len(self.rows)} rows")
        for index, parent in enumerate(self.parents):
            if not 0 <= parent <= index:
                problem = f"is {parent}; a parent is 0 (base) or an earlier link, so loops are out"
                raise FieldError(f"parents[{index + 1}]", problem)
        if len(set(self.joint_names)) != len(self.joint_names):
            raise FieldError("joint_names", "holds a name twice")


class ModifiedDH(DHTable, tag="modified-dh"):
    """Craig's convention."""


class StandardDH(DHTable, tag="standard-dh"):
    """The classical convention."""


class ArmFile(DescriptionSection, tag_field="convention", rename={"start": "from", "end": "to"}):
    """Kinematics of a file, of which the arm may be a part: see `armid.robot.chain`."""

    file: str
    joints: list[str] = []
    start: str | None = None
    end: str | None = None
    dependent: dict[str, FollowsEntries] = {}

    @property
    def chain(self) -> Chain:
        """The arm's joints."""
        return Chain(tuple(self.joints), self.start, self.end)


class UrdfFile(ArmFile, tag="urdf"):
    """A URDF file."""


class MjcfFile(ArmFile, tag="mjcf"):
    """An MJCF file."""


class Tool(DescriptionSection):
    """The tool's frame in the last link's."""

    xyz: Vector = ORIGIN
    rpy: Vector = ORIGIN


class LimitEntries(DescriptionSection):
    """Limits of the joints and of the workspace."""

    position: list[tuple[Number, Number]] | None = None
    velocity: PerJoint[Number] | None = None
    acceleration: PerJoint[Number] | None = None
    torque: PerJoint[Number] | None = None
    box: tuple[Vector, Vector] | None = None
    tool_speed: Number | None = None
    floor: Number | None = None
    assumed: list[Literal["position", "velocity", "acceleration", "torque", "box", "tool_speed", "floor"]] = []

    def __post_init__(self) -> None:
        """Refuse what is reversed."""
        for index, (lower, upper) in enumerate(self.position or ()):
            if lower >= upper:
                found = f"lower {lower:.6g}, upper {upper:.6g}"
                raise FieldError(f"position[{index + 1}]", f"is reversed or empty ({found}); write [lower, upper]")
        if self.box is not None and any(low >= high for low, high in zip(*self.box, strict=True)):
            raise FieldError("box", "is reversed; give the lower corner first")
        if self.tool_speed is not None and self.tool_speed <= 0.0:
            raise FieldError("tool_speed", f"is {self.tool_speed:g}; a largest speed is positive")


class DriveEntries(DescriptionSection):
    """Motors and gears."""

    gear_ratio: PerJoint[Number] = PerJoint(1.0)
    rotor_inertia: PerJoint[RotorInertia] = PerJoint(RotorInertia(np.nan))
    carrier: list[int] = []
    axis: list[Vector] = []
    coupled: PerJoint[bool] = PerJoint(True)
    coupling_matrix: list[list[Number]] = []
    current_gain: PerJoint[Gain] | None = None
    passive: PerJoint[bool] = PerJoint(False)


class FrictionEntries(DescriptionSection):
    """Friction laws of the model."""

    law: PerJoint[str] = PerJoint("coulomb-viscous")
    offset: PerJoint[bool] = PerJoint(False)
    per_direction: PerJoint[bool] = PerJoint(False)


class TrueFriction(FrictionEntries):
    """Friction of the simulated arm."""

    law: PerJoint[str] = PerJoint("none")
    side: Literal["joint", "motor"] = "joint"
    coefficients: dict[str, PerJoint[Number]] = {}


class SpringEntries(DescriptionSection, tag_field="type", tag="gravity-compensation"):
    """A gravity-compensating spring."""

    joint: int
    a: Number
    b: Number
    phi: Number = Number(0.0)

    def __post_init__(self) -> None:
        """Refuse a spring without a lever, or one whose length can vanish."""
        for name, value in (("a", self.a), ("b", self.b)):
            if value <= 0.0:
                raise FieldError(name, f"is {value:g}; distances of the spring's ends from the axis are positive")
        if self.a == self.b:
            raise FieldError("b", "equals a, so that the spring's length can become zero; make them differ")


class LinearSpringEntries(DescriptionSection, tag_field="type", tag="linear"):
    """A spring along a combination of joints, by their names."""

    along: dict[str, Number]

    def __post_init__(self) -> None:
        """Refuse a spring along nothing."""
        if not any(self.along.values()):
            raise FieldError("along", "names no joint with a ratio; write {elbow: 1}, or {elbow: 1, wrist: -1}")


class TableEntries(DescriptionSection, tag_field="type", tag="table"):
    """A known torque over position."""

    joint: int
    position: list[Number]
    torque: list[Number]

    def __post_init__(self) -> None:
        """Refuse a table that cannot be interpolated."""
        rises = all(np.diff(self.position) > 0.0)
        if len(self.position) < 2 or len(self.position) != len(self.torque) or not rises:
            raise FieldError("position", "must rise and have as many entries (at least 2) as torque")


class CapsuleEntries(DescriptionSection, rename={"start": "from", "end": "to"}):
    """A link's shape."""

    link: int
    radius: Number
    start: Vector
    end: Vector

    def __post_init__(self) -> None:
        """Refuse a capsule without a thickness."""
        if self.radius <= 0.0:
            raise FieldError("radius", f"is {self.radius:g}; a radius is positive")


class SimplificationEntries(DescriptionSection):
    """Parameters taken as zero."""

    zero: list[str] = []
    neglect_links: list[int] = []
    note: str = ""


class PublishedRow(DescriptionSection):
    """One published value."""

    name: Any
    value: Number
    id: Any = None
    formula: Any = None
    printed: Any = None
    printed_formula: Any = None
    unit: Any = None
    std: Any = None
    experiments: Any = None
    known: Any = None
    scope: Any = None
    errata: Any = None
    note: Any = None


class PublishedSet(DescriptionSection):
    """Published values, under the assumptions of their source."""

    parameters: list[PublishedRow] = []
    title: Any = None
    convention: Any = None
    note: Any = None
    friction: Any = None
    load_loss: Any = None
    rotors: bool | None = None
    simplify: Any = None
    gear_ratio: Number | None = None
    constants: dict[str, Number] = {}


class Tensor(DescriptionSection):
    """Inertia about the centre of mass [kg m^2]."""

    xx: Number
    xy: Number
    xz: Number
    yy: Number
    yz: Number
    zz: Number


class Body(DescriptionSection):
    """A rigid body: mass [kg], centre of mass [m], inertia about it."""

    mass: Number
    com: Vector
    inertia: Tensor

    @property
    def parameters(self) -> Array:
        """Its ten inertial parameters."""
        i = self.inertia
        return from_com(self.mass, self.com, [[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]])


class TrueSpring(DescriptionSection):
    """Stiffness [N/m] and free length [m]; of a linear spring [N m/rad] and [rad] where joints turn."""

    k: Number
    l0: Number


class LoadLoss(DescriptionSection):
    """Torque lost in proportion to the load."""

    slope: PerJoint[Number] = PerJoint(0.0)
    offset: PerJoint[Number] = PerJoint(0.0)
    side: Literal["joint", "motor"] = "joint"


class VirtualEntries(DescriptionSection):
    """What is true when the arm is simulated."""

    links: list[Body] = []
    rotor_inertia: PerJoint[Number] = PerJoint(0.0)
    friction: TrueFriction = msgspec.field(default_factory=TrueFriction)
    springs: list[TrueSpring] = []
    load_loss: LoadLoss = msgspec.field(default_factory=LoadLoss)
    torque_noise: PerJoint[Number] = PerJoint(0.0)
    encoder_resolution: Number = Number(0.0)
    payload: Body | None = None
    note: str = ""


class Description(DescriptionSection):
    """A robot file."""

    name: str
    kinematics: ModifiedDH | StandardDH | UrdfFile | MjcfFile
    armid: Any = FORMAT
    title: str = ""
    links: int | None = None
    tool: Tool = msgspec.field(default_factory=Tool)
    gravity: Vector | str | None = None
    limits: LimitEntries = msgspec.field(default_factory=LimitEntries)
    drives: DriveEntries = msgspec.field(default_factory=lambda: DriveEntries(coupled=PerJoint(False)))
    friction: FrictionEntries = msgspec.field(default_factory=FrictionEntries)
    springs: list[SpringEntries | LinearSpringEntries | TableEntries] = []
    capsules: list[CapsuleEntries] = []
    simplify: dict[str, SimplificationEntries] = {}
    known: dict[str, Number] = {}
    published: dict[str, PublishedSet] = {}
    virtual: VirtualEntries | None = None
    provenance: list[Provenance] = []

    def __post_init__(self) -> None:
        """Check version, name and gravity."""
        if self.armid != FORMAT:
            raise FieldError("armid", f"is {shown(self.armid)}; this version of armid reads format {FORMAT}")
        if not re.fullmatch(r"[\w-]+", self.name):
            raise FieldError("name", f"is {shown(self.name)}; use letters, digits, - and _")
        if isinstance(self.gravity, str) and self.gravity != "none":
            raise FieldError("gravity", f"must be a list of 3 numbers or 'none', not {shown(self.gravity)}")
        if self.gravity is not None and not isinstance(self.gravity, str) and not any(self.gravity):
            problem = "has zero length, so gravity parameters cannot be found; write `none` if that is meant"
            raise FieldError("gravity", problem)


def read_description(text: str, source: str) -> Description:
    """The entries of a robot file, checked; `source` names it in messages."""
    return checked(parse_yaml(text, source), Description, source)
