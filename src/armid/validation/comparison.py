"""Measured and predicted torque side by side, filtered and delayed alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.errors import DataShapeError
from armid.estimation.fit import Fit
from armid.estimation.problem import Problem
from armid.signals.dataset import Dataset

REVERSAL_S = 0.1  # around a change of direction [s], beside what the filter smears


@dataclass(frozen=True, eq=False)
class Comparison:
    """One data set against a fit; arrays are (rows, joints) but `time`.

    Attributes:
        time: of the rows [s].
        velocity: of the joints [rad/s].
        measured: torque, filtered as the data set says [N m].
        predicted: torque of the fit, delayed and filtered alike [N m].
        sigma: its standard deviation that follows from the parameters' covariance [N m].
        slope: rate of change of the predicted torque [N m/s].
        load: torque of the fit without the friction that it knows of [N m].
        reversal: rows near a change of direction.
        use: rows whose torque can be trusted.
        raw_measured, raw_predicted: torque before any filter, at the rows [N m]; None if it was not kept.
        noise: standard deviation of the measured torque's noise per joint [N m]; None if it was not measured.
        row_s: time between rows [s].
    """

    time: Array
    velocity: Array
    measured: Array
    predicted: Array
    sigma: Array
    slope: Array
    load: Array
    reversal: NDArray[np.bool_]
    use: NDArray[np.bool_]
    raw_measured: Array | None
    raw_predicted: Array | None
    noise: Array | None
    row_s: float

    @property
    def error(self) -> Array:
        """Measured less predicted torque [N m]."""
        return self.measured - self.predicted


def compare(fit: Fit, data: Dataset) -> Comparison:
    """Predict the torque of a data set's rows; torque lags motion by the fit's delays."""
    if tuple(data.joints) != fit.robot.joint_names:
        raise DataShapeError(
            f"the data are of the joints {', '.join(data.joints)}; the fit is of {', '.join(fit.robot.joint_names)}"
        )
    Problem(fit.robot, data)  # checks gravity
    full = delayed(fit.predict(data.motion, sigma=False).torque, data, fit.delay_s)
    slope = np.gradient(full, axis=0) * data.rate_hz
    rows = data.rows
    velocity = data.qd[rows]
    measured = data.torque if data.kernel is None else data.measured
    raw = measured if measured is not None and len(measured) == len(data.time) else None
    load = full - delayed(_friction(fit, data.motion), data, fit.delay_s)
    return Comparison(
        time=data.time[rows],
        velocity=velocity,
        measured=data.torque,
        predicted=data.at_rows(full),
        sigma=_sigma(fit, data),
        slope=data.at_rows(slope),
        load=data.at_rows(load),
        reversal=_reversals(data),
        use=np.ones(velocity.shape, dtype=bool) if data.use is None else _trusted(data),
        raw_measured=None if raw is None else raw[rows],
        raw_predicted=None if raw is None else full[rows],
        noise=data.torque_noise,
        row_s=float(np.median(np.diff(data.time[rows]))) if len(rows) > 1 else 1.0 / data.rate_hz,
    )


def delayed(torque: Array, data: Dataset, delay_s: Array) -> Array:
    """Torque as it is reported, `delay_s` after it acted; a period that was averaged goes on into itself."""
    if not np.any(delay_s):
        return torque
    t = data.time
    period = len(t) / data.rate_hz if data.periods else None
    columns = [np.interp(t - d, t, column, period=period) for d, column in zip(delay_s, torque.T, strict=True)]
    return np.column_stack(columns)


def _friction(fit: Fit, motion: Motion) -> Array:
    """Torque of the linear friction and the terms of a fit."""
    kinds = {p.name: p.kind for p in fit.torque_model.model.parameters}
    friction = np.array([kinds.get(name, "friction") == "friction" for name in fit.columns])
    return fit.torque_model.linear_torque(motion, np.where(friction, fit.values, 0.0))


def _sigma(fit: Fit, data: Dataset) -> Array:
    """Standard deviation of the filtered prediction."""
    result = np.empty(data.torque.shape)
    for which, rows in data.blocks():
        regressor = rows.at_rows(fit.torque_model.regressor(rows.motion))
        variance = np.einsum("tjp,pq,tjq->tj", regressor, fit.covariance, regressor, optimize=True)
        result[which] = np.sqrt(np.maximum(variance, 0.0))
    return result


def _reversals(data: Dataset) -> NDArray[np.bool_]:
    """Rows within the filter's main part, and a tenth of a second, of a change of direction."""
    reach = REVERSAL_S * data.rate_hz
    if data.kernel is not None:
        half = len(data.kernel) // 2
        spread = np.sqrt(np.sum(np.abs(data.kernel) * np.arange(-half, half + 1) ** 2) / np.abs(data.kernel).sum())
        reach += float(spread)
    flips = np.zeros(data.qd.shape, dtype=np.int64)
    flips[1:] = np.signbit(data.qd[1:]) != np.signbit(data.qd[:-1])
    total = np.concatenate([np.zeros((1, data.qd.shape[1]), dtype=np.int64), np.cumsum(flips, axis=0)])
    width = int(np.ceil(reach))
    last, first = np.minimum(data.rows + width + 1, len(flips)), np.maximum(data.rows - width, 0)
    return np.asarray(total[last] > total[first])


def _trusted(data: Dataset) -> NDArray[np.bool_]:
    """Rows that hold measured torque; those left out only because the joint rests count as measured."""
    finite: NDArray[np.bool_] = np.isfinite(data.torque)
    resting = np.abs(data.qd[data.rows]) <= max((step.get("rest_speed", 0.0) for step in data.pipeline), default=0.0)
    return finite & (np.asarray(data.use, dtype=bool) | resting)
