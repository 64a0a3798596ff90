"""How a log is laid out in armid's own files: names of columns, units, and the information as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, nearest
from armid.files import checked
from armid.logs.log import CHANNELS, Log, LogError, LogInfo

FORMAT_VERSION = 1

#: Units by channel; joints that slide have m where others have rad, and N where others have N m.
UNITS = {
    "time": "s",
    "position": "rad",
    "velocity": "rad/s",
    "acceleration": "rad/s^2",
    "effort": "N m",
    "current": "A",
    "temperature": "degC",
}
_COMMAND_UNITS = {"position": "rad", "velocity": "rad/s", "torque": "N m"}


def column_names(joints: Iterable[str], channels: Iterable[str]) -> tuple[str, ...]:
    """``time`` and ``channel.joint`` for every channel and joint."""
    names = tuple(joints)
    return ("time", *(f"{channel}.{joint}" for channel in channels for joint in names))


def unit_of(column: str, info: LogInfo) -> str:
    """Unit of a column of armid's own files."""
    channel = column.split(".", 1)[0]
    return _COMMAND_UNITS[info.mode] if channel == "command" else UNITS[channel]


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
        return json.loads(text)
    except (ValueError, RecursionError):
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
