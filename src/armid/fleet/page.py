"""The fleet page: one HTML file that shows a whole fleet at a glance and each arm's history, and needs no network.

Each section opens with a sentence made from the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import numpy as np

from armid._version import __version__
from armid.files import parse_yaml, write_text
from armid.fleet.page_data import FleetNumbers, fleet_numbers, groups, page_data
from armid.fleet.result import FORMAT, FleetResult, TypeParameter, WatchedQuantity, WatchEntry
from armid.fleet.usual import PAYLOAD
from armid.reporting import html
from armid.reporting.html import Cell, Column, Row, Section, lacking, text
from armid.reporting.numbers import DASH, exact, listed, percent, plus_minus, pretty, short
from armid.reporting.page import asset, frame
from armid.signals.problems import plural

PACKAGE = "armid.fleet"
LINES = 120  # arms up to which each is drawn; the rest of larger fleets is drawn as bands
NAMED = 5  # arms that a sentence names
OPEN = 4  # quantities that are open where nothing has changed; further ones are folded
FOLD = 20  # rows of a table from which it gets a height of its own
WATCHED_FOLD = 15  # the same of the watch list
OFF = 3  # days off the time axis that are named
TOLD_SLOPE = 1e-3  # effect of temperature that is worth a remark [1/°C]
PLAIN = 1e9  # how sure one is of what needs no statistics
TINY = 1e-9  # standard deviations that are none
HALF = 1.96  # standard deviations of half a 95 % interval
TEXTS = parse_yaml(asset("page.yaml", package=PACKAGE), "page.yaml")
STATES, REMARKS = TEXTS["states"], TEXTS["remarks"]
SCRIPTS = ("numbers.js", "draw.js", "course.js", "map.js", "arm.js", "fleet.js")
REPORT = "report.html"
BESIDE = 200  # arms to look at that the table of contents names
CLEAR = 3.0  # standard deviations that make a mean differ from zero
NAN = float("nan")


def fleet_page(result: FleetResult, reports: Mapping[str, str] | None = None) -> str:
    """The page; `reports` are addresses of reports of single arms, by name."""
    numbers = fleet_numbers(result)
    makers = (verdict, watch, course, unusual, arms, problems, usual, provenance)
    sections = [section for make in makers if (section := make(numbers)) is not None]
    words = {"names": names_explained(result), "at_the_origin": REMARKS["at_the_origin"]}
    return frame(
        f"{result.robot.name}: fleet of {plural(len(result.arms), 'arm')}",
        ", ".join(filter(None, (result.robot.title, " to ".join(numbers.period)))),
        sections,
        {"fleet": {**page_data(numbers, reports), **words}},
        (asset("page.js"), asset(*SCRIPTS, package=PACKAGE)),
        style=asset("fleet.css", package=PACKAGE),
        contents=_looks(result),
        after='<article id="one" hidden></article><div id="tip" role="status" hidden></div>',
    )


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


def _looks(result: FleetResult) -> str:
    """Arms to look at, beside the text, so that one can go from one to the next."""
    names = list(looked(result))
    items = "".join(f'<li><a href="{text(address(name))}">{text(name)}</a></li>' for name in names[:BESIDE])
    more = f'<li class="more">and {len(names) - BESIDE} more</li>' if len(names) > BESIDE else ""
    return f'<div class="looks"><p>Need attention</p><ul>{items}{more}</ul></div>' if names else ""


def table(name: str, rows: Sequence[Row], caption: str, fold: int = FOLD) -> str:
    """A table with the heads that page.yaml gives it."""
    heads = tuple(Column(**head) for head in TEXTS["columns"][name])
    return html.table(heads, rows, caption=caption, fold=fold)


def remark(name: str, kind: str = "remark") -> str:
    """A remark of page.yaml."""
    return html.paragraph(REMARKS[name], kind)


def told_from(result: FleetResult) -> str:
    """How sure a change has to be."""
    threshold = result.promise.threshold
    return "never on this fleet yet" if threshold is None else f"from {short(threshold, 2)} standard deviations"


def named(words: Sequence[str], most: int = NAMED) -> str:
    """Some of them, as in a sentence, and how many there are more."""
    return listed([*words[:most], *([f"{len(words) - most} more"] if len(words) > most else [])])


def address(arm: str) -> str:
    """Where an arm's history is on the page."""
    return f"#arm={quote(arm, safe='', errors='backslashreplace')}"


def looked(result: FleetResult) -> dict[str, list[WatchEntry]]:
    """Reasons to look at arms, by arm, the most pressing first."""
    found: dict[str, list[WatchEntry]] = {}
    for one in result.watch:
        found.setdefault(one.robot, []).append(one)
    return found


def reason(one: WatchEntry, result: FleetResult) -> str:
    """Why to look, in few words."""
    what = next((w.what for w in result.watched if w.name == one.parameter), None)
    if what is not None and one.kind != PAYLOAD:
        return what
    of_joint, of_none = TEXTS["kinds"].get(one.kind, (one.kind, one.kind))
    found: str = of_none if one.joint is None else of_joint.format(one.joint)
    return found


def verdict(numbers: FleetNumbers) -> Section:
    """How many arms need attention, and the few numbers that matter."""
    result = numbers.result
    found, counts = looked(result), result.counts
    words = f"{plural(len(found), 'arm')} {'needs' if len(found) == 1 else 'need'} attention"
    judged = result.promise.holds
    words = words if found else "no arm needs attention" if judged else "changes are not judged yet"
    stamp = f'<p class="stamp {"good" if judged and not found else "poor"}">{words}</p>'
    lost, odd = len(result.problems), result.counts.misfit_days
    rest = f"{plural(odd, 'day')} left out" if odd else "all could be read"
    tiles = [
        (str(len(result.arms)), "arms", f"{plural(len(result.dates), 'day')} with recordings"),
        (str(len(found)), "need attention", plural(len(result.watch), "reason")),
        (f"{counts.used}", "arm-days used", f"of {counts.arm_days}, {counts.kept} known from before"),
        (str(lost), "recordings not used", "see below" if lost else rest),
        (_duration(counts.seconds), "recorded", f"{short(float(counts.samples))} samples"),
        ("≤ 1", "false alarm", f"in {exact(1.0 / result.promise.asked)} arm-days, promised")
        if result.promise.holds
        else ("none", "promised", "changes are not reported"),
    ]
    promise = html.paragraph(result.promise.sentence, "remark promise")
    return Section(
        "verdict", "Verdict", _verdict(result, found), stamp + html.tiles(tiles) + promise + remark("arm_day")
    )


def _verdict(result: FleetResult, found: Mapping[str, Sequence[WatchEntry]]) -> str:
    arms = plural(len(result.arms), "arm")
    if not found and not result.promise.holds:
        return f"Nothing to look at on {arms}; whether an arm has changed is not known yet."
    if not found:
        return f"None of {arms} needs attention." if len(result.arms) != 1 else "The arm needs no attention."
    some = named([f"{arm} ({reason(reasons[0], result)})" for arm, reasons in found.items()])
    return f"{len(found)} of {arms} {'needs' if len(found) == 1 else 'need'} attention: {some}."


def watch(numbers: FleetNumbers) -> Section:
    """What to look at, the most pressing first."""
    result = numbers.result
    if not result.watch:
        return lacking("watch", "Watch list", f"Nothing to look at. {result.promise.sentence}")
    most = max((one.score or 0.0 for one in result.watch), default=0.0)
    rows = [_watch_row(one, most) for one in result.watch]
    kinds = [one.kind for one in result.watch]
    spoilt = sum(kind in ("sign", "dead", "data") for kind in kinds)
    changed = sum(kind in ("friction", "payload", "offset", "load", "reversal") for kind in kinds)
    parts = [
        (changed, "{} changed over time"),
        (spoilt, "{} of wrong recordings"),
        (kinds.count("misfit"), "{} of days that nothing explains"),
        (kinds.count("unusual"), "{} unlike the other arms"),
    ]
    said = listed([words.format(count) for count, words in parts if count])
    sentence = f"{plural(len(kinds), 'reason')} to look, the most pressing first: {said}."
    said = (
        "Click on an arm to see its history. How sure: the change divided by its error (σ, one standard deviation); "
        f"a change is reported {told_from(result)}. {REMARKS['at_the_origin'] if PAYLOAD in kinds else ''}"
    )
    body = table("watch", rows, "arms to look at", WATCHED_FOLD) + html.paragraph(said.rstrip(), "remark")
    return Section("watch", "Watch list", sentence, body)


def _watch_row(one: WatchEntry, most: float) -> Row:
    when = one.since or DASH
    if one.until and one.until != one.since:
        when += f" to {one.until}"
    if one.score is not None:
        sure = Cell(f"{short(one.score, 2)} σ", one.score, one.score / (most or 1.0))
    else:  # where a day does not fit its arm, other days may be the odd ones
        sure = Cell("not promised", 0.0) if one.kind == "misfit" else Cell("plain to see", PLAIN)
    first = (Cell(one.robot, link=address(one.robot)), Cell(when), Cell(one.what), Cell(""))
    return Row((*first, Cell(size(one), abs(one.size or 0.0)), sure))


def size(one: WatchEntry) -> str:
    """Size of a change with its 95 % interval and unit."""
    if one.size is None:
        return DASH
    if one.kind == "misfit":
        return f"{short(one.size, 2)}× the noise"
    factor, unit = (100.0, "%") if one.unit == "1" else (1.0, pretty(one.unit or ""))
    half = HALF * (one.size_sigma or 0.0)
    words = f"{plus_minus(factor * one.size, factor * half)} {unit}{' a day' if one.shape == 'ramp' else ''}"
    return f"+{words}" if one.size > 0.0 else words


def course(numbers: FleetNumbers) -> Section | None:
    """Small multiples: each watched quantity over time, all arms in one panel."""
    result = numbers.result
    if not result.watched or not result.dates:
        return None
    many = len(result.arms) > LINES
    changed = {one.parameter for one in result.watch if one.since}
    names = groups(result.watched)
    parts: list[str] = []
    folded: list[str] = []
    for name in dict.fromkeys(names):
        members = [k for k, group in enumerate(names) if group == name]
        hit = any(result.watched[k].name in changed for k in members)
        load = any(result.watched[k].name == PAYLOAD for k in members)
        part = _quantity(name, members, result.watched, _loads(result) if load else "")
        (parts if hit or len(parts) < OPEN else folded).append(part)
    kind, words = ("area", "half and 90 % of all arms") if many else ("arm", "an arm")
    legend = (
        f'<div class="legend"><span class="key {kind}"><i></i>{words}</span>'
        '<span class="key residual"><i></i>arms that have changed</span>'
        '<span class="hint">point at a line for its arm, click for its history</span></div>'
    )
    more = f"<details><summary>{len(folded)} more without changes</summary>{''.join(folded)}</details>"
    off = _off_axis(numbers)
    body = (html.paragraph(off, "remark off") if off else "") + legend + "".join(parts) + (more if folded else "")
    return Section("course", "Over time", _course(numbers, changed), body)


def _loads(result: FleetResult) -> str:
    """What is reported of masses in hands, to stand beside the picture of their course."""
    loads = [f"{one.robot} {size(one)}" for one in result.watch if one.kind == PAYLOAD and one.size is not None]
    return f"Reported: {named(loads)}. {REMARKS['at_the_origin']}" if loads else ""


def _off_axis(numbers: FleetNumbers) -> str:
    """Days that lie years from the rest, and whose they are."""
    off = numbers.off_axis
    if not off:
        return ""
    some = [f"{day} ({listed(arms[:NAMED])}{' and others' if len(arms) > NAMED else ''})" for day, arms in off.items()]
    they = "it lies" if len(off) == 1 else "they lie"
    return f"Not on the time axis, since {they} years from the rest: {named(some, OFF)}. Is a clock wrong?"


def _quantity(name: str, members: Sequence[int], watched: Sequence[WatchedQuantity], note: str = "") -> str:
    """One quantity, a panel for each joint, and a note beside them."""
    first = watched[members[0]]
    usual = max((watched[k].day_to_day or 0.0 for k in members), default=0.0)
    slopes = [slope for k in members if (slope := watched[k].per_degree) is not None]
    amount = percent(usual) if first.relative else f"{short(usual, 2)} {pretty(first.unit)}"
    remark = f"usual from day to day: {amount}"
    if slopes and abs(float(np.mean(slopes))) > TOLD_SLOPE:
        remark += f"; {short(100.0 * float(np.mean(slopes)), 2)} % per °C is taken off"
    unit = "%" if first.relative else pretty(first.unit)
    least = [one for k in members if (one := watched[k].least) is not None]
    if least:
        ends = dict.fromkeys(short((100.0 if first.relative else 1.0) * one, 2) for one in (min(least), max(least)))
        remark += f"; on these days a step of {' to '.join(ends)} {unit} is found nine times in ten"
    panels = "".join(
        f'<figure class="panel" data-watched="{k}" aria-label="{html.text(watched[k].what)}"></figure>' for k in members
    )
    head = f"{name[:1].upper()}{name[1:]}, deviation [{unit}]"
    return (
        f'<div class="quantity"><h3>{html.text(head)} <small>{html.flowing(remark)}</small></h3>'
        f'<div class="panels">{panels}{html.paragraph(note, "remark beside-panel") if note else ""}</div></div>'
    )


def _course(numbers: FleetNumbers, changed: set[str | None]) -> str:
    result = numbers.result
    watched = {one.name for one in result.watched}
    arms = {one.robot for one in result.watch if one.since and one.parameter in watched}
    start = "Every arm against its own value"
    if arms:
        count = len(changed & watched)
        quantities = "one quantity" if count == 1 else f"{count} quantities"
        start = f"{plural(len(arms), 'arm')} {'has' if len(arms) == 1 else 'have'} changed in {quantities}"
    quiet = np.array([arm.name not in arms for arm in result.arms])
    share = np.array([one.relative for one in result.watched])
    values = np.abs(numbers.deviation[quiet][:, :, share])
    values = values[np.isfinite(values)]
    if not values.size:
        return f"{start}."
    whose, reach = "of the others " if arms else "", percent(float(np.quantile(values, 0.95)))
    return f"{start}; 95 % of the daily friction values {whose}lie within ±{reach} of what is usual for the same arm."


def names_explained(result: FleetResult) -> str:
    """What the names of this fleet's parameters mean."""
    letters = {one.name.rstrip("R").rstrip("0123456789") for one in result.parameters}
    known = [words for pattern, words in TEXTS["names"] if any(re.fullmatch(pattern, one) for one in letters)]
    friction = {one.name[: -len(str(one.joint))]: one.what for one in result.watched if one.joint is not None}
    known += [f"{name} {what.partition(' of joint')[0]}" for name, what in friction.items() if name in letters]
    return f"Names: {'; '.join(known)}; the number is that of the link or joint." if known else ""


def unusual(numbers: FleetNumbers) -> Section | None:
    """The map: who is unlike the others, and who is unlike itself."""
    result = numbers.result
    if not np.isfinite(numbers.unlike_others).any():
        return None
    odd = [arm for arm in result.arms if arm.unusual]
    worst = int(np.nanargmax(numbers.unlike_others))
    parameter = result.parameters[int(np.nanargmax(np.abs(numbers.parameters[worst])))].name
    far = f"{parameter}, {numbers.unlike_others[worst]:.1f} standard deviations"
    if not odd:
        sentence = f"No arm is unlike the others in its parameters; {result.arms[worst].name} is farthest out ({far})."
    else:
        names = named([f"{arm.name} ({listed(arm.unusual[:2])})" for arm in odd])
        sentence = f"{plural(len(odd), 'arm')} {'is' if len(odd) == 1 else 'are'} unlike the others: {names}."
    body = (
        '<div class="legend"><span class="key dots arm"><i></i>an arm</span>'
        '<span class="key dots residual"><i></i>on the watch list</span></div>'
        '<figure class="scatter" id="scatter" role="group" '
        'aria-label="arms by how they differ from the others and from themselves"></figure>'
        "<h3>What makes them so <small>each column an arm, the oddest first; each row a parameter</small></h3>"
        '<figure class="heat" id="heat" role="group" aria-label="deviation of each arm’s parameters from the type">'
        '<canvas></canvas></figure><div class="legend"><span class="ramp" id="ramp"></span></div>'
    )
    body += remark("unusual")
    body += html.paragraph(names_explained(result), "remark names")
    return Section("map", "Who is unusual", sentence, body)


def arms(numbers: FleetNumbers) -> Section:
    """All arms, to be sorted and filtered."""
    result = numbers.result
    found = looked(result)
    most = [np.nanmax(v, initial=TINY) for v in (numbers.unlike_others, numbers.unlike_itself)]
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
