"""What the model is used for: the payload it finds, controllers that follow a path, files for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from armid.figures import Block, Figure, Panel, line, thinned
from armid.files import checked
from armid.notes import as_note
from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, Section, bullets, table
from armid.reporting.numbers import exact, listed, plus_minus, pretty, short, spaced

ROWS = 800  # of a curve


@dataclass(frozen=True)
class LoadQuantity:
    """One quantity of a payload, as `armid payload` writes it."""

    name: str
    value: float | None = None
    sigma: float | None = None
    unit: str = ""
    determined: bool = True


@dataclass(frozen=True)
class LoadEntries:
    """What a report reads of a payload's file."""

    verdict: str | None = None
    reasons: tuple[Any, ...] = ()
    quantities: tuple[LoadQuantity, ...] = ()


@dataclass(frozen=True)
class TrackedSeries:
    """Times [s] and the tool's distance from the path [m]."""

    time: tuple[float, ...] = ()
    tool_error: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class TrackedRun:
    """One controller, as `armid track` writes it; errors are null where it was broken off."""

    title: str = ""
    controller: str = ""
    completed: bool = True
    max_joint_error: float | None = None
    mean_cartesian_error: float | None = None
    max_cartesian_error: float | None = None
    feedback_share: float | None = None
    series: TrackedSeries = TrackedSeries()

    @property
    def name(self) -> str:
        """In words."""
        return self.title or self.controller or "controller"


@dataclass(frozen=True)
class TrackedEntries:
    """What a report reads of a tracking's file."""

    path: str = ""
    runs: tuple[TrackedRun, ...] = ()
    notes: tuple[Any, ...] = ()


class Measure(NamedTuple):
    """A figure of a run: its entry, its name, and the unit it is shown in."""

    key: str
    name: str
    unit: str
    factor: float

    def of(self, run: TrackedRun) -> float | None:
        """The figure; None where the run was broken off."""
        value: float | None = getattr(run, self.key)
        return value

    def shown(self, run: TrackedRun) -> str:
        """In its unit."""
        return f"{short(self.factor * (self.of(run) or 0.0))} {self.unit}"


MEASURES = (
    Measure("max_joint_error", "max joint error", "°", 180.0 / math.pi),
    Measure("mean_cartesian_error", "mean Cartesian error", "mm", 1e3),
    Measure("max_cartesian_error", "max Cartesian error", "mm", 1e3),
    Measure("feedback_share", "feedback", "% of torque", 1e2),
)


def payload(evidence: Evidence) -> Section | None:
    """A table of the load's quantities with intervals."""
    if not evidence.payload:
        return None
    data = checked(evidence.payload, LoadEntries, "payload.json")
    rows = [_payload_row(one, one.value) for one in data.quantities if one.value is not None]
    columns = [Column("quantity", words=True), Column("value ± 95 %"), Column("unit", words=True)]
    body = table(columns, rows, caption="the load") if rows else ""
    body += bullets(spaced(str(as_note(words))) for words in data.reasons)
    return Section("payload", "Payload", _payload_sentence(data), body)


def _payload_sentence(data: LoadEntries) -> str:
    known = next((one for one in data.quantities if one.name in ("m", "mass")), None)
    if known is not None and known.value is not None and known.sigma is not None:
        judged = f"; the estimate is {data.verdict}" if data.verdict else ""
        return f"The arm carries {plus_minus(known.value, 1.96 * known.sigma)} kg{judged}."
    return "A load was identified; its mass is not stated."


def _payload_row(one: LoadQuantity, value: float) -> Row:
    shown = short(value) if one.sigma is None else plus_minus(value, 1.96 * one.sigma)
    cells = (Cell(one.name, code=True), Cell(shown, value), Cell(pretty(one.unit)))
    return Row(cells, "" if one.determined else "the data do not determine it")


def tracking(evidence: Evidence) -> Section | None:
    """A table of controllers, and the tool's distance from the path over time."""
    if not evidence.tracking:
        return None
    data = checked(evidence.tracking, TrackedEntries, "tracking.json")
    there = [measure for measure in MEASURES if any(measure.of(run) is not None for run in data.runs)]
    parts: list[str | Figure] = []
    if there:
        columns = [Column("controller", words=True), *(Column(m.name, m.unit) for m in there)]
        rows = [_tracking_row(run, there, data.runs) for run in data.runs]
        parts.append(table(columns, rows, caption="errors of each controller"))
    if curves := [run for run in data.runs if run.series.time]:
        parts += ["<details><summary>Distance from the path over time</summary>", _figure(curves), "</details>"]
    parts.append(bullets(str(as_note(said)) for said in data.notes))
    return Section("tracking", "Tracking", _tracking_sentence(data), parts)


def _tracking_row(run: TrackedRun, measures: Sequence[Measure], runs: Sequence[TrackedRun]) -> Row:
    cells, mark = [Cell(run.name)], "" if run.completed else "broken off"
    for measure in measures:
        value, known = measure.of(run), [found for one in runs if (found := measure.of(one)) is not None]
        if value is None:
            cells.append(Cell("–" if run.completed else "broken off", float("nan")))
            continue
        most = max(known)
        cells.append(Cell(short(measure.factor * value), value, value / most if most > 0 else None))
        if measure is measures[0] and len(known) > 1 and value == most:
            mark = "the worst controller"
    return Row(tuple(cells), mark)


def _tracking_sentence(data: TrackedEntries) -> str:
    """Computed torque with the identified model against PID alone, then the nominal model; else the best one."""
    path = f" on {data.path}" if data.path else ""
    for measure in (MEASURES[1], MEASURES[0]):
        known = {id(run): value for run in data.runs if (value := measure.of(run)) is not None}
        runs = [run for run in data.runs if id(run) in known]
        if not runs:
            continue
        first = {"nominal" if "nominal" in run.name else run.controller: run for run in reversed(runs)}
        best = first.get("computed-torque") or min(runs, key=lambda run: known[id(run)])
        others = [first[name] for name in ("pid", "nominal") if name in first and first[name] is not best]
        if not others and (worst := max(runs, key=lambda run: known[id(run)])) is not best:
            others = [worst]
        words = f"{best.name[:1].upper()}{best.name[1:]}: {measure.name} {measure.shown(best)}{path}"
        ratios = [short(known[id(run)] / max(known[id(best)], 1e-300), 2) for run in others]
        against = [f"{measure.shown(run)} ({r}×) with {run.name}" for run, r in zip(others, ratios, strict=True)]
        return f"{words}, against {listed(against)}." if against else f"{words}."
    followed = f"{len(data.runs)} controllers followed a path" if data.runs else "The arm could not follow a path"
    return f"{followed}{path}; no errors were recorded."


def _figure(runs: Sequence[TrackedRun]) -> Figure:
    curves = [(np.array(run.series.time), 1e3 * np.array(run.series.tool_error, dtype=float)) for run in runs]
    whole = [curve for run, curve in zip(runs, curves, strict=True) if run.completed] or curves
    most = max(float(np.nanmax(distance, initial=0.0)) for _, distance in whole)  # others leave the panel
    end = max(float(time[-1]) for time, _ in curves)
    blocks = []
    for run, (time, distance) in zip(runs, curves, strict=True):
        rows, mean = thinned(len(time), ROWS), run.mean_cartesian_error
        panel = Panel(
            "mm", [line("residual", time[rows], distance[rows], name="distance")], y_range=[0.0, 1.06 * most],
            x_range=[0.0, end], x_title="time [s]", corner="" if mean is None else f"mean {short(1e3 * mean)} mm",
        )  # fmt: skip
        blocks.append(Block(run.name, [[panel]], (80.0,)))
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
    body = table(columns, [_exports_row(entry) for entry in evidence.exports], caption="exported files", stacked=True)
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
