"""Evidence on other data: figures, the look of the error, a verdict, and what to change next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.errors import ArmidError
from armid.estimation.estimator import fingerprint
from armid.estimation.fit import Fit
from armid.logs.log import Log
from armid.progress import report_progress
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import Pipeline, process
from armid.signals.problems import SignalError
from armid.signals.steps import Step
from armid.validation.carried import payload_in_error
from armid.validation.comparison import Comparison, compare
from armid.validation.metrics import MOVING, JointMetrics, joint_metrics, relative_error
from armid.validation.reference import against_reference, nominal_fit
from armid.validation.residuals import analyse
from armid.validation.result import Series, Validation
from armid.validation.verdict import Thresholds, advice_for, failing, reasons_for

_log = logging.getLogger(__name__)
MOST_ROWS = 4000  # of the series that a result keeps

Data = Dataset | Log


class TrainingDataError(ArmidError):
    """Data that a fit was made from cannot prove it right."""


def validate(
    fit: Fit,
    data: Data | Sequence[Data],
    *,
    thresholds: Thresholds | None = None,
    allow_training: bool = False,
    low_pass_hz: float | None = None,
    reference: Mapping[str, float] | None = None,
    nominal: bool = True,
) -> Validation:
    """Compare a fit with data it has not seen.

    Args:
        fit: what is to be validated.
        data: data sets, or logs, which are processed with the fit's own signal pipeline; one or several.
        thresholds: what counts as good (default: see `Thresholds`).
        allow_training: accept the training data too; the result then says so.
        low_pass_hz: compare logs after a zero-phase low-pass at this frequency instead of the fit's own strategy.
        reference: values of parameters to compare the estimates with.
        nominal: whether to compare with the nominal inertia of the robot's own file, where there is one.

    Raises:
        TrainingDataError: the data are those the fit was made from.
    """
    given = [data] if isinstance(data, Dataset | Log) else list(data)
    if not given:
        raise ArmidError("there is no data set to validate on")
    sets = []
    for number, item in enumerate(given):
        report_progress("processing the log", 0.5 * number / len(given))
        sets.append(item if isinstance(item, Dataset) else processed(fit, item))
    seen = any(fingerprint(item) in fit.history.get("data_sha256", ()) for item in sets)
    if seen and not allow_training:
        raise TrainingDataError(
            "these are the data the fit was made from, which prove nothing about other motion; give other data "
            "(`armid validate --allow-training`, or allow_training=True, accepts them all the same)"
        )
    if low_pass_hz is not None:
        steps = own_pipeline(fit, low_pass_hz)
        sets = [item if isinstance(item, Dataset) else process(item, steps, robot=fit.robot) for item in given]
    report_progress("comparing torques", 0.5)
    parts = [compare(fit, item) for item in sets]
    limits = Thresholds() if thresholds is None else thresholds
    joints = _joints(fit, parts)
    if nominal and (other := nominal_fit(fit, sets)) is not None:
        beside = _joints(other, [compare(other, item) for item in sets])
        joints = [replace(j, nominal_nrms_moving=b.nrms_moving) for j, b in zip(joints, beside, strict=True)]
    temperatures = [_temperature(item, part) for item, part in zip(given, parts, strict=True)]
    names = fit.robot.joint_names
    shares, mass = payload_in_error(fit, sets, parts)
    report_progress("analysing residuals", 0.7)
    looks = [
        replace(analyse(name, j, parts, temperatures), payload_share=float(shares[j]), payload_mass=mass)
        for j, name in enumerate(names)
    ]
    error, torque, velocity, use = _stacked(parts, "error", "measured", "velocity", "use")
    relative_moving = relative_error(error, torque, (np.abs(velocity) > MOVING) & use)
    bad = failing(joints, limits)
    good = not bad and (limits.relative_error is None or relative_moving <= limits.relative_error)
    return Validation(
        robot=fit.robot.name,
        joints=tuple(joints),
        residuals=tuple(looks),
        relative_error=relative_error(error, torque, use),
        relative_error_moving=relative_moving,
        relative_error_raw=_raw(parts, use),
        same_as_training=seen,
        good=good,
        reasons=tuple(reasons_for(joints, limits, relative_moving)),
        advice=tuple(advice_for(fit, joints, looks, bad)),
        thresholds=limits,
        references=() if reference is None else against_reference(fit, reference),
        series=_series(parts),
        pipeline=tuple(dict(step) for step in sets[0].pipeline),
        data_sha256=tuple(fingerprint(item) for item in sets),
        sources=tuple(_source(item) for item in given),
        fit_sha256=tuple(fit.history.get("data_sha256", ())),
    )


def processed(fit: Fit, log: Log) -> Dataset:
    """A log through the fit's own pipeline; one that does not repeat cannot be averaged and takes the usual way."""
    steps = own_pipeline(fit)
    try:
        return process(log, steps, robot=fit.robot)
    except SignalError:
        if not isinstance(steps.strategy, PeriodicAverage):
            raise
    data = process(log, robot=fit.robot)
    _log.warning("%s does not repeat as the training data did, so it is not averaged: %s", log.info.source, _said(data))
    return data


def _said(data: Dataset) -> str:
    return next((str(note) for note in data.notes if note.code == "signals.low_pass"), "")


def own_pipeline(fit: Fit, low_pass_hz: float | None = None) -> Pipeline:
    """The signal processing of a fit; with `low_pass_hz` its preparations and a low-pass."""
    steps = Pipeline.from_data(fit.pipeline)
    if low_pass_hz is None:
        return steps
    preparations: list[Step] = [step for step in steps.steps if step is not steps.strategy]
    return Pipeline((*preparations, LowPass(cutoff_hz=float(low_pass_hz))))


def _joints(fit: Fit, parts: Sequence[Comparison]) -> list[JointMetrics]:
    result = []
    for j, name in enumerate(fit.robot.joint_names):
        measured, predicted, velocity = (
            np.concatenate([getattr(part, key)[part.use[:, j], j] for part in parts])
            for key in ("measured", "predicted", "velocity")
        )
        noises = [part.noise[j] for part in parts if part.noise is not None]
        if len(noises) < len(parts):
            noises = [] if fit.noise is None else [fit.noise[j]]
        noise = float(np.sqrt(np.mean(np.square(noises)))) if noises else float("nan")
        result.append(joint_metrics(name, measured, predicted, velocity, noise))
    return result


def _stacked(parts: Sequence[Comparison], *names: str) -> list[Any]:
    return [np.concatenate([getattr(part, name) for part in parts]) for name in names]


def _raw(parts: Sequence[Comparison], use: NDArray[np.bool_]) -> float:
    """Error over torque before any filter; NaN where that torque was not kept."""
    if any(part.raw_measured is None for part in parts):
        return float("nan")
    measured, predicted = _stacked(parts, "raw_measured", "raw_predicted")
    return relative_error(measured - predicted, measured, use)


def _temperature(item: Data, part: Comparison) -> Array | None:
    """Temperature at the rows; None where a log has none, or periods were averaged."""
    if not isinstance(item, Log) or "temperature" not in item or part.time[-1] > item.time[-1] + 1.0:
        return None
    columns = []
    for values in item["temperature"].T:
        good = np.isfinite(values)
        there = good.any()
        columns.append(
            np.interp(part.time, item.time[good], values[good]) if there else np.full(len(part.time), np.nan)
        )
    return np.column_stack(columns)


def _series(parts: Sequence[Comparison]) -> Series:
    total = sum(len(part.time) for part in parts)
    step = max(1, -(-total // MOST_ROWS))
    chosen = [slice(None, None, step)] * len(parts)
    joined = {
        key: np.concatenate([getattr(part, key)[rows] for part, rows in zip(parts, chosen, strict=True)])
        for key in ("time", "velocity", "measured", "predicted", "sigma")
    }
    index = np.concatenate([np.full(len(part.time[::step]), k) for k, part in enumerate(parts)])
    return Series(dataset=index, **joined)


def _source(item: Data) -> str:
    return item.info.source if isinstance(item, Log) else str(item.history.get("source", ""))
