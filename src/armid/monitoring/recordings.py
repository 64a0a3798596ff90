"""Logs as a controller would have seen them: causal, in joint torque, in stretches without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.estimation.fit import Fit
from armid.logs.log import Log, LogError
from armid.monitoring.observer import filtered
from armid.signals.dataset import Dataset
from armid.signals.doctor.robot import check_torque
from armid.signals.pipeline import Pipeline, check_robot, for_robot
from armid.signals.preparations import CurrentToTorque, ToJointSide, without_jumps
from armid.signals.repair import increasing_rows

GAP = 5.0  # median steps without a sample, from which on an observer starts again
LEAST = 10  # samples of a stretch
DIFFERENCE = 100.0  # [1/s], gain of the filter that makes velocities where none were recorded


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples without a gap.

    Attributes:
        time: [s], (samples,).
        dt: time since the sample before [s], (samples,).
        q, qd, tau: (samples, joints).
        source: of the log.
    """

    time: Array
    dt: Array
    q: Array
    qd: Array
    tau: Array
    source: str

    @property
    def duration(self) -> float:
        """[s]."""
        return float(self.dt.sum())


def stretches(fit: Fit, log: Log) -> list[Samples]:
    """Stretches of a log, with its own velocities or, where it has none, filtered differences of its positions.

    Raises:
        LogError: there is no torque or one of another scale, a joint's zero moves, or no stretch of ten samples.
    """
    check_robot(log.info, fit.robot)
    if log.info.effort == "none":
        raise LogError(log.info.source, "effort", "is missing; external torque needs measured torque or current")
    steps = Pipeline.from_data(fit.pipeline)
    log, _ = for_robot(log, steps, fit.robot)
    for step in steps.steps:
        if isinstance(step, CurrentToTorque | ToJointSide):
            log, _ = step.apply(log, fit.robot)
    log, _ = without_jumps(log.rows(increasing_rows(log.time)))
    keep = np.ones(len(log), dtype=bool)
    names = [name for name in ("position", "velocity", "effort") if name in log]
    names = names if "velocity" in names and np.isfinite(log["velocity"]).any() else ["position", "effort"]
    for name in names:
        keep &= np.isfinite(log[name]).all(axis=1)
    log = log.rows(keep)
    dt = np.diff(log.time)
    usual = float(np.median(dt)) if len(dt) else 0.0
    edges = [0, *(np.flatnonzero(dt > GAP * usual) + 1).tolist(), len(log)]
    found = [
        _stretch(log.rows(slice(first, last)), usual, "velocity" in names)
        for first, last in pairwise(edges)
        if last - first >= LEAST
    ]
    if not found:
        raise LogError(log.info.source, "", f"has no stretch of {LEAST} samples without a gap; record again")
    check_torque(_as_data(fit, max(found, key=lambda part: len(part.time))), fit.robot, partial(_expected, fit))
    return found


def _as_data(fit: Fit, part: Samples) -> Dataset:
    """Samples as a data set, of no acceleration: enough to judge the scale of their torque."""
    rows = np.arange(len(part.time))
    history = {"source": part.source}
    joints, rest = fit.robot.joint_names, np.zeros_like(part.q)
    return Dataset(joints, part.time, part.q, part.qd, rest, torque=part.tau, rows=rows, history=history)


def _expected(fit: Fit, motion: Motion) -> Array:
    return fit.torque_model.total_torque(motion, fit.values)


def _stretch(log: Log, usual: float, measured: bool) -> Samples:
    dt = np.diff(log.time, prepend=log.time[0] - usual)
    q = np.ascontiguousarray(log["position"])
    still = np.zeros(q.shape[1])
    qd = log["velocity"] if measured else filtered(dt, q, np.zeros_like(q), DIFFERENCE, q[0], still, still)
    return Samples(log.time, dt, q, np.ascontiguousarray(qd), np.ascontiguousarray(log["effort"]), log.info.source)
