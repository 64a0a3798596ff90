"""Measured and predicted torque side by side, filtered and delayed alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from armid.arrays import Array, Mask
from armid.dynamics.model import Motion
from armid.errors import DataShapeError
from armid.estimation.fit import Fit
from armid.estimation.problem import Problem
from armid.signals.dataset import Dataset
from armid.validation.metrics import MOVING

REST = 1e-3  # speed whose friction holds a joint at rest [rad/s or m/s]
BESIDE = 0.1  # as far from the positions of the training data that it makes no difference [rad or m]
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
        sample_sigma: standard deviation of a sample about it: the model's, of a recording, of a sample alone [N m].
        slope: rate of change of the predicted torque [N m/s].
        load: torque of the fit without the friction that it knows of [N m].
        beyond_rest: how far the measured torque is from the load by more than friction near rest can hold [N m].
        reversal: rows near a change of direction.
        left_out: rows that the fit's own rule would leave out: the joint is slow.
        standstill: rows around which the joint does not move at all.
        outside: rows at positions of the joint that the training data do not have.
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
    sample_sigma: Array
    slope: Array
    load: Array
    beyond_rest: Array
    reversal: NDArray[np.bool_]
    left_out: NDArray[np.bool_]
    standstill: NDArray[np.bool_]
    outside: NDArray[np.bool_]
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
    check_joints(fit, data.joints, "data set")
    slow_share, slow_floor = (fit.options.get(name) for name in ("slow_share", "slow_floor"))
    problem = Problem(fit.robot, data, slow_share=slow_share, slow_floor=slow_floor)  # checks gravity
    late = late_friction(fit, data)
    full = delayed(fit.predict(data.motion, sigma=False).torque + late, data, fit.delay_s)
    slope = np.gradient(full, axis=0) * data.rate_hz
    rows = data.rows
    velocity = data.qd[rows]
    measured = data.torque if data.kernel is None else data.measured
    raw = measured if measured is not None and len(measured) == len(data.time) else None
    friction = fit.torque_model.linear_torque(data.motion, np.where(fit.friction_columns(), fit.values, 0.0))
    load, sigma = data.at_rows(full - delayed(friction + late, data, fit.delay_s)), np.empty(data.torque.shape)
    for which, part in data.blocks():
        sigma[which] = fit.torque_sigma(fit.torque_model.regressor(part.motion, part.at_rows))
    holds = [float(friction_curve(fit, j, np.array([REST]), mean=True)[0][0]) for j in range(fit.robot.n_joints)]
    return Comparison(
        time=data.time[rows],
        velocity=velocity,
        measured=data.torque,
        predicted=data.at_rows(full),
        sigma=sigma,
        sample_sigma=np.sqrt(sigma**2 + fit.recording_sigma(velocity) ** 2 + _of_a_sample(fit, data) ** 2),
        slope=data.at_rows(slope),
        load=load,
        beyond_rest=np.maximum(np.abs(data.torque - load) - np.abs(holds), 0.0),
        reversal=_reversals(data),
        standstill=_near(data, np.abs(data.qd)) <= MOVING,
        outside=_outside(fit, data.q[rows]),
        left_out=~problem.used(replace(data, use=None)),
        use=np.ones(velocity.shape, dtype=bool) if data.use is None else _trusted(data, problem.silent),
        raw_measured=None if raw is None else raw[rows],
        raw_predicted=None if raw is None else full[rows],
        noise=data.torque_noise,
        row_s=float(np.median(np.diff(data.time[rows]))) if len(rows) > 1 else 1.0 / data.rate_hz,
    )


def check_joints(fit: Fit, joints: Sequence[str], what: str) -> None:
    """Refuse data of other joints than the fit's."""
    if tuple(joints) != fit.robot.joint_names:
        raise DataShapeError(
            f"the {what} is of the joints {', '.join(joints)}; the fit is of {', '.join(fit.robot.joint_names)}"
        )


def delayed(torque: Array, data: Dataset, delay_s: Array) -> Array:
    """Torque as it is reported, `delay_s` after it acted; a period that was averaged goes on into itself."""
    if not np.any(delay_s):
        return torque
    t = data.time
    period = len(t) / data.rate_hz if data.periods else None
    columns = [np.interp(t - d, t, column, period=period) for d, column in zip(delay_s, torque.T, strict=True)]
    return np.column_stack(columns)


def late_friction(fit: Fit, data: Dataset) -> Array:
    """What friction adds by changing sides later than the motion does, (samples, joints) [N m]."""
    if fit.friction_lag_s is None:
        return np.zeros_like(data.qd)
    values = np.where(fit.friction_columns(), fit.values, 0.0)
    turned = delayed(data.qd, data, fit.friction_lag_s) * data.qd < 0.0
    still = Motion(data.q, np.where(turned, -data.qd, data.qd), data.qdd)
    return fit.torque_model.linear_torque(still, values) - fit.torque_model.linear_torque(data.motion, values)


def friction_curve(fit: Fit, joint: int, velocity: Array, *, mean: bool = False) -> tuple[Array, Array]:
    """Friction torque of a joint at velocities [rad/s or m/s], without what depends on the load.

    Returns:
        Torque [N m], that against the motion as the `mean` of both directions if wanted, and its standard deviation.
    """
    moving = np.zeros((2, len(velocity), fit.robot.n_joints))
    moving[0, :, joint], moving[1, :, joint] = velocity, -velocity
    columns, torque = [], []
    for qd in moving:
        rows = fit.torque_model.regressor(Motion(np.zeros_like(qd), qd, np.zeros_like(qd)))[:, joint]
        columns.append(rows * fit.friction_columns(load=False))
        known = None if fit.known_torque is None else fit.known_torque.friction[joint]
        torque.append(columns[-1] @ fit.values + (0.0 if known is None else known[0].torque(qd[:, joint], known[1])))
    if mean:
        columns[0], torque[0] = 0.5 * (columns[0] - columns[1]), 0.5 * (torque[0] - torque[1])
    return torque[0], fit.torque_sigma(columns[0])


def _of_a_sample(fit: Fit, data: Dataset) -> Array:
    """What a sample adds to the model's deviation, per joint [N m]: training residuals, and noise beyond theirs."""
    if fit.noise is None or data.torque_noise is None:
        return fit.residual_rms
    more = np.maximum(np.asarray(data.torque_noise) ** 2 - fit.noise**2, 0.0)
    return np.asarray(np.sqrt(fit.residual_rms**2 + more))


def _near(data: Dataset, values: Array) -> Array:
    """Largest of some values of the samples within the filter's main part, and a tenth of a second, of each row."""
    reach = REVERSAL_S * data.rate_hz
    if data.kernel is not None:
        half = len(data.kernel) // 2
        spread = np.sqrt(np.sum(np.abs(data.kernel) * np.arange(-half, half + 1) ** 2) / np.abs(data.kernel).sum())
        reach += float(spread)
    return np.asarray(maximum_filter1d(values, 2 * int(np.ceil(reach)) + 1, axis=0, mode="nearest")[data.rows])


def _reversals(data: Dataset) -> Mask:
    """Rows near a change of direction."""
    flips = np.zeros(data.qd.shape)
    flips[1:] = np.signbit(data.qd[1:]) != np.signbit(data.qd[:-1])
    return np.asarray(_near(data, flips) > 0)


def _outside(fit: Fit, q: Array) -> Mask:
    """Which positions lie beyond those of the training data; none where the fit does not say."""
    if "range" not in fit.history:
        return np.zeros(q.shape, dtype=bool)
    low, high = np.array(fit.history["range"]["position"]).T
    return np.asarray((q < low - BESIDE) | (q > high + BESIDE))


def _trusted(data: Dataset, silent: Mask) -> NDArray[np.bool_]:
    """Rows that hold measured torque; those left out only because the joint rests count, but not of `silent` joints."""
    finite: NDArray[np.bool_] = np.isfinite(data.torque)
    resting = np.abs(data.qd[data.rows]) <= max((step.get("rest_speed", 0.0) for step in data.pipeline), default=0.0)
    return finite & (np.asarray(data.use, dtype=bool) | resting) & ~silent
