"""Motion without sensor noise: the commanded one, and what the model makes of it in the drives' loop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.signal import bilinear, lfilter, lfilter_zi

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.estimation.problem import EstimationError, Problem
from armid.experiment.settings import DriveLoop, per_joint
from armid.logs.log import Log
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.pipeline import Pipeline
from armid.signals.preparations import CurrentToTorque, ToJointSide
from armid.signals.steps import Preparation

ROUNDS = 30  # of the relaxation that closes the loop
SETTLED = 1e-7  # [rad] change of the simulated position at which it ends
RELAXATION = 0.8
LEAD_PERIODS = 2  # through which a periodic motion settles


def commanded_motion(log: Log, data: Dataset, robot: Robot | None = None) -> Motion:
    """The commanded motion of a log, processed as its positions were: same samples, filters and derivatives.

    Args:
        log: with the channel `command` in position mode.
        data: what `process` made of it.
        robot: as given to `process`.
    """
    if "command" not in log or log.info.mode != "position":
        raise EstimationError("the log holds no commanded positions, so there are no instruments; use wls")
    pipeline = Pipeline.of([dict(step) for step in data.pipeline])
    if pipeline.strategy is None:
        raise EstimationError("the data set does not say how it was made; make it with armid.process")
    if robot is not None:
        log = log.for_joints(robot.joint_names)
        for kind in (CurrentToTorque, ToJointSide):
            if not any(isinstance(step, kind) for step in pipeline.steps):
                log, _ = kind().apply(log, robot)
    for step in pipeline.steps:
        if isinstance(step, Preparation):
            log, _ = step.apply(log, robot)
    channels = {**log.channels, "position": log["command"]}
    motion = pipeline.strategy.dataset(replace(log, channels=channels)).motion
    if motion.q.shape != data.q.shape:
        raise EstimationError(
            f"the commanded motion has {len(motion.q)} samples and the data {len(data.q)}; state the period or the "
            "part of the log in the pipeline"
        )
    return motion


def tracked_motion(problem: Problem, dataset: Dataset, command: Motion, loop: DriveLoop, values: Array) -> Motion:
    """The motion of the model in the closed loop of independent drives, for parameter `values`.

    In the loop the drives' torque is C(s) (r - q) with C(s) = K_d s + K_p + K_i / s (see `DriveLoop`), and it is the
    torque that the motion needs: r - q = s / (K_d s^2 + K_p s + K_i) tau(q, q', q''). With J q'' on both sides,
    J the mean inertia of each joint, this becomes the relaxation r - q = s / (J s^3 + K_d s^2 + K_p s + K_i) (tau + J
    (r - q)''), which contracts and is evaluated for all samples at once.
    """
    model, names = problem.torque_model, problem.names
    base = dict(zip(names[: len(model.model.base.kept)], values, strict=False))
    inertia = np.mean(np.diagonal(model.model.mass_matrix(command.q, base), axis1=1, axis2=2), axis=0)
    if not np.all(inertia > 0.0):
        raise EstimationError("the estimate has a negative inertia, so it cannot be simulated; use loop=None")
    filters = _filters(loop, inertia, dataset.rate_hz)
    error = Motion(*(np.zeros_like(command.q) for _ in range(3)))
    for _ in range(ROUNDS):
        q, qd, qdd = (r - e for r, e in zip(command, error, strict=True))
        motion = Motion(*(np.ascontiguousarray(array) for array in (q, qd, qdd)))
        torque = model.torque(motion, values)
        known = model.known_torque(motion)
        push = torque + inertia * error.qdd if known is None else torque + known + inertia * error.qdd
        new = _response(filters, push, periodic=dataset.periods > 0)
        step = [RELAXATION * (n - e) for n, e in zip(new, error, strict=True)]
        error = Motion(*(e + s for e, s in zip(error, step, strict=True)))
        change = float(np.abs(step[0]).max())
        if change < SETTLED:
            break
        if not np.isfinite(change) or change > 10.0:
            raise EstimationError("the simulated drives do not follow the command; check loop, or use loop=None")
    return Motion(*(np.ascontiguousarray(r - e) for r, e in zip(command, error, strict=True)))


def _filters(loop: DriveLoop, inertia: Array, rate_hz: float) -> list[list[tuple[Array, Array]]]:
    """Per joint the discrete filters from torque to tracking error, its rate and its acceleration."""
    result = []
    for j, bandwidth in zip(inertia, per_joint("bandwidth_hz", loop.bandwidth_hz, len(inertia)), strict=True):
        omega = 2.0 * np.pi * bandwidth
        faster = loop.velocity_ratio * omega
        kd = faster * j
        kp, ki = kd * (omega + 0.25 * faster), kd * 0.25 * faster * omega
        powers = ([1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
        result.append([bilinear(top, [j, kd, kp, ki], rate_hz) for top in powers])
    return result


def _response(filters: list[list[tuple[Array, Array]]], push: Array, *, periodic: bool) -> Motion:
    """Filter each joint: from rest under the first torque, or in the steady state of a repeated period."""
    samples = len(push)
    series = np.tile(push, (LEAD_PERIODS + 1, 1)) if periodic else push
    parts = [np.empty_like(push) for _ in range(3)]
    for joint, three in enumerate(filters):
        for part, (b, a) in zip(parts, three, strict=True):
            start = lfilter_zi(b, a) * series[0, joint]
            part[:, joint] = lfilter(b, a, series[:, joint], zi=start)[0][-samples:]
    return Motion(*parts)
