"""What is left over: the residual over time, over velocity, and how long it remembers itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.arrays import Array
from armid.reporting.evidence import Evidence, units_of
from armid.reporting.figure import Block, Figure, Panel, band, level, line
from armid.reporting.numbers import joined_time, percent, short, span, thinned
from armid.reporting.section import Section, lacking
from armid.validation.residuals import ResidualAnalysis
from armid.validation.result import Validation

TITLE = "Residuals"
POINTS = 700
HEIGHT = 120.0
TELLING = 0.15  # share of the error that is worth a word


def residuals(evidence: Evidence) -> Section:
    """Three panels per joint."""
    check = evidence.check
    if check is None:
        return lacking("residuals", TITLE, "A validation fills this: armid validate FIT LOG -o validation.json.")
    figure = Figure(
        name="residuals",
        blocks=[_block(check, j, *units_of(evidence.fit.robot, j)) for j in range(len(check.joints))],
        caption="residual of each joint over time and velocity, and its autocorrelation",
        legend={
            "residual dots": "residual, measured less predicted",
            "residual": "its mean by velocity",
            "nominal area": "what white noise would show, 95 %",
        },
        held_out=not check.same_as_training,
    )
    return Section("residuals", TITLE, _sentence(check), figure.html(), (figure,))


def _sentence(check: Validation) -> str:
    looks = [look for look in check.residuals if np.isfinite(look.velocity_share)]
    if not looks:
        return "No joint moved, so there is nothing to tell apart."
    causes = [(share, look.name, words) for look in looks for share, words in _shares(look)]
    share, name, words = max(causes)
    longest = max(looks, key=lambda look: look.memory_s)
    memory = f"the error lasts longest in {longest.name}, {short(longest.memory_s, 2)} s"
    if all(look.memory_s <= 1.5 * row_seconds(look) for look in looks):
        memory = "errors are white, so what is left is noise"
    if share < TELLING:
        return f"No joint’s residual follows velocity, load, delay or time by more than {percent(share)}; {memory}."
    return f"What stands out is {name}: {percent(share)} of its squared residual {words}; {memory}."


def _shares(look: ResidualAnalysis) -> list[tuple[float, str]]:
    return [
        (look.velocity_share - look.bias_share, "is a function of velocity"),
        (look.bias_share, f"is a constant {short(look.bias)} N m"),
        (look.load_share, "grows with the load along the motion"),
        (look.delay_share, f"is a delay of {short(1e3 * look.delay_s)} ms"),
        (look.drift_share, "is a drift of friction during the record"),
        (look.reversal_share - look.reversal_rows, "lies at changes of direction beyond their part of the time"),
    ]


def _block(check: Validation, j: int, unit: str, speed: str) -> Block:
    look, series = check.residuals[j], check.series
    rows = thinned(len(series.time), POINTS)
    time = joined_time(series.dataset, series.time)
    error = series.measured[:, j] - series.predicted[:, j]
    y_range, beyond = _reach(error, unit)
    points: dict[str, Any] = {"mode": "markers", "size": 2.5, "faint": True}
    over_time = Panel(
        unit, [line("residual", time[rows], error[rows], **points), *_noise(check, j, float(time[-1]))],
        name="over time", corner=beyond, y_range=y_range, x_range=[0.0, float(time[-1])], x_title="time [s]",
    )  # fmt: skip
    velocity = series.velocity[:, j]
    over_velocity = Panel(
        unit,
        [
            line("residual", velocity[rows], error[rows], **points),
            line("residual", look.velocity, look.velocity_mean, name="mean", mode="lines+markers", size=5),
        ],
        name="over velocity", y_range=y_range, x_range=span(velocity), x_title=f"velocity [{speed}]",
        corner=f"explains {percent(look.velocity_share)}",
    )  # fmt: skip
    return Block(look.name, [[over_time, over_velocity, _memory(look, len(error))]], (HEIGHT,))


def _reach(error: Array, unit: str) -> tuple[list[float], str]:
    """Ends of an axis that shows nearly all residuals well, and words about those outside."""
    size = np.abs(error[np.isfinite(error)])
    if not size.size or not size.max() > 0.0:
        return [-1.0, 1.0], ""
    reach = min(1.06 * float(size.max()), 2.0 * float(np.quantile(size, 0.99)))
    outside = int(np.sum(size > reach))
    words = f"{percent(outside / size.size)} beyond, to {short(float(size.max()), 2)} {unit}" if outside else ""
    return [-reach, reach], words


def _noise(check: Validation, j: int, end: float) -> list[dict[str, object]]:
    noise = check.joints[j].noise
    if not np.isfinite(noise):
        return []
    return [band("nominal", [0.0, end], [-1.96 * noise] * 2, [1.96 * noise] * 2)]


def _memory(look: ResidualAnalysis, rows: int) -> Panel:
    lags = np.arange(len(look.autocorrelation)) * row_seconds(look)
    white = 1.96 / np.sqrt(max(rows, 1))
    ends = [0.0, float(lags[-1]) if len(lags) > 1 else 1.0]
    return Panel(
        "[–]",
        [
            band("nominal", ends, [-white] * 2, [white] * 2),
            level(0.0, "axis"),
            line("residual", lags, look.autocorrelation, mode="stems"),
        ],
        name="autocorrelation", y_range=[min(-0.3, 1.1 * float(look.autocorrelation.min(initial=0.0))), 1.08],
        x_range=ends, x_title="lag [s]", corner=f"lasts {short(look.memory_s, 2)} s",
    )  # fmt: skip


def row_seconds(look: ResidualAnalysis) -> float:
    """Time between rows [s]: `memory_s` is the lag at which the autocorrelation has fallen to 0.2."""
    low = np.flatnonzero(look.autocorrelation < 0.2)
    lag = int(low[0]) if len(low) else len(look.autocorrelation) - 1
    return look.memory_s / lag if lag > 0 else 1.0
