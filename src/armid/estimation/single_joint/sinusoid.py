"""Friction from a log in which one joint moves alone, at changing speed."""

from __future__ import annotations

import numpy as np
from scipy.signal import savgol_filter

from armid.arrays import Array
from armid.estimation.single_joint.effort import velocities
from armid.estimation.single_joint.friction_fit import FrictionPoints
from armid.logs.log import Log
from armid.robot.robot import Robot

NODES = 16
SLOWEST = 0.05  # of the largest speed; below it friction builds up after a reversal and currents lag
ALONE = 0.02  # of the joint's speed that others may have
SMOOTH_S = 0.3  # window of the acceleration


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
    return np.interp(time, even, slope)


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
