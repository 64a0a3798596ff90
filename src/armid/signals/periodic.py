"""The strategy for motion that repeats: averaging over periods, with exact differentiation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from armid.arrays import Array, Mask
from armid.logs.log import Log, concatenate
from armid.notes import note
from armid.signals.averaging import (
    Averaged,
    PeriodAccumulator,
    average_periods,
    differentiate,
    given_harmonics,
    select_harmonics,
)
from armid.signals.dataset import Dataset
from armid.signals.period import (
    Period,
    find_period,
    given_period,
    intact_periods,
    leading_transient,
    steady_periods,
    whole_periods,
)
from armid.signals.problems import SignalError
from armid.signals.repair import with_increasing_time
from armid.signals.resample import blocks_on_grid, on_grid
from armid.signals.steps import Notes, Strategy, required_effort, required_position

SLIP = 1e-3  # of a period, by which a given one may shift the last period against the first
DIFFERENT = 0.05  # RMS difference from the average, over the motion, that makes a streamed period another motion
FIRST_SEARCHED, SEARCHED = (
    60_000,
    400_000,
)  # samples of a stream that are looked at to find its period, at least, at most


@dataclass(frozen=True, kw_only=True)
class PeriodicAverage(Strategy):
    """Average over periods, then differentiate exactly on the harmonics that hold motion (Swevers et al.).

    Attributes:
        period_s: length of the period [s]; None to find it.
        harmonics: ``auto`` for those of each joint that stand above the noise, a number N for 1 ... N, or a list.
        discard_periods: leading periods to leave out; ``auto`` for those in which the transient has not died out, as
            long as three remain.
        periods: how many to average, the last ones; None for all there are.
        false_alarm: with ``auto``, chance per joint of keeping any harmonic that is noise.
        highest_hz: with ``auto``, no harmonic above; None for a hundred times the bandwidth of the velocity.
    """

    period_s: float | None = None
    harmonics: str | int | tuple[int, ...] = "auto"
    discard_periods: int | str = "auto"
    periods: int | None = None
    false_alarm: float = 0.01
    highest_hz: float | None = None

    def dataset(self, log: Log) -> Dataset:
        """Find whole periods, average, differentiate."""
        required_position(log)
        required_effort(log)
        log, _ = with_increasing_time(log)
        period, notes = self._period(log)
        whole, samples, said = steady_periods(log, period)
        notes += said
        if not period.is_whole:
            notes += (note("signals.interpolated", samples=period.samples, per_period=samples),)
        intact = intact_periods(whole, samples)
        count = len(intact)
        position, effort = (whole[name].reshape(count, samples, -1) for name in ("position", "effort"))
        lead, words = self._lead(position, intact)
        used = intact & (np.arange(count) >= lead)
        position, effort = position[used], effort[used]
        if self.periods is not None:
            position, effort = position[-self.periods :], effort[-self.periods :]
        self._check_count(len(position), count, int((~intact).sum()), log)
        flat = (array.reshape(-1, len(log.joints)) for array in (position, effort))
        averages = [average_periods(array, samples) for array in flat]
        return self._assemble(log, averages[0], averages[1], period.seconds, notes + words)

    def dataset_from_blocks(self, blocks: Iterable[Log]) -> Dataset:
        """The same for a log that comes in blocks, in constant memory.

        The period must be a whole number of samples and the sampling uniform; it is found in the first blocks where it
        is not given. `discard_periods` ``auto`` leaves out as many as differ among those first blocks.
        """
        stream = iter(blocks)
        head = _joined(stream, FIRST_SEARCHED)
        if head is None:
            raise SignalError("PeriodicAverage", "there is no block to average")
        head, _ = with_increasing_time(head)
        required_position(head)
        required_effort(head)
        while len(head) < SEARCHED:
            found = find_period(head, hint_s=self.period_s).period
            if found is not None and found.count >= 3:
                break
            more = _joined(stream, len(head))
            if more is None:
                break
            head, _ = with_increasing_time(concatenate([head, more]))
        period, notes = self._period(head)
        samples = round(period.samples)
        if not period.is_whole:
            raise SignalError(
                "PeriodicAverage",
                f"a period is {period.samples:.3f} samples; a stream is averaged only over whole samples, so read the "
                "log as a whole, or use the step FourierFit",
            )
        placed = on_grid(head)
        whole, _ = whole_periods(head, period)
        folded = whole["position"].reshape(-1, samples, len(head.joints))
        lead, words = self._lead(folded, intact_periods(whole, samples))
        # a motion that starts with the log starts with a whole period
        times = head.time if placed is None else placed.time
        start = 0 if period.at_start else int(np.searchsorted(times, whole.time[0] - 0.25 / period.rate_hz))
        blocks = chain([head], stream)
        if placed is not None:
            blocks = blocks_on_grid(blocks, 1.0 / period.rate_hz, samples)
        total = _accumulate(blocks, samples, start + lead * samples, len(head.joints))
        self._check_count(total.periods, total.periods + total.refused, total.refused, head)
        if total.refused:
            words += (note("signals.periods_refused", count=total.refused),)
        both, n = total.result(), len(head.joints)
        position, effort = both.columns(slice(0, n)), both.columns(slice(n, 2 * n))
        return self._assemble(head, position, effort, period.seconds, notes + words)

    def _period(self, log: Log) -> tuple[Period, Notes]:
        search = find_period(log, hint_s=self.period_s)
        found, given = search.period, self.period_s
        if given is None:
            if found is None:
                raise SignalError(
                    "PeriodicAverage", f"found no period ({search.reason}); give period_s, or use LowPass for this log"
                )
            return found, (note("signals.periodic", reason=search.reason),)
        if found is not None:
            slip = abs(found.seconds - given) * (found.count - 1)
            if slip > max(SLIP * found.seconds, 3.0 * found.error_s * found.count):
                raise self._wrong(f"repeats every {found.seconds:.6g} s", found)
            return replace(found, seconds=given, error_s=0.0), (note("signals.periodic", reason=search.reason),)
        other = find_period(log.with_channels({}, period_s=None)).period
        if other is not None or (not search.roughly and log.duration > 2.0 * given):
            raise self._wrong(f"does not repeat with it: {search.reason}", other)
        return given_period(log, given), (note("signals.given_period", period_s=given, reason=search.reason),)

    def _wrong(self, problem: str, found: Period | None) -> SignalError:
        """That the motion has another period than the given one."""
        way = (
            "no other period was found either: correct period_s, or use LowPass for this log"
            if found is None
            else f"leave period_s out, or give {found.seconds:.6g}, the period that is found in the log"
        )
        return SignalError("PeriodicAverage", f"period_s is {self.period_s:g}, but the motion {problem}; {way}")

    def _lead(self, position: Array, intact: Mask) -> tuple[int, Notes]:
        """Leading periods to leave out, those with holes among them included, and why."""
        if isinstance(self.discard_periods, (int, np.integer)):
            return int(self.discard_periods), ()
        if self.discard_periods != "auto":
            raise SignalError(
                "PeriodicAverage", f"discard_periods is {self.discard_periods!r}; use 'auto' or a number from 0"
            )
        found = leading_transient(position[intact])
        if found == 0:
            return 0, ()
        left_out = int(intact.sum()) - found >= 3
        said = (note("signals.transient_periods", periods=found, left_out=left_out),)
        return int(np.flatnonzero(intact)[found]) if left_out else 0, said

    def _check_count(self, left: int, there: int, damaged: int, log: Log) -> None:
        wanted = 2 if self.periods is None else self.periods
        if left < wanted or left < 1:
            way = "measure longer, or ask for fewer"
            if damaged:
                way = f"{damaged} have missing samples or values: use LowPass or FourierFit, or measure again"
            raise SignalError(
                "PeriodicAverage",
                f"{wanted} periods are asked for, {left} of the {there} in {log.info.source or 'the log'} can be used; "
                f"{way}",
            )

    def _assemble(self, log: Log, position: Averaged, effort: Averaged, period_s: float, notes: Notes) -> Dataset:
        selected = self._harmonics(position, period_s)
        motion = differentiate(position.mean, period_s, selected)
        kept = selected[1:].sum(axis=0)
        count, samples = position.periods, position.samples
        highest = [int(np.flatnonzero(column)[-1]) if column.any() else 0 for column in selected.T]
        said = note(
            "signals.averaged",
            periods=count,
            samples=samples,
            frequency_hz=1.0 / period_s,
            chosen=self.harmonics == "auto",
            harmonics=kept.tolist(),
            highest=highest,
        )
        noisy = count >= 2
        return self.made(
            log,
            motion,
            effort.mean,
            time=np.arange(samples, dtype=np.float64) * (period_s / samples),
            torque_noise=np.sqrt(effort.variance_of_mean) if noisy else None,
            noise_covariance=effort.covariance_of_mean if noisy else None,
            position_noise=np.sqrt(position.variance_of_mean * (1 + 2 * kept) / samples) if noisy else None,
            periods=count,
            notes=(*notes, said),
        )

    def _harmonics(self, position: Averaged, period_s: float) -> Array:
        if not isinstance(self.harmonics, str):
            return given_harmonics(self.harmonics, position.samples, position.mean.shape[1])
        if self.harmonics != "auto":
            raise SignalError("PeriodicAverage", f"harmonics is {self.harmonics!r}; use 'auto', a number or a list")
        highest = None
        if self.highest_hz is not None:
            highest = min(int(self.highest_hz * period_s + 1e-9), (position.samples - 1) // 2)
        return select_harmonics(position, false_alarm=self.false_alarm, highest=highest)


def _accumulate(blocks: Iterable[Log], samples: int, skip: int, joints: int) -> PeriodAccumulator:
    """Position and effort of a stream, side by side, averaged; periods with holes or another motion are refused."""

    def accept(period: Array, mean: Array) -> bool:
        if not np.isfinite(period).all():
            return False
        spread = mean[:, :joints].std(axis=0).max()
        return bool(((period - mean)[:, :joints] ** 2).mean(axis=0).max() ** 0.5 <= DIFFERENT * spread)

    total = PeriodAccumulator(samples, 2 * joints, accept=accept)
    for block in blocks:
        dropped = min(skip, len(block))
        skip -= dropped
        total.add(np.concatenate([block["position"][dropped:], block["effort"][dropped:]], axis=1))
    return total


def _joined(stream: Iterator[Log], least: int) -> Log | None:
    """The next blocks of a stream, joined until there are `least` samples; None at its end."""
    parts: list[Log] = []
    while sum(map(len, parts)) < least and (block := next(stream, None)) is not None:
        parts.append(block)
    return concatenate(parts) if parts else None
