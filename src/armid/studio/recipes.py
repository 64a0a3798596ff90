"""A recipe while it is being made: armid's guess, and the one in the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from armid.errors import ArmidError
from armid.files import parse_yaml, read_text
from armid.logs.guess import guess_recipe
from armid.robot import Robot

CHANNELS = ("position", "velocity", "acceleration", "effort", "current", "temperature", "command")


def propose(path: str, robot: Robot) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recipe to be corrected, and what a person has to say.

    Returns:
        The recipe, with effort `none` where it is open; and the questions `open`, with the likely columns of `effort`.
    """
    draft: dict[str, Any] = {"armid": 1, "joints": list(robot.joint_names), "columns": {}, "units": {}}
    try:
        guesses = guess_recipe([path], robot)
    except ArmidError as error:
        return {**draft, "effort": "none"}, {"open": [str(error)]}
    for guess in guesses.guesses:
        section, _, name = guess.entry.rpartition(".")
        value = guess.likely if guess.value is None else guess.value
        if section == "columns":
            value = [str(one) for one in value] if isinstance(value, list) else value and str(value)
        if value is not None:
            (draft[section] if section else draft)[name] = value
    likely = draft["columns"].get("effort") or draft["columns"].get("current")
    if "effort" not in draft:  # it would scale every parameter: somebody has to say it
        say_effort(draft, "none")
    return draft, {"open": [f"{guess.entry}: {guess.evidence}" for guess in guesses.open], "effort": likely}


def say_effort(draft: dict[str, Any], effort: str, likely: list[str] | None = None) -> None:
    """Say what was measured as effort; its columns are kept under the name that they have then."""
    columns = draft["columns"]
    old, new = ("effort", "current") if effort == "current" else ("current", "effort")
    places = (columns.pop(old, None), columns.pop(new, None), likely)
    if effort != "none" and (known := next((place for place in places if place and any(place)), None)):
        columns[new] = known
    if effort != "current":
        draft.pop("current_gain", None)
    draft.get("units", {}).pop(old, None)
    draft["effort"] = effort


def load_draft(path: Path) -> dict[str, Any] | None:
    """The recipe of the folder, with a column for each joint; None where it is not one that a table can show."""
    try:
        data = parse_yaml(read_text(path), str(path))
    except (OSError, ValueError):
        return None
    joints, columns = data.get("joints"), data.get("columns")
    if not isinstance(joints, list) or not isinstance(columns, dict) or "effort" not in data:
        return None
    lists = [place for name, place in columns.items() if name != "time"]
    return data if all(isinstance(place, list) and len(place) == len(joints) for place in lists) else None
