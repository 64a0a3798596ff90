"""The fleet page: one HTML file that shows a whole fleet at a glance and each arm's history, and needs no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from armid.files import write_text
from armid.fleet.page_data import fleet_numbers, page_data
from armid.fleet.page_sections import (
    AT_THE_ORIGIN,
    address,
    counted,
    course,
    looked,
    names_explained,
    unusual,
    verdict,
    watch,
)
from armid.fleet.page_tables import arms, problems, provenance, usual
from armid.reporting.html import text
from armid.reporting.page import asset, frame

PACKAGE = "armid.fleet"
STYLES = ("fleet.css",)
SCRIPTS = ("numbers.js", "draw.js", "tables.js", "course.js", "map.js", "arm.js", "fleet.js")
SECTIONS = (verdict, watch, course, unusual, arms, problems, usual, provenance)
REPORT = "report.html"
_WORDS = re.compile(r">[^<>]+<")  # between tags: what others wrote is escaped
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|kg|N\b|°C|σ|±)(?![a-z]))|(?<=±) (?=\d)|(?<=\d N) (?=m\b)")
BESIDE = 200  # arms to look at that the table of contents names


def fleet_page(data: Mapping[str, Any]) -> str:
    """The page.

    Args:
        data: of a fleet, as `FleetResult.to_data` gives it and fleet.json holds it.
    """
    numbers = fleet_numbers(data)
    sections = [section for make in SECTIONS if (section := make(numbers)) is not None]
    robot = data["robot"]
    subtitle = ", ".join(filter(None, (robot["title"], " to ".join(numbers.period))))
    page = frame(
        f"{robot['name']}: fleet of {counted(len(data['arms']), 'arm')}",
        subtitle,
        sections,
        {"fleet": {**page_data(numbers), "names": names_explained(data), "at_the_origin": AT_THE_ORIGIN}},
        (asset("page.js"), asset(*SCRIPTS, package=PACKAGE)),
        style=asset(*STYLES, package=PACKAGE),
        contents=_beside(data),
        after='<article id="one" hidden></article><div id="tip" role="status" hidden></div>',
    )
    return _unbroken(page)


def _unbroken(page: str) -> str:
    """The page with dates in which no line can end, nor between a number and its unit."""
    shown, scripts, rest = page.partition('<script type="application/json"')  # words end where data begin
    head, body, words = shown.partition("<body>")
    return f"{head}{body}{_WORDS.sub(_whole, words)}{scripts}{rest}"


def _whole(words: re.Match[str]) -> str:
    return _DATE.sub(r'<span class="date">\g<0></span>', _UNIT.sub("\u00a0", words.group()))


def save_fleet_page(data: Mapping[str, Any], path: str | Path) -> None:
    """Write the page; the file is either complete or not there.

    Reports of single arms that lie beside their fits (`armid report robots/NAME/fit.json`) are linked.

    Args:
        data: of a fleet, as `FleetResult.to_data` gives it.
        path: of the page, in the folder of fleet.json.
    """
    folder = Path(path).parent
    arms = [{**arm, "report": _report(folder, arm["fit"])} for arm in data["arms"]]
    write_text(Path(path), fleet_page({**data, "arms": arms}))


def _report(folder: Path, fit: str | None) -> str | None:
    """The report beside an arm's fit, relative to the page; None if there is none."""
    if fit is None:
        return None
    beside = PurePosixPath(fit).with_name(REPORT)
    return str(beside) if (folder / beside).is_file() else None


def _beside(data: Mapping[str, Any]) -> str:
    """Arms to look at, beside the text, so that one can go from one to the next."""
    names = list(looked(data))
    if not names:
        return ""
    items = "".join(f'<li><a href="{text(address(name))}">{text(name)}</a></li>' for name in names[:BESIDE])
    more = f'<li class="more">and {len(names) - BESIDE} more</li>' if len(names) > BESIDE else ""
    return f'<div class="beside"><p>Want a look</p><ul>{items}{more}</ul></div>'
