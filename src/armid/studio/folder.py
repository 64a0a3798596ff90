"""The folder of a run as the page sees it: settings, files that were dropped, and which results are up to date."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from armid.errors import ArmidError
from armid.escaping import file_name
from armid.files import checked, make_inside, parse_json, write_text
from armid.robot import Robot
from armid.robot.shapes import link_surfaces
from armid.run.procedure import finished_stages, robot_of
from armid.run.settings import SETTINGS, Settings, load_settings, make_settings, save_settings
from armid.studio.work import Work

UPLOADS, VIEWS, PREVIEW = "uploads", ".studio", "preview.html"
MESHES = (".stl", ".obj")
LARGEST_UPLOAD = 4_000_000_000  # bytes of a file
RECIPE, ASKED = "recipe.yaml", ".studio/asked.json"


def read_settings(folder: Path) -> Settings:
    """Settings of a run, as its folder holds them.

    Raises:
        ArmidError: it holds none, or those of another version.
    """
    if (folder / SETTINGS).is_file():
        return load_settings(folder / SETTINGS)
    try:
        data = parse_json((folder / "run.json").read_text("utf-8"))["settings"]
        return make_settings(checked(data, Settings, str(folder / "run.json")).to_data())
    except (OSError, ValueError, KeyError, TypeError):
        raise ArmidError(f"{folder}: holds no {SETTINGS}; choose an arm first") from None


class Studio:
    """What all open pages share.

    Attributes:
        folder: of the run.
        work: the job that is going on.
    """

    def __init__(self, folder: Path) -> None:
        """Make the folder if it is not there."""
        try:
            for view in make_inside(folder / VIEWS).glob("*.html"):
                view.unlink()  # shown with the page's own rights: only those drawn here
        except OSError as error:
            raise ArmidError(f"{folder}: cannot be made ({error.strerror}); name another folder") from None
        self.folder, self.work = folder.resolve(), Work()
        self._finished: tuple[object, frozenset[str]] = (None, frozenset())
        self._robot: tuple[object, Robot | None] = (None, None)
        self._surfaces: dict[int, list[bytes]] = {}

    @property
    def settings(self) -> Settings | None:
        """As they are in the folder; None before an arm is chosen."""
        try:
            return read_settings(self.folder)
        except ArmidError:
            if (self.folder / SETTINGS).exists():
                raise
            return None

    def change(self, **values: Any) -> Settings:
        """Settings with other values, None for the default, written to the folder."""
        now = self.settings
        changed = make_settings({**({} if now is None else now.to_data()), **values})
        save_settings(changed, self.folder / SETTINGS)
        return changed

    def robot(self) -> Robot:
        """The arm of the settings."""
        settings = self.settings
        if settings is None:
            raise ArmidError("no arm is chosen yet: choose one on the screen Arm")
        known, robot = self._robot
        now = (settings, [(path, path.stat().st_mtime_ns) for path in self.uploads(*MESHES)])
        if known != now or robot is None:
            robot = robot_of(settings)
            self._robot, self._surfaces = (now, robot), link_surfaces(robot)
        return robot

    def surfaces(self) -> dict[int, list[bytes]]:
        """STL in the link's frame for each link (0: the base) whose meshes are at hand and can be read."""
        self.robot()
        return self._surfaces

    def finished(self) -> frozenset[str]:
        """Stages whose results are those of the settings; empty where an input cannot be read."""
        stamp, known = self._finished
        now = self.stamp()
        if stamp != now:
            try:
                settings = self.settings
                known = frozenset() if settings is None else frozenset(finished_stages(settings, self.folder))
            except (ArmidError, OSError):
                known = frozenset()
            self._finished = (now, known)
        return known

    def stamp(self) -> tuple[object, ...]:
        """Changes whenever a file of the folder does, whoever wrote it, and with the state of the work."""
        files = [path for name in (".", VIEWS, UPLOADS, "exports") for path in self._within(name)]
        files = [path for path in files if path.is_file() and path.name != PREVIEW]  # that follows, it leads nowhere
        times = sorted((path.name, path.stat().st_mtime_ns) for path in files)
        return (tuple(times), self.work.state)

    def _within(self, name: str) -> list[Path]:
        place = self.folder / name
        return list(place.iterdir()) if place.is_dir() else []

    def place_for(self, name: str) -> Path:
        """Where a dropped file is kept: no part of its name can lead elsewhere."""
        stem, dot, suffix = name.rpartition(".")
        plain = re.fullmatch(r"[A-Za-z0-9]{1,8}", suffix)
        tail = f".{suffix.lower()}" if dot and plain else ""
        return make_inside(self.folder / UPLOADS) / f"{file_name(stem if dot and plain else name)}{tail}"

    def uploads(self, *suffixes: str) -> list[Path]:
        """Dropped files with one of these suffixes; all without any."""
        return sorted(path for path in self._within(UPLOADS) if not suffixes or path.suffix in suffixes)

    def write_recipe(self, recipe: dict[str, Any], asked: dict[str, Any] | None = None) -> None:
        """Keep what the columns mean, and what a person is asked about them."""
        import yaml

        if asked is not None:
            write_text(self.folder / ASKED, json.dumps(asked))
        there = {name: place for name, place in recipe["columns"].items() if place and any(place)}
        recipe = {**recipe, "columns": there}
        write_text(self.folder / RECIPE, yaml.safe_dump(recipe, sort_keys=False, allow_unicode=True))
        self.change(recipe=str(self.folder / RECIPE))

    def carry_out(self, title: str, last: str | None, *views: str) -> None:
        """Start the procedure up to a stage; what is soon done again gives way."""
        if self.work.title in ("drawing", "base parameters"):
            self.work.stop()
        self.work.start(title, self.folder, "stages", last=last, views=list(views))
