"""How much of the error looks like something else that the arm carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.fit import Fit
from armid.signals.dataset import Dataset
from armid.validation.comparison import Comparison

ALONE = 1e-3  # least share of its own that the mass must have of its column, beside the first moments


def payload_in_error(fit: Fit, data: Sequence[Dataset], parts: Sequence[Comparison]) -> tuple[Array, float]:
    """Share of each joint's squared error that one more mass on the last link explains, and that mass.

    The errors of all joints are regressed together on the mass and the first moments of the last link, each joint
    counting by its own error; moments of inertia matter little beside those.

    Returns:
        Shares (joints,), and the mass [kg], NaN where only its first moments show.
    """
    grams = np.zeros((fit.robot.n_joints, 5, 5))
    with one_blas_thread():
        for dataset, part in zip(data, parts, strict=True):
            grams += _grams(fit, dataset, part)
    power = grams[:, -1, -1]
    total = np.tensordot(1.0 / np.where(power > 0.0, power, np.inf), grams, axes=1)
    scale = np.sqrt(np.maximum(np.diag(total)[:-1], 1e-300))
    matrix = total[:-1, :-1] / np.outer(scale, scale)
    x = np.linalg.pinv(matrix, rcond=1e-8, hermitian=True) @ (total[:-1, -1] / scale) / scale
    ends = np.append(-x, 1.0)
    left = (grams @ ends) @ ends
    shares = np.where(power > 0.0, 1.0 - left / np.where(power > 0.0, power, 1.0), 0.0)
    others = matrix[1:, 1:]
    alone = matrix[0, 0] - matrix[0, 1:] @ np.linalg.pinv(others, rcond=1e-8, hermitian=True) @ matrix[1:, 0]
    return np.maximum(shares, 0.0), float(x[0]) if alone > ALONE else float("nan")


def _grams(fit: Fit, data: Dataset, part: Comparison) -> Array:
    """Products of the four columns and the error, per joint, over the rows that count."""
    number = fit.robot.n_joints
    names = [f"{name}{number}" for name in ("m", "mx", "my", "mz")]
    result = np.zeros((number, 5, 5))
    for which, rows in data.blocks():
        columns = rows.at_rows(fit.torque_model.model.regressor(*rows.motion, names))
        stacked = np.concatenate([columns, part.error[which][:, :, None]], axis=2)
        stacked = np.where(part.use[which][:, :, None], stacked, 0.0)
        result += np.einsum("tjp,tjq->jpq", stacked, stacked)
    return result
