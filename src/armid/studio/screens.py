"""Addresses of the page: a screen each, the pictures they frame, and files of the folder to take away."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nicegui import app, ui
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response

from armid.errors import ArmidError
from armid.studio import arm, evidence, model, motion, recording, use
from armid.studio.folder import VIEWS, Studio
from armid.studio.page import STEPS, Page

_SHOW: dict[str, Callable[[Page], None]] = {
    "arm": arm.show,
    "motion": motion.show,
    "recording": recording.show,
    "model": model.show,
    "evidence": evidence.show,
    "use": use.show,
}
_PLAIN = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_ABSENT = PlainTextResponse("there is no such file", status_code=404)


def add_screens(studio: Studio) -> None:
    """Enter all addresses."""
    for name in STEPS:
        ui.page(f"/{name}")(_screen(studio, name))

    @app.get("/")
    def start() -> Response:
        """Where work goes on: the first screen whose result is not there."""
        finished = studio.finished()
        open_steps = [name for name, (_, stage) in STEPS.items() if stage not in finished]
        return RedirectResponse(f"/{open_steps[0] if open_steps else 'evidence'}")

    @app.get("/view/{name}")
    def view(name: str) -> Response:
        """A picture of a screen."""
        return _file(studio.folder / VIEWS, f"{name}.html")

    @app.get("/file/{name:path}")
    def file(name: str) -> Response:
        """A file of the folder; pages are shown, everything else is taken away."""
        return _file(studio.folder, name, "sandbox allow-scripts allow-popups allow-downloads")

    @app.get("/mesh/{link}/{part}")
    def mesh(link: int, part: int) -> Response:
        """A surface of the arm, made from numbers that were read: no file is named."""
        with suppress(ArmidError):
            if 0 <= part < len(found := studio.surfaces().get(link, [])):
                return Response(found[part], media_type="model/stl", headers=_PLAIN)
        return _ABSENT


def _screen(studio: Studio, name: str) -> Callable[[], None]:
    def screen() -> None:
        Page(studio, name, _SHOW[name])

    return screen


def _file(folder: Path, name: str, policy: str = "") -> Response:
    """A file below a folder, and no other; a page that somebody else may have written is kept apart by a policy."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return _ABSENT
    except (OSError, ValueError):
        return _ABSENT
    page = path.suffix == ".html"
    headers = _PLAIN | ({"content-security-policy": policy} if policy else {})
    return FileResponse(
        path,
        media_type="text/html" if page else "application/octet-stream",
        filename=None if page else path.name,
        headers=headers,
    )
