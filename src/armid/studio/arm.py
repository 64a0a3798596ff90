"""Screen *Arm*: choose one, turn its joints, and see which parameters can be found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from nicegui import ui

from armid.errors import ArmidError
from armid.reporting.evidence import load_mapping
from armid.reporting.numbers import pretty
from armid.robot import Robot, library_names, load_robot
from armid.studio.folder import MESHES
from armid.studio.page import Page, facts, grid
from armid.studio.scene import ArmScene, posture_sliders

_OF_AN_ARM = ("log", "validation", "train", "validate", "recipe", "effort", "links", "gravity", "simplify", "prior")
_SUFFIXES = (".urdf", ".xml", ".yaml", ".yml")


def show(page: Page) -> None:
    """Build the screen."""
    studio = page.studio
    settings = studio.settings
    ui.label("Which arm is it? Drop its file, or pick one of the library.").classes("lead")
    files = {str(path): path.name for path in studio.uploads(*_SUFFIXES)}
    options = {**{name: name for name in library_names()}, **files}
    chosen = None if settings is None else settings.robot
    if chosen is not None and chosen not in options:
        options[chosen] = Path(chosen).name
    with ui.element("div").classes("row"):
        pick = ui.select(
            options, value=chosen, label="arm", on_change=lambda e: page.act(lambda: _choose(page, e.value))()
        )
        pick.set_enabled(not studio.work.running)
        words = "URDF, MJCF or YAML, and its meshes (STL, OBJ)"
        page.upload(words, lambda path: _take(page, path), ",".join((*_SUFFIXES, *MESHES)), multiple=True)
    if settings is None:
        return
    robot = studio.robot()
    with ui.element("div").classes("two"):
        with ui.element("div"):
            posture_sliders(ArmScene(robot, studio.surfaces()))
        with ui.element("div").classes("screen"):
            _about(robot, len(studio.surfaces()))
    _parameters(page)


def _take(page: Page, path: Path) -> None:
    """An arm, or a mesh that the chosen one may name: its shape is another then."""
    settings = page.studio.settings
    if path.suffix not in MESHES:
        _choose(page, str(path))
    elif settings is not None:
        _choose(page, settings.robot)


def _choose(page: Page, name: str) -> None:
    """Take an arm, if it can be read, and find its base parameters; logs and recipes of another arm are dropped."""
    load_robot(name)
    studio = page.studio
    other = studio.settings is not None and studio.settings.robot != name
    studio.change(robot=name, **(dict.fromkeys(_OF_AN_ARM) if other else {}))
    studio.carry_out("base parameters", "model")
    page.refresh()


def _about(robot: Robot, meshes: int) -> None:
    g = " ".join(f"{value:.3g}" for value in robot.gravity)
    capsules = f"collision checks with {len(robot.capsules)} capsules"
    shapes = [f"meshes of links: {meshes}"] * bool(meshes)
    shapes.append(capsules if robot.capsules else "unknown for collision checks; slender links stand in")
    if robot.unread_shapes:
        names = dict.fromkeys(shape.name.rpartition("/")[2] for shape in robot.unread_shapes)
        shapes.append(f"not at hand: {', '.join(names)}")
    said = {"name": robot.name, "title": robot.title, "gravity": f"{g} m/s² (orange arrow)"}
    facts({key: value for key, value in {**said, "shapes": "; ".join(shapes)}.items() if value})
    limits = robot.limits
    rows = [
        [joint.name, *(_number(array[j]) for array in (limits.lower, limits.upper, limits.velocity, limits.torque))]
        for j, joint in enumerate(robot.joints)
    ]
    grid(["joint", "from", "to", "speed", "torque"], rows, "limits of the joints, SI units")


def _number(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "unknown"


def _parameters(page: Page) -> None:
    path = page.studio.folder / "model.json"
    if "model" not in page.studio.finished():
        return
    data = load_mapping(path)
    groups = [g for g in data.get("groups", ()) if isinstance(g, dict)]
    if not groups:
        raise ArmidError(f"{path}: names no base parameters; choose the arm again")
    ui.label(
        f"Motion can show {len(groups)} parameters or combinations of them, and no others: the base parameters. "
        f"No effect on any torque: {', '.join(map(str, data.get('unidentifiable', ()))) or 'none'}."
    ).classes("lead")
    rows = [[pretty(str(g.get(key, ""))) for key in ("name", "expression", "unit")] for g in groups]
    grid(["base parameter", "is", "unit"], rows, "base parameters")
