"""Building a report from the evidence, section by section."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armid.display import short
from armid.errors import ArmidError
from armid.estimation.fit import Fit
from armid.excitation.plan import Plan
from armid.files import plain, write_text
from armid.logs.log import Log
from armid.progress import report_progress
from armid.reporting.evidence import Evidence
from armid.reporting.html import Section
from armid.reporting.page import plotly_script, render
from armid.reporting.sections import SECTIONS
from armid.validation.result import Validation

# Of a fit and a validation: what no reader of a page needs, and what is large.
_HEAVY = ("factor", "covariance", "robot", "weights")


@dataclass(frozen=True, eq=False)
class Report:
    """A finished report.

    Attributes:
        title: of the page.
        subtitle: what it is of.
        sections: in reading order.
        data: the numbers as they are in fit.json and validation.json; the page holds them too.
    """

    title: str
    subtitle: str
    sections: tuple[Section, ...]
    data: Mapping[str, Any]

    def __repr__(self) -> str:
        return short(self, self.title, *(section.name for section in self.sections))

    def html(self) -> str:
        """The page, with everything inside."""
        return render(self.title, self.subtitle, self.sections, self.data)

    def summary(self) -> str:
        """The sentences that open the sections."""
        return "\n".join(f"{section.title}: {section.sentence}" for section in self.sections)

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return dict(self.data)

    def save(self, path: str | Path) -> None:
        """Write the page; the file is either complete or not there."""
        write_text(Path(path), self.html())


def build(evidence: Evidence, *, title: str | None = None) -> Report:
    """Make all sections that the evidence can fill.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    plotly_script()  # before the work
    robot = evidence.fit.robot
    sections = []
    for number, make in enumerate(SECTIONS):
        report_progress(f"section {number + 1} of {len(SECTIONS)}", number / len(SECTIONS))
        if (section := make(evidence)) is not None:
            sections.append(section)
    subtitle = robot.title or f"{robot.n_joints} joints, {evidence.fit.identifiability.counts[1]} parameters"
    return Report(title or f"{robot.name}: identified dynamics", subtitle, tuple(sections), _data(evidence))


def report(
    fit: Fit,
    check: Validation | None = None,
    *,
    path: str | Path | None = None,
    plan: Plan | None = None,
    logs: Log | Sequence[Log] = (),
    warmup: Mapping[str, Any] | Sequence[Any] | None = None,
    audit: Any = None,
    payload: Any = None,
    tracking: Any = None,
    inspection: Mapping[str, Any] | None = None,
    exports: Any = (),
    title: str | None = None,
) -> Report:
    """A report of a fit as one HTML file that needs no network.

    Args:
        fit: the identified model.
        check: its validation on other data.
        path: file to write; None to write none.
        plan: the trajectory that was designed.
        logs: what was recorded; adds spectra and the nominal model's torque.
        warmup: fits of the warm-up (`WarmUpFit`), or what `armid warmup` writes.
        audit: whether the parameters are physically consistent: a mapping, or an object with ``to_data()``.
        payload: what the arm carries, likewise.
        tracking: how controllers followed a path, likewise.
        inspection: reports of the log doctor by the logs’ names, under ``logs``.
        exports: what `armid.export` says of each file: an object with ``to_data()``, or mappings.
        title: of the page.

    Raises:
        MissingExtraError: plotly is not installed.
    """
    if not isinstance(fit, Fit):
        raise ArmidError(
            f"a report is made of a Fit, not of a {type(fit).__name__}; see armid.identify, armid.load_fit"
        )
    found = build(
        Evidence(
            fit=fit,
            check=check,
            plan=plan,
            logs=(logs,) if isinstance(logs, Log) else tuple(logs),
            warmup=_warmup(warmup),
            audit=_mapping(audit),
            payload=_mapping(payload),
            tracking=_mapping(tracking),
            inspection=inspection,
            exports=_exports(exports),
        ),
        title=title,
    )
    if path is not None:
        found.save(path)
    return found


def _mapping(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, tuple | list):  # as `audit` returns
        value = value[0] if value else None
    if value is None or isinstance(value, Mapping):
        return value
    data: Mapping[str, Any] = value.to_data()
    return data


def _exports(value: Any) -> tuple[Mapping[str, Any], ...]:
    data = value.to_data() if hasattr(value, "to_data") else value
    return tuple(data.get("files", ()) if isinstance(data, Mapping) else data)


def _warmup(value: Any) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return value
    return {"joints": [fit.to_data() for fit in value]}


def _data(evidence: Evidence) -> dict[str, Any]:
    """The numbers behind the page, in full, by the names they have in the files."""
    data: dict[str, Any] = {"fit": _light(evidence.fit.to_data())}
    if evidence.check is not None:
        data["validation"] = _light(evidence.check.to_data())
    if evidence.plan is not None:
        data["plan"] = {key: value for key, value in evidence.plan.to_data().items() if key != "trajectory"}
    for name in ("warmup", "audit", "payload", "tracking", "inspection"):
        if getattr(evidence, name) is not None:
            data[name] = getattr(evidence, name)
    if evidence.exports:
        data["exports"] = list(evidence.exports)
    return {key: _plain(value) for key, value in data.items()}


def _light(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in _HEAVY}


def _plain(value: Any) -> Any:
    """Data that JSON can hold, without series: figures hold what a page shows of those."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items() if key != "series"}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return plain(value)
