"""The Powerball's test stand: the arm warm or cold, its second sinusoid, friction first, and the paper's filters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import signal

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.estimation.single_joint.friction_fit import FrictionFit
from armid.excitation.fourier import FourierSeries
from armid.excitation.prior import prior_values
from armid.experiment.settings import Thermal
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.papers.experiment import table
from armid.robot.friction import Friction
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.pipeline import process
from armid.torque.known import KnownTorque
from armid.torque.model import model_of
from armid.validation.comparison import compare

RATE_HZ = float(table("powerball")["acquisition"]["rate_hz"])
CUTOFF_HZ = 5.0  # of the decimation and Butterworth filters; the paper states none
LOWEST_HZ = 0.05  # of the band-pass as printed; the paper states none

#: Columns of the regressor that stand for the 29 entries of Table 3: the first parameter of each.
COLUMNS_29 = (
    *("mx2", "mz2", "Ixz2", "my3", "mz3", "Iyz3", "Im3", "my4", "mz4", "Iyz4", "Im4", "my5", "mz5", "Iyz5", "Im5"),
    *("mz6", "Iyy1", "m2", "Ixx2", "Izz2", "Ixx3", "Iyy3", "m4", "Ixx4", "Iyy4", "Ixx5", "Iyy5", "Ixx6", "Izz6"),
)


@cache
def powerball_arm() -> Robot:
    """The arm with the zeros of (12)."""
    return load_robot("powerball")


@cache
def frictionless(robot: Robot) -> Robot:
    """What is left to identify once friction is known."""
    return replace(robot, friction=(Friction(),) * robot.n_joints)


def machine(robot: Robot, seed: int, *, cold: bool = False) -> VirtualRobot:
    """The arm on the stand; cold after power-on, or warm."""
    return VirtualRobot(robot, rate_hz=RATE_HZ, seed=seed, thermal=Thermal() if cold else None)


def second_sinusoid(robot: Robot, share: float = 0.9) -> FourierSeries:
    """A sinusoid per joint, of 0.05 to 0.083 Hz, over two thirds of the range or up to a share of the speed limit."""
    base, harmonics = 1.0 / 60.0, (3, 4, 5)
    which = [0, 1, 2, 1, 2, 0]
    reach = np.minimum(
        0.67 * 0.5 * (robot.limits.upper - robot.limits.lower),
        share * robot.limits.velocity / (2.0 * np.pi * base * np.array(harmonics)[which]),
    )
    phase = np.array([0.0, 0.6, 1.2, 1.8, 2.4, 3.0])
    sine, cosine = np.zeros((2, robot.n_joints, len(harmonics)))
    rows = np.arange(robot.n_joints)
    sine[rows, which], cosine[rows, which] = reach * np.cos(phase), reach * np.sin(phase)
    return FourierSeries(base, harmonics, sine, cosine, 0.5 * (robot.limits.lower + robot.limits.upper))


def known_friction(fits: Sequence[FrictionFit]) -> KnownTorque:
    """Friction found in the sweeps, to be subtracted (sequential identification)."""
    return KnownTorque(tuple((Friction(fit.law, False, fit.per_direction), fit.coefficients) for fit in fits))


def prepared(log: Log, robot: Robot) -> Dataset:
    """Decimated torque, Butterworth on the differentiated measured velocity, the same filter on both sides (PB-17)."""
    return process(log, LowPass(cutoff_hz=CUTOFF_HZ, measured=True), robot=robot)


def prepared_as_printed(log: Log) -> Dataset:
    """A decimation filter on torque alone, a causal band-pass on acceleration alone: the sides differ (PB-17)."""
    step = max(1, int(RATE_HZ / (2.5 * CUTOFF_HZ)))
    torque = signal.decimate(log["effort"], step, axis=0, zero_phase=True)
    rate = np.gradient(log["velocity"], 1.0 / RATE_HZ, axis=0)
    band = signal.butter(2, [LOWEST_HZ, CUTOFF_HZ], btype="bandpass", fs=RATE_HZ, output="sos")
    acceleration = signal.sosfilt(band, rate, axis=0)
    kept = slice(round(2.0 / CUTOFF_HZ * RATE_HZ) * step, None, step)  # without the filters' start
    rows = len(log["position"][kept])
    return Dataset(
        joints=log.joints,
        time=log.time[kept],
        q=np.ascontiguousarray(log["position"][kept]),
        qd=np.ascontiguousarray(log["velocity"][kept]),
        qdd=np.ascontiguousarray(acceleration[kept]),
        torque=np.ascontiguousarray(torque[len(torque) - rows :]),
        rows=np.arange(rows),
        gravity=log.info.gravity,
    )


def true_values(robot: Robot) -> Array:
    """Base parameters of the virtual arm without friction; no estimate uses them."""
    model = model_of(robot)
    values = dict(zip(model.names, prior_values(model).tolist(), strict=True))
    return np.asarray(model.base.matrix @ np.array([values[name] for name in model.base.names]))


@dataclass(frozen=True, eq=False)
class Verified:
    """Measured and reconstructed torque after the decimation filter, (rows, joints).

    Attributes:
        time: [s].
        velocity: [rad/s].
        measured, predicted: [N m].
        noise: standard deviation of the filtered torque's noise, per joint [N m].
        raw_error: measured less reconstructed torque before any filter [N m].
    """

    time: Array
    velocity: Array
    measured: Array
    predicted: Array
    noise: Array
    raw_error: Array

    @property
    def nrms(self) -> Array:
        """RMS error over the standard deviation of the torque, per joint."""
        return np.sqrt(np.mean((self.measured - self.predicted) ** 2, axis=0)) / np.std(self.measured, axis=0)

    @property
    def nrms_raw(self) -> Array:
        """The same of the unfiltered torque, its noise included."""
        return np.sqrt(np.mean(self.raw_error**2, axis=0)) / np.std(self.measured, axis=0)


def verified(fit: Fit, data: Dataset) -> Verified:
    """The torque of a data set by a fit."""
    found = compare(fit, data)
    noise = np.full(data.q.shape[1], np.nan) if found.noise is None else found.noise
    raw, full = found.raw_measured, found.raw_predicted
    error = found.error if raw is None or full is None else raw - full
    return Verified(found.time - found.time[0], found.velocity, found.measured, found.predicted, noise, error)
