"""Comparing friction models on data they were not fitted to, fast: every candidate's column is in one set of Grams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.estimation.problem import Problem
from armid.signals.dataset import Dataset
from armid.torque.dissipation import SPEEDS, implausibility
from armid.torque.friction.term import FrictionTerm

FOLDS = 6
MOST_ROWS = 20_000  # of each data set that comparisons look at
RIDGE = 1e-9  # of a scaled column's square: keeps candidates that the data cannot tell apart from blowing up


@dataclass(frozen=True)
class Delay:
    """The candidate that torque of a joint lags motion; its coefficient is the delay [s]."""

    joint: int

    @property
    def names(self) -> tuple[str, ...]:
        """Name of its coefficient."""
        return (f"delay{self.joint + 1}",)


Candidate = FrictionTerm | Delay


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors of one set of candidates on held-out data.

    Attributes:
        squares: sum of squared held-out residuals, (folds, joints) [N^2 m^2].
        counts: rows, (folds, joints).
    """

    squares: Array
    counts: Array

    @property
    def rms(self) -> Array:
        """Held-out error per joint [N m]."""
        return np.asarray(np.sqrt(self.squares.sum(axis=0) / np.maximum(self.counts.sum(axis=0), 1)))

    def gains(self, over: Scores, effective: float) -> Array:
        """Gain of log-likelihood [nats] over other scores, by fold; `effective` is the share of independent rows.

        The sum over folds is n/2 log(S0/S) for each joint, S0 and S the squares of all its n rows; a fold has the part
        of it that it has of the difference S0 - S.
        """
        plain, own = (np.maximum(scores.squares.sum(axis=0), 1e-300) for scores in (over, self))
        difference = np.where(plain == own, 1.0, plain - own)
        slope = np.where(plain == own, 1.0 / own, np.log(plain / own) / difference)
        return np.asarray(0.5 * effective * (over.squares - self.squares) @ (self.counts.sum(axis=0) * slope))


class CrossValidation:
    """Gram matrices of base columns and all candidates, split into folds of consecutive rows.

    Rows within half a filter kernel of a fold's edge are trained on by nobody who is tested on that fold.
    """

    def __init__(self, problem: Problem, candidates: Sequence[Candidate], values: Mapping[str, float]) -> None:
        """One pass over the data.

        Args:
            problem: data, base columns, delays so far.
            candidates: what may be added.
            values: parameters of the present model, for loads and the delay's column.
        """
        self.candidates = tuple(candidates)
        self._base = len(problem.torque_model.model.base.kept)
        self._n = problem.robot.n_joints
        terms = [c for c in candidates if isinstance(c, FrictionTerm)]
        self._problem = problem.with_terms(terms, load_values=values)
        present = np.array([values[name] for name in problem.names])
        self._order = {c: self._base + k for k, c in enumerate((*terms, *(c for c in candidates if c not in terms)))}
        size = self._base + len(candidates) + 1
        self._inner = np.zeros((FOLDS, self._n, size, size))
        self._outer = np.zeros((FOLDS, self._n, size, size))
        self._counts = np.zeros((FOLDS, self._n))
        slowest = np.min([problem.slow_limit(dataset) for dataset in problem.data], axis=0)
        fastest = np.max([np.abs(dataset.qd).max(axis=0) for dataset in problem.data], axis=0)
        self._speeds = np.maximum([slowest, fastest], 1e-9)
        with one_blas_thread():
            for dataset in problem.data:
                self._add(problem, dataset, present)
        self._total = self._inner.sum(axis=0)
        self._train = self._total - self._outer

    def _add(self, problem: Problem, dataset: Dataset, present: Array) -> None:
        rows, use, torque = dataset.rows, problem.used(dataset), problem.torque(dataset)
        step = max(1, len(rows) // MOST_ROWS)
        chosen = np.arange(0, len(rows), step)
        half = 0 if dataset.kernel is None else len(dataset.kernel) // 2
        edges = np.linspace(0, len(chosen), FOLDS + 1).astype(int)
        for fold in range(FOLDS):
            mine = chosen[edges[fold] : edges[fold + 1]]
            if not len(mine):
                continue
            first, last = rows[mine[0]] - half, rows[mine[-1]] + half
            wide = chosen[(rows[chosen] >= first) & (rows[chosen] <= last)]
            part = dataset.part(wide)
            stacked = part.at_rows(self._columns(problem, part.motion, dataset, present))
            inner = np.isin(wide, mine)
            for joint in range(self._n):
                good = use[wide, joint]
                block = np.column_stack([stacked[:, joint], torque[wide, joint]])
                self._outer[fold, joint] += block[good].T @ block[good]
                self._inner[fold, joint] += block[good & inner].T @ block[good & inner]
                self._counts[fold, joint] += int(np.sum(good & inner))

    def _columns(self, problem: Problem, motion: Motion, dataset: Dataset, present: Array) -> Array:
        """Base, terms, and the delays' columns: minus the rate of change of the torque of the present model."""
        columns = self._problem.torque_model.regressor(motion)
        delays = [c for c in self.candidates if isinstance(c, Delay)]
        if not delays:
            return columns
        torque = problem.torque_model.total_torque(motion, present)
        slope = -np.gradient(torque, axis=0) * dataset.rate_hz
        extra = np.zeros((*columns.shape[:2], len(delays)))
        for k, delay in enumerate(delays):
            extra[:, delay.joint, k] = slope[:, delay.joint]
        return np.concatenate([columns, extra], axis=2)

    def scores(self, chosen: Sequence[Candidate], weights: Array) -> Scores:
        """Fit to all folds but one, look at that one; for each fold."""
        index = self._index(chosen)
        squares = np.zeros((FOLDS, self._n))
        with one_blas_thread():
            for fold in range(FOLDS):
                ends = self._solved(self._train[fold], index, weights)
                held = self._inner[fold][:, index[:, None], index]
                squares[fold] = (held @ ends) @ ends
        return Scores(np.maximum(squares, 0.0), self._counts)

    def compare(
        self,
        others: Sequence[Candidate],
        own: Sequence[Candidate],
        combinations: Sequence[Sequence[Candidate]],
        weights: Array,
    ) -> list[Scores]:
        """Scores of `others` with each combination of `own` added.

        What the combinations share is eliminated once: with x_o = u - V x_c the solution of the shared columns for
        given coefficients x_c, errors are quadratic in x_c, and each combination costs a solution of its own columns.
        """
        shared = [*range(self._base), *(self._order[c] for c in others)]
        mine = [self._order[c] for c in own]
        last = self._total.shape[1] - 1
        index = np.array([*shared, *mine, last])
        m, k = len(shared), len(mine)
        places = [[own.index(c) for c in combination] for combination in combinations]
        squares = np.zeros((len(places), FOLDS, self._n))
        with one_blas_thread():
            for fold in range(FOLDS):
                gram = np.tensordot(weights, self._train[fold][:, index[:, None], index], axes=1)
                scale = np.sqrt(np.maximum(np.diag(gram)[:-1], 1e-300))
                gram = gram / np.outer([*scale, 1.0], [*scale, 1.0])
                gram[range(m + k), range(m + k)] += RIDGE
                right = gram[:m, m:]
                reduced = np.linalg.solve(gram[:m, :m], right)  # [V | u]
                schur = gram[m:, m:] - right.T @ reduced
                # ends(x_c) = e0 + E x_c, the vector (-x, 1) in scaled columns
                ends = np.zeros((m + k + 1, k + 1))
                ends[:m] = np.column_stack([reduced[:, :k], -reduced[:, k]])
                ends[range(m, m + k), range(k)] = -1.0
                ends[-1, k] = 1.0
                ends[:-1] /= scale[:, None]
                held = ends.T @ self._inner[fold][:, index[:, None], index] @ ends
                for number, place in enumerate(places):
                    x = np.linalg.solve(schur[np.ix_(place, place)], schur[place, k]) if place else np.zeros(0)
                    chosen = [*place, k]
                    vector = np.append(x, 1.0)
                    squares[number, fold] = (held[:, np.array(chosen)[:, None], chosen] @ vector) @ vector
        return [Scores(np.maximum(part, 0.0), self._counts) for part in squares]

    def fitted(self, chosen: Sequence[Candidate], weights: Array) -> tuple[dict[Candidate, float], Array]:
        """Coefficients of the chosen candidates from all rows, and the residual variance per joint."""
        index = self._index(chosen)
        ends = self._solved(self._total, index, weights)
        squares = (self._total[:, index][:, :, index] @ ends) @ ends
        variance = np.maximum(squares, 1e-30) / np.maximum(self._counts.sum(axis=0), 1)
        return {c: float(-ends[self._base + k]) for k, c in enumerate(chosen)}, variance

    def implausibility(self, chosen: Sequence[Candidate], joint: int, weights: Array, *, dissipative: bool) -> float:
        """How much of a joint's friction cannot be friction, the chosen candidates fitted to the data (a share)."""
        model = self._problem.torque_model.model
        ends = self._solved(self._total, self._index(chosen), weights)
        names = (*model.base.kept, *(name for c in chosen for name in c.names))
        terms = [c for c in chosen if isinstance(c, FrictionTerm)]
        values = dict(zip(names, (-ends[:-1]).tolist(), strict=True))
        slowest, fastest = (float(speed) for speed in self._speeds[:, joint])
        speeds = np.geomspace(slowest, fastest, SPEEDS)
        return implausibility(model, terms, joint, speeds, values, dissipative=dissipative)

    def _index(self, chosen: Sequence[Candidate]) -> Array:
        columns = [*range(self._base), *(self._order[c] for c in chosen), self._total.shape[1] - 1]
        return np.array(columns)

    def _solved(self, grams: Array, index: Array, weights: Array) -> Array:
        """The vector (-x, 1) with x the weighted least-squares solution."""
        total = np.tensordot(weights, grams[:, index[:, None], index], axes=1)
        matrix, vector = total[:-1, :-1], total[:-1, -1]
        scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        scaled = matrix / np.outer(scale, scale) + RIDGE * np.eye(len(vector))
        return np.append(-np.linalg.solve(scaled, vector / scale) / scale, 1.0)
