"""The period of a repeated motion: found, and the log cut to whole periods of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from armid.arrays import Array, Mask
from armid.logs.log import Log, LogError
from armid.notes import Note, note
from armid.signals.repair import over_holes
from armid.signals.repetition import filled_from_other_periods, mismatch, refined_lag, repeated_span, search_lag
from armid.signals.resample import bridged, grid_of, interpolate, interpolate_band_limited, on_grid, resample_at

SPARSE = 100_000  # samples from which on a log is long
LONG_HOLE = 3  # samples up to which a hole is bridged by a line as if it were motion
ROUGH = 0.02  # the same once noise is smoothed away, RMS: a motion that repeats worse is repeated by hand
MOVED = ("effort", "current")  # noisy channels: interpolated so that white noise keeps its variance


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
        reason: what was found, or why nothing was.
        roughly: whether the motion repeats at least roughly, or too little was recorded to tell.
    """

    period: Period | None
    reason: Note
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
    found = other.reason if other.period is not None else None
    return replace(other, reason=note("signals.other_period", stated_s=stated, reason=search.reason, found=found))


def _search(signals: _Signals, hint_s: float | None) -> PeriodSearch:
    time, values, known = signals.time, signals.values, signals.known
    if len(time) < 32:
        return PeriodSearch(None, note("signals.few_samples", samples=len(time)))
    step = float(time[-1] - time[0]) / (len(time) - 1)
    spread = values.std(axis=0)
    moving = spread > 1e-3 * spread.max()
    if not spread.max() > 1e-9:
        return PeriodSearch(None, note("signals.no_motion"), False)
    scaled = (values[:, moving] - values[:, moving].mean(axis=0)) / spread[moving]
    found = search_lag(scaled, None if hint_s is None else hint_s / step)
    if isinstance(found, Note):
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
        return PeriodSearch(None, note("signals.not_in_full", period_s=period.seconds))
    rough = mismatch(scaled[start:stop], lag, smooth=True)
    if rough > ROUGH:
        return PeriodSearch(None, note("signals.roughly", period_s=period.seconds, mismatch=rough))
    said = note("signals.repeats", period_s=period.seconds, periods=period.count, mismatch=period.mismatch)
    return PeriodSearch(period, said)


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
    long = ndimage.binary_opening(missing, np.ones(LONG_HOLE + 1, dtype=bool))
    return _Signals(time, over_holes(values, ~np.isfinite(values)), ~long if long.any() else None)


def whole_periods(log: Log, period: Period | float) -> tuple[Log, int]:
    """The log cut to whole periods of a whole number of samples, and that number.

    Samples are taken as they are where the recorder was steady and the period is a whole number of samples; rows that
    it lost are NaN. Otherwise they are interpolated to the nearest whole number per period (erratum SW-3: 0.033 Hz at
    12 ms are 2525.25 samples).

    Args:
        log: time must increase.
        period: as found, or its length [s]; then as many periods as fit, the last of them at the end of the log.
    """
    placed = on_grid(log)
    uniform = placed is not None
    log = log if placed is None else placed
    found = period if isinstance(period, Period) else given_period(log, float(period))
    count, samples = found.count, round(found.samples)
    if count < 1 or samples < 2:
        raise LogError(
            log.info.source, "time", f"covers {log.duration:.4g} s, less than one period of {found.seconds:.4g} s"
        )
    step = 1.0 / found.rate_hz
    if uniform and found.is_whole:
        first = round((found.first_s - log.time[0]) / step)
        first = min(max(first, 0), len(log) - count * samples)
        if first >= 0:
            return log.rows(slice(first, first + count * samples)), samples
    start = max(found.first_s, float(log.time[0]))
    stop = start + count * found.seconds
    latest = float(log.time[-1]) + step * (1.0 + 1e-9)
    if stop > latest:
        start = max(start - (stop - latest), float(log.time[0]))
    times = start + np.arange(count * samples) * (found.seconds / samples)
    times = np.minimum(times, log.time[-1])
    moved = resample_at(log, times, rate_hz=samples / found.seconds)
    if uniform:
        positions = (times - log.time[0]) / (log.time[-1] - log.time[0]) * (len(log) - 1)
        noisy = {name: interpolate_band_limited(log[name], positions) for name in MOVED if name in log}
        moved = moved.with_channels(noisy)
    return moved, samples


def intact_periods(log: Log, samples: int) -> Mask:
    """Which periods of a log of whole periods have every position and effort, (periods,)."""
    names = [name for name in ("position", "effort") if name in log]
    rows = np.logical_and.reduce([np.isfinite(log[name]).all(axis=1) for name in names])
    return np.asarray(rows.reshape(-1, samples).all(axis=1))


def steady_periods(log: Log, period: Period | float) -> tuple[Log, int, tuple[Note, ...]]:
    """As `whole_periods`, and what to say about periods with holes.

    They are left as they are, to be left out of an average, as long as at least half of the periods are intact.
    Otherwise, as with a recorder that loses a row now and then, holes of up to two rows are bridged by cubics (torque:
    lines) first, and only periods with longer ones keep them.
    """
    whole, samples = whole_periods(log, period)
    intact = intact_periods(whole, samples)
    notes: tuple[Note, ...] = ()
    if 2 * intact.sum() < len(intact) and (placed := on_grid(log)) is not None:
        whole, samples = whole_periods(bridged(placed), period)
        mended = intact_periods(whole, samples)
        if mended.sum() > intact.sum():
            number = int((mended & ~intact).sum())
            notes = (note("signals.bridged", count=number, periods=len(intact)),)
            intact = mended
    if not intact.all():
        numbers = (np.flatnonzero(~intact) + 1).tolist()
        notes += (note("signals.periods_left_out", numbers=numbers, periods=len(intact)),)
    return whole, samples, notes


def given_period(log: Log, seconds: float) -> Period:
    """As many periods of a given length [s] as fit into a log, the last of them at its end."""
    if not (np.isfinite(seconds) and seconds > 0.0):
        raise LogError(log.info.source, "period", f"is {seconds!r} s; give a positive number")
    if len(log) < 2:
        raise LogError(log.info.source, "time", "has fewer than two samples")
    grid = grid_of(log.time)
    step = log.duration / (len(log) - 1) if grid is None else grid.step
    return Period(seconds, 0.0, 1.0 / step, float(log.time[0]), float(log.time[-1]) + step, float("nan"))


def leading_transient(periods: Array, *, excess: float = 1.5) -> int:
    """How many leading periods differ from the rest: the transient has not died out there.

    A period counts as different if its mean square difference from the average of all later ones is more than `excess`
    times what the spread between the later ones explains, for any joint. Needs two later periods to know the spread.

    Args:
        periods: (periods, samples per period, joints).
        excess: ratio of variances.
    """
    for lead in range(len(periods) - 2):
        rest = periods[lead + 1 :]
        mean = rest.mean(axis=0)
        noise = ((rest - mean) ** 2).sum(axis=0).mean(axis=0) / (len(rest) - 1)
        floor = (1e-9 * (1e-12 + np.abs(mean).max(axis=0))) ** 2
        difference = ((periods[lead] - mean) ** 2).mean(axis=0)
        if not (difference > excess * noise * (1.0 + 1.0 / len(rest)) + floor).any():
            return lead
    return max(len(periods) - 2, 0)
