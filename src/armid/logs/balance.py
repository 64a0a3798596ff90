"""Whether columns of effort balance a motion: each joint's own linear model, fitted to each column."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import signal
from scipy.optimize import linear_sum_assignment

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.robot.robot import Robot

SAMPLES = 1500  # rows of the fit
CLEAR = 1.3  # times the error that another reading must have
GOOD = 0.5  # share of a column that may stay unexplained


@dataclass(frozen=True)
class Balance:
    """How joints and columns of effort belong together.

    Attributes:
        errors: share of each joint's column that its dynamics do not explain, (joints,).
        columns: column of each joint; None where that is not clear.
        in_order: no other order of the columns explains clearly more.
        order_is_clear: no exchange of two joints explains nearly as much.
    """

    errors: Array
    columns: tuple[int, ...] | None
    in_order: bool
    order_is_clear: bool

    @property
    def worst(self) -> float:
        """Largest error."""
        return float(self.errors.max())

    @property
    def mean(self) -> float:
        """Mean error."""
        return float(self.errors.mean())


def balance(robot: Robot, position: Array, efforts: Array, step: float) -> Balance:
    """Fit every column of effort by every joint's dynamics; positions [rad or m] at a uniform step [s]."""
    sections = signal.butter(3, min(5.0, 0.04 / step), fs=1.0 / step, output="sos")
    q, effort = (signal.sosfiltfilt(sections, values, axis=0) for values in (position, efforts))
    v = np.gradient(q, step, axis=0)
    keep = np.unique(np.linspace(50, len(q) - 51, SAMPLES).astype(int))
    motion = Motion(q[keep], v[keep], np.gradient(v, step, axis=0)[keep])
    effort = effort[keep]
    model, joints = Model(robot), robot.n_joints
    table = _errors(model, motion, effort)
    rows, columns = linear_sum_assignment(table)
    errors = table[rows, columns]
    others = np.where(np.arange(table.shape[1]) == columns[:, None], np.inf, table).min(axis=1)
    clear = bool(errors.max() < GOOD and np.all(others > CLEAR * errors))
    square = table.shape[1] == joints
    given = np.diag(table) if square else errors
    in_order = square and bool(given.max() < GOOD and np.all(given <= CLEAR * table.min(axis=1)))
    swapped = np.inf
    if clear:
        for a, b in combinations(range(joints), 2):
            order = np.arange(joints)
            order[[a, b]] = b, a
            other = _errors(model, Motion(*(np.ascontiguousarray(array[:, order]) for array in motion)), effort)
            swapped = min(swapped, float(other[linear_sum_assignment(other)].mean()))
    certain = clear and swapped > CLEAR * float(errors.mean())
    return Balance(given, tuple(columns.tolist()) if clear else None, in_order, certain)


def _errors(model: Model, motion: Motion, effort: Array) -> Array:
    """Share of each column that each joint's linear model leaves unexplained, (joints, columns)."""
    regressor = model.regressor(motion.q, motion.qd, motion.qdd, model.base.kept)
    centred = effort - effort.mean(axis=0)
    size = np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    result = np.empty((regressor.shape[1], effort.shape[1]))
    for joint in range(regressor.shape[1]):
        own = np.column_stack([regressor[:, joint], np.ones(len(effort))])
        basis, singular, _ = np.linalg.svd(own[:, np.any(own != 0.0, axis=0)], full_matrices=False)
        basis = basis[:, singular > 1e-8 * singular[0]]
        result[joint] = np.linalg.norm(centred - basis @ (basis.T @ centred), axis=0) / size
    return result
