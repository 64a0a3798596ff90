"""What a procedure needs of an arm: the drive protocol, which a real arm or the virtual one implements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armid.arrays import Array
from armid.logs.log import LogInfo


@dataclass(frozen=True, eq=False)
class State:
    """What an arm reports at one instant.

    Attributes:
        time: [s], by the arm's clock.
        position, velocity: joint side [rad, rad/s].
        effort: in the sense of the arm's `info.effort` (torque [N m] or current [A]).
        temperature: [°C]; NaN where there is no sensor.
    """

    time: float
    position: Array
    velocity: Array
    effort: Array
    temperature: Array


@dataclass(frozen=True)
class Timing:
    """How steady the cycle was kept.

    Attributes:
        cycles: how many were driven.
        mean_s: mean length of a cycle [s].
        worst_s: longest cycle [s].
        steady: share of cycles within 10 % of the nominal length.
    """

    cycles: int
    mean_s: float
    worst_s: float
    steady: float


@dataclass(frozen=True, eq=False)
class Recording:
    """What happened while commands were sent: one row per cycle, each (cycles, joints) but `time`.

    Attributes:
        time: [s].
        position, velocity, effort, temperature: as in `State`.
        command: what was sent.
    """

    time: Array
    position: Array
    velocity: Array
    effort: Array
    temperature: Array
    command: Array


class Arm(Protocol):
    """An arm that can be driven cycle by cycle.

    To attach a real arm, write a class with these members; inherit from `SteppedArm` to get `stream` for free.
    """

    info: LogInfo  # joints, what effort means, rate, robot name

    @property
    def cycle_s(self) -> float:
        """Length of a command cycle [s]."""

    def set_mode(self, mode: str) -> None:
        """Choose what commands mean: ``position``, ``velocity`` or ``torque``."""

    def state(self) -> State:
        """The newest state, without moving on."""

    def command(self, values: Array) -> State:
        """Hold a command for one cycle and return the state at its end."""

    def stream(self, commands: Array) -> Recording:
        """Send one command per cycle, (cycles, joints); row k of the recording is the state when row k was sent."""

    def timing(self) -> Timing:
        """How steady the cycle was kept so far."""


class SteppedArm:
    """`stream` for arms that have `state` and `command`."""

    def stream(self: Arm, commands: Array) -> Recording:
        """Send one command per cycle."""
        before, rows = self.state(), []
        for values in commands:
            rows.append(before)
            before = self.command(values)
        fields = ("position", "velocity", "effort", "temperature")
        columns = {name: np.array([getattr(row, name) for row in rows]) for name in fields}
        return Recording(np.array([row.time for row in rows]), command=np.asarray(commands), **columns)
