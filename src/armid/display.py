"""How results show themselves: a `repr` that fits on a screen, and a small table for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armid.escaping import html as escape

MOST_ROWS = 60  # of a table in a notebook


def short(thing: object, *facts: object) -> str:
    """``Fit(pa10, feasible, 38 parameters)``: what `repr` says of a large object."""
    words = ", ".join(str(fact) for fact in facts if str(fact))
    return f"{type(thing).__name__}({words[:300]})"


def html_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], below: Sequence[object] = ()
) -> str:
    """A table with a title above and sentences below it; everything is escaped."""
    every = [[str(cell) for cell in row] for row in rows]
    more = [f"and {len(every) - MOST_ROWS} more rows"] if len(every) > MOST_ROWS else []
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in every[:MOST_ROWS])
    text = "".join(f"<p>{escape(str(line))}</p>" for line in [*more, *below])
    return f"<div><p><b>{escape(title)}</b></p><table><tr>{head}</tr>{body}</table>{text}</div>"
