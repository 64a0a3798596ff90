"""Finding the period of a repeated motion, and the part of a log that holds whole periods."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from armid.arrays import Array
from armid.logs.log import Log, LogError
from armid.signals.grid import grid_of
from armid.signals.repetition import (
    Mask,
    filled_from_other_periods,
    mismatch,
    refined_lag,
    repeated_span,
    search_lag,
)
from armid.signals.resample import interpolate

SPARSE = 100_000  # samples from which on a log is long
LONG_HOLE = 3  # samples up to which a hole is bridged by a line as if it were motion
ROUGH = 0.02  # the same once noise is smoothed away, RMS: a motion that repeats worse is repeated by hand


@dataclass(frozen=True)
class Period:
    """A motion that repeats.

    Attributes:
        seconds: length of the period [s].
        error_s: its standard error [s].
        rate_hz: sample rate of the log.
        start_s, stop_s: time span that repeats [s]; the last sample is at `stop_s` less one step.
        mismatch: RMS difference between periods over the standard deviation of the motion.
        at_start, at_end: the span reaches the first, the last sample of the log.
    """

    seconds: float
    error_s: float
    rate_hz: float
    start_s: float
    stop_s: float
    mismatch: float
    at_start: bool = True
    at_end: bool = True

    @property
    def samples(self) -> float:
        """Samples per period, not always a whole number."""
        return self.seconds * self.rate_hz

    @property
    def count(self) -> int:
        """Whole periods in the span; it may end two samples early, so sharply are its ends not known."""
        return int(np.floor(((self.stop_s - self.start_s) * self.rate_hz + self._slack) / self.samples))

    @property
    def _slack(self) -> float:
        return 0.5 if self.at_start and self.at_end else 2.5

    @property
    def first_s(self) -> float:
        """Time at which the whole periods start [s].

        At the end of the span where that is the end of the log, at its start where only that is one, else in its
        middle: where an approach goes over into the motion smoothly, some of it looks like motion.
        """
        spare = self.stop_s - self.start_s - self.count * self.seconds
        if self.at_end:
            return self.start_s + spare
        return self.start_s if self.at_start else self.start_s + 0.5 * spare

    @property
    def is_whole(self) -> bool:
        """Whether a period is a whole number of samples.

        It is, where taking it so shifts the last period by less than a tenth of a sample, or by no more than three
        standard errors of the estimate.
        """
        slip = abs(self.samples - round(self.samples))
        return slip * max(self.count, 1) < 0.1 or slip < 3.0 * self.error_s * self.rate_hz


@dataclass(frozen=True)
class PeriodSearch:
    """Result of a search.

    Attributes:
        period: None if none was found.
        reason: why, in words.
        roughly: whether the motion repeats at least roughly, or too little was recorded to tell.
    """

    period: Period | None
    reason: str
    roughly: bool = True


@dataclass(frozen=True, eq=False)
class _Signals:
    """Signals to search, uniformly sampled; `known` is False in holes of more than a few samples, None without any."""

    time: Array
    values: Array
    known: Mask | None


def find_period(log: Log, *, hint_s: float | None = None) -> PeriodSearch:
    """Look for a period common to all moving joints.

    Works on the position command where there is one, else on the measured positions. For each lag the difference
    x(t + lag) - x(t) is compared with the motion, in the stretch of the log where it is smallest; so an approach before
    and a return after the repeated part do not matter. The smallest lag that is as good as any is refined to a fraction
    of a sample over the longest lag there is. Rows that were lost do not end the repeated part.

    Args:
        log: at least two periods of it.
        hint_s: expected period [s]; only lags within 2 % are looked at. Without it that of ``log.info.period_s`` is
            tried first, and any other if the motion does not repeat with that.
    """
    stated = log.info.period_s
    signals = _signals(log)
    if hint_s is not None or stated is None:
        return _search(signals, hint_s)
    search = _search(signals, stated)
    if search.period is not None:
        return search
    other = _search(signals, None)
    words = f"the log states a period of {stated:g} s, but with that {search.reason}"
    return replace(other, reason=f"{words}; {other.reason}" if other.period is not None else words)


def _search(signals: _Signals, hint_s: float | None) -> PeriodSearch:
    time, values, known = signals.time, signals.values, signals.known
    if len(time) < 32:
        return PeriodSearch(None, f"the log has {len(time)} samples, too few to look for a period")
    step = float(time[-1] - time[0]) / (len(time) - 1)
    spread = values.std(axis=0)
    moving = spread > 1e-3 * spread.max()
    if not spread.max() > 1e-9:
        return PeriodSearch(None, "no joint moves", False)
    scaled = (values[:, moving] - values[:, moving].mean(axis=0)) / spread[moving]
    found = search_lag(scaled, None if hint_s is None else hint_s / step)
    if isinstance(found, str):
        return PeriodSearch(None, found, False)
    lag, error = found, 1.0
    # A better lag shows the span more sharply; for the first look at a long log every n-th sample will do.
    for stride in (max(1, len(scaled) // SPARSE), 1):
        if known is not None:
            scaled = filled_from_other_periods(scaled, known, lag)
        start, stop = repeated_span(scaled[::stride], lag / stride, None if known is None else known[::stride])
        lag, error = refined_lag(scaled[start * stride : stop * stride], lag)
    period = Period(
        seconds=lag * step,
        error_s=error * step,
        rate_hz=1.0 / step,
        start_s=float(time[0]) + start * step,
        stop_s=float(time[0]) + stop * step,
        mismatch=mismatch(scaled[start:stop], lag),
        at_start=start == 0,
        at_end=stop == len(time),
    )
    if period.count < 2:
        return PeriodSearch(None, f"a motion of {period.seconds:.4g} s does not repeat in full")
    rough = mismatch(scaled[start:stop], lag, smooth=True)
    if rough > ROUGH:
        return PeriodSearch(None, f"a motion of {period.seconds:.4g} s repeats only roughly, to {rough:.0%}")
    words = f"a period of {period.seconds:.6g} s repeats {period.count} times, to {period.mismatch:.1e} of the motion"
    return PeriodSearch(period, words)


def _signals(log: Log) -> _Signals:
    """Uniform times and the signals to search."""
    name = "command" if "command" in log and log.info.mode == "position" else "position"
    if name not in log:
        raise LogError(log.info.source, "position", "is not in the log; a period is looked for in positions")
    values = log[name]
    if name == "command" and not np.isfinite(values).all() and "position" in log:
        values = log["position"]
    steps = np.diff(log.time)
    if len(steps) == 0 or (steps <= 0.0).any():
        raise LogError(log.info.source, "time", "does not increase; repair the log first (step Repair)")
    values = values[:, np.isfinite(values).mean(axis=0) > 0.5]
    grid = grid_of(log.time)
    if grid is not None and not grid.missing and np.isfinite(values).all():
        return _Signals(log.time, values, None)
    if grid is not None:
        found = grid.spread(values)
    else:
        median = float(np.median(steps))
        count = round(log.duration / median) + 1
        found = interpolate(
            log.time, values, np.linspace(log.time[0], log.time[-1], count), "cubic", LONG_HOLE * median
        )
    times = np.linspace(log.time[0], log.time[-1], len(found))
    rows = np.flatnonzero(np.isfinite(found).all(axis=1))
    inner = slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0, 0)
    return _without_holes(times[inner], found[inner])


def _without_holes(time: Array, values: Array) -> _Signals:
    """Holes bridged by lines; long ones, where that is no motion, are remembered."""
    missing = np.asarray(~np.isfinite(values).all(axis=1))
    if not missing.any():
        return _Signals(time, values, None)
    index = np.arange(len(values))
    columns = [np.interp(index, index[np.isfinite(x)], x[np.isfinite(x)]) for x in values.T]
    long = ndimage.binary_opening(missing, np.ones(LONG_HOLE + 1, dtype=bool))
    return _Signals(time, np.column_stack(columns), ~long if long.any() else None)
