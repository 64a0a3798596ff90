"""URDF without ROS."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidWarning, DescriptionError, ImpossibleInertiaWarning, RoundedAngleWarning
from armid.files import LARGEST, FieldError, parse_xml
from armid.robot.chain import WHOLE, Chain, Follows, with_dependent
from armid.robot.geometry import along, from_rpy, inverse, placement
from armid.robot.inertia import change_of_frame, from_com, impossibility
from armid.robot.robot import Capsule, Joint, Length, Limits, Mesh, Robot, UnreadShape
from armid.robot.shapes import Shape, around_box, around_mesh, own_meshes, read_mesh

_MOVING = {"revolute": False, "continuous": False, "prismatic": True}  # whether the type slides
_SUPPORTED = "revolute, continuous, prismatic and fixed"


class _Edge(NamedTuple):
    """One <joint> element."""

    name: str
    kind: str
    parent: str
    child: str
    element: Element
    origin: Array
    meant: Array  # origin with rounded angles replaced
    rounded: float  # largest rounding [rad]


class _Place(NamedTuple):
    """Where a link of the file ended up: number of the moving link and its frame therein."""

    link: int
    frame: Array
    meant: Array


def read_urdf(path: Path, chain: Chain = WHOLE) -> Robot:
    """Read a URDF file (xacro already expanded). Links behind fixed joints, and those outside `chain`, are merged."""
    root = parse_xml(path)
    if root.tag != "robot":
        raise DescriptionError(str(path), f"<{root.tag}>", "is not a URDF; its first element must be <robot>")
    try:
        return _Reader(path, root, chain).robot(path.stem)
    except FieldError as error:
        raise DescriptionError(str(path), error.field, error.problem) from None


class _Reader:
    """Walks the tree of one file and collects what the Robot needs."""

    def __init__(self, path: Path, root: Element, chain: Chain) -> None:
        self.source = str(path)
        self.folder = path.parent
        self.root = root
        self._refuse_xacro()
        self.links = self._named("link")
        self.edges = [self._edge(element) for element in self._named("joint").values()]
        movable = {edge.child: (edge.name,) for edge in self.edges if edge.kind in _MOVING}
        self.chosen = chain.chosen(self.source, movable, {edge.child: edge.parent for edge in self.edges})
        self.follows = self._mimics()
        for edge in self.edges:
            if not chain and edge.kind not in (*_MOVING, "fixed"):
                problem = f"has type {edge.kind!r}; {_SUPPORTED} are supported, others where the arm's joints are named"
                raise FieldError(f"joint {edge.name!r}", problem)
        self.places: dict[str, _Place] = {}
        self.joints: list[Joint] = []
        self.meant: list[Joint] = []
        self.lengths: list[Length] = []
        self.limits: list[tuple[float, float, float, float]] = []
        self.friction: list[tuple[float, float]] = []
        self.inertia: list[Array] = []
        self.capsules: list[Capsule] = []
        self.unread: list[UnreadShape] = []
        self.meshes: list[Mesh] = []

    def robot(self, default_name: str) -> Robot:
        """Build the Robot."""
        root_link = self._root_link()
        self.places[root_link] = _Place(0, np.eye(4), np.eye(4))
        for edge in self._outward(root_link):
            self._add(edge)
        if not self.joints:
            raise FieldError("<joint>", f"none can move, so there are no links to identify; {_SUPPORTED} are supported")
        for name, element in self.links.items():
            self._add_inertia(name, element)
            self._add_capsules(name, element)
            self._add_meshes(name, element)
        self._warn_of_rounding()
        lower, upper, velocity, effort = np.array(self.limits).T
        limits = Limits(lower, upper, velocity, np.full(len(self.joints), np.nan), effort)
        robot = Robot(
            name=self.root.get("name") or default_name,
            source=self.source,
            joints=tuple(self.joints),
            lengths=tuple(self.lengths),
            limits=limits,
            capsules=tuple(self.capsules),
            unread_shapes=tuple(self.unread),
            meshes=tuple(self.meshes),
            nominal_inertia=np.array(self.inertia),
            nominal_friction=np.array(self.friction),
            nominal_joints=tuple(self.meant) if any(edge.rounded > 0.0 for edge in self.edges) else None,
        )
        return with_dependent(robot, self.follows)

    def _mimics(self) -> dict[str, Follows]:
        """Joints that mimic others: those of a joint that moves move, those of a joint that is locked are locked."""
        result: dict[str, Follows] = {}
        mimics = {edge.name: edge.element.find("mimic") for edge in self.edges if edge.kind in _MOVING}
        leaders = {name: element.get("joint") for name, element in mimics.items() if element is not None}
        while more := {name for name, leader in leaders.items() if leader in self.chosen} - self.chosen:
            self.chosen |= more
        kinds = {edge.name: edge.kind for edge in self.edges}
        for edge in self.edges:
            element = edge.element.find("mimic")
            if element is None or edge.name not in self.chosen:
                continue
            where, other = f"joint {edge.name!r}: mimic", element.get("joint", "")
            if other not in kinds:
                problem = f"{where} names {other!r}, which is no joint of the file; it is locked at zero"
                warnings.warn(ArmidWarning(f"{self.source}: {problem}"), stacklevel=4)
            ratio, offset = (
                numbers(element, where, name, default, 1)[0] for name, default in (("multiplier", "1"), ("offset", "0"))
            )
            result[edge.name] = Follows({other: ratio}, offset)
        self.chosen -= {name for name, one in result.items() if not any(one.ratios.values())}
        while locked := {name for name, one in result.items() if not {name, *one.ratios} <= self.chosen}:
            self.chosen -= locked
            result = {name: one for name, one in result.items() if name not in locked}
        return result

    def _refuse_xacro(self) -> None:
        for element in self.root.iter():
            if isinstance(element.tag, str) and "xacro" in element.tag:
                raise FieldError(element.tag.split("}")[-1], "is a xacro macro; expand the file first (xacro in > out)")

    def _named(self, tag: str) -> dict[str, Element]:
        found: dict[str, Element] = {}
        for element in self.root.findall(tag):
            name = element.get("name")
            if not name:
                raise FieldError(f"<{tag}>", "has no name")
            if name in found:
                raise FieldError(f"{tag} {name!r}", "is defined twice")
            found[name] = element
        return found

    def _edge(self, element: Element) -> _Edge:
        name, kind = element.get("name", ""), element.get("type", "")
        where = f"joint {name!r}"
        ends = []
        for tag in ("parent", "child"):
            end = element.find(tag)
            link = end.get("link", "") if end is not None else ""
            if link not in self.links:
                raise FieldError(where, f"names {link!r} as its {tag}, which is no link of the file")
            ends.append(link)
        origin, meant, rounded = self._origin(element, where)
        return _Edge(name, kind, ends[0], ends[1], element, origin, meant, rounded)

    def _origin(self, element: Element, where: str) -> tuple[Array, Array, float]:
        origin = element.find("origin")
        if origin is None:
            return np.eye(4), np.eye(4), 0.0
        xyz = numbers(origin, where, "xyz", "0 0 0", 3)
        rpy = numbers(origin, where, "rpy", "0 0 0", 3)
        exact = [rounded_angle(text) for text in origin.get("rpy", "0 0 0").split()]
        meant = [angle if fixed is None else fixed for angle, fixed in zip(rpy, exact, strict=True)]
        error = max(abs(angle - fixed) for angle, fixed in zip(rpy, meant, strict=True))
        return placement(from_rpy(rpy), xyz), placement(from_rpy(meant), xyz), error

    def _root_link(self) -> str:
        children: set[str] = set()
        for edge in self.edges:
            if edge.child in children:
                raise FieldError(
                    f"link {edge.child!r}",
                    "has two parent joints, which makes a loop; armid needs a tree, so remove one of them",
                )
            children.add(edge.child)
        if not self.links:
            raise FieldError("<link>", "there are none; a robot needs a base and at least one moving link")
        roots = [name for name in self.links if name not in children]
        if not roots:
            raise FieldError("<joint>", "the links form a loop; armid needs a tree with one base link")
        if len(roots) > 1:
            raise FieldError(
                "<link>",
                f"there are several base links ({', '.join(roots)}); join them or remove all but one",
            )
        return roots[0]

    def _outward(self, root: str) -> Iterator[_Edge]:
        """Edges from the base outwards, depth first, in the file's order."""
        stack = [edge for edge in reversed(self.edges) if edge.parent == root]
        seen = {root}
        while stack:
            edge = stack.pop()
            seen.add(edge.child)
            yield edge
            stack.extend(e for e in reversed(self.edges) if e.parent == edge.child)
        lost = [name for name in self.links if name not in seen]
        if lost:
            raise FieldError(f"link {lost[0]!r}", "is part of a loop that does not reach the base")

    def _add(self, edge: _Edge) -> None:
        parent = self.places[edge.parent]
        origin, meant = parent.frame @ edge.origin, parent.meant @ edge.meant
        if edge.name not in self.chosen:
            self.places[edge.child] = _Place(parent.link, origin, meant)
            return
        axis = self._axis(edge)
        turn = placement(along(axis))
        number = len(self.joints) + 1
        for joints, near in ((self.joints, origin), (self.meant, meant)):
            joints.append(Joint(edge.name, edge.child, parent.link, _MOVING[edge.kind], near @ turn, inverse(turn)))
        for letter, value, direction in zip("xyz", meant[:3, 3], np.eye(3), strict=True):
            if abs(value) > 1e-9:
                self.lengths.append(Length(f"{letter}{number}", float(value), number - 1, False, direction))
        self.limits.append(self._limits(edge))
        self.friction.append(self._dynamics(edge))
        self.inertia.append(np.zeros(10))
        self.places[edge.child] = _Place(number, np.eye(4), np.eye(4))

    def _axis(self, edge: _Edge) -> Array:
        element = edge.element.find("axis")
        if element is None:
            return np.array([1.0, 0.0, 0.0])
        axis = np.array(numbers(element, f"joint {edge.name!r}", "xyz", "1 0 0", 3))
        if np.linalg.norm(axis) < 1e-9:
            raise FieldError(f"joint {edge.name!r}", "has an axis of zero length")
        return axis

    def _limits(self, edge: _Edge) -> tuple[float, float, float, float]:
        """Lower, upper, velocity, effort; NaN where the file gives none (a zero is a placeholder, not a limit)."""
        element = edge.element.find("limit")
        where = f"joint {edge.name!r}"
        if element is None:
            return (np.nan,) * 4
        # Missing attributes count as zero, as the format says; a zero range, speed or effort is a placeholder.
        names = ("lower", "upper", "velocity", "effort")
        values = {name: numbers(element, where, name, "0", 1)[0] for name in names}
        lower, upper = values["lower"], values["upper"]
        if edge.kind == "continuous" or (lower == 0.0 and upper == 0.0):
            lower = upper = np.nan
        if lower > upper:
            raise FieldError(where, f"has its limits reversed (lower {lower:g} > upper {upper:g})")
        velocity, effort = (values[name] if values[name] > 0.0 else np.nan for name in ("velocity", "effort"))
        return lower, upper, velocity, effort

    def _dynamics(self, edge: _Edge) -> tuple[float, float]:
        element = edge.element.find("dynamics")
        if element is None:
            return 0.0, 0.0
        where = f"joint {edge.name!r}"
        damping, friction = (numbers(element, where, key, "0", 1)[0] for key in ("damping", "friction"))
        return damping, friction

    def _add_inertia(self, name: str, element: Element) -> None:
        inertial = element.find("inertial")
        place = self.places[name]
        if inertial is None or place.link == 0:
            return
        where = f"link {name!r}"
        mass_element, tensor_element = inertial.find("mass"), inertial.find("inertia")
        if mass_element is None or tensor_element is None:
            raise FieldError(where, "has an <inertial> without <mass> or <inertia>")
        mass = numbers(mass_element, where, "value", "0", 1)[0]
        keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        xx, xy, xz, yy, yz, zz = (numbers(tensor_element, where, key, "0", 1)[0] for key in keys)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        origin = self._origin(inertial, where)[0]
        rotation, com = origin[:3, :3], origin[:3, 3]
        phi = from_com(mass, com, rotation @ tensor @ rotation.T)
        reason = impossibility(phi)
        if reason is not None:
            warnings.warn(ImpossibleInertiaWarning(f"{self.source}: {where} is impossible: {reason}"), stacklevel=2)
        self.inertia[place.link - 1] += change_of_frame(place.frame) @ phi

    def _add_capsules(self, name: str, element: Element) -> None:
        """Capsules around the collision shapes of a link; meshes that cannot be read are remembered by name."""
        place = self.places[name]
        where = f"link {name!r}"
        for collision in element.findall("collision"):
            geometry = collision.find("geometry")
            shape = None if geometry is None else next(iter(geometry), None)
            if shape is None:
                continue
            found = self._enclosing(where, shape)
            if not found:
                self.unread.append(UnreadShape(place.link, shape.get("filename", "") or f"<{shape.tag}> of {name}"))
            frame = place.frame @ self._origin(collision, where)[0]
            self.capsules += [Capsule(place.link, *one).moved(frame, place.link) for one in found]

    def _add_meshes(self, name: str, element: Element) -> None:
        """Meshes for the eye, or else those for collisions, where a link has nothing but files at hand."""
        place, where = self.places[name], f"link {name!r}"
        for kind in ("visual", "collision"):
            parts = [(part, part.find("geometry/mesh")) for part in element.findall(kind)]
            files = own_meshes(("" if mesh is None else mesh.get("filename", "") for _, mesh in parts), self.folder)
            for (part, mesh), file in zip(parts, files, strict=False):
                with suppress(FieldError):  # a picture is no reason to refuse an arm
                    assert mesh is not None
                    scale = np.diag([*numbers(mesh, where, "scale", "1 1 1", 3), 1.0])
                    self.meshes.append(Mesh(place.link, str(file), place.frame @ self._origin(part, where)[0] @ scale))
            if files:
                return

    def _enclosing(self, where: str, shape: Element) -> list[Shape]:
        """Capsules around a shape, in its own frame; none if it cannot be read."""
        if shape.tag == "box":
            return [around_box(np.array(numbers(shape, where, "size", "0 0 0", 3)))]
        if shape.tag == "mesh":
            scale = np.array(numbers(shape, where, "scale", "1 1 1", 3))
            triangles = read_mesh(shape.get("filename", ""), self.folder)
            return [] if triangles is None else around_mesh(triangles * scale)
        if shape.tag not in ("cylinder", "sphere", "capsule"):
            return []
        radius = numbers(shape, where, "radius", "0", 1)[0]
        length = 0.0 if shape.tag == "sphere" else numbers(shape, where, "length", "0", 1)[0]
        half = np.array([0.0, 0.0, 0.5 * length])
        return [(-half, half, radius)]

    def _warn_of_rounding(self) -> None:
        rounded = [edge for edge in self.edges if edge.rounded > 1e-9]
        if rounded:
            names = ", ".join(edge.name for edge in rounded)
            largest = max(edge.rounded for edge in rounded)
            warnings.warn(
                RoundedAngleWarning(
                    f"{self.source}: angles of {names} look rounded (by up to {largest:.1e} rad); base parameters are "
                    "those of the exact angles, torques use the file's"
                ),
                stacklevel=2,
            )


def numbers(element: Element, name: str, attribute: str, default: str, count: int) -> list[float]:
    """Numbers in an attribute, as in ``xyz="0 0 1"``; `name` says whose element it is."""
    text = element.get(attribute, default)
    field = f"{name}: {attribute}={text!r}"
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        raise FieldError(field, "is not a list of numbers") from None
    if len(values) != count:
        raise FieldError(field, f"has {len(values)} numbers where {count} are needed")
    if not all(abs(value) <= LARGEST for value in values):
        raise FieldError(field, "is not finite, or larger than anything in mechanics")
    return values


def rounded_angle(text: str) -> float | None:
    """The exact angle that `text` rounds: a right angle to two decimals or more, a multiple of 15 deg to four.

    Returns None for angles that are exact already or that are nobody's rounding.
    """
    match = re.fullmatch(r"[+-]?\d*\.(\d+)", text.strip())
    if match is None:
        return None
    written = len(match.group(1))
    shortest = len(match.group(1).rstrip("0"))
    for digits in dict.fromkeys((written, shortest)):
        exact = _rounded_to(float(text), digits)
        if exact is not None:
            return exact
    return None


def _rounded_to(value: float, digits: int) -> float | None:
    """The exact angle that `value` is, rounded or cut off after `digits` decimals."""
    if not 2 <= digits < 15:
        return None
    step = math.pi / 2 if digits < 4 else math.pi / 12
    exact = round(value / step) * step
    unit = 10.0**-digits
    rounded = abs(value - exact) <= 0.5001 * unit
    cut_off = abs(math.trunc(exact / unit) * unit - value) < 1e-3 * unit
    return exact if exact not in (0.0, value) and (rounded or cut_off) else None
