"""Figures as data: blocks of panels that the page's script draws, each trace with a meaning instead of a colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import ArrayLike

from armid.reporting.html import text
from armid.reporting.numbers import compact, significant

#: What a trace can mean, and the words that stand in the legend.
ROLES = {
    "measured": "measured",
    "predicted": "predicted by the identified model",
    "nominal": "nominal model",
    "residual": "residual",
    "limit": "limit",
}


def line(role: str, x: ArrayLike, y: ArrayLike, *, name: str = "", log: bool = False, **options: Any) -> dict[str, Any]:
    """A curve.

    Args:
        role: one of `ROLES`.
        x: where its points are.
        y: their values.
        name: shown where one points at it.
        log: for logarithmic axes: small values keep their digits.
        options: ``mode`` (lines, markers, lines+markers, stems), ``size`` of markers, ``faint``, ``wide``.
    """
    points = {"x": significant(x), "y": significant(y)} if log else {"x": compact(x, 5), "y": compact(y)}
    return {"role": role, **points, "name": name or ROLES[role], **options}


def band(role: str, x: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> dict[str, Any]:
    """An interval, in the colour of its series at 20 %."""
    return {"role": role, "band": True, "x": compact(x, 5), "y": compact(lower), "upper": compact(upper)}


def level(value: float, role: str = "limit", *, vertical: bool = False) -> dict[str, Any]:
    """A thin straight line across a panel."""
    return {"role": role, "vertical" if vertical else "level": float(value)}


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        y_title: of its y axis: the unit.
        traces: from `line`, `band` and `level`.
        name: of the quantity, written above the first panel of a column.
        corner: figures, written above its right end.
        y_range: ends of its y axis; None to let the data decide.
        same_range: ends where all joints share one scale; None where that makes no sense.
        x_range, x_title: of its x axis; the title stands under the last block.
        log: logarithmic axes, ``x``, ``y`` or ``xy``.
        heat: a matrix with names of its rows, drawn as a heat map instead of traces.
    """

    y_title: str
    traces: Sequence[Mapping[str, Any]] = ()
    name: str = ""
    corner: str = ""
    y_range: Sequence[float] | None = None
    same_range: Sequence[float] | None = None
    x_range: Sequence[float] | None = None
    x_title: str = ""
    log: str = ""
    heat: Mapping[str, Any] | None = None

    def to_data(self) -> dict[str, Any]:
        """For the page's script."""
        data = {key: value for key, value in vars(self).items() if value is not None and value not in ("", ())}
        data["traces"] = list(self.traces)
        for key in ("y_range", "same_range", "x_range"):
            if key in data:
                data[key] = [float(value) for value in data[key]]
        return data


@dataclass(frozen=True)
class Block:
    """Panels that stay together on one printed page, mostly those of one joint: rows of columns.

    Attributes:
        label: the joint.
        panels: rows of panels; columns stack on a phone.
        heights: of the rows [px].
        same_heights: of the rows where all joints share one scale [px].
    """

    label: str
    panels: Sequence[Sequence[Panel]]
    heights: Sequence[float]
    same_heights: Sequence[float] | None = None


@dataclass(frozen=True)
class Figure:
    """Small multiples.

    Attributes:
        name: identifies it on the page.
        blocks: one under the other; their x axes move together.
        caption: for those who cannot see it.
        legend: roles and words, shown once above all panels; a role may be followed by ``dots``.
        held_out: whether the panels show validation data, which stand on a pale band.
        across: blocks beside each other on a wide page.
        hint: what one can do with it.
    """

    name: str
    blocks: Sequence[Block]
    caption: str
    legend: Mapping[str, str] = field(default_factory=dict)
    held_out: bool = False
    across: int = 1
    hint: str = ""

    def html(self) -> str:
        """Where the script is to draw it, with its legend."""
        keys = "".join(f'<span class="key {role}"><i></i>{text(words)}</span>' for role, words in self.legend.items())
        if self.held_out:
            keys += '<span class="key held"><i></i>pale ground: data that the fit has not seen</span>'
        same = any(block.same_heights is not None for block in self.blocks)
        button = '<button type="button" class="scale" aria-pressed="false">same scale for all joints</button>'
        hint = f'<span class="hint">{text(self.hint)}</span>' if self.hint else ""
        legend = f'<div class="legend">{keys}{button if same else ""}{hint}</div>' if keys or same or hint else ""
        places = "".join('<div class="plot"></div>' for _ in self.blocks)
        across = f" across{self.across}" if self.across > 1 else ""
        return (
            f'<figure class="chart{across}" data-figure="{text(self.name)}" role="group" '
            f'aria-label="{text(self.caption)}">{legend}'
            f'<div class="plots">{places}</div></figure>'
        )

    def to_data(self) -> dict[str, Any]:
        """For the page's script."""
        blocks = [
            {
                "label": block.label,
                "heights": list(block.heights),
                "same_heights": None if block.same_heights is None else list(block.same_heights),
                "panels": [[panel.to_data() for panel in row] for row in block.panels],
            }
            for block in self.blocks
        ]
        return {"blocks": blocks, "held_out": self.held_out, "across": self.across}
