"""Point-to-point motion with trapezoidal velocity, all joints together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.excitation.polynomial import PiecewisePolynomial, from_velocity
from armid.excitation.trajectory import TrajectoryError, number, numbers, per_joint, whole
from armid.robot.robot import Robot


def trapezoidal(
    points: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, dwell_s: float = 0.0
) -> PiecewisePolynomial:
    """Move from point to point with trapezoidal velocity (Swevers, validation: maximum acceleration, no dwell).

    Between two points all joints start, cruise and stop together, on a straight line in joint space. The joint that
    needs most time drives at its limits. Points that repeat the one before cost only their dwell.

    Args:
        points: postures (points, joints).
        velocity: largest speed per joint, or one for all [rad/s or m/s].
        acceleration: largest acceleration and deceleration likewise [rad/s^2 or m/s^2].
        dwell_s: rest at each point but the last [s].
    """
    stops = numbers("points", points, 2)
    if len(stops) < 2 or not stops.shape[1]:
        raise TrajectoryError("points", f"has shape {stops.shape}; at least two points are needed")
    v, a = (per_joint(n, x, stops.shape[1]) for n, x in (("velocity", velocity), ("acceleration", acceleration)))
    for name, limit in (("velocity", v), ("acceleration", a)):
        if np.any(limit <= 0.0):
            raise TrajectoryError(name, f"must be positive for every joint; the least is {limit.min():g}")
    dwell = number("dwell_s", dwell_s, least=0.0)
    way = np.diff(stops, axis=0)
    # Fraction s of the way with |ds/dt| <= rate and |d2s/dt2| <= bend: the tightest joint decides.
    with np.errstate(divide="ignore"):
        rate, bend = (v / np.abs(way)).min(axis=1), (a / np.abs(way)).min(axis=1)
    moving = np.isfinite(rate)
    rate, bend = np.where(moving, rate, 1.0), np.where(moving, bend, 1.0)
    rate = np.minimum(rate, np.sqrt(bend))
    ramp = rate / bend
    cruise = np.maximum(1.0 / rate - ramp, 0.0)
    phases = np.stack([ramp, cruise, ramp], axis=1) * moving[:, None]
    phases = np.hstack([phases, np.full((len(way), 1), dwell)])
    phases[-1, 3] = 0.0
    zero = np.zeros_like(rate)
    values = np.stack([zero, rate, rate, zero], axis=1)[:, :, None] * way[:, None]
    slopes = np.stack([bend, zero, -bend, zero], axis=1)[:, :, None] * way[:, None]
    used = phases.ravel() > 1e-12
    if not np.any(used):
        raise TrajectoryError("points", "are all the same; give points that differ, or a dwell")
    velocities = np.stack([values, slopes], axis=2).reshape(-1, 2, stops.shape[1])
    return from_velocity(stops[0], phases.ravel()[used], velocities[used])


def random_points(robot: Robot, count: int = 20, seed: int = 0, margin: float = 0.0) -> Array:
    """Random postures (count, joints) inside the robot's position limits.

    Args:
        robot: the robot; its position limits must be known.
        count: number of postures.
        seed: the same seed gives the same postures.
        margin: part of the range kept free at either end, 0 to less than 0.5.
    """
    lower, upper = robot.limits.lower, robot.limits.upper
    if len(lower) != robot.n_joints or np.any(np.isnan(lower) | np.isnan(upper)):
        unknown = [
            name
            for name, low, high in zip(robot.joint_names, lower, upper, strict=False)
            if np.isnan(low) or np.isnan(high)
        ] or list(robot.joint_names)
        problem = f"of {robot.name} are not known for {', '.join(unknown)}; state them under limits in its description"
        raise TrajectoryError("position limits", problem)
    share = number("margin", margin, least=0.0)
    if share >= 0.5:
        raise TrajectoryError("margin", f"is {share:g}; it must be less than 0.5")
    free = share * (upper - lower)
    rng = np.random.default_rng(seed)
    return rng.uniform(lower + free, upper - free, (whole("count", count, 1), robot.n_joints))
