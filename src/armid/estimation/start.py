"""The weighted least-squares solution that other estimators start from."""

from __future__ import annotations

import numpy as np

from armid.dynamics.factor import CompactFactor
from armid.estimation.linear import NeedsTriangle, Solution, residual_variance, solve
from armid.estimation.problem import Problem
from armid.robot.inertia import Array

ROUND_OFF = 1e-12  # of the torque's power: a Gram matrix tells no smaller residual variance


def weighted_start(problem: Problem, *, triangular: bool = False) -> tuple[CompactFactor, Solution, Array]:
    """Factor, solution and weights: each joint weighted by its own residuals, found by iteration."""
    factor = problem.factor(triangular=triangular)
    power = np.array([factor.gram(joint)[-1, -1] for joint in range(problem.robot.n_joints)]) / np.array(factor.counts)
    weights = np.ones(problem.robot.n_joints)
    for _ in range(5):
        try:
            solution = solve(factor, weights)
        except NeedsTriangle:
            factor = problem.factor(triangular=True)
            solution = solve(factor, weights)
        variance = np.maximum(residual_variance(factor, solution.values), ROUND_OFF * power + 1e-30)
        last, weights = weights, 1.0 / variance
    return factor, solution, last
