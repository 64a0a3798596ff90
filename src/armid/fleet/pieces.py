"""Long logs in overlapping pieces, filtered alike: the rows of all pieces are those of the log as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from armid.fleet.description import Fleet
from armid.logs.log import Log, concatenate
from armid.signals.dataset import Dataset
from armid.signals.filtering import ROWS_PER_CUTOFF, LowPass
from armid.signals.filters import low_pass_kernel
from armid.signals.pipeline import Pipeline, process
from armid.signals.problems import SignalError

CHUNK = 16_384  # samples reduced at a time
JUMP_S = 1.0  # a step of time longer than this, or backwards, begins a new stretch


@dataclass
class Stretch:
    """Rows that wait for those that follow them, so that they can be given out in overlapping pieces of one length.

    Attributes:
        fleet: with the signal processing.
        kept: rows that wait.
        plan: lengths of the pieces.
    """

    fleet: Fleet
    kept: Log | None = None
    plan: _Pieces | None = None

    def grow(self, block: Log) -> Iterator[Log]:
        """Pieces that are complete with the rows of a block; where time jumps, a new stretch begins."""
        for log, fresh in _without_jumps(block, self.kept):
            if fresh:
                yield from self.end()
            self.kept = log if self.kept is None else concatenate([self.kept, log])
            self.plan = self.plan or _Pieces.of(self.kept, self.fleet)
            while len(self.kept) >= self.plan.length:
                yield self.kept.rows(slice(0, self.plan.length))
                self.kept = self.kept.rows(slice(self.plan.core, None))

    def end(self) -> Iterator[Log]:
        """The last piece, if there are rows for one; nothing is kept."""
        if self.kept is not None and self.plan is not None:
            yield from self.plan.rest(self.kept)
        self.kept = None

    def goes_on_in(self, block: Log) -> bool:
        """Whether a block is the next of the same stretch: same joints, channels and meaning, and time goes on."""
        if self.kept is None or block.joints != self.kept.joints or set(block.channels) != set(self.kept.channels):
            return False
        mine, others = self.kept.info, block.info
        if (mine.effort, mine.side, mine.rate_hz) != (others.effort, others.side, others.rate_hz):
            return False
        return bool(0.0 < block.time[0] - self.kept.time[-1] <= JUMP_S)


@dataclass(frozen=True)
class _Pieces:
    """Lengths in samples: of a piece, of its part that is new, and of what the filters need at each end."""

    core: int
    margin: int
    half: int
    step: int

    @property
    def length(self) -> int:
        return self.core - self.step + 2 * (self.half + self.margin) + 1

    @classmethod
    def of(cls, log: Log, fleet: Fleet) -> _Pieces:
        strategy = fleet.pipeline.strategy
        assert isinstance(strategy, LowPass)
        low_pass = settled(strategy, log.rate_hz)
        kernel = low_pass_kernel(log.rate_hz, float(low_pass.cutoff_hz), low_pass.order, tail=low_pass.tail)
        step = int(low_pass.decimate)
        wide = low_pass_kernel(log.rate_hz, float(low_pass.motion_cutoff_hz or 0.0), low_pass.order, tail=1e-12)
        margin = -(-(len(wide) // 2 + 8) // step) * step
        core = max(1, CHUNK // step) * step
        return cls(core, margin, len(kernel) // 2, step)

    def rest(self, log: Log) -> Iterator[Log]:
        """The last piece of a stretch, shortened so that its rows go on where those before it ended."""
        rows = (len(log) - 1 - 2 * (self.half + self.margin)) // self.step + 1
        if rows >= 1:
            yield log.rows(slice(0, replace(self, core=rows * self.step).length))


def settled(strategy: LowPass, rate_hz: float) -> LowPass:
    """The low-pass with everything decided that it would decide from a log."""
    cutoff = float(strategy.cutoff_hz)
    if strategy.decimate != "auto" and not isinstance(strategy.decimate, int):
        raise SignalError("LowPass", f"decimate is {strategy.decimate!r}; use a whole number from 1")
    step = max(1, int(rate_hz / (ROWS_PER_CUTOFF * cutoff))) if strategy.decimate == "auto" else int(strategy.decimate)
    wide = min(2.0 * cutoff, 0.45 * rate_hz) if strategy.motion_cutoff_hz is None else strategy.motion_cutoff_hz
    return replace(strategy, decimate=step, motion_cutoff_hz=float(wide))


def dataset_of(log: Log, fleet: Fleet) -> Dataset:
    """A piece processed; rows that feel its ends are left to its neighbours."""
    pieces = _Pieces.of(log, fleet)
    strategy = fleet.pipeline.strategy
    assert isinstance(strategy, LowPass)
    steps = Pipeline((*fleet.pipeline.steps[:-1], settled(strategy, log.rate_hz)))
    data = process(log, steps, robot=fleet.robot)
    inner = (data.rows >= pieces.half + pieces.margin) & (data.rows < len(data.q) - pieces.half - pieces.margin)
    use = None if data.use is None else data.use[inner]
    return replace(data, rows=data.rows[inner], torque=data.torque[inner], use=use)


def _without_jumps(block: Log, before: Log | None) -> Iterator[tuple[Log, bool]]:
    """Parts of a block in which time goes on, and whether each begins a new stretch."""
    last = block.time[0] if before is None or not len(before) else before.time[-1]
    steps = np.diff(np.concatenate([[last], block.time]))
    cuts = np.flatnonzero((steps > JUMP_S) | (steps < -JUMP_S))
    edges = [0, *(int(cut) for cut in cuts if cut > 0), len(block)]
    for index, (begin, end) in enumerate(pairwise(edges)):
        yield block.rows(slice(begin, end)), index > 0 or 0 in cuts
