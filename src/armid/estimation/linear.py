"""Solving the linear problem on a compact factor: values, information, conditioning, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.dynamics.threads import one_blas_thread
from armid.estimation.problem import EstimationError, Problem, Weigh

GRAM_CONDITION = 3e3  # column-scaled condition number up to which Gram matrices give values to 1e-9
RANK_TOLERANCE = 1e-9  # singular values below this share of the largest count as zero
SETTLED = 1e-9  # relative change of weights at which they are found


@dataclass(frozen=True, eq=False)
class Solution:
    """Least-squares solution of a weighted problem.

    Attributes:
        values: of the parameters.
        inverse: inverse of the information matrix sum_j w_j W_j' W_j (on its range, where the rank is deficient).
        singular_values: of the weighted regressor with columns scaled to unit length, largest first.
        directions: right singular vectors in the scaled columns, one per row.
        scale: lengths of the weighted columns.
        rank: number of singular values that are not zero.
        squares: sum of squared residuals per joint, not weighted [N^2 m^2].
        counts: rows per joint.
    """

    values: Array
    inverse: Array
    singular_values: Array
    directions: Array
    scale: Array
    rank: int
    squares: Array
    counts: Array

    @property
    def condition(self) -> float:
        """Column-scaled condition number."""
        return condition_of(self.singular_values)


def condition_of(singular_values: Array) -> float:
    """Ratio of the largest singular value, the first, and the smallest."""
    least = float(singular_values[-1])
    return float(singular_values[0]) / least if least > 0.0 else float("inf")


def solve(
    factor: CompactFactor,
    weights: Array,
    *,
    prior: tuple[Array, Array] | None = None,
    rank_tolerance: float | None = None,
    labels: Sequence[str] | None = None,
) -> Solution:
    """Minimise the weighted squares of the residuals, plus (x - x0)' P (x - x0) where there is a prior.

    Args:
        factor: of the data.
        weights: 1 / variance per joint.
        prior: matrix P and values x0.
        rank_tolerance: drop directions whose singular value is below this share of the largest, and return the
            smallest solution (in scaled columns); without it a deficient rank is an error.
        labels: names of the parameters in messages; the factor's own if not given.

    Raises:
        NeedsTriangle: a Gram matrix is not precise enough for these data.
        EstimationError: the data leave combinations of parameters free.
    """
    with one_blas_thread():
        if factor.triangular:
            triangle, target = stacked(factor, weights, prior)
            scale = np.linalg.norm(triangle, axis=0)
            safe = np.where(scale > 0.0, scale, 1.0)
            left, singular, directions = np.linalg.svd(triangle / safe, full_matrices=False)
            target = left.T @ target
        else:
            singular, directions, target, scale = _decomposed(factor, weights, prior)
            safe = np.where(scale > 0.0, scale, 1.0)
    limit = (RANK_TOLERANCE if rank_tolerance is None else rank_tolerance) * singular[0]
    rank = int(np.sum(singular > limit))
    if not factor.triangular and singular[-1] < singular[0] / GRAM_CONDITION:
        raise NeedsTriangle
    if rank < len(singular) and rank_tolerance is None:
        raise EstimationError(
            f"the data leave {len(singular) - rank} combinations of parameters free: "
            f"{'; '.join(free_combinations(labels or factor.names, directions[rank:]))}. Use data with more motion, a "
            "prior, or fix some of them"
        )
    inverse_singular = np.where(np.arange(len(singular)) < rank, 1.0 / np.maximum(singular, 1e-300), 0.0)
    values = (directions.T * inverse_singular) @ target / safe
    half = (directions.T * inverse_singular) / safe[:, None]
    return Solution(
        values=values,
        inverse=half @ half.T,
        singular_values=singular,
        directions=directions,
        scale=scale,
        rank=rank,
        squares=residual_squares(factor, values),
        counts=np.array(factor.counts),
    )


class NeedsTriangle(Exception):
    """The problem is conditioned too badly for Gram matrices; a triangular factor is needed."""


def solve_problem(
    problem: Problem, weights: Array, factor: CompactFactor | None = None, weigh: Weigh | None = None, **options: Any
) -> tuple[CompactFactor, Solution]:
    """Factor (`factor` if it is good enough) and solution; triangular where the problem's conditioning asks for it."""
    labels = problem.torque_model.labels
    factor = problem.factor(weigh=weigh) if factor is None else factor
    try:
        return factor, solve(factor, weights, labels=labels, **options)
    except NeedsTriangle:
        factor = problem.factor(triangular=True, weigh=weigh)
        return factor, solve(factor, weights, labels=labels, **options)


def solve_weighted(
    problem: Problem, *, triangular: bool = False, rounds: int = 5, **options: Any
) -> tuple[CompactFactor, Solution, Array]:
    """Factor, solution and weights: each joint weighted by its own residuals, found in `rounds` or fewer."""
    factor, weights = problem.factor(triangular=triangular), np.ones(problem.robot.n_joints)
    for _ in range(rounds):
        factor, solution = solve_problem(problem, weights, factor, **options)
        last, weights = weights, 1.0 / residual_variance(factor, solution.values)
        if np.abs(weights / last - 1.0).max() < SETTLED:
            break
    return factor, solution, last


def stacked(factor: CompactFactor, weights: Array, prior: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Square triangle R and right side y with R'R = information, R'y = W'tau, prior included."""
    p = len(factor.names)
    if factor.triangular:
        more = []
        if prior is not None:
            root = np.linalg.cholesky(prior[0] + 1e-300 * np.eye(p)).T
            more.append(np.column_stack([root, root @ prior[1]]))
        upper = triangle_of(factor, weights, *more)
        return upper[:p, :p], upper[:p, p]
    singular, directions, target, scale = _decomposed(factor, weights, prior)
    return (singular[:, None] * directions) * np.where(scale > 0.0, scale, 1.0), target


def _decomposed(
    factor: CompactFactor, weights: Array, prior: tuple[Array, Array] | None
) -> tuple[Array, Array, Array, Array]:
    """From Gram matrices: singular values and directions with scaled columns, right side in these, columns' lengths."""
    matrix, vector, _ = factor.normal_equations(weights)
    if prior is not None:
        matrix, vector = matrix + prior[0], vector + prior[0] @ prior[1]
    scale = np.sqrt(np.diag(matrix))
    safe = np.where(scale > 0.0, scale, 1.0)
    eigenvalues, vectors = np.linalg.eigh(matrix / np.outer(safe, safe))
    singular, directions = np.sqrt(np.maximum(eigenvalues, 0.0))[::-1], vectors.T[::-1]
    return singular, directions, directions @ (vector / safe) / np.where(singular > 0.0, singular, 1.0), scale


def triangle_of(factor: CompactFactor, weights: Array, *more: Array) -> Array:
    """Triangular factor of [W | tau], all joints weighted, and of `more` rows."""
    p, blocks = len(factor.names), list(more)
    for joint, columns in enumerate(factor.columns):
        rows = np.zeros((len(factor.matrices[joint]), p + 1))
        rows[:, [*columns, p]] = np.sqrt(weights[joint]) * factor.matrices[joint]
        blocks.append(rows)
    return np.asarray(np.linalg.qr(np.vstack(blocks), mode="r"))[: p + 1]


def inverted(matrix: Array) -> Array:
    """Inverse of a positive definite matrix, through one with a unit diagonal."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    return np.asarray(np.linalg.inv(matrix / np.outer(scale, scale)) / np.outer(scale, scale))


def residual_squares(factor: CompactFactor, values: Array) -> Array:
    """Sum of squared residuals of each joint."""
    result = np.empty(len(factor.matrices))
    for joint, columns in enumerate(factor.columns):
        ends = np.append(-values[columns], 1.0)
        if factor.triangular:
            result[joint] = float(np.sum((factor.matrices[joint] @ ends) ** 2))
        else:
            result[joint] = max(float(ends @ factor.matrices[joint] @ ends), 0.0)
    return result


def residual_variance(factor: CompactFactor, values: Array) -> Array:
    """Variance of the residuals per joint, each joint charged with its share of the parameters.

    It is never taken as smaller than 1e-6 of the torque, squared: exact data would give weights without meaning.
    """
    counts = np.array(factor.counts, dtype=float)
    spent = len(values) * counts / counts.sum()
    variance = residual_squares(factor, values) / np.maximum(counts - spent, 1.0)
    power = residual_squares(factor, np.zeros_like(values)) / np.maximum(counts, 1.0)
    return np.asarray(np.maximum(variance, 1e-12 * power + 1e-300))


def free_combinations(names: Sequence[str], directions: Array) -> list[str]:
    """Directions in words: their largest parts, such as ``0.7 Ixx3 - 0.7 Iyy4``."""
    words = []
    for direction in directions:
        order = np.argsort(-np.abs(direction))[:4]
        parts = [
            f"{'-' if direction[i] < 0 else '+'} {abs(direction[i]):.2g} {names[i]}"
            for i in order
            if abs(direction[i]) > 0.2 * np.abs(direction).max()
        ]
        words.append(" ".join(parts).removeprefix("+ "))
    return words
