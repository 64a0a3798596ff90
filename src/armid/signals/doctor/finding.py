"""What the log doctor says: findings, facts, and the examination that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.files import plain
from armid.logs.log import Log
from armid.notes import Note, note
from armid.signals.problems import plural
from armid.signals.repair import Jump
from armid.signals.words import finding_entry, sentence

SEVERITIES = ("info", "warning", "error")
LONG_AGO = 1e6  # first time of a log [s] from which on its clock counts from long ago
_SHOWN = 20  # rows that a finding lists


@dataclass(frozen=True)
class Where:
    """A place in a log.

    Attributes:
        words: for people.
        rows: the first row numbers concerned, from 0, at most 20; empty where it is the whole log.
        count: how many rows are concerned; 0 where it is the whole log.
        start_s, stop_s: time of the first and last of them [s]; None where it is the whole log.
    """

    words: str = "whole log"
    rows: tuple[int, ...] = ()
    count: int = 0
    start_s: float | None = None
    stop_s: float | None = None


@dataclass(frozen=True)
class Finding:
    """One thing the doctor saw; `found` makes it.

    Attributes:
        code: stable name of the kind of finding, such as ``irregular-timestamps``.
        severity: ``info`` (good to know), ``warning`` (harms the result unless treated), ``error`` (do not use as is).
        joint: name of the joint concerned; None if all are, or none.
        where: rows and time.
        confidence: how sure the doctor is, 0 to 1.
        values: the numbers of the sentence, by name, in SI units.
        variant: which of the code's sentences in findings.yaml it takes; empty for the usual one.
    """

    code: str
    severity: str
    joint: str | None
    where: Where
    confidence: float
    values: Mapping[str, Any] = field(default_factory=dict)
    variant: str = ""

    @property
    def what(self) -> str:
        """One sentence with numbers."""
        return self._text("what")

    @property
    def advice(self) -> str:
        """What to do."""
        return self._text("advice")

    def _text(self, part: str) -> str:
        return sentence(finding_entry(self.code, self.variant, part), **{"joint": self.joint, **self.values})

    @property
    def note(self) -> Note:
        """The finding as a note on a data set."""
        return note("signals.finding", finding=self.code, variant=self.variant, joint=self.joint, **self.values)

    def as_data(self) -> dict[str, Any]:
        """As plain data."""
        said = {"confidence": round(self.confidence, 3), "what": self.what, "advice": self.advice}
        return {name: value for name, value in (plain(self) | said).items() if name != "variant"}


def found(
    code: str,
    joint: str | None = None,
    where: Where | None = None,
    *,
    confidence: float = 1.0,
    severity: str = "",
    variant: str = "",
    **values: Any,
) -> Finding:
    """A finding of a code that findings.yaml knows; the severity is that of the file unless given."""
    severity = severity or finding_entry(code, variant, "severity")
    return Finding(code, severity, joint, where or Where(), confidence, values, variant)


def found_jump(log: Log, jump: Jump) -> Finding:
    """The finding of a position that jumps."""
    joint, size = max(jump.sizes.items(), key=lambda item: abs(item[1]))
    of = ", ".join(log.joints[index] for index in jump.sizes)
    time_s = float(log.time[jump.row])
    values: dict[str, Any] = {"size": size, "time_s": time_s, "at": in_words(log.time, time_s), "of": of}
    only, variant = (None, "joined") if jump.kind == "joined" else (log.joints[joint], jump.kind)
    variant = "" if variant == "moved" else variant
    return found("position-jump", only, at_rows(log.time, [jump.row]), variant=variant, **values)


@dataclass(frozen=True)
class JointFacts:
    """How one joint moved.

    Attributes:
        name: of the joint.
        lower, upper: range of its position, outliers left out [rad or m]; None without positions.
        speed: 99th percentile of its speed [rad/s or m/s]; None without positions.
        effort_rms: of torque or current about its mean [N m, N or A]; None without it.
        effort_noise: guess of the standard deviation of its noise, from the roughness of neighbouring samples; None
            without it.
    """

    name: str
    lower: float | None
    upper: float | None
    speed: float | None
    effort_rms: float | None
    effort_noise: float | None


@dataclass(frozen=True)
class Facts:
    """What is in the log.

    Attributes:
        rows: number of samples.
        duration_s: from the earliest to the latest sample [s].
        rate_hz: inverse of the median step between samples; None with fewer than two samples.
        period_s, periods: of the motion and how many whole ones there are; None and 0 if it is not periodic.
        channels: names.
        joints: how each joint moved.
        position_unit: of the joints' positions: rad, or "rad or m" where the robot has sliding joints.
        effort_unit: of the joints' effort: N m or A; with sliding joints "N m or N".
    """

    rows: int
    duration_s: float
    rate_hz: float | None
    period_s: float | None
    periods: int
    channels: tuple[str, ...]
    joints: tuple[JointFacts, ...]
    position_unit: str = "rad"
    effort_unit: str = "N m"


@dataclass(frozen=True)
class Examination:
    """Everything the doctor found in one log.

    Attributes:
        source: the log.
        facts: what is in it.
        findings: the worst first.
    """

    source: str
    facts: Facts
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def of(self, code: str) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.code == code)

    def at_least(self, severity: str) -> tuple[Finding, ...]:
        """The findings that are at least that bad."""
        least = SEVERITIES.index(severity)
        return tuple(finding for finding in self.findings if SEVERITIES.index(finding.severity) >= least)

    def as_data(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        findings = [finding.as_data() for finding in self.findings]
        return {"source": self.source, "usable": self.usable, "facts": plain(self.facts), "findings": findings}

    def summary(self) -> str:
        """For people."""
        return "\n".join(_lines(self)) + "\n"


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first, the surest first among them; otherwise in the order they came."""
    return tuple(sorted(findings, key=lambda finding: (-SEVERITIES.index(finding.severity), -finding.confidence)))


def in_words(time: Array, start: float, stop: float | None = None) -> str:
    """A time of a log, or a span; of a clock that counts from long ago, after the log's first sample."""
    first = float(time[np.isfinite(time)][0])
    origin, words = (first, " after the start") if abs(first) > LONG_AGO else (0.0, "")
    span = f"{start - origin:.6g}" if stop is None else f"{start - origin:.6g}–{stop - origin:.6g}"
    return f"{span} s{words}"


def at_rows(time: Array, rows: ArrayLike) -> Where:
    """The place of some rows of a log."""
    index = np.asarray(rows, dtype=np.int64)
    if not len(index):
        return Where()
    stamps = time[index][np.isfinite(time[index])]
    start, stop = (float(stamps.min()), float(stamps.max())) if len(stamps) else (None, None)
    count = len(index)
    span = "" if start is None or stop is None else f" ({in_words(time, start, None if count == 1 else stop)})"
    if count == 1:
        words = f"row {index[0]}"
    elif index[-1] - index[0] == count - 1:
        words = f"rows {index[0]}–{index[-1]}"
    else:
        shown = ", ".join(str(row) for row in index[:5])
        words = f"rows {shown}" + (f" and {count - 5} more" if count > 5 else "")
    return Where(words + span, tuple(int(row) for row in index[:_SHOWN]), count, start, stop)


def _lines(report: Examination) -> Iterable[str]:
    facts = report.facts
    rate = "" if facts.rate_hz is None else f" at {facts.rate_hz:.5g} Hz"
    yield f"{report.source or 'log'}: {plural(facts.rows, 'row')}, {facts.duration_s:.4g} s{rate}"
    period = (
        "no period found" if facts.period_s is None else f"period {facts.period_s:.6g} s, {facts.periods} whole ones"
    )
    yield f"channels {', '.join(facts.channels) or 'none'}; {period}"
    yield ""
    width = max((len(joint.name) for joint in facts.joints), default=5)
    angle, effort = facts.position_unit, facts.effort_unit
    speed = " or ".join(f"{unit}/s" for unit in angle.split(" or "))
    units = (angle, angle, speed, effort, effort)
    heads = [f"{name} [{unit}]" for name, unit in zip(_COLUMNS, units, strict=True)]
    yield f"{'joint':<{width}}  {'  '.join(heads)}"
    for joint in facts.joints:
        numbers = (joint.lower, joint.upper, joint.speed, joint.effort_rms, joint.effort_noise)
        words = ["–" if value is None else format(value, ".3g") for value in numbers]
        cells = [f"{word:>{len(head)}}" for word, head in zip(words, heads, strict=True)]
        yield f"{joint.name:<{width}}  {'  '.join(cells)}"
    yield ""
    if not report.findings:
        yield "nothing found"
    for finding in report.findings:
        about = f" {finding.joint}" if finding.joint else ""
        yield f"{finding.severity.upper():<7} {finding.code}{about}: {finding.what} [{finding.confidence:.0%} sure]"
        yield f"        where: {finding.where.words}"
        yield f"        advice: {finding.advice}"


_COLUMNS = ("from", "to", "speed", "effort rms", "effort noise")
