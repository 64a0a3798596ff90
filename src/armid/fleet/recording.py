"""One recording, in one file or in several that go on in one another, reduced while it is read.

Long logs are cut into overlapping pieces that are filtered alike: the rows of all pieces are those of the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np

from armid.arrays import Array
from armid.dynamics.base import random_motion
from armid.dynamics.factor import CompactFactor
from armid.errors import ArmidError
from armid.estimation.problem import Problem
from armid.fleet.description import Fleet
from armid.logs.log import Log, LogError, LogStream, concatenate
from armid.robot.inertia import change_of_frame
from armid.robot.robot import inertial_names
from armid.signals.dataset import Dataset
from armid.signals.filters import low_pass_kernel
from armid.signals.pipeline import Pipeline, process
from armid.torque.model import TorqueModel

CHUNK = 16_384  # samples reduced at a time
STANDSTILL = 0.03  # share of a filtered row that samples slower than the slow floor may make up
JUMP_S = 1.0  # a step of time longer than this, or backwards, begins a new stretch
NEEDED = ("position", "effort", "current")  # channels in which a hole costs the rows around it
LOOKED_AT = 4  # chunks per day whose residuals are looked at
SAMPLES, SPANNED = 128, 1e-4  # of random motion; share of a column that others may leave
ROUND_OFF = 1e-12  # of what a payload adds, over the largest


@dataclass(frozen=True, eq=False)
class Sums:
    """What recordings add up to, in constant memory.

    Attributes:
        factor: of all pieces; None without any.
        looked_at: some pieces and what their payload adds to the parameters, to look at residuals.
        samples, seconds: how much was recorded.
        warmth, felt: sums of temperatures [°C] and how many there are, per joint.
        missing: samples without a number for a position or effort.
    """

    factor: CompactFactor | None = None
    looked_at: tuple[tuple[Problem, Array], ...] = ()
    samples: int = 0
    seconds: float = 0.0
    warmth: Array | float = 0.0
    felt: Array | float = 0.0
    missing: int = 0

    def __add__(self, other: Sums) -> Sums:
        """Both together."""
        factors = [one.factor for one in (self, other) if one.factor is not None]
        return Sums(
            reduce(add, factors) if factors else None,
            (self.looked_at + other.looked_at)[:LOOKED_AT],
            self.samples + other.samples,
            self.seconds + other.seconds,
            self.warmth + other.warmth,
            self.felt + other.felt,
            self.missing + other.missing,
        )


@dataclass(frozen=True)
class Reduction:
    """A recording so far.

    Attributes:
        fleet: robot, signals and options.
        payload: ten parameters of what the arm is said to carry, in the tool frame; None for nothing.
        files: names of the files it was read from.
        sums: of what has been reduced.
        stretch: rows that wait for the next.
    """

    fleet: Fleet
    payload: tuple[float, ...] | None = None
    files: tuple[str, ...] = ()
    sums: Sums = field(default_factory=Sums)
    stretch: Stretch | None = None

    def goes_on_in(self, block: Log) -> bool:
        """Whether a block goes on where this ends, with the same payload."""
        return self.stretch is not None and self.payload == block.info.payload and self.stretch.goes_on_in(block)

    def grown(self, stream: LogStream, name: str) -> Reduction:
        """This recording and one more file; itself stays as it is, whatever the file turns out to be."""
        stretch = Stretch(self.fleet) if self.stretch is None else replace(self.stretch)
        sums = self.sums
        for block in stream.blocks(CHUNK):
            sums += self._counted(block)
            for piece in stretch.grow(block):
                sums += self._reduced(piece, sums)
        return replace(self, files=(*self.files, name), sums=sums, stretch=stretch)

    def end(self) -> Sums:
        """Reduce what waits; the sums of the whole recording.

        Raises:
            ArmidError: the recording cannot be used.
        """
        sums = self.sums
        for piece in () if self.stretch is None else self.stretch.end():
            sums += self._reduced(piece, sums)
        if sums.factor is None:
            raise ArmidError("too short: no stretch is longer than the filter needs")
        if sums.missing and not sum(sums.factor.counts):
            raise ArmidError(_holes(sums))
        return sums

    def _reduced(self, log: Log, so_far: Sums) -> Sums:
        try:
            problem = problem_of(self.fleet, dataset_of(log, self.fleet))
        except LogError as error:
            if so_far.missing and error.field in NEEDED:
                raise ArmidError(_holes(so_far)) from None
            raise
        factor = problem.factor(triangular=True, complete=False)
        shift = np.zeros(len(problem.names))
        if self.payload is not None:
            shift = payload_map(problem.torque_model) @ np.asarray(self.payload, dtype=float)
            factor = without_payload(factor, shift)
        return Sums(factor, ((problem, shift),))

    def _counted(self, block: Log) -> Sums:
        seconds = len(block) / block.rate_hz if len(block) > 1 or block.info.rate_hz else 0.0
        needed = [block[name] for name in NEEDED if name in block]
        missing = int((~np.isfinite(np.hstack(needed)).all(axis=1)).sum()) if needed else 0
        warmth: Array | float = 0.0
        felt: Array | float = 0.0
        if "temperature" in block:
            values = block.for_joints(self.fleet.robot.joint_names)["temperature"]
            good = np.isfinite(values)
            warmth, felt = np.where(good, values, 0.0).sum(axis=0), good.sum(axis=0)
        return Sums(samples=len(block), seconds=seconds, warmth=warmth, felt=felt, missing=missing)


def _holes(sums: Sums) -> str:
    return (
        f"holds samples that are no numbers ({sums.missing} of {sums.samples}), with too little motion between; find "
        "out why the recorder lost them"
    )


@dataclass
class Stretch:
    """Rows that wait for those that follow them, so that they can be given out in overlapping pieces of one length.

    Attributes:
        fleet: with the signal processing.
        waiting: rows that wait.
        plan: lengths of the pieces.
    """

    fleet: Fleet
    waiting: Log | None = None
    plan: _Pieces | None = None

    def grow(self, block: Log) -> Iterator[Log]:
        """Pieces that are complete with the rows of a block; where time jumps, a new stretch begins."""
        for log, fresh in without_jumps(block, self.waiting):
            if fresh:
                yield from self.end()
            self.waiting = log if self.waiting is None else concatenate([self.waiting, log])
            self.plan = self.plan or _Pieces.of(self.waiting, self.fleet)
            while len(self.waiting) >= self.plan.length:
                yield self.waiting.rows(slice(0, self.plan.length))
                self.waiting = self.waiting.rows(slice(self.plan.core, None))

    def end(self) -> Iterator[Log]:
        """The last piece, shortened so that its rows go on where those before it ended; none, if it is too short."""
        if self.waiting is not None and self.plan is not None:
            plan, log = self.plan, self.waiting
            rows = (len(log) - 1 - 2 * plan.edge) // plan.step + 1
            if rows >= 1:
                yield log.rows(slice(0, replace(plan, core=rows * plan.step).length))
        self.waiting = None

    def goes_on_in(self, block: Log) -> bool:
        """Whether a block is the next of the same stretch: same joints, channels and meaning, and time goes on."""
        before = self.waiting
        if before is None or block.joints != before.joints or set(block.channels) != set(before.channels):
            return False
        meanings = [(info.effort, info.side, info.rate_hz) for info in (before.info, block.info)]
        return bool(meanings[0] == meanings[1] and 0.0 < block.time[0] - before.time[-1] <= JUMP_S)


@dataclass(frozen=True)
class _Pieces:
    """Lengths in samples: of the new part of a piece, of what the filters need at each end, and between rows."""

    core: int
    edge: int
    step: int

    @property
    def length(self) -> int:
        return self.core - self.step + 2 * self.edge + 1

    @classmethod
    def of(cls, log: Log, fleet: Fleet) -> _Pieces:
        low_pass = fleet.low_pass.settled(log.rate_hz)
        kernel = low_pass_kernel(log.rate_hz, float(low_pass.cutoff_hz), low_pass.order, tail=low_pass.tail)
        step = int(low_pass.decimate)
        wide = low_pass_kernel(log.rate_hz, float(low_pass.motion_cutoff_hz or 0.0), low_pass.order, tail=1e-12)
        margin = -(-(len(wide) // 2 + 8) // step) * step
        return cls(max(1, CHUNK // step) * step, len(kernel) // 2 + margin, step)


def dataset_of(log: Log, fleet: Fleet) -> Dataset:
    """A piece processed; rows that feel its ends are left to its neighbours, and what standstill decides to nobody.

    At standstill friction takes any value up to the breakaway torque. What of it the low-pass blends into other rows is
    the same on all days and arms, and no noise: it would bias all of them, inertias by a tenth and more.
    """
    edge = _Pieces.of(log, fleet).edge
    steps = Pipeline((*fleet.pipeline.steps[:-1], fleet.low_pass.settled(log.rate_hz)))
    data = process(log, steps, robot=fleet.robot)
    inner = (data.rows >= edge) & (data.rows < len(data.q) - edge)
    found = replace(data, rows=data.rows[inner], torque=data.torque[inner], use=None)
    use = np.abs(found.at_rows((np.abs(data.qd) < fleet.slow_floor).astype(float))) < STANDSTILL
    return replace(found, use=use if data.use is None else use & data.use[inner])


def problem_of(fleet: Fleet, data: Dataset) -> Problem:
    """A piece against the torque model of the type."""
    model = fleet.model
    return Problem(
        fleet.robot,
        data,
        terms=model.terms,
        delay_s=model.delay_s,
        load_values=model.load_values,
        slow_share=0.0,
        slow_floor=fleet.slow_floor,
    )


def without_jumps(block: Log, before: Log | None = None) -> Iterator[tuple[Log, bool]]:
    """Parts of a block in which time goes on, and whether each begins a new stretch."""
    last = block.time[0] if before is None or not len(before) else before.time[-1]
    cuts = np.flatnonzero(np.abs(np.diff(np.concatenate([[last], block.time]))) > JUMP_S)
    edges = [0, *(int(cut) for cut in cuts if cut > 0), len(block)]
    for index, (begin, end) in enumerate(pairwise(edges)):
        yield block.rows(slice(begin, end)), index > 0 or 0 in cuts


def without_payload(factor: CompactFactor, shift: Array) -> CompactFactor:
    """The factor of the arm alone, from that of the arm with a known payload, which shifts its parameters.

    Torque is linear: tau - W shift only changes the last column of a triangular factor.
    """
    matrices = []
    for columns, matrix in zip(factor.columns, factor.matrices, strict=True):
        lighter = matrix.copy()
        lighter[:, -1] -= matrix[:, :-1] @ shift[columns]
        matrices.append(lighter)
    return replace(factor, matrices=tuple(matrices))


def payload_map(model: TorqueModel) -> Array:
    """(columns, 10): what a payload in the tool frame adds to the base parameters, per unit of its parameters.

    Parameters of the last link that the description neglects count as far as the others' columns span theirs: a mass on
    the last axis belongs to the link before.
    """
    base, robot = model.model.base, model.robot
    index = {name: i for i, name in enumerate(base.names)}
    names = inertial_names(robot.n_joints)
    adds = np.array([base.matrix[:, index[name]] if name in index else np.zeros(len(base.kept)) for name in names])
    missing = [k for k, name in enumerate(names) if name not in index]
    if missing:
        motion = random_motion(robot, SAMPLES, np.random.default_rng(0))
        rows = model.model.regressor(*motion, (*base.kept, *(names[k] for k in missing)))
        own, wanted = np.split(rows.reshape(-1, rows.shape[-1]), [len(base.kept)], axis=1)
        found = np.linalg.lstsq(own, wanted, rcond=1e-12)[0]
        left = np.linalg.norm(wanted - own @ found, axis=0) <= SPANNED * np.linalg.norm(wanted, axis=0)
        adds[missing] = np.where(left & (np.abs(wanted).max(axis=0) > 0.0), found, 0.0).T
    result = np.zeros((len(model.names), 10))
    result[: len(base.kept)] = adds.T @ change_of_frame(robot.tool)
    return np.where(np.abs(result) > ROUND_OFF * np.abs(result).max(initial=0.0), result, 0.0)
