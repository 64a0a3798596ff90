"""Artificial bee colony, as the ER-16 paper states it (Ding et al. 2015, (7)-(13))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.estimation.problem import EstimationError
from armid.estimation.search import BoxSearch, Objective, SearchResult
from armid.progress import report_progress


@dataclass(frozen=True, kw_only=True)
class BeeColony(BoxSearch):
    """Food sources are parameter vectors; bees change one parameter of one source at a time.

    Corrections to the paper: the index of (9) and (12) runs over samples and sources respectively (ER-6); the partner
    k of (10) is another source, not a parameter (ER-7); (11) compares whole vectors (ER-8). Where it is silent: a
    change that leaves the box is put on its edge, bees act one after the other, every source past its limit gets a
    scout, and the best solution ever met is remembered (step 7).

    Attributes:
        colony: number N_s of bees; half of them are employed, so that there are N_s / 2 sources.
        limit: trials without improvement after which a source is given up, (13).
        iterations: T_max.
    """

    name: ClassVar[str] = "abc"

    colony: int = 30
    limit: int = 15
    iterations: int = 50

    def search(self, objective: Objective, low: Array, high: Array) -> SearchResult:
        """Run the colony."""
        if self.colony < 4 or self.colony % 2:
            raise EstimationError(f"colony is {self.colony}; give an even number from 4")
        if self.limit < 1 or self.iterations < 1:
            raise EstimationError(f"limit is {self.limit} and iterations {self.iterations}; both must be 1 or more")
        hive = _Hive(objective, low, high, self.colony, np.random.default_rng(self.seed))
        curve = [hive.best_cost]
        for iteration in range(self.iterations):
            report_progress(
                f"{iteration} of {self.iterations} iterations, best {hive.best_cost:.4g}", iteration / self.iterations
            )
            for source in range(hive.sources):  # employed bees
                hive.visit(source)
            fitness = 1.0 / (1.0 + hive.costs)  # (8)
            chosen = hive.rng.choice(hive.sources, size=hive.sources, p=fitness / fitness.sum())  # (12)
            for picked in chosen:  # following bees
                hive.visit(int(picked))
            for given_up in np.flatnonzero(hive.trials > self.limit):
                hive.replace(int(given_up))
            curve.append(hive.best_cost)
        return SearchResult(hive.best, hive.best_cost, tuple(curve), hive.evaluations)


class _Hive:
    """The sources: vectors x_i, their predictions, objectives F_i and trials."""

    def __init__(self, objective: Objective, low: Array, high: Array, colony: int, rng: np.random.Generator) -> None:
        self.rng, self.objective, self.low, self.high = rng, objective, low, high
        first = low + rng.random((colony, len(low))) * (high - low)  # (7)
        costs = objective(first.T)
        self.sources = colony // 2
        best = np.argsort(costs, kind="stable")[: self.sources]  # step 2: the better half
        self.vectors, self.costs = first[best], costs[best]
        self.predictions = self.vectors @ objective.matrix.T
        self.trials = np.zeros(self.sources, dtype=np.int64)
        self.best, self.best_cost = self.vectors[0].copy(), float(self.costs[0])
        self.evaluations = colony

    def visit(self, source: int) -> None:
        """Search near a source, (10), and keep the better, (11)."""
        parameter = int(self.rng.integers(len(self.low)))
        other = int(self.rng.integers(self.sources - 1))
        other += other >= source
        here = self.vectors[source, parameter]
        step = self.rng.uniform(-1.0, 1.0) * (here - self.vectors[other, parameter])
        value = float(np.clip(here + step, self.low[parameter], self.high[parameter]))
        # one parameter changes, so the prediction changes along one column
        prediction = self.predictions[source] + (value - here) * self.objective.matrix[:, parameter]
        cost = float(np.abs(self.objective.target - prediction).sum())
        self.evaluations += 1
        if cost < self.costs[source]:
            self.vectors[source, parameter] = value
            self.predictions[source], self.costs[source], self.trials[source] = prediction, cost, 0
            self._remember(source)
        else:
            self.trials[source] += 1

    def replace(self, source: int) -> None:
        """A scout finds a new source, (13)."""
        self.vectors[source] = self.low + self.rng.random(len(self.low)) * (self.high - self.low)
        self.predictions[source] = self.objective.matrix @ self.vectors[source]
        self.costs[source] = np.abs(self.objective.target - self.predictions[source]).sum()
        self.trials[source] = 0
        self.evaluations += 1
        self._remember(source)

    def _remember(self, source: int) -> None:
        if self.costs[source] < self.best_cost:
            self.best, self.best_cost = self.vectors[source].copy(), float(self.costs[source])
