"""Instrumental variables: unbiased where noise of encoders enters the regressor and, by feedback, the torque.

Janot, Vandanjon, Gautier: A generic instrumental variable approach for industrial robot identification (2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.signal import bilinear, lfilter, lfilter_zi

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.estimation.covariance import sandwich
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.linear import solve_weighted
from armid.estimation.problem import BLOCK_SAMPLES, EstimationError, Problem
from armid.experiment.settings import DriveLoop, per_joint
from armid.files import plain
from armid.logs.log import Log
from armid.notes import Note, note
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
        push = model.total_torque(motion, values) + inertia * error.qdd
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


ALIKE = 0.8  # correlation of positions below which a command does not belong to the data


@dataclass(frozen=True, kw_only=True, eq=False)
class InstrumentalVariables(Estimator):
    """Solve Z' (tau - W x) = 0, Z the regressor of a motion that no sensor noise has touched.

    Instruments are the regressor of the commanded motion. With the drives' `loop` they are that of the simulated
    motion: the model with the present estimate follows the command in the same closed loop, estimate and simulation
    repeated until they agree. Simulated instruments are closer to the true regressor, hence intervals are smaller;
    both are free of the sensors' noise, so that the estimate has no bias from it. A joint's rows are left out where the
    instruments' motion, not the noisy measured one, is slow.

    Attributes:
        command: the commanded motion of each data set at its full rate; see `commanded_motion`.
        loop: the drives' loop, for simulated instruments; None takes the command itself.
        tolerance: relative change of the estimate (columns scaled to unit length) at which simulations end.
        iterations: simulations at most.
    """

    name: ClassVar[str] = "iv"
    about: ClassVar[str] = "unbiased under feedback"

    command: Motion | tuple[Motion, ...] | None = None
    loop: DriveLoop | None = None
    tolerance: float = 1e-3
    iterations: int = 10

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        commands = self._commands(problem)
        factor, start, weights = solve_weighted(problem)
        values, change, rounds = start.values, np.inf, 0
        instruments = commands
        for rounds in range(1, (1 if self.loop is None else self.iterations) + 1):  # noqa: B007
            if self.loop is not None:
                pairs = zip(problem.data, commands, strict=True)
                instruments = [tracked_motion(problem, d, c, self.loop, values) for d, c in pairs]
            equations = _Equations(problem, instruments)
            new, weights = equations.solve(weights)
            scale = equations.sizes(weights)
            change = float(np.linalg.norm(scale * (new - values)) / (np.linalg.norm(scale * new) + 1e-300))
            values = new
            if change < self.tolerance:
                break
        notes = [_alike(problem, instruments, simulated=self.loop is not None)]
        if self.loop is not None and change >= self.tolerance:
            notes.append(note("estimation.simulation_not_converged", rounds=rounds, change=change))
        elif self.loop is not None:
            notes.append(note("estimation.simulated", rounds=rounds))
        covariance, correlated = sandwich(lambda: equations.scores(values, weights), equations.inverse(weights))
        solution = replace(start, values=values)
        return self.finished(problem, factor, solution, weights, covariance=covariance, notes=[*notes, correlated])

    def options(self) -> dict[str, Any]:
        """Its own options, as data; the motion itself is left out."""
        return {
            **super().options(),
            "command": None if self.command is None else "given",
            "loop": plain(self.loop),
        }

    def _commands(self, problem: Problem) -> list[Motion]:
        if self.command is None:
            raise EstimationError(
                "instrumental variables need the commanded motion: give command=commanded_motion(log, data, robot), or "
                "use wls"
            )
        commands = [self.command] if isinstance(self.command, Motion) else list(self.command)
        if len(commands) != len(problem.data):
            raise EstimationError(f"there are {len(commands)} commanded motions for {len(problem.data)} data sets")
        for dataset, command in zip(problem.data, commands, strict=True):
            for array in command:
                if array.shape != dataset.q.shape or not np.isfinite(array).all():
                    raise EstimationError(
                        f"the commanded motion has the shape {array.shape}, the data {dataset.q.shape}, or it holds "
                        "values that are not finite; make it with commanded_motion(log, data, robot)"
                    )
            for name, mine, theirs in zip(dataset.joints, dataset.q.T, command.q.T, strict=True):
                if mine.std() > 0.0 and (theirs.std() == 0.0 or np.corrcoef(mine, theirs)[0, 1] < ALIKE):
                    raise EstimationError(f"joint {name} does not follow the commanded motion; is it of another log?")
        return commands


class _Equations:
    """Products of instruments, regressor and torque, [Z_j | W_j | tau_j], of each joint; and the rows once more."""

    def __init__(self, problem: Problem, instruments: Sequence[Motion]) -> None:
        self.problem, self.instruments = problem, instruments
        n, p = problem.robot.n_joints, len(problem.names)
        self.z, self.w = slice(0, p), slice(p, 2 * p)
        self.grams, self.counts = np.zeros((n, 2 * p + 1, 2 * p + 1)), np.zeros(n)
        with one_blas_thread():
            for z, w, torque, use in self._rows():
                for joint, mine in enumerate(use.T):
                    columns = np.column_stack([z[mine, joint], w[mine, joint], torque[mine, joint]])
                    self.grams[joint] += columns.T @ columns
                    self.counts[joint] += len(columns)
        if not self.counts.all():
            still = problem.robot.joint_names[int(np.argmin(self.counts))]
            raise EstimationError(f"joint {still} hardly moves in the instruments' motion; give other data")

    def _rows(self) -> Iterator[tuple[Array, Array, Array, NDArray[np.bool_]]]:
        """Instruments, regressor, torque and use, block by block."""
        problem = self.problem
        blocks = problem.blocks()
        for dataset, motion in zip(problem.data, self.instruments, strict=True):
            other = replace(dataset, q=motion.q, qd=motion.qd, qdd=motion.qdd)
            use = problem.used(other)
            for which, part in other.blocks(BLOCK_SAMPLES):
                z = problem.torque_model.regressor(part.motion, part.at_rows)
                block = next(blocks)
                if block.which != which:
                    raise AssertionError("blocks of data and instruments differ")
                yield z, block.regressor, block.torque, use[which]

    def solve(self, weights: Array) -> tuple[Array, Array]:
        """Estimate, and weights from its residuals."""
        for _ in range(4):
            values = self.inverse(weights) @ (weights @ self.grams[:, self.z, -1])
            ends = np.append(-values, 1.0)
            squares = np.einsum("p,jpq,q->j", ends, self.grams[:, self.w.start :, self.w.start :], ends)
            # a difference of large numbers: no residual is taken below round-off
            weights = self.counts / np.maximum(squares, 1e-14 * self.grams[:, -1, -1] + 1e-30)
        return values, weights

    def inverse(self, weights: Array) -> Array:
        """Inverse of Z'W, weighted."""
        total = np.tensordot(weights, self.grams, axes=1)
        sizes = np.sqrt(np.diag(total))
        left, right = sizes[self.z], sizes[self.w]
        scaled = total[self.z, self.w] / np.outer(left, right)
        if np.linalg.cond(scaled) > 1e10:
            raise EstimationError(
                "the instruments do not determine all parameters; use a motion that is followed more closely, or wls"
            )
        return np.asarray(np.linalg.inv(scaled) / np.outer(right, left))

    def sizes(self, weights: Array) -> Array:
        """Lengths of the weighted columns of Z."""
        return np.sqrt(weights @ np.diagonal(self.grams[:, self.z, self.z], axis1=1, axis2=2))

    def scores(self, values: Array, weights: Array) -> Iterator[tuple[Array, Array]]:
        """Scores Z_j e_j of the rows, and residuals in standard deviations."""
        for z, w, torque, use in self._rows():
            error = np.where(use, torque - w @ values, 0.0)
            yield np.einsum("rj,rjp->rp", weights * error, z), error * np.sqrt(weights)


def _alike(problem: Problem, instruments: Sequence[Motion], *, simulated: bool) -> Note:
    """How closely the instruments' accelerations follow the measured ones."""
    pairs = zip(problem.data[0].qdd.T, instruments[0].qdd.T, strict=True)
    alike = [
        float(np.corrcoef(mine, theirs)[0, 1]) if mine.std() > 0.0 and theirs.std() > 0.0 else 0.0
        for mine, theirs in pairs
    ]
    return note("estimation.instruments", simulated=simulated, correlation=alike)
