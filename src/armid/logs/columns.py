"""Columns of somebody's table one by one: what their names say, and how their numbers run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import signal

from armid.arrays import Array
from armid.logs.log import LogError
from armid.logs.naming import UNITS
from armid.logs.table import Table

ROWS = 30_000  # that are looked at
ENDS = 20  # samples at both ends that a filter spoils
WORDS = {
    "time": "t time timestamp stamp times secs clock",
    "position": "q pos position positions angle theta jpos",
    "velocity": "qd dq vel velocity velocities speed qdot omega jvel",
    "acceleration": "qdd ddq acc accel acceleration",
    "effort": "tau torque torques effort moment trq",
    "current": "i cur curr current currents amp amps",
    "temperature": "temp temperature",
}
_CHANNEL = {word: channel for channel, words in WORDS.items() for word in words.split()}
_UNIT = re.compile(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$")
_TOKEN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass
class TableColumn:
    """A column's name, taken apart, and its values."""

    number: int
    name: str
    values: Array
    channel: str = ""
    joint: int | str | None = None
    unit: str = ""
    words: frozenset[str] = frozenset()


def numeric_columns(table: Table) -> list[tuple[int, str, Array]]:
    """Columns that hold numbers only, their first rows."""
    result = []
    for k, name in enumerate(table.names):
        try:
            values = next(iter(table.blocks([k], ROWS)), np.empty((0, 1)))[:, 0]
        except LogError:
            continue  # text
        if len(values) > 100 and np.isfinite(values).all():
            result.append((k, name, values))
    return result


def read_name(column: TableColumn, joints: Sequence[str]) -> None:
    """Take a name such as ``actual_q_3 [deg]`` apart."""
    text = column.name
    if match := _UNIT.search(text):
        column.unit, text = match.group(1), text[: match.start()]
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    own = [joint for joint in joints if re.sub(r"[^a-z0-9]", "", joint.lower()) in plain]
    if len(own) == 1 and not own[0].isdigit():
        column.joint = own[0]
        text = re.sub(re.escape(own[0]), " ", text, flags=re.IGNORECASE)
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    numbers = [int(token) for token in tokens if token.isdigit()]
    if column.joint is None and len(numbers) == 1:
        column.joint = numbers[0]
    words = [token for token in tokens if not token.isdigit()]
    if len(words) > 1 and not column.unit and any(words[-1] in units for units in UNITS.values()) and words[-1] != "m":
        column.unit = words.pop()
    channels = {_CHANNEL[word] for word in words if word in _CHANNEL}
    column.channel = channels.pop() if len(channels) == 1 else ""
    column.words = frozenset(word for word in words if word not in _CHANNEL)


def runs(values: Array) -> bool:
    """Whether a column grows steadily, as a clock does."""
    steps = np.diff(values)
    usual = float(np.median(steps))
    return usual > 0.0 and bool(np.mean(steps > 0.0) > 0.99) and bool(np.mean(np.abs(steps / usual - 1.0) < 0.9) > 0.9)


def counts(values: Array) -> bool:
    """Whether a column counts rows, by whole numbers one apart."""
    return bool(np.all(values == np.round(values)) and np.median(np.diff(values)) == 1.0)


def smoothed(values: Array, step: float) -> Array:
    """Low-passed at a twentieth of the rate or 10 Hz, without its ends."""
    return _low_passed(values, step)[ENDS:-ENDS]


def derivative(values: Array, step: float) -> Array:
    """Its derivative."""
    return np.gradient(_low_passed(values, step), step)[ENDS:-ENDS]


def _low_passed(values: Array, step: float) -> Array:
    sections = signal.butter(3, min(10.0, 0.05 / step), fs=1.0 / step, output="sos")
    return np.asarray(signal.sosfiltfilt(sections, values - values.mean()))


def correlation(a: Array, b: Array) -> float:
    """Of two series."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0.0 else 0.0
