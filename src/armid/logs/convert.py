"""From what drives report to what a model needs: motor side to joint side, current to torque, signs and offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.logs.log import Log, LogError

_MOTION = ("position", "velocity", "acceleration")


def to_joint_side(log: Log, ratio_matrix: ArrayLike) -> Log:
    """The log with motion and torque on the joint side of the gears.

    Motion is converted if it is on the motor side (``info.side``), the effort if it is a motor torque. A commanded
    position or velocity goes with the motion, a commanded torque with the effort. Currents stay.

    Args:
        log: any log.
        ratio_matrix: R in q_motor = R q_joint and tau_joint = R^T tau_motor, (joints, joints), or the gear ratios alone
            (joints,): `Robot.coupling`, or ``[drive.gear_ratio for drive in robot.drives]``.

    Raises:
        LogError: the matrix does not fit or cannot be inverted.
    """
    ratio = np.asarray(ratio_matrix, dtype=np.float64)
    n = len(log.joints)
    ratio = np.diag(ratio) if ratio.ndim == 1 else ratio
    if ratio.shape != (n, n) or not np.all(np.isfinite(ratio)):
        raise LogError(log.info.source, "ratio matrix", f"must hold {n} x {n} finite numbers, one row for each motor")
    if np.any(np.diag(ratio) == 0.0) or np.linalg.cond(ratio) > 1e12:
        raise LogError(log.info.source, "ratio matrix", "is singular or has a zero on its diagonal")
    changed: dict[str, Array | None] = {}
    if log.info.side == "motor":
        inverse = _inverse(ratio)
        moved = (*_MOTION, "command") if log.info.mode != "torque" else _MOTION
        changed |= {name: _times(log[name], inverse) for name in moved if name in log}
    effort = log.info.effort
    if effort == "motor torque":
        turned = ("effort", "command") if log.info.mode == "torque" else ("effort",)
        changed |= {name: _times(log[name], ratio.T) for name in turned if name in log}
        effort = "joint torque"
    return log.with_channels(changed, side="joint", effort=effort)


def torque_from_current(log: Log, gains: Sequence[Sequence[float] | float]) -> Log:
    """The log with joint torque as its effort, computed from the current; the current stays in the log.

    Args:
        log: a log with the channel `current` [A] and without a measured torque.
        gains: per joint a gain [N m/A], or a polynomial with the lowest power first, as `Robot.current_gain`.

    Raises:
        LogError: there is no current, there is a torque already, or the gains do not fit.
    """
    if log.info.effort not in ("current", "none"):
        raise LogError(log.info.source, "effort", f"is a {log.info.effort} already, and is not replaced")
    current = log["current"]
    if len(gains) != len(log.joints):
        raise LogError(log.info.source, "current gain", f"is given for {len(gains)} of {len(log.joints)} joints")
    torque = np.empty_like(current)
    for index, gain in enumerate(gains):
        polynomial = [0.0, float(gain)] if np.ndim(gain) == 0 else list(np.asarray(gain, dtype=np.float64))  # type: ignore[arg-type]
        torque[:, index] = np.polynomial.polynomial.polyval(current[:, index], polynomial)
    return log.with_channels({"effort": torque}, effort="joint torque")


def reoriented(log: Log, sign: ArrayLike, offset: ArrayLike) -> Log:
    """The log in the model's directions and zeros: q_model = sign * q + offset.

    Args:
        log: any log.
        sign: per joint 1, or -1 where the model turns the other way; applies to all channels but temperature.
        offset: per joint, added to positions [rad or m].
    """
    sign, offset = np.asarray(sign, dtype=np.float64), np.asarray(offset, dtype=np.float64)
    changed: dict[str, Any] = {}
    if np.any(sign != 1.0):
        changed |= {name: values * sign for name, values in log.channels.items() if name != "temperature"}
    if np.any(offset != 0.0):
        shifted = ("position", "command") if log.info.mode == "position" else ("position",)
        changed |= {name: changed.get(name, log[name]) + offset for name in shifted if name in log}
    return log.with_channels(changed) if changed else log


def _inverse(ratio: Array) -> Array:
    """Inverse with exact zeros, so that a joint depends on those motors alone that move it."""
    inverse: Array = np.asarray(np.linalg.inv(ratio), dtype=np.float64)
    inverse[np.abs(inverse) < 1e-14 * np.abs(inverse).max()] = 0.0
    return inverse


def _times(rows: Array, matrix: Array) -> Array:
    """`matrix` times each row. Zeros of the matrix are skipped: a NaN of one motor spoils only its own joints."""
    result = np.zeros_like(rows)
    for target, weights in enumerate(matrix):
        for index in np.flatnonzero(weights):
            result[:, target] += weights[index] * rows[:, index]
    return result
