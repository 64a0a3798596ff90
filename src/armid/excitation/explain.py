"""Which limits hold a design back, where, and what relaxing each would bring: the multipliers of the solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from armid.arrays import Array
from armid.excitation.criteria import DOptimal
from armid.excitation.problem import DesignProblem

_ACTIVE = 0.02  # rows with less room than this share of a range can have a multiplier
_FAR = 5.0  # times the room that is kept: constraints further away bind nothing
_STEP, _STEP_M = 0.1, 0.01  # relaxation that gains are stated for: a tenth of the limit, or 10 mm
_TOLD = 1e-3  # limits that would bring less are not told
_NAMES = ("position", "velocity", "acceleration")


@dataclass(frozen=True)
class Binding:
    """A limit that a design leans on.

    Attributes:
        quantity: position, velocity, acceleration, or a constraint's name.
        joint: number of the joint, 0 where the limit is not a joint's.
        instants: times [s] at which it binds, the most important first.
        relaxation: of the limit that the gain is for: a share of it, or a distance in `unit`.
        unit: of the relaxation; empty for a share.
        gain: decrease of the cost that it would bring, to first order.
        narrowing: of the confidence intervals on average, as a share; 0 where the criterion is not d-optimal.
    """

    quantity: str
    joint: int
    instants: tuple[float, ...]
    relaxation: float
    unit: str
    gain: float
    narrowing: float = 0.0

    def __str__(self) -> str:
        """One line for people."""
        where = f"{self.quantity} of joint {self.joint}" if self.joint else self.quantity
        at = ", ".join(f"{time:.2f}" for time in self.instants[:4]) + (" …" if self.instants[4:] else "")
        by = f"{1000 * self.relaxation:g} mm" if self.unit else f"{100 * self.relaxation:g} %"
        brings = (
            f"intervals {100 * self.narrowing:.2g} % narrower" if self.narrowing else f"a cost {self.gain:.3g} lower"
        )
        return f"{where} binds at {at} s; relaxed by {by} it would leave {brings}"


def binding_limits(problem: DesignProblem, x: Array) -> tuple[Binding, ...]:
    """Limits with a multiplier at a solution, the one that would bring most first.

    The multipliers are those that come nearest to stationarity of the Lagrangian (Karush, Kuhn and Tucker) with the
    rows that are active: non-negative least squares.
    """
    gradient = problem.cost_and_gradient(x)[1]
    rows, about = _active_rows(problem, x)
    if not rows:
        return ()
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    try:
        multipliers = nnls((np.array(rows) / size[:, None]).T, gradient)[0] / size
    except RuntimeError:  # too many steps
        return ()
    gains: dict[tuple[str, int, float, str], dict[float, float]] = {}
    for multiplier, parts in zip(multipliers, about, strict=True):
        for key, time, change in parts:
            at = gains.setdefault(key, {})
            at[time] = at.get(time, 0.0) + multiplier * change
    found = []
    d_optimal = isinstance(problem.criterion, DOptimal)
    for (quantity, joint, relaxation, unit), at in gains.items():
        gain = sum(at.values())
        narrowing = 1.0 - float(np.exp(-0.5 * gain / len(problem.parameters))) if d_optimal else 0.0
        instants = tuple(time for time in sorted(at, key=lambda time: -at[time]) if at[time] > 0.05 * gain)
        found.append(Binding(quantity, joint, instants, relaxation, unit, gain, narrowing))
    return tuple(sorted((one for one in found if one.gain > _TOLD), key=lambda one: -one.gain))


#: What a row stands for: limit (quantity, joint, relaxation, unit), time [s], and by how much it moves the row's bound.
_Part = tuple[tuple[str, int, float, str], float, float]


def _active_rows(problem: DesignProblem, x: Array) -> tuple[list[Array], list[list[_Part]]]:
    """Gradients of the room of all active rows, and what each stands for."""
    table, low, high = problem.linear
    values, moving = problem.linear_values(x), problem.variables.moving
    count = len(table) // 3
    period = 1.0 / problem.variables.base_frequency_hz
    rows: list[Array] = []
    about: list[list[_Part]] = []
    for sign, bound in ((1.0, low), (-1.0, high)):
        room = sign * (values - bound) / np.maximum(high - low, 1e-9)
        for j, row in np.argwhere(room[:, : 3 * count] < _ACTIVE):
            gradient = np.zeros((len(moving), table.shape[1]))
            gradient[j] = sign * table[row]
            kind, change = int(row) // count, 0.5 * _STEP * float(high[j, row] - low[j, row])
            rows.append(gradient.ravel())
            about.append([((_NAMES[kind], moving[j] + 1, _STEP, ""), (row % count) * period / count, change)])
    if problem.constraints:
        _add_windows(problem, x, rows, about)
    return rows, about


def _add_windows(problem: DesignProblem, x: Array, rows: list[Array], about: list[list[_Part]]) -> None:
    """The rows of nonlinear constraints: each stands for what comes near a bound within a window of time."""
    least, shares = problem.nonlinear_values(x), problem.window_shares(x)
    near = max(problem.backoff, float(least.min()))
    if near > _FAR * problem.backoff:
        return
    jacobian = problem.nonlinear_jacobian(x)
    points = len(shares[0])
    step = 1.0 / (problem.variables.base_frequency_hz * points)
    for window in np.flatnonzero(least < near + _ACTIVE):
        parts: list[_Part] = []
        first = window * points // len(least)
        for constraint, share in zip(problem.constraints, shares, strict=True):
            unit = constraint.unit
            with np.errstate(invalid="ignore"):
                span = 0.5 * (constraint.upper - constraint.lower) / constraint.size
            for k, i in np.argwhere(share[first : first + points // len(least)] > 0.01):
                joint = int(i) + 1 if constraint.per_joint else 0
                change = _STEP_M / constraint.scale[i] if unit else _STEP * span[i]
                key = constraint.name, joint, _STEP_M if unit else _STEP, unit
                parts.append((key, float(first + k) * step, float(share[first + k, i] * change)))
        rows.append(jacobian[window])
        about.append(parts)
