"""The frame of every screen: where one is, what is going on, and how a screen follows the folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from nicegui import ui

from armid.errors import ArmidError
from armid.escaping import lines, one_line
from armid.reporting import html
from armid.reporting.page import LIGHT
from armid.studio.folder import LARGEST_UPLOAD, Studio
from armid.studio.views import view_file

#: The screens in their order: address, title, and the stage that has its result.
STEPS = {
    "arm": ("Arm", "model"),
    "motion": ("Motion", "design"),
    "recording": ("Recording", "inspection"),
    "model": ("Model", "identification"),
    "evidence": ("Evidence", "validation"),
    "use": ("Use", "report"),
}
_TICK_S = 0.4


class Page:
    """One open screen.

    Attributes:
        studio: what it shows.
        name: of the screen.
    """

    def __init__(self, studio: Studio, name: str, show: Callable[[Page], None]) -> None:
        """Build it, and let it follow the folder."""
        self.studio, self.name = studio, name
        self._seen: object = None
        self._content = ui.refreshable(lambda: self._guarded(show))
        ui.page_title(f"{STEPS[name][0]} · armid studio")
        ui.add_head_html(f"<style>{_asset('studio.css')}</style><script>{_asset('studio.js')}</script>")
        ui.colors(primary=LIGHT["predicted"], negative=LIGHT["limit"], secondary="#5b6470")
        self._header = ui.refreshable(self._draw_header)
        self._header()
        self._progress = ui.element("div").classes("progress").props('role="status" aria-live="polite"')
        with self._progress:
            self._doing = ui.label().classes("doing")
            self._bar = ui.linear_progress(0.0, show_value=False).props('aria-label="progress"')
            self._stop = ui.button("Stop", on_click=studio.work.stop).props("outline dense no-caps")
        self._history = ui.expansion("What was done").classes("history").props("dense")
        with self._history:
            self._lines = ui.label().classes("lines")
        with ui.element("main").classes("screen"):
            self._content()
        self.keep()
        self._tick()
        ui.timer(_TICK_S, self._tick)

    def _guarded(self, show: Callable[[Page], None]) -> None:
        try:
            show(self)
        except ArmidError as error:
            self.problem(str(error))
            ui.link("Go to the step that comes next", "/")

    def _draw_header(self) -> None:
        finished = self.studio.finished()
        with ui.element("div").classes("top"):
            ui.label(f"armid studio · {one_line(self.studio.folder.name)}").classes("folder")
            with ui.element("nav").props('aria-label="steps"'):
                for number, (name, (title, stage)) in enumerate(STEPS.items(), start=1):
                    link = ui.link(f"{number} {title}{' ✓' if stage in finished else ''}", f"/{name}")
                    link.classes("step" + (" here" if name == self.name else ""))
                    if name == self.name:
                        link.props('aria-current="page"')

    def keep(self) -> None:
        """What the screen shows is what the folder holds: it need not be drawn again."""
        self._seen = self.studio.stamp()

    def _tick(self) -> None:
        work = self.studio.work
        self._progress.set_visibility(work.state != "idle" and (work.title, work.state) != ("drawing", "done"))
        self._progress.props(f"data-state={work.state}")
        self._doing.set_text(f"{work.title}: {lines(work.error or work.text)}")
        self._doing.classes(replace="doing" + (" failed" if work.state == "failed" else ""))
        self._bar.set_value(round(work.share, 3))
        self._stop.set_visibility(work.running)
        self._history.set_visibility(bool(work.history))
        self._lines.set_text("\n".join(work.history))
        if self.studio.stamp() != self._seen:
            self.refresh()

    def refresh(self) -> None:
        """Draw the screen again."""
        self.keep()
        self._header.refresh()
        self._content.refresh()

    def problem(self, words: str) -> None:
        """Say what is wrong."""
        ui.label(lines(words)).classes("problem").props('role="alert"')

    def act(self, does: Callable[[], Any]) -> Callable[[], None]:
        """A handler that tells a refusal instead of raising it."""

        def handler() -> None:
            try:
                does()
            except ArmidError as error:
                ui.notify(lines(str(error)), type="negative", multi_line=True, close_button="OK", timeout=0)

        return handler

    def button(self, words: str, does: Callable[[], Any], **more: Any) -> None:
        """A button; it waits while work is going on."""
        made = ui.button(words, on_click=self.act(does), **more).props("no-caps")
        made.set_enabled(not self.studio.work.running)

    def upload(self, words: str, does: Callable[[Path], Any], accept: str = "", *, multiple: bool = False) -> None:
        """A place for files; each is written to the folder as it comes."""

        async def received(event: Any) -> None:
            place = self.studio.place_for(event.file.name)
            partial = place.with_name(f".{place.name}.part")
            await event.file.save(partial)
            await asyncio.to_thread(partial.replace, place)
            self.act(lambda: does(place))()

        def refused() -> None:
            ui.notify(f"a file may have {LARGEST_UPLOAD / 1e9:g} GB at most and must be {accept or 'a file'}")

        place = ui.upload(
            label=words, multiple=multiple, auto_upload=True, max_file_size=LARGEST_UPLOAD, on_upload=received,
            on_rejected=refused,
        )  # fmt: skip
        place.props(f'accept="{accept}" flat bordered').classes("drop")

    def view(self, stage: str) -> None:
        """The picture of the screen's result, drawn again where it is older than what it shows."""
        path = view_file(self.studio.folder, self.name)
        if path is None:
            work = self.studio.work
            if not work.running and work.state != "failed":
                work.start("drawing", self.studio.folder, "view", names=[self.name])
            return
        if stage not in self.studio.finished():
            ui.label("Made with other settings or files than those above: out of date.").classes("problem")
        self.frame(self.name, path)

    def frame(self, name: str, path: Path) -> None:
        """A page of the folder's views, as high as what it holds."""
        made = ui.element("iframe").classes("view").props(f'src="/view/{name}?at={path.stat().st_mtime_ns}"')
        made.props["title"] = f"{STEPS[self.name][0]}: result"
        made.on("load", js_handler="(event) => armidFit(event.target)")


def heading(words: str) -> None:
    """A heading within a screen."""
    with ui.element("h2"):
        ui.label(words)


def facts(pairs: Mapping[str, str]) -> None:
    """Names and what they stand for."""
    ui.html(html.facts(pairs.items()), sanitize=False)  # escaped there


def grid(headers: list[str], rows: list[list[str]], caption: str) -> None:
    """A small table of words."""
    head, *body = ("".join(f"<td>{html.text(cell)}</td>" for cell in row) for row in (headers, *rows))
    inside = f"<thead><tr>{head.replace('td>', 'th>')}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in body)}"
    whole = f"<table><caption>{html.text(caption)}</caption>{inside}</tbody></table>"
    box = ui.html(whole, sanitize=False).classes("table").props("tabindex=0 role=region")
    box.props["aria-label"] = caption


def _asset(name: str) -> str:
    return (resources.files("armid.studio") / "assets" / name).read_text("utf-8")
