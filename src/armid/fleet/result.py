"""What `armid fleet identify` finds out about a fleet, and fleet.json, the file it is written to.

SI units; ratios are fractions; arrays of an arm follow the lists `parameters`, `watched` and `dates` of the fleet.
"""

from __future__ import annotations

import json
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from armid._version import __version__
from armid.arrays import Array
from armid.escaping import one_line
from armid.files import FieldError, plain, read_result, shown, write_text
from armid.fleet.day import ALL, UnusedRecording
from armid.fleet.promise import Promise
from armid.fleet.words import when
from armid.notes import Note
from armid.signals.problems import plural

FORMAT = "armid fleet 2"


class RobotType(msgspec.Struct, frozen=True):
    """The type of arm; `joints` are names, in order."""

    name: str
    title: str
    source: str
    joints: tuple[str, ...]


class TypeParameter(msgspec.Struct, frozen=True):
    """One base parameter.

    Attributes:
        name: of the parameter.
        expression: the group it stands for.
        unit: of the numbers.
        mean, sigma: of the type; None where no arm's motion shows it.
        spread: standard deviation between arms; None where there are too few.
    """

    name: str
    expression: str
    unit: str
    mean: float | None
    sigma: float | None
    spread: float | None


class WatchedQuantity(msgspec.Struct, frozen=True):
    """What is followed from day to day.

    Attributes:
        name: of the parameter, or ``payload``.
        what: words.
        joint: from 1; None for the payload.
        unit: of the quantity.
        relative: whether deviations are fractions of the arm's own value.
        day_to_day: standard deviation of usual changes from day to day; None where it is not known, as below.
        per_degree: mean effect of temperature [1/°C].
        reference: temperature that values refer to [°C].
        least: step that is found nine times in ten in the median arm over these days, as deviations are told.
    """

    name: str
    what: str
    joint: int | None
    unit: str
    relative: bool
    day_to_day: float | None
    per_degree: float | None
    reference: float | None = None
    least: float | None = None


class ArmCourse(msgspec.Struct, frozen=True, eq=False):
    """An arm over the days that count.

    Attributes:
        days: indices into the fleet's dates.
        temperature: mean over joints [°C]; NaN where unknown, as below.
        deviation, deviation_sigma: of each day from the arm's own value, temperature taken off, by the names of what
            is watched; mass in the hand as if at the tool's origin, or at the centre of what the arm carried.
    """

    days: tuple[int, ...]
    temperature: Array
    deviation: dict[str, Array]
    deviation_sigma: dict[str, Array]


class ArmResult(msgspec.Struct, frozen=True, eq=False):
    """One arm; None for all that would be estimated where no day counts.

    Attributes:
        name: of the arm.
        state: ``good``, ``look`` or ``no data``.
        days: that count.
        samples, seconds: that were recorded.
        noise: rms of the residuals per joint [N m]; NaN where unknown.
        values, sigma: of the parameters, in the light of the fleet; NaN where nothing shows them.
        own: share of each value that the arm's own data determine.
        deviation: from the mean, in standard deviations; in small fleets from that of the others.
        unusual: names of parameters that make the arm stand out.
        possible, impossible: whether the values of its own data alone are physically consistent, and why not.
        fit, fit_sha256: file, of its own data alone, and its hash.
        key: of what the fit was made from.
        series: its course over the days.
    """

    name: str
    state: Literal["good", "look", "no data"]
    days: int
    samples: int
    seconds: float
    noise: Array | None = None
    values: Array | None = None
    sigma: Array | None = None
    own: Array | None = None
    deviation: Array | None = None
    unusual: tuple[str, ...] = ()
    possible: bool | None = None
    impossible: tuple[str, ...] = ()
    fit: str | None = None
    fit_sha256: str | None = None
    key: str | None = None
    series: ArmCourse | None = None


class WatchEntry(msgspec.Struct, frozen=True):
    """One reason to look at one arm.

    Attributes:
        robot: the arm's name.
        kind: ``friction``, ``payload``, ``offset``, ``load``, ``reversal``, ``sign``, ``dead``, ``misfit``, ``unusual``
            or ``data``.
        code: what it is, one of `armid.fleet.words`.
        since, until: dates; `until` is None if it lasts.
        joint: number, from 1; None if it is of no single joint.
        parameter: watched quantity; None if it is of none.
        shape: ``step`` or ``ramp``; None if it is of neither.
        size, size_sigma: of a step, or per day of a ramp; None if there is none.
        unit: of the size; ``1`` for a share.
        score: how sure, in standard deviations; None where that has no meaning.
        values: what else the sentence says.
    """

    robot: str
    kind: str
    code: str
    since: str | None = None
    until: str | None = None
    joint: int | None = None
    parameter: str | None = None
    shape: str | None = None
    size: float | None = None
    size_sigma: float | None = None
    unit: str | None = None
    score: float | None = None
    values: dict[str, Any] = {}

    @property
    def what(self) -> str:
        """For people, without the days."""
        own = {name: getattr(self, name) for name in ("joint", "parameter", "size", "size_sigma", "unit")}
        return str(Note(f"fleet.{self.code}", {**own, **self.values}))

    @property
    def sentence(self) -> str:
        """For people."""
        return f"{self.what} {when(self.since, self.until)}" if self.since else self.what


class FleetCounts(msgspec.Struct, frozen=True):
    """How much there is.

    Attributes:
        arms, arm_days, used: arms, their days, and those of them that count.
        samples, seconds: that were recorded.
        problems, watch: recordings that were not used, and reasons to look.
        misfit_days: left out because they fit nothing.
        kept: arm-days from an earlier run.
        work_s: time that it took [s].
    """

    arms: int
    arm_days: int
    used: int
    samples: int
    seconds: float
    problems: int
    watch: int
    misfit_days: int = 0
    kept: int = 0
    work_s: float = 0.0


class FleetResult(msgspec.Struct, frozen=True, eq=False, rename={"counts": "summary"}):
    """A fleet, identified.

    Attributes:
        robot: the type of arm.
        dates: all days with a recording, ISO, in order.
        parameters: of the type.
        watched: quantities that are followed.
        arms: by name.
        watch: what to look at, the most pressing first.
        problems: recordings that were not used.
        promise: about false alarms.
        counts: how much there is.
    """

    robot: RobotType
    dates: tuple[str, ...]
    counts: FleetCounts
    watch: tuple[WatchEntry, ...]
    problems: tuple[UnusedRecording, ...]
    promise: Promise
    parameters: tuple[TypeParameter, ...]
    watched: tuple[WatchedQuantity, ...]
    arms: tuple[ArmResult, ...]

    def __post_init__(self) -> None:
        """Refuse lists of arms that do not fit the days, parameters and watched quantities: a file can be damaged."""
        for number, arm in enumerate(self.arms, start=1):
            lists = [(getattr(arm, name), len(self.parameters)) for name in ("values", "sigma", "own", "deviation")]
            lists.append((arm.noise, len(self.robot.joints)))
            if (course := arm.series) is not None:
                parts = (course.deviation.get, course.deviation_sigma.get)
                daily = [course.temperature, *(part(one.name, np.empty(0)) for part in parts for one in self.watched)]
                lists += [(array, len(course.days)) for array in daily]
                lists += [(np.empty(int(0 <= day < len(self.dates))), 1) for day in course.days]
            if any(array is not None and array.shape != (length,) for array, length in lists):
                raise FieldError(f"arms[{number}]", "has lists that do not fit the fleet's joints, days or parameters")
        for number, day in enumerate(self.dates, start=1):
            try:
                date.fromisoformat(day)
            except ValueError:
                raise FieldError(f"dates[{number}]", f"is {shown(day)}; use a date such as 2026-01-31") from None

    @property
    def good(self) -> bool:
        """Whether every recording was used: none is bad, and none was left out because it fits nothing."""
        return not self.problems

    def to_data(self) -> dict[str, Any]:
        """For JSON: the attributes of the classes above, and a sentence for each entry of the watch list."""
        data = plain(self)
        for entry, row in zip(self.watch, data["watch"], strict=True):
            row["sentence"] = entry.sentence
        data["promise"]["sentence"] = self.promise.sentence
        return {"format": FORMAT, "armid": __version__, **data}

    def save(self, path: Path) -> None:
        """Write the file."""
        write_text(path, json.dumps(self.to_data(), ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> FleetResult:
        """Read a file that `save` wrote."""
        return read_result(path, cls, "a fleet result", FORMAT, "armid fleet identify")

    def summary(self, most: int | None = None) -> str:
        """For people, with at most so many lines about recordings that were not used."""
        counts = self.counts
        lines = [
            f"{self.robot.name}: {plural(counts.arms, 'arm')}, {counts.used} of {counts.arm_days} arm-days used "
            f"({counts.kept} known from before)"
        ]
        if counts.misfit_days:
            lines[0] += f"; {counts.misfit_days} left out because they fit nothing"
        if self.watch:
            lines.append(f"look at {plural(len({one.robot for one in self.watch}), 'arm')}:")
            lines += [f"  {one.robot}: {one.sentence}" for one in self.watch]
        else:
            unknown = "nothing to look at; whether an arm has changed is not known yet"
            lines.append("no arm needs attention" if self.promise.holds else unknown)
        lines.append(self.promise.sentence)
        if self.problems:
            lines.append(f"{plural(len(self.problems), 'recording')} could not be used:")
            unused = self.unused()
            lines += [f"  {' '.join(filter(None, (u.robot, u.days)))}, {u.what}: {u.reason}" for u in unused[:most]]
            if most is not None and len(unused) > most:
                lines.append(f"  … and {len(unused) - most} more, see fleet.html")
        return "\n".join(lines)

    def unused(self) -> list[UnusedDays]:
        """Recordings that were not used; those of an arm's days in a row for one reason are one entry."""
        found: dict[tuple[str, str, str], set[str]] = {}
        for one in self.problems:
            found.setdefault((one.robot, one.file, one.reason), set()).add(one.date)
        entries = []
        for (robot, file, reason), on in found.items():
            days = groupby(sorted({*self.dates, *on}), on.__contains__)
            entries += [UnusedDays(robot, list(run), file, reason) for holds, run in days if holds]
        return sorted(entries)


class UnusedDays(NamedTuple):
    """Recordings of one arm that were not used for one reason, on days that follow one another."""

    robot: str
    dates: list[str]
    file: str
    reason: str

    @property
    def days(self) -> str:
        """For people."""
        return " to ".join(dict.fromkeys((self.dates[0], self.dates[-1])))

    @property
    def what(self) -> str:
        """For people."""
        return one_line(self.file) if self.file != ALL else "whole days" if len(self.dates) > 1 else "the whole day"


def rounded(values: Any, digits: int = 6) -> Any:
    """A number, or an array of numbers, to some significant digits; a number that is not finite is None."""
    if values is None:
        return None
    if np.ndim(values):
        return np.array([float(f"{value:.{digits}g}") for value in np.ravel(values)]).reshape(np.shape(values))
    return float(f"{float(values):.{digits}g}") if np.isfinite(values) else None
