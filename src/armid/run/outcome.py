"""What a run gives: the numbers that matter, read from its files, and what they say in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armid.estimation.fit import load_fit
from armid.files import Kind, checked, plain
from armid.reporting.evidence import Inspection, load_mapping
from armid.reporting.sections.results import TrackedEntries
from armid.run.goal import GoalStanding
from armid.run.stages import Done
from armid.signals.problems import plural
from armid.signals.words import sentence
from armid.validation import Validation

NOT_EXPORTED = "NOT-EXPORTED.txt"


@dataclass(frozen=True)
class Outcome:
    """What a run gives.

    Attributes:
        folder: where everything lies.
        stages: what was done or kept.
        check: the validation, with its verdict and reasons.
        numbers: those that matter, by stable names; shares are fractions, lengths in m.
        report: the page to open.
        note: warnings of the log doctor, and what could not be exported and why; empty if there are none.
    """

    folder: Path
    stages: tuple[Done, ...]
    check: Validation
    numbers: dict[str, Any]
    report: Path
    note: str = ""

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "folder": str(self.folder),
            "report": str(self.report),
            **{name: plain(getattr(self.check, name)) for name in ("verdict", "good", "usable_for", "reasons")},
            "numbers": self.numbers,
            "note": self.note,
            "stages": [{"stage": d.stage, "kept": d.kept, "seconds": round(d.seconds, 2)} for d in self.stages],
        }


def notes_of(folder: Path) -> str:
    """What the log doctor warns of, and what an export could not write and why; a line each."""
    logs = _read(folder / "inspection.json", Inspection).logs
    codes = [found.code for log in logs.values() for found in log.findings if found.severity != "info"]
    lines = []
    if codes:
        named = ", ".join(dict.fromkeys(codes))
        lines.append(f"log doctor: {plural(len(codes), 'warning')} ({named}); the report says more")
    path = folder / "exports" / NOT_EXPORTED
    if path.is_file():
        lines.append(path.read_text(encoding="utf-8").strip())
    return "\n".join(lines)


def numbers_of(folder: Path, check: Validation, rounds: int | None = None) -> dict[str, Any]:
    """What a reader wants to know first; taken from the results, never computed again.

    Args:
        folder: of the run.
        check: its validation.
        rounds: experiments that were made for a goal; None without one.
    """
    determined, parameters = load_fit(folder / "fit.json").identifiability.counts
    worst = max(check.joints, key=lambda joint: joint.nrms_moving)
    noisy = [joint for joint in check.joints if np.isfinite(joint.noise_ratio)]
    loudest = max(noisy, key=lambda joint: joint.noise_ratio, default=None)
    tracked, path, audited = {}, folder / "tracking.json", folder / "audit.json"
    if path.exists():
        runs = _read(path, TrackedEntries).runs
        tracked = {run.controller: run.mean_cartesian_error for run in reversed(runs)}  # the first counts
    return {
        "parameters": parameters,
        "parameters_determined": determined,
        "relative_error": check.relative_error,
        "relative_error_moving": check.relative_error_moving,
        "worst_joint": worst.name,
        "worst_nrms_moving": worst.nrms_moving,
        "noisiest_joint": None if loudest is None else loudest.name,
        "largest_noise_ratio": None if loudest is None else loudest.noise_ratio,
        "possible": checked(load_mapping(audited).get("possible"), bool, str(audited)),
        # Mean distance from the path [m] with the identified model and with feedback alone.
        "tracking_error_m": tracked.get("computed-torque"),
        "pid_error_m": tracked.get("pid"),
        **({} if rounds is None else {"until": _goal(folder, rounds)}),
    }


def _goal(folder: Path, rounds: int) -> dict[str, Any]:
    """How far the goal is after so many experiments, and the plan of the next one, where it needs one."""
    plan, said = f"next-{rounds}/plan.json", standing_of(folder, rounds).to_data()
    return {"experiments": rounds, **said, "plan": plan if (folder / plan).is_file() else None}


def in_words(numbers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Five of the numbers, each as what it is and how much."""
    n = numbers
    if "until" in n:
        yield "goal", f"{n['until']['text']} [{n['until']['experiments']} experiments]"
    yield "parameters determined by the data", f"{n['parameters_determined']} of {n['parameters']}"
    rows = [
        ("held-out torque error, all joints", "{x:plain2} % of the torque", 100 * n["relative_error_moving"], ""),
        ("worst joint while it moves", "{x:plain2} % ({joint})", 100 * n["worst_nrms_moving"], n["worst_joint"]),
    ]
    if n["largest_noise_ratio"] is not None:
        rows.append(("largest error over noise", "{x:plain2} ({joint})", n["largest_noise_ratio"], n["noisiest_joint"]))
    yield from ((name, sentence(text, x=x, joint=joint)) for name, text, x, joint in rows)
    if n["tracking_error_m"] is not None:
        alone = "" if n["pid_error_m"] is None else f" (PID alone {1e3 * n['pid_error_m']:.2g} mm)"
        yield "tracking, mean distance from the path", f"{1e3 * n['tracking_error_m']:.2g} mm{alone}"
    else:
        yield "physically consistent", "yes" if n["possible"] else "no"


def standing_of(folder: Path, number: int) -> GoalStanding:
    """How far the goal was after an experiment."""
    return _read(folder / f"next-{number}" / "standing.json", GoalStanding)


def _read(path: Path, kind: type[Kind]) -> Kind:
    """A file of the folder, which anybody may have written."""
    return checked(load_mapping(path), kind, str(path))
