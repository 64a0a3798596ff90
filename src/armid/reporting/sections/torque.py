"""Torque on held-out data: curves with the residual under them, errors against the noise, and what is left over."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.arrays import Array
from armid.figures import Block, Figure, Panel, band, level, line, span, thinned, torque_block
from armid.reporting.evidence import Evidence, units_of
from armid.reporting.html import Cell, Column, Row, Section, lacking, paragraph, table
from armid.reporting.numbers import joined_time, listed, percent, share, short
from armid.validation.comparison import compare
from armid.validation.metrics import JointMetrics
from armid.validation.residuals import ResidualAnalysis
from armid.validation.result import Validation
from armid.validation.validating import nominal_fit

ROWS, POINTS = 1800, 700  # of curves, of dots
QUIET = 1.1  # multiples of the noise up to which a joint counts as predicted as well as it can be
TELLING = 0.15  # share of the error that is worth a word
_FILLED = "A validation fills this: armid validate FIT LOG -o validation.json."


def torque(evidence: Evidence) -> Section:
    """One block per joint: torque, and under it the residual with as many N m per pixel."""
    check = evidence.check
    if check is None:
        return lacking("torque", "Torque on held-out data", _FILLED)
    nominal = _nominal(evidence, check)
    figure = Figure(
        name="torque",
        blocks=_torque_blocks(evidence, check, nominal),
        caption="measured, predicted and nominal torque of each joint over time, the residual under it",
        legend={
            "measured": "measured",
            "predicted": "predicted, with its 95 % interval",
            **({} if nominal is None else {"nominal": "nominal inertia with friction of the training data"}),
            "residual": "residual",
        },
        held_out=not check.same_as_training,
        hint="drag to zoom, double-click to return",
    )
    remark = "The nominal model’s torque is drawn where the validation’s log is given too (--log)."
    if evidence.fit.robot.nominal_inertia is None:
        remark = "There is no grey line: the robot’s description states no nominal inertia (a URDF or MJCF file does)."
    title = "Torque on training data" if check.same_as_training else "Torque on held-out data"
    parts: list[str | Figure] = [figure, paragraph(remark, "remark") if nominal is None else ""]
    return Section("torque", title, _torque_sentence(check), parts)


def _torque_sentence(check: Validation) -> str:
    ordered = sorted((j for j in check.joints if np.isfinite(j.nrms_moving)), key=lambda joint: joint.nrms_moving)
    if not ordered:
        return "No joint has a torque that varies."
    best, worst = ordered[0], ordered[-1]
    words = (
        f"{'On training data, ' if check.same_as_training else ''}{len(check.joints)} joints, NRMS while moving "
        f"{percent(best.nrms_moving)} ({best.name}) to {percent(worst.nrms_moving)} ({worst.name})"
    )
    if _at_reversals(_look(check, worst)):
        words += f"; the excess of {worst.name} is near changes of direction"
    return f"{words}; the residual (orange) stands under each torque at the same scale."


def _look(check: Validation, joint: JointMetrics) -> ResidualAnalysis:
    return check.residuals[[one.name for one in check.joints].index(joint.name)]


def _at_reversals(look: ResidualAnalysis) -> bool:
    return look.reversal_rms > 1.5 * look.elsewhere_rms


def _nominal(evidence: Evidence, check: Validation) -> Array | None:
    """Torque of the nominal inertia at the validation's rows; None where it or the data are not at hand."""
    sets = evidence.held_out
    if sets is None or evidence.fit.robot.nominal_inertia is None:
        return None
    other = nominal_fit(evidence.fit)
    if other is None:
        return None
    parts = [compare(other, data) for data in sets]
    total = sum(len(part.time) for part in parts)
    step = max(1, round(total / max(len(check.series.time), 1)))
    predicted = np.concatenate([part.predicted[::step] for part in parts])
    return predicted if len(predicted) == len(check.series.time) else None


def _torque_blocks(evidence: Evidence, check: Validation, nominal: Array | None) -> list[Block]:
    series, rows = check.series, thinned(len(check.series.time), ROWS)
    cut = 1 + np.flatnonzero(np.diff(series.dataset[rows]))  # a gap between records

    def thin(array: Array) -> Array:
        return np.insert(array[rows], cut, np.nan, axis=0)

    time = thin(joined_time(series.dataset, series.time))
    measured, predicted, reach = thin(series.measured), thin(series.predicted), 1.96 * thin(series.sigma)
    grey = None if nominal is None else thin(nominal)
    everything = [measured, predicted, *([] if grey is None else [grey])]
    same = (span(np.concatenate([array.ravel() for array in everything])), measured - predicted)
    blocks = []
    for j, joint in enumerate(check.joints):
        unit = units_of(evidence.fit.robot, j)[0]
        noise = f" · {joint.noise_ratio:.1f}× noise" if np.isfinite(joint.noise_ratio) else ""
        others = [band("predicted", time, predicted[:, j] - reach[:, j], predicted[:, j] + reach[:, j])]
        others += [] if grey is None else [line("nominal", time, grey[:, j])]
        corner = f"moving: RMS {short(joint.rms_moving)} {unit} · NRMS {percent(joint.nrms_moving)}{noise}"
        held = () if grey is None else grey[:, j]
        curves = (time, measured[:, j], predicted[:, j])
        blocks.append(torque_block(joint.name, unit, *curves, others=others, corner=corner, shown=held, same=same))
    return blocks


def errors(evidence: Evidence) -> Section:
    """A table of errors against the noise: a row per joint, the worst marked."""
    check, title = evidence.check, "Errors against the noise"
    if check is None:
        rms = ", ".join(short(value) for value in evidence.fit.residual_rms)
        words = f"On the training data the residual is {rms} N m per joint; a validation says more."
        return lacking("errors", title, words)
    robot, limits = evidence.fit.robot, check.thresholds
    unit = " or ".join(dict.fromkeys(units_of(robot, j)[0] for j in range(robot.n_joints)))
    nominal = any(np.isfinite(joint.nominal_nrms_moving) for joint in check.joints)
    caption = "errors of the predicted torque per joint"
    remark = (
        f"NRMS is the error over the spread of the measured torque. A joint passes with NRMS while moving of at most "
        f"{share(limits.nrms_moving)}, or {limits.noise_ratio:g}× the noise."
    )
    better = [joint.name for joint in check.joints if joint.nominal_nrms_moving < joint.nrms_moving]
    remark += f" The nominal model predicts {listed(better)} better." if better else ""
    body = table(_error_columns(unit, nominal), _error_rows(check, nominal), caption=caption)
    return Section("errors", title, _error_sentence(check), body + paragraph(remark, "remark"))


def _error_sentence(check: Validation) -> str:
    known = [joint for joint in check.joints if np.isfinite(joint.noise_ratio)]
    if not known:
        return "The noise of the torque was not measured, so the errors stand alone; NRMS sets them against the torque."
    quiet = [joint for joint in known if joint.noise_ratio <= QUIET]
    worst = max(known, key=lambda joint: joint.noise_ratio)
    times = f"{worst.noise_ratio:.{2 if worst.noise_ratio < 1.2 else 1}f}×"
    if len(quiet) == len(known):
        limit = "" if worst.noise_ratio <= 1.0 else f"{QUIET:g}× "
        return f"Every joint is predicted to within {limit}its noise; {worst.name} comes last with {times}."
    several = f"{len(quiet)} of {len(known)} joints {'is' if len(quiet) == 1 else 'are'}"
    count = several if quiet else "No joint is"
    look = _look(check, worst)
    where = f"its residuals are correlated over {short(look.memory_s, 2)} s"
    where = "the excess is at velocity reversals" if _at_reversals(look) else where
    return f"{count} predicted to within {QUIET:g}× the noise; {worst.name} is {times} the noise; {where}."


def _error_columns(unit: str, nominal: bool) -> list[Column]:
    columns = [
        Column("joint", words=True),
        Column("RMS", unit, "root mean square of the error, all rows"),
        Column("RMS", f"moving, {unit}", "over the rows at which the joint moves"),
        Column("× noise", "", "RMS moving over the standard deviation of the measured torque's noise"),
        Column("NRMS", "", "RMS over the standard deviation of the torque"),
        Column("NRMS", "moving", "the same while the joint moves"),
        Column("reversing", unit, "RMS over the slow rows around changes of direction, which a fit leaves out"),
        Column("at rest", unit, "RMS of what friction cannot hold, over the rows at rest"),
        Column("inside", "", "moving rows within the stated 95 % interval of a sample"),
        Column("R²", "", "coefficient of determination"),
    ]
    hint = "the file's own inertia with friction of the same training data"
    return [*columns, Column("nominal", "NRMS", f"NRMS moving of {hint}")] if nominal else columns


def _error_rows(check: Validation, nominal: bool) -> list[Row]:
    most = max((j.noise_ratio for j in check.joints if np.isfinite(j.noise_ratio)), default=np.nan)
    widest = max((j.nrms_moving for j in check.joints if np.isfinite(j.nrms_moving)), default=np.nan)

    def digits(value: float, places: int) -> str:
        return f"{value:.{places}f}" if np.isfinite(value) else "–"

    rows = []
    for index, joint in enumerate(check.joints):
        cells = [
            Cell(joint.name),
            *(Cell(short(value), value) for value in (joint.rms, joint.rms_moving)),
            Cell(digits(joint.noise_ratio, 2), joint.noise_ratio, joint.noise_ratio / most),
            Cell(percent(joint.nrms), joint.nrms),
            Cell(percent(joint.nrms_moving), joint.nrms_moving, joint.nrms_moving / widest),
            *(Cell(short(value), value) for value in (joint.rms_reversals, joint.rms_standstill)),
            Cell(percent(joint.coverage), joint.coverage),
            Cell(digits(joint.r2, 4), joint.r2),
        ]
        cells += [Cell(percent(joint.nominal_nrms_moving), joint.nominal_nrms_moving)] if nominal else []
        worst = "the worst joint" if joint.nrms_moving == widest else ""
        rows.append(Row(tuple(cells), "misses the limits" if index in check.failing else worst))
    return rows


def residuals(evidence: Evidence) -> Section:
    """The residual over time, over velocity, and its autocorrelation: three panels per joint."""
    check = evidence.check
    if check is None:
        return lacking("residuals", "Residuals", _FILLED)
    figure = Figure(
        name="residuals",
        blocks=[_residual_block(check, j, *units_of(evidence.fit.robot, j)) for j in range(len(check.joints))],
        caption="residual of each joint over time and velocity, and its autocorrelation",
        legend={
            "residual dots": "residual, measured less predicted",
            "residual": "its mean by velocity",
            "nominal area": "what white noise would show, 95 %",
        },
        held_out=not check.same_as_training,
    )
    return Section("residuals", "Residuals", _residual_sentence(check), [figure], folded=True)


def _residual_sentence(check: Validation) -> str:
    looks = [look for look in check.residuals if np.isfinite(look.velocity_share)]
    if not looks:
        return "No joint moved, so there is nothing to tell apart."
    causes = [(part, look.name, words) for look in looks for part, words in _shares(look)]
    part, name, words = max(causes)
    longest = max(looks, key=lambda look: look.memory_s)
    memory = f"residuals are correlated longest in {longest.name}, over {short(longest.memory_s, 2)} s"
    if all(look.memory_s <= 1.5 * row_seconds(look) for look in looks):
        memory = "residuals are white: what is left is noise"
    if part < TELLING:
        return f"No joint’s residual follows velocity, load, delay or time by more than {percent(part)}; {memory}."
    return f"What stands out is {name}: {percent(part)} of its squared residual {words}; {memory}."


def _shares(look: ResidualAnalysis) -> list[tuple[float, str]]:
    return [
        (look.velocity_share - look.bias_share, "is a function of velocity"),
        (look.bias_share, f"is a constant {short(look.bias)} N m"),
        (look.load_share, "grows with the load along the motion"),
        (look.delay_share, f"is a delay of {short(1e3 * look.delay_s)} ms"),
        (look.drift_share, "is a drift of friction during the record"),
        (look.reversal_share - look.reversal_rows, "lies at changes of direction beyond their part of the time"),
    ]


def _residual_block(check: Validation, j: int, unit: str, speed: str) -> Block:
    look, series = check.residuals[j], check.series
    rows, time = thinned(len(series.time), POINTS), joined_time(series.dataset, series.time)
    error, velocity, end = series.measured[:, j] - series.predicted[:, j], series.velocity[:, j], float(time[-1])
    y_range, beyond = _reach(error, unit)
    points: dict[str, Any] = {"mode": "markers", "size": 2.5, "faint": True}
    noise = 1.96 * check.joints[j].noise
    noise_band = [band("nominal", [0.0, end], [-noise] * 2, [noise] * 2)] if np.isfinite(noise) else []
    over_time = Panel(
        unit, [line("residual", time[rows], error[rows], **points), *noise_band],
        name="over time", corner=beyond, y_range=y_range, x_range=[0.0, end], x_title="time [s]",
    )  # fmt: skip
    mean = line("residual", look.velocity, look.velocity_mean, name="mean", mode="lines+markers", size=5)
    over_velocity = Panel(
        unit, [line("residual", velocity[rows], error[rows], **points), mean],
        name="over velocity", y_range=y_range, x_range=span(velocity), x_title=f"velocity [{speed}]",
        corner=f"explains {percent(look.velocity_share)}",
    )  # fmt: skip
    return Block(look.name, [[over_time, over_velocity, _autocorrelation(look, len(error))]], (120.0,))


def _reach(error: Array, unit: str) -> tuple[list[float], str]:
    """Ends of an axis that shows nearly all residuals well, and words about those outside."""
    size = np.abs(error[np.isfinite(error)])
    if not size.size or not size.max() > 0.0:
        return [-1.0, 1.0], ""
    reach = min(1.06 * float(size.max()), 2.0 * float(np.quantile(size, 0.99)))
    outside = int(np.sum(size > reach))
    words = f"{percent(outside / size.size)} beyond, to {short(float(size.max()), 2)} {unit}" if outside else ""
    return [-reach, reach], words


def _autocorrelation(look: ResidualAnalysis, rows: int) -> Panel:
    lags = np.arange(len(look.autocorrelation)) * row_seconds(look)
    white = 1.96 / np.sqrt(max(rows, 1))
    ends = [0.0, float(lags[-1]) if len(lags) > 1 else 1.0]
    stems = line("residual", lags, look.autocorrelation, mode="stems")
    return Panel(
        "[–]", [band("nominal", ends, [-white] * 2, [white] * 2), level(0.0, "axis"), stems],
        name="autocorrelation", y_range=[min(-0.3, 1.1 * float(look.autocorrelation.min(initial=0.0))), 1.08],
        x_range=ends, x_title="lag [s]", corner=f"correlated over {short(look.memory_s, 2)} s",
    )  # fmt: skip


def row_seconds(look: ResidualAnalysis) -> float:
    """Time between rows [s]: `memory_s` is the lag at which the autocorrelation has fallen to 0.2."""
    low = np.flatnonzero(look.autocorrelation < 0.2)
    lag = int(low[0]) if len(low) else len(look.autocorrelation) - 1
    return look.memory_s / lag if lag > 0 else 1.0
