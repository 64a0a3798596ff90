"""Tool paths with exact derivatives, those of the papers among them, and joint trajectories that follow them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.kinematics import JointLimitAvoidance, inverse_kinematics, pose_error
from armid.excitation.fourier import FourierSeries
from armid.excitation.polynomial import PiecewisePolynomial, spline
from armid.excitation.trajectory import TrajectoryError, number, numbers, whole
from armid.robot.robot import Robot

MOST_LAPS = 8  # until the self-motion of a redundant arm repeats
SOLVED = 1e-12  # tolerance on the grid, so that its errors leave no trace in the derivatives [m and rad]
CLOSED = 1e-8  # greatest difference between laps that counts as closed [rad or m]
NEGLIGIBLE = 1e-11  # Fourier coefficients below this are left out [rad or m]


class Place(TypedDict, total=False):
    """Where a path is drawn.

    Attributes:
        plane: rotation (3, 3) of the path's frame in the base frame; horizontal unless given.
        rotation: constant orientation of the tool (3, 3); free unless given.
    """

    plane: ArrayLike | None
    rotation: ArrayLike | None


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


def circle(
    centre: ArrayLike,
    *,
    radius: float = 0.1,
    period: float = 5.0,
    **place: Unpack[Place],
) -> HarmonicPath:
    """A circle. For the arguments shared by all paths see `ellipse`."""
    return ellipse(centre, semi_axes=(radius, radius), period=period, **place)


def ellipse(
    centre: ArrayLike,
    *,
    semi_axes: ArrayLike = (0.12, 0.06),
    period: float = 5.0,
    **place: Unpack[Place],
) -> HarmonicPath:
    """An ellipse x = a cos p, y = b sin p, p = 2 pi t / period.

    The RX-60 paper names its paths (IV.A) but prints no sizes: the defaults here are ours.

    Args:
        centre: in the base frame [m].
        semi_axes: along x and y of the plane [m].
        period: one lap [s].
        place: plane and orientation of the tool, see `Place`.
    """
    a, b = numbers("semi_axes", semi_axes, 1, (2,))
    return _harmonic(centre, period, place, (1,), [[0.0], [b], [0.0]], [[a], [0.0], [0.0]])


def bulb(
    centre: ArrayLike,
    *,
    length: float = 0.24,
    width: float = 0.16,
    neck: float = 0.6,
    period: float = 5.0,
    **place: Unpack[Place],
) -> HarmonicPath:
    """The outline of a light bulb, round at one end, with a neck at the other.

    It is x = width/2 cos p (1 + neck sin p), y = length/2 sin p. `neck` goes from 0 (an ellipse) to less
    than 1; the rest as with `ellipse`.
    """
    pull = number("neck", neck, least=0.0)
    if pull >= 1.0:
        raise TrajectoryError("neck", f"is {pull:g}; it must be less than 1")
    half_length, half_width = 0.5 * number("length", length, above=0.0), 0.5 * number("width", width, above=0.0)
    sine = [[0.0, 0.5 * pull * half_width], [half_length, 0.0], [0.0, 0.0]]
    return _harmonic(centre, period, place, (1, 2), sine, [[half_width, 0.0], [0.0, 0.0], [0.0, 0.0]])


def ellipsoid(
    centre: ArrayLike,
    *,
    semi_axes: ArrayLike = (0.1, 0.1, 0.07),
    winding: int = 3,
    period: float = 15.0,
    **place: Unpack[Place],
) -> HarmonicPath:
    """A curve on an ellipsoid, [a sin(n p) cos p, b sin(n p) sin p, c cos(n p)]: n windings from pole to pole per lap.

    The curve closes smoothly for every n of at least 2; the rest as with `ellipse`.
    """
    a, b, c = numbers("semi_axes", semi_axes, 1, (3,))
    n = whole("winding", winding, 2)
    # sin n cos 1 = (sin(n+1) + sin(n-1)) / 2 and sin n sin 1 = (cos(n-1) - cos(n+1)) / 2
    sine = [[0.5 * a, 0.0, 0.5 * a], [0.0] * 3, [0.0] * 3]
    cosine = [[0.0] * 3, [0.5 * b, 0.0, -0.5 * b], [0.0, c, 0.0]]
    return _harmonic(centre, period, place, (n - 1, n, n + 1), sine, cosine)


def helix(
    centre: ArrayLike,
    *,
    radius: float = 0.1,
    rise: float = 0.15,
    turns: float = 2.0,
    duration: float = 10.0,
    retraced: bool = True,
    **place: Unpack[Place],
) -> Helix:
    """A helix that starts at rest, see `Helix`; `centre` is the centre of its bottom, the rest as with `ellipse`."""
    return Helix(*_placed(centre, place), radius, rise, turns, duration, retraced)


def pa10_figure(rotation: ArrayLike | None = None) -> HarmonicPath:
    """The figure (20) of the PA-10: x = 0.085 (cos t + sin 2t - 1), y = 0.7, z = -0.075 (sin t + cos 2t - 1) + 0.7248.

    The orientation is constant but not printed (erratum PA-14). Ours points the tool's z along the base's z and its x
    along y: there the self-motion settles in one configuration from any start, at half of the joint limits.
    The figure starts at 0.186 m/s and needs a run-in.
    """
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]) if rotation is None else np.asarray(rotation)
    sine = [[0.0, 0.085], [0.0, 0.0], [-0.075, 0.0]]
    cosine = [[0.085, 0.0], [0.0, 0.0], [0.0, -0.075]]
    return _harmonic((-0.085, 0.7, 0.075 + 0.7248), 2.0 * np.pi, {"rotation": turn}, (1, 2), sine, cosine)


def joint_trajectory(
    robot: Robot,
    path: ToolPath,
    start_posture: ArrayLike,
    rate_hz: float = 50.0,
    *,
    null_space: JointLimitAvoidance | None = JointLimitAvoidance(),  # noqa: B008 (immutable)
    tolerance: float = 1e-7,
) -> FourierSeries | PiecewisePolynomial:
    """Joint motion that follows a tool path.

    Inverse kinematics is solved on a grid of `rate_hz`. A closed path becomes a Fourier series that interpolates the
    grid (redundant arms drive laps until their self-motion repeats); an open path becomes a quintic spline. Both have
    exact derivatives, and the tool error halfway between grid points is checked. How closely a redundant arm keeps to
    the middle of its ranges depends on the grid, for it takes one null-space step at each point.

    Args:
        robot: the robot.
        path: what the tool follows.
        start_posture: posture to search the path's first pose from (joints,).
        rate_hz: density of the grid; a closed path is divided into the nearest whole number of samples.
        null_space: what a redundant arm does with its freedom.
        tolerance: largest tool error between grid points [m and rad].

    Raises:
        UnreachableError: the path leaves the workspace or the joint limits.
        TrajectoryError: the grid is too coarse, or the joints do not repeat on a closed path.
    """
    steps = max(16, round(path.duration * number("rate_hz", rate_hz, above=0.0)))
    free = path.rotation is None
    grid = np.arange(steps + (not path.closed)) * (path.duration / steps)
    poses = path.poses(grid)

    def solve(some: Array, start: ArrayLike, settle: bool = False) -> Array:
        return inverse_kinematics(
            robot,
            some,
            start,
            null_space=null_space,
            settle=settle,
            position_only=free,
            position_tolerance=SOLVED,
            rotation_tolerance=SOLVED,
        )

    q = solve(poses, start_posture, settle=True)
    frequency = 1.0 / path.duration
    trajectory = _interpolated(frequency, _closed_lap(solve, poses, q)) if path.closed else spline(grid, q)
    between = (np.arange(steps) + 0.5) * (path.duration / steps)
    error = np.abs(pose_error(robot, trajectory.at(between).q, path.poses(between))[:, : 3 if free else 6]).max()
    if error > tolerance:
        problem = f"{rate_hz:g} leaves tool errors of {error:.2g} between grid points"
        raise TrajectoryError("rate_hz", f"{problem}, over the tolerance {tolerance:g}; use a higher rate")
    return trajectory


def _closed_lap(solve: Callable[[Array, Array], Array], poses: Array, q: Array) -> Array:
    """One lap (samples, joints) after which the arm is where it started: a non-redundant arm's first."""
    change = np.inf
    for _ in range(MOST_LAPS):
        change = float(np.abs(solve(poses[:1], q[-1])[0] - q[0]).max())
        if change < CLOSED:
            return q
        q = solve(poses, q[-1])
    problem = f"is closed, but after {MOST_LAPS} laps the joints still end {change:.2g} from where they began"
    raise TrajectoryError("path", f"{problem}; use another start posture or null-space gain")


def _interpolated(base_frequency_hz: float, q: Array) -> FourierSeries:
    """The Fourier series through one period of equally spaced positions, without negligible harmonics."""
    spectrum = np.fft.rfft(q, axis=0).T / len(q)
    count = (len(q) - 1) // 2
    sine, cosine = -2.0 * spectrum[:, 1 : count + 1].imag, 2.0 * spectrum[:, 1 : count + 1].real
    size = np.maximum(np.abs(sine), np.abs(cosine)).max(axis=0)
    last = int(np.flatnonzero(size > NEGLIGIBLE).max(initial=0)) + 1
    return FourierSeries(
        base_frequency_hz, tuple(range(1, last + 1)), sine[:, :last], cosine[:, :last], spectrum[:, 0].real
    )


def _harmonic(
    centre: ArrayLike,
    period: float,
    place: Place,
    harmonics: tuple[int, ...],
    sine: list[list[float]],
    cosine: list[list[float]],
) -> HarmonicPath:
    frequency = 1.0 / number("period", period, above=0.0)
    series = FourierSeries(frequency, harmonics, np.array(sine), np.array(cosine), np.zeros(3))
    return HarmonicPath(*_placed(centre, place), series)


def _placed(centre: ArrayLike, place: Place) -> tuple[Array, Array | None]:
    """Frame of a path and orientation of the tool."""
    frame, plane, rotation = np.eye(4), place.get("plane"), place.get("rotation")
    frame[:3, 3] = numbers("centre", centre, 1, (3,))
    if plane is not None:
        frame[:3, :3] = numbers("plane", plane, 2, (3, 3))
    return frame, None if rotation is None else np.asarray(rotation)
