"""Screen *Use*: payload, export, tracking and the report."""

from __future__ import annotations

from functools import partial

from nicegui import ui

from armid.errors import ArmidError
from armid.exporting import exporters
from armid.run.procedure import PATHS
from armid.studio.page import Page, heading

_RESULTS = ("report.html", "fit.json", "validation.json", "audit.json", "payload.json", "tracking.json", "plan.json")


def show(page: Page) -> None:
    """Build the screen."""
    studio = page.studio
    settings = studio.settings
    if settings is None or not (studio.folder / "fit.json").is_file():
        raise ArmidError("Identify a model first.")
    heading("For other programs and people")
    with ui.element("div").classes("row"):
        formats = ui.select(
            list(exporters), value=[name for name in settings.to if name in exporters], label="export to", multiple=True
        ).props("use-chips")

        def export() -> None:
            studio.change(to=tuple(formats.value) or ("none",))
            studio.carry_out("export", "export", "use")
            page.refresh()

        page.button("Export", export)
        page.button("Report", partial(_report, page))
    heading("Follow a path: the virtual robot with and without the model")
    with ui.element("div").classes("row"):
        paths = {**{name: name for name in PATHS.values()}, **{str(p): p.name for p in studio.uploads(".csv")}}
        path = ui.select(paths, value=settings.track if settings.track in paths else None, label="path of the tool")

        def track() -> None:
            if not path.value:
                raise ArmidError("choose a path first, or drop a CSV of tool poses")
            studio.change(track=path.value)
            studio.carry_out("tracking on the virtual robot", "tracking", "use")
            page.refresh()

        page.button("Follow it", track)
        page.upload("path as CSV of tool poses", lambda place: page.refresh(), ".csv")
    heading("What does the arm carry?")
    page.upload("log with a payload", lambda place: _payload(page, str(place)))
    heading("Files")
    _files(page)
    page.view("identification")


def _report(page: Page) -> None:
    page.studio.carry_out("report", None, "use")
    page.refresh()


def _payload(page: Page, log: str) -> None:
    page.studio.work.start("payload", page.studio.folder, "payload", log=log)
    page.refresh()


def _files(page: Page) -> None:
    """What there is to take away."""
    folder = page.studio.folder
    exported = sorted(path.relative_to(folder).as_posix() for path in (folder / "exports").rglob("*") if path.is_file())
    with ui.element("div").classes("row"):
        for name in (*(name for name in _RESULTS if (folder / name).is_file()), *exported):
            ui.link(name, f"/file/{name}", new_tab=name.endswith(".html"))
