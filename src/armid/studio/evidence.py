"""Screen *Evidence*: the model on data that it has not seen, and what to change next."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from nicegui import ui

from armid.errors import ArmidError
from armid.run.settings import Settings
from armid.studio.page import Page
from armid.validation import Validation, load_validation


def show(page: Page) -> None:
    """Build the screen."""
    studio = page.studio
    settings = studio.settings
    if settings is None or not (studio.folder / "validation.json").is_file():
        raise ArmidError("Identify a model first.")
    if settings.virtual:
        ui.label("The virtual robot drove another motion for this, which the fit has not seen.").classes("lead")
    else:
        kept = ", ".join(name.rpartition("/")[2] for name in settings.validation) or "the last part of each log"
        ui.label(f"Compared with: {kept}. Drop another log of the same arm to compare with that, too.").classes("lead")
        page.upload("another log", lambda path: _compare_with(page, str(path)))
    if "validation" in studio.finished():
        _next_steps(page, settings)
    page.view("audit")


def _compare_with(page: Page, name: str) -> None:
    settings = page.studio.settings
    assert settings is not None
    page.studio.change(validation=tuple(dict.fromkeys((*settings.validation, name))), train=None, validate=None)
    page.studio.carry_out("validation", "audit", "model", "evidence")
    page.refresh()


def _next_steps(page: Page, settings: Settings) -> None:
    """Buttons for what may help against what counts against the model."""
    steps = remedies(settings, load_validation(page.studio.folder / "validation.json"))
    if not steps:
        return
    ui.label("What to change next:")
    with ui.element("div").classes("row"):
        for words, change in steps.items():
            page.button(words, partial(_again, page, change), color="secondary")


def remedies(settings: Settings, check: Validation) -> dict[str, Mapping[str, Any]]:
    """Changes of the settings that may help against what the validation says, by what they are called."""
    said = {note.code.rpartition(".")[2] for note in (*check.reasons, *check.advice)} - {"good"}
    found: dict[str, Mapping[str, Any]] = {}
    if settings.friction not in (None, "auto") and said & {"velocity", "reversals", "at_reversals", "load"}:
        found["Let the data choose the friction"] = {"friction": "auto"}
    if settings.virtual and said & {"noise", "poor_joint", "coverage", "parameters"}:
        found[f"Record {2 * settings.periods} periods"] = {"periods": 2 * settings.periods}
    if settings.virtual and said & {"parameters", "outside", "faster", "poor_training", "link_mass", "link_radius"}:
        found[f"Design with {settings.harmonics + 2} harmonics"] = {"harmonics": settings.harmonics + 2}
    if settings.validation and said & {"outside", "faster"}:
        found["Train on these logs, and compare with those of the training"] = {
            "log": settings.validation,
            "validation": settings.log,
        }
    return found


def _again(page: Page, change: Mapping[str, Any]) -> None:
    page.studio.change(**change)
    page.studio.carry_out("once more", "audit", "motion", "recording", "model", "evidence")
    page.refresh()
