"""Excitation, point-to-point and repeated runs: from a trajectory to a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from armid.excitation.plan import Plan
from armid.excitation.polynomial import random_points, trapezoidal
from armid.excitation.sequence import paces, programme
from armid.excitation.trajectory import Trajectory, whole
from armid.experiment.drive import Arm, ExperimentError, check_arm, joined, move_to, rate_of, stream, to_log
from armid.logs.log import Log
from armid.progress import progress_part
from armid.robot.robot import Limits, Robot


def excite(
    arm: Arm,
    motion: Trajectory | Plan,
    *,
    periods: int = 1,
    settle: int = 1,
    home: ArrayLike | None = None,
    limits: Limits | None = None,
    payload: Sequence[float] | None = None,
) -> Log:
    """Drive a trajectory in position mode and record it.

    The arm comes from where it stands, or from `home`, to the start; a periodic trajectory is brought up to speed and
    `settle` periods pass unrecorded, so that the transient has died out; then whole periods are recorded; and the arm
    goes back to where it came from. A trajectory that is not periodic is recorded once.

    Args:
        arm: what is driven.
        motion: trajectory, or a plan with one; its period must be a whole number of the arm's cycles.
        periods: number M of recorded periods.
        settle: periods before them.
        home: posture to start from and return to; where the arm stands, if not given.
        limits: that approach and run-in have to keep.
        payload: ten inertial parameters in the tool frame of what the arm carries, noted in the log.

    Raises:
        SamplingError: the period is not a whole number of cycles; it says which period or rate would be.
    """
    trajectory = motion.trajectory if isinstance(motion, Plan) else motion
    if isinstance(motion, Plan) and motion.joint_names != arm.info.joints:
        raise ExperimentError(
            f"the plan is for the joints {', '.join(motion.joint_names)}; the arm has {', '.join(arm.info.joints)}"
        )
    if trajectory.joints != len(arm.info.joints):
        raise ExperimentError(f"the trajectory moves {trajectory.joints} joints; the arm has {len(arm.info.joints)}")
    rate = rate_of(arm)
    times, _ = trajectory.sample(rate)
    if home is not None:
        move_to(arm, home, limits)
    start = arm.state().position if home is None else home
    count = whole("periods", periods, 1) if trajectory.periodic else 1
    before = whole("settle", settle, 0) if trajectory.periodic else 0
    whole_run = programme(trajectory, home=start, periods=count, settle=before, limits=limits, rate_hz=rate)
    commands = whole_run.sample(rate)[1].q
    first = round(whole_run.window[0] * rate)
    rows = count * len(times)
    arm.set_mode("position")
    begin, end = first / len(commands), (first + rows) / len(commands)
    if first:
        with progress_part(0.0, begin):
            stream(arm, commands[:first], "approach and run-in")
    with progress_part(begin, end):
        words = f"recording {count} period{'' if count == 1 else 's'}" if trajectory.periodic else "recording"
        recording = stream(arm, commands[first : first + rows], words)
    if len(commands) > first + rows:
        with progress_part(end, 1.0):
            stream(arm, commands[first + rows :], "run-out and return")
    history = {"procedure": "excitation", "periods": count, "settle": before}
    info = {"period_s": trajectory.duration} if trajectory.periodic else {}
    return to_log(arm, recording, "position", history, **info, **_payload(payload))


def point_to_point(
    arm: Arm,
    robot: Robot,
    *,
    points: int | ArrayLike = 20,
    repetitions: int = 1,
    seed: int = 0,
    margin: float = 0.05,
    share: float = 0.9,
) -> Log:
    """Drive from point to point with trapezoidal velocity and no dwell, for validation (Swevers et al., section VI).

    The round ends where it began, in a whole number of cycles, so that repetitions can be averaged as periods.

    Args:
        arm: what is driven.
        robot: its description, for the limits.
        points: how many random postures, or the postures themselves (points, joints).
        repetitions: how often the round is driven.
        seed: of random postures.
        margin: part of the range kept free at either end.
        share: of the velocity and acceleration limits that is used.
    """
    check_arm(arm, robot)
    count = whole("repetitions", repetitions, 1)
    stops = random_points(robot, points, seed, margin) if isinstance(points, int) else np.asarray(points, dtype=float)
    stops = np.vstack([stops, stops[:1]])
    speed, bend = paces(robot.limits, robot.n_joints, share)
    rate = rate_of(arm)
    duration = trapezoidal(stops, speed, bend).duration
    cycles = int(np.ceil(duration * rate - 1e-9))
    slower = cycles / (duration * rate)  # stretching time by this makes the round a whole number of cycles
    rounds = trapezoidal(stops, speed / slower, bend / slower**2)
    move_to(arm, stops[0], robot.limits)
    q = rounds.at(np.arange(cycles) / rate).q
    parts = []
    for k in range(count):
        with progress_part(k / count, (k + 1) / count):
            parts.append(stream(arm, q, f"round {k + 1} of {count}"))
    history = {"procedure": "point-to-point", "points": len(stops) - 1, "repetitions": count, "seed": seed}
    return to_log(arm, joined(parts), "position", history, period_s=cycles / rate)


def _payload(payload: Sequence[float] | None) -> dict[str, tuple[float, ...]]:
    if payload is None:
        return {}
    if len(payload) != 10:
        raise ExperimentError(f"payload has {len(payload)} numbers; give its ten inertial parameters in the tool frame")
    return {"payload": tuple(float(value) for value in payload)}
