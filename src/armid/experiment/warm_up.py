"""Warm-up: harmonic motion until friction changes no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.excitation.fourier import FourierSeries
from armid.excitation.profiles import sinusoidal_velocity
from armid.excitation.sequence import paces, programme
from armid.experiment.drive import (
    Arm,
    ExperimentError,
    Recording,
    check_arm,
    joined,
    joint_number,
    range_of,
    rate_of,
    stream,
    to_log,
)
from armid.experiment.gravity_free import gravity_free
from armid.logs.log import Log
from armid.progress import report_progress
from armid.robot.robot import Robot

SPEED_SHARE, RANGE_SHARE = 0.4, 0.6  # of the limits that a moderate motion uses
LEAST_CYCLES = 12


@dataclass(frozen=True, eq=False)
class WarmUpRun:
    """What a warm-up gives.

    Attributes:
        log: of whole cycles, position mode; `info.period_s` is the cycle.
        joints: indices of the joints that moved, from 0.
        time: middle of each cycle since the start [s], (cycles,).
        means: mean |effort| of each cycle, (cycles, joints that moved).
        left: largest relative change still to come that the cycles allow, per joint that moved.
        warm: stopped because nothing changes any more, not because time was up.
    """

    log: Log
    joints: tuple[int, ...]
    time: Array
    means: Array
    left: Array
    warm: bool


def warm_up(
    arm: Arm,
    robot: Robot,
    joints: Sequence[int | str] | None = None,
    *,
    cycle_s: float = 10.0,
    threshold: float = 0.01,
    longest_s: float = 3600.0,
    posture: ArrayLike | None = None,
) -> WarmUpRun:
    """Move joints harmonically until the mean |torque| per cycle changes no more (Powerball II.C).

    The rule: a + b exp(-t / T) is fitted to the cycle means for every time constant T up to twice the time passed so
    far. Of all T that fit (residual within the 95 % bound of the best), the largest change still to come,
    |b| exp(-t / T) over the last mean, must be below `threshold` for every joint. Noise thus prolongs the warm-up
    instead of ending it by chance.

    Args:
        arm: what is driven.
        robot: its description, for the limits.
        joints: which to move, numbers from 1 or names (default: all).
        cycle_s: length of a cycle; rounded to whole arm cycles.
        threshold: relative change still to come at which the arm is called warm.
        longest_s: give up after this time.
        posture: centre of the motion; otherwise the middle of the ranges, or for a single joint a posture in which
            gravity does not act on it.
    """
    check_arm(arm, robot)
    moving = tuple(range(robot.n_joints)) if joints is None else tuple(joint_number(robot, joint) for joint in joints)
    if not moving:
        raise ExperimentError("name at least one joint to warm up")
    if not 0.0 < threshold < 1.0:
        raise ExperimentError(f"threshold is {threshold:g}; it is a relative change, between 0 and 1")
    rate = rate_of(arm)
    rows = max(8, round(cycle_s * rate))
    period = rows / rate
    centre = _centre(robot, moving) if posture is None else np.asarray(posture, dtype=float)
    motion = harmonic(robot, moving, centre, period)
    lead = programme(motion, home=arm.state().position, rate_hz=rate, limits=None)
    first = round(lead.window[0] * rate)
    arm.set_mode("position")
    stream(arm, lead.sample(rate)[1].q[:first])
    commands = motion.sample(rate)[1].q
    parts: list[Recording] = []
    means: list[Array] = []
    warm = False
    left = np.full(len(moving), np.inf)
    while not warm and len(means) * period < longest_s:
        parts.append(arm.stream(commands))
        means.append(np.abs(parts[-1].effort[:, moving]).mean(axis=0))
        if len(means) >= LEAST_CYCLES:
            left = _left(np.array(means), period)
            warm = bool((left < threshold).all())
        change = f"{100 * left.max():.2g} % to come" if np.isfinite(left).all() else "too early to say"
        report_progress(f"cycle {len(means)}: {change}", min(1.0, len(means) * period / longest_s))
    history = {"procedure": "warm-up", "joints": [j + 1 for j in moving], "threshold": threshold, "warm": warm}
    log = to_log(arm, joined(parts), "position", history, period_s=period)
    middle = (np.arange(len(means), dtype=np.float64) + 0.5) * period
    return WarmUpRun(log, moving, middle, np.array(means), left, warm)


def exercise(arm: Arm, robot: Robot, index: int, posture: Array, seconds: float) -> None:
    """A while of moderate motion of one joint over most of its range; nothing is recorded."""
    speed = float(paces(robot.limits, robot.n_joints, SPEED_SHARE)[0][index])
    lower, upper = range_of(robot.limits, index, float(posture[index]))
    rate = rate_of(arm)
    period = max(1.0, round(np.pi * RANGE_SHARE * (upper - lower) / speed * rate) / rate)
    motion = harmonic(robot, (index,), posture, round(period * rate) / rate)
    count = max(1, round(seconds / motion.duration))
    run = programme(motion, home=arm.state().position, periods=count, rate_hz=rate)
    arm.set_mode("position")
    stream(arm, run.sample(rate)[1].q)


def harmonic(robot: Robot, moving: Sequence[int], centre: Array, period: float) -> FourierSeries:
    """A sinusoid about `centre` within moderate shares of speed, acceleration and range; it starts at an end."""
    speed, bend = paces(robot.limits, robot.n_joints, SPEED_SHARE)
    omega = 2.0 * np.pi / period
    amplitude = np.zeros(robot.n_joints)
    for j in moving:
        lower, upper = range_of(robot.limits, j, float(centre[j]))
        room = min(float(centre[j]) - lower, upper - float(centre[j]))
        amplitude[j] = max(0.0, min(RANGE_SHARE * room, speed[j] / omega, bend[j] / omega**2))
    if not all(amplitude[j] > 0.0 for j in moving):
        raise ExperimentError("a joint stands at its limit and has no room for harmonic motion; give another posture")
    return sinusoidal_velocity(centre - amplitude, amplitude * omega, 1.0 / period)


def _centre(robot: Robot, moving: Sequence[int]) -> Array:
    if len(moving) == 1:
        free = gravity_free(robot, moving[0] + 1, remount=False)
        return free.position
    lower, upper = robot.limits.lower, robot.limits.upper
    return np.nan_to_num(0.5 * (lower + upper), nan=0.0)


def _left(means: Array, period: float) -> Array:
    """Largest relative change to come, per joint, over all time constants that fit the cycle means."""
    count = len(means)
    t = (np.arange(count) + 0.5) * period
    constants = np.geomspace(2.0 * period, 2.0 * count * period, 40)
    residuals = np.empty((len(constants), means.shape[1]))
    change = np.empty_like(residuals)
    for k, constant in enumerate(constants):
        decay = np.exp(-t / constant)
        columns = np.column_stack([np.ones(count), decay])
        found = np.linalg.lstsq(columns, means, rcond=None)[0]
        residuals[k] = np.square(means - columns @ found).sum(axis=0)
        change[k] = np.abs(found[1]) * decay[-1] / np.maximum(means[-1], 1e-12)
    least = residuals.min(axis=0)
    fits = residuals <= least * (1.0 + 4.0 / max(1, count - 3)) + 1e-300
    result: Array = np.where(fits, change, 0.0).max(axis=0)
    return result
