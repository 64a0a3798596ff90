"""Piecewise polynomials: quintics, splines, trapezoidal velocity."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.excitation.trajectory import Trajectory, TrajectoryError, number, numbers, per_joint, whole
from armid.robot.robot import Robot

# Quintic from rest to rest over the unit of way and time: its greatest speed and acceleration.
REST_TO_REST_SPEED = 15.0 / 8.0
REST_TO_REST_ACCELERATION = 10.0 / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(Trajectory, type_name="polynomial"):
    """Polynomials in time, one after the other; position and velocity have no jumps.

    Attributes:
        durations: length of each segment [s], (segments,).
        coefficients: (segments, powers, joints), lowest power first, in the time since the segment's start.
    """

    durations: Array
    coefficients: Array

    def __post_init__(self) -> None:
        """Check and freeze the fields."""
        durations = numbers("durations", self.durations, 1)
        coefficients = numbers("coefficients", self.coefficients, 3, (len(durations), None, None))
        if not coefficients.size:
            raise TrajectoryError("coefficients", "is empty; give at least one segment with one power and one joint")
        if np.any(durations <= 0.0):
            raise TrajectoryError("durations", f"must be positive; the least is {durations.min():g} s")
        self._freeze(coefficients.shape[2], float(durations.sum()), durations=durations, coefficients=coefficients)
        starts, ends = coefficients[1:], self._local(np.arange(len(durations)), durations)
        for name, end, power in (("position", ends.q, 0), ("velocity", ends.qd, 1)):
            begin = starts[:, power] if coefficients.shape[1] > power else np.zeros_like(starts[:, 0])
            jump = np.abs(begin - end[:-1])
            if jump.size and jump.max() > 1e-6 * max(1.0, float(np.abs(end).max())):
                worst, joint = np.unravel_index(jump.argmax(), jump.shape)
                where = f"at the end of segment {worst + 1} of {len(durations)}"
                raise TrajectoryError("coefficients", f"let the {name} of joint {joint + 1} jump {where}")

    @property
    def breaks(self) -> Array:
        """Times at which segments start, and the end [s]."""
        return np.concatenate([[0.0], np.cumsum(self.durations)])

    def _motion(self, times: Array) -> Motion:
        breaks = self.breaks
        segment = np.clip(np.searchsorted(breaks, times, side="right") - 1, 0, len(self.durations) - 1)
        return self._local(segment, times - breaks[segment])

    def _local(self, segment: NDArray[np.intp], since: Array) -> Motion:
        """Motion in numbered segments at times since their starts, by Horner's rule for all three at once."""
        shape = (len(segment), self.joints)
        q, qd, half = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        tau = since[:, None]
        for power in reversed(range(self.coefficients.shape[1])):
            half = half * tau + qd
            qd = qd * tau + q
            q = q * tau + self.coefficients[segment, power]
        return Motion(q, qd, 2.0 * half)


def quintic(
    waypoints: ArrayLike,
    durations: ArrayLike,
    velocities: ArrayLike | None = None,
    accelerations: ArrayLike | None = None,
) -> PiecewisePolynomial:
    """Fifth-order polynomials through waypoints.

    Args:
        waypoints: positions (points, joints).
        durations: time from each point to the next [s], (points - 1,).
        velocities: at the points, (points, joints); the arm rests there unless given.
        accelerations: likewise; zero unless given.
    """
    points = numbers("waypoints", waypoints, 2)
    if len(points) < 2 or not points.shape[1]:
        raise TrajectoryError("waypoints", f"has shape {points.shape}; at least two points are needed")
    times = numbers("durations", durations, 1, (len(points) - 1,))
    if np.any(times <= 0.0):
        raise TrajectoryError("durations", f"must be positive; the least is {times.min():g} s")
    speed = np.zeros_like(points) if velocities is None else numbers("velocities", velocities, 2, points.shape)
    bend = np.zeros_like(points) if accelerations is None else numbers("accelerations", accelerations, 2, points.shape)
    return PiecewisePolynomial(times, _hermite(points, speed, bend, times[:, None]))


def rest_to_rest_durations(points: Array, velocity: ArrayLike, acceleration: ArrayLike) -> Array:
    """Shortest times [s] of rest-to-rest quintics between consecutive points; NaN among the limits is no limit."""
    way = np.abs(np.diff(points, axis=0))
    speed, bend = (np.asarray(limit, dtype=float) for limit in (velocity, acceleration))
    slow = np.where(np.isnan(speed), 0.0, REST_TO_REST_SPEED * way / speed)
    soft = np.where(np.isnan(bend), 0.0, np.sqrt(REST_TO_REST_ACCELERATION * way / bend))
    return np.asarray(np.maximum(slow, soft).max(axis=1))


def from_velocity(start: ArrayLike, durations: ArrayLike, velocity: ArrayLike) -> PiecewisePolynomial:
    """Integrate piecewise polynomial velocities (segments, powers, joints) from the posture `start`."""
    times = numbers("durations", durations, 1)
    speed = numbers("velocity", velocity, 3, (len(times), None, None))
    first = per_joint("start", start, speed.shape[2])
    powers = np.arange(1, speed.shape[1] + 1)[:, None]
    integral = speed / powers
    way = np.sum(integral * times[:, None, None] ** powers, axis=1)
    begin = first + np.vstack([np.zeros_like(first), np.cumsum(way, axis=0)[:-1]])
    return PiecewisePolynomial(times, np.concatenate([begin[:, None], integral], axis=1))


def spline(times: ArrayLike, positions: ArrayLike) -> PiecewisePolynomial:
    """Quintic spline through positions (samples, joints) at given times, four times continuously differentiable."""
    from scipy.interpolate import make_interp_spline

    when, where = numbers("times", times, 1), numbers("positions", positions, 2)
    if len(when) < 6 or len(where) != len(when) or np.any(np.diff(when) <= 0.0):
        raise TrajectoryError("times", f"must be at least 6, rising, one for each of the {len(where)} positions")
    curve = make_interp_spline(when, where, k=5)
    knots = np.unique(curve.t)
    powers = [curve(knots[:-1], order) / factorial(order) for order in range(6)]
    return PiecewisePolynomial(np.diff(knots), np.stack(powers, axis=1))


def _hermite(q: Array, qd: Array, qdd: Array, T: Array) -> Array:
    """Coefficients (segments, 6, joints) from the end conditions of each segment."""
    q0, v0, a0 = q[:-1], qd[:-1] * T, qdd[:-1] * T**2
    q1, v1, a1 = q[1:], qd[1:] * T, qdd[1:] * T**2
    way = q1 - q0
    c3 = 10.0 * way - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1
    c4 = -15.0 * way + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1
    c5 = 6.0 * way - 3.0 * (v0 + v1) - 0.5 * (a0 - a1)
    unit = np.stack([q0, v0, 0.5 * a0, c3, c4, c5], axis=1)
    return unit / T[:, :, None] ** np.arange(6)[None, :, None]


def trapezoidal(points: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike) -> PiecewisePolynomial:
    """Move from point to point with trapezoidal velocity (Swevers, validation: maximum acceleration, no dwell).

    Between two points all joints start, cruise and stop together, on a straight line in joint space. The joint that
    needs most time drives at its limits. Points that repeat the one before cost no time.

    Args:
        points: postures (points, joints).
        velocity: largest speed per joint, or one for all [rad/s or m/s].
        acceleration: largest acceleration and deceleration likewise [rad/s^2 or m/s^2].
    """
    stops = numbers("points", points, 2)
    if len(stops) < 2 or not stops.shape[1]:
        raise TrajectoryError("points", f"has shape {stops.shape}; at least two points are needed")
    v, a = per_joint("velocity", velocity, stops.shape[1]), per_joint("acceleration", acceleration, stops.shape[1])
    for name, limit in (("velocity", v), ("acceleration", a)):
        if np.any(limit <= 0.0):
            raise TrajectoryError(name, f"must be positive for every joint; the least is {limit.min():g}")
    way = np.diff(stops, axis=0)
    way = way[way.any(axis=1)]
    if not len(way):
        raise TrajectoryError("points", "are all the same; give points that differ")
    # Fraction s of the way with |ds/dt| <= rate and |d2s/dt2| <= bend: the tightest joint decides.
    with np.errstate(divide="ignore"):
        rate, bend = (v / np.abs(way)).min(axis=1), (a / np.abs(way)).min(axis=1)
    rate = np.minimum(rate, np.sqrt(bend))
    ramp, zero = rate / bend, np.zeros_like(rate)
    phases = np.stack([ramp, np.maximum(1.0 / rate - ramp, 0.0), ramp], axis=1).ravel()
    values = np.stack([zero, rate, rate], axis=1)[:, :, None] * way[:, None]
    slopes = np.stack([bend, zero, -bend], axis=1)[:, :, None] * way[:, None]
    velocities, used = np.stack([values, slopes], axis=2).reshape(-1, 2, stops.shape[1]), phases > 1e-12
    return from_velocity(stops[0], phases[used], velocities[used])


def random_points(robot: Robot, count: int = 20, seed: int = 0, margin: float = 0.0) -> Array:
    """Random postures (count, joints) inside the robot's position limits.

    Args:
        robot: the robot; its position limits must be known.
        count: number of postures.
        seed: the same seed gives the same postures.
        margin: part of the range kept free at either end, 0 to less than 0.5.
    """
    lower, upper = robot.limits.lower, robot.limits.upper
    unknown = [name for name, span in zip(robot.joint_names, upper - lower, strict=True) if np.isnan(span)]
    if unknown:
        problem = f"of {robot.name} are not known for {', '.join(unknown)}; state them under limits in its description"
        raise TrajectoryError("position limits", problem)
    share = number("margin", margin, least=0.0)
    if share >= 0.5:
        raise TrajectoryError("margin", f"is {share:g}; it must be less than 0.5")
    free = share * (upper - lower)
    rng = np.random.default_rng(seed)
    return rng.uniform(lower + free, upper - free, (whole("count", count, 1), robot.n_joints))
