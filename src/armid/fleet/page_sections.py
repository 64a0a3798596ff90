"""Sections of the fleet page: each opens with a sentence made from the numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from armid.fleet.page_data import FleetNumbers, groups
from armid.reporting import html
from armid.reporting.html import Cell, Column, Row, Section, lacking
from armid.reporting.numbers import DASH, exact, listed, percent, plus_minus, short

LINES = 120  # arms up to which each is drawn; the rest of larger fleets is drawn as bands
NAMED = 5  # arms that a sentence names
OPEN = 4  # quantities that are open where nothing has changed; further ones are folded
FOLD = 20  # rows of a table from which it gets a height of its own
WATCHED_FOLD = 15  # the same of the watch list
PAYLOAD = "payload"
OFF = 3  # days off the time axis that are named
TOLD_SLOPE = 1e-3  # effect of temperature that is worth a remark [1/°C]
PLAIN = 1e9  # how sure one is of what needs no statistics
HALF = 1.96  # standard deviations of half a 95 % interval
STATES = {"look": "wants a look", "good": "good", "no data": "no data"}
#: What is wrong, in few words, by kind.
WORDS = {
    "sign": "torque of joint {} reversed",
    "dead": "torque of joint {} dead",
    "misfit": "odd days",
    "reversal": "play in joint {}?",
    "payload": "payload",
    "data": "faulty recordings",
    "unusual": "unlike the others",
}
#: Beside each picture of the mass in the hand.
AT_THE_ORIGIN = (
    "The mass in the hand is drawn as if it sat in the tool’s origin, so that its course can show another figure than "
    "the one that is told, which allows for where the mass sits."
)
#: The same where it is of no joint.
WORDS_WITHOUT_JOINT = {"sign": "torque reversed", "dead": "dead channel", "reversal": "play in a gear?"}


def counted(count: int, what: str) -> str:
    """A number and what it counts."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def pretty(unit: str) -> str:
    """A unit as people write it: kg m²."""
    return unit.replace("^2", "²").replace("^3", "³")


def told_from(data: Mapping[str, Any]) -> str:
    """How sure a change has to be."""
    if data["threshold"] is None:
        return "when there are more days"
    return f"from {short(data['threshold'], 2)} standard deviations"


def address(arm: str) -> str:
    """Where an arm's history is on the page."""
    return f"#arm={quote(arm, safe='')}"


def looked(data: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Reasons to look at arms, by arm, the most pressing first."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in data["watch"]:
        found.setdefault(one["arm"], []).append(one)
    return found


def reason(one: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Why to look, in few words."""
    what = next((w["what"] for w in data["watched"] if w["name"] == one["parameter"]), None)
    if what is not None and one["kind"] != "payload":
        return str(what)
    if one["joint"] is None and one["kind"] in WORDS_WITHOUT_JOINT:
        return WORDS_WITHOUT_JOINT[one["kind"]]
    return WORDS.get(one["kind"], one["kind"]).format(one["joint"])


def verdict(numbers: FleetNumbers) -> Section:
    """How many arms want a look, and the few numbers that matter."""
    data = numbers.data
    found, counts = looked(data), data["summary"]
    stamp = f'<p class="stamp {"poor" if found else "good"}">{_stamp(len(found))}</p>'
    lost, odd = len(data["problems"]), misfit_days(data)
    rest = f"{counted(odd, 'day')} left out" if odd else "all could be read"
    tiles = [
        (str(len(data["arms"])), "arms", f"{counted(len(data['dates']), 'day')} with recordings"),
        (str(len(found)), "want a look", counted(len(data["watch"]), "reason")),
        (f"{counts['used']}", "arm-days used", f"of {counts['arm_days']}, {counts['kept']} known from before"),
        (str(lost), "recordings not used", "see below" if lost else rest),
        (_hours(counts["seconds"]), "recorded", f"{short(float(counts['samples']))} samples"),
        ("≤ 1", "false alarm", f"in {exact(1.0 / data['false_alarms'])} arm-days, promised"),
    ]
    remark = "An arm-day is one arm on one day: ten arms on five days are fifty arm-days."
    body = f"{stamp}{html.tiles(tiles)}{html.paragraph(remark, 'remark')}"
    return Section("verdict", "Verdict", _verdict(data, found), body)


def misfit_days(data: Mapping[str, Any]) -> int:
    """Days that were left out because they fit nothing; 0 where it is not known."""
    return int(data["summary"].get("misfit_days") or 0)


def _hours(seconds: float) -> str:
    return f"{short(seconds / 3600.0, 3)} h" if seconds >= 3600.0 else f"{short(seconds / 60.0, 2)} min"


def _stamp(count: int) -> str:
    return "no arm needs a look" if not count else "1 arm wants a look" if count == 1 else f"{count} arms want a look"


def _verdict(data: Mapping[str, Any], found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    arms = counted(len(data["arms"]), "arm")
    if not found:
        return f"None of {arms} needs a look." if len(data["arms"]) != 1 else "The arm needs no look."
    first = [f"{arm} ({reason(reasons[0], data)})" for arm, reasons in list(found.items())[:NAMED]]
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    return f"{len(found)} of {arms} {'wants' if len(found) == 1 else 'want'} a look: {listed([*first, *more])}."


def watch(numbers: FleetNumbers) -> Section:
    """What to look at, the most pressing first."""
    data = numbers.data
    if not data["watch"]:
        rate = exact(1.0 / data["false_alarms"])
        words = f"Nothing to look at. A change would be told with at most one false alarm in {rate} arm-days."
        return lacking("watch", "Watch list", words)
    columns = (
        Column("arm", words=True),
        Column("since", "", "first day on which it is so", words=True),
        Column("what", "", "what is so, or has changed", words=True),
        Column("course", "", "the quantity over all days, against the arm’s own value", words=True),
        Column("size ± 95 %", "", "of a step, or per day of a ramp", words=True),
        Column("how sure", "", f"a change is told {told_from(data)}"),
    )
    most = max((one["score"] or 0.0 for one in data["watch"]), default=0.0)
    rows = [_watch_row(one, most) for one in data["watch"]]
    table = html.table(columns, rows, caption="arms to look at", fold=WATCHED_FOLD)
    kinds = [one["kind"] for one in data["watch"]]
    spoilt = sum(kind in ("sign", "dead", "data") for kind in kinds)
    changed = sum(kind in ("friction", "payload", "offset", "load", "reversal") for kind in kinds)
    parts = [
        (changed, "{} changed over time"),
        (spoilt, "{} of wrong recordings"),
        (kinds.count("misfit"), "{} of days that nothing explains"),
        (kinds.count("unusual"), "{} unlike the other arms"),
    ]
    said = listed([words.format(count) for count, words in parts if count])
    sentence = f"{counted(len(kinds), 'reason')} to look, the most pressing first: {said}."
    remark = (
        "Click on an arm to see its history. How sure: the change divided by its error (σ, one standard deviation); "
        f"a change is told {told_from(data)}."
    )
    if PAYLOAD in kinds:
        remark += f" {AT_THE_ORIGIN}"
    return Section("watch", "Watch list", sentence, table + html.paragraph(remark, "remark"))


def _watch_row(one: Mapping[str, Any], most: float) -> Row:
    sentence = one["sentence"].replace(f" since {one['since']}", "", 1) if one["since"] else one["sentence"]
    when = one["since"] or DASH
    if one["until"] and one["until"] != one["since"]:
        when += f" to {one['until']}"
    score = one["score"]
    sure = Cell("plain to see", PLAIN) if score is None else Cell(f"{short(score, 2)} σ", score, score / (most or 1.0))
    return Row(
        (
            Cell(one["arm"], link=address(one["arm"])),
            Cell(when),
            Cell(sentence),
            Cell(""),
            Cell(size(one), abs(one["size"] or 0.0)),
            sure,
        )
    )


def size(one: Mapping[str, Any]) -> str:
    """Size of a change with its 95 % interval and unit."""
    if one["size"] is None:
        return DASH
    if one["kind"] == "misfit":
        return f"{short(one['size'], 2)}× the noise"
    factor, unit = (100.0, "%") if one["unit"] == "1" else (1.0, pretty(one["unit"] or ""))
    half = HALF * (one["size_sigma"] or 0.0)
    words = f"{plus_minus(factor * one['size'], factor * half)} {unit}{' a day' if one['shape'] == 'ramp' else ''}"
    return f"+{words}" if one["size"] > 0.0 else words


def course(numbers: FleetNumbers) -> Section | None:
    """Small multiples: each watched quantity over time, all arms in one panel."""
    data = numbers.data
    if not data["watched"] or not data["dates"]:
        return None
    many = len(data["arms"]) > LINES
    changed = {one["parameter"] for one in data["watch"] if one["since"]}
    names = groups(data["watched"])
    parts: list[str] = []
    folded: list[str] = []
    for name in dict.fromkeys(names):
        members = [k for k, group in enumerate(names) if group == name]
        hit = any(data["watched"][k]["name"] in changed for k in members)
        part = _quantity(name, members, data["watched"], _loads(data) if _is_load(data, members) else "")
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


def _is_load(data: Mapping[str, Any], members: Sequence[int]) -> bool:
    return any(data["watched"][k]["name"] == PAYLOAD for k in members)


def _loads(data: Mapping[str, Any]) -> str:
    """What is told of masses in hands, to stand beside the picture of their course."""
    told = [f"{one['arm']} {size(one)}" for one in data["watch"] if one["kind"] == PAYLOAD and one["size"] is not None]
    if not told:
        return ""
    more = [f"{len(told) - NAMED} more"] if len(told) > NAMED else []
    return f"Told: {listed([*told[:NAMED], *more])}. {AT_THE_ORIGIN}"


def _off_axis(numbers: FleetNumbers) -> str:
    """Days that lie years from the rest, and whose they are."""
    off = numbers.off_axis
    if not off:
        return ""
    some = [f"{day} ({listed(arms[:NAMED])}{' and others' if len(arms) > NAMED else ''})" for day, arms in off.items()]
    more = [f"{len(off) - OFF} more"] if len(off) > OFF else []
    are = "lies" if len(off) == 1 else "lie"
    return (
        f"Not on the time axis, since {'it' if len(off) == 1 else 'they'} {are} years from the rest: "
        f"{listed([*some[:OFF], *more])}. Is a clock wrong?"
    )


def _quantity(name: str, members: Sequence[int], watched: Sequence[Mapping[str, Any]], note: str = "") -> str:
    """One quantity, a panel for each joint, and a note beside them."""
    first = watched[members[0]]
    usual = max((watched[k]["day_to_day"] or 0.0 for k in members), default=0.0)
    slopes = [watched[k]["per_degree"] for k in members if watched[k]["per_degree"] is not None]
    amount = percent(usual) if first["relative"] else f"{short(usual, 2)} {pretty(first['unit'])}"
    remark = f"usual from day to day: {amount}"
    if slopes and abs(float(np.mean(slopes))) > TOLD_SLOPE:
        remark += f"; {short(100.0 * float(np.mean(slopes)), 2)} % per °C is taken off"
    panels = "".join(
        f'<figure class="panel" data-watched="{k}" aria-label="{html.text(watched[k]["what"])}"></figure>'
        for k in members
    )
    unit = "%" if first["relative"] else pretty(first["unit"])
    head = f"{name[:1].upper()}{name[1:]}, deviation [{unit}]"
    return (
        f'<div class="quantity"><h3>{html.text(head)} <small>{html.text(remark)}</small></h3>'
        f'<div class="panels">{panels}{html.paragraph(note, "remark beside-panel") if note else ""}</div></div>'
    )


def _course(numbers: FleetNumbers, changed: set[Any]) -> str:
    data = numbers.data
    watched = {one["name"] for one in data["watched"]}
    arms = {one["arm"] for one in data["watch"] if one["since"] and one["parameter"] in watched}
    start = "Every arm against its own value"
    if arms:
        some = counted(len(arms), "arm")
        start = f"{some} {'has' if len(arms) == 1 else 'have'} changed in {listed_quantities(len(changed & watched))}"
    quiet = np.array([arm["name"] not in arms for arm in data["arms"]])
    share = np.array([one["relative"] for one in data["watched"]])
    values = np.abs(numbers.deviation[quiet][:, :, share])
    values = values[np.isfinite(values)]
    if not values.size:
        return f"{start}."
    whose, reach = "of the others " if arms else "", percent(float(np.quantile(values, 0.95)))
    return f"{start}; 95 % of the daily friction values {whose}lie within ±{reach} of what is usual for the same arm."


#: What parameters are called, in the order in which they are explained.
NAMES = (
    ("m", "m mass"),
    ("mx", "mx, my, mz mass times distance of its centre"),
    ("I", "Ixx … Izz moments of inertia"),
    ("Im", "Im inertia of the rotor"),
    ("fv", "fv viscous friction"),
    ("fc", "fc Coulomb (dry) friction"),
    ("fo", "fo offset of the torque"),
    ("fl", "fl friction that grows with the load"),
    ("fr", "fr root-law friction"),
    ("fe", "fe Stribeck friction"),
    ("fa", "fa asymmetric friction"),
)
_NAME = re.compile(r"^(?:(I)[xyz]{2}|(m)[xyz]|(Im|m|f[a-z]))\w*$")


def names_explained(data: Mapping[str, Any]) -> str:
    """What the names of this fleet's parameters mean."""
    kinds = set()
    for one in data["parameters"]:
        found = _NAME.match(one["name"])
        if found:
            kinds.add("mx" if found[2] else found[1] or found[3])
    known = [words for kind, words in NAMES if kind in kinds]
    if not known:
        return ""
    return f"Names: {'; '.join(known)}; the number is that of the link or joint."


def listed_quantities(count: int) -> str:
    """A number of quantities."""
    return "one quantity" if count == 1 else f"{count} quantities"


def unusual(numbers: FleetNumbers) -> Section | None:
    """The map: who is unlike the others, and who is unlike itself."""
    data = numbers.data
    if not np.isfinite(numbers.unlike_others).any():
        return None
    odd = [arm for arm in data["arms"] if arm["unusual"]]
    worst = int(np.nanargmax(numbers.unlike_others))
    parameter = data["parameters"][int(np.nanargmax(np.abs(numbers.parameters[worst])))]["name"]
    far = f"{parameter}, {numbers.unlike_others[worst]:.1f} standard deviations"
    if not odd:
        sentence = (
            f"No arm is unlike the others in its parameters; {data['arms'][worst]['name']} is farthest out ({far})."
        )
    else:
        names = [f"{arm['name']} ({listed(arm['unusual'][:2])})" for arm in odd[:NAMED]]
        more = [f"{len(odd) - NAMED} more"] if len(odd) > NAMED else []
        some = f"{counted(len(odd), 'arm')} {'is' if len(odd) == 1 else 'are'}"
        sentence = f"{some} unlike the others: {listed([*names, *more])}."
    body = (
        '<div class="legend"><span class="key dots arm"><i></i>an arm</span>'
        '<span class="key dots residual"><i></i>on the watch list</span></div>'
        '<figure class="scatter" id="scatter" role="group" '
        'aria-label="arms by how they differ from the others and from themselves"></figure>'
        "<h3>What makes them so <small>each column an arm, the oddest first; each row a parameter</small></h3>"
        '<figure class="heat" id="heat" role="group" aria-label="deviation of each arm’s parameters from the type">'
        '<canvas></canvas></figure><div class="legend"><span class="ramp" id="ramp"></span></div>'
    )
    body += html.paragraph(
        "σ is one standard deviation: of the usual differences between arms (unlike the others), or of what is usual "
        "for the same arm from day to day (unlike itself).",
        "remark",
    )
    body += html.paragraph(names_explained(data), "remark names")
    return Section("map", "Who is unusual", sentence, body)
