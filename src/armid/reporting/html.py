"""Pieces of HTML and the sections made of them: everything that a user wrote is escaped here, once."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from armid import escaping
from armid.figures import Figure

LONG = 24  # characters of a cell from which it is given some width before its lines are broken
text = escaping.html  # escaped words
ONE_PAGE = 12  # rows of a table up to which it is not divided between printed pages
_UNIT = re.compile(r"(?<=\d) (?:(?:N m|rad/s²?|rad|kg m²|kg|mm|ms|m|s|Hz|%|°C|σ)(?=[\s,;.:)]|$)|± (?=\d))")
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: shown; it is escaped.
        sort: what the column is sorted by; None to sort by the text.
        bar: length of a bar under the number, 0 to 1; None for none.
        code: written as a name or formula.
        link: where the text leads; empty for nowhere.
        beside: where a true value lies from the estimate, in halves of its 95 % interval; None to draw nothing.
    """

    text: str
    sort: float | None = None
    bar: float | None = None
    code: bool = False
    link: str = ""
    beside: float | None = None


@dataclass(frozen=True)
class Column:
    """Head of a column: a name, its unit, a hint for people who wonder, and whether it holds words.

    A column that is `aside` is not shown on a phone where the table is stacked.
    """

    name: str
    unit: str = ""
    hint: str = ""
    words: bool = False
    aside: bool = False


@dataclass(frozen=True)
class Row:
    """Cells, and whether this is one of the rows to look at first, with the reason."""

    cells: tuple[Cell, ...]
    mark: str = ""


@dataclass(frozen=True)
class Section:
    """One part of a page: one sentence first, then what shows it.

    Attributes:
        name: its address on the page.
        title: as in the table of contents.
        sentence: what it shows, made from the numbers.
        parts: pieces of HTML, and figures that the page's script draws.
        data: other things that scripts need, by name.
        empty: whether it only says what would fill it.
        folded: whether few people need what is under the sentence.
    """

    name: str
    title: str
    sentence: str
    parts: str | Sequence[str | Figure] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    empty: bool = False
    folded: bool = False

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures."""
        return tuple(part for part in self.parts if isinstance(part, Figure))

    @property
    def body(self) -> str:
        """Everything under the sentence."""
        found = "".join(chart(part) if isinstance(part, Figure) else part for part in self.parts)
        return folded("Show", found) if self.folded else found

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


def chart(figure: Figure) -> str:
    """Where the page's script is to draw a figure, with its legend."""
    keys = "".join(f'<span class="key {role}"><i></i>{text(words)}</span>' for role, words in figure.legend.items())
    if figure.held_out:
        keys += '<span class="key held"><i></i>pale ground: data that the fit has not seen</span>'
    same = any(block.same_heights is not None for block in figure.blocks)
    button = '<button type="button" class="scale" aria-pressed="false">same scale for all joints</button>'
    hint = f'<span class="hint">{text(figure.hint)}</span>' if figure.hint else ""
    legend = f'<div class="legend">{keys}{button if same else ""}{hint}</div>' if keys or same or hint else ""
    places = "".join('<div class="plot"></div>' for _ in figure.blocks)
    across = f" across{figure.across}" if figure.across > 1 else ""
    return (
        f'<figure class="chart{across}" data-figure="{text(figure.name)}" role="group" '
        f'aria-label="{text(figure.caption)}">{legend}<div class="plots">{places}</div></figure>'
    )


def flowing(words: str) -> str:
    """Escaped words, in which no line ends within a date or between a number and its unit."""
    whole = text(_UNIT.sub(lambda found: found.group().replace(" ", "\u00a0"), words))
    return _DATE.sub(r'<span class="date">\g<0></span>', whole)


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of escaped words."""
    return f"<p{_class(kind)}>{flowing(words)}</p>"


def bullets(items: Iterable[str], kind: str = "") -> str:
    """A list of escaped sentences; nothing without items."""
    lines = "".join(f"<li>{flowing(item)}</li>" for item in items)
    return f"<ul{_class(kind)}>{lines}</ul>" if lines else ""


def folded(words: str, body: str) -> str:
    """What is shown once somebody asks for it; printed pages show it."""
    return f"<details><summary>{text(words)}</summary>{body}</details>"


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for; pairs without words are left out."""
    lines = "".join(f"<dt>{text(name)}</dt><dd>{flowing(words)}</dd>" for name, words in pairs if words)
    return f'<dl class="facts">{lines}</dl>' if lines else ""


def tiles(items: Iterable[tuple[str, str, str]]) -> str:
    """The few numbers that matter: value, what it is, and a remark."""
    parts = (
        f'<div class="tile"><span class="value">{text(value)}</span><span class="name">{text(name)}</span>'
        f'<span class="remark">{flowing(remark)}</span></div>'
        for value, name, remark in items
    )
    return f'<div class="tiles">{"".join(parts)}</div>'


def table(
    columns: Sequence[Column], rows: Sequence[Row], *, caption: str, fold: int | None = None, stacked: bool = False
) -> str:
    """A table that can be sorted by its heads; rows to look at first carry a bar at their left.

    Args:
        columns: the heads.
        rows: the body.
        caption: what it holds, for those who cannot see it.
        fold: put it into a box of its own height that scrolls, where it has more rows than this.
        stacked: give the last column a line of its own on a phone; the table must have five or six columns.
    """
    head = "".join(
        f'<th scope="col"{_class(_kind(column))} aria-sort="none">'
        f'<span class="head" role="button" tabindex="0" title="{text(column.hint or "sort by " + column.name)}">'
        f"{text(column.name)}{f'<span class=unit>{text(column.unit)}</span>' if column.unit else ''}</span></th>"
        for column in columns
    )
    body = "".join(_row(columns, row) for row in rows)
    tall = " tall" if fold is not None and len(rows) > fold else " whole" if len(rows) <= ONE_PAGE else ""
    tall += " stacked" if stacked else ""
    return (
        f'<div class="table{tall}" tabindex="0" role="region" aria-label="{text(caption)}"><table class="sortable">'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def script_data(name: str, data: Any) -> str:
    """Data for the page's scripts; no text in it can end the element or open a comment."""
    return f'<script type="application/json" id="{text(name)}">{escaping.script_json(data)}</script>'


def _row(columns: Sequence[Column], row: Row) -> str:
    cells = "".join(_cell(column, cell) for column, cell in zip(columns, row.cells, strict=True))
    mark = f' class="marked" title="{text(row.mark)}"' if row.mark else ""
    return f"<tr{mark}>{cells}</tr>"


def _cell(column: Column, cell: Cell) -> str:
    order = ""
    if cell.sort is not None:
        order = f' data-sort="{cell.sort!r}"' if math.isfinite(cell.sort) else ' data-sort=""'
    bar = ""
    if cell.bar is not None and math.isfinite(cell.bar):
        bar = f'<span class="bar" style="width:{100.0 * min(max(cell.bar, 0.0), 1.0):.1f}%"></span>'
    if cell.beside is not None:
        bar = (
            '<svg class="beside" viewBox="-3 -.6 6 1.2" aria-hidden="true"><path d="M-1 0H1"/><circle r=".22"/>'
            f'<path class="truth" d="M{min(max(cell.beside, -2.8), 2.8):.2f} -.5v1"/></svg>'
        )
    words = f"<code>{text(cell.text)}</code>" if cell.code else (flowing if column.words else text)(cell.text)
    words = f'<a href="{text(cell.link)}">{words}</a>' if cell.link else words
    long = column.words and len(cell.text) > LONG
    return f"<td{_class(_kind(column, long=long, barred=bool(bar)))}{order}>{words}{bar}</td>"


def _kind(column: Column, *, long: bool = False, barred: bool = False) -> str:
    kinds = (("words", column.words), ("aside", column.aside), ("long", long), ("barred", barred))
    return " ".join(name for name, there in kinds if there)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
