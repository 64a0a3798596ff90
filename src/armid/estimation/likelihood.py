"""What one data set says about the parameters when its positions are noisy too: two forms of the likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array, Indices
from armid.dynamics.model import Motion
from armid.estimation.problem import EstimationError, Problem
from armid.experiment.settings import PerJoint, per_joint
from armid.logs.log import Log, LogInfo
from armid.signals.dataset import Dataset
from armid.signals.pipeline import Pipeline
from armid.torque.model import TorqueModel


def is_period(dataset: Dataset) -> bool:
    """Whether a data set is one averaged period, whole and not filtered."""
    return dataset.periods >= 2 and dataset.kernel is None and len(dataset.rows) == len(dataset.q)


def motion_noise(
    dataset: Dataset,
    position_noise: PerJoint | None = None,
    given: tuple[float, float, float] | None = None,
) -> Array:
    """Standard deviations of q, qd, qdd [rad, rad/s, rad/s^2] in the rows of a data set, (3, joints).

    Args:
        dataset: the data.
        position_noise: standard deviation of the position [rad]: for an averaged period that of its kept harmonics, as
            `Dataset.position_noise` (the default); for other data that of the raw encoder, where there is no default.
        given: the result for every joint, if it is known.
    """
    joints = dataset.q.shape[1]
    if given is not None:
        return np.tile(np.array(given, dtype=float)[:, None], joints)
    if position_noise is not None:
        noise = np.array(per_joint("position_noise", position_noise, joints))
    elif dataset.position_noise is not None and is_period(dataset):
        noise = np.asarray(dataset.position_noise)
    else:
        raise EstimationError(
            "the noise of the positions is not known: give position_noise [rad] (of the raw encoder), or average at "
            "least two periods"
        )
    result: Array = _periodic(dataset) * noise if is_period(dataset) else _filtered(dataset) * noise
    return result


def kept_harmonics(dataset: Dataset) -> Array:
    """Which harmonics of each joint an averaged period holds, from 0 (the mean) on, (harmonics, joints) of bool."""
    size = np.abs(np.fft.rfft(dataset.q, axis=0))
    kept = size > 1e-9 * np.maximum(size.max(axis=0), 1e-300)
    kept[0] = True
    return np.asarray(kept)


def _periodic(dataset: Dataset) -> Array:
    """White noise on the kept harmonics alone, each of which has its own frequency."""
    kept = kept_harmonics(dataset)
    rate = 2.0 * np.pi * dataset.rate_hz / len(dataset.q) * np.arange(len(kept))[:, None]
    share = 2.0 * kept / (1 + 2 * kept[1:].sum(axis=0))
    return np.array([np.ones(kept.shape[1]), *(np.sqrt(np.sum(share * rate ** (2 * k), axis=0)) for k in (1, 2))])


def _filtered(dataset: Dataset) -> Array:
    """White noise sent through the same pipeline; the kernel that torque and regressor share acts on it too."""
    strategy = Pipeline.of([dict(step) for step in dataset.pipeline]).strategy if dataset.pipeline else None
    if strategy is None or dataset.periods > 0:
        raise EstimationError("the data set does not say how its positions were filtered; give motion_noise")
    white = np.random.default_rng(0).normal(size=(len(dataset.time), 1))
    info = LogInfo(joints=("noise",), effort="joint torque", rate_hz=dataset.rate_hz)
    made = strategy.dataset(Log(dataset.time, {"position": white, "effort": np.zeros_like(white)}, info))
    return np.array([made.at_rows(array).std(axis=0) for array in made.motion])


BLOCK = 1024  # samples whose derivatives are held at a time
SURE = 4.0  # standard deviations a velocity must be away from zero for its sign to be known
STEP = 1e-5  # of central differences [rad, rad/s, rad/s^2]


class Part(ABC):
    """A data set's share of the likelihood, which may have unknowns of its own beside the parameters."""

    def __init__(self, problem: Problem, dataset: Dataset, weights: Array, noise: Array) -> None:
        """Set up.

        Args:
            problem: the regression.
            dataset: whose rows count; not those whose velocity may have either sign.
            weights: 1 / variance of the torque per joint.
            noise: standard deviations of q, qd, qdd per joint, (3, joints), see `motion_noise`.
        """
        self._data, self._model, self._weights, self._noise = dataset, problem.torque_model, weights, noise
        self._use = problem.used(dataset) & (np.abs(dataset.qd[dataset.rows]) > SURE * noise[1])
        self._torque = problem.torque(dataset)

    @property
    def rows(self) -> int:
        """Rows that count, all joints together."""
        return int(np.count_nonzero(self._use))

    @abstractmethod
    def normal(self, values: Array) -> tuple[Array, Array, float]:
        """Matrix and vector of a Gauss-Newton step for the parameters, all else eliminated, and the cost."""

    @abstractmethod
    def cost(self, values: Array, step: Array, share: float) -> float:
        """Cost after `share` of a step, own unknowns moved along."""

    @abstractmethod
    def scores(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """Scores of the rows, (rows, parameters), and residuals in standard deviations, (rows, joints)."""

    def accept(self, step: Array, share: float) -> None:  # noqa: B027
        """Take the step; here nothing of its own is to be moved."""

    def extra(self) -> Array | float:
        """Variance of scores that do not come from rows."""
        return 0.0

    def refined(self) -> Dataset:
        """The data set with the motion as estimated."""
        return self._data


class FourierPart(Part):
    """Periodic data: the true motion is a Fourier series whose coefficients are estimated with the parameters.

    The cost is sum_t |tau_t - W(motion_t) x|^2 / sigma^2 + sum_k (c_k - c_k measured)^2 / var c_k: Swevers' maximum
    likelihood. Averaged positions enter by the coefficients of their kept harmonics, which is all they say. With white
    noise of standard deviation s on N averaged samples, the mean has the variance s^2 / N and the others 2 s^2 / N.
    """

    def __init__(self, problem: Problem, dataset: Dataset, weights: Array, noise: Array) -> None:
        """Set up; `noise` is that of the kept harmonics only."""
        super().__init__(problem, dataset, weights, noise)
        known = self._model.known_torque(dataset.motion)
        self._torque = self._torque if known is None else self._torque + known
        samples = len(dataset.q)
        spectrum, kept = np.fft.rfft(dataset.q, axis=0), kept_harmonics(dataset)
        harmonics = np.flatnonzero(kept.any(axis=1))[1:]
        self._basis = _bases(samples, harmonics, 2.0 * np.pi * dataset.rate_hz / samples)
        every = np.vstack([spectrum[:1].real, 2.0 * spectrum[harmonics].real, -2.0 * spectrum[harmonics].imag])
        free = np.vstack([kept[:1], kept[harmonics], kept[harmonics]]) & (noise[0] > 0.0)
        twice = np.where(np.arange(len(every))[:, None] == 0, 1.0, 2.0)
        variance = twice * noise[0] ** 2 / (1 + 2 * kept[1:].sum(axis=0))
        # (joints, coefficients), so that a mask runs through them joint by joint
        self._measured = every.T / samples
        self._free, self._variance = free.T, np.where(free, variance, 1.0).T
        self._coefficients = self._measured.copy()
        self._gain = np.zeros((0, 0))
        self._offset = np.zeros(0)

    def normal(self, values: Array) -> tuple[Array, Array, float]:
        """Normal equations; the coefficients are eliminated by their Schur complement."""
        p, m = len(values), int(self._free.sum())
        matrix, vector, cost = np.zeros((p + m, p + m)), np.zeros(p + m), 0.0
        for rows, error in self._jacobians(values):
            matrix += rows.T @ rows
            vector += rows.T @ error
            cost += float(error @ error)
        miss, variance = (self._measured - self._coefficients)[self._free], self._variance[self._free]
        matrix[p:, p:] += np.diag(1.0 / variance)
        vector[p:] += miss / variance
        cost += float(np.sum(miss**2 / variance))
        scale = np.sqrt(np.diag(matrix)[p:])
        inner = matrix[p:, p:] / np.outer(scale, scale)
        right = np.column_stack([matrix[p:, :p], vector[p:]]) / scale[:, None]
        solved = np.linalg.solve(inner, right) / scale[:, None]
        self._gain, self._offset = solved[:, :p], solved[:, p]
        reduced = matrix[:p, :p] - matrix[:p, p:] @ self._gain
        return 0.5 * (reduced + reduced.T), vector[:p] - matrix[:p, p:] @ self._offset, cost

    def cost(self, values: Array, step: Array, share: float) -> float:
        """Cost after a share of a step."""
        coefficients = self._moved(step, share)
        motion = self._motion(coefficients)
        error = np.where(self._use, self._torque - self._model.total_torque(motion, values + share * step), 0.0)
        miss = (self._measured - coefficients)[self._free]
        return float(np.sum(self._weights * error**2) + np.sum(miss**2 / self._variance[self._free]))

    def accept(self, step: Array, share: float) -> None:
        """Take the step."""
        self._coefficients = self._moved(step, share)

    def scores(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """Efficient scores: what is left of a row's score after the coefficients' share is taken out."""
        p, joints = len(values), self._data.q.shape[1]
        for rows, error in self._jacobians(values, every=True):
            scores = (rows[:, :p] - rows[:, p:] @ self._gain) * error[:, None]
            yield scores.reshape(-1, joints, p).sum(axis=1), error.reshape(-1, joints)

    def extra(self) -> Array | float:
        """Variance of the measured coefficients' own scores."""
        return np.asarray(self._gain.T @ (self._gain / self._variance[self._free][:, None]))

    def refined(self) -> Dataset:
        """The data set on the estimated motion."""
        motion = self._motion(self._coefficients)
        return replace(self._data, q=motion.q, qd=motion.qd, qdd=motion.qdd)

    def _moved(self, step: Array, share: float) -> Array:
        result = self._coefficients.copy()
        result[self._free] += share * (self._offset - self._gain @ step)
        return result

    def _motion(self, coefficients: Array) -> Motion:
        return Motion(*(np.ascontiguousarray(basis @ coefficients.T) for basis in self._basis))

    def _jacobians(self, values: Array, *, every: bool = False) -> Iterator[tuple[Array, Array]]:
        """Derivatives of predicted torque to parameters and coefficients, and residuals, in standard deviations."""
        motion, root = self._motion(self._coefficients), np.sqrt(self._weights)
        joints = motion.q.shape[1]
        for first in range(0, len(motion.q), BLOCK):
            part = slice(first, first + BLOCK)
            here = Motion(*(array[part] for array in motion))
            regressor = self._model.regressor(here)
            use = self._use[part]
            error = np.where(use, self._torque[part] - self._model.total_torque(here, values), 0.0) * root
            slopes = motion_slopes(self._model, here, values)
            columns = [_chained(slopes, self._basis, part, i, self._free[i]) for i in range(joints)]
            rows = np.concatenate([regressor, *columns], axis=2) * (use * root)[:, :, None]
            flat, left = rows.reshape(-1, rows.shape[2]), error.ravel()
            yield (flat, left) if every else (flat[use.ravel()], left[use.ravel()])


class EffectivePart(Part):
    """Data that do not repeat: each row's variance holds what noise in its motion does to its torque.

    The cost is sum (tau - W x)^2 / (sigma^2 + sum_i s_i^2 (x' dW/dm_i)^2) over rows and joints, m_i the positions,
    velocities and accelerations with the standard deviations s_i left after filtering: the likelihood with the true
    motion of every row maximised out, to first order. The denominator removes the bias that least squares has.
    Correlation between position and acceleration noise of an instant, and between rows, is left out of the weights; the
    covariance of the estimate accounts for the latter.
    """

    def normal(self, values: Array) -> tuple[Array, Array, float]:
        """Normal equations."""
        p = len(values)
        matrix, vector, cost = np.zeros((p, p)), np.zeros(p), 0.0
        for rows, error in self._rows(values):
            flat, left = rows.reshape(-1, p), error.ravel()
            matrix += flat.T @ flat
            vector += flat.T @ left
            cost += float(left @ left)
        return matrix, vector, cost

    def cost(self, values: Array, step: Array, share: float) -> float:
        """Cost after a share of a step."""
        return sum(float(np.sum(error**2)) for _, error in self._rows(values + share * step))

    def scores(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """Scores of the rows."""
        for rows, error in self._rows(values):
            yield np.einsum("rj,rjp->rp", error, rows), error

    def _rows(self, values: Array) -> Iterator[tuple[Array, Array]]:
        """Derivatives of the scaled prediction to the parameters, (rows, joints, parameters), and scaled residuals."""
        data, model = self._data, self._model
        joints = data.q.shape[1]
        for which, part in data.blocks(BLOCK):
            at = data.rows[which]
            regressor = part.at_rows(model.regressor(part.motion))
            here = Motion(*(np.ascontiguousarray(array[at]) for array in data.motion))
            spread = np.broadcast_to(1.0 / self._weights, (len(at), joints)).copy()
            slope = np.zeros_like(regressor)
            for k in range(3):
                for i in range(joints):
                    if self._noise[k, i] > 0.0:
                        columns, known = regressor_slope(model, here, k, i)
                        effect = columns @ values + known
                        spread += (self._noise[k, i] * effect) ** 2
                        slope += self._noise[k, i] ** 2 * effect[:, :, None] * columns
            use, root = self._use[which], np.sqrt(spread)
            error = np.where(use, self._torque[which] - regressor @ values, 0.0)
            rows = regressor / root[:, :, None] + (error / root**3)[:, :, None] * slope
            yield rows * use[:, :, None], error / root


def motion_slopes(model: TorqueModel, motion: Motion, values: Array) -> tuple[Array, Array, Array]:
    """Derivatives of torque to q, qd, qdd, each (samples, joints of the torque, joints of the motion)."""
    samples, joints = motion.q.shape
    slopes = tuple(np.empty((samples, joints, joints)) for _ in range(3))
    for k in range(3):
        for i in range(joints):
            sides = [model.total_torque(_shifted(motion, k, i, sign * STEP), values) for sign in (1.0, -1.0)]
            slopes[k][:, :, i] = (sides[0] - sides[1]) / (2.0 * STEP)
    return slopes[0], slopes[1], slopes[2]


def regressor_slope(model: TorqueModel, motion: Motion, k: int, i: int) -> tuple[Array, Array | float]:
    """Derivatives of regressor and known torque to one coordinate of the motion."""
    up, down = (_shifted(motion, k, i, sign * STEP) for sign in (1.0, -1.0))
    columns = (model.regressor(up) - model.regressor(down)) / (2.0 * STEP)
    above, below = model.known_torque(up), model.known_torque(down)
    return columns, 0.0 if above is None or below is None else (above - below) / (2.0 * STEP)


def _shifted(motion: Motion, k: int, i: int, by: float) -> Motion:
    arrays = [array.copy() if part == k else array for part, array in enumerate(motion)]
    arrays[k][:, i] += by
    return Motion(*arrays)


def _chained(
    slopes: tuple[Array, Array, Array], basis: tuple[Array, Array, Array], part: slice, i: int, free: NDArray[np.bool_]
) -> Array:
    """Derivatives of torque to the free coefficients of joint i, (samples, joints, coefficients)."""
    result = slopes[0][:, :, i, None] * basis[0][part][:, None, free]
    for k in (1, 2):
        result += slopes[k][:, :, i, None] * basis[k][part][:, None, free]
    return np.asarray(result)


def _bases(samples: int, harmonics: Indices, omega: float) -> tuple[Array, Array, Array]:
    """Columns 1, cos, sin of the harmonics at the samples of one period, and their two derivatives in time."""
    phase = 2.0 * np.pi * ((np.arange(samples)[:, None] * harmonics) % samples) / samples
    rate = omega * harmonics
    cos, sin, one = np.cos(phase), np.sin(phase), np.ones((samples, 1))
    value = np.hstack([one, cos, sin])
    first = np.hstack([0.0 * one, -rate * sin, rate * cos])
    return value, first, np.hstack([0.0 * one, -(rate**2) * cos, -(rate**2) * sin])
