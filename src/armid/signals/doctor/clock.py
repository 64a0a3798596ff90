"""The time column: order, repetitions, gaps, regularity, and whether its unit is the one that was stated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array, Indices
from armid.logs.log import Log
from armid.signals.doctor.finding import Finding, at_rows, found
from armid.signals.repair import MAD, contradicts, stale_rows, usual_steps, with_clock_put_forward

# Steps that differ by less than this much of the median step, in standard deviation, count as regular: what is left
# moves a sample by 2 % of a step, less than the error of linear interpolation between samples.
_IRREGULAR = 0.02
# A step is a gap if at least this much of one whole sample is missing in it, and if it is also far beyond the scatter
# of the other steps.
_MISSING = 0.75
_SCATTER = 6.0
# Steps shorter than this much of the median step are no steps: the timestamp was repeated.
_REPEATED = 1e-3
# Rows out of order may be sorted if the steps between them then come this near to the median step.
_MENDED = 0.3
_FEW = 0.1  # of the rows, that may be left out without making the log useless
# Nominal and actual rate may differ by this much: clocks do, by 1e-4.
_RATE = 0.01


@dataclass(frozen=True, eq=False)
class TimeColumn:
    """What the time column is worth.

    Attributes:
        time: as in the log [s].
        step: median of the positive steps [s]; 0 if there is none.
        rows: rows in order of time with repetitions and timestamps that are no numbers left out.
        regular: whether those rows are equidistant.
    """

    time: Array
    step: float
    rows: Indices
    regular: bool

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return 1.0 / self.step


def examine_clock(log: Log) -> tuple[TimeColumn, list[Finding]]:
    """Look at the time column of a log."""
    findings: list[Finding] = []
    log, back = with_clock_put_forward(given := log)
    if len(back):
        worst, where = float(-np.diff(given.time)[back - 1].min()), at_rows(given.time, back)
        findings.append(found("time-runs-backward", where=where, variant="set-back", count=len(back), worst_s=worst))
    time = log.time
    finite = np.isfinite(time)
    if not finite.all():
        where = at_rows(time, np.flatnonzero(~finite))
        few = "warning" if where.count < _FEW * len(time) else ""
        findings.append(found("time-not-a-number", where=where, severity=few, count=where.count, rows=len(time)))
    if log.info.history.get("cut_off"):
        findings.append(found("cut-off"))
    rows = np.flatnonzero(finite)
    steps = np.diff(time[rows])
    positive = steps[steps > 0.0]
    if not len(positive):
        findings.append(found("no-time", rows=len(log)))
        return TimeColumn(time, 0.0, rows[:1], False), findings
    step = float(np.median(positive))
    findings += _repeated(log, rows, steps, step)
    kept = _in_order(time, rows, steps, step)
    findings += _backward(time, rows, steps, step, "" if len(kept) < (1.0 - _FEW) * len(rows) else "warning")
    findings += _rate(log, np.diff(time[kept]))
    stale = stale_rows(log.rows(kept))
    if stale.any():
        where = at_rows(time, kept[stale])
        findings.append(found("stale-rows", where=where, count=where.count, share=float(stale.mean())))
        kept = kept[~stale]
        step = _near_median(np.diff(time[kept]))
    clean = np.diff(time[kept])
    findings += _gaps(time, kept, clean, step)
    findings += _irregular(clean, step)
    equidistant = bool(np.abs(clean - step).max(initial=0.0) < _IRREGULAR * step)
    return TimeColumn(time, step, kept, equidistant), findings


def _near_median(steps: Array) -> float:
    """Mean of the steps near their median: where rows are missing and the clock jitters, the median is too long."""
    middle = float(np.median(steps))
    near = steps[np.abs(steps - middle) < 0.5 * middle]
    return float(near.mean()) if len(near) else middle


def _in_order(time: Array, rows: Indices, steps: Array, step: float) -> Indices:
    """Rows with increasing time: sorted, where that mends a few rows out of order, else the longest stretch."""
    ordered = rows[np.argsort(time[rows], kind="stable")]
    kept: Indices = ordered[np.concatenate([[True], np.diff(time[ordered]) > _REPEATED * step])]
    back = np.flatnonzero(steps < -_REPEATED * step)
    moved = np.diff(time[kept])[np.diff(kept) != 1] / step
    if not len(back) or (np.abs(moved - 1.0) < _MENDED).all():
        return kept
    edges = np.concatenate([[0], back + 1, [len(rows)]])
    longest = int(np.argmax(np.diff(edges)))
    stretch = rows[edges[longest] : edges[longest + 1]]
    result: Indices = stretch[np.concatenate([[True], np.diff(time[stretch]) > _REPEATED * step])]
    return result


def _backward(time: Array, rows: Indices, steps: Array, step: float, severity: str) -> Iterator[Finding]:
    back = np.flatnonzero(steps < -_REPEATED * step)
    if len(back):
        where = at_rows(time, rows[back + 1])
        worst = float(-steps[back].min())
        yield found("time-runs-backward", where=where, severity=severity, count=len(back), worst_s=worst)


def _repeated(log: Log, rows: Indices, steps: Array, step: float) -> Iterator[Finding]:
    twice = np.flatnonzero(np.abs(steps) <= _REPEATED * step)
    if not len(twice):
        return
    later, earlier = rows[twice + 1], rows[twice]
    copies = np.ones(len(twice), dtype=bool)
    for values in log.channels.values():
        copies &= ((values[later] == values[earlier]) | np.isnan(values[later])).all(axis=1)
    variant = "" if copies.all() else "differ"
    where = at_rows(log.time, later)
    yield found("duplicated-timestamps", where=where, variant=variant, count=len(twice), copies=int(copies.sum()))


def _gaps(time: Array, rows: Indices, steps: Array, step: float) -> Iterator[Finding]:
    scatter = MAD * float(np.median(np.abs(steps - step))) if len(steps) else 0.0
    # Rows left out between two others, since their timestamp was repeated, are not missing.
    there = step * np.maximum(np.abs(np.diff(rows)) - 1, 0)
    gaps = np.flatnonzero(steps - there > step * (1.0 + _MISSING) + _SCATTER * scatter)
    if len(gaps):
        lost = int(np.round(steps[gaps] / step - 1.0).sum())
        share, longest, where = lost / (lost + len(rows)), float(steps[gaps].max()), at_rows(time, rows[gaps])
        yield found("gaps", where=where, count=len(gaps), missing=lost, share=share, longest_s=longest)


def _irregular(steps: Array, step: float) -> Iterator[Finding]:
    usual = steps[np.abs(steps - step) < _MISSING * step]
    spread = float(np.std(usual)) / step if len(usual) else 0.0
    if spread > _IRREGULAR:
        low, high = map(float, np.percentile(usual, [1.0, 99.0]))
        sure = min(1.0, 0.5 + 0.5 * (spread / _IRREGULAR - 1.0))
        values: dict[str, Any] = {"relative_spread": spread, "step_s": step, "low_s": low, "high_s": high}
        yield found("irregular-timestamps", confidence=sure, **values)


def _rate(log: Log, steps: Array) -> Iterator[Finding]:
    stated = log.info.rate_hz
    if stated is None or not len(steps):
        return
    actual = 1.0 / usual_steps(steps)[1]
    if abs(stated / actual - 1.0) < _RATE:
        return
    severity = "error" if contradicts(stated, steps) else ""  # and refused by `process`
    yield found("rate-differs", severity=severity, stated_hz=stated, actual_hz=actual)
