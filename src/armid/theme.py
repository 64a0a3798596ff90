"""The visual language of every picture: colours by meaning, and sizes.

Joints are told apart by panels, never by colours. Matplotlib is loaded when the first figure is made, and none of its
global settings are touched, so that pictures look the same inside anybody's program.
"""

from __future__ import annotations

import textwrap
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import MissingExtraError
from armid.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    Picture = Figure
else:
    Picture = Any  # a figure of Matplotlib, whose types are not loaded before the first is made

# Colours by meaning (Okabe-Ito, safe for colour-blind readers).
MEASURED = "#1a1a1a"
PREDICTED = "#0072B2"  # by the identified model; also what is planned
NOMINAL = "#8a8a8a"  # CAD values, or what things are compared with; dashed
RESIDUAL = "#D55E00"
LIMIT = "#CC0000"
VALIDATION = "#F3EFE0"  # band behind the axes
TEXT = "#333333"
FAINT = "#E4E4E4"
INTERVAL_ALPHA = 0.2

# Line styles by meaning, to be passed on to matplotlib.
LINES: dict[str, dict[str, Any]] = {
    "measured": {"color": MEASURED, "linewidth": 1.0},
    "predicted": {"color": PREDICTED, "linewidth": 1.3},
    "nominal": {"color": NOMINAL, "linewidth": 1.2, "linestyle": (0, (4, 2))},
    "residual": {"color": RESIDUAL, "linewidth": 1.0},
    "limit": {"color": LIMIT, "linewidth": 0.7},
}

# Sizes: points for letters, inches for figures.
SENTENCE, LABEL, TICK = 10.0, 8.0, 7.5
WIDTH = 8.0
DPI = 150
MARGIN = 1.05


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """An empty figure [inch] that belongs to nobody but its caller.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05, wspace=0.02, hspace=0.02)
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    # A notebook asks for this; Matplotlib itself answers only for figures of its pyplot.
    figure._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    return figure


def _png(figure: Figure) -> bytes:
    figure.savefig(picture := BytesIO(), format="png")
    return picture.getvalue()


def need_matplotlib() -> None:
    """Raise MissingExtraError where pictures cannot be drawn."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("pictures", "report") from None


def label(axis: Any, name: str) -> None:
    """Write a joint's name to the left of its panels."""
    place = {"xy": (0.0, 0.5), "xycoords": "axes fraction", "xytext": (-42.0, 0.0), "textcoords": "offset points"}
    short = textwrap.shorten(name, 40, placeholder="…").replace("_", "_ ")  # lines break after underscores
    lines = [line.replace("_ ", "_") for line in textwrap.wrap(short, 14)]
    axis.annotate("\n".join(lines), ha="right", va="center", fontsize=LABEL, color=TEXT, **place)


def style(axis: Any) -> None:
    """Give axes the common look: two quiet spines, small ticks, a faint grid."""
    axis.tick_params(which="both", labelsize=TICK, colors=TEXT, length=2.5, width=0.6)
    for side, spine in axis.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(TEXT)
        spine.set_linewidth(0.6)
    axis.grid(True, color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    for direction in (axis.xaxis, axis.yaxis):
        direction.label.set_fontsize(LABEL)
        direction.label.set_color(TEXT)


def style_space(axis: Any, unit: str) -> None:
    """Give three-dimensional axes the common look and equal scales; a flat space is widened to hold its labels."""
    from matplotlib.ticker import MaxNLocator

    limits = [getattr(axis, f"get_{name}lim")() for name in "xyz"]
    longest = max(high - low for low, high in limits)
    spans = [max(high - low, 0.5 * longest) for low, high in limits]
    for name, (low, high), span in zip("xyz", limits, spans, strict=True):
        getattr(axis, f"set_{name}lim")(0.5 * (low + high - span), 0.5 * (low + high + span))
    axis.set_box_aspect(spans)
    axis.view_init(elev=22.0, azim=-52.0)
    for name in "xyz":
        direction = getattr(axis, f"{name}axis")
        direction.set_pane_color((1.0, 1.0, 1.0, 1.0))
        direction.set_major_locator(MaxNLocator(5))
        # There is no public way to make the grid faint; without this it is merely darker.
        getattr(direction, "_axinfo", {}).get("grid", {}).update(color=FAINT, linewidth=0.6)
        getattr(axis, f"set_{name}label")(f"{name} [{unit}]", fontsize=LABEL, color=TEXT)
        axis.tick_params(axis=name, labelsize=TICK, colors=TEXT)


def say(figure: Figure, sentence: str) -> None:
    """Open a figure with the sentence that states what it shows."""
    widest = 12.0 * figure.get_figwidth()  # letters per line
    rows = -(-len(sentence) // round(widest))
    even = round(min(widest, len(sentence) / rows + 6))  # no last line of a single word
    figure.suptitle("\n".join(textwrap.wrap(sentence, even)), x=0.012, ha="left", fontsize=SENTENCE, color=MEASURED)


def corner(axis: Any, text: str) -> None:
    """Write a number at a panel's upper right corner, above the curves."""
    axis.text(1.0, 1.01, text, transform=axis.transAxes, ha="right", va="bottom", fontsize=TICK - 1.0, color=TEXT)


def log_scale(axis: Any) -> None:
    """A logarithmic y axis with plain numbers at 1, 2 and 5; at 1 alone where it has many decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(NullFormatter())


def save(figure: Figure, path: Path) -> Path:
    """Write a picture, of the kind that the name ends in; the file is either complete or not there. Returns `path`."""
    picture = BytesIO()
    if (layout := figure.get_layout_engine()) is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")  # else all is drawn twice, the first time for the layout alone
    figure.savefig(picture, dpi=DPI, format=path.suffix.removeprefix(".") or None)
    write_bytes(path, picture.getvalue())
    return path
