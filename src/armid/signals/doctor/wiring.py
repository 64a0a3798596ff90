"""Joints that were exchanged or have the wrong sign, found by fitting the robot's model to every such mistake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.signals.doctor.fit import Problem, Rows, friction_columns, known_torque, model_columns

_ROWS = 2000  # rows of each trial fit

Order = NDArray[np.int64]
Trial = tuple[str, tuple[int, ...], str, Order, Array]  # kind, joints, of, order and signs of the efforts


@dataclass(frozen=True, eq=False)
class Mistake:
    """A way to get the columns wrong, and how well the model fits once it is undone.

    Attributes:
        kind: ``none``, ``swap`` or ``flip``.
        joints: indices of the joints concerned.
        of: ``motion``, ``effort`` or ``both``.
        misfit: log of the mean square residual over the variance of the effort, by joint.
    """

    kind: str
    joints: tuple[int, ...]
    of: str
    misfit: Array

    @property
    def score(self) -> float:
        """Sum of the misfits."""
        return float(self.misfit.sum())


def trials(model: Model, rows: Rows, moving: NDArray[np.bool_]) -> Iterator[Mistake]:
    """Fit the model to the rows as they are, and with each pair of moving joints exchanged and each reversed."""
    few = rows.thinned(_ROWS)
    joints = few.q.shape[1]
    motion = np.stack([few.q, few.qd, few.qdd])
    one = np.arange(joints)

    def fitted(order: Order, sign: Array, mistakes: list[Trial]) -> list[Mistake]:
        q, qd, qdd = motion[:, :, order] * sign
        changed = replace(few, q=q, qd=qd, qdd=qdd, keep=few.keep[:, order])
        columns, friction, known = model_columns(model, changed), friction_columns(qd), known_torque(model, changed)
        found = []
        for kind, pair, of, efforts, signs in mistakes:
            problem = Problem(columns, friction, few.effort[:, efforts] * signs - known, changed, shared=True)
            squares = problem.solve(problem.grams.sum(axis=0))[1]
            misfit = np.log(np.maximum(squares / problem.variance(problem.common), 1e-12))
            found.append(Mistake(kind, pair, of, misfit))
        return found

    movers = [int(j) for j in np.flatnonzero(moving)]
    pairs = list(combinations(movers, 2))
    orders = [_exchanged(joints, *pair) for pair in pairs]
    flips, plus = [_reversed(joints, j) for j in movers], np.ones(joints)
    as_is: list[Trial] = [("none", (), "", one, plus)]
    as_is += [("flip", (j,), "effort", one, sign) for j, sign in zip(movers, flips, strict=True)]
    as_is += [("swap", pair, "effort", order, plus) for pair, order in zip(pairs, orders, strict=True)]
    yield from fitted(one, plus, as_is)
    for j, sign in zip(movers, flips, strict=True):
        yield from fitted(one, sign, [("flip", (j,), "motion", one, plus), ("flip", (j,), "both", one, sign)])
    for pair, order in zip(pairs, orders, strict=True):
        yield from fitted(order, plus, [("swap", pair, "motion", one, plus), ("swap", pair, "both", order, plus)])


def undone(rows: Rows, mistake: Mistake) -> Rows:
    """The rows with a mistake corrected."""
    joints = rows.q.shape[1]
    swap = mistake.kind == "swap"
    order = _exchanged(joints, *mistake.joints) if swap else np.arange(joints)
    sign = np.ones(joints) if swap else _reversed(joints, *mistake.joints)
    if mistake.of != "effort":
        q, qd, qdd = (x[:, order] * sign for x in (rows.q, rows.qd, rows.qdd))
        rows = replace(rows, q=q, qd=qd, qdd=qdd, keep=rows.keep[:, order])
    return rows if mistake.of == "motion" else replace(rows, effort=rows.effort[:, order] * sign)


def _exchanged(joints: int, a: int, b: int) -> Order:
    order = np.arange(joints)
    order[[a, b]] = b, a
    return order


def _reversed(joints: int, joint: int) -> Array:
    sign = np.ones(joints)
    sign[joint] = -1.0
    return sign
