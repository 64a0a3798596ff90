"""Velocity and acceleration profiles: acceleration sequences, PA-10 profiles, constant-velocity sweeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.excitation.fourier import FourierSeries
from armid.excitation.polynomial import PiecewisePolynomial, from_velocity
from armid.excitation.trajectory import TrajectoryError, number, numbers, per_joint, whole


@dataclass(frozen=True, eq=False)
class Sweep:
    """Strokes at constant speed.

    Attributes:
        trajectory: the motion, starting and ending at rest in the same posture.
        speeds: velocity of each cruise [rad/s or m/s], its sign the direction, (cruises,).
        windows: start and end of each cruise [s], (cruises, 2).
    """

    trajectory: PiecewisePolynomial
    speeds: Array
    windows: Array


def acceleration_sequence(
    start: ArrayLike, accelerations: ArrayLike, durations: ArrayLike, start_velocity: ArrayLike = 0.0
) -> PiecewisePolynomial:
    """Constant accelerations one after the other, an alternative that Swevers et al. mention.

    Args:
        start: posture at the beginning (joints,).
        accelerations: (segments, joints) [rad/s^2 or m/s^2].
        durations: of the segments [s].
        start_velocity: at the beginning [rad/s or m/s].
    """
    bend = numbers("accelerations", accelerations, 2)
    times = numbers("durations", durations, 1, (len(bend),))
    gained = np.cumsum(bend * times[:, None], axis=0)
    first = per_joint("start_velocity", start_velocity, bend.shape[1])
    speed = first + np.vstack([np.zeros_like(first), gained[:-1]]) if len(bend) else bend
    return from_velocity(start, times, np.stack([speed, bend], axis=1))


def sinusoidal_velocity(
    start: ArrayLike, peak_velocity: ArrayLike, base_frequency_hz: float, multiples: ArrayLike = 1
) -> FourierSeries:
    """Sinusoidal velocities qd_j = v_j sin(n_j w t) that begin with zero velocity in the posture `start` (PA-10 III.B).

    Args:
        start: posture at t = 0; the joint moves to one side of it, as far as 2 v / (n w).
        peak_velocity: v per joint [rad/s or m/s].
        base_frequency_hz: w / (2 pi) [Hz].
        multiples: n per joint, positive whole numbers, so that joints need not move together.
    """
    first = numbers("start", start, 1)
    peak, orders = (
        per_joint(n, v, len(first)) for n, v in (("peak_velocity", peak_velocity), ("multiples", multiples))
    )
    if not len(first) or np.any(orders < 1) or np.any(orders != np.round(orders)):
        raise TrajectoryError("multiples", "must be positive whole numbers, one for each joint")
    harmonics = tuple(sorted({int(order) for order in orders}))
    width = 2.0 * np.pi * number("base_frequency_hz", base_frequency_hz, above=0.0) * orders
    cosine = np.where(np.asarray(harmonics) == orders[:, None], -(peak / width)[:, None], 0.0)
    return FourierSeries(base_frequency_hz, harmonics, np.zeros_like(cosine), cosine, first + peak / width)


def polynomial_velocity(
    start: ArrayLike, peak_velocity: ArrayLike, stroke_s: float, strokes: int = 2
) -> PiecewisePolynomial:
    """Bell-shaped polynomial velocities v 16 s^2 (1 - s)^2, s = t / stroke, there and back again (PA-10 III.B).

    Velocity and acceleration are zero at the end of each stroke; a stroke covers 8/15 v stroke_s.
    """
    first = numbers("start", start, 1)
    peak = per_joint("peak_velocity", peak_velocity, len(first))
    T, count = number("stroke_s", stroke_s, above=0.0), whole("strokes", strokes, 1)
    bell = 16.0 * np.array([0.0, 0.0, 1.0, -2.0, 1.0]) / T ** np.arange(5)
    sign = np.where(np.arange(count) % 2, -1.0, 1.0)
    return from_velocity(first, np.full(count, T), sign[:, None, None] * bell[:, None] * peak)


def constant_velocity_sweep(
    posture: ArrayLike,
    joint: int,
    speeds: ArrayLike,
    lower: float,
    upper: float,
    acceleration: float,
    longest_cruise_s: float = 10.0,
) -> Sweep:
    """Move one joint at constant speeds, each in both directions, for measuring friction.

    Each stroke accelerates, cruises and decelerates inside [lower, upper], about its middle. Slow strokes do not use
    the whole range: they cruise for `longest_cruise_s`.

    Args:
        posture: of all joints; the swept joint starts and ends there, the others stay.
        joint: number of the swept joint, from 1.
        speeds: positive [rad/s or m/s], in the order they are driven.
        lower: end of the joint's range [rad or m].
        upper: its other end.
        acceleration: between rest and cruise [rad/s^2 or m/s^2].
        longest_cruise_s: limit to the length of a cruise [s].
    """
    rest = numbers("posture", posture, 1)
    index = whole("joint", joint, 1) - 1
    if index >= len(rest):
        raise TrajectoryError("joint", f"is {joint}; joints are numbered 1 to {len(rest)}")
    v = numbers("speeds", speeds, 1)
    if not len(v) or np.any(v <= 0.0):
        raise TrajectoryError("speeds", "must be positive numbers; both directions are driven anyway")
    a, longest = (
        number("acceleration", acceleration, above=0.0),
        number("longest_cruise_s", longest_cruise_s, above=0.0),
    )
    low, high = number("lower", lower), number("upper", upper)
    cruise = np.minimum(longest, (high - low) / v - v / a)
    if np.any(cruise <= 0.0):
        fastest = np.sqrt(max(0.0, a * (high - low)))
        worst = v[cruise <= 0.0][0]
        room = f"between {low:g} and {high:g} there is only room below {fastest:.4g}"
        raise TrajectoryError("speeds", f"contains {worst:g}, too fast: {room}; widen the range or accelerate more")
    if not low <= rest[index] <= high:
        raise TrajectoryError("posture", f"has joint {joint} at {rest[index]:g}, outside [{low:g}, {high:g}]")
    half = 0.5 * (v * cruise + v * v / a)
    middle = 0.5 * (low + high)
    # Triangular moves bring the joint from its posture to the first stroke, from stroke to stroke, and back again.
    stops = np.concatenate([[rest[index]], np.stack([middle - half, middle + half, middle - half], 1).ravel()])
    stops = np.append(stops, rest[index])
    top = np.full(len(stops) - 1, v.max())
    top[1:-1].reshape(-1)[np.arange(len(top) - 2) % 3 != 2] = np.repeat(v, 2)
    return _strokes(rest, index, stops, top, a)


def _strokes(rest: Array, index: int, stops: Array, top: Array, a: float) -> Sweep:
    """Trapezoidal strokes of one joint between stops, at most at the speeds `top`; every third only positions it."""
    way = np.diff(stops)
    speed = np.minimum(top, np.sqrt(np.abs(way) * a))
    moving = np.abs(way) > 1e-12
    ramp = speed / a
    hold = np.where(moving, np.divide(np.abs(way), speed, out=np.zeros_like(way), where=moving) - ramp, 0.0)
    phases = np.stack([ramp, hold, ramp], axis=1) * moving[:, None]
    signed = np.sign(way) * speed
    zero = np.zeros_like(speed)
    values = np.stack([zero, signed, signed], axis=1)
    slopes = np.stack([np.sign(way) * a, zero, -np.sign(way) * a], axis=1)
    used = phases.ravel() > 1e-12
    velocity = np.zeros((int(used.sum()), 2, len(rest)))
    velocity[:, 0, index], velocity[:, 1, index] = values.ravel()[used], slopes.ravel()[used]
    trajectory = from_velocity(rest, phases.ravel()[used], velocity)
    ends = np.cumsum(phases.ravel()).reshape(-1, 3)
    cruises = np.arange(1, len(way) - 1)[np.arange(len(way) - 2) % 3 != 2]
    windows = np.stack([ends[cruises, 0], ends[cruises, 1]], axis=1)
    return Sweep(trajectory, signed[cruises], windows)
