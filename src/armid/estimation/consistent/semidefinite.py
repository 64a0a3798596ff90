"""Least squares under semidefinite conditions, solved by Clarabel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.errors import MissingExtraError


@dataclass(frozen=True, eq=False)
class Condition:
    """A symmetric matrix, affine in the unknowns x, that must be positive semidefinite.

    Attributes:
        name: what it is about, such as ``link 3`` or ``fc2``.
        constant: its value at x = 0, (size, size); a plain inequality has size 1.
        slopes: its change per unknown, (unknowns, size, size).
    """

    name: str
    constant: Array
    slopes: Array

    def matrix(self, x: Array) -> Array:
        """Its value at `x`."""
        return np.asarray(self.constant + np.tensordot(x, self.slopes, axes=1))

    def unit(self, scale: Array) -> Array:
        """Sizes of rows and columns when unknowns are of size `scale`, at least a tiny positive number."""
        size = np.abs(np.diag(self.constant)) + np.einsum("j,jkk->k", scale, np.abs(self.slopes))
        return np.asarray(np.sqrt(np.where(size > 0.0, size, 1.0)))


@dataclass(frozen=True, eq=False)
class Minimum:
    """What the solver found.

    Attributes:
        x: the unknowns.
        status: the solver's own word; ``Solved`` and ``AlmostSolved`` are good.
        seconds: time the solver took.
    """

    x: Array
    status: str
    seconds: float

    @property
    def good(self) -> bool:
        """Whether the solution can be used."""
        return self.status in ("Solved", "AlmostSolved") and bool(np.isfinite(self.x).all())


def minimise(
    matrix: Array,
    target: Array,
    conditions: Sequence[Condition],
    scale: Array,
    *,
    margin: float = 0.0,
    linear: Array | None = None,
    equal: tuple[Array, Array] | None = None,
) -> Minimum:
    """Minimise ||matrix x - target||^2 / 2 + linear . x where every condition's matrix is positive semidefinite.

    The residual is a variable of its own, so that the condition number is not squared.

    Args:
        matrix: (rows, unknowns); more rows than unknowns are reduced first.
        target: (rows,).
        conditions: what x must fulfil.
        scale: typical size of each unknown.
        margin: how far inside each condition x must stay, as a share of the condition's size at `scale`.
        linear: coefficients of a linear cost.
        equal: a matrix E and values e with E x = e.
    """
    try:
        import clarabel
        from scipy import sparse
    except ImportError:
        raise MissingExtraError("physical consistency", "feasible") from None
    n = len(scale)
    with one_blas_thread():
        if len(matrix) > n + 1:
            upper = np.asarray(np.linalg.qr(np.column_stack([matrix, target]), mode="r"))
            matrix, target = upper[:, :n], upper[:, n]
        scaled = matrix * scale
        size = max(float(np.linalg.norm(scaled, 2)) if scaled.size else 0.0, 1e-300)
    rows = len(matrix)
    blocks = [np.hstack([scaled / size, -np.eye(rows)])]
    bounds, cones = [target / size], [clarabel.ZeroConeT(rows)]
    if equal is not None:
        left = equal[0] * scale
        length = np.maximum(np.linalg.norm(left, axis=1), 1e-300)
        blocks.append(np.hstack([left / length[:, None], np.zeros((len(left), rows))]))
        bounds.append(equal[1] / length)
        cones.append(clarabel.ZeroConeT(len(left)))
    for part, right, cone in _cones(clarabel, conditions, scale, margin):
        blocks.append(np.hstack([part, np.zeros((len(part), rows))]))
        bounds.append(right)
        cones.append(cone)
    cost = np.zeros(n + rows)
    if linear is not None:
        cost[:n] = linear * scale / size**2
    power = sparse.diags_array(np.concatenate([np.zeros(n), np.ones(rows)]), format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = 200
    # As precise as it gets; what it calls almost solved is then as good as its own default.
    settings.tol_gap_abs = settings.tol_gap_rel = 1e-12
    settings.tol_feas = 1e-10
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = 1e-6
    settings.reduced_tol_feas = 1e-7
    # One thread: the problem is small, and other work may share the machine.
    settings.max_threads = 1
    problem = power, cost, sparse.csc_array(np.vstack(blocks)), np.concatenate(bounds), cones, settings
    try:
        answer = clarabel.DefaultSolver(*problem).solve()
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
            raise
        return Minimum(np.full(n, np.nan), f"fails, {error}; are some parameters out of proportion?", 0.0)
    return Minimum(np.array(answer.x[:n]) * scale, str(answer.status), float(answer.solve_time))


def _cones(clarabel: Any, conditions: Sequence[Condition], scale: Array, margin: float) -> list[tuple[Any, ...]]:
    """Rows, right sides and cones: s = b - A x must lie in the cone, matrices as scaled upper triangles."""
    result = []
    plain = [c for c in conditions if c.constant.shape == (1, 1)]
    if plain:
        unit = np.array([c.unit(scale)[0] ** 2 for c in plain])
        slopes = np.array([c.slopes[:, 0, 0] for c in plain]) * scale / unit[:, None]
        constants = np.array([c.constant[0, 0] for c in plain]) / unit
        result.append((-slopes, constants - margin, clarabel.NonnegativeConeT(len(plain))))
    for condition in conditions:
        size = len(condition.constant)
        if size > 1:
            unit = condition.unit(scale)
            balance = np.outer(unit, unit)
            slopes = upper_triangle(condition.slopes * scale[:, None, None] / balance)
            constant = upper_triangle(condition.constant / balance - margin * np.eye(size))
            result.append((-slopes.T, constant, clarabel.PSDTriangleConeT(size)))
    return result


def upper_triangle(matrices: Array) -> Array:
    """Symmetric matrices (..., s, s) as vectors of the same norm: columns of their upper triangles."""
    size = matrices.shape[-1]
    column, row = np.tril_indices(size)
    return np.asarray(matrices[..., row, column] * np.where(row == column, 1.0, np.sqrt(2.0)))
