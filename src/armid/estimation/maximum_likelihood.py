"""Maximum likelihood with noise on positions as well as on torque (Swevers et al.)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.errors import UnknownNameError
from armid.estimation.covariance import sandwich
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.least_squares import measured_noise
from armid.estimation.likelihood import EffectivePart, FourierPart, Normal, Part, is_period, motion_noise
from armid.estimation.linear import solve_problem, solve_weighted
from armid.estimation.problem import Problem
from armid.notes import note
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset


@dataclass(frozen=True, kw_only=True)
class MaximumLikelihood(Estimator):
    """The most likely parameters where positions carry noise too; nonlinear, started from weighted least squares.

    Periodic data (averaged over at least two periods): the Fourier coefficients of the true motion are estimated with
    the parameters, see `FourierPart`. Other data: the variance of each row holds what noise of its motion does to its
    torque, see `EffectivePart`. Gauss-Newton steps, shortened until the likelihood grows.

    Attributes:
        noise: of the torque: ``measured`` as the data sets state it, ``residual`` from the residuals (and wherever a
            data set states none).
        position_noise: standard deviation of measured positions [rad], one or one per joint; needed for data that do
            not repeat, where it is that of the raw encoder. None takes what the data sets state.
        motion_noise: of q, qd, qdd [rad, rad/s, rad/s^2] after filtering, for data that do not say how they were
            filtered; overrides `position_noise` for data that do not repeat.
        tolerance: relative change of the estimate (columns scaled to unit length) at which iterations end.
        iterations: at most.
    """

    name: ClassVar[str] = "ml"
    about: ClassVar[str] = "noise on positions too"

    noise: str = "measured"
    position_noise: float | tuple[float, ...] | None = None
    motion_noise: tuple[float, float, float] | None = None
    tolerance: float = 1e-7
    iterations: int = 30

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        if self.noise not in ("measured", "residual"):
            raise UnknownNameError("noise", self.noise, ("measured", "residual"))
        problem = self.problem(robot, data)
        _, start, weights = solve_weighted(problem)
        stated = all(d.torque_noise is not None and np.all(d.torque_noise > 0.0) for d in problem.data)
        measured = self.noise == "measured" and stated
        if measured:
            weights = 1.0 / measured_noise(problem) ** 2
        with one_blas_thread():
            parts = [self._part(problem, d, weights) for d in problem.data]
            values, converged, rounds = self._iterate(parts, start.values)
            if not measured:  # once more, with the noise that is left when the motion is right
                weights = _residual_weights(problem, parts)
                parts = [self._part(problem, d, weights) for d in problem.data]
                values, converged, rounds = self._iterate(parts, values)
            total = _summed(parts, values)
            scale = np.sqrt(np.diag(total.matrix))
            inverse = np.linalg.inv(total.matrix / np.outer(scale, scale)) / np.outer(scale, scale)

            def scores() -> Iterator[tuple[Array, Array]]:
                for part in parts:
                    yield from part.scores(values)

            extra = np.sum([part.extra() for part in parts], axis=0)
            white = None
            if all(isinstance(part, FourierPart) for part in parts):
                used = sum(part.rows for part in parts if isinstance(part, FourierPart))
                white = inverse * total.cost / max(used - len(values), 1)
            covariance, correlated = sandwich(scores, inverse, sum(map(len, problem.data)), extra=extra, white=white)
        refined = self.problem(robot, [part.refined() for part in parts])
        factor, solution = solve_problem(refined, weights)
        periodic = [isinstance(part, FourierPart) for part in parts]
        moved = [float(np.abs(part.refined().q - d.q).max()) for part, d in zip(parts, problem.data, strict=True)]
        how = {"steps": rounds, "converged": converged, "measured": measured, "weighted": not all(periodic)}
        notes = [note("estimation.likelihood", **how, moved_rad=max(moved) if any(periodic) else None), correlated]
        return self.finished(
            problem, factor, replace(solution, values=values), weights, covariance=covariance, notes=notes
        )

    def _iterate(self, parts: Sequence[Part], values: Array) -> tuple[Array, bool, int]:
        for count in range(1, self.iterations + 1):
            total = _summed(parts, values)
            scale = np.sqrt(np.diag(total.matrix))
            step = np.linalg.solve(total.matrix / np.outer(scale, scale), total.vector / scale) / scale
            share = 1.0
            while sum(part.cost(values, step, share) for part in parts) > total.cost * (1.0 + 1e-12):
                share *= 0.5
                if share < 1e-3:
                    return values, bool(_relative(scale * step, scale * values) < 1e-4), count
            for part in parts:
                part.accept(step, share)
            values = values + share * step
            if _relative(scale * step, scale * values) < self.tolerance:
                return values, True, count
        return values, False, self.iterations

    def _part(self, problem: Problem, dataset: Dataset, weights: Array) -> Part:
        noise = motion_noise(dataset, self.position_noise, None if is_period(dataset) else self.motion_noise)
        if is_period(dataset):
            return FourierPart(problem, dataset, weights, noise)
        return EffectivePart(problem, dataset, weights, noise)


def _summed(parts: Sequence[Part], values: Array) -> Normal:
    every = [part.normal(values) for part in parts]
    return Normal(
        np.sum([one.matrix for one in every], axis=0),
        np.sum([one.vector for one in every], axis=0),
        sum(one.cost for one in every),
    )


def _residual_weights(problem: Problem, parts: Sequence[Part]) -> Array:
    """Weights from the residuals on the motion as estimated."""
    refined = Problem(
        problem.robot,
        [part.refined() for part in parts],
        terms=problem.torque_model.terms,
        delay_s=problem.delay_s,
        load_values=problem.torque_model.load_values,
        known_torque=problem.torque_model.known,
        slow_share=problem.slow_share,
        slow_floor=problem.slow_floor,
    )
    return solve_weighted(refined)[2]


def _relative(change: Array, whole: Array) -> float:
    return float(np.linalg.norm(change) / max(float(np.linalg.norm(whole)), 1e-300))
