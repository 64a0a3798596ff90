"""How friction falls while an arm gets warm: cycle means of |torque| against time, a + b exp(-t / T)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.estimation.single_joint.curves import CurveFit, FitError, fit_curve
from armid.estimation.single_joint.friction_points import moving_joints
from armid.estimation.single_joint.strokes import joint_side
from armid.experiment.drive import joint_number
from armid.files import plain
from armid.logs.log import Log, LogError
from armid.robot.robot import Robot
from armid.signals.period import find_period


@dataclass(frozen=True, eq=False)
class WarmUpFit:
    """Exponential through the cycle means of one joint (Powerball, Fig. 3).

    Attributes:
        joint: name.
        time: middle of each cycle since the start [s].
        means: mean |torque| per cycle [N m].
        fit: a + b exp(-t / T).
        drop: share of the mean torque at the start that is lost in the end, b / (a + b).
        drop_sigma: its standard deviation.
    """

    joint: str
    time: Array
    means: Array
    fit: CurveFit
    drop: float
    drop_sigma: float

    @property
    def time_constant(self) -> float:
        """T [s]."""
        return self.fit.coefficients["T"]

    @property
    def significant(self) -> bool:
        """Whether there is a change at all: the drop is more than three standard deviations, and T is known."""
        return bool(np.isfinite(self.fit.sigma["T"]) and abs(self.drop) > 3.0 * self.drop_sigma)

    def to_data(self) -> dict[str, Any]:
        """As JSON-able data."""
        low, high = self.fit.interval("T")
        return {
            "joint": self.joint,
            "drop": self.drop,
            "drop_interval": [self.drop - 1.96 * self.drop_sigma, self.drop + 1.96 * self.drop_sigma],
            "time_constant_s": self.time_constant,
            "time_constant_interval": [low, high] if np.isfinite(low) else None,
            "significant": self.significant,
            "cycles": len(self.time),
            "fit": plain(self.fit),
            "time": self.time.tolist(),
            "means": self.means.tolist(),
        }


def cycle_means(log: Log, robot: Robot, joint: int | str, period_s: float | None = None) -> tuple[Array, Array]:
    """Middle of each whole cycle [s] and the mean |torque| in it [N m], joint side.

    The mean of the signed torque over a symmetric cycle is near zero, hence the absolute value (erratum PB-13).
    """
    index = joint_number(robot, joint)
    period = log.info.period_s if period_s is None else period_s
    if period is None or not period > 0.0:
        raise LogError(log.info.source, "period_s", "is not known; say how long a cycle of the motion is")
    torque = np.abs(joint_side(log, robot)["effort"][:, index])
    cycle = np.floor((log.time - log.time[0]) / period + 1e-6).astype(int)
    samples = np.bincount(cycle)
    complete = samples >= 0.9 * np.median(samples)
    means = np.bincount(cycle, weights=torque) / np.maximum(samples, 1)
    middle = (np.arange(len(samples), dtype=np.float64) + 0.5) * period
    return middle[complete], means[complete]


def fit_warmup(joint: str, time: ArrayLike, means: ArrayLike) -> WarmUpFit:
    """Fit the exponential to cycle means.

    Args:
        joint: name of the joint.
        time: of the cycles [s].
        means: mean |torque| of each [N m].

    Raises:
        FitError: there are fewer than eight cycles.
    """
    t, y = np.asarray(time, dtype=float), np.asarray(means, dtype=float)
    if len(t) < 8:
        raise FitError(f"{joint}: there are {len(t)} whole cycles; at least 8 are needed")
    fit = fit_curve("decay", t, y)
    a, b = fit.coefficients["a"], fit.coefficients["b"]
    total = a + b
    slopes = np.array([-b, a, 0.0]) / total**2
    sigma = float(np.linalg.norm(slopes @ fit.root))
    return WarmUpFit(joint, t, y, fit, b / total, sigma)


def fit_warmups(
    logs: Sequence[Log], robot: Robot, joints: Sequence[int], period_s: float | None = None, *, every: bool = False
) -> dict[int, WarmUpFit]:
    """Fits by joint (index from 0), each to the first log that moves it.

    Args:
        logs: of many equal cycles.
        robot: whose joints they are.
        joints: which to look at.
        period_s: length of a cycle [s]; that of the log, or found in it, if not given.
        every: joints that hardly move count too.

    Raises:
        LogError: no joint moves.
    """
    fits = {}
    for index in joints:
        log = next((log for log in logs if every or index in moving_joints(log, robot)), None)
        if log is not None:
            found = None if period_s or log.info.period_s else find_period(log).period
            period = period_s or log.info.period_s or (None if found is None else found.seconds)
            fits[index] = fit_warmup(robot.joint_names[index], *cycle_means(log, robot, index + 1, period))
    if not fits:
        raise LogError(logs[0].info.source, "", "no joint moves; a log of many equal cycles of motion is needed")
    return fits
