"""The procedure: model, design, warm-up, excitation, inspection, identification, validation, audit, use, report."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from armid._version import __version__
from armid.errors import ArmidError
from armid.estimation.fit import load_fit
from armid.files import write_text
from armid.progress import Progress
from armid.robot.load import robot_digest
from armid.run import work
from armid.run.checks import check_settings
from armid.run.settings import Settings
from armid.run.stages import Done, Stage, Workplace, carry_out
from armid.run.verdict import numbers_that_matter
from armid.validation.result import load_validation


@dataclass(frozen=True)
class Outcome:
    """What a run gives.

    Attributes:
        folder: where everything lies.
        stages: what was done or kept.
        good: the validation's verdict.
        numbers: those that matter, by stable names; shares are fractions, lengths in m.
        report: the page to open.
        note: warnings of the log doctor, and what could not be exported and why; empty if there are none.
    """

    folder: Path
    stages: tuple[Done, ...]
    good: bool
    numbers: dict[str, Any]
    report: Path
    note: str = ""

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "folder": str(self.folder),
            "report": str(self.report),
            "good": self.good,
            "numbers": self.numbers,
            "note": self.note,
            "stages": [{"stage": d.stage, "kept": d.kept, "seconds": round(d.seconds, 2)} for d in self.stages],
        }


def run(
    settings: Settings,
    folder: str | Path,
    *,
    progress: Progress | None = None,
    tell: Callable[[Done], None] | None = None,
) -> Outcome:
    """Carry out the whole procedure, or what is left of it.

    Args:
        settings: what to do.
        folder: for all results; made if it is not there. A run that was interrupted is gone on with; stages whose
            inputs have not changed are not repeated.
        progress: told what is done and which share of it.
        tell: told when a stage has ended.
    """
    folder, robot = Path(folder), work.robot_of(settings)
    check_settings(settings, robot)
    _prepare(folder)
    silent: Progress = lambda text, share: None  # noqa: E731
    place = Workplace(folder, settings, progress or silent, robot_digest(robot))
    done = carry_out(stages_of(settings), place, tell or (lambda stage: None))
    check = load_validation(folder / "validation.json")
    numbers = numbers_that_matter(folder, load_fit(folder / "fit.json"), check)
    outcome = Outcome(folder, tuple(done), check.good, numbers, folder / "report.html", work.notes_of(folder))
    about = {"armid": __version__, "settings": settings.to_data(), **outcome.to_data()}
    write_text(folder / "run.json", json.dumps(about, indent=2, ensure_ascii=False) + "\n")
    return outcome


def stages_of(settings: Settings) -> list[Stage]:
    """The stages of a run, in order."""
    training, validation = work.log_names(settings)
    logs = (*training, *validation)
    given = work.files_of(settings)
    extra = tuple(item for item in (settings.recipe, settings.signals) if item and Path(item).is_file())
    believed = (settings.prior.rpartition(":")[0],) if settings.prior else ()
    stages = [Stage("model", "base parameters", work.model, ("model.json",))]
    if settings.virtual:
        planned = ("criterion", "harmonics", "period", "starts", "rate", "seed")
        stages.append(
            Stage(
                "design",
                "excitation design",
                work.design,
                ("plan.json", "validation-plan.json"),
                ("model.json",),
                planned,
            )
        )
        if not settings.no_warmup:
            stages.append(Stage("warmup", "warm-up", work.warm_up, ("warmup.json",), ("model.json",), ("seed", "rate")))
        plans = ("plan.json", "validation-plan.json")
        stages.append(
            Stage("excitation", "excitation and another motion", work.excite, logs, plans, ("periods", "rate", "seed"))
        )
    else:
        how = ("log", "validation", "recipe", "effort")
        stages.append(Stage("logs", "reading the logs", work.read, logs, ("model.json",), how, (*given, *extra)))
    estimated = ("signals", "method", "friction", "prior")
    outside = tuple(item for item in (*believed, *extra) if Path(item).is_file())
    stages += [
        Stage("inspection", "log doctor", work.inspect, ("inspection.json",), logs),
        Stage("identification", "identification", work.identify, ("fit.json",), training, estimated, outside),
        Stage("validation", "validation", work.validate, ("validation.json",), ("fit.json", *validation)),
        Stage("audit", "audit", work.audit, ("audit.json",), ("fit.json",)),
    ]
    made = ["fit.json", "validation.json", "audit.json", "inspection.json", *logs]
    if settings.to and settings.to != ("none",):
        stages.append(Stage("export", "export", work.export, ("exports",), ("fit.json",), ("to",)))
        made.append("exports")
    if (path := work.path_to_track(settings)) is not None:
        poses = (path,) if Path(path).is_file() else ()
        chosen = ("track", "seed")
        stages.append(Stage("tracking", "tracking", work.track, ("tracking.json",), ("fit.json",), chosen, poses))
        made.append("tracking.json")
    if settings.virtual:
        made += ["plan.json", *([] if settings.no_warmup else ["warmup.json"])]
    stages.append(Stage("report", "report", work.report, ("report.html",), tuple(made)))
    return stages


def _prepare(folder: Path) -> None:
    """Find out before the work whether its results can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArmidError(f"{folder}: cannot be made ({error.strerror}); choose another folder with -o") from None
    if not os.access(folder, os.W_OK):
        raise ArmidError(f"{folder}: cannot be written; choose another folder with -o")
