"""Mean friction torque per speed, from any log: strokes at constant speed, or one joint moving slowly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.signal import savgol_filter

from armid.arrays import Array
from armid.estimation.single_joint.friction_fit import FrictionPoints
from armid.estimation.single_joint.strokes import (
    BATCHES,
    LEAST_S,
    constant_velocity_segments,
    joint_side,
    steady_rows,
    velocities,
    velocity_commands,
)
from armid.experiment.drive import joint_number
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot

SAME = 0.02  # relative difference of speeds that count as one
NODES = 16
SLOWEST = 0.05  # of the largest speed; below it friction builds up after a reversal and currents lag
ALONE = 0.02  # of the joint's speed that others may have
SMOOTH_S = 0.3  # window of the acceleration
HARMONIC = 30.0  # gear ratio from which gears may be harmonic drives
WAVES = 20.0  # squared torque of their waves over the variance of the noise from which it is no chance (1 in 20 000)
FEWEST = 3  # different speeds in one direction below which a log has no usable strokes


def friction_points(logs: Log | Sequence[Log], robot: Robot, joint: int | str) -> FrictionPoints:
    """Friction torque of one joint against its speed.

    Strokes at constant speed give the mean torque of their steady part. Where there are too few of them but the joint
    moves alone, as in a slow sinusoid, the torque is split into inertia, gravity A cos q + B sin q, an offset and a
    symmetric function of speed (`single_joint_points`).

    Args:
        logs: one or several logs.
        robot: whose joints they are.
        joint: number from 1, or name.

    Raises:
        LogError: there is no effort, or the joint never moves alone and steadily.
    """
    index = joint_number(robot, joint)
    logs = [joint_side(log, robot) for log in ([logs] if isinstance(logs, Log) else logs)]
    ratio = abs(robot.drives[index].gear_ratio) if robot.drives else 0.0
    rows = [row for log in logs for row in _strokes(log, index, ratio)]
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


def _strokes(log: Log, index: int, ratio: float) -> list[tuple[float, float, float, float, float]]:
    """Speed, mean torque, standard deviation, samples that count as independent, and seconds of each stroke."""
    torque, position = log["effort"][:, index], log["position"]
    rows, ratios = [], []
    segments = constant_velocity_segments(log.time, position, index, velocity_commands(log))
    steady = [steady_rows(segment, log.time, torque) for segment in segments]
    steady = [use for use in steady if use.stop - use.start >= 2 * BATCHES and np.isfinite(torque[use]).all()]
    if ratio >= HARMONIC:
        torque = _without_waves(torque, 2.0 * ratio * position[:, index], steady)
    for use in steady:
        part, span = torque[use], log.time[use.stop - 1] - log.time[use.start]
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


def _without_waves(torque: Array, angle: Array, strokes: Sequence[slice]) -> Array:
    """Torque less what goes with an angle in waves: harmonic drives have two per turn of the motor.

    A slow stroke stays within one wave, which then looks like friction; those over whole waves show size and phase.
    Where they do not, the torque stays as it is.
    """
    long = [use for use in strokes if np.ptp(angle[use]) > 2.0 * np.pi]
    if not long:
        return torque
    waves = np.column_stack([np.sin(angle), np.cos(angle)])
    columns, target = (np.concatenate([one[use] - one[use].mean(axis=0) for use in long]) for one in (waves, torque))
    found = np.asarray(np.linalg.lstsq(columns, target, rcond=None)[0], dtype=float)
    shown = columns @ found
    clear = float(shown @ shown) > WAVES * float(np.var(target - shown))
    return np.asarray(torque - clear * (waves @ found))


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


def single_joint_points(log: Log, robot: Robot, index: int) -> FrictionPoints | None:
    """Friction of a joint that moves alone, such as in a slow sinusoid; None if it does not. The log is on joint side.

    With the other joints at rest, the torque of a revolute joint is I qdd + A cos q + B sin q + c + F(|qd|) sign(qd):
    inertia, gravity, an offset, and friction, here linear between nodes of speed. All of it is linear least squares,
    so neither inertia nor masses need be known. A sinusoid cannot tell a difference between directions from gravity,
    hence F is symmetric, with the offset beside it. Single spikes are left out (5 times the residuals' spread).
    """
    velocity = velocities(log)
    mine, others = np.abs(velocity[:, index]), np.abs(np.delete(velocity, index, axis=1)).max(axis=1, initial=0.0)
    if len(log) < 200:
        return None
    fastest = float(np.quantile(mine, 0.99))
    # Alone for a while, not merely slower than the rest at one instant; the noise of a resting joint is allowed.
    alone = others <= max(ALONE * fastest, 0.0)
    use = alone & (mine > SLOWEST * fastest) & (mine < fastest)
    if fastest < 1e-3 or use.sum() < 0.2 * len(log):
        return None
    q = log["position"][:, index]
    bend = _acceleration(log.time, velocity[:, index])
    torque = log["effort"][:, index]
    use &= np.isfinite(torque) & np.isfinite(bend)
    nodes = fastest * np.linspace(np.sqrt(SLOWEST), 1.0, NODES) ** 2
    columns = _columns(robot, index, q, velocity[:, index], bend, nodes)
    found, spread, covariance = _robust(columns[use], torque[use], log.time[use])
    first = columns.shape[1] - NODES
    steps = float(np.median(np.diff(log.time)))
    seconds = steps * np.histogram(mine[use], np.concatenate([[0.0], 0.5 * (nodes[1:] + nodes[:-1]), [np.inf]]))[0]
    seen = seconds > 20 * steps
    return FrictionPoints(
        robot.joint_names[index],
        nodes[seen],
        found[first:][seen],
        np.sqrt(np.diag(covariance)[first:][seen]),
        seconds[seen],
        f"torque of the joint moving alone, split into inertia, gravity and friction (residual {spread:.2g} N m)",
        symmetric=True,
        offset=float(found[first - 1]),
        notes=("the directions cannot be told apart in this motion; friction is taken as symmetric",),
    )


def _columns(robot: Robot, index: int, q: Array, qd: Array, qdd: Array, nodes: Array) -> Array:
    """Inertia, gravity, offset, then one column per node of speed."""
    speed, one = np.abs(qd), np.ones_like(q)
    hats = np.column_stack([np.interp(speed, nodes, row) for row in np.eye(len(nodes))]) * np.sign(qd)[:, None]
    gravity = [] if robot.joints[index].prismatic else [np.cos(q), np.sin(q)]
    return np.column_stack([qdd, *gravity, one, hats])


def _acceleration(time: Array, velocity: Array) -> Array:
    """Derivative of the velocity, smoothed over 0.3 s; stamps may be irregular."""
    step = float(np.median(np.diff(time)))
    even = np.arange(time[0], time[-1] + 0.5 * step, step)
    size = max(5, 2 * round(0.5 * SMOOTH_S / step) + 1)
    slope = savgol_filter(np.interp(even, time, velocity), size, 2, deriv=1, delta=step)
    result: Array = np.interp(time, even, slope)
    return result


def _robust(columns: Array, torque: Array, time: Array) -> tuple[Array, float, Array]:
    """Least squares without spikes; the covariance allows for residuals that are correlated in time."""
    size = np.linalg.norm(columns, axis=0)
    size = np.where(size > 0.0, size, 1.0)
    scaled, keep = columns / size, np.ones(len(torque), dtype=bool)
    for _ in range(3):
        found = np.linalg.lstsq(scaled[keep], torque[keep], rcond=1e-10)[0]
        residual = torque - scaled @ found
        spread = 1.4826 * float(np.median(np.abs(residual[keep])))
        keep = np.abs(residual) <= 5.0 * max(spread, 1e-12)
    left, kept = residual[keep], scaled[keep]
    # Sandwich of batch sums: batches of half a second are taken as independent.
    batch = np.unique(np.floor((time[keep] - time[0]) / 0.5), return_inverse=True)[1]
    sums = np.zeros((batch.max() + 1, kept.shape[1]))
    np.add.at(sums, batch, kept * left[:, None])
    inverse = np.linalg.pinv(kept.T @ kept, rcond=1e-10, hermitian=True)
    covariance: Array = inverse @ (sums.T @ sums) @ inverse
    return found / size, float(left.std()), covariance / np.outer(size, size)
