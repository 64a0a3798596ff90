"""Cutting a log to whole periods, and whether the transient has died out."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.logs.log import Log, LogError
from armid.signals.grid import bridged, grid_of, on_grid
from armid.signals.period import Period
from armid.signals.repetition import Mask
from armid.signals.resample import interpolate_band_limited, resample_at
from armid.signals.steps import Notes

SHOWN = 10  # numbers of periods that a note lists
MOVED = ("effort", "current")  # noisy channels: interpolated so that white noise keeps its variance


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


def steady_periods(log: Log, period: Period | float) -> tuple[Log, int, Notes]:
    """As `whole_periods`, and what to say about periods with holes.

    They are left as they are, to be left out of an average, as long as at least half of the periods are intact.
    Otherwise, as with a recorder that loses a row now and then, holes of up to two rows are bridged by cubics (torque:
    lines) first, and only periods with longer ones keep them.
    """
    whole, samples = whole_periods(log, period)
    intact = intact_periods(whole, samples)
    notes: Notes = ()
    if 2 * intact.sum() < len(intact) and (placed := on_grid(log)) is not None:
        whole, samples = whole_periods(bridged(placed), period)
        mended = intact_periods(whole, samples)
        if mended.sum() > intact.sum():
            number = int((mended & ~intact).sum())
            notes = (f"Bridged holes of one or two samples in {number} of {len(intact)} periods.",)
            intact = mended
    if not intact.all():
        notes += (_left_out((np.flatnonzero(~intact) + 1).tolist(), len(intact)),)
    return whole, samples, notes


def _left_out(numbers: list[int], count: int) -> str:
    """Which periods are left out of an average, in words."""
    if len(numbers) == 1:
        return f"Period {numbers[0]} of {count} has missing samples or values and is left out."
    shown = ", ".join(str(number) for number in numbers[:SHOWN]) + (", …" if len(numbers) > SHOWN else "")
    return f"{len(numbers)} of {count} periods have missing samples or values and are left out (number {shown})."


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
