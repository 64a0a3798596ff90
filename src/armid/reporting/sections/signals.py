"""The signals: spectra and what was kept of them, delays, processing, and the warm-up before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.estimation.likelihood import is_period, kept_harmonics
from armid.figures import Block, Figure, Panel, level, line, span
from armid.files import checked
from armid.logs.log import Log
from armid.reporting.evidence import Evidence
from armid.reporting.html import Cell, Column, Row, Section, paragraph, table
from armid.reporting.numbers import exact, listed, percent, short
from armid.signals.dataset import Dataset

BUCKETS = 400
HEIGHT = 100.0
DEEPEST = 1e-6  # of the largest amplitude: what is drawn at least


def signals(evidence: Evidence) -> Section:
    """Spectra of the first training log, delays, steps and warm-up."""
    fit = evidence.fit
    parts: list[str | Figure] = [paragraph("Spectra need the log: armid report FIT --log LOG.", "remark")]
    words = []
    if evidence.training:
        log, data = evidence.training[0]
        words.append(_kept_words(log, data))
        parts = [_spectra(log, data)]
    words.append(_delay_words(fit))
    parts.append(_steps(fit))
    if joints := checked(evidence.warmup or {}, WarmUpEntries, "warmup.json").joints:
        words.append(_warmup_words(joints))
        parts += ["<h3>Warm-up</h3>", _warmup(joints)]
    sentence = "; ".join(words)
    return Section("signals", "Signals", sentence[0].upper() + sentence[1:] + ".", parts, folded=True)


def _kept_words(log: Log, data: Dataset) -> str:
    source = Path(log.info.source).name or "the log"
    if is_period(data):
        kept = kept_harmonics(data)[1:].sum(axis=0)
        base, low, high = data.rate_hz / len(data.q), int(kept.min()), int(kept.max())
        count = f"{low}" if low == high else f"{low} to {high}"
        return (
            f"{data.periods} periods of {source} were averaged, and {count} harmonics of {exact(base)} Hz per "
            "joint hold motion above the noise"
        )
    cutoff = _cutoff(data)
    return f"{source} was low-passed at {exact(cutoff)} Hz" if cutoff else f"{source} holds {len(log)} samples"


def _cutoff(data: Dataset) -> float | None:
    """The low-pass that made a data set [Hz]; the lowest of several."""
    values = [step.get("cutoff_hz") for step in data.pipeline]
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    return min(numbers, default=None)


def _delay_words(fit: Fit) -> str:
    if not np.any(fit.delay_s):
        return "torque does not lag motion"
    worst = int(np.argmax(np.abs(fit.delay_s)))
    return f"torque lags motion by up to {short(1e3 * float(fit.delay_s[worst]))} ms ({fit.robot.joint_names[worst]})"


def _spectra(log: Log, data: Dataset) -> Figure:
    log = log.for_joints(data.joints) if set(data.joints) <= set(log.joints) else log
    channel = "effort" if "effort" in log else "current"
    unit = {"joint torque": "N m", "motor torque": "N m", "current": "A"}.get(log.info.effort, "")
    quantities = [("position", "rad"), (channel, unit)]
    there = [(name, label) for name, label in quantities if name in log]
    spectra = {name: _spectrum(log[name], log.rate_hz) for name, _ in there}
    blocks = []
    for j, joint in enumerate(log.joints):
        panels = []
        for name, label in there:
            frequency, amplitude = spectra[name]
            panels.append(_spectrum_panel(name, label, frequency, amplitude[:, j], data, j))
        blocks.append(Block(joint, [panels], (HEIGHT,)))
    legend = {"measured": "spectrum of the log as recorded"}
    legend |= (
        {"predicted dots": "harmonics kept; how many hold 99.99 % of the motion"}
        if is_period(data)
        else {"limit": "low-pass"}
        if _cutoff(data)
        else {}
    )
    caption = "amplitude of position and torque of each joint over frequency"
    return Figure("spectra", blocks, caption, legend)


def _spectrum(values: Array, rate_hz: float) -> tuple[Array, Array]:
    """Amplitudes over frequency (Hann window), the largest in each of many narrow bands."""
    finite = np.isfinite(values)
    mean = np.where(finite, values, 0.0).sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    good = np.where(finite, values, mean)
    window = np.hanning(len(good))[:, None]
    amplitude = 2.0 * np.abs(np.fft.rfft((good - mean) * window, axis=0)) / window.sum()
    frequency = np.fft.rfftfreq(len(good), 1.0 / rate_hz)
    edges = np.unique(np.geomspace(1, len(frequency) - 1, BUCKETS).astype(int))
    return frequency[edges], np.maximum.reduceat(amplitude, edges, axis=0)


def _spectrum_panel(name: str, unit: str, frequency: Array, amplitude: Array, data: Dataset, j: int) -> Panel:
    top = float(amplitude.max(initial=0.0)) or 1.0
    traces: list[Mapping[str, Any]] = [
        line("measured", frequency, np.maximum(amplitude, DEEPEST * top), faint=True, log=True)
    ]
    corner = ""
    if is_period(data) and name == "position" and j < data.q.shape[1]:
        kept = np.flatnonzero(kept_harmonics(data)[1:, j]) + 1
        size = 2.0 * np.abs(np.fft.rfft(data.q[:, j]))[kept] / len(data.q)
        base = data.rate_hz / len(data.q)
        traces.append(line("predicted", kept * base, size, name="kept", mode="markers", size=3.5, log=True))
        corner = f"{len(kept)} kept, {_enough(size)} hold 99.99 %"
    elif (cutoff := _cutoff(data)) is not None:
        traces.append(level(cutoff, vertical=True))
    lowest = max(DEEPEST * top, 0.3 * float(np.quantile(amplitude, 0.1)))
    shown = np.log10(np.maximum(amplitude, lowest))
    return Panel(
        unit, traces, name="position" if name == "position" else "torque" if name == "effort" else name, corner=corner,
        log="xy", x_range=np.log10([frequency[0], frequency[-1]]).tolist(), y_range=span(shown, 0.08),
        x_title="frequency [Hz]",
    )  # fmt: skip


def _enough(size: Array) -> int:
    """How many of the largest amplitudes hold all but a ten-thousandth of the power."""
    power = np.cumsum(np.sort(size**2)[::-1])
    return int(np.searchsorted(power, 0.9999 * power[-1])) + 1 if len(power) else 0


def _steps(fit: Fit) -> str:
    """The pipeline."""
    rows = []
    for step in fit.pipeline:
        options = ", ".join(f"{key} = {value}" for key, value in step.items() if key != "step" and value is not None)
        rows.append(Row((Cell(str(step.get("step", "?")), code=True), Cell(options or "no options"))))
    columns = [Column("step", words=True), Column("options", words=True)]
    return "<h3>Processing</h3>" + table(columns, rows, caption="signal processing, in order") if rows else ""


@dataclass(frozen=True)
class WarmUpCurve:
    """Coefficients of a + b exp(-t / T)."""

    coefficients: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class WarmUpJoint:
    """One joint's warm-up, as `armid warmup` writes it."""

    joint: str
    time: tuple[float, ...]
    means: tuple[float, ...]
    drop: float
    time_constant_s: float | None = None
    significant: bool = False
    fit: WarmUpCurve = field(default_factory=WarmUpCurve)


@dataclass(frozen=True, eq=False)
class WarmUpEntries:
    """What a report reads of a warm-up's file."""

    joints: tuple[WarmUpJoint, ...] = ()


def _warmup(joints: Sequence[WarmUpJoint]) -> Figure:
    blocks = []
    for one in joints:
        traces = [line("measured", one.time, one.means, mode="markers", size=4, name="mean of a cycle")]
        a, b, constant = (one.fit.coefficients.get(name) for name in ("a", "b", "T"))
        if one.significant and one.time and a is not None and b is not None and constant:
            smooth = np.linspace(one.time[0], one.time[-1], 100)
            traces.append(line("predicted", smooth, a + b * np.exp(-smooth / constant), name="fit"))
        corner = f"falls by {percent(one.drop)}" if one.significant else "no change"
        panel = Panel("N m", traces, corner=corner, y_range=span(one.means, 0.12), x_title="time [s]")
        blocks.append(Block(one.joint, [[panel]], (110.0,)))
    caption = "mean torque per cycle while the arm gets warm"
    legend = {"measured dots": "mean |torque| of a cycle", "predicted": "a + b exp(−t / T)"}
    return Figure("warmup", blocks, caption, legend, across=3)


def _warmup_words(joints: Sequence[WarmUpJoint]) -> str:
    falling = [one for one in joints if one.significant]
    if not falling:
        return "the warm-up shows no change of friction"
    most = max(falling, key=lambda one: one.drop)
    amount = f"by {percent(most.drop)} with a time constant of {exact(round(most.time_constant_s or 0.0))} s"
    if len(falling) == 1:
        return f"warming up lowers the torque of {most.joint} {amount}"
    names = listed([one.joint for one in falling]) if len(falling) < 4 else f"{len(falling)} joints"
    return f"warming up lowers the torque of {names}, most that of {most.joint} {amount}"
