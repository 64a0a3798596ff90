"""A recipe while it is being made: a first proposal from the names of columns, and the one in the folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from armid.files import parse_yaml, read_text
from armid.robot import Robot

CHANNELS = ("position", "velocity", "acceleration", "effort", "current", "temperature", "command")
#: How names of columns begin or end, by what they mean; the first that fits counts.
_WORDS = {
    "velocity": r"qd|dq|qdot|vel|speed",
    "acceleration": r"qdd|ddq|acc",
    "current": r"cur|amp|motor_i",
    "temperature": r"temp",
    "effort": r"tau|torque|eff|moment|trq",
    "position": r"q|pos|angle|theta|joint",
}
_TARGET = re.compile(r"target|desired|cmd|command|ref", re.IGNORECASE)


def propose(names: Sequence[str], robot: Robot) -> dict[str, Any]:
    """What columns may mean: by their names, or by the usual order where they have none.

    Somebody has to look at it: what was measured as effort is never known.
    """
    joints, count = list(robot.joint_names), robot.n_joints
    columns: dict[str, Any] = {}
    if all(name.isdigit() for name in names):  # numbers from 1: the file has no header
        blocks = ("position", "velocity", "effort")
        columns["time"] = names[0]
        for k, channel in enumerate(blocks[: (len(names) - 1) // count]):
            columns[channel] = list(names[1 + k * count : 1 + (k + 1) * count])
    else:
        time = next((name for name in names if re.match(r"t$|time|stamp", name, re.IGNORECASE)), names[0])
        columns["time"] = time
        for channel, group in _families([name for name in names if name != time], count):
            columns.setdefault(channel, group)
    effort = "joint torque" if "effort" in columns else "current" if "current" in columns else "none"
    return {"armid": 1, "joints": joints, "columns": columns, "effort": effort}


def _families(names: Sequence[str], count: int) -> list[tuple[str, list[str]]]:
    """Groups of as many columns as there are joints whose names differ in a number or a joint's name alone."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    found = []
    for pattern, group in groups.items():
        if len(group) != count or _TARGET.search(pattern):
            continue
        channel = next((c for c, words in _WORDS.items() if re.search(rf"(^|[^a-z])({words})", pattern.lower())), None)
        if channel is not None:
            found.append((channel, group))
    return found


def say_effort(draft: dict[str, Any], effort: str) -> None:
    """Say what was measured as effort; its columns are kept under the name that they have then."""
    columns = draft["columns"]
    old, new = ("effort", "current") if effort == "current" else ("current", "effort")
    if effort != "none" and old in columns and new not in columns:
        columns[new] = columns.pop(old)
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
