"""Tables of the fleet page: all arms, recordings that were not used, what is usual, where it all comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armid.fleet.page_data import FleetNumbers, lost_recordings
from armid.fleet.page_sections import (
    FOLD,
    HALF,
    STATES,
    address,
    counted,
    looked,
    misfit_days,
    names_explained,
    pretty,
    reason,
    told_from,
)
from armid.reporting import html
from armid.reporting.html import Cell, Column, Row, Section, lacking
from armid.reporting.numbers import DASH, exact, listed, percent, plus_minus, short

CLEAR = 3.0  # standard deviations that make a mean differ from zero


def arms(numbers: FleetNumbers) -> Section:
    """All arms, to be sorted and filtered."""
    data = numbers.data
    columns = (
        Column("arm", words=True),
        Column("state", words=True),
        Column("why", "", "why to look at it", words=True),
        Column("days", "used", "days that count"),
        Column("recorded", "h", "time that was recorded"),
        Column("noise", "N m", "rms of the residuals, the largest of all joints"),
        Column("unlike others", "σ", "largest deviation of a parameter from the type, in standard deviations"),
        Column("in", "", "the parameter that deviates most", words=True),
        Column("unlike itself", "σ", "largest deviation of a day from the arm’s own value, in standard deviations"),
    )
    found = looked(data)
    most = [np.nanmax(v) if np.isfinite(v).any() else 1.0 for v in (numbers.unlike_others, numbers.unlike_itself)]
    rank = {name: place for place, name in enumerate(found)}  # those to look at first, as in the watch list
    order = sorted(range(len(data["arms"])), key=lambda index: rank.get(data["arms"][index]["name"], len(rank)))
    rows = [_arm_row(numbers, index, found, most) for index in order]
    states = [arm["state"] for arm in data["arms"]]
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
    sentence = f"{counted(len(states), 'arm')}: {counts}."
    table = html.table(columns, rows, caption="all arms", fold=FOLD)
    nothing = '<p id="nothing" role="status" hidden>No arm matches.</p>'
    remark = (
        "Unlike others: how far its oddest parameter lies from that of the type. Unlike itself: how far its oddest day "
        "lies from what is usual for this arm. Both in σ, standard deviations of what is usual."
    )
    body = f"{controls}{table}{nothing}{html.paragraph(remark, 'remark')}"
    return Section("arms", "All arms", sentence, body)


def _arm_row(numbers: FleetNumbers, index: int, found: Mapping[str, Any], most: list[Any]) -> Row:
    arm = numbers.data["arms"][index]
    others, itself = float(numbers.unlike_others[index]), float(numbers.unlike_itself[index])
    noise = max((value for value in arm["noise"] or [] if value is not None), default=float("nan"))
    odd = ""
    if np.isfinite(others):
        odd = numbers.data["parameters"][int(np.nanargmax(np.abs(numbers.parameters[index])))]["name"]
    reasons = found.get(arm["name"], [])
    cells = (
        Cell(arm["name"], link=address(arm["name"])),
        Cell(STATES[arm["state"]]),
        Cell(listed(list(dict.fromkeys(reason(one, numbers.data) for one in reasons)))),
        Cell(str(arm["days"]), float(arm["days"])),
        Cell(short(arm["seconds"] / 3600.0, 2), float(arm["seconds"])),
        Cell(short(noise, 2), noise),
        Cell(DASH if not np.isfinite(others) else f"{others:.1f}", others, others / most[0]),
        Cell(odd or DASH, code=bool(odd)),
        Cell(DASH if not np.isfinite(itself) else f"{itself:.1f}", itself, itself / most[1]),
    )
    return Row(cells, "; ".join(one["sentence"] for one in reasons))


def problems(numbers: FleetNumbers) -> Section:
    """Recordings that were not used, and why."""
    found, odd = numbers.data["problems"], misfit_days(numbers.data)
    left = f"{counted(odd, 'day')} left out because {'it fits' if odd == 1 else 'they fit'} nothing"
    if not found:
        said = f"{left}; see the watch list." if odd else "Every recording could be used."
        return lacking("problems", "Recordings not used", said)
    columns = (
        Column("arm", words=True),
        Column("day", words=True),
        Column("file", words=True),
        Column("why", words=True),
    )
    known = {arm["name"] for arm in numbers.data["arms"]}
    rows = [
        Row(
            (
                Cell(one.robot, link=address(one.robot) if one.robot in known else ""),
                Cell(one.when),
                Cell(one.what),
                Cell(one.reason),
            )
        )
        for one in lost_recordings(numbers.data)
    ]
    arms = {one["robot"] for one in found}
    days = {(one["robot"], one["date"]) for one in found}
    sentence = (
        f"{counted(len(found), 'recording')} of {counted(len(arms), 'arm')} on {counted(len(days), 'arm-day')} "
        "could not be used; all other recordings are unaffected."
    )
    sentence += f" {left}." if odd else ""
    return Section(
        "problems", "Recordings not used", sentence, html.table(columns, rows, caption="recordings not used", fold=FOLD)
    )


def usual(numbers: FleetNumbers) -> Section | None:
    """What the arms have in common: parameters of the type, and what changes from day to day."""
    data = numbers.data
    if not data["parameters"]:
        return None
    told = [one for one in data["parameters"] if one["spread"] is not None]
    names = html.paragraph(names_explained(data), "remark names")
    body = f"<h3>Parameters of the type</h3>{names}{_parameters(data)}"
    if data["watched"]:
        body += f"<h3>What is watched</h3>{_watched(data)}"
    if told:
        shares = [value for value in map(_share, told) if np.isfinite(value)]
        middle = f"; arms differ by {percent(float(np.median(shares)))} in the median one" if shares else ""
        sentence = f"{len(data['parameters'])} parameters, learnt from all arms{middle}."
    else:
        sentence = f"{len(data['parameters'])} parameters; there are too few arms to tell how far arms differ."
    return Section("usual", "What is usual", sentence, body)


def _parameters(data: Mapping[str, Any]) -> str:
    columns = (
        Column("parameter", words=True),
        Column("mean ± 95 %", "", "of the type"),
        Column("between arms", "", "standard deviation between arms"),
        Column("share", "", "of the mean"),
        Column("unit", words=True),
        Column("stands for", words=True),
    )
    shares = [_share(one) for one in data["parameters"]]
    largest = max((value for value in shares if np.isfinite(value)), default=1.0)
    rows = [
        Row(
            (
                Cell(one["name"], code=True),
                Cell(_mean(one), float("nan") if one["mean"] is None else one["mean"]),
                Cell(short(one["spread"], 2), float("nan") if one["spread"] is None else one["spread"]),
                Cell(percent(value), value, min(value, 1.0) / min(largest, 1.0)),
                Cell(pretty(one["unit"]).replace(" ", "\u00a0")),
                Cell(one["expression"], code=True),
            )
        )
        for one, value in zip(data["parameters"], shares, strict=True)
    ]
    return html.table(columns, rows, caption="parameters of the type", fold=FOLD)


def _mean(one: Mapping[str, Any]) -> str:
    """Mean of the type with its interval; a dash where no arm's motion shows the parameter."""
    known = one["mean"] is not None and one["sigma"] is not None
    return plus_minus(one["mean"], HALF * one["sigma"]) if known else "–"


def _share(one: Mapping[str, Any]) -> float:
    """Spread over mean; NaN where the mean cannot be told from zero, or the spread is not known."""
    if any(one[key] is None for key in ("spread", "mean", "sigma")):
        return float("nan")
    told = abs(one["mean"]) > CLEAR * one["sigma"]
    return abs(one["spread"] / one["mean"]) if told and one["mean"] else float("nan")


def _watched(data: Mapping[str, Any]) -> str:
    columns = (
        Column("quantity", words=True),
        Column("name", words=True),
        Column("from day to day", "", "standard deviation of usual changes"),
        Column("per °C", "", "mean effect of temperature"),
    )
    rows = []
    for one in data["watched"]:
        change, slope = one["day_to_day"], one["per_degree"]
        unit = " %" if one["relative"] else f" {pretty(one['unit'])}"
        factor = 100.0 if one["relative"] else 1.0
        rows.append(
            Row(
                (
                    Cell(one["what"]),
                    Cell(one["name"], code=True),
                    Cell(DASH if change is None else short(factor * change, 2) + unit, change or 0.0),
                    Cell(DASH if slope is None else short(100.0 * slope, 2) + " %", slope or 0.0),
                )
            )
        )
    return html.table(columns, rows, caption="what is watched", fold=FOLD)


def provenance(numbers: FleetNumbers) -> Section:
    """Where it all comes from."""
    data, counts = numbers.data, numbers.data["summary"]
    dates, off = data["dates"], len(numbers.off_axis)
    apart = f", {off} of them years apart" if off else ""
    new = counts["arm_days"] - counts["kept"]
    facts = (
        ("robot", f"{data['robot']['name']}, {data['robot']['source']}"),
        ("joints", ", ".join(data["robot"]["joints"])),
        ("days", f"{len(dates)}, {' to '.join(numbers.period)}{apart}" if dates else "none"),
        ("arm-days", f"{counts['arm_days']}; {counts['used']} used, {counts['kept']} known from an earlier run"),
        ("left out", f"{counted(misfit_days(data), 'day')} that fit nothing" if misfit_days(data) else ""),
        ("samples", f"{counts['samples']}"),
        ("changes are told", told_from(data)),
        ("false alarms", f"at most {exact(data['false_alarms'])} per arm and day, all quantities together"),
        ("drawn", "" if numbers.together == 1 else f"means over {numbers.together} days"),
        ("made by", f"armid {data['armid']}, {data['format']}"),
    )
    took = _duration(counts["work_s"])
    made = f"Made from {counted(counts['arm_days'], 'arm-day')}, {new} of them new, in {took}"
    sentence = f"{made}; all numbers are in fleet.json."
    return Section("provenance", "Provenance", sentence, html.facts(facts))


def _duration(seconds: float) -> str:
    if seconds < 120.0:
        return f"{short(seconds, 2)} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
