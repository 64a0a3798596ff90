"""Drive gains: what wrong ones do to estimates, and what one log tells about them.

If the share e_k of what the drive of joint k reports is wrong, all torque of that joint is off by it. Estimates are
linear in the torque and move by D_k e_k. Links are seen by several joints, so that gains which contradict each other
leave residuals,

    r_j = noise + sum_k e_k W_j (delta_jk values - D_k),

which tell ratios of gains where links are seen by several joints well. All of it is on the compact factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor

LEAST = 0.02  # share of the residuals that is noise in any case
ROUNDS = 8  # of torque corrected by the errors so far, and of weights from the residuals that they do not explain
MOST = 0.7  # logarithm of what a gain is off by
EXACT = 1e-4  # of the torque: less noise counts as this much, so that rounding does not tell of gains


@dataclass(frozen=True, eq=False)
class GainErrors:
    """Errors of the drive gains as shares of the torque reported, given the data and how well gains are known before.

    Attributes:
        mean: (joints,).
        covariance: (joints, joints).
        unexplained: share of the weighted squares of the residuals that is not theirs, and so is noise.
    """

    mean: Array
    covariance: Array
    unexplained: float = 1.0

    @property
    def second_moment(self) -> Array:
        """Expected products of errors: what estimates that do not correct for them have to count."""
        return np.asarray(self.covariance + np.outer(self.mean, self.mean))


def effects_of_gains(factor: CompactFactor, inverse: Array, weights: Array) -> Array:
    """Change of the estimates per relative change of each joint's gain, (values, joints).

    Args:
        factor: of the data.
        inverse: of the information.
        weights: 1 / variance per joint.
    """
    return np.asarray(inverse @ factor.by_joint(weights))


def gain_errors(factor: CompactFactor, weights: Array, values: Array, effects: Array, stated: Array) -> GainErrors:
    """Errors of gains that are known to the shares `stated`, from residuals in which they contradict each other.

    Each round goes on from torque and estimates that are corrected by the errors so far: with gains 10 % off, what one
    joint's error does depends on those of the others. What is known before is a normal distribution of the gains'
    logarithms: one of the gains themselves pulls all of them to the small side, twice its variance of a common scale.
    """
    joints, known = len(weights), np.asarray(stated, dtype=np.float64)
    precision = np.diag(1.0 / np.where(known > 0.0, known, 1e-9) ** 2)
    logarithm: Array = np.zeros(joints)
    covariance: Array = np.diag(known**2)
    first = _misfits(factor, values, effects, logarithm)[:, -1, -1]
    power = np.array([factor.gram(j)[-1, -1] / max(count, 1) for j, count in enumerate(factor.counts)])
    most = 1.0 / np.maximum(EXACT**2 * power, 1e-300)
    for _ in range(ROUNDS):
        grams = _misfits(factor, values, effects, logarithm)
        share = np.clip(grams[:, -1, -1] / np.maximum(first, 1e-300), 1e-6, 1.0)
        total = np.tensordot(np.minimum(weights / share, most), grams, axes=1)
        covariance = np.asarray(np.linalg.inv(total[:-1, :-1] + precision), dtype=np.float64)
        logarithm = np.clip(logarithm + covariance @ (total[:-1, -1] - precision @ logarithm), -MOST, MOST)
    left, whole = (
        float(np.asarray(weights) @ one) for one in (_misfits(factor, values, effects, logarithm)[:, -1, -1], first)
    )
    unexplained = left / whole if whole > 0.0 else 1.0
    true = np.exp(-logarithm)
    return GainErrors(1.0 - true, covariance * np.outer(true, true), float(np.clip(unexplained, LEAST, 1.0)))


def _misfits(factor: CompactFactor, values: Array, effects: Array, logarithm: Array) -> Array:
    """Products of what each gain's error leaves as residuals, and of the residuals, (joints, errors + 1, errors + 1).

    Errors are those of logarithms; torque and values are corrected by the `logarithm` so far.
    """
    true = np.exp(-logarithm)  # of the torque reported
    joints, corrected = len(true), values - effects @ (1.0 - true)
    result = np.zeros((joints, joints + 1, joints + 1))
    for joint, columns in enumerate(factor.columns):
        ends = np.zeros((len(columns) + 1, joints + 1))  # of the misfits, then of the residual
        ends[:-1, :-1], ends[:-1, -1], ends[-1, -1] = -effects[columns] * true, -corrected[columns], true[joint]
        ends[:-1, joint] += corrected[columns]
        result[joint] = ends.T @ factor.gram(joint) @ ends
    return result
