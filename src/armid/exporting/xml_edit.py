"""Editing an XML file in place: what is not edited keeps its bytes, comments, spaces and order of attributes included.

A parser (expat) says at which bytes elements begin and end; edits are cuts and insertions at those places.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from armid.exporting.arm import ExportError

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
