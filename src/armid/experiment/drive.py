"""Driving an arm: the protocol that a real arm or the virtual one implements, and steps that all procedures share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.errors import ArmidError, UnknownNameError
from armid.excitation.polynomial import quintic, rest_to_rest_durations
from armid.excitation.sequence import paces
from armid.logs.log import Log, LogInfo
from armid.progress import report_progress
from armid.robot.robot import Limits, Robot

CHUNK_S = 10.0  # of motion that is sent before progress is told


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


class ExperimentError(ArmidError):
    """An experiment cannot be carried out as asked."""


def rate_of(arm: Arm) -> float:
    """Cycles per second."""
    return 1.0 / arm.cycle_s


def joint_number(robot: Robot, joint: int | str) -> int:
    """Index of a joint, from 0, by its number from 1 or its name."""
    names = robot.joint_names
    if isinstance(joint, str) and joint in names:
        return names.index(joint)
    if isinstance(joint, str) and not joint.isdigit():
        raise UnknownNameError("joint", joint, names)
    number = int(joint)
    if not 1 <= number <= robot.n_joints:
        raise ExperimentError(f"joint {number} is not there; joints of {robot.name} are numbered 1 to {robot.n_joints}")
    return number - 1


def check_arm(arm: Arm, robot: Robot) -> None:
    """Refuse an arm whose joints are not the robot's."""
    if arm.info.joints != robot.joint_names:
        there, wanted = ", ".join(arm.info.joints), ", ".join(robot.joint_names)
        raise ExperimentError(f"the arm has the joints {there}, but {robot.name} has {wanted}; describe the same arm")


def move_to(arm: Arm, posture: ArrayLike, limits: Limits | None = None) -> None:
    """Go to a posture in position mode, rest to rest, at half of the limits' speeds; nothing is recorded."""
    goal = np.asarray(posture, dtype=float)
    start = arm.state().position
    if goal.shape != start.shape:
        raise ExperimentError(f"the posture has {goal.size} positions; the arm has {start.size} joints")
    arm.set_mode("position")
    if np.abs(goal - start).max() < 1e-6:
        return
    speed, bend = paces(limits, len(start))
    points = np.vstack([start, goal])
    length = max(float(rest_to_rest_durations(points, speed, bend)[0]), 4.0 * arm.cycle_s)
    arm.stream(quintic(points, [length]).sample(rate_of(arm))[1].q)
    arm.stream(np.repeat(goal[None], max(1, round(0.2 / arm.cycle_s)), axis=0))  # let it settle


def stream(arm: Arm, commands: Array, text: str = "") -> Recording:
    """Send commands piece by piece and tell how far it is, unless there is no text for that."""
    size = max(1, round(CHUNK_S / arm.cycle_s))
    parts = []
    for first in range(0, len(commands), size):
        parts.append(arm.stream(commands[first : first + size]))
        if text:
            report_progress(text, min(1.0, (first + size) / len(commands)))
    return joined(parts)


def joined(parts: Sequence[Recording]) -> Recording:
    """Recordings one after the other."""
    return Recording(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Recording)))


def to_log(arm: Arm, recording: Recording, mode: str, history: dict[str, Any], **info: Any) -> Log:
    """A log of what was recorded; `history` is added to the arm's own, `info` replaces fields of its `LogInfo`."""
    effort = "current" if arm.info.effort == "current" else "effort"
    channels = {"position": recording.position, "velocity": recording.velocity, "command": recording.command}
    if arm.info.effort != "none":
        channels[effort] = recording.effort
    if not np.isnan(recording.temperature).all():
        channels["temperature"] = recording.temperature
    merged = {**arm.info.history, **history}
    return Log(recording.time, channels, replace(arm.info, mode=mode, history=merged, **info))


def range_of(limits: Limits, index: int, around: float, margin: float = 0.05) -> tuple[float, float]:
    """Where a joint may move: its limits less a margin at either end; half a turn either way where none are known."""
    lower, upper = float(limits.lower[index]), float(limits.upper[index])
    lower = around - np.pi if np.isnan(lower) else lower
    upper = around + np.pi if np.isnan(upper) else upper
    free = margin * (upper - lower)
    return lower + free, upper - free
