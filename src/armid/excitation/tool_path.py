"""Closed tool paths, those of the papers among them, and joint trajectories with exact derivatives along them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.kinematics import JointLimitAvoidance, inverse_kinematics, pose_error
from armid.excitation.fourier import FourierSeries
from armid.excitation.trajectory import TrajectoryError, number, numbers, whole
from armid.robot.robot import Robot

MOST_LAPS = 8  # until the self-motion of a redundant arm repeats
SOLVED = 1e-12  # tolerance on the grid, so that its errors leave no trace in the derivatives [m and rad]
CLOSED = 1e-8  # greatest difference between laps that counts as closed [rad or m]
BETWEEN = 1e-7  # largest tool error between grid points [m and rad]
NEGLIGIBLE = 1e-11  # Fourier coefficients below this are left out [rad or m]


class Place(TypedDict, total=False):
    """Where a path is drawn.

    Attributes:
        plane: rotation (3, 3) of the path's frame in the base frame; horizontal unless given.
        rotation: constant orientation of the tool (3, 3); free unless given.
    """

    plane: ArrayLike | None
    rotation: ArrayLike | None


@dataclass(frozen=True, eq=False)
class ToolPath:
    """A closed path of the tool in time, with constant orientation; it ends as it starts and can go on for ever.

    Attributes:
        frame: frame the path is drawn in, in the base frame (4, 4): its origin the centre, its x-y plane the plane.
        rotation: constant orientation of the tool in the base frame (3, 3), or None to leave it free.
        duration: of one lap [s].
        drawn: positions (samples, 3) in `frame` [m] at times [s].
    """

    frame: Array
    rotation: Array | None
    duration: float
    drawn: Callable[[Array], Array]

    def __post_init__(self) -> None:
        """Check frame and rotation."""
        frame = numbers("frame", self.frame, 2, (4, 4))
        _check_rotation("frame", frame[:3, :3])
        object.__setattr__(self, "frame", frame)
        if self.rotation is not None:
            rotation = numbers("rotation", self.rotation, 2, (3, 3))
            _check_rotation("rotation", rotation)
            object.__setattr__(self, "rotation", rotation)

    def poses(self, times: ArrayLike) -> Array:
        """Tool frames (samples, 4, 4) in the base frame; the identity rotation where the orientation is free."""
        wanted = numbers("times", times, 1)
        result = np.tile(np.eye(4), (len(wanted), 1, 1))
        result[:, :3, 3] = self.drawn(wanted) @ self.frame[:3, :3].T + self.frame[:3, 3]
        if self.rotation is not None:
            result[:, :3, :3] = self.rotation
        return result


def harmonic_path(frame: Array, rotation: Array | None, series: FourierSeries) -> ToolPath:
    """A path whose three coordinates in `frame` are Fourier series in time [m]."""
    return ToolPath(frame, rotation, series.duration, lambda times: series.at(times).q)


def _check_rotation(field: str, matrix: Array) -> None:
    if np.abs(matrix @ matrix.T - np.eye(3)).max() > 1e-9 or np.linalg.det(matrix) < 0.0:
        raise TrajectoryError(field, "must be a rotation: orthogonal, with determinant 1")


def circle(centre: ArrayLike, *, radius: float = 0.1, period: float = 5.0, **place: Unpack[Place]) -> ToolPath:
    """A circle. For the arguments shared by all paths see `ellipse`."""
    return ellipse(centre, semi_axes=(radius, radius), period=period, **place)


def ellipse(
    centre: ArrayLike, *, semi_axes: ArrayLike = (0.12, 0.06), period: float = 5.0, **place: Unpack[Place]
) -> ToolPath:
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
) -> ToolPath:
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
) -> ToolPath:
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
    **place: Unpack[Place],
) -> ToolPath:
    """A helix about the z axis of its frame, up from the centre of its bottom and down again; the tool starts at rest.

    The angle is 2 pi turns s and the height rise s [m], s = (1 - cos(2 pi t / duration)) / 2; `turns` need not be
    whole, the rest as with `ellipse`.
    """
    for name, value in (("radius", radius), ("turns", turns), ("duration", duration)):
        number(name, value, above=0.0)
    number("rise", rise)

    def drawn(times: Array) -> Array:
        s = 0.5 - 0.5 * np.cos(2.0 * np.pi / duration * times)
        angle = 2.0 * np.pi * turns * s
        return np.stack([radius * np.cos(angle), radius * np.sin(angle), rise * s], axis=1)

    return ToolPath(*_placed(centre, place), duration, drawn)


def pa10_figure() -> ToolPath:
    """The figure (20) of the PA-10: x = 0.085 (cos t + sin 2t - 1), y = 0.7, z = -0.075 (sin t + cos 2t - 1) + 0.7248.

    The orientation is constant but not printed (erratum PA-14). Ours points the tool's z along the base's z and its x
    along y: there the self-motion settles in one configuration from any start, at half of the joint limits.
    The figure starts at 0.186 m/s and needs a run-in.
    """
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    sine = [[0.0, 0.085], [0.0, 0.0], [-0.075, 0.0]]
    cosine = [[0.085, 0.0], [0.0, 0.0], [0.0, -0.075]]
    return _harmonic((-0.085, 0.7, 0.075 + 0.7248), 2.0 * np.pi, {"rotation": turn}, (1, 2), sine, cosine)


def joint_trajectory(robot: Robot, path: ToolPath, start_posture: ArrayLike, rate_hz: float = 50.0) -> FourierSeries:
    """Joint motion that follows a tool path.

    Inverse kinematics is solved on a grid, and the motion is the Fourier series that interpolates it (redundant arms
    keep off their joint limits, and drive laps until their self-motion repeats). It has exact derivatives, and the tool
    error halfway between grid points is checked. How closely a redundant arm keeps to the middle of its ranges depends
    on the grid, for it takes one null-space step at each point.

    Args:
        robot: the robot.
        path: what the tool follows.
        start_posture: posture to search the path's first pose from (joints,).
        rate_hz: density of the grid; the path is divided into the nearest whole number of samples.

    Raises:
        UnreachableError: the path leaves the workspace or the joint limits.
        TrajectoryError: the grid is too coarse, or the joints do not repeat.
    """
    steps = max(16, round(path.duration * number("rate_hz", rate_hz, above=0.0)))
    free = path.rotation is None
    poses = path.poses(np.arange(steps) * (path.duration / steps))

    def solve(some: Array, start: ArrayLike, settle: bool = False) -> Array:
        return inverse_kinematics(
            robot,
            some,
            start,
            null_space=JointLimitAvoidance(),
            settle=settle,
            position_only=free,
            position_tolerance=SOLVED,
            rotation_tolerance=SOLVED,
        )

    trajectory = _interpolated(1.0 / path.duration, _closed_lap(solve, poses, solve(poses, start_posture, settle=True)))
    between = (np.arange(steps) + 0.5) * (path.duration / steps)
    error = np.abs(pose_error(robot, trajectory.at(between).q, path.poses(between))[:, : 3 if free else 6]).max()
    if error > BETWEEN:
        problem = f"{rate_hz:g} leaves tool errors of {error:.2g} between grid points"
        raise TrajectoryError("rate_hz", f"{problem}, over the tolerance {BETWEEN:g}; use a higher rate")
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
) -> ToolPath:
    frequency = 1.0 / number("period", period, above=0.0)
    series = FourierSeries(frequency, harmonics, np.array(sine), np.array(cosine), np.zeros(3))
    return harmonic_path(*_placed(centre, place), series)


def _placed(centre: ArrayLike, place: Place) -> tuple[Array, Array | None]:
    """Frame of a path and orientation of the tool."""
    frame, plane, rotation = np.eye(4), place.get("plane"), place.get("rotation")
    frame[:3, 3] = numbers("centre", centre, 1, (3,))
    if plane is not None:
        frame[:3, :3] = numbers("plane", plane, 2, (3, 3))
    return frame, None if rotation is None else np.asarray(rotation)
