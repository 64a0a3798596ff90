"""The pictures of each screen: sections of the report, written as pages of their own that a screen shows in a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from armid.excitation.plan import load_plan
from armid.figures import Block, Figure, Panel, level, line, thinned
from armid.files import write_text
from armid.logs.files import open_log, read_copy
from armid.logs.log import Log
from armid.reporting.evidence import Evidence, gather
from armid.reporting.html import Cell, Column, Row, Section, bullets, table
from armid.reporting.page import render
from armid.reporting.sections.friction import friction
from armid.reporting.sections.motion import planned, planned_motion, replayed
from armid.reporting.sections.parameters import conditioning, links, parameters
from armid.reporting.sections.results import exports, payload, tracking
from armid.reporting.sections.torque import errors, residuals, torque
from armid.reporting.sections.verdict import remarks, verdict
from armid.robot.robot import Robot
from armid.run.procedure import robot_of
from armid.signals.doctor import examine
from armid.signals.doctor.finding import Examination
from armid.studio.folder import VIEWS, read_settings
from armid.validation import validate

ROWS = 20_000  # rows of a log that are looked at while its recipe is being corrected
POINTS = 1500  # of a curve
_STYLE = """
body>header,body>nav,body>footer{display:none}
body{display:block;max-width:none;padding:0 .2rem}
section:first-child{padding-top:0}
h2{font-size:1.15rem}
"""


@dataclass(frozen=True)
class ScreenView:
    """What a screen shows, and the files of the folder that it is made from: the first must be there."""

    sources: tuple[str, ...]
    sections: Callable[[Path], Sequence[Section | None]]


def make_view(folder: Path, name: str) -> None:
    """Write the page of a view; nothing where what it is made from is not there."""
    view = VIEW[name]
    if (folder / view.sources[0]).exists():
        write_view(folder, name, view.sections(folder))


def write_view(folder: Path, name: str, sections: Sequence[Section | None]) -> None:
    """Write sections as a page that needs no network."""
    page = render(name, "", [section for section in sections if section is not None], {}, style=_STYLE)
    write_text(folder / VIEWS / f"{name}.html", page)


def view_file(folder: Path, name: str) -> Path | None:
    """The page of a view; None where it is older than what it is made from, or not there."""
    path = folder / VIEWS / f"{name}.html"
    sources = [folder / source for source in VIEW[name].sources if (folder / source).exists()]
    if not path.is_file() or not (folder / VIEW[name].sources[0]).exists():
        return None
    return path if all(path.stat().st_mtime_ns >= source.stat().st_mtime_ns for source in sources) else None


def _motion(folder: Path) -> list[Section]:
    robot, plan = robot_of(read_settings(folder)), load_plan(folder / "plan.json")
    first = planned(plan, robot)
    open_points = [*plan.unchecked, *(str(note) for note in plan.notes if not note.code.startswith("excitation.unch"))]
    said = ["<h3>Not checked, or assumed</h3>", bullets(open_points, "warnings")] if open_points else []
    return [replace(first, parts=[*said, *first.parts], folded=False), replayed(robot, *planned_motion(plan))]


def _recording(folder: Path) -> list[Section]:
    robot = robot_of(read_settings(folder))
    paths = [path for stem in ("training", "validation") for path in sorted(folder.glob(f"{stem}*.parquet"))]
    logs = [(path.stem, read_copy(path)) for path in paths]
    return [recorded(name, log, examine(log, robot)) for name, log in logs]


def preview(paths: Sequence[str], recipe: str | None, effort: str | None, robot: Robot) -> list[Section]:
    """The first rows of logs as they are read with a recipe, and what the doctor says of them."""
    sections = []
    for number, path in enumerate(paths, start=1):
        log = next(iter(open_log(path, recipe, effort=effort).blocks(ROWS)))
        sections.append(recorded(f"log{number}", log, examine(log, robot)))
    return sections


def recorded(name: str, log: Log, report: Examination) -> Section:
    """A log: findings first, each pinned to its place in the curves below."""
    kept, time = thinned(len(log), POINTS), log.time - log.time[0]
    channels = [channel for channel in ("position", "velocity", "effort", "current") if channel in log]
    units = {"position": "rad", "velocity": "rad/s", "effort": "N m", "current": "A"}
    ends = [float(time[0]), float(time[-1])]
    blocks = []
    for j, joint in enumerate(log.joints):
        places = [f for f in report.findings if f.severity != "info" and f.joint in (joint, None)]
        pins = [level(f.where.start_s - log.time[0], vertical=True) for f in places if f.where.start_s is not None]
        codes = ", ".join(dict.fromkeys(f.code for f in places if f.joint == joint))
        panels = []
        for c in channels:
            trace = line("measured", time[kept], log[c][kept, j])
            corner = codes if c == channels[0] else ""
            panels.append(Panel(units[c], [trace, *pins], c, corner, x_range=ends, x_title="time [s]"))
        blocks.append(Block(joint, [panels], (95.0,)))
    pinned = any(f.where.start_s is not None for f in report.findings if f.severity != "info")
    marked = {"limit": "where a finding begins"} if pinned else {}
    figure = Figure(name, blocks, f"signals of {name}", {"measured": "as read with the recipe", **marked})
    rows = [
        Row((Cell(f.code, code=True), Cell(f.joint or "all"), Cell(f.severity), Cell(f"{f.what} {f.advice}")))
        for f in report.findings
    ]
    columns = [Column(word, words=True) for word in ("finding", "joint", "severity", "what, and what to do")]
    found = table(columns, rows, caption="what the log doctor found", fold=8, stacked=True) if rows else ""
    facts = report.facts
    rate = "" if facts.rate_hz is None else f" at {facts.rate_hz:.4g} Hz"
    worst = report.at_least("warning")
    doctor = f"{len(worst)} findings to look at" if worst else "nothing to object to"
    sentence = f"{facts.rows} rows, {facts.duration_s:.4g} s{rate}; the log doctor: {doctor}."
    return Section(name, Path(log.info.source).name or name, sentence, [found, figure])


def _model(folder: Path) -> list[Section | None]:
    evidence = gather(folder)
    logs = [log for log, _ in evidence.training]
    shown = replace(evidence, check=validate(evidence.fit, logs, allow_training=True)) if logs else evidence
    return [verdict(evidence), torque(shown), friction(evidence), links(evidence), parameters(evidence)]


def _evidence(folder: Path) -> list[Section | None]:
    evidence = gather(folder)
    return [make(evidence) for make in (verdict, torque, errors, residuals, conditioning, remarks)]


def _use(folder: Path) -> list[Section | None]:
    evidence: Evidence = gather(folder)
    found = [make(evidence) for make in (payload, tracking, exports)]
    return [section for section in found if section is not None and not section.empty] or [verdict(evidence)]


#: By the name of the screen.
VIEW = {
    "motion": ScreenView(("plan.json",), _motion),
    "recording": ScreenView(("inspection.json",), _recording),
    "model": ScreenView(("fit.json", "validation.json", "audit.json"), _model),
    "evidence": ScreenView(("validation.json", "fit.json"), _evidence),
    "use": ScreenView(("fit.json", "payload.json", "tracking.json", "exports/EXPORT.json"), _use),
}
