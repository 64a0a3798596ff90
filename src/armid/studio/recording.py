"""Screen *Recording*: the virtual robot records, or logs are dropped and a recipe is corrected by clicking."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from nicegui import ui

from armid.errors import ArmidError
from armid.escaping import lines
from armid.logs.files import column_names, open_log
from armid.logs.log import EFFORTS
from armid.logs.table import units_for
from armid.reporting.evidence import load_mapping
from armid.run.settings import Settings
from armid.studio.folder import ASKED, PREVIEW, RECIPE, VIEWS
from armid.studio.page import Page, heading
from armid.studio.recipes import CHANNELS, load_draft, propose, say_effort
from armid.studio.views import preview, write_view

_NONE = "–"


def show(page: Page) -> None:
    """Build the screen."""
    settings = page.studio.settings
    if settings is None:
        raise ArmidError("Choose an arm first.")
    with ui.element("div").classes("two"):
        with ui.element("div").classes("screen"):
            heading("The virtual robot")
            _virtual(page, settings)
        with ui.element("div").classes("screen"):
            heading("Logs of your arm")
            ui.label("The first log is for identification; others can be kept for validation.")
            page.upload("logs: CSV, Parquet, MATLAB, MCAP, ROS bag", lambda path: _add(page, str(path)), multiple=True)
    if settings.log:
        _logs(page, settings)
        return
    if (page.studio.folder / "inspection.json").is_file():
        page.view("inspection")


def _virtual(page: Page, settings: Settings) -> None:
    studio = page.studio
    ui.label("It drives the designed motion and another one, with noise and friction, in physics of its own.")
    with ui.element("div").classes("row"):
        periods = ui.number("recorded periods", value=settings.periods, min=1, max=1000, precision=0)
        warm = ui.checkbox("warm the arm up first", value=not settings.no_warmup)
        warm.props["aria-label"] = "warm the arm up first"

        def record() -> None:
            nothing = dict.fromkeys(("log", "validation", "train", "validate", "recipe", "effort"))
            studio.change(periods=int(periods.value or 0), no_warmup=not warm.value, **nothing)
            studio.carry_out("recording on the virtual robot", "inspection", "motion", "recording")
            page.refresh()

        page.button("Record", record)


def _add(page: Page, name: str) -> None:
    """Take a log; where its columns say nothing of themselves, propose what they mean."""
    studio = page.studio
    settings = studio.settings
    assert settings is not None
    role = "validation" if settings.log and name not in settings.log else "log"
    studio.change(**{role: tuple(dict.fromkeys((*getattr(settings, role), name)))})
    if settings.recipe is None and not _speaks_for_itself(name):
        studio.write_recipe(*propose(name, studio.robot()))
    page.refresh()


def _speaks_for_itself(name: str) -> bool:
    try:
        open_log(name)
    except ArmidError:
        return False
    return True


def _logs(page: Page, settings: Settings) -> None:
    """Dropped logs, their recipe, and the signals as they are read with it."""
    studio = page.studio
    for role in ("log", "validation"):
        for name in getattr(settings, role):
            with ui.element("div").classes("row"):
                what = {"log": "for identification", "validation": "for validation"}
                pick = ui.select(what, value=role, label=Path(name).name).classes("wide")
                pick.on_value_change(lambda event, name=name: page.act(partial(_assign, page, name, event.value))())
                page.button("Remove", partial(_assign, page, name, ""), color="secondary")
    draft = load_draft(studio.folder / RECIPE) if settings.recipe == str(studio.folder / RECIPE) else None
    inspected, drawn = "inspection" in studio.finished(), 0

    async def follow() -> None:
        """Draw the signals as the recipe has them now; the rest of the screen stays, and what is being typed there."""
        nonlocal drawn
        drawn = mine = drawn + 1
        now = studio.settings
        if now is None or inspected:
            page.refresh()
            return
        page.keep()
        problem = ""
        try:
            sections = await asyncio.to_thread(preview, now.log, now.recipe, now.effort, studio.robot())
            await asyncio.to_thread(write_view, studio.folder, "preview", sections)
        except ArmidError as error:
            problem = str(error)
        if mine != drawn:
            return  # the recipe has changed meanwhile
        signals.clear()
        with signals:
            page.problem(problem) if problem else page.frame("preview", studio.folder / VIEWS / PREVIEW)

    if draft is not None:
        _recipe(page, draft, list(column_names(settings.log[0])), follow)

    def read() -> None:
        studio.carry_out("reading and inspecting the logs", "inspection", "recording")
        page.refresh()

    with ui.element("div").classes("row"):
        page.button("Read and inspect", read)
        if inspected:
            ui.link("Read and inspected: go on to Model", "/model")
    signals = ui.element("div")
    if inspected:
        page.view("inspection")
    elif not studio.work.running:
        ui.timer(0.05, follow, once=True)


def _assign(page: Page, name: str, role: str) -> None:
    """Use a log for something else, or no more."""
    settings = page.studio.settings
    assert settings is not None
    roles = {one: [item for item in getattr(settings, one) if item != name] for one in ("log", "validation")}
    if role:
        roles[role].append(name)
    if not roles["log"]:
        roles = {"log": roles["validation"][:1], "validation": roles["validation"][1:]}
    gone = {"recipe": None} if not roles["log"] else {}
    page.studio.change(**{one: tuple(names) for one, names in roles.items()}, **gone)
    page.refresh()


def _recipe(page: Page, draft: dict[str, Any], names: list[str], follow: Callable[[], Awaitable[None]]) -> None:
    """The recipe as a table: a row for each joint, a column for each channel; `follow` draws what it changes."""
    ui.label("What the columns mean. Correct what is wrong; the signals below follow.").classes("lead")
    noted = page.studio.folder / ASKED
    asked = load_mapping(noted) if noted.is_file() else {}
    if questions := asked.get("open"):
        words = "\n".join(f"• {lines(str(one))}" for one in questions)
        ui.label(f"armid cannot tell, so look at it:\n{words}").classes("asked")
    joints, columns, units = draft["joints"], draft["columns"], draft.setdefault("units", {})
    current = draft["effort"] == "current"
    wanted = ("position", "velocity", "current" if current else "effort")
    shown = [channel for channel in CHANNELS if channel in columns or channel in wanted]

    def read() -> set[str]:
        return {channel for channel, place in columns.items() if place and any(place)}

    async def put(where: Any, key: Any, value: Any) -> None:
        before = read()
        where[key] = None if value == _NONE else value
        page.studio.write_recipe(draft)
        if read() == before:
            await follow()
        else:
            page.refresh()  # a channel with its unit comes or goes

    def measured(value: str) -> None:
        say_effort(draft, value, asked.get("effort"))
        page.studio.write_recipe(draft)
        page.refresh()

    with ui.element("div").classes("row"):
        _choice([_NONE, *names], str(columns.get("time", _NONE)), "time", partial(put, columns, "time"))
        _choice(list(EFFORTS), draft["effort"], "measured effort", measured)
        for channel in ("time", *(channel for channel in shown if channel in columns)):
            options = list(units_for(channel, "position"))
            _choice(options, units.get(channel, options[0]), f"unit of {channel}", partial(put, units, channel))
    places = {channel: columns.setdefault(channel, [None] * len(joints)) for channel in shown}
    sign = draft.setdefault("sign", [1.0] * len(joints))
    gain = draft.setdefault("current_gain", [1.0] * len(joints)) if current else []
    box = ui.element("div").classes("table recipe").props('tabindex=0 role=region aria-label="recipe"')
    with box, ui.element("table"):
        with ui.element("thead"), ui.element("tr"):
            for head in ("joint", *shown, "sign", *(("N m/A",) if current else ())):
                with ui.element("th"):
                    ui.label(head)
        with ui.element("tbody"):
            for j, joint in enumerate(joints):
                with ui.element("tr"):
                    with ui.element("td"):
                        ui.label(lines(joint))
                    for channel, own in places.items():
                        _cell([_NONE, *names], str(own[j] or _NONE), f"{channel} of {joint}", partial(put, own, j))
                    _cell({1.0: "+", -1.0: "−"}, float(sign[j]), f"sign of {joint}", partial(put, sign, j))
                    if current:
                        _gain(gain[j], joint, partial(put, gain, j))


def _choice(options: Any, value: Any, what: str, does: Any) -> None:
    ui.select(options, value=value, label=what, on_change=lambda event: does(event.value))


def _cell(options: Any, value: Any, what: str, does: Any) -> None:
    with ui.element("td"):
        pick = ui.select(options, value=value, on_change=lambda event: does(event.value)).props("dense options-dense")
        pick.props["aria-label"] = what


def _gain(value: Any, joint: str, does: Any) -> None:
    with ui.element("td"):
        field = ui.number(value=float(value)).props("dense")
        field.props["aria-label"] = f"torque per current of {joint}"
        field.on("change", lambda event: does(float(event.args or 1.0)))  # with what was typed
