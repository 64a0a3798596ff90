"""Mending single faults of a log: time stamps, missing values, spikes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from armid.arrays import Array, Indices, Mask
from armid.logs.log import RATE_TOLERANCE, Log
from armid.logs.turns import NEAR_TURN, TURN, unwound
from armid.robot.robot import Robot
from armid.signals.averaging import resolution
from armid.signals.problems import SignalError

SMALL = 1e-6  # of a channel's range: spikes below are the arithmetic of whoever wrote it
ALIKE = 0.5  # of a spike's height, by which other periods may differ where it recurs
COMPARED = 16  # periods before and after a spike that are looked at
MEASURED = ("position", "velocity", "acceleration", "effort", "current")  # channels that noise or motion changes
STILL = 5  # rows: a longer stretch without change is rest, unless the position is elsewhere afterwards
SAMPLES = 20_000  # of these the step size of a signal is judged
JUMP = 0.02  # of a position, below which nothing is called a jump [rad or m]
FAST = 10.0  # times the usual bend of the motion in a row that a jump is
LEAST_MOVED = 50  # rows in which a joint moves, from which on its usual steps are known
MOVES = 5e-3  # standard deviation of the position of a joint that moves [rad or m]
MANY = 20  # jumps of a joint that are none: noise, or values that were lost
BACK_S = 1.0  # a position that returns within this time did not jump for good [s]
SCATTER = 0.2  # of the distance between quartiles of the steps, by which a rate may differ besides
MAD = 1.4826  # median absolute deviation to standard deviation, for normal noise


def find_gaps(time: Array, factor: float) -> tuple[Indices, Array]:
    """Steps longer than `factor` times the median step: the sample before each, and its length [s]."""
    steps = np.diff(time)
    rows = np.flatnonzero(steps > factor * np.median(steps)) if len(steps) else np.zeros(0, dtype=np.int64)
    return rows, steps[rows]


def increasing_rows(time: Array) -> Mask:
    """Samples to keep so that time increases: no repeated stamp, none that jumps ahead alone, none that goes back."""
    keep = np.isfinite(time)
    index = np.flatnonzero(keep)
    stamps = time[index]
    if len(stamps) > 2:
        # A stamp later than its successor, while its neighbours are in order, is itself the wrong one.
        ahead = np.zeros(len(stamps), dtype=bool)
        ahead[1:-1] = (stamps[1:-1] > stamps[2:]) & (stamps[2:] > stamps[:-2])
        ahead[0] = stamps[0] > stamps[1] and stamps[0] > stamps[2]
        keep[index[ahead]] = False
        index, stamps = index[~ahead], stamps[~ahead]
    if len(stamps) > 1:
        latest = np.maximum.accumulate(stamps)
        keep[index[1:][stamps[1:] <= latest[:-1]]] = False
    return keep


def with_increasing_time(log: Log) -> tuple[Log, int]:
    """The log without samples whose time does not increase, and how many were left out."""
    keep = increasing_rows(log.time)
    removed = int(len(keep) - keep.sum())
    return (log if removed == 0 else log.rows(keep)), removed


def with_clock_put_forward(log: Log) -> tuple[Log, Indices]:
    """The log of a clock that was set back while the arm went on, and the rows where it was.

    Time must go on regularly from there and every position from where it was. The later rows then follow one usual step
    after those before; without that, they would be a jump of the motion.
    """
    steps = np.diff(log.time)
    usual = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    regular = np.abs(steps / usual - 1.0) < 0.5 if usual > 0.0 else np.zeros(len(steps), dtype=bool)
    back = np.flatnonzero(steps < -0.5 * usual)
    back = back[(back >= STILL) & (back + STILL < len(steps))]
    back = back[[bool(np.delete(regular[k - STILL : k + STILL + 1], STILL).all()) for k in back]]
    if not len(back) or "position" not in log:
        return log, back
    way = np.abs(np.diff(log["position"], axis=0))
    near = 2.0 * (way[back - 1] + way[back + 1]) + 6.0 * second_difference_noise(log["position"])
    back = back[(way[back] <= near).all(axis=1)]
    lost = np.zeros(len(log))
    lost[back + 1] = usual - steps[back]
    return Log(log.time + np.cumsum(lost), log.channels, log.info), back + 1


def quantum(x: Array) -> float:
    """Step size of a quantised signal; 0 if its values do not lie on a grid that is coarse enough to be seen."""
    values = np.unique(x[: len(x) // 2 + SAMPLES // 2][-SAMPLES:])
    if len(values) < 3:
        return float(values[-1] - values[0]) if len(values) == 2 else 0.0
    steps = np.diff(values)
    steps = steps[steps > 1e-9 * (values[-1] - values[0])]
    if not len(steps):
        return 0.0
    # The smallest steps are one quantum if there is one; the mean of many takes out rounding.
    least = float(np.percentile(steps, 2.0))
    unit = float(np.mean(steps[steps < 1.5 * least]))
    ratio = steps[steps < 20.0 * unit] / unit
    on_grid = np.abs(ratio - np.round(ratio)) < 0.05
    return unit if len(ratio) >= 2 and on_grid.mean() > 0.98 else 0.0


def stale_rows(log: Log) -> Mask:
    """Rows that repeat the measured values of the row before, though the arm has moved or noise should show.

    The recorder ran on and its source did not. A channel must change by more than three of its steps right before and
    right after, which no signal does that really stays; a stretch of more than a few rows is rest unless some position
    jumps afterwards by half as much as it went in the same time before, or more. Time must increase.
    """
    values = np.hstack([log[name] for name in MEASURED if name in log] or [np.zeros((len(log), 0))])
    result = np.zeros(len(log), dtype=bool)
    if len(log) < 4 or not values.shape[1]:
        return result
    same = ((values[1:] == values[:-1]) | np.isnan(values[1:]) & np.isnan(values[:-1])).all(axis=1)
    fresh = np.flatnonzero(np.concatenate([[True], ~same]))  # rows that differ from the one before
    held = np.diff(fresh) - 1  # repetitions of each but the last
    runs = np.flatnonzero(held[1:]) + 1
    if not len(runs):
        return result
    least = 3.0 * np.array([quantum(column[np.isfinite(column)]) for column in values.T])
    here, long = fresh[runs], held[runs] > STILL
    earlier = np.abs(values[here] - values[np.where(long, np.maximum(here - held[runs], 0), here - 1)])
    later = np.abs(values[fresh[runs + 1]] - values[here])
    moved = (earlier > least) & (later > least)
    jumped = moved & (later > 0.5 * earlier) & (np.arange(values.shape[1]) < len(log.joints)) & ("position" in log)
    stale = np.where(long, jumped.any(axis=1), moved.any(axis=1))
    for run in runs[stale]:
        result[fresh[run] + 1 : fresh[run + 1]] = True
    return result


def without_passive(log: Log, robot: Robot | None) -> Log:
    """The log without effort and current of joints that have no motor, whatever was recorded for them."""
    if robot is None or not any(robot.passive):
        return log
    kept = {name: np.where(robot.passive, np.nan, log[name]) for name in ("effort", "current") if name in log}
    return log.with_channels(kept)


@dataclass(frozen=True)
class Jump:
    """A position that goes on elsewhere from one row to the next.

    Attributes:
        row: the first after it.
        sizes: by how much joints jump, by their index [rad or m].
        kind: ``turns`` of single joints by 2 pi, which are the same place; ``joined`` recordings, where most joints
            that move jump at once; or ``moved``: the zero of a joint is another from there on.
    """

    row: int
    sizes: dict[int, float]
    kind: str


def find_jumps(time: Array, position: Array) -> list[Jump]:
    """Where positions jump by whole turns, or for good: far out of how they move, and without coming back.

    Args:
        time: increasing [s], (samples,).
        position: (samples, joints) [rad or m].
    """
    position, turns = unwound(position)
    steps, found = np.diff(time), dict[int, dict[int, float]]()
    usual = float(np.median(steps)) if len(steps) else 0.0
    known = (column[np.isfinite(column)] for column in position.T)
    moving = sum(len(column) > 0 and float(np.std(column)) > MOVES for column in known)
    for joint, column in enumerate(position.T):
        way = np.diff(column) / np.maximum(steps / usual, 1.0)  # in a usual step
        others = np.append(way[1:], way[-1:]), np.append(way[:1], way[:-1])
        bend = np.minimum(*(np.abs(way - other) for other in others))
        bent = bend[bend > 0.0]
        if len(bent) < LEAST_MOVED:
            continue
        least = max(JUMP, FAST * float(np.quantile(bent, 0.995)), 3.0 * quantum(column[np.isfinite(column)]))
        size = np.abs(way)
        fast = float(np.quantile(size[size > 0.0], 0.995))
        rows = np.flatnonzero((bend > least) & (size > least))
        if len(rows) > MANY:
            continue
        for k in rows:
            back = (np.abs(time[rows] - time[k]) < BACK_S) & (way[rows] * way[k] < 0.0)
            held = [_run(way[:k][::-1]), _run(way[k + 1 :])]  # rows of one value before and after
            lost = size[k] <= 2.0 * fast * max(held) and min(held) < STILL  # which stands for missing ones
            around = np.median(column[max(k - 3, 0) : k + 1]), np.median(column[k + 1 : k + 5])
            if not back.any() and not lost and abs(around[1] - around[0]) > 0.5 * size[k]:
                found.setdefault(int(k) + 1, {})[joint] = float(way[k] - 0.5 * (others[0][k] + others[1][k]))
    jumps = [Jump(row, sizes, _kind(sizes, moving)) for row, sizes in found.items()]
    return sorted([*jumps, *(Jump(row, sizes, "turns") for row, sizes in turns.items())], key=lambda one: one.row)


def _run(way: Array) -> int:
    """How many steps from the first on are zero."""
    moves = np.flatnonzero(way != 0.0)
    return int(moves[0]) if len(moves) else len(way)


def _kind(sizes: dict[int, float], moving: int) -> str:
    turns = np.array(list(sizes.values())) / TURN
    if np.all(np.abs(turns - np.round(turns)) < NEAR_TURN) and np.all(np.round(turns) != 0.0):
        return "turns"
    return "joined" if len(sizes) > 1 and 2 * len(sizes) > moving else "moved"


def without_turns(log: Log, rows: Indices | None = None) -> tuple[Log, list[Jump]]:
    """The log with jumps of its positions by whole turns undone, and all jumps there are.

    Args:
        log: with positions or without.
        rows: in order and not stale, in which jumps are looked for; None for all.
    """
    if "position" not in log:
        return log, []
    rows = np.arange(len(log)) if rows is None else rows
    found = find_jumps(log.time[rows], log["position"][rows])
    jumps = [replace(jump, row=int(rows[jump.row])) for jump in found]
    turns = [jump for jump in jumps if jump.kind == "turns"]
    if not turns:
        return log, jumps
    shift = np.zeros_like(log["position"])
    for jump in turns:
        for joint, size in jump.sizes.items():
            shift[jump.row, joint] += TURN * np.round(size / TURN)
    return log.with_channels({"position": log["position"] - np.cumsum(shift, axis=0)}), jumps


def fill_missing(time: Array, values: Array, max_gap_s: float) -> tuple[Array, int]:
    """Interpolate NaN linearly where the samples around it are at most `max_gap_s` apart.

    Longer runs, runs at the ends and columns without any value stay NaN: they are masked later, not invented.

    Returns:
        The values, and how many were filled.
    """
    missing = ~np.isfinite(values)
    if not missing.any():
        return values, 0
    result, filled = np.array(values), 0
    for joint in np.flatnonzero(missing.any(axis=0) & ~missing.all(axis=0)):
        good = np.flatnonzero(~missing[:, joint])
        bad = np.flatnonzero(missing[:, joint])
        place = np.searchsorted(good, bad)
        inside = (place > 0) & (place < len(good))
        bad, place = bad[inside], place[inside]
        short = bad[time[good[place]] - time[good[place - 1]] <= max_gap_s]
        result[short, joint] = np.interp(time[short], time[good], values[good, joint])
        filled += len(short)
    return result, filled


def find_spikes(values: Array, half_window: int = 3, threshold: float = 8.0, longest: int = 1) -> Mask:
    """Samples that stand out from their neighbours as no motion or friction does (Hampel's test with two guards).

    A sample is a spike if it differs from the median of its window by more than `threshold` times the noise, the
    larger of the window's and the channel's (both from median absolute deviations, the channel's from second
    differences), by more than three steps of a quantised channel and by more than a millionth of its range. Guards: at
    most `longest` samples in a row stand out; they do so as much from the cubic through two neighbours on each side,
    which follows the turn of a fast joint; and at least twice as much as the neighbours differ from each other, which a
    step of Coulomb friction never does.

    Args:
        values: (samples, joints); NaN is no spike.
        half_window: samples on each side.
        threshold: in standard deviations of the noise.
        longest: longest run of samples taken for a spike.
    """
    _check(half_window, threshold, longest)
    if len(values) < 2 * half_window + 1:
        return np.zeros(values.shape, dtype=bool)
    known = np.isfinite(values)
    filled = fill_missing(np.arange(len(values), dtype=float), values, np.inf)[0]
    filled = np.where(np.isfinite(filled), filled, 0.0)
    size = (2 * half_window + 1, 1)
    median = ndimage.median_filter(filled, size=size, mode="nearest")
    deviation = np.abs(filled - median)
    local = MAD * ndimage.median_filter(deviation, size=size, mode="nearest")
    noise = np.maximum(local, second_difference_noise(filled))
    least = np.maximum(threshold * noise, np.maximum(3.0 * resolution(filled), SMALL * np.ptp(filled, axis=0)))
    least += 1e-9 * np.abs(median)
    out = deviation > least
    for joint in np.flatnonzero(out.any(axis=0)):
        out[:, joint] &= _lonely(filled[:, joint], out[:, joint], least[:, joint], longest)
    return np.asarray(out & known)


def recurring(time: Array, values: Array, marks: Mask, period_s: float) -> Mask:
    """Marked samples that other periods have as well: sharp, but part of the motion, such as a peak of friction.

    A sample recurs if in at least half of the other periods a sample at its phase, or a neighbour of that, is as near
    to it as half its height above its own neighbours.

    Args:
        time: must increase [s], (samples,).
        values: (samples, joints).
        marks: single samples that stand out, (samples, joints).
        period_s: after which the motion repeats [s].
    """
    result = np.zeros(marks.shape, dtype=bool)
    step = float(np.median(np.diff(time)))
    count = min(COMPARED, int((time[-1] - time[0]) / period_s) + 1)
    shifts = period_s * np.concatenate([-np.arange(1, count + 1), np.arange(1, count + 1)])
    for joint in np.flatnonzero(marks.any(axis=0)):
        column, rows = values[:, joint], np.flatnonzero(marks[:, joint])
        height = np.abs(column[rows] - over_holes(values[:, joint : joint + 1], marks[:, joint : joint + 1])[rows, 0])
        wanted = time[rows, None] + shifts
        later = np.clip(np.searchsorted(time, wanted), 1, len(time) - 1)
        near = later - (wanted - time[later - 1] < time[later] - wanted)
        there = np.abs(time[near] - wanted) < 0.75 * step
        around = np.clip(near[:, :, None] + np.arange(-1, 2), 0, len(time) - 1)
        apart = np.nan_to_num(np.abs(column[around] - column[rows, None, None]), nan=np.inf).min(axis=2)
        alike = there & (apart < ALIKE * height[:, None])
        result[rows, joint] = (alike.sum(axis=1) >= 0.5 * there.sum(axis=1)) & there.any(axis=1)
    return result


def over_holes(values: Array, bad: Mask, time: Array | None = None) -> Array:
    """Values with lines over the bad ones, and the nearest good value at the ends; columns without any stay.

    Args:
        values: (samples, joints); NaN is not used, and stays where it is not marked.
        bad: to be replaced, (samples, joints).
        time: of the samples, (samples,); without it they count as equidistant.
    """
    result = np.array(values)
    x = np.arange(len(values), dtype=float) if time is None else time
    for joint in np.flatnonzero(bad.any(axis=0)):
        good, replaced = ~bad[:, joint] & np.isfinite(values[:, joint]), bad[:, joint]
        if good.any():
            result[replaced, joint] = np.interp(x[replaced], x[good], values[good, joint])
    return result


def usual_steps(steps: Array) -> tuple[float, float]:
    """Median step, and mean over the middle of the steps [s]: the median of steps of 10 and 12 ms would be 10."""
    low, high = np.percentile(steps, [5.0, 95.0])
    middle = steps[(steps >= low) & (steps <= high)]
    return float(np.median(steps)), float((middle if len(middle) else steps).mean())


def contradicts(stated_hz: float, steps: Array) -> bool:
    """Whether time stamps contradict a stated rate, by the usual step and by the mean of most steps.

    Lost samples change the mean only, timestamps that alternate the usual step only: neither is a contradiction. Where
    steps scatter, both together move them.
    """
    found = usual_steps(steps)
    quartiles = np.percentile(steps, [25.0, 75.0])
    most = max(RATE_TOLERANCE, SCATTER * float(np.diff(quartiles)[0]) / max(found[0], 1e-300))
    return all(step > 0.0 and abs(stated_hz * step - 1.0) > most for step in found)


def second_difference_noise(values: Array) -> Array:
    """Standard deviation of white noise per column, from the median second difference; smooth motion hardly counts."""
    if len(values) < 3:
        return np.zeros(values.shape[1])
    return np.asarray(MAD * np.median(np.abs(np.diff(values, n=2, axis=0)), axis=0) / np.sqrt(6.0))


def _lonely(column: Array, out: Mask, least: Array, longest: int) -> Mask:
    """Marks of short runs that rise far over the curve through their neighbours."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], out, [False]]).astype(np.int8)))
    first, stop = edges[::2], edges[1::2]
    last = len(column) - 1
    before, after = column[np.maximum(first - 1, 0)], column[np.minimum(stop, last)]
    outer = column[np.maximum(first - 2, 0)] + column[np.minimum(stop + 1, last)]
    near, far = (0.5 * (stop - first + 1)) ** 2, (0.5 * (stop - first + 3)) ** 2
    curve = 0.5 * (far * (before + after) - near * outer) / (far - near)
    middle = (first + stop - 1) // 2
    height = np.abs(column[middle] - curve)
    good = (stop - first <= longest) & (height > 2.0 * np.abs(after - before)) & (height > least[middle])
    good &= (first > 0) & (stop <= last)
    marks = np.zeros(len(column) + 1, dtype=np.int64)
    np.add.at(marks, first[good], 1)
    np.add.at(marks, stop[good], -1)
    return np.asarray(np.cumsum(marks[:-1]) > 0)


def _check(half_window: int, threshold: float, longest: int) -> None:
    if half_window < 1 or threshold <= 0.0 or not 1 <= longest <= half_window:
        raise SignalError(
            "Hampel",
            f"half_window is {half_window!r}, threshold {threshold!r}, longest {longest!r}; use half_window >= 1, a "
            "positive threshold and 1 <= longest <= half_window",
        )
