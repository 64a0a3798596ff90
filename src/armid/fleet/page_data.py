"""Numbers of a fleet for its page: days joined where there are too many, arrays packed into few bytes."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array, Indices
from armid.figures import significant

CELLS = 2_000_000  # deviations of all arms, days and quantities that one page holds
REACH = 100.0  # times the usual size up to which a deviation is drawn where it is
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
NOTHING, USED, LEFT_OUT, IN_PART = range(4)  # what became of an arm's day
MISSING = -32768
YEARS = 731  # days without any recording that part days from the rest
FEW = 0.2  # of the arm-days of the largest part: smaller parts, years away, are not on the axis
_CODE = re.compile(r"^[a-z]+(?:-[a-z]+)+: (?=[A-Z])")  # name of a finding, before its sentence


@dataclass(frozen=True, eq=False)
class FleetNumbers:
    """What fleet.json says, as arrays; the order of arms, dates, watched quantities and parameters is its own.

    Attributes:
        data: the content of fleet.json.
        together: days that make one point of the time axis.
        dates: first day of each point.
        place: point of each day, (days,).
        on_axis: whether a point is on the time axis; days that lie years from the rest are not, (points,).
        deviation, sigma: of arms from their own value, (arms, points, watched); NaN where unknown.
        temperature: (arms, points) [°C]; NaN where unknown.
        day: what became of each arm's day, (arms, points).
    """

    data: Mapping[str, Any]
    together: int
    dates: tuple[str, ...]
    place: Indices
    on_axis: NDArray[np.bool_]
    deviation: Array
    sigma: Array
    temperature: Array
    day: NDArray[np.uint8]

    @cached_property
    def parameters(self) -> Array:
        """Deviation of each arm's parameters from the type, in standard deviations, (arms, parameters)."""
        return _table(self.data, "deviation")

    @cached_property
    def unlike_others(self) -> Array:
        """Largest deviation of an arm's parameters from the type, in standard deviations, (arms,)."""
        return _largest(np.abs(self.parameters))

    @cached_property
    def unlike_itself(self) -> Array:
        """Largest deviation from the arm's own value in standard deviations of error and usual change, (arms,)."""
        usual = np.array([one["day_to_day"] or 0.0 for one in self.data["watched"]])
        with np.errstate(invalid="ignore", divide="ignore"):
            far = np.abs(self.deviation) / np.sqrt(self.sigma**2 + usual**2)
        return _largest(far.reshape(len(far), -1))

    @cached_property
    def period(self) -> tuple[str, ...]:
        """First and last day on the axis; one where there is but one."""
        shown = [day for day, point in zip(self.data["dates"], self.place, strict=True) if self.on_axis[point]]
        return tuple(dict.fromkeys((shown[0], shown[-1]))) if shown else ()

    @cached_property
    def off_axis(self) -> dict[str, list[str]]:
        """Days that lie years from the rest, and the arms with a recording on them."""
        found: dict[str, list[str]] = {}
        for d, day in enumerate(self.data["dates"]):
            if not self.on_axis[self.place[d]]:
                lost = {one["robot"] for one in self.data["problems"] if one["date"] == day}
                there = (arm for arm in self.data["arms"] if arm["series"] and d in arm["series"]["days"])
                found[day] = sorted({arm["name"] for arm in there} | lost)
        return found

    def quantiles(self) -> Array:
        """Of all arms' deviations, (quantiles, points, watched); NaN where nothing is known."""
        count, points, watched = self.deviation.shape
        result = np.full((len(QUANTILES), points, watched), np.nan)
        known = np.isfinite(self.deviation).any(axis=0) if count else np.zeros((points, watched), dtype=bool)
        if known.any():
            result[:, known] = np.nanquantile(self.deviation[:, known], QUANTILES, axis=0)
        return result


def fleet_numbers(data: Mapping[str, Any]) -> FleetNumbers:
    """Arrays of a fleet."""
    arms, dates, watched = data["arms"], data["dates"], data["watched"]
    together = max(1, -(-len(arms) * len(dates) * len(watched) // CELLS))
    parts = _parts(dates)
    place = _places(parts, together)
    points = int(place[-1]) + 1 if len(dates) else 0
    kept = _kept(data, parts)
    deviation, sigma = (np.full((len(arms), points, len(watched)), np.nan) for _ in range(2))
    temperature = np.full((len(arms), points), np.nan)
    for a, arm in enumerate(arms):
        series = arm["series"]
        if not series or not series["days"]:
            continue
        where = place[np.array(series["days"])]
        temperature[a] = _joined(where, np.array([series["temperature"]], dtype=float), None, points)[0][:, 0]
        values, errors = (
            np.array([series[name][one["name"]] for one in watched], dtype=float).reshape(len(watched), len(where))
            for name in ("deviation", "deviation_sigma")
        )
        deviation[a], sigma[a] = _joined(where, values, errors, points)
    first = np.unique(place, return_index=True)[1]
    return FleetNumbers(
        data,
        together,
        tuple(dates[d] for d in first),
        place,
        kept[first],
        deviation,
        sigma,
        temperature,
        _days(data, place, points),
    )


def _parts(dates: Sequence[str]) -> Indices:
    """Number of each day's part: years without a recording lie between parts."""
    days = np.array([date.fromisoformat(day).toordinal() for day in dates], dtype=np.int64)
    return np.concatenate([[0], np.cumsum(np.diff(days) > YEARS)])[: len(days)].astype(np.int64)


def _places(parts: Indices, together: int) -> Indices:
    """Point of each day: so many days of one part together."""
    starts = np.unique(parts, return_index=True)[1]
    within = np.arange(len(parts)) - starts[parts]
    fresh = (within % together == 0).astype(np.int64)
    return np.cumsum(fresh) - 1


def _kept(data: Mapping[str, Any], parts: Indices) -> NDArray[np.bool_]:
    """Which days are on the time axis, (days,): the largest part, and all others that are not much smaller."""
    if not len(parts):
        return np.zeros(0, dtype=bool)
    index = {day: d for d, day in enumerate(data["dates"])}
    known = {(arm["name"], d) for arm in data["arms"] if arm["series"] for d in arm["series"]["days"]}
    known |= {(one["robot"], index[one["date"]]) for one in data["problems"] if one["date"] in index}
    counts = np.bincount(parts[[d for _, d in known]] if known else parts, minlength=int(parts[-1]) + 1)
    kept = counts > FEW * counts.max()
    inside = np.flatnonzero(kept)
    kept[inside[0] : inside[-1] + 1] = True  # what lies between is on the axis anyway
    shown: NDArray[np.bool_] = kept[parts]
    return shown


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


def _days(data: Mapping[str, Any], place: Indices, points: int) -> NDArray[np.uint8]:
    """What became of each arm's day: problems and misfits say which recordings do not count."""
    rows = {arm["name"]: a for a, arm in enumerate(data["arms"])}
    columns = dict(zip(data["dates"], place.tolist(), strict=True))
    found = np.full((len(rows), points), NOTHING, dtype=np.uint8)
    for arm in data["arms"]:
        if arm["series"]:
            found[rows[arm["name"]], place[np.array(arm["series"]["days"], dtype=int)]] = USED
    lost = {(one["robot"], one["date"]) for one in data["problems"]}
    lost |= {(one["arm"], one["since"]) for one in data["watch"] if one["kind"] == "misfit"}
    for robot, day in lost:
        if robot in rows and day in columns:
            at = rows[robot], columns[day]
            found[at] = IN_PART if found[at] in (USED, IN_PART) else LEFT_OUT
    return found


@dataclass(frozen=True)
class Lost:
    """Recordings that were not used for one reason, on days that follow one another.

    Attributes:
        robot: which arm.
        first, last: days.
        count: recordings.
        file: name, the same on all days; ``all`` for the whole day.
        reason: why, in plain words.
    """

    robot: str
    first: str
    last: str
    count: int
    file: str
    reason: str

    @property
    def when(self) -> str:
        """The days."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def what(self) -> str:
        """The file, as people say it."""
        if self.file == "all":
            return "the whole day" if self.first == self.last else "whole days"
        return self.file


def lost_recordings(data: Mapping[str, Any]) -> list[Lost]:
    """Recordings that were not used, those of the same reason together."""
    order = {day: index for index, day in enumerate(data["dates"])}
    found: dict[tuple[str, str, str], list[Lost]] = {}
    for one in sorted(data["problems"], key=lambda one: one["date"]):
        robot, day, file = one["robot"], one["date"], one["file"]
        reason = _CODE.sub("", one["reason"]).replace(" -0 ", " 0 ")
        some = found.setdefault((robot, file, reason), [])
        if some and order.get(day, -9) - order.get(some[-1].last, -9) in (0, 1):
            some[-1] = replace(some[-1], last=day, count=some[-1].count + 1)
        else:
            some.append(Lost(robot, day, day, 1, file, reason))
    return sorted((one for some in found.values() for one in some), key=lambda one: (one.robot, one.first, one.file))


def page_data(numbers: FleetNumbers) -> dict[str, Any]:
    """All that the page's scripts need."""
    data = numbers.data
    arms, watched = data["arms"], _watched(numbers)
    first = date.fromisoformat(numbers.dates[0]) if numbers.dates else None
    return {
        "joints": data["robot"]["joints"],
        "dates": numbers.dates,
        "ordinals": [(date.fromisoformat(day) - first).days for day in numbers.dates] if first else [],
        "on_axis": numbers.on_axis.tolist(),
        "together": numbers.together,
        "watched": watched,
        "parameters": [
            {**one, **{key: _short(one[key]) for key in ("mean", "sigma", "spread")}} for one in data["parameters"]
        ],
        "arms": {
            "name": [one["name"] for one in arms],
            "state": [one["state"] for one in arms],
            "days": [one["days"] for one in arms],
            "samples": [one["samples"] for one in arms],
            "seconds": significant([one["seconds"] for one in arms]),
            "noise": [None if one["noise"] is None else significant(_floats(one["noise"]), 3) for one in arms],
            "possible": [one["possible"] for one in arms],
            "fit": [one["fit"] for one in arms],
            "report": [one.get("report") for one in arms],
            "unlike_others": significant(numbers.unlike_others, 3),
            "unlike_itself": significant(numbers.unlike_itself, 3),
        },
        "watch": [{key: value for key, value in one.items() if value is not None} for one in data["watch"]],
        "problems": [[one.robot, one.when, one.what, one.reason] for one in lost_recordings(data)],
        "threshold": data["threshold"],
        "packed": _packed(numbers, watched),
    }


def _watched(numbers: FleetNumbers) -> list[dict[str, Any]]:
    """What is watched, with the fleet's quantiles and the scales of the packed numbers."""
    watched, quantiles, result = numbers.data["watched"], numbers.quantiles(), []
    for k, (one, group) in enumerate(zip(watched, groups(watched), strict=True)):
        known = np.abs(numbers.deviation[:, :, k])
        known = known[np.isfinite(known)]
        size = min(float(known.max()), REACH * float(np.quantile(known, 0.99))) if known.size else 0.0
        errors = numbers.sigma[:, :, k]
        errors = errors[np.isfinite(errors) & (errors > 0.0)]
        low, high = (float(errors.min()), float(errors.max())) if errors.size else (1.0, 1.0)
        result.append(
            {
                **one,
                "group": group,
                "day_to_day": _short(one["day_to_day"]),
                "per_degree": _short(one["per_degree"]),
                "step": (size or 1.0) / 32767.0,
                "reach": _short(float(np.quantile(known, 0.995))) if known.size else 0.0,
                "sigma_low": _short(low),
                "sigma_ratio": (high / low) ** (1.0 / 254.0),
                "quantiles": [significant(row, 3) for row in quantiles[:, :, k]],
            }
        )
    return result


def groups(watched: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the quantities, without the joint: those of one name share a scale."""
    return [one["what"].replace(f" of joint {one['joint']}", "") for one in watched]


def _packed(numbers: FleetNumbers, watched: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Arrays as base64 of little-endian integers and floats."""
    step, low, ratio = (np.array([one[name] for one in watched]) for name in ("step", "sigma_low", "sigma_ratio"))
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = np.clip(np.round(numbers.deviation / step), -32767, 32767)
        level = np.round(np.log(numbers.sigma / low) / np.log(np.maximum(ratio, 1.0 + 1e-12))) + 1.0
        tenth = np.round(10.0 * numbers.temperature)
        hundredth = np.clip(np.round(100.0 * numbers.parameters), -32767, 32767)
        share = np.round(255.0 * _table(numbers.data, "own"))
    return {
        "deviation": _base64(np.where(np.isfinite(whole), whole, MISSING), "<i2"),
        "sigma": _base64(np.where(np.isfinite(level), np.clip(level, 1, 255), 0), "u1"),
        "temperature": _base64(np.where(np.isfinite(tenth), tenth, MISSING), "<i2"),
        "day": _base64(numbers.day, "u1"),
        "parameter_deviation": _base64(np.where(np.isfinite(hundredth), hundredth, MISSING), "<i2"),
        "own": _base64(np.where(np.isfinite(share), share, 0), "u1"),
        "values": _base64(_table(numbers.data, "values"), "<f4"),
        "values_sigma": _base64(_table(numbers.data, "sigma"), "<f4"),
    }


def _table(data: Mapping[str, Any], name: str) -> Array:
    """One list of each arm, (arms, parameters); NaN where an arm has none."""
    count = len(data["parameters"])
    rows = [arm[name] if arm[name] is not None else [None] * count for arm in data["arms"]]
    return np.array(rows, dtype=float).reshape(len(rows), count)


def _largest(values: Array) -> Array:
    """Per row, NaN where nothing is known."""
    known = np.isfinite(values)
    largest = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(known.any(axis=1), largest, np.nan)


def _floats(values: Sequence[Any]) -> Array:
    return np.array(values, dtype=float)


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _base64(values: NDArray[Any], kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")
