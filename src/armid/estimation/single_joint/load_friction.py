"""Load-proportional loss of a joint, which the PA-10 paper calls stiffness: S = a tau_L + b (19)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.estimation.single_joint.curves import FitError
from armid.estimation.single_joint.strokes import (
    constant_velocity_segments,
    joint_side,
    steady_rows,
    velocity_commands,
)
from armid.experiment.drive import joint_number
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot

BIN_S = 0.25  # over which samples are averaged
LEAST_LOAD = 3.0  # spread of the load, in standard errors of a mean, below which there is nothing to see


@dataclass(frozen=True, eq=False)
class LoadFrictionFit:
    """Line through S = torque - friction - gravity against the load torque, at the motor's axis as in the paper.

    Attributes:
        joint: name.
        slope: a, without unit; the same on either side of the gear.
        offset: b at the motor's axis [N m]; what the friction curve does not contain already.
        slope_sigma, offset_sigma: standard deviations; that of the offset contains the friction curve's.
        friction_change: by how much friction at this speed was higher than the curve says, joint side [N m].
        gear_ratio: motor turns per joint turn.
        load: load torque of each mean, motor axis [N m].
        loss: S of each mean, motor axis [N m].
        direction: +1 or -1 for each mean.
        speed: mean [rad/s].
        dof: independent means minus coefficients.
        friction_known: a friction curve was given; otherwise the offset is not to be told from friction.
    """

    joint: str
    slope: float
    offset: float
    slope_sigma: float
    offset_sigma: float
    friction_change: float
    gear_ratio: float
    load: Array
    loss: Array
    direction: Array
    speed: float
    dof: int
    friction_known: bool

    @property
    def slope_interval(self) -> tuple[float, float]:
        """95 % interval of the slope."""
        half = float(student.ppf(0.975, self.dof)) * self.slope_sigma
        return self.slope - half, self.slope + half

    @property
    def present(self) -> bool:
        """Whether there is a loss: its interval does not contain zero."""
        low, high = self.slope_interval
        return low > 0.0 or high < 0.0

    def to_data(self) -> dict[str, Any]:
        """As JSON-able data."""
        lists = {name: getattr(self, name).tolist() for name in ("load", "loss", "direction")}
        return {**vars(self), **lists, "slope_interval": list(self.slope_interval), "present": self.present}


def fit_load_friction(
    logs: Log | Sequence[Log],
    robot: Robot,
    joint: int | str,
    *,
    values: ArrayLike | Mapping[str, float],
    friction: Callable[[Array], Array] | None = None,
    friction_error: Callable[[Array], Array] | None = None,
) -> LoadFrictionFit:
    """Find the load-proportional loss from loaded motion at constant speed in both directions (PA-10 II.C).

    S = tau - F(v) - G(q) is averaged over quarters of a second and regressed on the load torque G, a constant, and the
    sign of the direction, which takes up what friction has changed since its curve was measured.

    Args:
        logs: of a `load_friction_run`, or any with strokes at constant speed.
        robot: whose joints they are; gravity of the log's mounting where the log says.
        joint: number from 1, or name.
        values: parameter values that give gravity's torque, by name or in standard order; a payload counts as part of
            the last link (`armid.experiment.gravity_free.foreseen_values`).
        friction: torque [N m] at speeds [rad/s], joint side; None if unknown, then only the slope is to be told.
        friction_error: its standard error.

    Raises:
        LogError: the log has no strokes at constant speed of this joint.
        FitError: gravity loads the joint too little to tell.
    """
    index = joint_number(robot, joint)
    logs = [logs] if isinstance(logs, Log) else list(logs)
    rows = [row for log in logs for row in _means(log, robot, index, values)]
    name = robot.joint_names[index]
    if not rows:
        source = logs[0].info.source if logs else ""
        raise LogError(source, "", f"{name} never moves alone at constant speed for a second; drive it so")
    load, torque, speed, spread, count = np.array(rows).T
    sign = np.sign(speed)
    error = float(np.sqrt(np.mean(spread**2 / count)))
    if np.ptp(load) < LEAST_LOAD * error or np.ptp(load) < 1e-9:
        raise FitError(
            f"{name}: gravity changes its load by {np.ptp(load):.2g} N m, means are good to {error:.2g} N m; "
            "choose another posture or carry a payload"
        )
    known = np.zeros_like(load) if friction is None else np.asarray(friction(speed), dtype=float)
    loss = torque - known - load
    both = len(np.unique(sign)) > 1
    columns = np.column_stack([load, np.ones_like(load), *([sign] if both else [])])
    found = np.linalg.lstsq(columns, loss, rcond=None)[0]
    residual = loss - columns @ found
    inverse = np.linalg.inv(columns.T @ columns)
    dof = max(1, len(load) - columns.shape[1])
    covariance = inverse * float(residual @ residual) / dof * _correlation(residual)
    ratio = abs(robot.drives[index].gear_ratio)
    own = 0.0 if friction_error is None else float(np.max(friction_error(np.array([speed.max(), speed.min()]))))
    return LoadFrictionFit(
        joint=name,
        slope=float(found[0]),
        offset=float(found[1]) / ratio,
        slope_sigma=float(np.sqrt(covariance[0, 0])),
        offset_sigma=float(np.hypot(np.sqrt(covariance[1, 1]), own / np.sqrt(2.0))) / ratio,
        friction_change=float(found[2]) if both else 0.0,
        gear_ratio=ratio,
        load=load / ratio,
        loss=(loss - (found[2] * sign if both else 0.0)) / ratio,
        direction=sign,
        speed=float(np.abs(speed).mean()),
        dof=dof,
        friction_known=friction is not None,
    )


def _means(log: Log, robot: Robot, index: int, values: ArrayLike | Mapping[str, float]) -> list[tuple[float, ...]]:
    """Load, torque, speed, spread and number of samples of quarter-second parts of the steady strokes."""
    mounted = robot if log.info.gravity is None else robot.with_gravity(log.info.gravity)
    mine = joint_side(log, robot)
    position, torque = mine["position"], mine["effort"][:, index]
    model = Model(mounted)
    size = max(2, round(BIN_S * log.rate_hz))
    rows: list[tuple[float, ...]] = []
    for segment in constant_velocity_segments(log.time, position, index, velocity_commands(mine)):
        use = steady_rows(segment, log.time, np.zeros_like(torque))
        gravity = model.gravity_torque(position[use], values)[:, index]
        for first in range(0, use.stop - use.start - size + 1, size):
            part = torque[use][first : first + size]
            if np.isfinite(part).all():
                mean_load = float(gravity[first : first + size].mean())
                rows.append((mean_load, float(part.mean()), segment.speed, float(part.std(ddof=1)), float(size)))
    return rows


def _correlation(residual: Array) -> float:
    """By how much neighbouring means that are alike enlarge the variance; 1 for independent ones."""
    total = float(residual @ residual)
    if total <= 0.0 or len(residual) < 20:
        return 1.0
    lags = [float(residual[k:] @ residual[:-k]) / total for k in range(1, 9)]
    return max(1.0, 1.0 + 2.0 * float(np.sum(np.maximum(lags, 0.0))))
