"""The RX-60's test stand: the arm under cameras, the six tool paths, and the paper's least squares for alpha."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.excitation.fourier import FourierSeries
from armid.excitation.paths import bulb, circle, ellipse, ellipsoid, helix, joint_trajectory
from armid.excitation.tool_path import HarmonicPath, ToolPath
from armid.excitation.trajectory import Trajectory
from armid.experiment.drive import Recording
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log, LogInfo
from armid.papers.experiment import table
from armid.papers.rx60_equations import torque
from armid.robot.load import load_robot
from armid.robot.robot import Robot, inertial_names
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.pipeline import process
from armid.signals.resample import fuse, interpolate
from armid.torque.model import model_of

RATE_HZ, CAMERA_HZ = 1000.0, 300.0  # section IV
CAMERA_NOISE = 0.05  # of the acceleration [rad/s^2]; the paper states none
ENCODER_RESOLUTION = 2e-5  # [rad]; the paper states none
CUTOFF_HZ = 5.0  # of all filters; the paper states none
KNOWN = (4, 15, 16)  # alphas from the data sheet
FREE = tuple(i for i in range(1, 17) if i not in KNOWN)

#: The eleven combinations of the thirteen free alphas that torques depend on (RX-7), by their coefficients.
COMBINATIONS: dict[str, dict[int, float]] = {
    "alpha1 - alpha2": {1: 1.0, 2: -1.0},
    "alpha1 + alpha13": {1: 1.0, 13: 1.0},
    "alpha3 - alpha7": {3: 1.0, 7: -1.0},
    "alpha7 + alpha14": {7: 1.0, 14: 1.0},
    "alpha2 + alpha7 + alpha8": {2: 1.0, 7: 1.0, 8: 1.0},
    **{f"alpha{i}": {i: 1.0} for i in (5, 6, 9, 10, 11, 12)},
}
WELL_DETERMINED = tuple(COMBINATIONS)[:5]  # those that hold the alphas the paper finds within 10 %


class WatchedRobot(VirtualRobot):
    """The virtual robot under cameras, which see accelerations.

    Attributes:
        seen: time [s] and accelerations of all that was driven.
    """

    seen: tuple[Array, Array] | None = None

    def stream(self, commands: ArrayLike) -> Recording:
        """Drive, and watch."""
        recording = super().stream(commands)
        assert self.truth is not None
        before = self.seen or (np.zeros(0), np.zeros((0, self.robot.n_joints)))
        self.seen = (np.concatenate([before[0], self.truth.time]), np.concatenate([before[1], self.truth.qdd]))
        return recording

    def camera_log(self, start: float, stop: float, seed: int) -> Log:
        """Accelerations between two times [s] at 300 Hz, with noise."""
        assert self.seen is not None
        times = start + np.arange(int(np.floor((stop - start) * CAMERA_HZ + 1e-9)) + 1) / CAMERA_HZ
        values = interpolate(*self.seen, times)
        values = values + CAMERA_NOISE * np.random.default_rng(seed).normal(size=values.shape)
        info = LogInfo(self.robot.joint_names, "none", rate_hz=CAMERA_HZ, source="cameras")
        return Log(times, {"acceleration": values}, info)


@dataclass(frozen=True, eq=False)
class AlphaEstimate:
    """The paper's (6), solved by the pseudo-inverse.

    Attributes:
        alpha: all sixteen; of all solutions the smallest one.
        singular_values: of the thirteen columns, scaled to unit length, largest first.
    """

    alpha: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return int(np.sum(self.singular_values > 1e-9 * self.singular_values[0]))

    @property
    def condition(self) -> float:
        """Of the columns' range: the inverse in (6) itself does not exist (RX-7)."""
        return float(self.singular_values[0] / self.singular_values[self.rank - 1])


@cache
def rx60_arm() -> Robot:
    """Three links with the paper's symmetries, without rotors; the tool is the centre of the wrist."""
    robot = load_robot("rx60", rotors=False, simplify="alpha")
    return replace(robot, tool=load_robot("rx60", links=4).joints[3].placement)


def with_data_sheet(robot: Robot) -> Robot:
    """The robot with the maker's masses and centres of mass known: eleven base parameters are left."""
    sheet = table("rx60")["data_sheet"]
    first = {"mx2": sheet["m2"] * sheet["a2c"], "my3": -sheet["m3"] * sheet["d4c"]}
    return replace(robot, known={**robot.known, "m2": sheet["m2"], "m3": sheet["m3"], **first})


def known_parts(robot: Robot) -> dict[int, float]:
    """What the data sheet says about each alpha of Table II: the constants of section IV.A."""
    sheet = table("rx60")["data_sheet"]
    view = published(model_of(robot), "alpha")
    body = dict.fromkeys(view.model.names, 0.0)
    body |= {"m2": sheet["m2"], "m3": sheet["m3"]}
    body |= {"mx2": sheet["m2"] * sheet["a2c"], "my3": -sheet["m3"] * sheet["d4c"]}
    # inertias about the frame's origin of a mass in the centre of mass: what Steiner's theorem adds
    body |= dict.fromkeys(("Iyy2", "Izz2"), sheet["m2"] * sheet["a2c"] ** 2)
    body |= dict.fromkeys(("Ixx3", "Izz3"), sheet["m3"] * sheet["d4c"] ** 2)
    return {int(name[5:]): float(value) for name, value in zip(view.entries, view.values(body), strict=True)}


def true_alpha(robot: Robot) -> Array:
    """The sixteen alphas of the virtual robot; nothing but comparisons may use them."""
    assert robot.virtual is not None
    names = [name for link in range(1, robot.n_joints + 1) for name in inertial_names(link)]
    values = dict(zip(names, robot.virtual.inertia.ravel(), strict=True))
    return published(model_of(robot), "alpha").values({**values})


def combinations(alpha: Array) -> dict[str, float]:
    """The eleven identifiable combinations of sixteen alphas."""
    return {name: sum(c * float(alpha[i - 1]) for i, c in parts.items()) for name, parts in COMBINATIONS.items()}


def tool_paths() -> dict[str, ToolPath]:
    """The six paths of section IV.A; the paper prints no sizes (RX-15).

    Ours are as large and fast as arm and drives admit with a reserve, and tilted so that all three joints take part: an
    upright ellipse hardly moves joint 1 and leaves alpha3 - alpha7 ten times less certain.
    """
    centre, plane = (0.34, 0.0, 0.38), _tilted(0.5, 1.0)
    sine, cosine = np.random.default_rng(60).normal(scale=0.05, size=(2, 3, 3))
    frame = np.eye(4)
    frame[:3, 3] = centre
    return {
        "circle": circle(centre, radius=0.15, period=2.5, plane=plane),
        "ellipse": ellipse(centre, semi_axes=(0.10, 0.20), period=2.5, plane=plane),
        "bulb": bulb(centre, length=0.34, width=0.22, period=3.0, plane=plane),
        "ellipsoid": ellipsoid(centre, semi_axes=(0.15, 0.15, 0.12), winding=3, period=6.0),
        "helix": helix((0.34, 0.0, 0.28), radius=0.15, rise=0.2, turns=2.0, duration=12.0),
        "free": HarmonicPath(frame, None, FourierSeries(1.0 / 6.0, (1, 2, 3), sine, cosine, np.zeros(3))),
    }


def along(robot: Robot, path: ToolPath) -> Trajectory:
    """Joint motion along a tool path."""
    return joint_trajectory(robot, path, (0.0, 0.0, 0.3))


def drive(robot: Robot, motion: Trajectory, seed: int, *, seconds: float = 12.0) -> Log:
    """Drive a motion, laps of about `seconds` where it is periodic; encoders at 1 kHz, cameras at 300 Hz, fused."""
    start = motion.at(np.zeros(1)).q[0]
    sensors = Sensors(encoder_resolution=ENCODER_RESOLUTION)
    arm = WatchedRobot(robot, rate_hz=RATE_HZ, seed=seed, posture=start, sensors=sensors)
    log = arm.run(motion, periods=max(1, round(seconds / motion.duration)))
    return fuse([log, arm.camera_log(float(log.time[0]), float(log.time[-1]), seed + 1)], RATE_HZ)


def prepared(log: Log, robot: Robot, *, every: bool = False) -> Dataset:
    """Filter all signals alike; the ends, where the filter has no past or future, are cut off."""
    step = 1 if every else "auto"
    strategy = LowPass(cutoff_hz=CUTOFF_HZ, motion_cutoff_hz=CUTOFF_HZ, measured=True, rest_speed=0.0, decimate=step)
    return process(log, strategy, robot=robot)


def estimate_alpha(data: Dataset, known: Mapping[int, float], as_printed: Collection[str] = ()) -> AlphaEstimate:
    """Thirteen alphas by least squares (6) with the paper's torque equations, three known from the data sheet.

    Args:
        data: filtered motion and torque.
        known: the known alphas.
        as_printed: errata to leave in the torque equations.
    """
    columns = []
    for one in np.eye(16):
        columns.append(data.at_rows(torque(*data.motion, one, as_printed)).ravel())
    matrix = np.stack(columns, axis=1)
    fixed = np.array([i - 1 for i in KNOWN])
    free = np.array([i - 1 for i in FREE])
    alpha = np.zeros(16)
    alpha[fixed] = [known[i] for i in KNOWN]
    target = data.torque.ravel() - matrix @ alpha
    with one_blas_thread():
        alpha[free] = np.linalg.lstsq(matrix[:, free], target, rcond=1e-9)[0]
        scaled = matrix[:, free] / np.linalg.norm(matrix[:, free], axis=0)
        singular = np.linalg.svd(scaled, compute_uv=False)
    return AlphaEstimate(alpha, singular)


def _tilted(about_x: float, about_y: float) -> Array:
    """Rotation about x, then about y of the base frame [rad]."""
    c, s = np.cos(about_x), np.sin(about_x)
    first = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    c, s = np.cos(about_y), np.sin(about_y)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]) @ first
