"""A section of a report: one sentence first, then what shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from armid.reporting.figure import Figure
from armid.reporting.html import flowing, text


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes:
        name: its address on the page.
        title: as in the table of contents.
        sentence: what it shows, made from the numbers.
        body: HTML.
        figures: drawn by the page's script; their places are in `body`.
        data: other things that scripts need, by name.
        empty: whether it only says what would fill it.
    """

    name: str
    title: str
    sentence: str
    body: str = ""
    figures: tuple[Figure, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    empty: bool = False

    def html(self) -> str:
        """The section."""
        kind = ' class="empty"' if self.empty else ""
        return (
            f'<section id="{self.name}"{kind}><h2><a href="#{self.name}">{text(self.title)}</a></h2>'
            f'<p class="lead">{flowing(self.sentence)}</p>{self.body}</section>'
        )


def lacking(name: str, title: str, sentence: str) -> Section:
    """A section that has no data, and says what would fill it."""
    return Section(name, title, sentence, empty=True)
