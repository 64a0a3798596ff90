"""What the model is used for: the payload it finds, controllers that follow a path, files for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from armid.arrays import Array
from armid.figures import Block, Figure, Panel, line, thinned
from armid.notes import as_note
from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, Section, bullets, table
from armid.reporting.numbers import exact, listed, plus_minus, pretty, short, spaced

ROWS = 800  # of a curve


class Measure(NamedTuple):
    """A figure of a run: where it lies in the data, its name, and the unit it is shown in."""

    key: str
    name: str
    unit: str
    factor: float


MEASURES = (
    Measure("max_joint_error", "max joint error", "°", 180.0 / math.pi),
    Measure("mean_cartesian_error", "mean Cartesian error", "mm", 1e3),
    Measure("max_cartesian_error", "max Cartesian error", "mm", 1e3),
    Measure("feedback_share", "feedback", "% of torque", 1e2),
)


def payload(evidence: Evidence) -> Section | None:
    """A table of the load's quantities with intervals."""
    data = evidence.payload
    if not data:
        return None
    entries = [entry for entry in data.get("quantities") or () if isinstance(entry, Mapping) and "value" in entry]
    rows = [_payload_row(entry) for entry in entries if entry["value"] is not None]
    columns = [Column("quantity", words=True), Column("value ± 95 %"), Column("unit", words=True)]
    body = table(columns, rows, caption="the load") if rows else ""
    body += bullets(spaced(str(as_note(words))) for words in data.get("reasons") or ())
    return Section("payload", "Payload", _payload_sentence(data, entries), body)


def _payload_sentence(data: Mapping[str, Any], entries: list[Mapping[str, Any]]) -> str:
    known = next((entry for entry in entries if entry.get("name") in ("m", "mass")), None)
    if known is not None and isinstance(known.get("sigma"), float):
        mass = f"{plus_minus(float(known['value']), 1.96 * known['sigma'])} kg"
    elif isinstance(data.get("mass"), int | float):
        mass = f"{short(float(data['mass']))} kg"
    else:
        return "A load was identified; its mass is not stated."
    verdict = data.get("verdict")
    return f"The arm carries {mass}{f'; the estimate is {verdict}' if isinstance(verdict, str) else ''}."


def _payload_row(entry: Mapping[str, Any]) -> Row:
    value, sigma = float(entry["value"]), entry.get("sigma")
    shown = short(value) if sigma is None else plus_minus(value, 1.96 * float(sigma))
    cells = (Cell(str(entry.get("name", "?")), code=True), Cell(shown, value), Cell(pretty(str(entry.get("unit", "")))))
    return Row(cells, "" if entry.get("determined", True) else "the data do not determine it")


def tracking(evidence: Evidence) -> Section | None:
    """A table of controllers, and the tool's distance from the path over time."""
    data = evidence.tracking
    if not data:
        return None
    runs = runs_of(data)
    there = [measure for measure in MEASURES if any(_number(run.get(measure.key)) for run in runs)]
    parts: list[str | Figure] = []
    if there:
        columns = [Column("controller", words=True), *(Column(m.name, m.unit) for m in there)]
        parts.append(
            table(columns, [_tracking_row(run, there, runs) for run in runs], caption="errors of each controller")
        )
    if any(_series(run) is not None for run in runs):
        parts.append(_figure(runs))
    parts.append(bullets(str(note) for note in data.get("notes") or ()))
    return Section("tracking", "Tracking", _tracking_sentence(data, runs), parts)


def runs_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The controllers: a list of mappings, or a mapping from their names."""
    found = data.get("runs") or data.get("controllers") or ()
    if isinstance(found, Mapping):
        return [{"title": name, **run} for name, run in found.items() if isinstance(run, Mapping)]
    return [dict(run) for run in found if isinstance(run, Mapping)]


def _name(run: Mapping[str, Any]) -> str:
    return str(run.get("title") or run.get("controller") or run.get("name") or "controller")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _tracking_row(run: Mapping[str, Any], measures: Sequence[Measure], runs: Sequence[Mapping[str, Any]]) -> Row:
    cells, mark = [Cell(_name(run))], ""
    for measure in measures:
        value, others = run.get(measure.key), [float(r[measure.key]) for r in runs if _number(r.get(measure.key))]
        if value is None or not _number(value):
            cells.append(Cell("broken off" if run.get("completed") is False else "–", float("nan")))
            continue
        most = max(others)
        cells.append(
            Cell(short(measure.factor * float(value)), float(value), float(value) / most if most > 0 else None)
        )
        if measure is measures[0] and len(others) > 1 and float(value) == most:
            mark = "the worst controller"
    return Row(tuple(cells), mark or ("broken off" if run.get("completed") is False else ""))


def _tracking_sentence(data: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
    path = f" on {data['path']}" if isinstance(data.get("path"), str) and data["path"] else ""
    for measure in (MEASURES[1], MEASURES[0]):
        known = [run for run in runs if _number(run.get(measure.key))]
        if known:
            return _compared(measure, known, path)
    return f"{len(runs)} controllers followed a path{path}; no errors were recorded."


def _compared(measure: Measure, known: Sequence[Mapping[str, Any]], path: str) -> str:
    """Computed torque with the identified model against PID alone, then the nominal model; else the best one."""

    def shown(run: Mapping[str, Any]) -> str:
        return f"{short(measure.factor * float(run[measure.key]))} {measure.unit}"

    def kind(run: Mapping[str, Any]) -> str:
        nominal = "nominal" in _name(run) or run.get("controller") == "nominal"
        return "nominal" if nominal else str(run.get("controller"))

    first = {kind(run): run for run in reversed(known)}
    best = first.get("computed-torque") or min(known, key=lambda run: float(run[measure.key]))
    words = f"{_name(best)[:1].upper()}{_name(best)[1:]}: {measure.name} {shown(best)}{path}"
    others = [first[name] for name in ("pid", "nominal") if name in first and first[name] is not best]
    if not others and (worst := max(known, key=lambda run: float(run[measure.key]))) is not best:
        others = [worst]
    ratios = [float(run[measure.key]) / max(float(best[measure.key]), 1e-300) for run in others]
    against = [f"{shown(run)} ({short(r, 2)}×) with {_name(run)}" for run, r in zip(others, ratios, strict=True)]
    return f"{words}, against {listed(against)}." if against else f"{words}."


def _series(run: Mapping[str, Any]) -> tuple[Array, Array] | None:
    """Times [s] and the tool's distance from the path [m]."""
    series = run.get("series") or {}
    if not series.get("time") or len(series["time"]) != len(series.get("tool_error") or ()):
        return None
    return np.asarray(series["time"], dtype=float), np.asarray(series["tool_error"], dtype=float)


def _figure(runs: Sequence[Mapping[str, Any]]) -> Figure:
    curves = [(run, found) for run in runs if (found := _series(run)) is not None]
    whole = [found for run, found in curves if run.get("completed", True)] or [found for _, found in curves]
    most = max(float(np.max(1e3 * distance)) for _, distance in whole)  # a run that was broken off leaves the panel
    end = max(float(time[-1]) for _, (time, _) in curves)
    blocks = []
    for run, (time, distance) in curves:
        rows = thinned(len(time), ROWS)
        mean = run.get("mean_cartesian_error")
        panel = Panel(
            "mm", [line("residual", time[rows], 1e3 * distance[rows], name="distance")], y_range=[0.0, 1.06 * most],
            x_range=[0.0, end], x_title="time [s]",
            corner=f"mean {short(1e3 * float(mean))} mm" if mean is not None and _number(mean) else "",
        )  # fmt: skip
        blocks.append(Block(_name(run), [[panel]], (80.0,)))
    caption = f"distance of the tool from the path over {exact(end)} s, one panel per controller"
    return Figure("tracking", blocks, caption, {"residual": "distance of the tool from the path"})


def exports(evidence: Evidence) -> Section | None:
    """A row per file."""
    if not evidence.exports:
        return None
    columns = [
        Column("file", words=True),
        Column("format", words=True),
        Column("differs by", "of the torque's range", "largest difference from the fit on random states"),
        Column("proved with", words=True),
        Column("cannot hold", words=True),
    ]
    body = table(columns, [_exports_row(entry) for entry in evidence.exports], caption="exported files")
    return Section("exports", "Exports", _exports_sentence(evidence.exports), body)


def _exports_sentence(entries: tuple[Mapping[str, Any], ...]) -> str:
    kept = [entry for entry in entries if "reason" not in entry]
    if not kept:
        return "No file was written: none gave the fit’s torque when read back."
    names = listed([str(entry.get("format") or entry.get("file") or "?") for entry in kept])
    errors = [float(error) for entry in kept if (error := _proof(entry).get("error")) is not None]
    start = f"The identified model was written for other programs as {names}"
    if not errors:
        return f"{start}; no proof of the files is recorded."
    proved = "every file" if len(errors) == len(kept) else f"{len(errors)} of {len(kept)} files"
    words = f"{start}; {proved} gave the fit’s torque when read back, to {short(max(errors), 2)} of its range"
    refused = listed([str(entry.get("file", "?")) for entry in entries if "reason" in entry])
    return f"{words}; {refused} did not and was not kept." if refused else f"{words}."


def _proof(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    proof = entry.get("proof")
    return proof if isinstance(proof, Mapping) else {}


def _exports_row(entry: Mapping[str, Any]) -> Row:
    if "reason" in entry:
        name, form = Cell(str(entry.get("file", "?")), code=True), Cell(str(entry.get("format", "–")))
        return Row((name, form, Cell("–", float("nan")), Cell("not kept"), Cell(str(entry["reason"]))), "not kept")
    proof = _proof(entry)
    error = proof.get("error")
    lost = [str(row.get("what", "")) for row in entry.get("cannot_hold") or () if isinstance(row, Mapping)]
    cells = (
        Cell(str(entry.get("file", "?")), code=True),
        Cell(str(entry.get("format", "–"))),
        Cell(short(error, 2), float("nan") if error is None else float(error)),
        Cell(str(proof.get("against") or "–")),
        Cell("; ".join(lost) or ("nothing is lost" if "cannot_hold" in entry else "–")),
    )
    return Row(cells)
