"""The IR 361's test stand: the arm with simple or rich friction, its excitation, and the paper's signal processing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.kinematics import link_frames, tool_frame
from armid.errors import ArmidError
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.linear import solve
from armid.excitation.constraints import ToolBox
from armid.excitation.plan import Plan
from armid.excitation.prior import prior_values
from armid.excitation.trapezoid import random_points
from armid.experiment.settings import DriveLoop, Presliding, Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.papers.experiment import table
from armid.robot.friction import Friction
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.averaging import Averaged, average_periods
from armid.signals.dataset import Dataset
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import process
from armid.torque.model import model_of
from armid.validation.comparison import compare

# What the paper leaves open.
LOOP_HZ = 30.0  # bandwidth of the position loops; softer ones stick longer at reversals
ENCODER_NOISE = 7.5e-6  # [rad], half a count, so that rounding differs from period to period
BREAKAWAY, STRIBECK_SPEED = 1.2, 0.05  # rich friction: static over Coulomb friction, Stribeck velocity [rad/s]
DEFLECTION = 1e-4  # rich friction: presliding at the joint [rad], about half a degree at the motor
FLOOR = 0.1  # height below which the tool must not come [m]
MOVING = 0.05  # samples of a joint faster than this are compared with the noise [rad/s]


@dataclass(frozen=True)
class Stand:
    """One arm on the stand.

    Attributes:
        rich: friction with Stribeck effect and presliding instead of Coulomb and viscous friction alone.
        loop_hz: bandwidth of the position loops.
        deflection: of presliding [rad].
    """

    rich: bool = False
    loop_hz: float = LOOP_HZ
    deflection: float = DEFLECTION

    def arm(self, seed: int, *, perfect: bool = False) -> VirtualRobot:
        """The arm, with the paper's sample rate and the noise of Table 1."""
        robot = rich_friction(ir361_arm()) if self.rich else ir361_arm()
        return VirtualRobot(
            robot,
            rate_hz=RATE_HZ,
            seed=seed,
            loop=DriveLoop(bandwidth_hz=self.loop_hz),
            sensors=Sensors.perfect() if perfect else Sensors(encoder_noise=ENCODER_NOISE),
            presliding=Presliding(deflection=self.deflection) if self.rich else None,
        )

    def one_clean_period(self, plan: Plan) -> Log:
        """A period without sensors' noise; the sensors are not in the loop, so that the motion is the same with it."""
        return self.arm(0, perfect=True).run(plan, periods=1)


RATE_HZ = float(table("ir361")["excitation"]["rate_hz"])


@cache
def ir361_arm() -> Robot:
    """The first three links, with Coulomb and viscous friction; the locked wrist carries the tool."""
    robot, whole = load_robot("ir361"), load_robot("ir361", links=6)
    straight = np.zeros((1, 6))
    wrist = np.linalg.inv(link_frames(whole, straight)[0, 2]) @ tool_frame(whole, straight)[0]
    return replace(robot, tool=wrist)


def workspace(robot: Robot) -> ToolBox:
    """Where the tool may go: above the floor, as far as the arm reaches."""
    return ToolBox(robot, np.array([-2.0, -2.0, FLOOR]), np.array([2.0, 2.0, 3.0]), name="workspace")


def random_round(robot: Robot, count: int, seed: int) -> Array:
    """Random postures, (count, joints), with the tool above the floor on the straight way from each to the next."""
    candidates = random_points(robot, 50 * count, seed, margin=0.05)
    chosen: list[Array] = []
    share = np.linspace(0.0, 1.0, 25)[:, None]

    def free(start: Array, end: Array) -> bool:
        return bool(np.all(tool_frame(robot, start + share * (end - start))[:, 2, 3] > FLOOR))

    for posture in candidates:
        last = len(chosen) == count - 1
        if free(chosen[-1] if chosen else posture, posture) and (not last or free(posture, chosen[0])):
            chosen.append(posture)
        if len(chosen) == count:
            return np.array(chosen)
    raise ArmidError(f"no {count} random postures with the tool above {FLOOR:g} m were found; use another seed")


def rich_friction(robot: Robot) -> Robot:
    """The arm whose friction is higher at very low speed (Stribeck); what is to be estimated stays the same."""
    truth = robot.virtual
    assert truth is not None
    laws = (Friction("stribeck"),) * robot.n_joints
    coefficients = tuple({**c, "fs": BREAKAWAY * c["fc"], "vs": STRIBECK_SPEED} for c in truth.coefficients)
    return replace(robot, virtual=replace(truth, friction=laws, coefficients=coefficients))


def without_offset(robot: Robot) -> Robot:
    """The arm with axes 1 and 2 crossing: a1 = 0 (erratum SW-10)."""
    second = robot.joints[1]
    placement = second.placement.copy()
    placement[0, 3] = 0.0
    joints = (robot.joints[0], replace(second, placement=placement), *robot.joints[2:])
    return replace(robot, joints=joints, lengths=tuple(one for one in robot.lengths if one.name != "a1"))


def averaged(log: Log, channel: str, period_s: float) -> Averaged:
    """One channel averaged over periods, (5) and (6)."""
    return average_periods(log[channel], round(period_s * RATE_HZ))


def prepared(log: Log, robot: Robot, *, harmonics: str | int = "auto", discard: int = 0) -> Dataset:
    """Average over periods, differentiate exactly on selected harmonics."""
    steps = PeriodicAverage(period_s=log.info.period_s, harmonics=harmonics, discard_periods=discard)
    return process(log, steps, robot=robot)


def estimated(data: Dataset, robot: Robot, *, every_sample: bool = False) -> Fit:
    """Weighted least squares (7) to (10), weighted with the noise of the averaged torque.

    Args:
        data: of the excitation.
        robot: the arm.
        every_sample: as in the paper; otherwise a joint's samples at reversals are left out.
    """
    slow = 0.0 if every_sample else None
    return WeightedLeastSquares(noise="measured", slow_share=slow, slow_floor=slow).fit(robot, data)


def covariance_11(fit: Fit) -> Array:
    """(11): the inverse of F' Sigma^-1 F, with the measured noise of the averaged torque."""
    return solve(fit.factor, fit.weights).inverse


def true_values(robot: Robot) -> Array:
    """Base parameters of the virtual arm with Coulomb and viscous friction; no estimate uses them."""
    model = model_of(robot)
    values = dict(zip(model.names, prior_values(model).tolist(), strict=True))
    return np.asarray(model.base.matrix @ np.array([values[name] for name in model.base.names]))


def repeated(clean: Log, periods: int, robot: Robot, rng: np.random.Generator) -> Log:
    """A clean period repeated, with fresh noise on torque and encoders: another run of the same experiment."""
    truth = robot.virtual
    assert truth is not None
    position = np.tile(clean["position"], (periods, 1))
    position = position + ENCODER_NOISE * rng.normal(size=position.shape)
    position = truth.encoder_resolution * np.round(position / truth.encoder_resolution)
    effort = np.tile(clean["effort"], (periods, 1)) + np.array(truth.torque_noise) * rng.normal(size=position.shape)
    return Log(np.arange(len(position)) / RATE_HZ, {"position": position, "effort": effort}, clean.info)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Measured and predicted torque of a data set, (samples, joints), and what the figures of the paper need.

    Attributes:
        time: [s].
        velocity: [rad/s].
        measured, predicted: [N m].
        noise: standard deviation of the averaged torque's noise, per joint [N m].
        reversal: samples near a change of direction.
    """

    time: Array
    velocity: Array
    measured: Array
    predicted: Array
    noise: Array
    reversal: NDArray[np.bool_]

    @property
    def error(self) -> Array:
        """Measured less predicted [N m]."""
        return self.measured - self.predicted

    def rms(self, where: NDArray[np.bool_] | None = None) -> Array:
        """RMS error per joint over some samples, (samples, joints), or over all [N m]."""
        use = np.ones(self.error.shape, dtype=bool) if where is None else where
        return np.sqrt(np.sum(np.where(use, self.error, 0.0) ** 2, axis=0) / np.maximum(use.sum(axis=0), 1))

    @property
    def ratio(self) -> Array:
        """RMS error over noise, all samples, per joint."""
        return self.rms() / self.noise

    @property
    def ratio_moving(self) -> Array:
        """RMS error over noise, samples at which the joint is faster than `MOVING`, per joint."""
        return self.rms(np.abs(self.velocity) > MOVING) / self.noise

    @property
    def peaks(self) -> Array:
        """RMS error near reversals over RMS error elsewhere, per joint."""
        return self.rms(self.reversal) / self.rms(~self.reversal)


def predicted(fit: Fit, data: Dataset) -> Prediction:
    """The torque of a data set by a fit."""
    found = compare(fit, data)
    assert found.noise is not None
    return Prediction(found.time, found.velocity, found.measured, found.predicted, found.noise, found.reversal)
