"""Interior-point search within linear limits: a barrier keeps every point inside, so that any of them may be the last.

A primal-dual method (Nocedal & Wright, Numerical Optimization, 2006, chapter 19) with a limited-memory BFGS matrix of
the cost (chapter 18, damped). The limits of a joint hold its own variables alone and have the same rows for all joints,
so that a step costs little more than the factorisation of a matrix as large as the number of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import null_space
from scipy.linalg.lapack import dposv

from armid.arrays import Array

_ROOM = 0.1  # of a start to its limits, as a share of their range
_BARRIER, _SHRINK, _LEAST = 1.0, 0.3, 1e-5  # weight of the logarithms: at first, from one to the next, at last
_CENTRED = 10.0  # expected decrease over the barrier's weight below which that becomes smaller
_EDGE = 0.995  # share of the way to a limit that a step may go
_HISTORY = 20  # steps that tell the curvature of the cost
_HALVINGS, _DECREASE = 12, 1e-4  # of a step that does not lower the cost as much as this share of what it promised
_DONE = 1e-4  # expected decrease at which the search ends

Evaluate = Callable[[Array], tuple[float, Array]]
Limits = tuple[Array, Array, Array]  # rows (r, per joint) shared by all joints, lower and upper bounds (joints, r)


def minimise_inside(evaluate: Evaluate, limits: Limits, start: Array, iterations: int, stop: Callable[[], bool]) -> int:
    """Search from a start, which is pulled inside the limits first; `evaluate` sees every point and keeps the best.

    Args:
        evaluate: cost, not finite where there is none, and gradient of the variables (joints * per joint,).
        limits: of each joint's variables, of which the first is its mean position; equal bounds are kept exactly.
        start: variables.
        iterations: most steps.
        stop: asked before each step.

    Returns:
        Steps that were taken; fewer than allowed where a minimum was found.
    """
    rows, low, high = limits
    exact = np.all(low == high, axis=0)
    free = null_space(rows[exact]) if exact.any() else np.eye(rows.shape[1])  # directions that keep equal bounds
    x, rows = _pulled_inside(limits, start), rows[~exact]
    values = x @ rows.T
    slack = np.stack([values - low[:, ~exact], high[:, ~exact] - values])
    rows, barrier = rows @ free, _BARRIER
    pairs: list[tuple[Array, Array]] = []
    dual = barrier / slack
    cost, gradient = evaluate(x.ravel())
    gradient = gradient.reshape(x.shape) @ free
    for count in range(iterations):
        if not np.isfinite(cost) or stop():
            return count
        inner = gradient - (barrier / slack[0] - barrier / slack[1]) @ rows
        try:
            way = _direction(inner, rows, (dual / slack).sum(axis=0), _curvature(pairs, gradient, x))
        except np.linalg.LinAlgError:
            return count
        expected = -float(np.sum(inner * way))
        change = np.stack([way @ rows.T, -way @ rows.T])
        dual_change = barrier / slack - dual - dual / slack * change
        length = _longest(slack, change)
        before = cost - barrier * _logarithms(slack)
        for _ in range(_HALVINGS):
            there = x + length * way @ free.T
            cost, slope = evaluate(there.ravel())
            after = cost - barrier * _logarithms(slack + length * change)
            if after <= before - _DECREASE * length * expected:
                break
            length *= 0.5
        else:
            return count
        slope = slope.reshape(x.shape) @ free
        pairs = [*pairs[1 - _HISTORY :], ((length * way).ravel(), (slope - gradient).ravel())]
        x, gradient, slack = there, slope, slack + length * change
        near = barrier / slack
        dual = np.clip(dual + _longest(dual, dual_change) * dual_change, 1e-8 * near, 1e8 * near)
        if expected < _CENTRED * barrier:
            if barrier <= _LEAST and expected < _DONE:
                return count
            barrier = max(_SHRINK * barrier, _LEAST)
    return iterations


def _pulled_inside(limits: Limits, start: Array) -> Array:
    """The start (joints, per joint), each joint moved towards rest in the middle as far as its limits ask for."""
    rows, low, high = limits
    x = start.reshape(len(low), -1)
    apart = high > low
    size = np.where(np.isfinite(high - low), high - low, 1.0)
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (low[:, 0] + high[:, 0])
    rest = np.zeros_like(x)
    rest[:, 0] = np.where(np.isfinite(middle), middle, x[:, 0])
    values, change = rest @ rows.T, (x - rest) @ rows.T
    slack = np.stack([values - low, high - values]) - _ROOM * size
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(apart & (np.stack([-change, change]) > 0.0), slack / np.abs(change), np.inf)
    return np.asarray(rest + np.clip(reach.min(axis=(0, 2)), 0.0, 1.0)[:, None] * (x - rest))


def _direction(gradient: Array, rows: Array, weights: Array, curvature: Array) -> Array:
    """Newton's step (joints, per joint) for the cost with its barrier, whose part is one block per joint."""
    joints, count = gradient.shape
    matrix = curvature.reshape(joints, count, joints, count)
    each = np.arange(joints)
    matrix[each, :, each] += (rows.T * weights[:, None]) @ rows
    _, way, failed = dposv(matrix.reshape(joints * count, -1), -gradient.ravel(), lower=1)
    if failed:
        raise np.linalg.LinAlgError
    return np.asarray(way).reshape(joints, count)


def _curvature(pairs: Sequence[tuple[Array, Array]], gradient: Array, x: Array) -> Array:
    """BFGS matrix of the last steps and changes of the gradient, positive definite (damped)."""
    if not pairs:
        size = float(np.linalg.norm(gradient)) / max(float(np.linalg.norm(x[:, 1:])), 1e-6)
        return np.asarray(size * np.eye(gradient.size))
    bent = [float(step @ change) / float(step @ step) for step, change in pairs if step @ change > 0.0]
    size = bent[-1] if bent else 1.0
    parts, factors = (
        np.empty((2 * len(pairs), gradient.size)),
        np.empty(2 * len(pairs)),
    )  # size I + parts' factors parts
    for count, (step, change) in enumerate(pairs):
        before = slice(2 * count)
        own = size * step + (factors[before] * (parts[before] @ step)) @ parts[before]
        power, along = float(step @ own), float(step @ change)
        share = 1.0 if along >= 0.2 * power else 0.8 * power / (power - along)
        mixed = share * change + (1.0 - share) * own
        parts[2 * count], parts[2 * count + 1] = mixed, own
        factors[2 * count], factors[2 * count + 1] = 1.0 / float(step @ mixed), -1.0 / power
    return np.asarray(size * np.eye(gradient.size) + (parts.T * factors) @ parts)


def _longest(values: Array, change: Array) -> float:
    """Step, 1 at most, that goes `_EDGE` of the way to where the first of the values would be zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.where(change < 0.0, -values / change, np.inf)
    return min(1.0, _EDGE * float(ways.min()))


def _logarithms(slack: Array) -> float:
    return float(np.log(slack[np.isfinite(slack)]).sum())
