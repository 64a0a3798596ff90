"""Arm, friction and payload in one linear problem, the arm known beforehand as well as its fit knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armid.arrays import Array, Indices, Mask
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import one_blas_thread
from armid.estimation.covariance import correlation_of, noise_covariance
from armid.estimation.linear import inverted, residual_variance
from armid.estimation.problem import EstimationError, Problem
from armid.torque.friction.smooth import EVEN, ODD, REST
from armid.torque.payload import LoadedTorqueModel

if TYPE_CHECKING:
    from armid.estimation.fit import Fit
    from armid.signals.dataset import Dataset


class LoadedProblem(Problem):
    """Regression of logs with a payload, or without one but with the same columns.

    Joints that do not move have no rows: at rest, friction takes any value.
    """

    def __init__(self, fit: Fit, data: Sequence[Dataset], *, loaded: bool = True, carried: Array | None = None) -> None:
        """Take delays, friction terms and what is known from the fit."""
        super().__init__(fit.robot, data, delay_s=fit.delay_s)
        self.torque_model = LoadedTorqueModel(fit.torque_model, carried) if loaded else fit.torque_model

    def _check_counts(self, factor: CompactFactor) -> None:
        if sum(factor.counts) <= len(self.names):
            raise EstimationError(
                f"{sum(factor.counts)} rows are left in which a joint moves fast enough for its friction to be known, "
                f"for {len(self.names)} parameters; give a log with more motion"
            )


ROUNDS = 5  # of weights from residuals
VAGUE = 1e3  # [kg, kg m, kg m^2] beyond which no payload is sought: keeps what data leave free from being infinite
SHARED = 100.0  # how much less the arm's fit is believed where a run without payload stands against one with it
CURVE = 0.3  # of a joint's Coulomb friction: how much a coefficient of its smooth curve typically changes
RIDGE = 1e-8  # of a friction column's own information: settles friction that data leave free at the arm's own


@dataclass(frozen=True, eq=False)
class JointSolution:
    """Payload and friction with the error that they share with the arm's fit.

    The estimate's error is ``of_fit`` times the error of the fit's values, plus an error of its own (the new noise)
    with the covariance `own`.

    Attributes:
        payload: ten parameters in the tool frame, without physical limits.
        friction: of the moving joints, with payload.
        columns: index of these friction coefficients among the fit's values.
        of_fit: (10 + friction, fit's values).
        own: (10 + friction, 10 + friction).
        of_gain: change of payload and friction per relative change of each joint's drive gain, which arm and payload
            share, (10 + friction, joints).
        covariance: of payload and friction, both parts.
        information: of payload and friction, of white residuals: what weighs them against physical limits.
        moving: joints that took part.
        counts: rows per joint.
        lag: rows over which residuals are correlated.
    """

    payload: Array
    friction: Array
    columns: Indices
    of_fit: Array
    own: Array
    of_gain: Array
    covariance: Array
    information: Array
    moving: Mask
    counts: Array
    lag: int


@dataclass
class _Part:
    """A problem's share: its columns are ``start + map @ unknowns``; `of_gain` is what drive gains do to `start`."""

    problem: Problem
    factor: CompactFactor
    start: Array
    of_gain: Array
    map: Array
    weights: Array

    def values(self, unknowns: Array) -> Array:
        return np.asarray(self.start + self.map @ unknowns)

    def normal(self) -> tuple[Array, Array]:
        matrix, vector, _ = self.factor.normal_equations(self.weights)
        return self.map.T @ matrix @ self.map, self.map.T @ (vector - matrix @ self.start)

    def gained(self) -> Array:
        """Change of the right side if a joint's torque, and the arm's fit with it, grows by its own size."""
        return np.asarray(
            self.factor.by_joint(self.weights) - self.factor.normal_equations(self.weights)[0] @ self.of_gain
        )

    def reweigh(self, unknowns: Array) -> None:
        moving = np.array(self.factor.counts) > 0
        variance = residual_variance(self.factor, self.values(unknowns))
        self.weights = np.where(moving, 1.0 / np.where(moving, variance, 1.0), 0.0)


def arm_columns(fit: Fit) -> tuple[Indices, Indices]:
    """Indices of the fit's values that stay with the arm (links, rotors, springs), and of its friction.

    What a mixed model has in proportion to the weight and below its slowest data stays too: free, it would take what
    the payload does for friction.
    """
    rest = [name for term in fit.terms if term.law == REST.name for name in term.names]
    friction = fit.friction_columns() & ~np.isin(fit.columns, rest)
    return np.flatnonzero(~friction), np.flatnonzero(friction)


def solve_jointly(fit: Fit, loaded: LoadedProblem, empty: LoadedProblem | None = None) -> JointSolution:
    """Estimate payload and friction; links, rotors and springs are known to the fit's covariance.

    Unknowns are the payload (10), friction of the moving joints with it, friction without it where a run without
    payload is given, and z in ``arm = fit + L z`` with L L' the fit's covariance and z of variance 1: the arm may move
    as far as it is uncertain, and directions of the data in which it is count less. Where the same motion was run
    without payload, z is next to free: what both runs share, errors of the arm's model too, then drops out.
    """
    arm, friction = arm_columns(fit)
    factor = loaded.factor()
    moved = moved_friction(fit, friction, factor)
    factor_empty = None if empty is None else empty.factor()
    moved_empty = moved[:0] if factor_empty is None else moved_friction(fit, friction, factor_empty)
    root, inverse_root = root_of(fit.covariance[np.ix_(arm, arm)])
    z = root.shape[1]
    count = z + 10 + len(moved) + len(moved_empty)
    first = np.zeros((len(loaded.names), count))
    first[arm, :z] = root
    first[len(fit.names) :, z : z + 10] = np.eye(10)
    first[moved, z + 10 : z + 10 + len(moved)] = np.eye(len(moved))
    start, shift = _start(fit, moved)
    start, shift = np.append(start, np.zeros(10)), np.vstack([shift, np.zeros((10, shift.shape[1]))])
    parts = [_Part(loaded, factor, start, shift, first, fit.weights)]
    if empty is not None and factor_empty is not None:
        second = np.zeros((len(fit.names), count))
        second[arm, :z] = root
        second[moved_empty, z + 10 + len(moved) :] = np.eye(len(moved_empty))
        parts.append(_Part(empty, factor_empty, *_start(fit, moved_empty), second, fit.weights))
    with one_blas_thread():
        trust = 1.0 if empty is None else SHARED**-2.0
        curves = [curve_precision(fit, columns) for columns in (moved, moved_empty)]
        prior = np.concatenate([np.full(z, trust), np.full(10, VAGUE**-2.0), *curves])
        middle = np.concatenate([np.zeros(z + 10), fit.values[moved], fit.values[moved_empty]])
        unknowns, hessian = _weighted(parts, prior, middle)
    changes = np.concatenate([np.zeros(z + 10), *curves])
    return _finished(fit, parts, unknowns, hessian, (arm, moved, trust * inverse_root, z), changes)


def curve_precision(fit: Fit, moved: Indices) -> Array:
    """Of friction coefficients: those of a smooth curve are known to a share of the joint's Coulomb friction, or free.

    A curve's bells overlap; without this precision, where speeds are few, huge ones would cancel.
    """
    level: dict[str, float] = {}
    for term in (term for term in fit.terms if term.law in (ODD.name, EVEN.name)):
        coulomb = f"fc{term.joint + 1}"
        found = abs(float(fit.values[fit.columns.index(coulomb)])) if coulomb in fit.columns else 0.0
        level |= dict.fromkeys(term.names, CURVE * found)
    sizes = np.array([level.get(fit.columns[i], 0.0) for i in moved])
    return np.where(sizes > 0.0, 1.0 / np.maximum(sizes, 1e-150) ** 2, 0.0)


def _start(fit: Fit, moved: Indices) -> tuple[Array, Array]:
    """The fit's values where they are not estimated again, and what drive gains do to them, (values, joints)."""
    joints = fit.robot.n_joints
    effects = fit.gain_effects if fit.gain_effects is not None else np.outer(fit.values, np.full(joints, 1.0 / joints))
    again = np.isin(np.arange(len(fit.names)), moved)
    return np.where(again, 0.0, fit.values), np.where(again[:, None], 0.0, effects)


def moved_friction(fit: Fit, friction: Indices, factor: CompactFactor) -> Indices:
    """Friction coefficients of joints that have rows."""
    numbers = {parameter.name: parameter.number - 1 for parameter in fit.torque_model.model.parameters}
    numbers |= {name: term.joint for term in fit.terms for name in term.names}
    return np.array([i for i in friction if factor.counts[numbers[fit.columns[i]]] > 0], dtype=np.int64)


def root_of(covariance: Array) -> tuple[Array, Array]:
    """L with L L' = covariance, and its pseudo-inverse; directions known exactly have no column."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(scale > 0.0, scale, 1.0)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(covariance / np.outer(safe, safe))
    kept = values > 1e-12 * max(values[-1], 1e-300)
    kept &= bool(scale.any())
    size = np.sqrt(values[kept])
    return safe[:, None] * vectors[:, kept] * size, (vectors[:, kept] / size).T / safe


def _weighted(parts: list[_Part], prior: Array, middle: Array) -> tuple[Array, Array]:
    """Unknowns and information, joints weighted by their residuals, found by iteration."""
    for part in parts:
        part.weights = np.where(np.array(part.factor.counts) > 0, part.weights, 0.0)
    for last in range(ROUNDS):
        matrix, vector = np.zeros((len(prior), len(prior))), np.zeros(len(prior))
        for part in parts:
            own, right = part.normal()
            matrix, vector = matrix + own, vector + right
        precision = np.where(prior > 0.0, prior, RIDGE * np.diag(matrix))
        hessian = matrix + np.diag(precision)
        scale = np.sqrt(np.diag(hessian))
        unknowns = np.linalg.solve(hessian / np.outer(scale, scale), (vector + precision * middle) / scale) / scale
        if last < ROUNDS - 1:
            for part in parts:
                part.reweigh(unknowns)
    return unknowns, hessian


def _finished(
    fit: Fit,
    parts: list[_Part],
    unknowns: Array,
    hessian: Array,
    layout: tuple[Indices, Indices, Array, int],
    changes: Array,
) -> JointSolution:
    """Errors: those of the arm's fit pass through, those of the new noise are judged by the residuals.

    A friction curve that changes with the load as `changes` (precisions) expect is an error of its own.
    """
    arm, moved, inverse_root, z = layout
    wanted = slice(z, z + 10 + len(moved))
    with one_blas_thread():
        inverse = inverted(hessian)
        own = (inverse[wanted] * changes) @ inverse[wanted].T
        lags = []
        of_gain = np.zeros((10 + len(moved), fit.robot.n_joints))
        for part in parts:
            values = part.values(unknowns)
            found = correlation_of(part.problem, values)
            lags.append(found.lag)
            spent = float(np.sum(inverse * part.normal()[0]))
            project = inverse[wanted] @ part.map.T
            own += noise_covariance(part.problem, values, part.weights, project, found, spent)
            of_gain += project @ part.gained()
        of_fit = np.zeros((10 + len(moved), len(fit.names)))
        of_fit[:, arm] = inverse[wanted, :z] @ inverse_root
        covariance = own + of_fit @ fit.covariance @ of_fit.T
    counts = np.array(parts[0].factor.counts)
    return JointSolution(
        payload=unknowns[z : z + 10],
        friction=unknowns[z + 10 : z + 10 + len(moved)],
        columns=moved,
        of_fit=of_fit,
        own=0.5 * (own + own.T),
        of_gain=of_gain,
        covariance=0.5 * (covariance + covariance.T),
        information=np.asarray(np.linalg.inv(inverse[wanted, wanted])),
        moving=counts > 0,
        counts=counts,
        lag=max(lags),
    )
