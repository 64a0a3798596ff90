"""Screen *Model*: identify, and see the verdict before anything else."""

from __future__ import annotations

from nicegui import ui

from armid.errors import ArmidError
from armid.estimation import estimators
from armid.estimation.fit import load_fit
from armid.registry import friction_laws
from armid.reporting.sections.parameters import link_bodies
from armid.studio.page import Page
from armid.studio.scene import ArmScene, posture_sliders

_DEFAULT = "as armid finds best"


def show(page: Page) -> None:
    """Build the screen."""
    studio = page.studio
    settings = studio.settings
    if settings is None or not (studio.folder / "inspection.json").is_file():
        raise ArmidError("Record first, with the virtual robot or by dropping logs, and let the log doctor look at it.")
    with ui.element("div").classes("row"):
        method = ui.select([_DEFAULT, *estimators], value=settings.method or _DEFAULT, label="estimator")
        laws = [_DEFAULT, "auto", "linear", *friction_laws]
        friction = ui.select(laws, value=settings.friction or _DEFAULT, label="friction")

        def identify() -> None:
            chosen = {"method": method.value, "friction": friction.value}
            studio.change(**{name: None if value == _DEFAULT else value for name, value in chosen.items()})
            studio.carry_out("identification", "audit", "model", "evidence")
            page.refresh()

        page.button("Identify", identify)
    path = studio.folder / "fit.json"
    if not path.is_file():
        return
    page.view("audit")
    if "identification" in studio.finished():
        fit = load_fit(path)
        if fit.standard_parameters is not None:
            ui.label("The links as ellipsoids of the same mass and inertia, in the arm.").classes("lead")
            posture_sliders(ArmScene(fit.robot, studio.surfaces(), link_bodies(fit)))
