"""From columns of files to a log: units, files joined, the joint side of the gears, torque from current, signs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.logs.log import CHANNELS, Log, LogError, LogInfo, LogStream
from armid.logs.recipe import ColumnPlace, Recipe
from armid.logs.table import Places, Table, Unit


@dataclass(frozen=True)
class _Side:
    """One of the tables that stand side by side, and where the channels are in it."""

    table: Table
    places: Places

    def blocks(self, size: int) -> Iterator[dict[str, Array]]:
        wanted = list(dict.fromkeys(index for place in self.places.values() for index in place if index is not None))
        for rows in self.table.blocks(wanted, size):
            yield {name: _picked(rows, wanted, place) for name, place in self.places.items()}


def _picked(rows: Array, wanted: list[int], place: list[int | None]) -> Array:
    if None not in place:
        return np.ascontiguousarray(rows[:, [wanted.index(index) for index in place if index is not None]])
    result = np.full((len(rows), len(place)), np.nan)
    for target, index in enumerate(place):
        if index is not None:
            result[:, target] = rows[:, wanted.index(index)]
    return result


def recipe_stream(groups: Sequence[Sequence[Table]], recipe: Recipe) -> LogStream:
    """The log that a recipe makes of tables: groups of tables side by side, one group after the other in time."""
    sides = [_sides(group, recipe) for group in groups]
    channels = [name for side in sides[0] for name in side.places if name != "time"]
    source = ", ".join(dict.fromkeys(table.source for group in groups for table in group))
    cut = {name: list(kept) for name in ("rows", "seconds") if (kept := getattr(recipe, name)) is not None}
    info = replace(recipe.info, source=source, history={"recipe": recipe.source, **cut, **groups[0][0].history})

    def blocks(size: int) -> Iterator[Log]:
        raw = chain.from_iterable(_joined(group, size) for group in sides)
        for time, values in _windowed(_timed(raw, recipe), recipe):
            yield _converted(Log(time, values, info), recipe)

    return LogStream(*_outcome(info, channels, recipe), _checked_time(blocks, source))


def plain_stream(table: Table, places: Places, info: LogInfo) -> LogStream:
    """The log in a table whose columns hold SI units already."""
    channels = tuple(name for name in places if name != "time")

    def blocks(size: int) -> Iterator[Log]:
        for values in _Side(table, places).blocks(size):
            time = values.pop("time")[:, 0]
            yield Log(time, values, info)

    return LogStream(info, channels, blocks if table.exact else _checked_time(blocks, table.source))


def without_effort(places: Places, effort: str) -> Places:
    """Places as the kind of effort has it: a current may stand under effort, since ROS has no other field for it."""
    if effort == "current" and "current" not in places and "effort" in places:
        places = {**places, "current": places["effort"]}
    return {name: place for name, place in places.items() if name != "effort" or effort not in ("current", "none")}


def _sides(group: Sequence[Table], recipe: Recipe) -> list[_Side]:
    joints = recipe.info.joints
    if not recipe.columns:
        table = group[0]
        return [_Side(table, _default_places(table, recipe))]
    for name, place in recipe.columns.items():
        if place.file > len(group):
            problem = f"asks for file {place.file}, but there are {len(group)} files"
            raise LogError(recipe.source, f"columns.{name}", problem)
    sides = []
    for number, table in enumerate(group, start=1):
        places = {
            name: _found_place(table, name, place, len(joints))
            for name, place in recipe.columns.items()
            if place.file == number
        }
        if places:
            sides.append(_Side(table, places))
    return sides


def _found_place(table: Table, name: str, place: ColumnPlace, joints: int) -> list[int | None]:
    found = place.indices(table, f"columns.{name}")
    wanted, what = (1, "the time of each sample") if name == "time" else (joints, "one for each joint")
    if len(found) != wanted:
        problem = f"stands for {len(found)} columns, but {wanted} are needed, {what}"
        raise LogError(table.source, f"columns.{name}", problem)
    return found


def _default_places(table: Table, recipe: Recipe) -> Places:
    """Where the channels are by the format's own names."""
    if table.info is None and "time" not in table.names:
        there = ", ".join(table.names[:40])
        raise LogError(recipe.source, "columns", f"is missing; name the columns of {table.source}, which are: {there}")
    return without_effort(table.places(recipe.info.joints), recipe.info.effort)


def _joined(sides: list[_Side], size: int) -> Iterator[dict[str, Array]]:
    """Blocks of all sides, which must be equally long."""
    streams = [side.blocks(size) for side in sides]
    samples = [0] * len(sides)
    while True:
        parts = [next(stream, None) for stream in streams]
        lengths = [0 if part is None else len(next(iter(part.values()))) for part in parts]
        if len(set(lengths)) > 1:
            _fail_lengths(sides, streams, [done + more for done, more in zip(samples, lengths, strict=True)])
        if not lengths[0]:
            return
        samples = [done + more for done, more in zip(samples, lengths, strict=True)]
        yield {name: values for part in parts if part is not None for name, values in part.items()}


def _fail_lengths(sides: list[_Side], streams: list[Iterator[dict[str, Array]]], samples: list[int]) -> None:
    total = [
        done + sum(len(next(iter(part.values()))) for part in stream)
        for done, stream in zip(samples, streams, strict=True)
    ]
    said = ", ".join(f"{side.table.source} has {count}" for side, count in zip(sides, total, strict=True))
    raise LogError(sides[0].table.source, "", f"files side by side must have the same number of samples, but {said}")


def _timed(raw: Iterator[dict[str, Array]], recipe: Recipe) -> Iterator[tuple[Array, dict[str, Array]]]:
    """Blocks in SI units, with a time of their own or one made from the rate."""
    count = 0
    for values in raw:
        samples = len(next(iter(values.values())))
        in_si = {name: _in_si(part, recipe.units.get(name)) for name, part in values.items()}
        time = in_si.pop("time", None)
        if time is None:
            if recipe.info.rate_hz is None:
                raise LogError(recipe.source, "rate", "is missing; without a column for time it is needed [Hz]")
            time = np.arange(count, count + samples, dtype=np.float64)[:, None] / recipe.info.rate_hz
        count += samples
        yield time[:, 0], in_si


def _in_si(values: Array, units: tuple[Unit, ...] | None) -> Array:
    if units is None:
        return values
    factor, offset = np.array([unit.factor for unit in units]), np.array([unit.offset for unit in units])
    values = values * factor if np.any(factor != 1.0) else values
    return values + offset if np.any(offset != 0.0) else values


def _windowed(
    blocks: Iterator[tuple[Array, dict[str, Array]]], recipe: Recipe
) -> Iterator[tuple[Array, dict[str, Array]]]:
    """The part of the samples that the recipe keeps."""
    done, begin, kept = 0, None, 0
    first, last = recipe.rows or (1, None)
    start, end = recipe.seconds or (-np.inf, None)
    for time, values in blocks:
        begin = float(time[0]) if begin is None else begin
        number = np.arange(done + 1, done + len(time) + 1)
        keep = (number >= first) & (number <= (np.inf if last is None else last))
        if recipe.seconds:
            keep &= (time - begin >= start) & (time - begin < (np.inf if end is None else end))
        done += len(time)
        kept += int(keep.sum())
        if keep.all():
            yield time, values
        elif keep.any():
            yield time[keep], {name: part[keep] for name, part in values.items()}
        if last is not None and done >= last:
            break
    if done and not kept:
        where = "rows" if recipe.rows else "seconds"
        raise LogError(recipe.source, where, f"leaves nothing; there are {done} samples")


def _converted(log: Log, recipe: Recipe) -> Log:
    """On the joint side, with torque instead of current, in the model's directions: as far as the recipe knows."""
    if recipe.ratio is not None:
        log = to_joint_side(log, recipe.ratio)
    if recipe.current_gain is not None:
        log = torque_from_current(log, recipe.current_gain)
    joints = len(log.joints)
    return reoriented(log, np.broadcast_to(recipe.sign, joints), np.broadcast_to(recipe.offset, joints))


def _outcome(info: LogInfo, channels: Sequence[str], recipe: Recipe) -> tuple[LogInfo, tuple[str, ...]]:
    """What the log will be, found by converting one without samples."""
    empty = np.empty((0, len(info.joints)))
    log = _converted(Log(np.empty(0), dict.fromkeys(channels, empty), info), recipe)
    return log.info, tuple(name for name in CHANNELS if name in log)


def _checked_time(blocks: Callable[[int], Iterator[Log]], source: str) -> Callable[[int], Iterator[Log]]:
    """The blocks, and at their end an error if time never moved on. Gaps and steps back are left to the log doctor."""

    def checked(size: int) -> Iterator[Log]:
        low, high, samples = np.inf, -np.inf, 0
        for block in blocks(size):
            known = block.time[np.isfinite(block.time)]
            samples += len(block)
            if len(known):
                low, high = min(low, float(known.min())), max(high, float(known.max()))
            yield block
        if samples > 1 and not high > low:
            raise LogError(source, "time", "never increases; name another column for it, or give the rate instead")

    return checked


_MOTION = ("position", "velocity", "acceleration")


def to_joint_side(log: Log, ratio_matrix: ArrayLike) -> Log:
    """The log with motion and torque on the joint side of the gears.

    Motion is converted if it is on the motor side (``info.side``), the effort if it is a motor torque. A commanded
    position or velocity goes with the motion, a commanded torque with the effort. Currents stay.

    Args:
        log: any log.
        ratio_matrix: R in q_motor = R q_joint and tau_joint = R^T tau_motor, (joints, joints), or the gear ratios alone
            (joints,): `Robot.coupling`, or ``[drive.gear_ratio for drive in robot.drives]``.

    Raises:
        LogError: the matrix does not fit or cannot be inverted.
    """
    ratio = np.asarray(ratio_matrix, dtype=np.float64)
    n = len(log.joints)
    ratio = np.diag(ratio) if ratio.ndim == 1 else ratio
    if ratio.shape != (n, n) or not np.all(np.isfinite(ratio)):
        raise LogError(log.info.source, "ratio matrix", f"must hold {n} x {n} finite numbers, one row for each motor")
    if np.any(np.diag(ratio) == 0.0) or np.linalg.cond(ratio) > 1e12:
        raise LogError(log.info.source, "ratio matrix", "is singular or has a zero on its diagonal")
    changed: dict[str, Array | None] = {}
    if log.info.side == "motor":
        inverse = _inverse(ratio)
        moved = (*_MOTION, "command") if log.info.mode != "torque" else _MOTION
        changed |= {name: _times(log[name], inverse) for name in moved if name in log}
    effort = log.info.effort
    if effort == "motor torque":
        turned = ("effort", "command") if log.info.mode == "torque" else ("effort",)
        changed |= {name: _times(log[name], ratio.T) for name in turned if name in log}
        effort = "joint torque"
    return log.with_channels(changed, side="joint", effort=effort)


def torque_from_current(log: Log, gains: Sequence[Sequence[float] | float]) -> Log:
    """The log with joint torque as its effort, computed from the current; the current stays in the log.

    Args:
        log: a log with the channel `current` [A] and without a measured torque.
        gains: per joint a gain [N m/A], or a polynomial with the lowest power first, as `Robot.current_gain`.

    Raises:
        LogError: there is no current, there is a torque already, or the gains do not fit.
    """
    if log.info.effort not in ("current", "none"):
        raise LogError(log.info.source, "effort", f"is a {log.info.effort} already, and is not replaced")
    current = log["current"]
    if len(gains) != len(log.joints):
        raise LogError(log.info.source, "current gain", f"is given for {len(gains)} of {len(log.joints)} joints")
    torque = np.empty_like(current)
    for index, gain in enumerate(gains):
        polynomial = [0.0, float(gain)] if np.ndim(gain) == 0 else list(np.asarray(gain, dtype=np.float64))  # type: ignore[arg-type]
        torque[:, index] = np.polynomial.polynomial.polyval(current[:, index], polynomial)
    return log.with_channels({"effort": torque}, effort="joint torque")


def reoriented(log: Log, sign: ArrayLike, offset: ArrayLike) -> Log:
    """The log in the model's directions and zeros: q_model = sign * q + offset.

    Args:
        log: any log.
        sign: per joint 1, or -1 where the model turns the other way; applies to all channels but temperature.
        offset: per joint, added to positions [rad or m].
    """
    sign, offset = np.asarray(sign, dtype=np.float64), np.asarray(offset, dtype=np.float64)
    changed: dict[str, Any] = {}
    if np.any(sign != 1.0):
        changed |= {name: values * sign for name, values in log.channels.items() if name != "temperature"}
    if np.any(offset != 0.0):
        shifted = ("position", "command") if log.info.mode == "position" else ("position",)
        changed |= {name: changed.get(name, log[name]) + offset for name in shifted if name in log}
    return log.with_channels(changed) if changed else log


def _inverse(ratio: Array) -> Array:
    """Inverse with exact zeros, so that a joint depends on those motors alone that move it."""
    inverse: Array = np.asarray(np.linalg.inv(ratio), dtype=np.float64)
    inverse[np.abs(inverse) < 1e-14 * np.abs(inverse).max()] = 0.0
    return inverse


def _times(rows: Array, matrix: Array) -> Array:
    """`matrix` times each row. Zeros of the matrix are skipped: a NaN of one motor spoils only its own joints."""
    result = np.zeros_like(rows)
    for target, weights in enumerate(matrix):
        for index in np.flatnonzero(weights):
            result[:, target] += weights[index] * rows[:, index]
    return result
