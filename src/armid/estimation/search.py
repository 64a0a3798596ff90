"""What searches in a box of parameters share: the objective of the ER-16 paper on few rows, and the Fit they end in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.errors import ArmidError
from armid.estimation.estimator import Estimator, honest_covariance
from armid.estimation.fit import Fit
from armid.estimation.linear import residual_squares
from armid.estimation.problem import EstimationError, Problem
from armid.estimation.start import weighted_start
from armid.estimation.torque_model import model_of
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset

Box = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Where a search ended.

    Attributes:
        values: best parameters found.
        objective: their objective.
        convergence: best objective after the start and after each iteration.
        evaluations: how often the objective was computed.
    """

    values: Array
    objective: float
    convergence: tuple[float, ...]
    evaluations: int


class Objective:
    """The objective (9) of the ER-16 paper, mean over samples of sum_j delta_j |tau_j - tau_pj| / sd(tau_j).

    The paper leaves the weights delta_j and the normalisation open; only a normalised objective fits its value of
    0.3182 (ER-5). delta_j is one over the number of joints.

    Attributes:
        matrix: (rows x joints, parameters), each row divided by what its residual is compared with.
        target: (rows x joints,).
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
    def search(self, objective: Objective, low: Array, high: Array) -> SearchResult:
        """Look for the smallest objective between `low` and `high`."""

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        low, high = self._box(problem)
        objective = Objective(problem, self.rows)
        with one_blas_thread():
            found = self.search(objective, low, high)
        factor, best, weights = weighted_start(problem)
        spread, _ = honest_covariance(problem, best, weights)
        miss = found.values - best.values
        solution = replace(best, values=found.values, squares=residual_squares(factor, found.values))
        reference = float(objective(best.values[:, None])[0])
        notes = [
            f"Objective {found.objective:.4g} after {found.evaluations} evaluations; weighted least squares has "
            f"{reference:.4g} at once.",
            "A search has no covariance of its own; intervals are those of least squares, widened by the distance "
            "to its solution.",
            *_edges(problem.names, found.values, low, high),
        ]
        covariance = spread + np.outer(miss, miss)
        fit = self.finished(problem, factor, solution, weights, covariance=covariance, notes=notes)
        curve = {"convergence": list(found.convergence), "evaluations": found.evaluations}
        return replace(fit, history={**fit.history, **curve, "objective": found.objective})

    def options(self) -> dict[str, Any]:
        """Its own options, as data."""
        plain = super().options()
        plain["bounds"] = None if self.bounds is None else {name: list(pair) for name, pair in self.bounds.items()}
        return plain

    def _box(self, problem: Problem) -> tuple[Array, Array]:
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


def _edges(names: Sequence[str], values: Array, low: Array, high: Array) -> list[str]:
    near = 1e-3 * (high - low)
    stuck = [name for name, x, a, b, d in zip(names, values, low, high, near, strict=True) if x < a + d or x > b - d]
    return [f"At the edge of their bounds: {', '.join(stuck)}."] if stuck else []
