"""One recording, in one file or in several that go on in one another, reduced while it is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from armid.arrays import Array
from armid.dynamics.factor import CompactFactor
from armid.errors import ArmidError
from armid.estimation.problem import Problem
from armid.fleet.description import Fleet
from armid.fleet.pieces import CHUNK, Stretch, dataset_of
from armid.logs.log import Log, LogError
from armid.logs.stream import LogStream
from armid.robot.inertia import change_of_frame
from armid.robot.robot import inertial_names
from armid.torque.model import TorqueModel

NEEDED = ("position", "effort", "current")  # channels in which a hole costs the rows around it
LOOKED_AT = 4  # chunks per day whose residuals are looked at


@dataclass
class Recording:
    """What a recording adds up to, in constant memory.

    Attributes:
        fleet: robot, signals and options.
        payload: ten parameters of what the arm is said to carry, in the tool frame; None for nothing.
        files: names of the files it was read from.
        factor: of the pieces so far.
        looked_at: some pieces and what their payload adds to the parameters, to look at residuals.
        samples, seconds: how much was recorded.
        warmth, felt: sums of temperatures [°C] and how many there are, per joint.
        missing: samples without a number for a position or effort.
        stretch: rows that wait for the next.
    """

    fleet: Fleet
    payload: tuple[float, ...] | None = None
    files: tuple[str, ...] = ()
    factor: CompactFactor | None = None
    looked_at: list[tuple[Problem, Array]] = field(default_factory=list)
    samples: int = 0
    seconds: float = 0.0
    warmth: Array | None = None
    felt: Array | None = None
    missing: int = 0
    stretch: Stretch | None = None

    def goes_on_in(self, block: Log) -> bool:
        """Whether a block goes on where this ends, with the same payload."""
        return self.stretch is not None and self.payload == block.info.payload and self.stretch.goes_on_in(block)

    def grown(self, stream: LogStream, name: str) -> Recording:
        """This recording and one more file; itself stays as it is, whatever the file turns out to be."""
        stretch = Stretch(self.fleet) if self.stretch is None else replace(self.stretch)
        more = replace(self, files=(*self.files, name), looked_at=list(self.looked_at), stretch=stretch)
        for block in stream.blocks(CHUNK):
            more._count(block)
            for piece in stretch.grow(block):
                more._reduce(piece)
        return more

    def end(self) -> CompactFactor:
        """Reduce what waits; the factor of the whole recording.

        Raises:
            ArmidError: the recording cannot be used.
        """
        for piece in () if self.stretch is None else self.stretch.end():
            self._reduce(piece)
        if self.factor is None:
            raise ArmidError("too short: no stretch is longer than the filter needs")
        if self.missing and not sum(self.factor.counts):
            raise ArmidError(self._holes())
        return self.factor

    def _holes(self) -> str:
        return (
            f"holds samples that are no numbers ({self.missing} of {self.samples}), with too little motion between; "
            "find out why the recorder lost them"
        )

    def _reduce(self, log: Log) -> None:
        fleet, fit = self.fleet, self.fleet.fit
        try:
            data = dataset_of(log, fleet)
        except LogError as error:
            if self.missing and error.field in NEEDED:
                raise ArmidError(self._holes()) from None
            raise
        problem = Problem(
            fleet.robot,
            data,
            terms=() if fit is None else fit.terms,
            delay_s=None if fit is None else fit.delay_s,
            load_values=None if fit is None else fit.load_values,
            slow_share=0.0,
            slow_floor=fleet.slow_floor,
        )
        factor = problem.factor(triangular=True, complete=False)
        shift = np.zeros(len(problem.names))
        if self.payload is not None:
            shift = payload_map(problem.torque_model) @ np.asarray(self.payload, dtype=float)
            factor = without_payload(factor, shift)
        self.factor = factor if self.factor is None else self.factor + factor
        if len(self.looked_at) < LOOKED_AT:
            self.looked_at.append((problem, shift))

    def _count(self, block: Log) -> None:
        self.samples += len(block)
        self.seconds += len(block) / block.rate_hz if len(block) > 1 or block.info.rate_hz else 0.0
        needed = [block[name] for name in NEEDED if name in block]
        self.missing += int((~np.isfinite(np.hstack(needed)).all(axis=1)).sum()) if needed else 0
        if "temperature" in block:
            values = block.for_joints(self.fleet.robot.joint_names)["temperature"]
            good = np.isfinite(values)
            total, count = np.where(good, values, 0.0).sum(axis=0), good.sum(axis=0)
            self.warmth = total if self.warmth is None else self.warmth + total
            self.felt = count if self.felt is None else self.felt + count


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
    """(columns, 10): what a payload in the tool frame adds to the base parameters, per unit of its parameters."""
    base, robot = model.model.base, model.robot
    index = {name: i for i, name in enumerate(base.names)}
    result = np.zeros((len(model.names), 10))
    for name, row in zip(inertial_names(robot.n_joints), change_of_frame(robot.tool), strict=True):
        if name in index:
            result[: len(base.kept)] += np.outer(base.matrix[:, index[name]], row)
    return result
