"""Evidence on other data: figures, the look of the error, a verdict, and what to change next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.errors import ArmidError, UnknownNameError
from armid.estimation.estimator import fingerprint
from armid.estimation.fit import Fit
from armid.files import file_hash, is_file
from armid.logs.log import Log
from armid.notes import Note, note
from armid.progress import report_progress
from armid.robot.robot import inertial_names
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import Pipeline, process
from armid.signals.problems import SignalError
from armid.signals.steps import Step
from armid.validation.comparison import Comparison, compare
from armid.validation.judging import judge
from armid.validation.metrics import (
    MOVING,
    REACH,
    JointMetrics,
    joint_metrics,
    percentage_accuracy,
    ratio,
    relative_error,
    root_mean_square,
)
from armid.validation.residuals import ResidualAnalysis, analyse, payload_in_error
from armid.validation.result import ReferenceRow, Series, Thresholds, Validation

SCORED = (
    "measured", "predicted", "velocity", "sample_sigma", "beyond_rest", "left_out", "standstill", "outside",
)  # fmt: skip
TELLING = 0.15  # share of the squared error from which a cause is named
Cause = tuple[float, str, dict[str, Any]]  # how much it counts, the name of its note, the note's values
WARMING_S = 60.0  # a shorter record cannot show that grease warms up


def advice_for(fit: Fit, check: Validation) -> list[Note]:
    """What to change next (Swevers Fig. 2), the most telling cause of each failing joint first."""
    advice: list[Note] = []
    for index in check.bad:
        look = check.residuals[index]
        causes = sorted(_causes(fit, check.joints[index], look, index), key=lambda cause: -cause[0])
        found = telling(causes) or [(0.0, "unexplained", {"memory_s": look.memory_s})]
        advice += [note(f"validation.{name}", joint=look.name, **values) for _, name, values in found]
    if check.bad and fit.identifiability.poor:
        told = {"condition": fit.identifiability.condition, "prior": bool(fit.options.get("prior"))}
        advice.append(note("validation.poor_training", **told))
    return advice


def telling(causes: Sequence[Cause]) -> list[Cause]:
    """The largest cause and the next, unless that is the smaller name of what the first explains already.

    Causes overlap: with 92 % a function of velocity, 24 % that also look like a payload are no second finding.
    """
    found = [cause for cause in causes if cause[0] >= TELLING][:2]
    if len(found) == 2 and found[1][0] > 1.0 - found[0][0] and found[1][0] < 0.5 * found[0][0]:
        del found[1]
    return found


def _causes(fit: Fit, joint: JointMetrics, look: ResidualAnalysis, index: int) -> list[Cause]:
    """What may explain the error."""
    richer = fit.options.get("friction") == "auto" or any(term.joint == index for term in fit.terms)
    offset = bool(fit.robot.friction) and fit.robot.friction[index].offset
    lasting = float(look.time_s[-1] - look.time_s[0]) >= WARMING_S
    at_reversals = look.reversal_rms > 1.5 * look.elsewhere_rms
    times = look.reversal_rms / max(look.elsewhere_rms, 1e-300)
    noise = min(joint.noise_ratio**-2, 1.0) if joint.noise_ratio > 0.0 else 0.0
    mass = look.payload_mass if np.isfinite(look.payload_mass) else None
    warm = look.temperature_share if np.isfinite(look.temperature_share) else 0.0
    return [
        (look.velocity_share - look.bias_share, "velocity", {"share": look.velocity_share, "richer": richer}),
        (look.load_share, "load", {"share": look.load_share}),
        (look.bias_share, "bias", {"share": look.bias_share, "bias": look.bias, "offset": offset}),
        (look.drift_share if lasting else 0.0, "drift", {"share": look.drift_share, "drift": look.drift}),
        (look.delay_share, "delay", {"share": look.delay_share, "delay_s": look.delay_s}),
        (look.parameter_share, "parameters", {"share": look.parameter_share}),
        (
            look.reversal_share - look.reversal_rows if at_reversals else 0.0,
            "reversals",
            {"share": look.reversal_share, "times": times},
        ),
        (noise, "noise", {"share": noise}),
        (look.payload_share, "payload", {"share": look.payload_share, "mass": mass}),
        (warm, "temperature", {"share": warm}),
    ]


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
    trained = _training(fit, given, sets)
    if trained and not allow_training:
        raise TrainingDataError(
            f"{', '.join(trained)}: the fit was made from it, so that it proves nothing about other motion; give other "
            "data (`armid validate --allow-training`, or allow_training=True, accepts them all the same)"
        )
    if low_pass_hz is not None:
        steps = own_pipeline(fit, low_pass_hz)
        sets = [item if isinstance(item, Dataset) else process(item, steps, robot=fit.robot) for item in given]
    report_progress("comparing torques", 0.5)
    parts = [compare(fit, item) for item in sets]
    joints = _joints(fit, parts)
    if nominal and (other := nominal_fit(fit)) is not None:
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
    draft = Validation(
        robot=fit.robot.name,
        joints=tuple(joints),
        residuals=tuple(looks),
        relative_error=relative_error(error, torque, use),
        relative_error_moving=relative_error(error, torque, (np.abs(velocity) > MOVING) & use),
        relative_error_raw=_raw(parts, use),
        same_as_training=bool(trained),
        thresholds=Thresholds() if thresholds is None else thresholds,
        references=() if reference is None else against_reference(fit, reference),
        series=_series(parts),
        pipeline=tuple(dict(step) for step in sets[0].pipeline),
        data_sha256=tuple(fingerprint(item) for item in sets),
        sources=tuple(_source(item) for item in given),
        fit_sha256=tuple(fit.history.get("data_sha256", ())),
    )
    return replace(judge(fit, draft), advice=tuple(advice_for(fit, draft)))


def _training(fit: Fit, given: Sequence[Data], sets: Sequence[Dataset]) -> list[str]:
    """Which of the data the fit was made from: by their values, or by their files."""
    prints = set(fit.history.get("data_sha256", ()))
    files = set(dict(fit.history.get("files_sha256", {})).values())
    found = []
    for number, (item, data) in enumerate(zip(given, sets, strict=True), start=1):
        source = _source(item)
        same = bool(files) and is_file(Path(source)) and file_hash(Path(source)) in files
        if (same and not _apart(fit, data)) or fingerprint(data) in prints:
            found.append(source or f"data set {number}")
    return found


def _apart(fit: Fit, data: Dataset) -> bool:
    """Whether data are of other rows or seconds of a file than all training data, as their recipes say."""
    for name in ("rows", "seconds"):
        spans = [history.get(name) for history in (data.history, *fit.history.get("data", ()))]
        if all(spans):
            (start, stop), *others = [(span[0], np.inf if span[1] is None else span[1]) for span in spans]
            return all(stop <= first or last <= start for first, last in others)
    return False


def processed(fit: Fit, log: Log) -> Dataset:
    """A log through the fit's own pipeline; one that does not repeat cannot be averaged and takes the usual way.

    Torques of another scale than the fit's are refused.
    """
    from armid.signals.doctor.robot import check_torque

    data = _processed(fit, log)
    named = replace(data, history={**data.history, "source": log.info.source})
    check_torque(named, fit.robot, lambda motion: fit.torque_model.total_torque(motion, fit.values))
    return data


def _processed(fit: Fit, log: Log) -> Dataset:
    steps = own_pipeline(fit)
    try:
        return process(log, steps, robot=fit.robot)
    except SignalError:
        if not isinstance(steps.strategy, PeriodicAverage):
            raise
    data = process(log, robot=fit.robot)
    said = next((str(one) for one in data.notes if one.code == "signals.low_pass"), "")
    _log.warning("%s does not repeat as the training data did, so it is not averaged: %s", log.info.source, said)
    return data


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
        measured, predicted, velocity, sigma, beyond, left_out, still, outside = (
            np.concatenate([getattr(part, key)[part.use[:, j], j] for part in parts]) for key in SCORED
        )
        error, moving, turning = measured - predicted, (np.abs(velocity) > MOVING) & ~left_out, left_out & ~still
        noises = [part.noise[j] for part in parts if part.noise is not None]
        if len(noises) < len(parts):
            noises = [] if fit.noise is None else [fit.noise[j]]
        noise = float(np.sqrt(np.mean(np.square(noises)))) if noises else float("nan")
        rows = max(len(error), 1)
        found = replace(
            joint_metrics(name, measured, predicted, velocity, noise),
            coverage=ratio(float(np.sum(np.abs(error[moving]) <= REACH * sigma[moving])), float(moving.sum())),
            rms_reversals=root_mean_square(error[turning]),
            rms_standstill=root_mean_square(beyond[still]),
            reversal_rows=float(turning.sum()) / rows,
            standstill_rows=float(still.sum()) / rows,
            outside=float(np.sum(outside)) / rows,
        )
        result.append(found)
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
    result = np.full((len(part.time), item["temperature"].shape[1]), np.nan)
    for joint, values in enumerate(item["temperature"].T):
        if (good := np.isfinite(values)).any():
            result[:, joint] = np.interp(part.time, item.time[good], values[good])
    return result


def _series(parts: Sequence[Comparison]) -> Series:
    step = max(1, -(-sum(len(part.time) for part in parts) // MOST_ROWS))
    keys = ("time", "velocity", "measured", "predicted", "sigma")
    joined = {key: np.concatenate([getattr(part, key)[::step] for part in parts]) for key in keys}
    return Series(np.repeat(np.arange(len(parts)), [len(part.time[::step]) for part in parts]), **joined)


def _source(item: Data) -> str:
    return item.info.source if isinstance(item, Log) else str(item.history.get("source", ""))


def against_reference(fit: Fit, reference: Mapping[str, float]) -> tuple[ReferenceRow, ...]:
    """Estimates beside reference values.

    Args:
        fit: the estimates.
        reference: values by the names of the fit's parameters (``Izz1R``, or the column ``Izz1``); or of all inertial
            parameters, from which the groups are made.
    """
    base = fit.torque_model.model.base
    columns = dict(zip(fit.names, fit.columns, strict=True))
    values = {columns.get(name, name): value for name, value in reference.items()}
    if not set(values) <= set(fit.columns):
        unknown = set(values) - set(fit.torque_model.model.names) - set(fit.columns)
        if unknown:
            raise UnknownNameError("parameter", sorted(unknown)[0], fit.names)
        values = {
            kept: sum(coefficient * reference[name] for name, coefficient in group.terms)
            for kept, group in zip(base.kept, base.groups, strict=True)
            if all(name in reference for name, _ in group.terms)
        }
    rows = []
    for index, (name, column) in enumerate(columns.items()):
        if column in values:
            value, sigma, told = float(fit.values[index]), float(fit.sigma[index]), float(values[column])
            accuracy = float(percentage_accuracy(np.array([value]), np.array([told]))[0])
            rows.append(ReferenceRow(name, value, sigma, told, accuracy, abs(value - told) <= 2.0 * sigma))
    return tuple(rows)


def nominal_values(fit: Fit) -> dict[str, float] | None:
    """Inertial parameters that the robot's own file states; None if it states none."""
    if fit.robot.nominal_inertia is None:
        return None
    values: dict[str, float] = {}
    for link, inertia in enumerate(fit.robot.nominal_inertia, start=1):
        values |= dict(zip(inertial_names(link), inertia.tolist(), strict=True))
    return values


def nominal_fit(fit: Fit) -> Fit | None:
    """The nominal inertia with the rotors and linear friction that suit it best on the fit's own training data.

    None without nominal inertia. Friction beyond linear, delays and known torque are those of the fit.
    """
    stated = nominal_values(fit)
    if stated is None:
        return None
    model, base = fit.torque_model.model, fit.torque_model.model.base
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    inertia = np.array([stated.get(name, 0.0) if kinds[name] == "inertial" else 0.0 for name in base.names])
    values = fit.values.copy()
    values[: len(base.kept)] = base.matrix @ inertia
    free = [kinds[name] in ("rotor", "friction", "spring") for name in base.names]  # rotors within groups, too
    change = np.zeros((len(values), sum(free)))
    change[: len(base.kept)] = base.matrix[:, free]
    matrix, vector, _ = fit.factor.normal_equations(fit.weights)
    wanted = change.T @ (vector - matrix @ values)
    return replace(fit, values=values + change @ np.linalg.lstsq(change.T @ matrix @ change, wanted, rcond=1e-9)[0])
