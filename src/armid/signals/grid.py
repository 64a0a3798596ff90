"""Timestamps snapped to the recorder's own grid, so that rows that were lost are seen as such.

A recorder samples at a steady rate; what it loses on the way leaves a step of two, three or a hundred sample times.
Counted in whole sample times, every row keeps its place, and a lost one is a row without values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.logs.log import Log
from armid.signals.resample import resample_at

STEADY = 0.02  # of a sample time, by which a step between neighbours may be off; more is jitter
OFF_GRID = 0.1  # the same across lost rows: a recorder that went on between two instants of its grid is another clock
MOST = 4  # a grid of more than so many times the rows would be invented for the most part


@dataclass(frozen=True, eq=False)
class Grid:
    """The place of every row of a log on a uniform grid.

    Attributes:
        step: sample time [s].
        index: place of each row, from 0, increasing, (rows,).
    """

    step: float
    index: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Places from the first row to the last."""
        return int(self.index[-1]) + 1 if len(self.index) else 0

    @property
    def missing(self) -> int:
        """How many places have no row."""
        return self.count - len(self.index)

    def spread(self, values: Array) -> Array:
        """Values (rows, columns) at their places, NaN where there is no row, (count, columns)."""
        result = np.full((self.count, values.shape[1]), np.nan)
        result[self.index] = values
        return result


def grid_of(time: Array) -> Grid | None:
    """The grid of timestamps that increase; None where they jitter by more than 2 % of a step, or are mostly gaps."""
    steps = np.diff(time)
    if len(steps) < 2 or not (steps > 0.0).all():
        return None
    median = float(np.median(steps))
    usual = steps[np.abs(steps - median) <= STEADY * median]
    if 2 * len(usual) < len(steps):
        return None
    step = float(usual.mean())  # the median of rounded stamps may be off by their last digit
    counts = np.round(steps / step)
    off = np.abs(steps - counts * step)
    if (counts < 1.0).any() or (off > np.where(counts > 1.0, OFF_GRID, STEADY) * step).any():
        return None
    index = np.concatenate([[0], np.cumsum(counts.astype(np.int64))])
    if index[-1] + 1 > MOST * len(time):
        return None
    return Grid(float(time[-1] - time[0]) / float(index[-1]), index)


def on_grid(log: Log) -> Log | None:
    """The log with a row of NaN for each lost one; None where its timestamps have no grid. Time must increase."""
    grid = grid_of(log.time)
    if grid is None or not grid.missing:
        return None if grid is None else log
    time = np.interp(np.arange(grid.count), grid.index, log.time)
    return Log(time, {name: grid.spread(values) for name, values in log.channels.items()}, log.info)


def bridged(log: Log) -> Log:
    """The log with holes of up to two rows filled: cubics for motion, lines for the rest; measured values stay."""
    filled = resample_at(log, log.time, rate_hz=log.info.rate_hz)
    return log.with_channels(
        {name: np.where(np.isfinite(values), values, filled[name]) for name, values in log.channels.items()}
    )


def blocks_on_grid(blocks: Iterable[Log], step: float, samples: int) -> Iterator[Log]:
    """Blocks of a stream with a row of NaN for each lost one, in constant memory.

    Rows whose time does not increase are dropped. A gap of many periods becomes one of less than two, which keeps the
    phase.

    Args:
        blocks: consecutive parts of one log.
        step: sample time [s].
        samples: per period.
    """
    latest = -np.inf
    for block in blocks:
        before = np.maximum.accumulate(np.concatenate([[latest], block.time]))[:-1]
        block = block.rows(block.time > before)
        if not len(block):
            continue
        steps = np.diff(np.concatenate([[latest], block.time])) / step
        counts = np.maximum(np.round(np.where(np.isfinite(steps), steps, 1.0)), 1.0).astype(np.int64)
        counts = np.where(counts > 2 * samples, counts % samples + samples, counts)
        latest = float(block.time[-1])
        if (counts == 1).all():
            yield block
            continue
        grid = Grid(step, np.cumsum(counts) - 1)
        time = np.interp(np.arange(grid.count), grid.index, block.time)
        yield Log(time, {name: grid.spread(values) for name, values in block.channels.items()}, block.info)
