"""The fleet page: one HTML file that shows a whole fleet at a glance and each arm's history, and needs no network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from armid._version import __version__
from armid.files import write_text
from armid.fleet.page_data import FleetNumbers, fleet_numbers, page_data
from armid.fleet.page_sections import (
    HALF,
    PACKAGE,
    REMARKS,
    STATES,
    address,
    course,
    looked,
    names_explained,
    reason,
    remark,
    table,
    told_from,
    unusual,
    verdict,
    watch,
)
from armid.fleet.result import FORMAT, FleetResult, TypeParameter, WatchEntry
from armid.reporting import html
from armid.reporting.html import Cell, Row, Section, lacking, text
from armid.reporting.numbers import DASH, listed, percent, plus_minus, pretty, short
from armid.reporting.page import asset, frame
from armid.signals.problems import plural

STYLES = ("fleet.css",)
SCRIPTS = ("numbers.js", "draw.js", "tables.js", "course.js", "map.js", "arm.js", "fleet.js")
REPORT = "report.html"
_WORDS = re.compile(r">[^<>]+<")  # between tags: what others wrote is escaped
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_UNIT = re.compile(r"(?<=\d) (?=(?:%|kg|N\b|°C|σ|±)(?![a-z]))|(?<=±) (?=\d)|(?<=\d N) (?=m\b)")
BESIDE = 200  # arms to look at that the table of contents names
CLEAR = 3.0  # standard deviations that make a mean differ from zero
NAN = float("nan")


def fleet_page(result: FleetResult, reports: Mapping[str, str] | None = None) -> str:
    """The page; `reports` are addresses of reports of single arms, by name."""
    numbers = fleet_numbers(result)
    makers = (verdict, watch, course, unusual, arms, problems, usual, provenance)
    sections = [section for make in makers if (section := make(numbers)) is not None]
    words = {"names": names_explained(result), "at_the_origin": REMARKS["at_the_origin"]}
    page = frame(
        f"{result.robot.name}: fleet of {plural(len(result.arms), 'arm')}",
        ", ".join(filter(None, (result.robot.title, " to ".join(numbers.period)))),
        sections,
        {"fleet": {**page_data(numbers, reports), **words}},
        (asset("page.js"), asset(*SCRIPTS, package=PACKAGE)),
        style=asset(*STYLES, package=PACKAGE),
        contents=_beside(result),
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


def save_fleet_page(result: FleetResult, path: str | Path) -> None:
    """Write the page; the file is either complete or not there.

    Reports of single arms that lie beside their fits (`armid report robots/NAME/fit.json`) are linked.

    Args:
        result: of a fleet.
        path: of the page, in the folder of fleet.json.
    """
    beside = {arm.name: PurePosixPath(arm.fit).with_name(REPORT) for arm in result.arms if arm.fit is not None}
    there = {name: str(report) for name, report in beside.items() if (Path(path).parent / report).is_file()}
    write_text(path, fleet_page(result, there))


def _beside(result: FleetResult) -> str:
    """Arms to look at, beside the text, so that one can go from one to the next."""
    names = list(looked(result))
    items = "".join(f'<li><a href="{text(address(name))}">{text(name)}</a></li>' for name in names[:BESIDE])
    more = f'<li class="more">and {len(names) - BESIDE} more</li>' if len(names) > BESIDE else ""
    return f'<div class="beside"><p>Want a look</p><ul>{items}{more}</ul></div>' if names else ""


def arms(numbers: FleetNumbers) -> Section:
    """All arms, to be sorted and filtered."""
    result = numbers.result
    found = looked(result)
    most = [np.nanmax(v) if np.isfinite(v).any() else 1.0 for v in (numbers.unlike_others, numbers.unlike_itself)]
    rank = {name: place for place, name in enumerate(found)}  # those to look at first, as in the watch list
    order = sorted(range(len(result.arms)), key=lambda index: rank.get(result.arms[index].name, len(rank)))
    rows = [_arm_row(numbers, index, found, most) for index in order]
    states = [arm.state for arm in result.arms]
    buttons = "".join(
        f'<button type="button" class="scale" data-state="{html.text(words)}" aria-pressed="false">'
        f"{html.text(words)} ({states.count(state)})</button>"
        for state, words in STATES.items()
        if state in states
    )
    controls = (
        '<div class="filter" role="search"><input type="search" id="filter" placeholder="arm, parameter or words" '
        f'aria-label="show only arms with these words">{buttons}<span id="shown" role="status"></span></div>'
    )
    said = {"good": "good", "look": "to look at", "no data": "without any usable recording"}
    counts = listed([f"{states.count(state)} {words}" for state, words in said.items() if state in states])
    sentence = f"{plural(len(states), 'arm')}: {counts}."
    nothing = '<p id="nothing" role="status" hidden>No arm matches.</p>'
    body = f"{controls}{table('arms', rows, 'all arms')}{nothing}{remark('arms')}"
    return Section("arms", "All arms", sentence, body)


def _arm_row(numbers: FleetNumbers, index: int, found: Mapping[str, list[WatchEntry]], most: list[Any]) -> Row:
    arm = numbers.result.arms[index]
    others, itself = float(numbers.unlike_others[index]), float(numbers.unlike_itself[index])
    noise = float(np.nanmax(arm.noise)) if arm.noise is not None and np.isfinite(arm.noise).any() else NAN
    odd = ""
    if np.isfinite(others):
        odd = numbers.result.parameters[int(np.nanargmax(np.abs(numbers.parameters[index])))].name
    reasons = found.get(arm.name, [])
    cells = (
        Cell(arm.name, link=address(arm.name)),
        Cell(STATES[arm.state]),
        Cell(listed(list(dict.fromkeys(reason(one, numbers.result) for one in reasons)))),
        Cell(str(arm.days), float(arm.days)),
        Cell(short(arm.seconds / 3600.0, 2), float(arm.seconds)),
        Cell(short(noise, 2), noise),
        Cell(DASH if not np.isfinite(others) else f"{others:.1f}", others, others / most[0]),
        Cell(odd or DASH, code=bool(odd)),
        Cell(DASH if not np.isfinite(itself) else f"{itself:.1f}", itself, itself / most[1]),
    )
    return Row(cells, "; ".join(one.sentence for one in reasons))


def problems(numbers: FleetNumbers) -> Section:
    """Recordings that were not used, and why."""
    found, odd = numbers.result.problems, numbers.result.counts.misfit_days
    left = f"{plural(odd, 'day')} left out because {'it fits' if odd == 1 else 'they fit'} nothing"
    if not found:
        said = f"{left}; see the watch list." if odd else "Every recording could be used."
        return lacking("problems", "Recordings not used", said)
    known = {arm.name for arm in numbers.result.arms}
    rows = []
    for one in numbers.result.unused():
        link = address(one.robot) if one.robot in known else ""
        rows.append(Row((Cell(one.robot, link=link), Cell(one.days), Cell(one.what), Cell(one.reason))))
    arms = {one.robot for one in found}
    days = {(one.robot, one.date) for one in found}
    sentence = (
        f"{plural(len(found), 'recording')} of {plural(len(arms), 'arm')} on {plural(len(days), 'arm-day')} "
        "could not be used; all other recordings are unaffected."
    )
    sentence += f" {left}." if odd else ""
    return Section("problems", "Recordings not used", sentence, table("problems", rows, "recordings not used"))


def usual(numbers: FleetNumbers) -> Section | None:
    """What the arms have in common: parameters of the type, and what changes from day to day."""
    result = numbers.result
    if not result.parameters:
        return None
    told = [one for one in result.parameters if one.spread is not None]
    names = html.paragraph(names_explained(result), "remark names")
    body = f"<h3>Parameters of the type</h3>{names}{_parameters(result)}"
    if result.watched:
        body += f"<h3>What is watched</h3>{_watched(result)}"
    if told:
        shares = [value for value in map(_share, told) if np.isfinite(value)]
        middle = f"; arms differ by {percent(float(np.median(shares)))} in the median one" if shares else ""
        sentence = f"{len(result.parameters)} parameters, learnt from all arms{middle}."
    else:
        sentence = f"{len(result.parameters)} parameters; there are too few arms to tell how far arms differ."
    return Section("usual", "What is usual", sentence, body)


def _parameters(result: FleetResult) -> str:
    shares = [_share(one) for one in result.parameters]
    largest = min(max((value for value in shares if np.isfinite(value)), default=1.0), 1.0)
    rows = []
    for one, value in zip(result.parameters, shares, strict=True):
        mean = DASH if one.mean is None or one.sigma is None else plus_minus(one.mean, HALF * one.sigma)
        cells = (
            Cell(one.name, code=True),
            Cell(mean, NAN if one.mean is None else one.mean),
            Cell(short(one.spread, 2), NAN if one.spread is None else one.spread),
            Cell(percent(value), value, min(value, 1.0) / largest),
            Cell(pretty(one.unit).replace(" ", "\u00a0")),
            Cell(one.expression, code=True),
        )
        rows.append(Row(cells))
    return table("parameters", rows, "parameters of the type")


def _share(one: TypeParameter) -> float:
    """Spread over mean; NaN where the mean cannot be told from zero, or the spread is not known."""
    if one.spread is None or one.mean is None or one.sigma is None:
        return NAN
    told = abs(one.mean) > CLEAR * one.sigma
    return abs(one.spread / one.mean) if told and one.mean else NAN


def _watched(result: FleetResult) -> str:
    rows = []
    for one in result.watched:
        change, slope = one.day_to_day, one.per_degree
        factor, unit = (100.0, "%") if one.relative else (1.0, pretty(one.unit))
        cells = (
            Cell(one.what),
            Cell(one.name, code=True),
            Cell(DASH if change is None else f"{short(factor * change, 2)} {unit}", change or 0.0),
            Cell(DASH if slope is None else f"{short(100.0 * slope, 2)} %", slope or 0.0),
        )
        rows.append(Row(cells))
    return table("watched", rows, "what is watched")


def provenance(numbers: FleetNumbers) -> Section:
    """Where it all comes from."""
    result, counts = numbers.result, numbers.result.counts
    dates, off = result.dates, len(numbers.off_axis)
    apart = f", {off} of them years apart" if off else ""
    new = counts.arm_days - counts.kept
    facts = (
        ("robot", f"{result.robot.name}, {result.robot.source}"),
        ("joints", ", ".join(result.robot.joints)),
        ("days", f"{len(dates)}, {' to '.join(numbers.period)}{apart}" if dates else "none"),
        ("arm-days", f"{counts.arm_days}; {counts.used} used, {counts.kept} known from an earlier run"),
        ("left out", f"{plural(counts.misfit_days, 'day')} that fit nothing" if counts.misfit_days else ""),
        ("samples", f"{counts.samples}"),
        ("changes are reported", told_from(result)),
        ("false alarms", result.promise.sentence),
        ("drawn", "" if numbers.together == 1 else f"means over {numbers.together} days"),
        ("made by", f"armid {__version__}, {FORMAT}"),
    )
    took = _duration(counts.work_s)
    made = f"Made from {plural(counts.arm_days, 'arm-day')}, {new} of them new, in {took}"
    sentence = f"{made}; all numbers are in fleet.json."
    return Section("provenance", "Provenance", sentence, html.facts(facts))


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{short(seconds, 2)} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
