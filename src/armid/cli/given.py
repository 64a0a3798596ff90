"""Friction that was measured before."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.robot import Robot


def friction_entries(path: str, robot: Robot) -> dict[str, dict[str, Any]]:
    """Entries of a result of `armid friction` by joint.

    Raises:
        ArmidError: the file is no such result, or is about another robot.
    """
    from armid.files import read_text

    try:
        data = json.loads(read_text(Path(path)))
        if data["format"] != "armid friction 1":
            raise KeyError("format")
        whose, entries = str(data["robot"]), {int(entry["number"]): dict(entry) for entry in data["joints"]}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ArmidError(f"{path}: is no result of `armid friction -o FILE`; write one first") from None
    if whose != robot.name:
        raise ArmidError(f"{path}: is about {whose!r}, not {robot.name!r}; measure this arm's friction")
    return {name: entries[number] for number, name in enumerate(robot.joint_names, start=1) if number in entries}


def check_friction(path: str, known: Collection[str], joints: Iterable[str]) -> None:
    """Refuse a file that lacks the friction of one of the joints."""
    missing = [joint for joint in joints if joint not in known]
    if missing:
        raise ArmidError(
            f"{path}: has no friction of joint {', '.join(missing)}; measure it too (armid friction), all joints into "
            "one file"
        )
