"""The interior-point search within linear limits: against SciPy, and never outside."""

import numpy as np
import pytest
from scipy.optimize import minimize

from armid.excitation.interior import minimise_inside

ROWS = np.vstack([np.eye(3), [[0.0, 1.0, 1.0], [0.0, 1.0, -1.0]]])
LOW, HIGH = np.tile([-1.0, -2.0, -2.0, -1.5, -1.0], (2, 1)), np.tile([2.0, 2.0, 1.0, 1.0, 1.0], (2, 1))


class Bowl:
    """A quadratic cost with its minimum outside the limits; remembers the points it was asked about."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        root = rng.normal(size=(6, 6))
        self.matrix, self.centre, self.points = root @ root.T + np.eye(6), 3.0 * rng.normal(size=6), []

    def __call__(self, x):
        self.points.append(x.copy())
        return self.value(x), self.matrix @ (x - self.centre)

    def value(self, x):
        return 0.5 * (x - self.centre) @ self.matrix @ (x - self.centre)

    @property
    def least(self):
        return min(map(self.value, self.points))


def excess(points, low=LOW, high=HIGH):
    """Largest violation of a limit over all points."""
    values = np.array(points).reshape(-1, 2, 3) @ ROWS.T
    return float(np.maximum(low - values, values - high).max())


@pytest.mark.parametrize("seed", range(4))
def test_minimum_is_scipys_and_no_point_is_outside(seed):
    """From a start far outside the search ends where SLSQP does, and every point on the way keeps all limits."""
    bowl = Bowl(seed)
    steps = minimise_inside(bowl, (ROWS, LOW, HIGH), np.full(6, 5.0), 200, lambda: False)
    assert steps < 200
    assert excess(bowl.points) < 0.0
    matrix = np.kron(np.eye(2), ROWS)
    bounds = [
        {"type": "ineq", "fun": lambda x: matrix @ x - LOW.ravel()},
        {"type": "ineq", "fun": lambda x: HIGH.ravel() - matrix @ x},
    ]
    other = minimize(bowl.value, np.zeros(6), constraints=bounds, options={"ftol": 1e-12, "maxiter": 500})
    assert bowl.least == pytest.approx(other.fun, abs=2e-3)


def test_equal_bounds_are_kept_exactly_and_infinite_ones_do_nothing():
    """A row whose bounds are equal stays at its value, and the minimum is that of the other directions."""
    low, high = np.full((2, 5), -np.inf), np.full((2, 5), np.inf)
    low[:, 3] = high[:, 3] = 0.0
    bowl = Bowl(0)
    minimise_inside(bowl, (ROWS, low, high), np.array([1.0, 0.5, -0.5, 0.0, -1.0, 1.0]), 200, lambda: False)
    points = np.array(bowl.points).reshape(-1, 2, 3)
    assert np.abs(points[:, :, 1] + points[:, :, 2]).max() < 1e-12
    free = np.kron(np.eye(2), [[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    least = free @ np.linalg.solve(free.T @ bowl.matrix @ free, free.T @ bowl.matrix @ bowl.centre)
    assert bowl.least == pytest.approx(bowl.value(least), rel=1e-3)


def test_ends_when_asked_and_where_there_is_no_cost():
    """Nothing is evaluated after the stop, nor where the cost is not finite at the start."""
    bowl = Bowl(1)
    assert minimise_inside(bowl, (ROWS, LOW, HIGH), np.zeros(6), 50, lambda: len(bowl.points) > 3) <= 4
    assert minimise_inside(lambda x: (np.nan, x), (ROWS, LOW, HIGH), np.zeros(6), 50, lambda: False) == 0
