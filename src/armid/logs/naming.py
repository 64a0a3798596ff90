"""Names of columns and units, and how armid's own files hold what the numbers of a log mean."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, nearest
from armid.files import checked, parse_json
from armid.logs.log import CHANNELS, Log, LogError, LogInfo

FORMAT_VERSION = 1

_ANGLE = {"rad": 1.0, "mrad": 1e-3, "deg": math.radians(1.0), "rev": 2.0 * math.pi}
_LENGTH = {"m": 1.0, "mm": 1e-3, "cm": 1e-2}
_FORCE = {"N": 1.0, "kN": 1e3, "mN": 1e-3}
_TORQUE = {
    "N m": 1.0,
    "mN m": 1e-3,
    "kN m": 1e3,
    "N cm": 1e-2,
    "N mm": 1e-3,
    "kgf m": 9.80665,
}
_PLACE = _ANGLE | _LENGTH
_SPEED = {f"{name}/s": factor for name, factor in _PLACE.items()} | {"rpm": math.pi / 30.0}
_ACCELERATION = {f"{name}/s^2": factor for name, factor in _PLACE.items()}

#: Factors to SI by channel, that of SI first.
UNITS: dict[str, dict[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "position": _PLACE,
    "velocity": _SPEED,
    "acceleration": _ACCELERATION,
    "effort": _TORQUE | _FORCE,
    "current": {"A": 1.0, "mA": 1e-3},
    "temperature": {"degC": 1.0, "K": 1.0},
}
_COMMANDS = {"position": "position", "velocity": "velocity", "torque": "effort"}
_SPELLINGS = {"°": "deg", "°C": "degC", "C": "degC", "µs": "us", "1/min": "rpm", "r/min": "rpm", "rad/s2": "rad/s^2"}


def column_names(joints: Iterable[str], channels: Iterable[str]) -> tuple[str, ...]:
    """``time`` and ``channel.joint`` for every channel and joint."""
    names = tuple(joints)
    return ("time", *(f"{channel}.{joint}" for channel in channels for joint in names))


def unit_of(column: str, info: LogInfo) -> str:
    """Unit of a column of armid's own files, in SI; joints that slide have m where others have rad, and N for N m."""
    return next(iter(units_for(column.split(".", 1)[0], info.mode)))


def ordered(channels: Iterable[str]) -> tuple[str, ...]:
    """Channels in the order in which files hold them."""
    there = set(channels)
    return tuple(channel for channel in CHANNELS if channel in there)


def info_to_json(info: LogInfo) -> str:
    """The information as JSON on one line; numbers are exact."""
    data = {field.name: getattr(info, field.name) for field in fields(info)} | {"history": dict(info.history)}
    try:
        return json.dumps(data, ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise LogError(info.source, "history", f"cannot be written as JSON ({error})") from None


def data_from_json(text: str | bytes) -> Any:
    """What JSON text holds, None if it is no JSON."""
    try:
        return parse_json(text)
    except ValueError:
        return None


def info_from_data(data: Any, source: str) -> LogInfo:
    """The information from what JSON holds; `source` is the file it was found in."""
    if not isinstance(data, dict):
        raise LogError(source, "armid log", "the description of the log is not valid JSON; the file is damaged")
    known = {field.name for field in fields(LogInfo)}
    if unknown := sorted(set(data) - known):
        hint = nearest(unknown[0], known)
        problem = f"is not known{hint or ' here'}; correct the name, or update armid if a newer one wrote it"
        raise LogError(source, unknown[0], problem)
    try:
        info = checked(data, LogInfo, source)
    except (DescriptionError, LogError) as error:
        raise LogError(source, error.field or "armid log", f"{error.problem}; the description is damaged") from None
    return info if info.source else replace(info, source=source)


def as_rows(log: Log, channels: Iterable[str]) -> Array:
    """Time and channels side by side, (samples, 1 + channels * joints)."""
    return np.column_stack([log.time, *(log[channel] for channel in channels)])


@dataclass(frozen=True)
class Unit:
    """SI value = factor * value + offset."""

    factor: float = 1.0
    offset: float = 0.0


def units_for(channel: str, mode: str) -> dict[str, float]:
    """Units that a channel can have; those of `command` depend on the mode."""
    return UNITS[_COMMANDS[mode] if channel == "command" else channel]


def unit(name: str, channel: str, mode: str = "position") -> Unit | None:
    """The unit of that name for a channel, None if there is none; ``N m``, ``Nm`` and ``N*m`` are the same."""
    valid = units_for(channel, mode)
    spelt = _SPELLINGS.get(name.strip(), name.strip()).replace("*", " ").replace("·", " ").replace("²", "^2")
    by_letters = {key.replace(" ", ""): factor for key, factor in valid.items()}
    factor = valid.get(spelt, by_letters.get(spelt.replace(" ", "")))
    if factor is None:
        return None
    return Unit(factor, -273.15 if channel == "temperature" and spelt == "K" else 0.0)
