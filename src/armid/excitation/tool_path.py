"""What a tool path is: the tool's frame at any time with exact derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.excitation.fourier import FourierSeries
from armid.excitation.trajectory import TrajectoryError, number, numbers


class ToolMotion(NamedTuple):
    """Tool frame and its exact derivatives in the base frame, each (samples, 3), the rotation (samples, 3, 3)."""

    position: Array
    velocity: Array
    acceleration: Array
    rotation: Array
    angular_velocity: Array
    angular_acceleration: Array


@dataclass(frozen=True, eq=False)
class ToolPath(ABC):
    """A path of the tool in time, with constant orientation.

    Attributes:
        frame: frame the path is drawn in, in the base frame (4, 4): its origin the centre, its x-y plane the plane.
        rotation: constant orientation of the tool in the base frame (3, 3), or None to leave it free.
    """

    frame: Array
    rotation: Array | None

    def __post_init__(self) -> None:
        """Check frame and rotation."""
        frame = numbers("frame", self.frame, 2, (4, 4))
        _check_rotation("frame", frame[:3, :3])
        object.__setattr__(self, "frame", frame)
        if self.rotation is not None:
            rotation = numbers("rotation", self.rotation, 2, (3, 3))
            _check_rotation("rotation", rotation)
            object.__setattr__(self, "rotation", rotation)

    @property
    @abstractmethod
    def duration(self) -> float:
        """Length [s]; one lap if closed."""

    @property
    def closed(self) -> bool:
        """Ends where it started, with the same velocity and acceleration, and can go on for ever."""
        return True

    @abstractmethod
    def _drawn(self, times: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration in `frame`."""

    def at(self, times: ArrayLike) -> ToolMotion:
        """Exact motion of the tool at any times [s]."""
        wanted = numbers("times", times, 1)
        position, velocity, acceleration = self._drawn(wanted)
        turn = self.frame[:3, :3].T
        rotation = np.broadcast_to(np.eye(3) if self.rotation is None else self.rotation, (len(wanted), 3, 3))
        still = np.zeros_like(position)
        moved = (position @ turn + self.frame[:3, 3], velocity @ turn, acceleration @ turn)
        return ToolMotion(*moved, rotation, still, still)

    def poses(self, times: ArrayLike) -> Array:
        """Tool frames (samples, 4, 4); the identity rotation where the orientation is free."""
        motion = self.at(times)
        result = np.tile(np.eye(4), (len(motion.position), 1, 1))
        result[:, :3, :3], result[:, :3, 3] = motion.rotation, motion.position
        return result


@dataclass(frozen=True, eq=False)
class HarmonicPath(ToolPath):
    """A closed path whose three coordinates are Fourier series in time.

    Attributes:
        series: x, y, z in `frame` [m].
    """

    series: FourierSeries

    @property
    def duration(self) -> float:
        """One lap [s]."""
        return self.series.duration

    def _drawn(self, times: Array) -> tuple[Array, Array, Array]:
        return self.series.at(times)


@dataclass(frozen=True, eq=False)
class Helix(ToolPath):
    """A helix about the z axis of `frame`, from its bottom upwards; the tool starts at rest.

    Along the way the angle is 2 pi turns s and the height rise s. Retraced, s = (1 - cos(2 pi t / T)) / 2 goes up and
    down again: closed. Otherwise s = 10 u^3 - 15 u^4 + 6 u^5, u = t / T, goes up once and rests at the top.

    Attributes:
        radius, rise: [m].
        turns: number of turns, not necessarily whole.
        length: duration T [s].
        retraced: up and down instead of up only.
    """

    radius: float = 0.1
    rise: float = 0.15
    turns: float = 2.0
    length: float = 10.0
    retraced: bool = True

    def __post_init__(self) -> None:
        """Check the numbers."""
        super().__post_init__()
        for name in ("radius", "turns", "length"):
            number(name, getattr(self, name), above=0.0)
        number("rise", self.rise)

    @property
    def duration(self) -> float:
        """Length [s]."""
        return self.length

    @property
    def closed(self) -> bool:
        """If retraced."""
        return self.retraced

    def _drawn(self, times: Array) -> tuple[Array, Array, Array]:
        s, ds, dds = _there_and_back(times, self.length) if self.retraced else _smooth_step(times, self.length)
        angle, full = 2.0 * np.pi * self.turns * s, 2.0 * np.pi * self.turns
        cos, sin, zero, one = self.radius * np.cos(angle), self.radius * np.sin(angle), 0.0 * s, 1.0 + 0.0 * s
        way = np.stack([cos, sin, self.rise * s], axis=1)
        first = np.stack([-full * sin, full * cos, self.rise * one], axis=1)
        second = np.stack([-(full**2) * cos, -(full**2) * sin, zero], axis=1)
        return way, first * ds[:, None], second * ds[:, None] ** 2 + first * dds[:, None]


def _check_rotation(field: str, matrix: Array) -> None:
    if np.abs(matrix @ matrix.T - np.eye(3)).max() > 1e-9 or np.linalg.det(matrix) < 0.0:
        raise TrajectoryError(field, "must be a rotation: orthogonal, with determinant 1")


def _there_and_back(times: Array, length: float) -> tuple[Array, Array, Array]:
    w = 2.0 * np.pi / length
    return 0.5 - 0.5 * np.cos(w * times), 0.5 * w * np.sin(w * times), 0.5 * w * w * np.cos(w * times)


def _smooth_step(times: Array, length: float) -> tuple[Array, Array, Array]:
    u = np.clip(times / length, 0.0, 1.0)
    s = u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
    return s, 30.0 * (u * (1.0 - u)) ** 2 / length, 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / length**2
