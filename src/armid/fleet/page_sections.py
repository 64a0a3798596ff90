"""Sections of the fleet page: each opens with a sentence made from the numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote

import numpy as np

from armid.files import parse_yaml
from armid.fleet.page_data import FleetNumbers, groups
from armid.fleet.result import FleetResult, WatchedQuantity, WatchEntry
from armid.fleet.usual import PAYLOAD
from armid.reporting import html
from armid.reporting.html import Cell, Column, Row, Section, lacking
from armid.reporting.numbers import DASH, exact, listed, percent, plus_minus, pretty, short
from armid.reporting.page import asset
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
HALF = 1.96  # standard deviations of half a 95 % interval
TEXTS = parse_yaml(asset("page.yaml", package=PACKAGE), "page.yaml")
STATES, REMARKS = TEXTS["states"], TEXTS["remarks"]


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
    """How many arms want a look, and the few numbers that matter."""
    result = numbers.result
    found, counts = looked(result), result.counts
    words = f"{plural(len(found), 'arm')} {'wants' if len(found) == 1 else 'want'} a look"
    judged = result.promise.holds
    words = words if found else "no arm needs a look" if judged else "changes are not judged yet"
    stamp = f'<p class="stamp {"good" if judged and not found else "poor"}">{words}</p>'
    lost, odd = len(result.problems), result.counts.misfit_days
    rest = f"{plural(odd, 'day')} left out" if odd else "all could be read"
    tiles = [
        (str(len(result.arms)), "arms", f"{plural(len(result.dates), 'day')} with recordings"),
        (str(len(found)), "want a look", plural(len(result.watch), "reason")),
        (f"{counts.used}", "arm-days used", f"of {counts.arm_days}, {counts.kept} known from before"),
        (str(lost), "recordings not used", "see below" if lost else rest),
        (_hours(counts.seconds), "recorded", f"{short(float(counts.samples))} samples"),
        ("≤ 1", "false alarm", f"in {exact(1.0 / result.promise.asked)} arm-days, promised")
        if result.promise.holds
        else ("none", "promised", "changes are not reported"),
    ]
    promise = html.paragraph(result.promise.sentence, "remark promise")
    return Section(
        "verdict", "Verdict", _verdict(result, found), stamp + html.tiles(tiles) + promise + remark("arm_day")
    )


def _hours(seconds: float) -> str:
    return f"{short(seconds / 3600.0, 3)} h" if seconds >= 3600.0 else f"{short(seconds / 60.0, 2)} min"


def _verdict(result: FleetResult, found: Mapping[str, Sequence[WatchEntry]]) -> str:
    arms = plural(len(result.arms), "arm")
    if not found and not result.promise.holds:
        return f"No recording of {arms} is wrong; whether an arm has changed cannot be told yet."
    if not found:
        return f"None of {arms} needs a look." if len(result.arms) != 1 else "The arm needs no look."
    some = named([f"{arm} ({reason(reasons[0], result)})" for arm, reasons in found.items()])
    return f"{len(found)} of {arms} {'wants' if len(found) == 1 else 'want'} a look: {some}."


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
    score = one.score
    sure = Cell("plain to see", PLAIN) if score is None else Cell(f"{short(score, 2)} σ", score, score / (most or 1.0))
    return Row(
        (
            Cell(one.robot, link=address(one.robot)),
            Cell(when),
            Cell(one.what),
            Cell(""),
            Cell(size(one), abs(one.size or 0.0)),
            sure,
        )
    )


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
        part = _quantity(name, members, result.watched, _loads(result) if _is_load(result, members) else "")
        (parts if hit or len(parts) < OPEN else folded).append(part)
    keys = (
        '<span class="key area"><i></i>half and 90 % of all arms</span>'
        if many
        else '<span class="key arm"><i></i>an arm</span>'
    )
    legend = (
        f'<div class="legend">{keys}<span class="key residual"><i></i>arms that have changed</span>'
        '<span class="hint">point at a line for its arm, click for its history</span></div>'
    )
    more = f"<details><summary>{len(folded)} more without changes</summary>{''.join(folded)}</details>"
    off = _off_axis(numbers)
    body = (html.paragraph(off, "remark off") if off else "") + legend + "".join(parts) + (more if folded else "")
    return Section("course", "Over time", _course(numbers, changed), body)


def _is_load(result: FleetResult, members: Sequence[int]) -> bool:
    return any(result.watched[k].name == PAYLOAD for k in members)


def _loads(result: FleetResult) -> str:
    """What is told of masses in hands, to stand beside the picture of their course."""
    told = [f"{one.robot} {size(one)}" for one in result.watch if one.kind == PAYLOAD and one.size is not None]
    return f"Told: {named(told)}. {REMARKS['at_the_origin']}" if told else ""


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
    panels = "".join(
        f'<figure class="panel" data-watched="{k}" aria-label="{html.text(watched[k].what)}"></figure>' for k in members
    )
    unit = "%" if first.relative else pretty(first.unit)
    head = f"{name[:1].upper()}{name[1:]}, deviation [{unit}]"
    return (
        f'<div class="quantity"><h3>{html.text(head)} <small>{html.text(remark)}</small></h3>'
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
