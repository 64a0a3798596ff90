"""Residuals at reversals against those elsewhere, followed over days: play and worn gears show there first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armid.arrays import Array
from armid.fleet.changes import Change, shapes_of
from armid.fleet.day import ArmDay

MAD = 1.4826
ENOUGH = 20  # values of the whole fleet from which their usual scatter is known
LEAST = 0.2  # rise of the logarithm that is worth telling


def reversal_scatter(arms: Mapping[str, Sequence[ArmDay]]) -> Array:
    """Usual standard deviation of the logarithm of the ratio from day to day, per joint; NaN where it is not known."""
    parts = []
    for name in sorted(arms):
        values = _logarithms(arms[name])
        if len(values) > 1:
            with np.errstate(invalid="ignore"):
                parts.append(values - _median(values))
    if not parts:
        return np.full(0, np.nan)
    pooled = np.concatenate(parts)
    known = np.isfinite(pooled).sum(axis=0)
    return np.where(known >= ENOUGH, MAD * _median(np.abs(pooled)), np.nan)


def reversal_changes(days: Sequence[ArmDay], scatter: Array, threshold: float) -> list[Change]:
    """Joints whose residuals at reversals have grown: `Change.watched` is the joint, `size` a factor less 1."""
    if not days or not len(scatter):
        return []
    values = _logarithms(days)
    found = []
    for joint in range(values.shape[1]):
        known = np.isfinite(values[:, joint])
        if known.sum() < 4 or not scatter[joint] > 0.0:
            continue
        index = np.flatnonzero(known)
        shapes = shapes_of(tuple(days[i].date for i in index.tolist()))
        steps = np.array([name == "step" for name in shapes.names])
        courses = shapes.courses[steps] - shapes.courses[steps].mean(axis=1, keepdims=True)
        length = np.linalg.norm(courses, axis=1)
        score = courses @ values[index, joint] / length / scatter[joint]
        best = int(np.argmax(score))
        size = float(score[best] * scatter[joint] / length[best])
        if score[best] > threshold and size > LEAST:
            onset = int(index[np.array(shapes.onsets)[steps][best]])
            sigma = float(scatter[joint] / length[best])
            growth = float(np.expm1(size))
            found.append(Change(joint, "step", onset, growth, (1.0 + growth) * sigma, float(score[best])))
    return found


def _logarithms(days: Sequence[ArmDay]) -> Array:
    values = np.array([day.reversal for day in days], dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0.0, np.log(values), np.nan)


def _median(values: Array) -> Array:
    """Median over rows, NaN left out and where there is nothing else."""
    ordered = np.sort(values, axis=0)  # NaN last
    count = np.isfinite(values).sum(axis=0)
    safe, columns = np.maximum(count, 1), np.arange(values.shape[1])
    return np.asarray(0.5 * (ordered[(safe - 1) // 2, columns] + ordered[safe // 2, columns]))
