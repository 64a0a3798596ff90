"""Figures as data: panels by joint, each trace with a meaning instead of a colour.

The report's page draws them with its own script, `Figure.draw` with Matplotlib in the look of `armid.theme`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid import theme
from armid.arrays import Array

#: What a trace can mean, and the words that stand in the legend.
ROLES = {
    "measured": "measured",
    "predicted": "predicted by the identified model",
    "nominal": "nominal model",
    "residual": "residual",
    "limit": "limit",
}
INCH = 96.0  # [px]
_AXIS = {"color": theme.FAINT, "linewidth": 0.8}


def line(role: str, x: ArrayLike, y: ArrayLike, *, name: str = "", **options: Any) -> dict[str, Any]:
    """A curve.

    Args:
        role: one of `ROLES`.
        x: where its points are.
        y: their values.
        name: shown where one points at it.
        options: ``mode`` (lines, markers, lines+markers, stems), ``size`` of markers, ``faint``, ``wide``; ``log`` for
            logarithmic axes, where small values keep their digits; ``style`` for Matplotlib alone.
    """
    return {"role": role, "x": _array(x), "y": _array(y), "name": name or ROLES[role], **options}


def band(role: str, x: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> dict[str, Any]:
    """An interval, in the colour of its series at 20 %."""
    return {"role": role, "band": True, "x": _array(x), "y": _array(lower), "upper": _array(upper)}


def bars(role: str, x: ArrayLike, y: ArrayLike, half: ArrayLike) -> dict[str, Any]:
    """Points with error bars."""
    return line(role, x, y, mode="markers", size=3.0, half=_array(half))


def level(value: float, role: str = "limit", *, vertical: bool = False) -> dict[str, Any]:
    """A thin straight line across a panel."""
    return {"role": role, "vertical" if vertical else "level": float(value)}


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        y_title: of its y axis: the unit.
        traces: from `line`, `band`, `bars` and `level`.
        name: of the quantity, written above the first panel of a column.
        corner: figures, written above its right end.
        y_range: ends of its y axis, powers of ten where it is logarithmic; None to let the data decide.
        same_range: ends where all joints share one scale; None where that makes no sense.
        x_range, x_title: of its x axis; the title stands under the last block.
        log: logarithmic axes, ``x``, ``y`` or ``xy``.
        heat: a matrix with names of its rows, drawn as a heat map instead of traces (on a page only).
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
        data["traces"] = [_compact_trace(trace) for trace in self.traces]
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
        name: identifies it on a page.
        blocks: one under the other; their x axes move together.
        caption: for those who cannot see it.
        legend: roles and words, shown once; a role may be followed by ``dots``.
        held_out: whether the panels show validation data, which stand on a pale band.
        across: blocks beside each other on a wide page.
        hint: what one can do with it.
    """

    name: str
    blocks: Sequence[Block]
    caption: str = ""
    legend: Mapping[str, str] = field(default_factory=dict)
    held_out: bool = False
    across: int = 1
    hint: str = ""

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

    def draw(self, sentence: str = "") -> theme.Picture:
        """The figure by Matplotlib, opened by a sentence that says what it shows.

        Raises:
            MissingExtraError: Matplotlib is not installed.
        """
        grid = self._grid()
        heights = [max(height for _, _, height in row) / INCH for row in grid]
        columns = max(map(len, grid))
        picture: Any = theme.new_figure(theme.MARGIN + sum(heights))
        shared = "col" if self.across == 1 else False
        axes = picture.subplots(len(grid), columns, squeeze=False, sharex=shared, height_ratios=heights)
        for k, row in enumerate(grid):
            for axis in axes[k, len(row) :]:
                axis.set_visible(False)
            for axis, (panel, label, _) in zip(axes[k], row, strict=False):
                _draw_panel(axis, panel)
                axis.set_facecolor(theme.VALIDATION if self.held_out else "white")
                if title := label if self.across > 1 else panel.name if k == 0 else "":
                    axis.set_title(title, loc="left", fontsize=theme.LABEL, color=theme.TEXT, pad=5.0)
                axis.set_xlabel(panel.x_title if k + 1 == len(grid) else "")
            if row[0][1] and self.across == 1:
                theme.label(axes[k, 0], row[0][1])
        picture.align_ylabels(axes)
        if self.legend:
            handles = [_handle(role) for role in self.legend]
            place = {
                "loc": "outside lower center",
                "ncols": min(3, len(handles)),
                "fontsize": theme.TICK,
                "frameon": False,
            }
            picture.legend(handles, list(self.legend.values()), **place)
        if sentence:
            theme.say(picture, sentence)
        result: theme.Picture = picture
        return result

    def _grid(self) -> list[list[tuple[Panel, str, float]]]:
        """Rows of panels, each with the label beside it and its height [px]."""
        if self.across > 1:
            cells = [(block.panels[0][0], block.label, block.heights[0]) for block in self.blocks]
            return [cells[k : k + self.across] for k in range(0, len(cells), self.across)]
        return [
            [(panel, block.label if k == 0 else "", height) for panel in row]
            for block in self.blocks
            for k, (row, height) in enumerate(zip(block.panels, block.heights, strict=True))
        ]


def torque_block(
    label: str,
    unit: str,
    time: Array,
    measured: Array,
    predicted: Array,
    *,
    others: Sequence[Mapping[str, Any]] = (),
    corner: str = "",
    shown: ArrayLike = (),
    same: tuple[Sequence[float], Array] | None = None,
    tall: float = 130.0,
) -> Block:
    """Torque of a joint, and under it the residual with as many N m per pixel.

    Args:
        label: the joint.
        unit: of its torque.
        time: [s], (rows,); NaN between records.
        measured: (rows,).
        predicted: the same, by the model.
        others: traces drawn beneath, such as an interval or the nominal model.
        corner: figures.
        shown: more values that the torque's axis must hold.
        same: range of torque and all residuals where joints share one scale.
        tall: height of the torque's panel [px].
    """
    error = measured - predicted
    own, own_error, own_height = _scales(span(np.concatenate([measured, predicted, _array(shown)])), error, tall)
    all_range, all_error, all_height = (None, None, None) if same is None else _scales(*same, tall)
    x_range = [float(np.nanmin(time)), float(np.nanmax(time))]
    traces = [*others, line("measured", time, measured, wide=True), line("predicted", time, predicted)]
    upper = Panel(unit, traces, corner=corner, y_range=own, same_range=all_range, x_range=x_range)
    residual = [line("residual", time, error)]
    lower = Panel("", residual, y_range=own_error, same_range=all_error, x_range=x_range, x_title="time [s]")
    both = None if all_height is None else (tall, all_height)
    return Block(label, [[upper], [lower]], (tall, own_height), both)


def _scales(own: Sequence[float], error: Array, tall: float) -> tuple[list[float], list[float], float]:
    """Range of the torque, range of the residual, and the height that gives both the same scale."""
    per_pixel = (own[1] - own[0]) / tall
    reach = 1.08 * float(np.nanmax(np.abs(error))) if np.isfinite(error).any() else 0.0
    height = min(max(34.0, 2.0 * reach / per_pixel), 1.6 * tall)
    return list(own), [-0.5 * height * per_pixel, 0.5 * height * per_pixel], height


def span(values: ArrayLike, room: float = 0.06) -> list[float]:
    """Ends of an axis that holds all finite values, with some room."""
    array = _array(values)
    array = array[np.isfinite(array)]
    if array.size == 0:
        return [-1.0, 1.0]
    low, high = float(array.min()), float(array.max())
    reach = (high - low) or max(abs(high), 1e-9)
    return [low - room * reach, high + room * reach]


def thinned(length: int, most: int) -> slice:
    """Every so many rows, that at most `most` are left."""
    return slice(None, None, max(1, -(-length // most)))


def compact(values: ArrayLike, digits: int = 4) -> list[Any]:
    """A series for a page: rounded to a ten-thousandth of its size, null where it is not finite."""
    array = _array(values)
    finite = np.abs(array[np.isfinite(array)])
    size = float(finite.max()) if finite.size else 0.0
    places = digits - math.floor(math.log10(size)) if size > 0.0 else 0
    rounded = np.round(array, min(max(places, 0), 15)) + 0.0  # no minus zero
    return [value if math.isfinite(value) else None for value in rounded.tolist()]


def significant(values: ArrayLike, digits: int = 4) -> list[Any]:
    """A series for a logarithmic page: each value keeps some digits, null where it is not finite."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in _array(values).tolist()]


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=float)


def _compact_trace(trace: Mapping[str, Any]) -> dict[str, Any]:
    data = {key: value for key, value in trace.items() if key not in ("log", "style", "half")}
    for key in ("x", "y", "upper"):
        if key in data:
            values = data[key]
            data[key] = significant(values) if trace.get("log") else compact(values, 5 if key == "x" else 4)
    return data


def _draw_panel(axis: Any, panel: Panel) -> None:
    theme.style(axis)
    for trace in panel.traces:
        _draw_trace(axis, trace)
    if "x" in panel.log:
        axis.set_xscale("log")
    if "y" in panel.log:
        theme.log_scale(axis)
    for name, ends in (("x", panel.x_range), ("y", panel.y_range)):
        if ends is not None:
            low, high = np.power(10.0, ends) if name in panel.log else ends
            getattr(axis, f"set_{name}lim")(low, high)
    axis.set_ylabel(panel.y_title)
    if panel.corner:
        theme.corner(axis, panel.corner)


def _draw_trace(axis: Any, trace: Mapping[str, Any]) -> None:
    look = {**theme.LINES.get(trace["role"], _AXIS), **trace.get("style", {})}
    if "level" in trace or "vertical" in trace:
        (axis.axvline if "vertical" in trace else axis.axhline)(trace.get("level", trace.get("vertical")), **look)
        return
    x, y, colour = trace["x"], trace["y"], look["color"]
    if trace.get("band"):
        axis.fill_between(x, y, trace["upper"], color=colour, alpha=theme.INTERVAL_ALPHA, linewidth=0.0)
        return
    mode, size, alpha = trace.get("mode", "lines"), trace.get("size", 4.0), 0.4 if trace.get("faint") else 1.0
    if "half" in trace:
        axis.errorbar(x, y, trace["half"], fmt=".", color=colour, markersize=size, elinewidth=0.6, capsize=0)
    elif mode == "lines":
        axis.plot(x, y, **look)
    elif mode == "markers":
        axis.plot(x, y, ".", color=colour, markersize=size, alpha=alpha)
    elif mode == "stems":
        axis.vlines(x, 0.0, y, **look)
        axis.plot(x, y, "o", color=colour, markersize=size, clip_on=False)
    else:
        axis.plot(x, y, marker="o", markersize=size, **look)


def _handle(role: str) -> Any:
    """The mark of a role in a legend."""
    from matplotlib.lines import Line2D

    dots = {"marker": ".", "linestyle": "none"} if role.endswith("dots") else {}
    return Line2D([], [], **{**theme.LINES[role.split()[0]], **dots})
