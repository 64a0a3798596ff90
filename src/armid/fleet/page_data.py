"""Numbers of a fleet for its page: days joined where there are too many, arrays packed into few bytes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from armid.arrays import Array, Indices, Mask
from armid.figures import significant
from armid.fleet.result import FleetResult, WatchedQuantity, rounded

CELLS = 2_000_000  # deviations of all arms, days and quantities that one page holds
REACH = 100.0  # times the usual size up to which a deviation is drawn where it is
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
NOTHING, USED, LEFT_OUT, IN_PART = range(4)  # what became of an arm's day
MISSING = -32768
YEARS = 731  # days without any recording that part days from the rest
FEW = 0.2  # of the arm-days of the largest part: smaller parts, years away, are not on the axis


@dataclass(frozen=True, eq=False)
class FleetNumbers:
    """A result as arrays; the order of arms, dates, watched quantities and parameters is its own.

    Attributes:
        result: of the fleet.
        together: days that make one point of the time axis.
        dates: first day of each point.
        place: point of each day, (days,).
        on_axis: whether a point is on the time axis; days that lie years from the rest are not, (points,).
        deviation, sigma: of arms from their own value, (arms, points, watched); NaN where unknown.
        temperature: (arms, points) [°C]; NaN where unknown.
        day: what became of each arm's day, (arms, points).
    """

    result: FleetResult
    together: int
    dates: tuple[str, ...]
    place: Indices
    on_axis: Mask
    deviation: Array
    sigma: Array
    temperature: Array
    day: NDArray[np.uint8]

    @cached_property
    def parameters(self) -> Array:
        """Deviation of each arm's parameters from the type, in standard deviations, (arms, parameters)."""
        return self.table("deviation")

    def table(self, name: str) -> Array:
        """One list of each arm, (arms, parameters); NaN where an arm has none."""
        none = np.full(len(self.result.parameters), np.nan)
        rows = [none if getattr(arm, name) is None else getattr(arm, name) for arm in self.result.arms]
        return np.array(rows, dtype=float).reshape(len(rows), len(none))

    @cached_property
    def unlike_others(self) -> Array:
        """Largest deviation of an arm's parameters from the type, in standard deviations, (arms,)."""
        return _largest(np.abs(self.parameters))

    @cached_property
    def unlike_itself(self) -> Array:
        """Largest deviation from the arm's own value in standard deviations of error and usual change, (arms,)."""
        usual = np.array([one.day_to_day or 0.0 for one in self.result.watched])
        with np.errstate(invalid="ignore", divide="ignore"):
            far = np.abs(self.deviation) / np.sqrt(self.sigma**2 + usual**2)
        return _largest(far.reshape(len(far), -1))

    @cached_property
    def period(self) -> tuple[str, ...]:
        """First and last day on the axis; one where there is but one."""
        shown = [day for day, point in zip(self.result.dates, self.place, strict=True) if self.on_axis[point]]
        return tuple(dict.fromkeys((shown[0], shown[-1]))) if shown else ()

    @cached_property
    def off_axis(self) -> dict[str, list[str]]:
        """Days that lie years from the rest, and the arms with a recording on them."""
        found: dict[str, set[str]] = {
            day: set() for d, day in enumerate(self.result.dates) if not self.on_axis[self.place[d]]
        }
        for name, d in _recorded(self.result):
            found.get(self.result.dates[d], set()).add(name)
        return {day: sorted(names) for day, names in found.items()}

    def quantiles(self) -> Array:
        """Of all arms' deviations, (quantiles, points, watched); NaN where nothing is known."""
        count, points, watched = self.deviation.shape
        result = np.full((len(QUANTILES), points, watched), np.nan)
        known = np.isfinite(self.deviation).any(axis=0) if count else np.zeros((points, watched), dtype=bool)
        if known.any():
            result[:, known] = np.nanquantile(self.deviation[:, known], QUANTILES, axis=0)
        return result


def _recorded(result: FleetResult) -> set[tuple[str, int]]:
    """Arms and days (indices) with a recording, used or not."""
    index = {day: d for d, day in enumerate(result.dates)}
    known = {(arm.name, d) for arm in result.arms if arm.series for d in arm.series.days}
    return known | {(one.robot, index[one.date]) for one in result.problems if one.date in index}


def fleet_numbers(result: FleetResult) -> FleetNumbers:
    """Arrays of a fleet."""
    arms, dates, watched = result.arms, result.dates, result.watched
    together = max(1, -(-len(arms) * len(dates) * len(watched) // CELLS))
    parts = _parts(dates)
    place = _places(parts, together)
    points = int(place[-1]) + 1 if len(dates) else 0
    deviation, sigma = (np.full((len(arms), points, len(watched)), np.nan) for _ in range(2))
    temperature = np.full((len(arms), points), np.nan)
    for a, arm in enumerate(arms):
        series = arm.series
        if series is None or not series.days:
            continue
        where = place[np.array(series.days)]
        temperature[a] = _joined(where, series.temperature[None], None, points)[0][:, 0]
        values, errors = (
            np.array([part[one.name] for one in watched], dtype=float).reshape(len(watched), len(where))
            for part in (series.deviation, series.deviation_sigma)
        )
        deviation[a], sigma[a] = _joined(where, values, errors, points)
    first = np.unique(place, return_index=True)[1]
    shown, day = tuple(dates[d] for d in first), _days(result, place, points)
    on_axis = _on_axis(result, parts)[first]
    return FleetNumbers(result, together, shown, place, on_axis, deviation, sigma, temperature, day)


def _parts(dates: Sequence[str]) -> Indices:
    """Number of each day's part: years without a recording lie between parts."""
    days = np.array([date.fromisoformat(day).toordinal() for day in dates], dtype=np.int64)
    return np.concatenate([[0], np.cumsum(np.diff(days) > YEARS)])[: len(days)].astype(np.int64)


def _places(parts: Indices, together: int) -> Indices:
    """Point of each day: so many days of one part together."""
    starts = np.unique(parts, return_index=True)[1]
    within = np.arange(len(parts)) - starts[parts]
    return np.cumsum((within % together == 0).astype(np.int64)) - 1


def _on_axis(result: FleetResult, parts: Indices) -> Mask:
    """Which days are on the time axis, (days,): the largest part, and all others that are not much smaller."""
    if not len(parts):
        return np.zeros(0, dtype=bool)
    days = [d for _, d in _recorded(result)]
    counts = np.bincount(parts[days] if days else parts, minlength=int(parts[-1]) + 1)
    large = np.flatnonzero(counts > FEW * counts.max())
    return np.asarray((parts >= large[0]) & (parts <= large[-1]))  # what lies between is on the axis anyway


def _joined(where: Indices, values: Array, errors: Array | None, points: int) -> tuple[Array, Array]:
    """Means over the days of each point, weighted by their errors, and the error of the mean, (points, quantities)."""
    errors = np.ones_like(values) if errors is None else errors
    known = np.isfinite(values) & (errors > 0.0)
    weight = np.where(known, 1.0 / np.where(known, errors, 1.0) ** 2, 0.0)
    total, summed = np.zeros((points, len(values))), np.zeros((points, len(values)))
    np.add.at(total, where, weight.T)
    np.add.at(summed, where, np.where(known, weight * np.where(known, values, 0.0), 0.0).T)
    there = total > 0.0
    safe = np.where(there, total, 1.0)
    return np.where(there, summed / safe, np.nan), np.where(there, 1.0 / np.sqrt(safe), np.nan)


def _days(result: FleetResult, place: Indices, points: int) -> NDArray[np.uint8]:
    """What became of each arm's day: problems and misfits say which recordings do not count."""
    rows = {arm.name: a for a, arm in enumerate(result.arms)}
    columns = dict(zip(result.dates, place.tolist(), strict=True))
    found = np.full((len(rows), points), NOTHING, dtype=np.uint8)
    for arm in result.arms:
        if arm.series:
            found[rows[arm.name], place[np.array(arm.series.days, dtype=int)]] = USED
    lost = {(one.robot, one.date) for one in result.problems}
    lost |= {(one.robot, one.since) for one in result.watch if one.kind == "misfit" and one.since}
    for robot, day in lost:
        if robot in rows and day in columns:
            at = rows[robot], columns[day]
            found[at] = IN_PART if found[at] in (USED, IN_PART) else LEFT_OUT
    return found


def page_data(numbers: FleetNumbers, reports: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All that the page's scripts need; `reports` are addresses of reports of single arms, by name."""
    result = numbers.result
    arms, watched = result.arms, _watched(numbers)
    first = date.fromisoformat(numbers.dates[0]) if numbers.dates else None
    plainly = ("name", "state", "days", "samples", "possible", "fit")
    return {
        "joints": result.robot.joints,
        "dates": numbers.dates,
        "ordinals": [(date.fromisoformat(day) - first).days for day in numbers.dates] if first else [],
        "on_axis": numbers.on_axis.tolist(),
        "together": numbers.together,
        "watched": watched,
        "parameters": [
            {**asdict(one), **{key: rounded(getattr(one, key), 5) for key in ("mean", "sigma", "spread")}}
            for one in result.parameters
        ],
        "arms": {
            **{key: [getattr(one, key) for one in arms] for key in plainly},
            "report": [(reports or {}).get(one.name) for one in arms],
            "seconds": significant([one.seconds for one in arms]),
            "noise": [None if one.noise is None else significant(one.noise, 3) for one in arms],
            "unlike_others": significant(numbers.unlike_others, 3),
            "unlike_itself": significant(numbers.unlike_itself, 3),
        },
        "watch": [
            {"sentence": one.sentence, **{key: value for key, value in asdict(one).items() if value is not None}}
            for one in result.watch
        ],
        "problems": [[one.robot, one.days, one.what, one.reason] for one in result.unused()],
        "threshold": result.promise.threshold,
        "packed": _packed(numbers, watched),
    }


def _watched(numbers: FleetNumbers) -> list[dict[str, Any]]:
    """What is watched, with the fleet's quantiles and the scales of the packed numbers."""
    watched, quantiles, result = numbers.result.watched, numbers.quantiles(), []
    for k, (one, group) in enumerate(zip(watched, groups(watched), strict=True)):
        known = np.abs(numbers.deviation[:, :, k])
        known = known[np.isfinite(known)]
        size = min(float(known.max()), REACH * float(np.quantile(known, 0.99))) if known.size else 0.0
        errors = numbers.sigma[:, :, k]
        errors = errors[np.isfinite(errors) & (errors > 0.0)]
        low, high = (float(errors.min()), float(errors.max())) if errors.size else (1.0, 1.0)
        result.append(
            {
                **asdict(one),
                "group": group,
                "day_to_day": rounded(one.day_to_day, 5),
                "per_degree": rounded(one.per_degree, 5),
                "step": (size or 1.0) / 32767.0,
                "reach": rounded(float(np.quantile(known, 0.995)), 5) if known.size else 0.0,
                "sigma_low": rounded(low, 5),
                "sigma_ratio": (high / low) ** (1.0 / 254.0),
                "quantiles": [significant(row, 3) for row in quantiles[:, :, k]],
            }
        )
    return result


def groups(watched: Sequence[WatchedQuantity]) -> list[str]:
    """Names of the quantities, without the joint: those of one name share a scale."""
    return [one.what.replace(f" of joint {one.joint}", "") for one in watched]


def _packed(numbers: FleetNumbers, watched: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Arrays as base64 of little-endian integers and floats."""
    step, low, ratio = (np.array([one[name] for one in watched]) for name in ("step", "sigma_low", "sigma_ratio"))
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.clip(np.round(numbers.deviation / step), -32767, 32767)
        level = np.round(np.log(numbers.sigma / low) / np.log(np.maximum(ratio, 1.0 + 1e-12))) + 1.0
        tenth = np.round(10.0 * numbers.temperature)
        hundredth = np.clip(np.round(100.0 * numbers.parameters), -32767, 32767)
        share = np.round(255.0 * numbers.table("own"))
    return {
        "deviation": _base64(np.where(np.isfinite(whole), whole, MISSING), "<i2"),
        "sigma": _base64(np.where(np.isfinite(level), np.clip(level, 1, 255), 0), "u1"),
        "temperature": _base64(np.where(np.isfinite(tenth), tenth, MISSING), "<i2"),
        "day": _base64(numbers.day, "u1"),
        "parameter_deviation": _base64(np.where(np.isfinite(hundredth), hundredth, MISSING), "<i2"),
        "own": _base64(np.where(np.isfinite(share), share, 0), "u1"),
        "values": _base64(numbers.table("values"), "<f4"),
        "values_sigma": _base64(numbers.table("sigma"), "<f4"),
    }


def _largest(values: Array) -> Array:
    """Per row, NaN where nothing is known."""
    known = np.isfinite(values)
    largest = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(known.any(axis=1), largest, np.nan)


def _base64(values: NDArray[Any], kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
