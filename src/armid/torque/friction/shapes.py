"""Shapes of a friction law from data: a logarithmic grid of what the data can show, then its best minima refined."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import minimum_filter
from scipy.optimize import least_squares, minimize

from armid.arrays import Array
from armid.torque.friction.law import FrictionLaw, Range

GRID = {1: 40, 2: 60, 3: 12}  # values tried for each shape, by how many shapes there are
STARTS = 6  # local minima of the grid that are refined
LEAST_RATIO = 2.0  # between exchangeable shapes


def search_shapes(
    law: FrictionLaw,
    ranges: tuple[Range, ...],
    residuals: Callable[[Array], Array],
    *,
    grid: dict[int, int] | None = None,
    starts: int = STARTS,
) -> Array:
    """The shapes within their ranges whose residuals, the linear coefficients being the best, are smallest.

    Args:
        law: whose shapes they are.
        ranges: of each, `FrictionLaw.ranges`.
        residuals: (..., rows) of given shapes (..., shapes); one row is taken for the root of a sum of squares.
        grid: values tried for each shape, by how many shapes there are; by default `GRID`.
        starts: how many minima of the grid are refined.
    """
    if not ranges:
        return np.zeros(0)
    bounds = np.log(np.array(ranges)).T
    if law.ordered:  # search the first shape and its ratio to the second
        bounds[:, 1] = np.log(LEAST_RATIO), bounds[1, 0] - bounds[0, 0]

    def shapes(u: Array) -> Array:
        return np.exp(np.stack([u[..., 0], u[..., 0] - u[..., 1]], axis=-1) if law.ordered else u)

    def at(u: Array) -> Array:
        return residuals(shapes(u))

    def cost(u: Array) -> Array:
        return np.asarray((at(u) ** 2).sum(axis=-1))

    count = (grid or GRID).get(len(ranges), 6)
    axes = [np.linspace(low, high, count) for low, high in bounds.T]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    costs = np.array([cost(part) for part in cells])
    best: tuple[float, Array] = (np.inf, np.zeros(0))
    for index in _local_minima(costs)[:starts]:
        inside = np.clip(cells[index], bounds[0] + 1e-6, bounds[1] - 1e-6)
        if len(at(inside)) > 1:
            found = least_squares(at, inside, bounds=bounds, xtol=1e-10, ftol=1e-12)
            value = float(found.cost)
        else:
            found = minimize(cost, inside, bounds=bounds.T.tolist(), method="L-BFGS-B")
            value = float(found.fun)
        best = min(best, (value, found.x), key=lambda pair: pair[0])
    return shapes(best[1])


def _local_minima(cost: Array) -> list[tuple[int, ...]]:
    """Cells of a grid that are no higher than their neighbours, lowest first."""
    lowest = np.isfinite(cost) & (cost <= minimum_filter(cost, size=3, mode="constant", cval=np.inf))
    cells = [tuple(cell) for cell in np.argwhere(lowest).tolist()]
    return sorted(cells, key=lambda cell: float(cost[cell]))
