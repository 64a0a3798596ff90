"""How a log is laid out in armid's own files: names of columns, units, and the information as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import nearest
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


def split_names(columns: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Joints and channels of columns named ``channel.joint``; other columns are left out."""
    joints: dict[str, None] = {}
    channels: dict[str, None] = {}
    for column in columns:
        channel, dot, joint = column.partition(".")
        if dot and joint and channel in CHANNELS:
            joints[joint] = channels[channel] = None
    return tuple(joints), ordered(channels)


def info_to_json(info: LogInfo) -> str:
    """The information as JSON on one line; numbers are exact."""
    data = {field.name: getattr(info, field.name) for field in fields(info)} | {"history": dict(info.history)}
    try:
        return json.dumps(data, ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise LogError(info.source, "history", f"cannot be written as JSON ({error})") from None


def info_from_json(text: str | bytes, source: str) -> LogInfo:
    """The information from JSON; `source` is the file it was found in."""
    return info_from_data(data_from_json(text), source)


def data_from_json(text: str | bytes) -> Any:
    """What JSON text holds, None if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def info_from_data(data: Any, source: str) -> LogInfo:
    """The information from what JSON holds."""
    if not isinstance(data, dict):
        raise LogError(source, "armid log", "the description of the log is not valid JSON; the file is damaged")
    known = {field.name for field in fields(LogInfo)}
    if unknown := sorted(set(data) - known):
        hint = nearest(unknown[0], known)
        raise LogError(
            source,
            unknown[0],
            f"is not known{hint or ' here'}; correct the name, or update armid if a newer one wrote it",
        )
    try:
        return LogInfo(**_checked(data, source))
    except TypeError:
        raise LogError(source, "armid log", "the description of the log lacks joints or effort") from None
    except LogError as error:
        raise LogError(source, error.field, error.problem) from None


def _checked(data: dict[str, Any], source: str) -> dict[str, Any]:
    """Entries with the types that LogInfo has."""
    result = dict(data)
    for key in ("joints", "gravity", "payload"):
        if result.get(key) is not None:
            kind, length = (str, None) if key == "joints" else (int | float, 3 if key == "gravity" else 10)
            values = result[key]
            fits = isinstance(values, list) and all(isinstance(value, kind) for value in values)
            if not fits or length not in (None, len(values)):
                raise LogError(source, key, "is damaged; a list is expected")
            result[key] = tuple(values)
    for key in ("rate_hz", "period_s"):
        if not isinstance(result.get(key), int | float | None):
            raise LogError(source, key, "is damaged; a number is expected")
    for key in ("robot", "source"):
        if not isinstance(result.get(key, ""), str):
            raise LogError(source, key, "is damaged; text is expected")
    if not isinstance(result.get("history", {}), dict):
        raise LogError(source, "history", "is damaged; a mapping is expected")
    result["source"] = result.get("source") or source
    return result


def as_rows(log: Log, channels: Iterable[str]) -> Array:
    """Time and channels side by side, (samples, 1 + channels * joints)."""
    return np.column_stack([log.time, *(log[channel] for channel in channels)])
