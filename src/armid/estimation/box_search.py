"""Searches within bounds by the absolute error: artificial bee colony and differential evolution."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import differential_evolution

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.errors import ArmidError
from armid.estimation.covariance import hac_covariance
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.linear import residual_squares, solve_weighted
from armid.estimation.problem import EstimationError, Problem
from armid.notes import note
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.model import model_of

Box = Mapping[str, tuple[float, float]]


#: Best parameters; the best objective after the start and after each iteration; how often it was computed.
Found = tuple[Array, list[float], int]


class Objective:
    """The objective (9) of the ER-16 paper, mean over samples of sum_j delta_j |tau_j - tau_pj| / sd(tau_j).

    The paper leaves the weights delta_j and the normalisation open; only a normalised objective fits its value of
    0.3182 (ER-5). delta_j is one over the number of joints.

    Attributes:
        matrix: (rows x joints, parameters), each row divided by what its residual is compared with.
        target: (rows x joints,).
        unit: an objective of 1 as (9) prints it, in N m, weights delta_j = min(sd) / sd_j between 0 and 1.
    """

    def __init__(self, problem: Problem, rows: int) -> None:
        """Keep at most `rows` rows, evenly spread."""
        total = sum(len(dataset) for dataset in problem.data)
        step = max(1, -(-total // rows))
        regressors, torques, uses = [], [], []
        first = 0
        for block in problem.blocks():
            picked = slice((-first) % step, None, step)
            regressors.append(block.regressor[picked])
            torques.append(block.torque[picked])
            uses.append(block.use[picked])
            first += len(block.torque)
        regressor, torque, use = (np.concatenate(parts) for parts in (regressors, torques, uses))
        spread = np.array([torque[mine, j].std() if mine.any() else 0.0 for j, mine in enumerate(use.T)])
        if not np.all(spread > 0.0):
            raise EstimationError("the torque of a joint does not change; give data in which all joints move")
        self.unit = float(len(spread) * spread.min())
        share = 1.0 / (use.sum(axis=0) * len(spread) * spread)
        flat = use.ravel()
        weight = np.broadcast_to(share, torque.shape).ravel()[flat]
        self.matrix = np.ascontiguousarray(regressor.reshape(flat.size, -1)[flat] * weight[:, None])
        self.target = torque.ravel()[flat] * weight

    def __call__(self, values: Array) -> Array:
        """Objective of parameter vectors (parameters, candidates), all at once."""
        return np.asarray(np.abs(self.target[:, None] - self.matrix @ values).sum(axis=0))


@dataclass(frozen=True, kw_only=True)
class BoxSearch(Estimator):
    """A search for the parameters in a box; needs no derivatives, and gives none of least squares' guarantees.

    Attributes:
        bounds: lowest and highest value of each parameter.
        seed: of its random numbers.
        rows: at most this many rows of the regression are looked at, evenly spread.
    """

    bounds: Box | None = None
    seed: int = 0
    rows: int = 500

    @abstractmethod
    def search(self, objective: Objective, low: Array, high: Array) -> Found:
        """Look for the smallest objective between `low` and `high`."""

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        low, high = self.box(problem)
        objective = Objective(problem, self.rows)
        with one_blas_thread():
            values, curve, evaluations = self.search(objective, low, high)
        factor, best, weights = solve_weighted(problem)
        spread, _ = hac_covariance(problem, best, weights)
        miss = values - best.values
        solution = replace(best, values=values, squares=residual_squares(factor, values))
        reference = float(objective(best.values[:, None])[0])
        near = 1e-3 * (high - low)
        edge = (values < low + near) | (values > high - near)
        stuck = [name for name, there in zip(problem.torque_model.labels, edge, strict=True) if there]
        sizes = {"value": curve[-1], "evaluations": evaluations, "least_squares": reference}
        notes = [note("estimation.objective", **sizes), note("estimation.search_intervals")]
        notes += [note("estimation.at_bounds", names=stuck)] if stuck else []
        covariance = spread + np.outer(miss, miss)
        fit = self.finished(problem, factor, solution, weights, covariance=covariance, notes=notes)
        search = {"convergence": curve, "evaluations": evaluations, "objective": curve[-1]}
        return replace(fit, history={**fit.history, **search})

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        plain = super().options()
        plain["bounds"] = None if self.bounds is None else {name: list(pair) for name, pair in self.bounds.items()}
        return plain

    def box(self, problem: Problem) -> tuple[Array, Array]:
        """Lowest and highest values of a problem's parameters."""
        bounds = self.bounds or {}
        missing = [name for name in problem.names if name not in bounds]
        if missing:
            raise EstimationError(
                f"a search needs bounds for {', '.join(missing)}: bounds={{name: (low, high)}}, or a least-squares "
                "method, which needs none"
            )
        for name in problem.names:
            low, high = bounds[name]
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise EstimationError(f"bounds of {name} are {low:g} and {high:g}; give two numbers that increase")
        box = np.array([bounds[name] for name in problem.names], dtype=float)
        return box[:, 0], box[:, 1]


def published_box(robot: Robot, name: str) -> dict[str, tuple[float, float]]:
    """Search range that a published set states (``scope``), by base parameter; ER-16 Table 3 is er16's ``table-2``."""
    view = published(model_of(robot), name)
    scopes = {str(row["name"]): row["scope"] for row in robot.published[name]["parameters"] if "scope" in row}
    base = view.model.base
    columns = [view.model.names.index(parameter) for parameter in base.names]
    result: dict[str, tuple[float, float]] = {}
    for entry, row in zip(view.entries, view.matrix[:, columns], strict=True):
        same = np.flatnonzero(np.abs(base.matrix - row).max(axis=1) < 1e-9)
        if len(same) == 1 and entry in scopes:
            low, high = scopes[entry]
            result[base.kept[int(same[0])]] = (float(low), float(high))
    if not result:
        raise ArmidError(f"the published set {name!r} of {robot.name} states no search range")
    return result


@dataclass(frozen=True, kw_only=True)
class BeeColony(BoxSearch):
    """Food sources are parameter vectors; bees change one parameter of one source at a time.

    Corrections to the paper: the index of (9) and (12) runs over samples and sources respectively (ER-6); the partner
    k of (10) is another source, not a parameter (ER-7); (11) compares whole vectors (ER-8). Where it is silent: a
    change that leaves the box is put on its edge, bees act one after the other, every source past its limit gets a
    scout, and the best solution ever met is remembered (step 7). The fitness (8) takes the objective in N m, as (9)
    prints it: following bees hardly tell sources apart by 1/(1 + F) if F is normalised and thus less than one.

    Attributes:
        colony: number N_s of bees; half of them are employed, so that there are N_s / 2 sources.
        limit: trials without improvement after which a source is given up, (13).
        iterations: T_max.
    """

    name: ClassVar[str] = "abc"
    about: ClassVar[str] = "bee colony of the ER-16 paper"

    colony: int = 30
    limit: int = 15
    iterations: int = 50

    def search(self, objective: Objective, low: Array, high: Array) -> Found:
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
            fitness = 1.0 / (1.0 + objective.unit * hive.costs)  # (8)
            chosen = hive.rng.choice(hive.sources, size=hive.sources, p=fitness / fitness.sum())  # (12)
            for picked in chosen:  # following bees
                hive.visit(int(picked))
            for given_up in np.flatnonzero(hive.trials > self.limit):
                hive.replace(int(given_up))
            curve.append(hive.best_cost)
        return hive.best, curve, hive.evaluations


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


@dataclass(frozen=True, kw_only=True)
class DifferentialEvolution(BoxSearch):
    """Differential evolution (best1bin), the objective evaluated for a whole generation at once.

    Attributes:
        population: candidates per parameter.
        iterations: generations at most; fewer where the population has gathered within `tolerance`.
        tolerance: relative spread of the population's objectives at which it ends.
    """

    name: ClassVar[str] = "de"
    about: ClassVar[str] = "differential evolution"

    population: int = 4
    iterations: int = 1000
    tolerance: float = 1e-4

    def search(self, objective: Objective, low: Array, high: Array) -> Found:
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
        return np.asarray(result.x), best, evaluations
