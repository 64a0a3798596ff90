"""Logs of one joint at a time: on the joint side, and the parts in which it moves at constant speed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from armid.arrays import Array
from armid.logs.convert import to_joint_side, torque_from_current
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot

BLOCK_S = 0.2  # over which speeds are averaged to find out whether they change
STEADY = 0.03  # relative change of speed inside a steady part
LEAST_S = 1.0  # shortest steady part
LEAD_S, LEAD_ANGLE = 0.3, 0.008  # of a stroke's start that is left out: time, and angle [rad] if that takes longer
BATCHES = 10
REST = 0.05  # of the moving joint's speed that others may have


def joint_side(log: Log, robot: Robot) -> Log:
    """The log with the robot's joints in its order, motion and torque on the joint side.

    Motor torque goes through gear ratio or coupling, current through the polynomial of the description.

    Raises:
        LogError: the log has no effort or no positions, or current without known gains; or a joint is missing.
    """
    mine = log.for_joints(robot.joint_names)
    if mine.info.effort == "none":
        raise LogError(log.info.source, "effort", "is missing; a log with torque or current is needed")
    if "position" not in mine:
        raise LogError(log.info.source, "position", "is missing; it is needed to see how joints move")
    if len(mine) < 3:
        raise LogError(log.info.source, "time", f"has {len(mine)} samples; a recorded motion is needed")
    if mine.info.effort == "current":
        if robot.current_gain is None:
            problem = f"is a current and {robot.name} has no current gains; state them in its description or a recipe"
            raise LogError(log.info.source, "effort", problem)
        mine = torque_from_current(mine, robot.current_gain)
    ratios = [drive.gear_ratio for drive in robot.drives]
    return to_joint_side(mine, ratios if robot.coupling is None else robot.coupling)


def velocities(log: Log) -> Array:
    """Velocities (samples, joints); from the positions where the log has none."""
    if "velocity" in log:
        return log["velocity"]
    return np.gradient(log["position"], log.time, axis=0)


def velocity_commands(log: Log) -> Array | None:
    """Commands (samples, joints) [rad/s or m/s] of a log in velocity mode, else None."""
    return log["command"] if log.info.mode == "velocity" and "command" in log else None


@dataclass(frozen=True)
class Segment:
    """Rows of a log with constant speed.

    Attributes:
        start, stop: first row and the one after the last.
        speed: mean, signed [rad/s or m/s].
    """

    start: int
    stop: int
    speed: float


def constant_velocity_segments(time: Array, position: Array, joint: int, command: Array | None = None) -> list[Segment]:
    """Parts in which joint `joint` (from 0) moves at constant speed for at least a second and the others rest.

    With velocity commands, the parts are those of constant command; otherwise blocks of 0.2 s whose mean speeds, from
    the positions, agree within 3 % or the noise. Gaps in time end a part.

    Args:
        time: [s], (samples,).
        position: (samples, joints), joint side.
        joint: index of the joint.
        command: velocity commands (samples, joints), or None.
    """
    if len(time) < 3:
        return []
    step = float(np.median(np.diff(time)))
    runs = _commanded(time, command, joint, step) if command is not None else _steady(time, position, joint, step)
    found = []
    for start, stop in runs:
        if time[stop - 1] - time[start] < LEAST_S - 1.5 * step:
            continue
        moved = (position[stop - 1] - position[start]) / (time[stop - 1] - time[start])
        speed = float(moved[joint])
        others = np.delete(np.abs(moved), joint)
        if speed != 0.0 and not (others > REST * abs(speed)).any():
            found.append(Segment(start, stop, speed))
    return found


def steady_rows(segment: Segment, time: Array, torque: Array) -> slice:
    """The rows of a stroke after its start, once the torque has become steady."""
    length = time[segment.stop - 1] - time[segment.start]
    lead = min(max(LEAD_S, LEAD_ANGLE / abs(segment.speed)), 0.4 * length)
    start = segment.start + int(np.searchsorted(time[segment.start : segment.stop], time[segment.start] + lead))
    stop = segment.stop - 1
    edges = np.linspace(start, stop, BATCHES + 1).astype(int)
    if edges[1] - edges[0] < 2:
        return slice(start, stop)
    means = np.array([torque[a:b].mean() for a, b in pairwise(edges)])
    late = means[BATCHES // 2 :]
    bound = 4.0 * max(float(late.std(ddof=1)), float(torque[start:stop].std()) / np.sqrt(edges[1] - edges[0]))
    skipped = 0
    while skipped < BATCHES // 2 and abs(means[skipped] - late.mean()) > bound:
        skipped += 1
    return slice(int(edges[skipped]), stop)


def _commanded(time: Array, command: Array, joint: int, step: float) -> list[tuple[int, int]]:
    mine = command[:, joint]
    change = (mine[1:] != mine[:-1]) | (np.diff(time) > 3.0 * step)
    edges = np.concatenate([[0], np.flatnonzero(change) + 1, [len(time)]])
    still = np.abs(np.delete(command, joint, axis=1)).max(axis=1, initial=0.0) == 0.0
    return [(int(a), int(b)) for a, b in pairwise(edges) if mine[a] != 0.0 and still[a:b].all()]


def _steady(time: Array, position: Array, joint: int, step: float) -> list[tuple[int, int]]:
    """Runs of blocks with the same mean speed, without knowledge of the command."""
    size = max(2, round(BLOCK_S / step))
    edges = np.arange(0, len(time), size)
    if len(edges) < 4:
        return []
    span = np.diff(time[edges])
    gap = np.maximum.reduceat(np.diff(time, append=time[-1]), edges)[:-1] > 3.0 * step
    speed = np.diff(position[edges, joint]) / np.maximum(span, 1e-12)
    # Noise of block speeds from their second differences, which steady motion and slow changes do not have.
    noise = float(np.median(np.abs(np.diff(speed, 2)))) / 0.6745 / np.sqrt(6.0) if len(speed) > 4 else 0.0
    runs, first = [], 0
    for k in range(1, len(speed) + 1):
        part = speed[first:k]
        middle = float(np.median(part))
        bound = max(STEADY * abs(middle), 4.0 * noise)
        if k < len(speed) and not gap[k - 1] and not gap[k] and abs(speed[k] - middle) <= bound:
            continue
        if abs(middle) > 6.0 * noise and not gap[first:k].any() and np.abs(part - middle).max() <= bound:
            runs.append((int(edges[first]), int(edges[k])))
        first = k
    return runs
