"""What all estimators share: one `fit(robot, data)` that returns a Fit."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from armid._version import __version__
from armid.arrays import Array, Indices, Mask
from armid.dynamics.factor import CompactFactor
from armid.estimation.covariance import hac_covariance
from armid.estimation.fit import Fit
from armid.estimation.gains import effects_of_gains
from armid.estimation.identifiability import identifiability
from armid.estimation.linear import Solution, residual_squares
from armid.estimation.problem import ENOUGH, EstimationError, Problem, high_quantile
from armid.notes import Note, note
from armid.registry import Registry
from armid.robot.robot import Robot
from armid.signals.dataset import PIECE, Dataset
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque

FAR_ABOVE_NOISE = 10.0  # times that residuals exceed the noise before it is said


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """An estimator: options without logic, and `fit`.

    Attributes:
        known: values of parameters that are not to be estimated.
        terms: friction terms beyond the description's law.
        delay_s: how much torque lags motion, per joint; None for no delay.
        load_values: base parameters that make the load of load terms.
        known_torque: torque known beforehand (sequential identification).
        slow_share: rows of a joint slower than this share of its own speed are left out; None for `Problem`'s rule.
        slow_floor: and those slower than this [rad/s]; None for `Problem`'s rule.

    One of your own is a frozen dataclass with a `name` and `fit`, registered by ``@estimators.add("name")`` or by an
    entry point in the group ``armid.estimators``; then `identify`, the command line and the report know it. `problem`
    makes the regression, `finished` the Fit.
    """

    name: ClassVar[str] = ""
    about: ClassVar[str] = ""  # in a few words, for --help; the first line of the docstring where it is empty
    finds_friction: ClassVar[bool] = False  # of any form, by itself

    known: Mapping[str, float] | None = None
    terms: tuple[FrictionTerm, ...] = ()
    delay_s: tuple[float, ...] | None = None
    load_values: Mapping[str, float] | None = None
    known_torque: KnownTorque | None = None
    slow_share: float | None = None
    slow_floor: float | None = None

    @abstractmethod
    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate the parameters of `robot` from one data set or several."""

    def problem(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Problem:
        """The regression these options describe."""
        _check_different(data)
        return Problem(
            robot,
            data,
            known=self.known,
            terms=self.terms,
            delay_s=None if self.delay_s is None else np.array(self.delay_s),
            load_values=self.load_values,
            known_torque=self.known_torque,
            slow_share=self.slow_share,
            slow_floor=self.slow_floor,
        )

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        shared = {field.name for field in fields(Estimator)} - {"slow_share", "slow_floor", "known"}
        plain = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in shared}
        return {name: dict(value) if isinstance(value, Mapping) else value for name, value in plain.items()}

    def finished(
        self,
        problem: Problem,
        factor: CompactFactor,
        solution: Solution,
        weights: Array,
        *,
        covariance: Array | None = None,
        gain_effects: Array | None = None,
        notes: Sequence[Note] = (),
        standard_parameters: Mapping[str, float] | None = None,
    ) -> Fit:
        """A Fit from a solution; the covariance accounts for correlated residuals unless one is given.

        `gain_effects` are those of a problem with the factor's columns alone where they are not given.
        """
        said = [*notes, *filter(None, [problem.left_out(factor.counts)])]
        if covariance is None:
            covariance, found = hac_covariance(problem, solution, weights)
            said.append(found)
        sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        squares = residual_squares(factor, solution.values)
        rms = np.sqrt(squares / np.maximum(np.array(factor.counts), 1))
        noises = [d.torque_noise for d in problem.data if d.torque_noise is not None]
        noise = np.sqrt(np.mean(np.square(noises), axis=0)) if len(noises) == len(problem.data) else None
        if noise is not None and np.all(noise > 0.0) and (ratio := rms / noise).max() >= FAR_ABOVE_NOISE:
            worst = problem.robot.joint_names[int(np.argmax(ratio))]
            said.append(note("estimation.far_above_noise", joint=worst, ratio=float(ratio.max())))
        gains = _gain_uncertainty(problem.data)
        if gain_effects is None:
            gain_effects = effects_of_gains(factor, solution.inverse, weights)
        if gains is not None:
            said.append(note("estimation.gain_uncertainty", shares=gains.tolist()))
        return Fit(
            robot=problem.robot,
            columns=problem.names,
            values=solution.values,
            covariance=covariance,
            terms=problem.torque_model.terms,
            load_values=problem.torque_model.load_values,
            known_torque=problem.torque_model.known,
            delay_s=problem.delay_s,
            residual_rms=rms,
            noise=noise,
            standard_parameters=standard_parameters,
            factor=factor,
            weights=weights,
            identifiability=identifiability(problem.torque_model.labels, solution, sigma, problem.torque_model.terms),
            method=self.name or type(self).__name__,
            options=self.options(),
            pipeline=problem.data[0].pipeline,
            notes=(*(one for d in problem.data for one in d.notes), *said),
            history={
                "armid": __version__,
                "data_sha256": [fingerprint(d) for d in problem.data],
                "data": [dict(d.history) for d in problem.data],
                "range": _range(problem),
                "taken_away_rms": np.sqrt(np.mean([_taken_away(d) for d in problem.data], axis=0)).tolist(),
            },
            gain_uncertainty=gains,
            gain_effects=gain_effects,
        )


#: All estimators by name; those of other packages come by entry points.
estimators: Registry[type[Estimator]] = Registry("method", "armid.estimators", "armid.estimation")


def _gain_uncertainty(data: Sequence[Dataset]) -> Array | None:
    """What the data state about each joint's drive gain, the worst of it; None where they are exact."""
    stated = [d.gain_uncertainty for d in data if d.gain_uncertainty]
    return np.max(stated, axis=0) if np.any(stated) else None


def _check_different(data: Dataset | Sequence[Dataset]) -> None:
    """Data that are there twice would make intervals too narrow."""
    if isinstance(data, Dataset) or len(data) < 2:
        return
    seen: dict[str, int] = {}
    for number, dataset in enumerate(data, start=1):
        if (first := seen.setdefault(fingerprint(dataset), number)) < number:
            raise EstimationError(f"data sets {first} and {number} are the same; give each only once")


def _range(problem: Problem) -> dict[str, list[list[float]]]:
    """Least and largest position [rad or m] and usual speeds [rad/s or m/s] of each joint over the rows that count.

    Speeds are those of some `ENOUGH` rows of each data set, spread over it.
    """
    low, high = np.full((2, problem.robot.n_joints), [[np.inf], [-np.inf]])
    speeds = []
    for d in problem.data:
        use = problem.used(d) | problem.silent if problem.silent.any() else problem.used(d)
        for first in range(0, len(use), PIECE):
            own = slice(first, first + PIECE)
            position = _counted(use[own], _at(d.rows, d.q, own))
            low = np.fmin(low, np.fmin.reduce(position, axis=1))
            high = np.fmax(high, np.fmax.reduce(position, axis=1))
        some = slice(None, None, max(1, len(use) // ENOUGH))
        speed = _counted(use[some], _at(d.rows, d.qd, some))
        if np.isnan(speed).all(axis=1).any():  # a joint that hardly moves
            speed = _counted(use, _at(d.rows, d.qd, slice(None)))
        speeds.append(np.abs(speed))
    usual = [speed[~np.isnan(speed)] for speed in np.concatenate(speeds, axis=1)]
    return {
        "position": np.column_stack([low, high]).tolist(),
        "speed": [[-high_quantile(-speed, 0.99), high_quantile(speed, 0.995)] for speed in usual],
    }


def _counted(use: Mask, values: Array) -> Array:
    """Values (rows, joints), one joint after another in memory; those that do not count become NaN."""
    return np.where(use, values, np.nan).T.copy()


def _at(rows: Indices, array: Array, which: slice) -> Array:
    """Some of the rows of an array that may be in a file."""
    return np.asarray(array[which] if len(rows) == len(array) else array[rows[which]])


def _taken_away(dataset: Dataset) -> Array:
    """Variance of the torque per joint that averaging or filtering took away, beside what is left [(N m)^2].

    That of a filter is judged by the median: it rounds the jumps of friction off too, which are no noise.
    """
    if dataset.periods > 1 and dataset.torque_noise is not None:
        return np.asarray((dataset.periods - 1) * dataset.torque_noise**2)
    if dataset.kernel is not None and dataset.measured is not None:
        removed = np.abs(dataset.measured[dataset.rows] - dataset.torque)
        return np.asarray((1.4826 * np.nanmedian(removed, axis=0)) ** 2)
    return np.zeros(len(dataset.joints))


def fingerprint(dataset: Dataset) -> str:
    """Hash of a data set: of its size and of up to 20 000 rows spread over it."""
    digest = hashlib.sha256(str(dataset.q.shape).encode())
    for array in (dataset.time, dataset.q, dataset.torque):
        digest.update(np.ascontiguousarray(array[:: max(1, len(array) // 20_000)]).data)
    return digest.hexdigest()
