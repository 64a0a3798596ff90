"""Screen *Motion*: design an excitation, look at it, take it to the controller."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from armid.errors import ArmidError
from armid.escaping import file_name
from armid.excitation.criteria import CRITERIA
from armid.excitation.export_plan import UR_JOINTS, export_plan
from armid.excitation.plan import load_plan
from armid.studio.page import Page

_KINDS = {"csv": "CSV", "ros": "ROS trajectory", "urscript": "URScript"}


def show(page: Page) -> None:
    """Build the screen."""
    studio = page.studio
    settings = studio.settings
    if settings is None:
        raise ArmidError("Choose an arm first.")
    ui.label("A motion that makes the parameters visible, inside every limit that is known.").classes("lead")
    with ui.element("div").classes("row"):
        criterion = ui.select(list(CRITERIA), value=settings.criterion, label="criterion")
        harmonics = ui.number("harmonics", value=settings.harmonics, min=1, max=50, precision=0)
        period = ui.number("period [s]", value=settings.period, min=0.5)
        starts = ui.number("random starts", value=settings.starts, min=1, max=200, precision=0)

        def design() -> None:
            wanted = {"criterion": criterion.value, "harmonics": int(harmonics.value or 0)}
            wanted |= {"period": float(period.value or 0.0), "starts": int(starts.value or 0)}
            studio.change(**wanted, design=True)
            studio.carry_out("design", "design", "motion")
            page.refresh()

        page.button("Design", design)
    if not (studio.folder / "plan.json").is_file():
        return
    if "design" in studio.finished():
        robot = studio.robot()
        with ui.element("div").classes("row"):
            ui.label("For the controller:")
            for kind, words in _KINDS.items():
                if kind == "urscript" and robot.n_joints != UR_JOINTS:
                    continue
                page.button(words, partial(_download, page, kind), color="secondary")
            ui.link("plan.json", "/file/plan.json")
    page.view("design")


def _download(page: Page, kind: str) -> None:
    """Write the plan in another form beside it, and hand it over."""
    plan = load_plan(page.studio.folder / "plan.json")
    if not plan.certified:
        raise ArmidError("this plan breaks limits: design another one before it is driven")
    (path,) = export_plan(plan, [kind], page.studio.folder / f"plan-{file_name(plan.robot)}")
    page.keep()
    ui.navigate.to(f"/file/{path.name}")
