"""Finding the period of a repeated motion, and the part of a log that holds whole periods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.logs.log import Log, LogError
from armid.robot.inertia import Array
from armid.signals.repetition import mismatch, refined_lag, repeated_span, search_lag
from armid.signals.resample import interpolate, is_uniform

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
    """Result of a search: a period, or None; `reason` says in words why."""

    period: Period | None
    reason: str


def find_period(log: Log, *, hint_s: float | None = None) -> PeriodSearch:
    """Look for a period common to all moving joints.

    Works on the position command where there is one, else on the measured positions. For each lag the difference
    x(t + lag) - x(t) is compared with the motion, in the stretch of the log where it is smallest; so an approach before
    and a return after the repeated part do not matter. The smallest lag that is as good as any is refined to a fraction
    of a sample over the longest lag there is.

    Args:
        log: at least two periods of it.
        hint_s: expected period [s], by default that of ``log.info.period_s``; only lags within 2 % are looked at.
    """
    hint = log.info.period_s if hint_s is None else hint_s
    time, values = _signals(log)
    if len(time) < 32:
        return PeriodSearch(None, f"the log has {len(time)} samples, too few to look for a period")
    step = float(time[-1] - time[0]) / (len(time) - 1)
    spread = values.std(axis=0)
    moving = spread > 1e-3 * spread.max()
    if not spread.max() > 1e-9:
        return PeriodSearch(None, "no joint moves")
    scaled = (values[:, moving] - values[:, moving].mean(axis=0)) / spread[moving]
    found = search_lag(scaled, None if hint is None else hint / step)
    if isinstance(found, str):
        return PeriodSearch(None, found)
    lag, error = found, 1.0
    for _ in range(2):  # a better lag shows the span more sharply
        start, stop = repeated_span(scaled, lag)
        lag, error = refined_lag(scaled[start:stop], lag)
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


def _signals(log: Log) -> tuple[Array, Array]:
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
    finite = np.isfinite(values)
    values = values[:, finite.mean(axis=0) > 0.5]
    if is_uniform(log.time) and np.isfinite(values).all():
        return log.time, values
    count = round(log.duration / float(np.median(steps))) + 1
    times = np.linspace(log.time[0], log.time[-1], count)
    found = interpolate(log.time, values, times, "cubic")
    rows = np.asarray(np.isfinite(found).all(axis=1))
    first, last = (int(np.argmax(rows)), len(rows) - int(np.argmax(rows[::-1]))) if rows.any() else (0, 0)
    return times[first:last], np.nan_to_num(found[first:last])
