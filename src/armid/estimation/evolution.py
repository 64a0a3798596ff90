"""Differential evolution by SciPy, beside the bee colony."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import differential_evolution

from armid.arrays import Array
from armid.estimation.search import BoxSearch, Objective, SearchResult
from armid.progress import report_progress


@dataclass(frozen=True, kw_only=True)
class DifferentialEvolution(BoxSearch):
    """Differential evolution (best1bin), the objective evaluated for a whole generation at once.

    Attributes:
        population: candidates per parameter.
        iterations: generations at most; fewer where the population has gathered within `tolerance`.
        tolerance: relative spread of the population's objectives at which it ends.
    """

    name: ClassVar[str] = "de"

    population: int = 4
    iterations: int = 1000
    tolerance: float = 1e-4

    def search(self, objective: Objective, low: Array, high: Array) -> SearchResult:
        """Run SciPy's search."""
        best: list[float] = []
        evaluations = 0

        def cost(values: Array) -> Array:
            nonlocal evaluations
            found = objective(values)
            evaluations += len(found)
            best.append(min(float(found.min()), best[-1] if best else np.inf))
            text = f"{len(best)} of at most {self.iterations} generations, best {best[-1]:.4g}"
            report_progress(text, len(best) / (self.iterations + 2))
            return found

        result: Any = differential_evolution(
            cost,
            list(zip(low, high, strict=True)),
            popsize=self.population,
            maxiter=self.iterations,
            tol=self.tolerance,
            polish=False,
            updating="deferred",
            vectorized=True,
            seed=np.random.default_rng(self.seed),
        )
        return SearchResult(np.asarray(result.x), float(result.fun), tuple(best), evaluations)
