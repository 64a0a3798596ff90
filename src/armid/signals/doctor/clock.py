"""The time column: order, repetitions, gaps, regularity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.logs.log import RATE_TOLERANCE, Log
from armid.signals.doctor.finding import Finding, Where, at_rows, plural

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
# Nominal and actual rate may differ by this much: clocks do, by 1e-4.
_RATE = 0.01


@dataclass(frozen=True, eq=False)
class Clock:
    """What the time column is worth.

    Attributes:
        time: as in the log [s].
        step: median of the positive steps [s]; 0 if there is none.
        rows: rows in order of time with repetitions and timestamps that are no numbers left out.
        regular: whether those rows are equidistant.
    """

    time: Array
    step: float
    rows: NDArray[np.int64]
    regular: bool

    @property
    def rate_hz(self) -> float:
        """Samples per second."""
        return 1.0 / self.step


def examine_clock(log: Log) -> tuple[Clock, list[Finding]]:
    """Look at the time column of a log."""
    time = log.time
    finite = np.isfinite(time)
    findings: list[Finding] = []
    if not finite.all():
        findings.append(_not_numbers(time, np.flatnonzero(~finite)))
    rows = np.flatnonzero(finite)
    steps = np.diff(time[rows])
    positive = steps[steps > 0.0]
    if not len(positive):
        findings.append(_no_clock(len(log)))
        return Clock(time, 0.0, rows[:1], False), findings
    step = float(np.median(positive))
    findings += _backward(time, rows, steps, step)
    findings += _repeated(log, rows, steps, step)
    kept = _in_order(time, rows, steps, step)
    clean = np.diff(time[kept])
    findings += _gaps(time, kept, clean, step)
    findings += _irregular(clean, step)
    findings += _rate(log, clean)
    equidistant = bool(np.abs(clean - step).max(initial=0.0) < _IRREGULAR * step)
    return Clock(time, step, kept, equidistant), findings


def _in_order(time: Array, rows: NDArray[np.int64], steps: Array, step: float) -> NDArray[np.int64]:
    """Rows with increasing time: sorted, where that mends a few rows out of order, else the longest stretch."""
    ordered = rows[np.argsort(time[rows], kind="stable")]
    kept = ordered[np.concatenate([[True], np.diff(time[ordered]) > _REPEATED * step])]
    back = np.flatnonzero(steps < -_REPEATED * step)
    moved = np.diff(time[kept])[np.diff(kept) != 1] / step
    if not len(back) or (np.abs(moved - 1.0) < _MENDED).all():
        return kept
    edges = np.concatenate([[0], back + 1, [len(rows)]])
    longest = int(np.argmax(np.diff(edges)))
    stretch = rows[edges[longest] : edges[longest + 1]]
    return stretch[np.concatenate([[True], np.diff(time[stretch]) > _REPEATED * step])]


def _not_numbers(time: Array, rows: NDArray[np.int64]) -> Finding:
    return Finding(
        "time-not-a-number",
        "error",
        None,
        at_rows(time, rows),
        1.0,
        f"{plural(len(rows), 'timestamp')} of {len(time)} {'is no number' if len(rows) == 1 else 'are not numbers'}.",
        "Remove these rows, or give the sample rate and drop the time column.",
        {"count": len(rows)},
    )


def _no_clock(samples: int) -> Finding:
    return Finding(
        "no-time",
        "error",
        None,
        Where(),
        1.0,
        f"The log's {plural(samples, 'row')} {'shows' if samples == 1 else 'show'} no passing time.",
        "Give the sample rate, or a time column that increases.",
        {"rows": samples},
    )


def _backward(time: Array, rows: NDArray[np.int64], steps: Array, step: float) -> list[Finding]:
    back = np.flatnonzero(steps < -_REPEATED * step)
    if not len(back):
        return []
    worst = float(-steps[back].min())
    return [
        Finding(
            "time-runs-backward",
            "error",
            None,
            at_rows(time, rows[back + 1]),
            1.0,
            f"Time runs backward at {plural(len(back), 'row')}, by up to {worst:.3g} s.",
            "Two recordings may have been joined, or packets arrived out of order: split the log there, or sort it.",
            {"count": len(back), "worst_s": worst},
        )
    ]


def _repeated(log: Log, rows: NDArray[np.int64], steps: Array, step: float) -> list[Finding]:
    twice = np.flatnonzero(np.abs(steps) <= _REPEATED * step)
    if not len(twice):
        return []
    later, earlier = rows[twice + 1], rows[twice]
    copies = np.ones(len(twice), dtype=bool)
    for values in log.channels.values():
        copies &= ((values[later] == values[earlier]) | np.isnan(values[later])).all(axis=1)
    same = int(copies.sum())
    advice = (
        "The rows are copies of those before: drop them."
        if same == len(twice)
        else "The values differ: the clock is too coarse or two sources were merged. Rebuild the time from the rate."
    )
    return [
        Finding(
            "duplicated-timestamps",
            "warning",
            None,
            at_rows(log.time, later),
            1.0,
            f"{plural(len(twice), 'timestamp')} {'repeats' if len(twice) == 1 else 'repeat'} the one before "
            f"({same} with identical values).",
            advice,
            {"count": len(twice), "copies": same},
        )
    ]


def _gaps(time: Array, rows: NDArray[np.int64], steps: Array, step: float) -> list[Finding]:
    scatter = 1.4826 * float(np.median(np.abs(steps - step))) if len(steps) else 0.0
    # Rows left out between two others, since their timestamp was repeated, are not missing.
    there = step * np.maximum(np.abs(np.diff(rows)) - 1, 0)
    gaps = np.flatnonzero(steps - there > step * (1.0 + _MISSING) + _SCATTER * scatter)
    if not len(gaps):
        return []
    lost = int(np.round(steps[gaps] / step - 1.0).sum())
    share, longest = lost / (lost + len(rows)), float(steps[gaps].max())
    return [
        Finding(
            "gaps",
            "warning",
            None,
            at_rows(time, rows[gaps]),
            1.0,
            f"{plural(len(gaps), 'gap')}: about {plural(lost, 'sample')} ({share:.2%}) "
            f"{'is' if lost == 1 else 'are'} missing, the longest gap is {longest:.3g} s.",
            "Fill short gaps by interpolation, and leave out the stretch around long ones.",
            {"count": len(gaps), "missing": lost, "longest_s": longest},
        )
    ]


def _irregular(steps: Array, step: float) -> list[Finding]:
    usual = steps[np.abs(steps - step) < _MISSING * step]
    spread = float(np.std(usual)) / step if len(usual) else 0.0
    if spread <= _IRREGULAR:
        return []
    low, high = np.percentile(usual, [1.0, 99.0])
    return [
        Finding(
            "irregular-timestamps",
            "warning",
            None,
            Where(),
            min(1.0, 0.5 + 0.5 * (spread / _IRREGULAR - 1.0)),
            f"Samples are not equidistant: steps scatter by {spread:.1%} of {1e3 * step:.4g} ms "
            f"(98 % lie between {1e3 * low:.4g} and {1e3 * high:.4g} ms).",
            "If the recorder was clocked and only the timestamps jitter, replace them by a regular grid; "
            "otherwise resample, or use a method for irregular samples.",
            {"relative_spread": spread, "step_s": step},
        )
    ]


def _rate(log: Log, steps: Array) -> list[Finding]:
    stated = log.info.rate_hz
    if stated is None or not len(steps):
        return []
    # The mean over the middle of the steps: the median of steps of 10 and 12 ms would be 10.
    low, high = np.percentile(steps, [5.0, 95.0])
    middle = steps[(steps >= low) & (steps <= high)]
    actual = 1.0 / float((middle if len(middle) else steps).mean())
    if abs(stated / actual - 1.0) < _RATE:
        return []
    # Lost samples change the mean alone; a log whose usual step differs as well is refused by `process`.
    usual = 1.0 / float(np.median(steps))
    contradicted = min(abs(stated / actual - 1.0), abs(stated / usual - 1.0)) > RATE_TOLERANCE
    return [
        Finding(
            "rate-differs",
            "error" if contradicted else "warning",
            None,
            Where(),
            1.0,
            f"The log states {stated:.5g} Hz, but its timestamps say {actual:.5g} Hz.",
            "Correct the rate, or leave it out: velocities scale with it and accelerations with its square.",
            {"stated_hz": stated, "actual_hz": actual},
        )
    ]
