"""The most plausible of all arms that move alike: what data leave free is settled by a log-det divergence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.possible.consistency import Unknowns

STEPS = 100  # of Newton's method, at most
DONE = 1e-6  # expected decrease of the cost at which it stops


def most_plausible(
    unknowns: Unknowns,
    x: Array,
    scale: Array,
    bodies: Array,
    weights: Sequence[float],
    slack: float,
    rows: tuple[Array, Array],
) -> Array:
    """Move along the null space of the base parameters to where links look most like given bodies.

    Minimises the sum of w (trace(P0^-1 P) - log det Q) over links, with P a link's pseudo-inertia, Q the same without
    the rotors it carries and P0 the body: a proper divergence of positive definite matrices (Lee, Wensing, Park 2020),
    which grows without bound towards the edge of the possible. Inequalities count by the logarithm of their slack.
    Newton's method; torque does not change.

    Args:
        unknowns: the parameters and their conditions.
        x: possible parameters, strictly inside.
        scale: typical size of each parameter.
        bodies: pseudo-inertias P0, (links, 4, 4).
        weights: w of each link.
        slack: weight of the logarithms of inequalities.
        rows: matrix A and target b of further squares ||A x - b||^2 / 2.

    Returns:
        The parameters; `x` itself where nothing is free.
    """
    with one_blas_thread():
        _, singular, directions = np.linalg.svd(unknowns.matrix * scale)
        free = scale[:, None] * directions[int(np.sum(singular > 1e-9 * singular[0])) :].T
        if not free.shape[1]:
            return x
        return x + free @ _newton(_Barrier(unknowns, x, free, bodies, weights, slack, rows))


class _Barrier:
    """The function to be minimised over movements n from x, with derivatives; infinite outside the possible."""

    def __init__(
        self,
        unknowns: Unknowns,
        x: Array,
        free: Array,
        bodies: Array,
        weights: Sequence[float],
        slack: float,
        rows: tuple[Array, Array],
    ) -> None:
        links = {f"link {i + 1}": pair for i, pair in enumerate(zip(weights, bodies, strict=True))}
        self.linear = np.zeros(free.shape[1])
        self.parts = []
        for condition in unknowns.conditions:
            slopes = np.tensordot(free.T, condition.slopes, axes=1)
            if np.abs(slopes).max() < 1e-12:
                continue
            weight, body = links.get(condition.name, (slack, None))
            if body is not None:
                whole = unknowns.pseudo_inertia(int(condition.name.split()[1]))
                pull = np.tensordot(whole.slopes, np.linalg.inv(body), axes=2)
                self.linear += weight * free.T @ pull
            self.parts.append((weight, condition.matrix(x), slopes))
        self.rows, self.target = rows[0] @ free, rows[1] - rows[0] @ x

    def value(self, n: Array) -> float:
        """Value; infinity outside."""
        total = float(self.linear @ n) + 0.5 * float(np.sum((self.rows @ n - self.target) ** 2))
        for weight, constant, slopes in self.parts:
            try:
                factor = np.linalg.cholesky(constant + np.tensordot(n, slopes, axes=1))
            except np.linalg.LinAlgError:
                return float("inf")
            total -= 2.0 * weight * float(np.log(np.diag(factor)).sum())
        return total

    def derivatives(self, n: Array) -> tuple[Array, Array]:
        """Gradient, and rows J with J' J the Hessian."""
        gradient = self.linear + self.rows.T @ (self.rows @ n - self.target)
        blocks = [self.rows]
        for weight, constant, slopes in self.parts:
            root = np.linalg.inv(np.linalg.cholesky(constant + np.tensordot(n, slopes, axes=1)))
            whitened = root @ slopes @ root.T
            gradient -= weight * np.trace(whitened, axis1=1, axis2=2)
            blocks.append(np.sqrt(weight) * whitened.reshape(len(n), -1).T)
        return gradient, np.vstack(blocks)


def _newton(function: _Barrier) -> Array:
    """Damped Newton steps; the Hessian's factor comes from its rows, so that its condition number is not squared."""
    n = np.zeros(len(function.linear))
    value = function.value(n)
    if not np.isfinite(value):
        return n
    for _ in range(STEPS):
        gradient, rows = function.derivatives(n)
        size = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
        upper = np.linalg.qr(rows / size, mode="r")
        half = solve_triangular(upper, gradient / size, trans="T")
        step = -solve_triangular(upper, half) / size
        descent = float(half @ half)
        if not np.isfinite(descent) or descent < DONE:
            break
        length = 1.0
        while (new := function.value(n + length * step)) > value - 0.1 * length * descent and length > 1e-10:
            length *= 0.5
        if length <= 1e-10:
            break
        n, value = n + length * step, new
    return n
