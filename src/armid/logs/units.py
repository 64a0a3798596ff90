"""Units that recordings come in, and what they are in SI."""

from __future__ import annotations

import math
from dataclasses import dataclass

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

#: Factors to SI by channel.
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
