"""The ER-16's test stand: recorded and prepared runs, search boxes, and figures of merit of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.box_search import BeeColony, BoxSearch, published_box
from armid.estimation.fit import Fit
from armid.excitation.prior import prior_values
from armid.excitation.trajectory import Trajectory
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.papers.experiment import table
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals import FourierFit
from armid.signals.dataset import Dataset
from armid.signals.pipeline import process
from armid.signals.preparations import Hampel
from armid.signals.smoothing import smooth, smoothing_kernel
from armid.torque.model import model_of
from armid.validation.metrics import correlation

NOISE_SHARE = 0.05  # of the standard deviation of each joint's torque; the paper states none
PASSES = 3  # of the smoothing (17); the paper states no number
LEAST_REACH = 1.25  # half width of the box holding the truth, for parameters near zero
Box = Mapping[str, tuple[float, float]]


@cache
def er16_arm() -> Robot:
    """Three links without rotors, whose inertias the paper compensates beforehand; the tool is frame 4's origin."""
    robot = load_robot("er16", rotors=False)
    return replace(robot, tool=load_robot("er16", links=4).joints[3].placement)


def noise_of(robot: Robot, path: Trajectory) -> Array:
    """Five per cent of each joint's torque along a trajectory [N m], by a run without noise."""
    start = path.at(np.zeros(1)).q[0]
    log = VirtualRobot(robot, rate_hz=200.0, posture=start, sensors=Sensors.perfect()).run(path, settle=0)
    return NOISE_SHARE * np.std(log["effort"], axis=0)


def record(robot: Robot, path: Trajectory, noise: Array, seed: int) -> Log:
    """Drive a trajectory with run-in, which it needs (ER-14), and record the 25 s that the paper states."""
    printed = table("er16")
    sensors = Sensors(torque_noise=tuple(float(level) for level in noise))
    start = path.at(np.zeros(1)).q[0]
    arm = VirtualRobot(robot, rate_hz=printed["rate_hz"], seed=seed, posture=start, sensors=sensors)
    seconds = printed["measured_s"]
    log = arm.run(path, periods=int(np.ceil(seconds / path.duration)))
    return log.rows(slice(0, round(seconds * printed["rate_hz"])))


def prepare(log: Log, robot: Robot, path: Any, noise: Array, passes: int = PASSES) -> Dataset:
    """Section 3.3: outliers, smoothing (17) of position and torque, Fourier series by least squares for derivatives."""
    mended, _ = Hampel().apply(log, robot)
    smoothed = mended.with_channels({name: smooth(mended[name], passes) for name in ("position", "effort")})
    strategy = FourierFit(frequency_hz=path.base_frequency_hz, harmonics=len(path.harmonics))
    left = float(np.sqrt(np.sum(smoothing_kernel(passes) ** 2)))
    return replace(process(smoothed, strategy, robot=robot), torque_noise=noise * left)


def true_values(robot: Robot) -> Array:
    """Base parameters of the virtual robot; only comparisons and the box that is to hold the truth may use them."""
    base, model = model_of(robot).base, model_of(robot)
    values = dict(zip(model.names, prior_values(model), strict=True))
    return np.asarray(base.matrix @ np.array([values[name] for name in base.names]))


def box_of_table_3(robot: Robot, *, swapped: bool = False) -> dict[str, tuple[float, float]]:
    """The published search range; `swapped` exchanges its rows fc2 and fv2, as they probably were meant (ER-3)."""
    box = published_box(robot, "table-2")
    return {**box, "fc2": box["fv2"], "fv2": box["fc2"]} if swapped else box


def box_with_truth(robot: Robot, times: float = 1.25) -> dict[str, tuple[float, float]]:
    """A search range of `times` the truth, both signs."""
    reach = np.maximum(times * np.abs(true_values(robot)), LEAST_REACH)
    return {name: (-float(r), float(r)) for name, r in zip(model_of(robot).base.kept, reach, strict=True)}


def correlations(fit: Fit, data: Dataset) -> list[float]:
    """(18) per joint; tau_m there is the predicted torque (ER-9)."""
    with one_blas_thread():
        predicted = fit.predict(data.motion, sigma=False).torque[data.rows]
        return [correlation(measured, other) for measured, other in zip(data.torque.T, predicted.T, strict=True)]


@dataclass(frozen=True, eq=False)
class Searches:
    """Several runs of one search that differ in their seed.

    Attributes:
        objective: (9) of each.
        identification: (18) on the identification data, (runs, joints).
        validation: (18) on other data, (runs, joints).
        evolution: best objective after each iteration, (runs, iterations + 1).
        best: the fit with the smallest objective.
    """

    objective: Array
    identification: Array
    validation: Array
    evolution: Array
    best: Fit

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        names = ("objective", "identification", "validation")
        return {name: getattr(self, name).tolist() for name in names}


def search(
    robot: Robot, data: Dataset, other: Dataset, kind: Callable[[int], BoxSearch], seeds: Sequence[int]
) -> Searches:
    """Run a search with each seed."""
    fits = [kind(seed).fit(robot, data) for seed in seeds]
    objective = np.array([float(fit.history["objective"]) for fit in fits])
    curves = [np.array(fit.history["convergence"]) for fit in fits]
    longest = max(len(curve) for curve in curves)
    return Searches(
        objective=objective,
        identification=np.array([correlations(fit, data) for fit in fits]),
        validation=np.array([correlations(fit, other) for fit in fits]),
        evolution=np.array([np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]),
        best=fits[int(objective.argmin())],
    )


def colony(box: Box, iterations: int | None = None) -> Callable[[int], BoxSearch]:
    """The bee colony with the paper's settings, for a number of iterations (the paper's by default)."""
    printed = table("er16")["colony"]
    rounds = printed["iterations"] if iterations is None else iterations
    return lambda seed: BeeColony(
        bounds=box, seed=seed, colony=printed["bees"], limit=printed["limit"], iterations=rounds
    )
