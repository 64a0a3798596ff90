"""The user's own URDF or MJCF: where it is, whether it is of the same robot, and edits that keep all other bytes.

What is not edited keeps its bytes, comments, spaces and order of attributes included: a parser (expat) says at which
bytes elements begin and end; edits are cuts and insertions at those places.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, ArmidWarning, DescriptionError
from armid.exporting.arm import ExportError
from armid.files import is_file, read_text
from armid.robot.description import read_description
from armid.robot.geometry import inverse
from armid.robot.inertia import tensor
from armid.robot.mjcf import read_mjcf
from armid.robot.robot import Joint, Robot
from armid.robot.urdf import read_urdf

_ATTRIBUTE = re.compile(rb"""([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")


@dataclass(eq=False)
class Node:
    """An element and where it stands.

    Attributes:
        tag: name, with its namespace before a brace, as in ``uri}link``.
        attributes: values by name.
        start: byte of its ``<``.
        inside: byte after its start tag.
        inside_end: byte of its end tag; equal to `end` for an empty element ``<a/>``.
        end: byte after it.
        children: elements directly inside.
    """

    tag: str
    attributes: Mapping[str, str]
    start: int
    inside: int
    inside_end: int = 0
    end: int = 0
    children: list[Node] = field(default_factory=list)

    def find(self, tag: str) -> Node | None:
        """The first child of that name."""
        return next((child for child in self.children if child.tag == tag), None)

    def named(self, tag: str) -> dict[str, Node]:
        """Children with a ``name``, by it."""
        return {child.attributes.get("name", ""): child for child in self.children if child.tag == tag}


class Document:
    """The bytes of a file, its elements, and edits that are applied together."""

    def __init__(self, content: bytes, source: str) -> None:
        """Parse `content`; `source` names it in errors."""
        self.content, self.source = content, source
        self._edits: list[tuple[int, int, bytes]] = []
        self.root = self._parse()

    def _parse(self) -> Node:
        parser = expat.ParserCreate(namespace_separator="}")
        top = Node("", {}, 0, 0)
        open_nodes = [top]

        def start(tag: str, attributes: dict[str, str]) -> None:
            at = parser.CurrentByteIndex
            node = Node(tag, attributes, at, self._tag_end(at))
            open_nodes[-1].children.append(node)
            open_nodes.append(node)

        def end(_: str) -> None:
            node = open_nodes.pop()
            if self.content[node.inside - 2 : node.inside] == b"/>":
                node.inside_end = node.end = node.inside
            else:
                node.inside_end = parser.CurrentByteIndex
                node.end = self.content.index(b">", node.inside_end) + 1

        def refuse(*_: Any) -> NoReturn:
            raise ExportError(f"{self.source}: declares XML entities, which are refused; remove them")

        parser.StartElementHandler, parser.EndElementHandler = start, end
        parser.EntityDeclHandler = refuse
        try:
            parser.Parse(self.content, True)
        except expat.ExpatError as error:
            raise ExportError(f"{self.source}: is not valid XML ({error})") from None
        return top.children[0]

    def _tag_end(self, start: int) -> int:
        """Byte after the ``>`` of the start tag at `start`; one inside quotes does not count."""
        quote = 0
        for at in range(start, len(self.content)):
            byte = self.content[at]
            if quote:
                quote = 0 if byte == quote else quote
            elif byte in b"\"'":
                quote = byte
            elif byte == ord(">"):
                return at + 1
        raise ExportError(
            f"{self.source}: cannot be edited: its encoding is not one that keeps ASCII; save it as UTF-8"
        )

    def set(self, node: Node, values: Mapping[str, str]) -> None:
        """Give an element attributes: present ones change where they stand, others are added at the end of its tag."""
        tag = self.content[node.start : node.inside]
        left = dict(values)
        for match in _ATTRIBUTE.finditer(tag):
            name = match.group(1).decode()
            if name in left:
                first, last = match.span(2)
                self._replace(node.start + first + 1, node.start + last - 1, left.pop(name))
        if left:
            body = tag[:-2] if tag.endswith(b"/>") else tag[:-1]
            at = node.start + len(body.rstrip())
            self._replace(at, at, "".join(f' {name}="{value}"' for name, value in left.items()))

    def drop(self, node: Node, names: Collection[str]) -> None:
        """Take attributes of an element out, each with the white space before it."""
        tag = self.content[node.start : node.inside]
        for match in _ATTRIBUTE.finditer(tag):
            if match.group(1).decode() in names:
                first = len(tag[: match.start()].rstrip())
                self._replace(node.start + first, node.start + match.end(), "")

    def insert_first(self, parent: Node, text: str) -> None:
        """Put an element before the first child of `parent`, on a line of its own where children have one."""
        if parent.children:
            first = parent.children[0]
            self._replace(first.start, first.start, text + self._break_before(first))
        else:
            self.insert_last(parent, text)

    def insert_last(self, parent: Node, text: str) -> None:
        """Put an element after the last child of `parent`; its lines are indented like that child."""
        if parent.children:
            last = parent.children[-1]
            lead = self._break_before(last)
            self._replace(last.end, last.end, lead + text.replace("\n", lead or "\n"))
            return
        own = self._break_before(parent)
        step = own + "  " if own else ""
        body = step + text.replace("\n", step or "\n") + own
        if parent.inside_end == parent.inside and parent.end == parent.inside:  # <link name="a"/> becomes a pair
            tag = self.content[parent.start : parent.inside]
            name = re.match(rb"<([^\s/>]+)", tag)
            closing = name.group(1).decode() if name else parent.tag
            at = parent.start + len(tag[:-2].rstrip())
            self._replace(at, parent.end, f">{body}</{closing}>")
        else:
            self._replace(parent.inside, parent.inside, body)

    def remove(self, node: Node) -> None:
        """Take an element out, with the white space before it."""
        start = node.start
        while start > 0 and self.content[start - 1 : start].isspace():
            start -= 1
        self._replace(start, node.end, "")

    def result(self) -> bytes:
        """The bytes with all edits made."""
        parts, at = [], 0
        for start, end, new in sorted(self._edits, key=lambda edit: edit[:2]):
            parts += [self.content[at:start], new]
            at = end
        return b"".join([*parts, self.content[at:]])

    def _replace(self, start: int, end: int, text: str) -> None:
        self._edits.append((start, end, text.encode("ascii")))

    def _break_before(self, node: Node) -> str:
        """The line break and indentation before an element, or nothing where it does not begin a line."""
        start = node.start
        while start > 0 and self.content[start - 1 : start] in (b" ", b"\t"):
            start -= 1
        indent = self.content[start : node.start].decode("ascii")
        if start == 0 or self.content[start - 1 : start] != b"\n":
            return ""
        return ("\r\n" if self.content[start - 2 : start] == b"\r\n" else "\n") + indent


SAME = 1e-9  # [m, rad] by which the geometry of the same robot may differ
NOISE = 1e-12  # share of a link's size below which a number is round-off, and by which equal numbers may differ
READERS: Mapping[str, Callable[[Path], Robot]] = {"urdf": read_urdf, "mjcf": read_mjcf}


def own_file(robot: Robot, kind: str, given: str | Path | None) -> Path | None:
    """The file that a robot was read from; None for a robot that did not come from one of this kind, or only in part.

    Args:
        robot: the robot of the fit.
        kind: ``urdf`` or ``mjcf``.
        given: where the file is, if not where the fit read it.

    Raises:
        ExportError: it came from one that is not to be found, or `given` is of another robot.
    """
    if given is not None:
        path = Path(given)
        _check_same(robot, read_quietly(path, kind), path)
        return path
    if robot.nominal_inertia is None or (robot.nominal_rotors is None) != (kind == "urdf"):
        return None
    path = _stated_source(robot)
    if not is_file(path):
        raise ExportError(
            f"{path}: the {kind.upper()} that {robot.name} was read from is not there; name it with --{kind} FILE, so "
            "that it can be completed"
        )
    try:
        other = read_quietly(path, kind)
    except DescriptionError:
        return None  # it holds more than the arm, which cannot be read
    if other.n_joints > robot.n_joints:
        return None  # the fit is of its first links, or of a part: it takes a new file to say so
    _check_same(robot, other, path)
    return path


def _stated_source(robot: Robot) -> Path:
    """The file behind a robot, directly or through its robot file."""
    path = Path(robot.source)
    if path.suffix.lower() not in (".yaml", ".yml") or not is_file(path):
        return path
    try:
        return path.parent / str(getattr(read_description(read_text(path), str(path)).kinematics, "file", ""))
    except ArmidError:
        return path.with_suffix(".urdf")


def read_quietly(path: Path, kind: str) -> Robot:
    """The robot of a file whose warnings were given when the fit was made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmidWarning)
        return READERS[kind](path)


def _check_same(robot: Robot, other: Robot, path: Path) -> None:
    if other.joint_names != robot.joint_names:
        raise ExportError(
            f"{path}: is of another robot: its joints are {', '.join(other.joint_names)}; the fit's are "
            f"{', '.join(robot.joint_names)}"
        )
    if not np.array_equal(robot.ratios, other.ratios):
        raise ExportError(f"{path}: is of another robot: other joints follow others than in the fit")
    for one, two in zip(robot.links, other.links, strict=True):
        same = one.parent == two.parent and one.prismatic == two.prismatic and one.link_name == two.link_name
        if not same or _gap(one, two) > SAME:
            raise ExportError(
                f"{path}: is of another robot: joint {one.name!r} has another place, kind or link than in the fit; "
                "give the file that the fit was made with"
            )


def _gap(one: Joint, two: Joint) -> float:
    """By how much two joints differ in where their link is at zero and in the line of their axis, seen from there."""
    axes = [inverse(joint.link_frame) for joint in (one, two)]
    apart = axes[0][:3, 3] - axes[1][:3, 3]
    gaps = (
        one.placement @ one.link_frame - two.placement @ two.link_frame,
        axes[0][:3, 2] - axes[1][:3, 2],
        np.zeros(3) if one.prismatic else np.cross(axes[0][:3, 2], apart),
    )
    return max(float(np.abs(gap).max()) for gap in gaps)


def unchanged_links(links: Array, path: Path, kind: str) -> list[bool]:
    """Whether each link's identified inertia is what the file says already, with all that is fixed to it."""
    stated = read_quietly(path, kind).nominal_inertia
    if stated is None:
        return [False] * len(links)
    return [_equal(new, old) for new, old in zip(links, stated, strict=True)]


def _equal(new: Array, old: Array) -> bool:
    """Whether two links are the same but for round-off; each quantity against the link's own size."""
    mass, inertia = abs(float(old[0])), float(np.trace(tensor(old)))
    moment = max(float(np.abs(old[1:4]).max()), math.sqrt(mass * max(inertia, 0.0)))
    return bool((np.abs(new - old) <= NOISE * np.repeat([mass, moment, abs(inertia)], [1, 3, 6])).all())


def without_round_off(mass: float, com: Array, about: Array) -> tuple[Array, Array]:
    """Centre of mass and inertia about it, zero where they are below round-off of the link's size."""
    trace = float(np.trace(about))
    size = max(float(np.abs(com).max()), math.sqrt(max(trace, 0.0) / mass) if mass > 0.0 else 0.0)
    return (
        np.where(np.abs(com) <= NOISE * size, 0.0, com),
        np.where(np.abs(about) <= NOISE * abs(trace), 0.0, about),
    )


def changed(node: Node, values: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that say another number than the file does; a row keeps the file's own words for the rest."""
    result = {}
    for name, text in values.items():
        new, old = text.split(), node.attributes.get(name, "").split()
        if len(new) != len(old):
            result[name] = text
        elif not all(map(_same, old, new)):
            result[name] = " ".join(one if _same(one, two) else two for one, two in zip(old, new, strict=True))
    return result


def _same(old: str, new: str) -> bool:
    try:
        return math.isclose(float(old), float(new), rel_tol=NOISE)
    except ValueError:
        return False
