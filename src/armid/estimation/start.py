"""The weighted least-squares solution that other estimators start from."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.estimation.linear import NeedsTriangle, Solution, residual_variance, solve
from armid.estimation.problem import Problem


def weighted_start(problem: Problem, *, triangular: bool = False) -> tuple[CompactFactor, Solution, Array]:
    """Factor, solution and weights: each joint weighted by its own residuals, found by iteration."""
    factor = problem.factor(triangular=triangular)
    weights = np.ones(problem.robot.n_joints)
    for _ in range(5):
        try:
            solution = solve(factor, weights)
        except NeedsTriangle:
            factor = problem.factor(triangular=True)
            solution = solve(factor, weights)
        last, weights = weights, 1.0 / residual_variance(factor, solution.values)
    return factor, solution, last
