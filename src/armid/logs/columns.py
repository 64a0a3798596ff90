"""Columns of somebody's table: what their names say, how their numbers run, and which efforts balance a motion."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import signal
from scipy.optimize import linear_sum_assignment

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.logs.log import LogError
from armid.logs.table import UNITS, Table
from armid.robot.robot import Robot

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
    """Whether a column grows steadily, as a clock does; nanoseconds that start anew every second do not."""
    steps = np.diff(values)
    usual, ahead = float(np.median(steps)), steps > 0.0
    steady = usual > 0.0 and np.mean(ahead) > 0.99 and np.mean(np.abs(steps / usual - 1.0) < 0.9) > 0.9
    return bool(steady and values[-1] - values[0] > 0.5 * steps[ahead].sum())


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


SAMPLES = 1500  # rows of the fit
CLEAR = 1.3  # times the error that another reading must have
GOOD = 0.5  # share of a column that may stay unexplained


@dataclass(frozen=True)
class Balance:
    """How joints and columns of effort belong together.

    Attributes:
        errors: share of each joint's column that its dynamics do not explain, (joints,).
        columns: column of each joint; None where that is not clear.
        in_order: no other order of the columns explains clearly more.
        order_is_clear: no exchange of two joints explains nearly as much.
    """

    errors: Array
    columns: tuple[int, ...] | None
    in_order: bool
    order_is_clear: bool

    @property
    def worst(self) -> float:
        """Largest error."""
        return float(self.errors.max())

    @property
    def mean(self) -> float:
        """Mean error."""
        return float(self.errors.mean())


def balance(robot: Robot, position: Array, efforts: Array, step: float) -> Balance:
    """Fit every column of effort by every joint's dynamics; positions [rad or m] at a uniform step [s]."""
    sections = signal.butter(3, min(5.0, 0.04 / step), fs=1.0 / step, output="sos")
    q, effort = (signal.sosfiltfilt(sections, values, axis=0) for values in (position, efforts))
    v = np.gradient(q, step, axis=0)
    keep = np.unique(np.linspace(50, len(q) - 51, SAMPLES).astype(int))
    motion = Motion(q[keep], v[keep], np.gradient(v, step, axis=0)[keep])
    effort = effort[keep]
    model, joints = Model(robot), robot.n_joints
    table = _unexplained(model, motion, effort)
    rows, columns = linear_sum_assignment(table)
    errors = table[rows, columns]
    others = np.where(np.arange(table.shape[1]) == columns[:, None], np.inf, table).min(axis=1)
    clear = bool(errors.max() < GOOD and np.all(others > CLEAR * errors))
    square = table.shape[1] == joints
    given = np.diag(table) if square else errors
    in_order = square and bool(given.max() < GOOD and np.all(given <= CLEAR * table.min(axis=1)))
    swapped = np.inf
    if clear:
        for a, b in combinations(range(joints), 2):
            order = np.arange(joints)
            order[[a, b]] = b, a
            other = _unexplained(model, Motion(*(np.ascontiguousarray(array[:, order]) for array in motion)), effort)
            swapped = min(swapped, float(other[linear_sum_assignment(other)].mean()))
    certain = clear and swapped > CLEAR * float(errors.mean())
    return Balance(given, tuple(columns.tolist()) if clear else None, in_order, certain)


def _unexplained(model: Model, motion: Motion, effort: Array) -> Array:
    """Share of each column that each joint's linear model leaves unexplained, (joints, columns)."""
    regressor = model.regressor(motion.q, motion.qd, motion.qdd, model.base.kept)
    centred = effort - effort.mean(axis=0)
    size = np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    result = np.empty((regressor.shape[1], effort.shape[1]))
    for joint in range(regressor.shape[1]):
        own = np.column_stack([regressor[:, joint], np.ones(len(effort))])
        basis, singular, _ = np.linalg.svd(own[:, np.any(own != 0.0, axis=0)], full_matrices=False)
        basis = basis[:, singular > 1e-8 * singular[0]]
        result[joint] = np.linalg.norm(centred - basis @ (basis.T @ centred), axis=0) / size
    return result
