"""Figures of merit of predicted torque, per joint and for the arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from armid.arrays import Array
from armid.files import MaybeNaN

REACH = float(norm.ppf(0.975))  # of a 95 % interval, in standard deviations
MOVING = 0.02  # a joint moves above this speed [rad/s or m/s]
NOISELESS = 1e-9  # of the torque's spread: noise up to here is rounding


@dataclass(frozen=True)
class JointMetrics:
    """How well the torque of one joint is predicted; NaN where a figure has no meaning.

    Attributes:
        name: of the joint.
        rms: of the error over all rows [N m].
        rms_moving: over the rows at which the joint moves (faster than 0.02 rad/s) [N m].
        mse: mean squared error over all rows [N^2 m^2], RX-60 Table VI.
        nrms: rms over the standard deviation of the measured torque.
        nrms_moving: the same over the rows at which the joint moves.
        r2: coefficient of determination over all rows.
        correlation: of measured and predicted torque, ER-16 (18).
        relative_error: length of the error over length of the torque, all rows.
        noise: standard deviation of the measured torque's noise [N m].
        noise_ratio: rms_moving over noise, Swevers Table 1; NaN where there is none beyond rounding.
        nominal_nrms_moving: nrms_moving of the nominal (CAD, URDF) inertia with friction of the training data.
        coverage: share of the moving rows that lie within the stated 95 % interval of a sample.
        rms_reversals: of the error over the slow rows around changes of direction that a fit leaves out [N m].
        rms_standstill: of the torque that friction cannot hold, over the rows at rest [N m].
        reversal_rows, standstill_rows: shares of those rows.
        outside: share of the rows at positions beyond those of the training data.
    """

    name: str
    rms: MaybeNaN
    rms_moving: MaybeNaN
    mse: MaybeNaN
    nrms: MaybeNaN
    nrms_moving: MaybeNaN
    r2: MaybeNaN
    correlation: MaybeNaN
    relative_error: MaybeNaN
    noise: MaybeNaN
    noise_ratio: MaybeNaN
    nominal_nrms_moving: MaybeNaN = float("nan")
    coverage: MaybeNaN = float("nan")
    rms_reversals: MaybeNaN = float("nan")
    rms_standstill: MaybeNaN = float("nan")
    reversal_rows: MaybeNaN = float("nan")
    standstill_rows: MaybeNaN = float("nan")
    outside: MaybeNaN = float("nan")

    @property
    def spread(self) -> float:
        """Standard deviation of the measured torque while moving [N m]."""
        return ratio(self.rms_moving, self.nrms_moving)


def joint_metrics(
    name: str, measured: Array, predicted: Array, velocity: Array, noise: float = float("nan")
) -> JointMetrics:
    """Figures of one joint from arrays (rows,)."""
    error = measured - predicted
    moving = np.abs(velocity) > MOVING
    square = float(np.mean(error**2)) if len(error) else float("nan")
    rms_moving = root_mean_square(error[moving])
    spread = float(np.std(measured)) if len(measured) else 0.0
    return JointMetrics(
        name=name,
        rms=float(np.sqrt(square)),
        rms_moving=rms_moving,
        mse=square,
        nrms=ratio(float(np.sqrt(square)), spread),
        nrms_moving=ratio(rms_moving, float(np.std(measured[moving])) if moving.any() else 0.0),
        r2=1.0 - ratio(square, spread**2),
        correlation=correlation(measured, predicted),
        relative_error=relative_error(error, measured),
        noise=noise,
        noise_ratio=ratio(rms_moving, noise if noise > NOISELESS * spread else 0.0),
    )


def correlation(measured: Array, predicted: Array) -> float:
    """ER-16 (18): sum of products of the deviations from the means, over the roots of their squares."""
    if not len(measured):
        return float("nan")
    a, b = measured - np.mean(measured), predicted - np.mean(predicted)
    return ratio(float(a @ b), float(np.sqrt((a @ a) * (b @ b))))


def relative_error(error: Array, torque: Array, where: NDArray[np.bool_] | None = None) -> float:
    """Length of the error over length of the torque, over the places that count."""
    if where is not None:
        error, torque = error[where], torque[where]
    return ratio(float(np.linalg.norm(error)), float(np.linalg.norm(torque)))


def percentage_accuracy(values: Array, reference: Array) -> Array:
    """PA-10: 100 (1 - |difference| / |reference|), per parameter; NaN where the reference is zero."""
    reference = np.asarray(reference, dtype=float)
    safe = np.where(reference == 0.0, np.nan, np.abs(reference))
    return np.asarray(100.0 * (1.0 - np.abs(np.asarray(values) - reference) / safe))


def root_mean_square(values: Array) -> float:
    """NaN without values."""
    return float(np.sqrt(np.mean(values**2))) if len(values) else float("nan")


def ratio(value: float, by: float) -> float:
    """NaN where it would be infinite."""
    return value / by if by > 0.0 else float("nan")
