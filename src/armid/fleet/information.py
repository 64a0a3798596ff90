"""Arm-days as information: what a day says about the parameters, in the units of the arm's noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.fleet.day import ArmDay

SPARE_ROWS = 20  # beyond the number of parameters, without which a day does not tell a joint's noise
LOUD = 1.5  # times its arm's usual residual from which on a day counts by its own


@dataclass(frozen=True, eq=False)
class Information:
    """Quadratic log-likelihood of the parameters x: -(x' A x - 2 b' x) / 2.

    Attributes:
        matrix: A, (parameters, parameters).
        vector: b.
    """

    matrix: Array
    vector: Array

    def __add__(self, other: Information) -> Information:
        """What both say together."""
        return Information(self.matrix + other.matrix, self.vector + other.vector)


@dataclass(frozen=True, eq=False)
class History:
    """One arm over its usable days.

    Attributes:
        name: of the arm.
        days: the arm-days, by date.
        matrix: A of each day, (days, parameters, parameters).
        vector: b of each day, (days, parameters).
        noise: usual rms of the residuals per joint [N m].
        inflation: by how much their correlation in time enlarges variances, per joint.
    """

    name: str
    days: tuple[ArmDay, ...]
    matrix: Array
    vector: Array
    noise: Array
    inflation: Array

    @property
    def total(self) -> Information:
        """All days together, always summed in the order of their dates."""
        return Information(self.matrix.sum(axis=0), self.vector.sum(axis=0))

    def only(self, keep: NDArray[np.bool_]) -> History:
        """Some of the days."""
        days = tuple(day for day, yes in zip(self.days, keep, strict=True) if yes)
        return History(self.name, days, self.matrix[keep], self.vector[keep], self.noise, self.inflation)

    def scaled(self, scatter: float) -> History:
        """The same with errors that many times larger."""
        if scatter == 1.0:
            return self
        square = scatter**2
        parts = self.matrix / square, self.vector / square, self.noise, self.inflation * square
        return History(self.name, self.days, *parts)


def told_noise(days: Sequence[ArmDay]) -> Array:
    """Residuals' rms of each day and joint, (days, joints) [N m]; NaN where so few rows fit whatever they are."""
    result = []
    for day in days:
        assert day.factor is not None
        rows = np.array(day.factor.counts) - [len(columns) for columns in day.factor.columns]
        result.append(np.where((rows >= SPARE_ROWS) & (day.rms > 0.0), day.rms, np.nan))
    return np.array(result)


def median_noise(rms: Array) -> Array:
    """Median over days, per joint; NaN where no day tells it."""
    known = np.isfinite(rms).any(axis=0)
    return np.where(known, np.nanmedian(np.where(known, rms, 0.0), axis=0), np.nan)


def history_of(
    name: str, days: Sequence[ArmDay], counted: NDArray[np.bool_] | None = None, typical: Array | None = None
) -> History:
    """An arm's usable days as information.

    Noise and inflation are medians over the arm's days: one day tells them too badly, and a bad day does not move them.

    Args:
        name: of the arm.
        days: its arm-days.
        counted: which of the usable ones, by date, tell the noise; all, if it is None or none of them does.
        typical: noise of other arms, for joints that have moved too little to tell theirs.
    """
    kept = tuple(sorted((day for day in days if day.usable), key=lambda day: day.date))
    if not kept:
        raise ArmidError(f"{name}: no day is usable")
    quiet = [day for day, yes in zip(kept, counted, strict=True) if yes] if counted is not None else []
    noise = median_noise(told_noise(quiet or kept))
    if typical is not None:
        noise = np.where(np.isfinite(noise), noise, typical)
    plain = median_noise(np.array([np.where(day.rms > 0.0, day.rms, np.nan) for day in quiet or kept]))
    noise = np.where(np.isfinite(noise), noise, plain)
    inflation = np.median([day.inflation for day in quiet or kept], axis=0)
    matrices, vectors = [], []
    with one_blas_thread():
        for day in kept:
            assert day.factor is not None
            own = np.where(day.rms > LOUD * noise, day.rms, noise)
            matrix, vector, _ = day.factor.normal_equations(1.0 / (own**2 * inflation))
            matrices.append(matrix)
            vectors.append(vector)
    return History(name, kept, np.array(matrices), np.array(vectors), noise, inflation)
