"""Held-out torque: measured, predicted and nominal, with the residual under it at the same scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.reporting.evidence import Evidence, units_of
from armid.reporting.figure import Block, Figure, Panel, band, line
from armid.reporting.html import paragraph
from armid.reporting.numbers import joined_time, percent, short, span, thinned
from armid.reporting.section import Section, lacking
from armid.validation.comparison import compare
from armid.validation.reference import nominal_fit
from armid.validation.result import Validation

ROWS = 1800
TALL, LEAST = 130.0, 34.0  # heights of a torque panel and the lowest residual panel [px]
TITLE, TRAINING = "Torque on held-out data", "Torque on training data"


@dataclass(frozen=True, eq=False)
class Curves:
    """The compared torques of a page, thinned out; (rows, joints) but `time`, NaN between records."""

    time: Array
    measured: Array
    predicted: Array
    reach: Array
    nominal: Array | None


def torque(evidence: Evidence) -> Section:
    """One block per joint: torque, and under it the residual with as many N m per pixel."""
    check = evidence.check
    if check is None:
        return lacking("torque", TITLE, "A validation fills this: armid validate FIT LOG -o validation.json.")
    curves = _curves(evidence, check)
    figure = Figure(
        name="torque",
        blocks=[_block(check, curves, j, units_of(evidence.fit.robot, j)[0]) for j in range(len(check.joints))],
        caption="measured, predicted and nominal torque of each joint over time, the residual under it",
        legend={
            "measured": "measured",
            "predicted": "predicted, with its 95 % interval",
            **({} if curves.nominal is None else {"nominal": "nominal inertia with the friction that suits it best"}),
            "residual": "residual",
        },
        held_out=not check.same_as_training,
        hint="drag to zoom, double-click to return",
    )
    remark = "" if curves.nominal is not None else paragraph(_no_nominal(evidence), "remark")
    title = TRAINING if check.same_as_training else TITLE
    return Section("torque", title, _sentence(check), figure.html() + remark, (figure,))


def _no_nominal(evidence: Evidence) -> str:
    if evidence.fit.robot.nominal_inertia is None:
        return "There is no grey line: the robot’s description states no nominal inertia (a URDF or MJCF file does)."
    return "The nominal model’s torque is drawn where the validation’s log is given too (--log)."


def _sentence(check: Validation) -> str:
    ordered = sorted((j for j in check.joints if np.isfinite(j.nrms_moving)), key=lambda joint: joint.nrms_moving)
    if not ordered:
        return "No joint has a torque that varies."
    best, worst = ordered[0], ordered[-1]
    start = "On training data, " if check.same_as_training else ""
    words = f"{start}{len(check.joints)} joints, NRMS while moving {percent(best.nrms_moving)} ({best.name}) to "
    words += percent(worst.nrms_moving)
    look = check.residuals[[joint.name for joint in check.joints].index(worst.name)]
    words += f" ({worst.name})"
    if look.reversal_rms > 1.5 * look.elsewhere_rms:
        words += f"; the excess of {worst.name} is near changes of direction"
    return words[0].upper() + words[1:] + "; the residual (orange) stands under each torque at the same scale."


def _curves(evidence: Evidence, check: Validation) -> Curves:
    series = check.series
    rows = thinned(len(series.time), ROWS)
    time = joined_time(series.dataset, series.time)
    nominal = _nominal(evidence, check)
    arrays = [series.measured, series.predicted, 1.96 * series.sigma]
    arrays += [] if nominal is None else [nominal]
    cut = 1 + np.flatnonzero(np.diff(series.dataset[rows]))  # a gap between records
    thin = [np.insert(array[rows], cut, np.nan, axis=0) for array in arrays]
    return Curves(
        np.insert(time[rows], cut, np.nan), thin[0], thin[1], thin[2], thin[3] if nominal is not None else None
    )


def _nominal(evidence: Evidence, check: Validation) -> Array | None:
    """Torque of the nominal inertia at the validation's rows; None where it or the data are not at hand."""
    sets = evidence.held_out
    if sets is None or evidence.fit.robot.nominal_inertia is None:
        return None
    other = nominal_fit(evidence.fit, sets)
    if other is None:
        return None
    parts = [compare(other, data) for data in sets]
    total = sum(len(part.time) for part in parts)
    step = max(1, round(total / max(len(check.series.time), 1)))
    predicted = np.concatenate([part.predicted[::step] for part in parts])
    return predicted if len(predicted) == len(check.series.time) else None


def _block(check: Validation, curves: Curves, j: int, unit: str) -> Block:
    joint = check.joints[j]
    measured, predicted, reach = curves.measured[:, j], curves.predicted[:, j], curves.reach[:, j]
    error = measured - predicted
    shown = [measured, predicted] + ([] if curves.nominal is None else [curves.nominal[:, j]])
    own, own_error, own_height = _scales(span(np.concatenate(shown)), error)
    everything = [curves.measured, curves.predicted] + ([] if curves.nominal is None else [curves.nominal])
    same, same_error, same_height = _scales(
        span(np.concatenate([array.ravel() for array in everything])), curves.measured - curves.predicted
    )
    traces = [band("predicted", curves.time, predicted - reach, predicted + reach)]
    if curves.nominal is not None:
        traces.append(line("nominal", curves.time, curves.nominal[:, j]))
    traces += [line("measured", curves.time, measured, wide=True), line("predicted", curves.time, predicted)]
    x_range = [0.0, float(np.nanmax(curves.time))]
    noise = f" · {joint.noise_ratio:.1f}× noise" if np.isfinite(joint.noise_ratio) else ""
    upper = Panel(
        unit, traces, corner=f"moving: RMS {short(joint.rms_moving)} {unit} · NRMS {percent(joint.nrms_moving)}{noise}",
        y_range=own, same_range=same, x_range=x_range,
    )  # fmt: skip
    lower = Panel(
        "", [line("residual", curves.time, error)],
        y_range=own_error, same_range=same_error, x_range=x_range, x_title="time [s]",
    )  # fmt: skip
    return Block(joint.name, [[upper], [lower]], (TALL, own_height), (TALL, same_height))


def _scales(own: list[float], error: Array) -> tuple[list[float], list[float], float]:
    """Range of the torque, range of the residual, and the height that gives both the same scale."""
    per_pixel = (own[1] - own[0]) / TALL
    reach = 1.08 * float(np.nanmax(np.abs(error))) if np.isfinite(error).any() else 0.0
    height = min(max(LEAST, 2.0 * reach / per_pixel), 1.6 * TALL)
    return own, [-0.5 * height * per_pixel, 0.5 * height * per_pixel], height
