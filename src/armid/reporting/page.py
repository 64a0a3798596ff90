"""The page: one HTML file with its styles, scripts and data inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from armid import theme
from armid._version import __version__
from armid.errors import MissingExtraError
from armid.reporting.html import Section, script_data, text

_STYLES = ("page.css",)
_SCRIPTS = ("charts.js", "scene.js", "page.js")
_OWN = ("measured", "predicted", "nominal", "residual", "limit", "validation", "text", "faint")
#: Colours on a light page, by meaning; those of the theme.
LIGHT = {
    **{name: str(getattr(theme, name.upper())) for name in _OWN},
    "paper": "#ffffff",
    "quiet": "#666666",
    "panel": "#f6f7f8",
}
#: The same on a dark page: lighter tones of the same hues (Okabe-Ito).
DARK = {
    "measured": "#f2f2f2",
    "predicted": "#56B4E9",
    "nominal": "#9a9a9a",
    "residual": "#F0803C",
    "limit": "#FF6B6B",
    "validation": "#23211a",
    "text": "#dcdcdc",
    "faint": "#383b40",
    "paper": "#15171a",
    "quiet": "#a0a4a8",
    "panel": "#1d2024",
}


def render(title: str, subtitle: str, sections: Sequence[Section], data: Mapping[str, Any], *, style: str = "") -> str:
    """The whole page of a report.

    Args:
        title: of the page.
        subtitle: under it.
        sections: in reading order.
        data: the numbers as they are in the files, under the element `armid-data`.
        style: more rules than those of all pages.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    plotly = plotly_script()
    figures = {figure.name: figure.to_data() for section in sections for figure in section.figures}
    extra = {name: value for section in sections for name, value in section.data.items()}
    elements = {"data": data, "figures": figures, "scene": extra.get("scene")}
    return frame(title, subtitle, sections, elements, (plotly, asset(*_SCRIPTS)), style=style)


def frame(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    elements: Mapping[str, Any],
    scripts: Sequence[str],
    *,
    style: str = "",
    contents: str = "",
    after: str = "",
) -> str:
    """A page with armid's look, whatever it shows; the browser may fetch nothing.

    Args:
        title: of the page.
        subtitle: under it.
        sections: in reading order.
        elements: data for the scripts, each in an element of its own: `armid-` and its name; colours are added.
        scripts: sources, in order.
        style: more rules than those of all pages.
        contents: HTML under the table of contents.
        after: HTML after the sections.
    """
    colours = {"light": LIGHT, "dark": DARK, "band": theme.INTERVAL_ALPHA}
    listed = "".join(
        f'<li{" class=empty" if section.empty else ""}><a href="#{section.name}">{text(section.title)}</a></li>'
        for section in sections
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta name="generator" content="armid {text(__version__)}">',
            # Nothing may be fetched from anywhere, whatever a text or a script says.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; img-src data: blob:\">",
            '<link rel="icon" href="data:,">',
            f"<title>{text(title)}</title>",
            f"<style>{_variables()}\n{asset(*_STYLES)}{style}</style></head>",
            f'<body><header><h1>{text(title)}</h1><p class="subtitle">{text(subtitle)}</p></header>',
            f'<nav aria-label="Contents"><ol>{listed}</ol>{contents}</nav>',
            f"<main>{''.join(section.html() for section in sections)}{after}</main>",
            f"<footer>Made by armid {text(__version__)}. This file needs no network.</footer>",
            *(script_data(f"armid-{name}", data) for name, data in {**elements, "colours": colours}.items()),
            *(f"<script>{source}</script>" for source in scripts),
            "</body></html>\n",
        ]
    )


def plotly_script() -> str:
    """The source of plotly.js, from the Python package.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError("reports", "report")
    path = Path(next(iter(found.submodule_search_locations))) / "package_data" / "plotly.min.js"
    if not path.is_file():
        raise MissingExtraError("reports", "report")
    return path.read_text("utf-8").replace("</script", "<\\/script")


def asset(*names: str, package: str = "armid.reporting") -> str:
    """Styles or scripts from the assets of a package, one after the other."""
    folder = resources.files(package) / "assets"
    return "\n".join((folder / name).read_text("utf-8") for name in names)


def _variables() -> str:
    light, dark = ("".join(f"--{name}:{value};" for name, value in colours.items()) for colours in (LIGHT, DARK))
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
