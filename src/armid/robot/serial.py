"""A robot as plain data for JSON files, so that a result file can be read without the robot's own file."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from armid.errors import ArmidError
from armid.robot.friction import Friction
from armid.robot.robot import (
    Capsule,
    Counterbalance,
    Drive,
    GravitySpring,
    Joint,
    Length,
    Limits,
    Robot,
    Simplification,
)

# Where the numbers come from and what a simulation would take for the truth stays in the robot's own file.
_LEFT_OUT = ("published", "virtual", "provenance")
_TYPES = {
    t.__name__: t for t in (Robot, Joint, Length, Limits, Drive, GravitySpring, Counterbalance, Capsule, Simplification)
}


def robot_to_data(robot: Robot) -> dict[str, Any]:
    """Everything the model needs, as lists, numbers and names; NaN becomes null."""
    data: dict[str, Any] = _encode(robot)
    return data


def robot_digest(robot: Robot) -> str:
    """SHA-256 of all of a robot, its truth and published values included, wherever they were read from."""
    parts = [_encode(part) for part in (robot, robot.virtual, dict(robot.published))]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def robot_from_data(data: Mapping[str, Any]) -> Robot:
    """Inverse of `robot_to_data`."""
    try:
        robot = _decode(dict(data))
    except (KeyError, TypeError, ValueError) as error:
        raise ArmidError(f"the robot in the file cannot be read ({error}); write the file anew") from None
    if not isinstance(robot, Robot):
        raise ArmidError("the robot in the file cannot be read (it is no robot); write the file anew")
    return robot


def _encode(value: Any) -> Any:
    if isinstance(value, Friction):
        return {"type": "Friction", "law": value.law, "offset": value.offset, "directions": value.per_direction}
    if is_dataclass(value):
        names = [field.name for field in fields(value) if field.name not in _LEFT_OUT]
        return {"type": type(value).__name__} | {name: _encode(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        return {"array": _encode(value.tolist())}
    if isinstance(value, Mapping):
        return {"map": {str(key): _encode(entry) for key, entry in value.items()}}
    if isinstance(value, frozenset):
        return {"set": sorted(value)}
    if isinstance(value, tuple | list):
        return [_encode(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else math.copysign(1e999, value)
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"], dtype=float)  # null becomes NaN
    if "map" in value:
        return {key: _decode(entry) for key, entry in value["map"].items()}
    if "set" in value:
        return frozenset(value["set"])
    kind = value.get("type")
    if kind == "Friction":
        return Friction(value["law"], value["offset"], value["directions"])
    rest = {name: _decode(entry) for name, entry in value.items() if name != "type"}
    return _TYPES[str(kind)](**rest)
