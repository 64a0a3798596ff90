"""Variable projection: linear coefficients follow from the shapes, which are searched from many starts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import least_squares

from armid.arrays import Array
from armid.estimation.single_joint.laws import Law

GRID = {0: 1, 1: 40, 2: 40, 3: 12}  # values tried for each shape, by how many shapes there are
STARTS = 6  # local minima of the grid that are refined
LEAST_RATIO = 2.0  # between exchangeable shapes


@dataclass(frozen=True)
class Projection:
    """Weighted residuals of the best linear coefficients, as a function of the shapes."""

    law: Law
    x: Array
    target: Array
    weights: Array
    offset: bool

    def solve(self, shape: Array) -> tuple[Array, Array]:
        """Linear coefficients and weighted residuals."""
        columns = self.law.columns(self.x, shape)
        if self.offset:
            columns = np.column_stack([columns, np.ones_like(self.x)])
        columns = columns * self.weights[:, None]
        size = np.linalg.norm(columns, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        found = np.linalg.lstsq(columns / size, self.target, rcond=1e-9)[0] / size
        return found, columns @ found - self.target

    def search(self, ranges: tuple[tuple[float, float], ...]) -> Array:
        """The best shapes within their ranges."""
        if not ranges:
            return np.zeros(0)
        steep = self.law.ordered
        bounds = np.log(np.array(ranges)).T
        if steep:  # search the first shape and its ratio to the second
            bounds[:, 1] = np.log(LEAST_RATIO), bounds[1, 0] - bounds[0, 0]

        def shapes(u: Array) -> Array:
            return np.exp([u[0], u[0] - u[1]]) if steep else np.exp(u)

        grids = [np.linspace(low, high, GRID[len(ranges)]) for low, high in bounds.T]
        cost = np.full([len(grid) for grid in grids], np.inf)
        for index in product(*(range(len(grid)) for grid in grids)):
            residual = self.solve(shapes(_cell(grids, index)))[1]
            cost[index] = residual @ residual
        best: tuple[float, Array] = (np.inf, np.zeros(0))
        for index in _local_minima(cost)[:STARTS]:
            inside = np.clip(_cell(grids, index), bounds[0] + 1e-6, bounds[1] - 1e-6)
            found = least_squares(lambda u: self.solve(shapes(u))[1], inside, bounds=bounds, xtol=1e-10, ftol=1e-12)
            best = min(best, (float(found.cost), shapes(found.x)), key=lambda pair: pair[0])
        return best[1]


def _cell(grids: list[Array], index: tuple[int, ...]) -> Array:
    return np.array([grid[i] for grid, i in zip(grids, index, strict=True)])


def _local_minima(cost: Array) -> list[tuple[int, ...]]:
    """Cells of a grid that are no higher than their neighbours, lowest first."""
    padded = np.pad(cost, 1, constant_values=np.inf)
    lowest = np.isfinite(cost)
    for step in product((-1, 0, 1), repeat=cost.ndim):
        lowest &= cost <= padded[tuple(slice(1 + s, 1 + s + n) for s, n in zip(step, cost.shape, strict=True))]
    cells = [tuple(int(i) for i in cell) for cell in np.argwhere(lowest)]
    return sorted(cells, key=lambda cell: float(cost[cell]))
