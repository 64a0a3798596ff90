"""What `armid fleet identify` finds out about a fleet, and the file it is written to.

``fleet.json`` holds one object (SI units; ratios are fractions; arrays of an arm follow the lists named below):

- ``format``, ``armid``: version; ``robot``: ``name``, ``title``, ``source``, ``joints`` (names, in order);
- ``dates``: all days with a recording, ISO, in order;
- ``parameters[]``: ``name``, ``expression`` (the group it stands for), ``unit``, ``mean`` and ``sigma`` (of the type),
  ``spread`` (standard deviation between arms; null where there are too few);
- ``watched[]``: ``name``, ``what`` (words), ``joint`` (from 1 or null), ``unit``, ``relative`` (whether deviations are
  fractions of the arm's own value), ``day_to_day`` (standard deviation of usual changes from day to day),
  ``per_degree`` (mean effect of temperature [1/°C]) and ``reference`` (temperature that values refer to [°C]), null
  where they are not known;
- ``arms[]``: ``name``, ``state`` (``good``, ``look`` or ``no data``), ``days`` (used), ``samples``, ``seconds``,
  ``noise`` (rms of the residuals per joint [N m]), ``values``, ``sigma``, ``own`` (share that the arm's own data
  decided) and ``deviation`` (from the mean, in standard deviations; in small fleets from that of the others), each in
  the order of ``parameters``; ``unusual`` (names), ``possible`` (audit: whether an arm with the values of its own
  data alone can exist) and ``impossible`` (why not), ``fit`` (file, of its own data alone; null if there is none) and
  ``key`` (of what it was made from),
  ``series``: ``days`` (indices into ``dates`` of the days that count), ``temperature`` (mean over joints [°C]) and, by
  the names of ``watched``, ``deviation`` and
  ``deviation_sigma`` of each day from the arm's own value, temperature taken off (null where unknown; mass in the hand
  as if at the tool's origin, or at the centre of what the arm was found to carry); an arm without any day that counts
  has ``null`` for all that would be estimated;
- ``watch[]``: what to look at, the most pressing first: ``arm``, ``kind`` (``friction``, ``payload``, ``offset``,
  ``load``, ``reversal``, ``sign``, ``dead``, ``misfit``, ``unusual``, ``data``), ``joint`` (from 1 or null),
  ``parameter`` (of ``watched``, or null), ``since`` and ``until`` (dates; until is null if it lasts), ``shape``
  (``step``, ``ramp`` or null), ``size`` and ``size_sigma`` (of a step, or per day of a ramp), ``unit``, ``score``
  (standard deviations), ``sentence``;
- ``problems[]``: recordings that were not used: ``robot``, ``date``, ``file`` (``all`` for the whole day: a torque is
  wrong, or the day fits nothing), ``reason``;
- ``false_alarms``: promised rate per arm and day; ``threshold``: score above which a change is told;
- ``summary``: ``arms``, ``arm_days``, ``used``, ``misfit_days`` (left out because they fit nothing), ``kept`` (from an
  earlier run), ``samples``, ``seconds`` (recorded), ``problems``, ``watch``, ``work_s``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid._version import __version__
from armid.errors import ArmidError
from armid.files import read_text, write_text

FORMAT = "armid fleet 1"
DIGITS = 6


@dataclass(frozen=True, eq=False)
class FleetResult:
    """A fleet, identified; the entries are those of the file that the module's docstring describes.

    Attributes:
        robot: the type of arm.
        dates: all days, ISO.
        parameters: what was estimated.
        watched: what is followed from day to day.
        arms: one entry per arm.
        watch: what to look at.
        problems: recordings that were not used.
        false_alarms: promised rate per arm and day.
        threshold: score above which a change is told.
        summary_data: counts.
    """

    robot: Mapping[str, Any]
    dates: tuple[str, ...]
    parameters: tuple[Mapping[str, Any], ...]
    watched: tuple[Mapping[str, Any], ...]
    arms: tuple[Mapping[str, Any], ...]
    watch: tuple[Mapping[str, Any], ...]
    problems: tuple[Mapping[str, Any], ...]
    false_alarms: float
    threshold: float
    summary_data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether every recording was used: none is bad, and none was left out because it fits nothing."""
        return not self.problems

    def to_data(self) -> dict[str, Any]:
        """For JSON; see the module's docstring."""
        return {
            "format": FORMAT,
            "armid": __version__,
            "robot": dict(self.robot),
            "dates": list(self.dates),
            "summary": dict(self.summary_data),
            "watch": [dict(one) for one in self.watch],
            "problems": [dict(one) for one in self.problems],
            "false_alarms": self.false_alarms,
            "threshold": self.threshold,
            "parameters": [dict(one) for one in self.parameters],
            "watched": [dict(one) for one in self.watched],
            "arms": [dict(one) for one in self.arms],
        }

    def save(self, path: Path) -> None:
        """Write the file."""
        write_text(path, json.dumps(self.to_data(), ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> FleetResult:
        """Read a file that `save` wrote."""
        try:
            data = json.loads(read_text(path))
        except ValueError as error:
            raise ArmidError(f"{path}: is not JSON ({error}); write it with armid fleet identify") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ArmidError(
                f'{path}: is not a fleet result with format "{FORMAT}"; write it with armid fleet identify'
            )
        lists = ("dates", "parameters", "watched", "arms", "watch", "problems")
        return cls(
            robot=data["robot"],
            **{name: tuple(data[name]) for name in lists},
            false_alarms=data["false_alarms"],
            threshold=data["threshold"],
            summary_data=data["summary"],
        )

    def summary(self) -> str:
        """For people."""
        counts = self.summary_data
        lines = [
            f"{self.robot['name']}: {_number(counts['arms'], 'arm')}, {counts['used']} of {counts['arm_days']} "
            f"arm-days used ({counts['kept']} known from before)"
        ]
        if counts.get("misfit_days"):
            lines[0] += f"; {counts['misfit_days']} left out because they fit nothing"
        if self.watch:
            lines.append(f"look at {_number(len({one['arm'] for one in self.watch}), 'arm')}:")
            lines += [f"  {one['arm']}: {one['sentence']}" for one in self.watch]
        else:
            lines.append("no arm needs a look")
        if self.problems:
            lines.append(f"{_number(len(self.problems), 'recording')} could not be used:")
            lines += [f"  {one}" for one in self._told_problems()]
        return "\n".join(lines)

    def _told_problems(self) -> list[str]:
        """Recordings that were not used; those of an arm's days in a row for one reason are one line."""
        order = {date: index for index, date in enumerate(self.dates)}
        found: dict[tuple[str, str, str], list[list[str]]] = {}
        for one in self.problems:
            stretches = found.setdefault((one["robot"], one["file"], one["reason"]), [])
            if stretches and order.get(one["date"], -1) == order.get(stretches[-1][-1], -9) + 1:
                stretches[-1].append(one["date"])
            else:
                stretches.append([one["date"]])
        lines = []
        for (robot, file, reason), stretches in found.items():
            for some in stretches:
                when = f" {some[0]}" if some[0] else ""
                when += f" to {some[-1]}" if len(some) > 1 else ""
                what = ("the whole day" if len(some) == 1 else "whole days") if file == "all" else file
                lines.append(f"{robot}{when}, {what}: {reason}")
        return lines


def plain(values: Any, digits: int = DIGITS) -> Any:
    """Numbers for JSON: rounded to some digits, null where they are not finite."""
    if isinstance(values, np.ndarray | Sequence) and not isinstance(values, str):
        return [plain(value, digits) for value in values]
    if isinstance(values, bool | np.bool_):
        return bool(values)
    value = float(values)
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
