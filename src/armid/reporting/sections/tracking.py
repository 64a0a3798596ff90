"""Tracking: controllers that follow a path with the identified model, beside each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from armid.reporting.evidence import Evidence
from armid.reporting.figure import Block, Figure, Panel, line
from armid.reporting.html import Cell, Column, Row, bullets, table
from armid.reporting.numbers import exact, listed, short, thinned
from armid.reporting.section import Section

TITLE = "Tracking"
ROWS = 800


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


def tracking(evidence: Evidence) -> Section | None:
    """A table of controllers, and the tool's distance from the path over time."""
    data = evidence.tracking
    if not data:
        return None
    runs = runs_of(data)
    there = [measure for measure in MEASURES if any(_number(run.get(measure.key)) for run in runs)]
    body, figures = "", []
    if there:
        columns = [Column("controller", words=True), *(Column(m.name, m.unit) for m in there)]
        body = table(columns, [_row(run, there, runs) for run in runs], caption="errors of each controller")
    if any(_series(run) is not None for run in runs):
        figures.append(_figure(runs))
        body += figures[0].html()
    body += bullets(str(note) for note in data.get("notes") or ())
    return Section("tracking", TITLE, _sentence(data, runs), body, tuple(figures))


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


def _row(run: Mapping[str, Any], measures: Sequence[Measure], runs: Sequence[Mapping[str, Any]]) -> Row:
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


def _sentence(data: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> str:
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


def _series(run: Mapping[str, Any]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
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
