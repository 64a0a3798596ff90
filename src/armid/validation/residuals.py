"""What the error looks like: over time, velocity, load and temperature, at reversals, and how long it lasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.fit import Fit
from armid.files import MaybeNaN
from armid.signals.dataset import Dataset
from armid.validation.comparison import Comparison
from armid.validation.metrics import MOVING, correlation, ratio, root_mean_square

BINS = 10
LAGS = 40
ALONE = 1e-3  # least share of its own that the mass must have of its column, beside the first moments


@dataclass(frozen=True, eq=False)
class ResidualAnalysis:
    """The error of one joint, measured less predicted torque; shares are of its mean square over moving rows.

    Attributes:
        name: of the joint.
        bias: mean error [N m].
        bias_share: share that a constant explains.
        time_s, time_rms: error in ten equal stretches of the record: their middles [s], rms [N m].
        drift: change of friction (error along the direction of motion) from start to end of the record [N m].
        drift_share: share that it explains.
        velocity, velocity_mean, velocity_rms: bins of velocity [rad/s], mean and rms of the error in each [N m].
        velocity_share: share that a function of velocity explains.
        load_share: share of the error along the direction of motion that a straight line in the load explains.
        reversal_rms, elsewhere_rms: error near changes of direction and elsewhere [N m].
        reversal_share: share of the squared error that lies near changes of direction.
        reversal_rows: share of the rows that do.
        delay_s: delay of the measured torque, beyond the fit's, that would explain the error best [s].
        delay_share: share that it explains.
        gain: part of the predicted load that the error is.
        gain_share: share that it explains.
        parameter_share: share expected from the uncertainty of the parameters.
        autocorrelation: at lags of 0, 1, ... rows.
        memory_s: lag at which it has fallen to 0.2 [s].
        temperature: correlation of the error along the direction of motion with the temperature; NaN without one.
        temperature_share: share that a straight line in the temperature explains; NaN without one.
        payload_share: share that another mass on the last link explains, fitted to all joints together.
        payload_mass: that mass [kg]; NaN where only its first moments show.
    """

    name: str
    bias: MaybeNaN
    bias_share: MaybeNaN
    time_s: Array
    time_rms: Array
    drift: MaybeNaN
    drift_share: MaybeNaN
    velocity: Array
    velocity_mean: Array
    velocity_rms: Array
    velocity_share: MaybeNaN
    load_share: MaybeNaN
    reversal_rms: MaybeNaN
    elsewhere_rms: MaybeNaN
    reversal_share: MaybeNaN
    reversal_rows: MaybeNaN
    delay_s: MaybeNaN
    delay_share: MaybeNaN
    gain: MaybeNaN
    gain_share: MaybeNaN
    parameter_share: MaybeNaN
    autocorrelation: Array
    memory_s: MaybeNaN
    temperature: MaybeNaN = float("nan")
    temperature_share: MaybeNaN = float("nan")
    payload_share: MaybeNaN = 0.0
    payload_mass: MaybeNaN = float("nan")


def analyse(
    name: str, joint: int, parts: Sequence[Comparison], temperatures: Sequence[Array | None] = ()
) -> ResidualAnalysis:
    """Look at the error of one joint in one data set or several; there is none where no row holds its torque."""
    if not any(part.use[:, joint].any() for part in parts):
        parts = [replace(part, use=np.ones_like(part.use), measured=part.predicted) for part in parts]
    whole = [_of_joint(part, joint) for part in parts]
    time, velocity, error, sigma, slope, load = (np.concatenate([w[k] for w in whole]) for k in range(6))
    reversal = np.concatenate([part.reversal[part.use[:, joint], joint] for part in parts])
    moving = np.abs(velocity) > MOVING
    if not moving.any():
        moving = np.ones(len(error), dtype=bool)
    e, v, near = error[moving], velocity[moving], reversal[moving]
    power = float(np.mean(e**2))
    along, direction = e * np.sign(v), np.sign(v)
    warm = _temperature(parts, joint, temperatures, direction, along, moving)
    gain, gain_share = _regressed(e, load[moving], power)
    rate, late_share = _regressed(e, -slope[moving], power)
    drift, drift_share = _regressed(_centred(along), _centred(_elapsed(whole)[moving]), power)
    centres, means, spreads, by_velocity = _binned(v, e, power)
    acf, memory = _autocorrelation([w[2] for w in whole], parts[0].row_s)
    stretches = np.array_split(np.arange(len(error)), BINS)
    return ResidualAnalysis(
        name=name,
        bias=float(np.mean(e)),
        bias_share=ratio(float(np.mean(e)) ** 2, power),
        time_s=np.array([np.mean(time[s]) if len(s) else np.nan for s in stretches]),
        time_rms=np.array([root_mean_square(error[s]) for s in stretches]),
        drift=drift,
        drift_share=drift_share,
        velocity=centres,
        velocity_mean=means,
        velocity_rms=spreads,
        velocity_share=by_velocity,
        load_share=_regressed(_centred(along), _centred(np.abs(load[moving])), power)[1],
        reversal_rms=root_mean_square(e[near]),
        elsewhere_rms=root_mean_square(e[~near]),
        reversal_share=ratio(float(np.sum(e[near] ** 2)), float(np.sum(e**2))),
        reversal_rows=float(np.mean(near)),
        delay_s=rate,
        delay_share=late_share,
        gain=gain,
        gain_share=gain_share,
        parameter_share=min(ratio(float(np.mean(sigma[moving] ** 2)), power), 1.0),
        autocorrelation=acf,
        memory_s=memory,
        temperature=warm,
        temperature_share=warm**2 * ratio(float(np.var(along)), power),
    )


def _of_joint(part: Comparison, joint: int) -> tuple[Array, ...]:
    use = part.use[:, joint]
    arrays = (part.velocity, part.error, part.sigma, part.slope, part.load)
    return (part.time[use], *(array[use, joint] for array in arrays))


def _elapsed(whole: Sequence[tuple[Array, ...]]) -> Array:
    """Share of each record that has passed, from -0.5 to 0.5."""
    shares = []
    for time, *_ in whole:
        span = float(np.ptp(time)) if len(time) > 1 else 1.0
        shares.append((time - time[0]) / max(span, 1e-12) - 0.5 if len(time) else time)
    return np.concatenate(shares)


def _centred(values: Array) -> Array:
    return values - np.mean(values)


def _regressed(error: Array, shape: Array, power: float) -> tuple[float, float]:
    """Coefficient of a shape in the error, and the share that it explains."""
    square = float(shape @ shape)
    if square <= 0.0 or power <= 0.0:
        return 0.0, 0.0
    coefficient = float(shape @ error) / square
    return coefficient, coefficient**2 * square / (power * len(error))


def _binned(velocity: Array, error: Array, power: float) -> tuple[Array, Array, Array, float]:
    """Bins with equally many rows for each direction; share explained, corrected for what noise would give."""
    centres, means, spreads, explained, used = [], [], [], 0.0, 0
    for rows in (np.flatnonzero(velocity < 0.0), np.flatnonzero(velocity >= 0.0)):
        order = rows[np.argsort(velocity[rows])]
        for group in np.array_split(order, BINS // 2):
            if len(group) < 3:
                continue
            used += 1
            centres.append(float(np.mean(velocity[group])))
            means.append(float(np.mean(error[group])))
            spreads.append(root_mean_square(error[group]))
            explained += len(group) * means[-1] ** 2
    share = ratio(explained / len(error), power)
    chance = used / len(error)
    return np.array(centres), np.array(means), np.array(spreads), max((share - chance) / (1.0 - chance), 0.0)


def _autocorrelation(errors: Sequence[Array], row_s: float) -> tuple[Array, float]:
    lags = min(LAGS, max(min(len(e) for e in errors) - 1, 0))
    power = sum(float(e @ e) for e in errors)
    products = [sum(float(e[: len(e) - lag] @ e[lag:]) for e in errors) for lag in range(lags + 1)]
    acf = np.array(products) / power if power > 0.0 else np.zeros(lags + 1)
    low = np.flatnonzero(acf < 0.2)
    return acf, float((low[0] if len(low) else lags) * row_s)


def _temperature(
    parts: Sequence[Comparison],
    joint: int,
    temperatures: Sequence[Array | None],
    direction: Array,
    along: Array,
    moving: Array,
) -> float:
    if len(temperatures) != len(parts) or any(t is None for t in temperatures):
        return float("nan")
    pairs = zip(parts, temperatures, strict=True)
    values = np.concatenate([t[p.use[:, joint], joint] for p, t in pairs if t is not None])[moving]
    good = np.isfinite(values) & (direction != 0.0)
    if good.sum() < 10 or np.ptp(values[good]) <= 0.0:
        return float("nan")
    return correlation(values[good], along[good])


def payload_in_error(fit: Fit, data: Sequence[Dataset], parts: Sequence[Comparison]) -> tuple[Array, float]:
    """Share of each joint's squared error that one more mass on the last link explains, and that mass.

    The errors of all joints are regressed together on the mass and the first moments of the last link, each joint
    counting by its own error; moments of inertia matter little beside those.

    Returns:
        Shares (joints,), and the mass [kg], NaN where only its first moments show.
    """
    grams = np.zeros((fit.robot.n_joints, 5, 5))
    with one_blas_thread():
        for dataset, part in zip(data, parts, strict=True):
            grams += _grams(fit, dataset, part)
    power = grams[:, -1, -1]
    total = np.tensordot(1.0 / np.where(power > 0.0, power, np.inf), grams, axes=1)
    scale = np.sqrt(np.maximum(np.diag(total)[:-1], 1e-300))
    matrix = total[:-1, :-1] / np.outer(scale, scale)
    x = np.linalg.pinv(matrix, rcond=1e-8, hermitian=True) @ (total[:-1, -1] / scale) / scale
    ends = np.append(-x, 1.0)
    left = (grams @ ends) @ ends
    shares = np.where(power > 0.0, 1.0 - left / np.where(power > 0.0, power, 1.0), 0.0)
    others = matrix[1:, 1:]
    alone = matrix[0, 0] - matrix[0, 1:] @ np.linalg.pinv(others, rcond=1e-8, hermitian=True) @ matrix[1:, 0]
    return np.maximum(shares, 0.0), float(x[0]) if alone > ALONE else float("nan")


def _grams(fit: Fit, data: Dataset, part: Comparison) -> Array:
    """Products of the four columns and the error, per joint, over the rows that count."""
    number = fit.robot.n_joints
    names = [f"{name}{number}" for name in ("m", "mx", "my", "mz")]
    result = np.zeros((number, 5, 5))
    for which, rows in data.blocks():
        columns = rows.at_rows(fit.torque_model.model.regressor(*rows.motion, names))
        stacked = np.concatenate([columns, part.error[which][:, :, None]], axis=2)
        stacked = np.where(part.use[which][:, :, None], stacked, 0.0)
        result += np.einsum("tjp,tjq->jpq", stacked, stacked)
    return result
