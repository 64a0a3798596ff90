"""How far and how fast the joints moved: rest, too little motion, angles in degrees, amplitude of the effort."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.robot.robot import Limits
from armid.signals.doctor.finding import Finding, Where
from armid.signals.doctor.motion import Track, derivative
from armid.signals.doctor.noise import noise_level, quantum

# Less travel or speed than this (rad, rad/s; m, m/s) shows little but friction at reversals and gravity at one place.
_TRAVEL, _SPEED = 0.1, 0.03
_REST = 2e-3  # travel below which a joint is held [rad or m]
_TURNS = 4.0 * np.pi  # more travel than two turns is no joint of an arm, unless its limits say so [rad]
_FAST = 15.0  # nor is more speed [rad/s]
BEYOND = 1.5  # times the range between the limits, to be sure that it is exceeded
DEGREES = 180.0 / np.pi
_TAKEN_FOR_DEGREES = (
    "If the recipe states degrees, look into the file: radians taken for degrees are 57 times too small."
)


@dataclass(frozen=True, eq=False)
class Travel:
    """Motion of each joint, outliers left out, (joints,) each.

    Attributes:
        lower, upper: position, 0.1st and 99.9th percentile [rad or m].
        speed: 99th percentile [rad/s or m/s].
        moving: whether the joint moves at all.
    """

    lower: Array
    upper: Array
    speed: Array
    moving: NDArray[np.bool_]

    @property
    def far(self) -> NDArray[np.bool_]:
        """Whether the joint moves far and fast enough to learn from."""
        return self.moving & (self.distance >= _TRAVEL) & (self.speed >= _SPEED)

    @property
    def distance(self) -> Array:
        """Upper less lower."""
        return self.upper - self.lower


def travel_of(track: Track) -> Travel:
    """How far each joint moved."""
    position = track.smooth("position")
    speed = np.abs(derivative(position, track.step))
    known = np.array(~np.isnan(position).any(axis=0))
    lower, upper, fast = np.full((3, position.shape[1]), np.nan)
    lower[known], upper[known] = np.percentile(position[:, known], [0.1, 99.9], axis=0)
    fast[known] = np.percentile(speed[:, known], 99.0, axis=0)
    raw = track.channels["position"]
    for joint in np.flatnonzero(known):
        # Rounding or noise of an encoder is no motion.
        jitter = max(3.0 * quantum(raw[:, joint]), 10.0 * noise_level(raw[:, joint]))
        known[joint] = upper[joint] - lower[joint] > max(_REST, min(jitter, 0.5 * _TRAVEL))
    return Travel(lower, upper, fast, known)


def bounds(joints: int, limits: Limits | None) -> tuple[Array, Array]:
    """Travel [rad or m] and speed [rad/s or m/s] that joints of the arm, or of any arm, do not exceed."""
    room, fast = np.full(joints, _TURNS), np.full(joints, _FAST)
    if limits is not None:
        room = np.where(np.isnan(limits.upper - limits.lower), room, limits.upper - limits.lower)
        fast = np.where(np.isnan(limits.velocity), fast, 3.0 * limits.velocity)
    return room, fast


def examine_units(travel: Travel, joints: Sequence[str], limits: Limits | None, side: str) -> Iterator[Finding]:
    """Angles in degrees: far beyond the limits of the arm, or of any arm, but not if divided by 180/pi.

    Without limits a joint is taken to turn by less than two turns and more slowly than 15 rad/s. A joint that moves
    little may stay inside even in degrees, so that one such joint is enough if all joints come from one source; it is
    reported for the whole log if at least half of the moving joints say so.
    """
    if side == "motor":
        return
    room, fast = bounds(len(joints), limits)
    # Zero and sign may be wrong, so that only the travel counts.
    far = travel.moving & ((travel.distance > BEYOND * room) & (travel.distance < DEGREES * room))
    far |= travel.moving & (travel.speed > fast)
    suspects = np.flatnonzero(far)
    everywhere = len(suspects) >= 0.5 * travel.moving.sum()
    for joint in suspects[:1] if everywhere else suspects:
        worst = int(suspects[np.argmax(travel.distance[suspects] / room[suspects])]) if everywhere else int(joint)
        yield Finding(
            "degrees",
            "error",
            None if everywhere else joints[worst],
            Where(),
            0.95 if everywhere else 0.8,
            f"The position of {joints[worst]} goes from {travel.lower[worst]:.4g} to {travel.upper[worst]:.4g} at up "
            f"to {travel.speed[worst]:.3g} per second: these are degrees, not radians"
            + (f", as in {len(suspects)} of {int(travel.moving.sum())} moving joints." if everywhere else "."),
            "State the unit of position (deg) in the recipe.",
            {"channel": "position", "lower": float(travel.lower[worst]), "upper": float(travel.upper[worst])},
        )


def examine_travel(travel: Travel, joints: Sequence[str], limits: Limits | None) -> Iterator[Finding]:
    """Joints that rest or move too little to learn from."""
    known = ~np.isnan(travel.lower)
    resting = [int(j) for j in np.flatnonzero(known & ~travel.moving)]
    # Many resting joints are the plan of an experiment with one joint at a time, one of seven is a surprise.
    planned = len(resting) > 0.5 * known.sum() and travel.moving.any()
    for joint in resting:
        yield Finding(
            "joint-at-rest",
            "info" if planned else "warning",
            joints[joint],
            Where(),
            0.99,
            f"{joints[joint]} stays at {travel.lower[joint]:.4g} and moves by {travel.distance[joint]:.2g} only.",
            "Its inertia and friction cannot be found from this log; move it, or leave its parameters out.",
            {"travel": float(travel.distance[joint])},
        )
    shrunk = _shrunk(travel, limits)
    for joint in map(int, np.flatnonzero(travel.moving)):
        span, speed = float(travel.distance[joint]), float(travel.speed[joint])
        least, slow = _TRAVEL, _SPEED
        if limits is not None and np.isfinite(limits.upper[joint] - limits.lower[joint]):
            least = min(least, 0.1 * float(limits.upper[joint] - limits.lower[joint]))
        if span >= least and speed >= slow:
            continue
        yield Finding(
            "little-motion",
            "warning",
            joints[joint],
            Where(),
            float(np.clip(1.0 - 0.5 * min(span / least, speed / slow), 0.5, 0.99)),
            f"{joints[joint]} moves by {span:.2g} at up to {speed:.2g} per second, too little to tell inertia, gravity "
            "and friction apart.",
            "Use a larger and faster motion for this joint (armid design)."
            + (f" {_TAKEN_FOR_DEGREES}" if shrunk else ""),
            {"travel": span, "speed": speed},
        )


def _shrunk(travel: Travel, limits: Limits | None) -> bool:
    """Whether all joints move so little that 180/pi times as much would be a motion of the arm as well."""
    room, fast = bounds(len(travel.speed), limits)
    small = (DEGREES * travel.distance <= BEYOND * room) & (DEGREES * travel.speed <= fast)
    return bool(small[travel.moving].all())


def examine_standstill(track: Track, travel: Travel) -> Iterator[Finding]:
    """Rest before and after the motion, worth to be trimmed."""
    moving = travel.moving
    if not moving.any():
        return
    speed = np.abs(derivative(track.smooth("position")[:, moving], track.step)) / travel.speed[moving]
    active = np.flatnonzero((speed > 0.02).any(axis=1))
    before, after = active[0] * track.step, (len(speed) - 1 - active[-1]) * track.step
    least = max(0.5, 0.02 * len(speed) * track.step)
    if before < least and after < least:
        return
    start, stop = track.time(int(active[0])), track.time(int(active[-1]))
    yield Finding(
        "standstill",
        "info",
        None,
        Where(f"before {start:.6g} s and after {stop:.6g} s", (), 0, start, stop),
        0.95,
        f"The arm stands still for {before:.3g} s at the start and {after:.3g} s at the end.",
        "Trim the log to the motion: at rest friction can have any value below stiction.",
        {"before_s": float(before), "after_s": float(after)},
    )
