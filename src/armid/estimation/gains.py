"""Drive gains: what wrong ones do to estimates, and what one log tells about them.

If the gain of joint k is off by the share e_k, all torque of that joint is. Estimates are linear in the torque and move
by D_k e_k. Links are seen by several joints, so that gains which contradict each other leave residuals,

    r_j = noise + sum_k e_k W_j (delta_jk values - D_k),

which tell ratios of gains where links are seen by several joints well. All of it is on the compact factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor

LEAST = 0.02  # share of the residuals that is noise in any case
ROUNDS = 4  # of weights from the residuals that wrong gains do not explain


@dataclass(frozen=True, eq=False)
class GainErrors:
    """Relative errors of the drive gains, given the data and how well gains are known beforehand.

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
    own = [factor.normal_equations(one)[1] for one in np.diag(weights)]
    return np.asarray(inverse @ np.column_stack(own))


def gain_errors(factor: CompactFactor, weights: Array, values: Array, effects: Array, stated: Array) -> GainErrors:
    """Errors of gains that are known to the shares `stated`, from residuals in which they contradict each other."""
    joints = len(weights)
    known = np.asarray(stated, dtype=float) > 0.0
    precision = np.diag(1.0 / np.where(known, stated, 1e-9) ** 2)
    grams = [np.zeros((joints + 1, joints + 1)) for _ in range(joints)]
    for joint, columns in enumerate(factor.columns):
        moved = -effects[columns]
        moved[:, joint] += values[columns]
        ends = np.zeros((len(columns) + 1, joints + 1))  # of the misfits, then of the residual
        ends[:-1, :-1], ends[:-1, -1], ends[-1, -1] = moved, -values[columns], 1.0
        grams[joint] = ends.T @ factor.gram(joint) @ ends
    mean, covariance = np.zeros(joints), np.diag(np.asarray(stated, dtype=float) ** 2)
    for _ in range(ROUNDS):
        after = np.append(-mean, 1.0)
        left = [float(after @ gram @ after) / max(float(gram[-1, -1]), 1e-300) for gram in grams]
        total = sum(w / max(min(share, 1.0), 1e-6) * gram for w, share, gram in zip(weights, left, grams, strict=True))
        covariance = np.linalg.inv(np.asarray(total)[:-1, :-1] + precision)
        mean = covariance @ np.asarray(total)[:-1, -1]
    after = np.append(-mean, 1.0)
    squares = [(float(after @ gram @ after), float(gram[-1, -1])) for gram in grams]
    left, power = np.asarray(weights) @ np.array(squares)
    share = left / power if power > 0.0 else 1.0
    return GainErrors(mean, covariance, float(np.clip(share, LEAST, 1.0)))
