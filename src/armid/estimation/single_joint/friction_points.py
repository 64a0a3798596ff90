"""Mean friction torque per speed, from any log: strokes at constant speed, or one joint moving slowly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.estimation.single_joint.effort import joint_side, velocity_commands
from armid.estimation.single_joint.friction_fit import FrictionPoints
from armid.estimation.single_joint.segments import LEAST_S, Segment, constant_velocity_segments
from armid.estimation.single_joint.sinusoid import single_joint_points
from armid.experiment.driving import joint_number
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot

LEAD_S, LEAD_ANGLE = 0.3, 0.008  # of a stroke's start that is left out: time, and angle [rad] if that takes longer
BATCHES = 10
SAME = 0.02  # relative difference of speeds that count as one
FEWEST = 3  # different speeds in one direction below which a log has no usable strokes


def friction_points(
    logs: Log | Sequence[Log], robot: Robot, joint: int | str, *, load: ArrayLike | None = None
) -> FrictionPoints:
    """Friction torque of one joint against its speed.

    Strokes at constant speed give the mean torque of their steady part. Where there are too few of them but the joint
    moves alone, as in a slow sinusoid, the torque is split into inertia, gravity A cos q + B sin q, an offset and a
    symmetric function of speed (`single_joint_points`).

    Args:
        logs: one or several logs.
        robot: whose joints they are.
        joint: number from 1, or name.
        load: torque (samples, joints) to take off first, such as gravity's; for a single log.

    Raises:
        LogError: there is no effort, or the joint never moves alone and steadily.
    """
    index = joint_number(robot, joint)
    logs = [joint_side(log, robot) for log in ([logs] if isinstance(logs, Log) else logs)]
    rows: list[tuple[float, float, float, float, float]] = []
    for log in logs:
        rows += _strokes(log, index, None if load is None else np.asarray(load, dtype=float))
    name = robot.joint_names[index]
    if rows and max(len(_groups([r[0] for r in rows if r[0] * sign > 0.0])) for sign in (1, -1)) >= FEWEST:
        return _merged(name, rows)
    found = [points for log in logs if (points := single_joint_points(log, robot, index)) is not None]
    if not found:
        source = logs[0].info.source if logs else ""
        raise LogError(
            source,
            "",
            f"{name} has no part of at least {LEAST_S:g} s at constant speed at {FEWEST} or more speeds, and "
            "does not move on its own either; drive it up and down alone, steadily, at several speeds",
        )
    return max(found, key=len)


def moving_joints(log: Log, robot: Robot) -> list[int]:
    """Joints (indices from 0) that a log moves, the one that travels most first."""
    position = log.for_joints(robot.joint_names)["position"]
    span = np.ptp(position, axis=0)
    order = np.argsort(-span)
    return [int(j) for j in order if span[j] > max(1e-3, 0.2 * span.max())]


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


def _strokes(log: Log, index: int, load: Array | None) -> list[tuple[float, float, float, float, float]]:
    """Speed, mean torque, standard deviation, samples that count as independent, and seconds of each stroke."""
    torque = log["effort"][:, index] if load is None else (log["effort"] - load)[:, index]
    position = log["position"]
    rows, ratios = [], []
    for segment in constant_velocity_segments(log.time, position, index, velocity_commands(log)):
        use = steady_rows(segment, log.time, torque)
        part, span = torque[use], log.time[use.stop - 1] - log.time[use.start]
        if len(part) < 2 * BATCHES or not np.isfinite(part).all():
            continue
        speed = float((position[use.stop - 1, index] - position[use.start, index]) / span)
        if speed == 0.0:
            continue
        batches = part[: len(part) // BATCHES * BATCHES].reshape(BATCHES, -1)
        sigma = float(part.std(ddof=1))
        ratios.append(batches.mean(axis=1).var(ddof=1) * batches.shape[1] / max(sigma**2, 1e-30))
        rows.append((speed, float(part.mean()), sigma, float(len(part)), float(span)))
    # Noise that is correlated in time makes means worse than 1 / sqrt(n); by how much is the same for all strokes.
    worse = max(1.0, float(np.mean(ratios))) if ratios else 1.0
    return [(speed, mean, sigma, count / worse, span) for speed, mean, sigma, count, span in rows]


def _groups(speeds: Sequence[float]) -> list[list[int]]:
    """Indices of speeds that are the same within 2 %."""
    groups: list[list[int]] = []
    for k in np.argsort(speeds):
        if groups and abs(speeds[k] - speeds[groups[-1][0]]) <= SAME * abs(speeds[k]):
            groups[-1].append(int(k))
        else:
            groups.append([int(k)])
    return groups


def _merged(name: str, rows: list[tuple[float, float, float, float, float]]) -> FrictionPoints:
    """One point per speed; strokes at the same speed count by their length."""
    table = np.array(rows)
    points = []
    for group in _groups(table[:, 0].tolist()):
        speed, mean, sigma, count, seconds = table[group].T
        variance = max(float(np.sum(count**2 * sigma**2 / count) / count.sum() ** 2), 1e-24)
        points.append((np.average(speed, weights=count), np.average(mean, weights=count), variance**0.5, seconds.sum()))
    columns = np.array(points).T
    longest = f"{columns[3].min():.3g} to {columns[3].max():.3g} s"
    method = f"means of {len(rows)} strokes at constant speed, {longest} per speed and direction"
    return FrictionPoints(name, columns[0], columns[1], columns[2], columns[3], method)
