"""The test stand of the PA-10 paper: sweeps, loaded runs and velocity profiles on the virtual arm, and estimation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.single_joint.friction_fit import FrictionFit, fit_friction
from armid.estimation.single_joint.friction_points import friction_points
from armid.excitation.profiles import polynomial_velocity, sinusoidal_velocity
from armid.excitation.trajectory import Trajectory
from armid.experiment.drive import Recording
from armid.experiment.driving import move_to, to_log
from armid.experiment.friction_sweep import friction_sweep, pa10_speeds
from armid.experiment.gravity_free import foreseen_values, gravity_free
from armid.experiment.settings import Sensors
from armid.experiment.stiffness_run import stiffness_run
from armid.experiment.truth import truth_of
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.robot.friction import Friction
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.signals.filtering import LowPass
from armid.signals.periodic import PeriodicAverage
from armid.signals.pipeline import process
from armid.torque.known import KnownTorque

RATE_HZ = 400.0  # the cycle of 2.5 ms
ENCODER = 3e-5  # [rad]: 12 bits at the motor behind a gear of 50; the paper does not say
INTERPOLATED = 5  # steps of the drives per cycle
ROUNDS = 8  # until the load torque that the loss is computed with is the identified one
SPEED_SHARE, RANGE_SHARE, BEND_SHARE = 0.8, 0.45, 0.9  # of the limits that velocity profiles use
BASE_HZ, PERIODS, STROKE_S = 0.1, 3, 4.0
MULTIPLES = ((1, 2, 3, 2, 5, 4, 7), (3, 1, 2, 5, 4, 7, 6))  # of the base frequency, joint by joint
VERIFICATION = (2, 3, 1, 4, 3, 5, 4)
SIGNS = ((1, -1, 1, -1, 1, 1, -1), (1, 1, -1, 1, 1, -1, 1))


def pa10_arm() -> Robot:
    """The arm in its horizontal mounting, with the zeros of (13) and (14)."""
    return load_robot("pa10")


def swept_friction(
    robot: Robot, joint: int, seed: int, *, speeds: int, seconds: float, warm_up_s: float
) -> FrictionFit:
    """II.B: both directions of one joint, 0.001 rad/s to 60 % of its speed, without gravity; law (18)."""
    mounted = robot.with_gravity(gravity_free(robot, joint).gravity)
    arm = VirtualRobot(mounted, rate_hz=RATE_HZ, seed=seed)
    grid = pa10_speeds(float(robot.limits.velocity[joint - 1]), speeds)
    run = friction_sweep(arm, mounted, joint, speeds=grid, seconds=seconds, warm_up_s=warm_up_s)
    return fit_friction(friction_points(run.log, mounted, joint), "double-exponential", per_direction=True)


def true_friction(robot: Robot, joint: int, speed: Array) -> Array:
    """Table II, corrected, joint side [N m]."""
    truth = truth_of(robot)
    return truth.friction[joint - 1].torque(speed, truth.coefficients[joint - 1])


def loaded_run(robot: Robot, joint: int, seed: int, *, seconds: float) -> Log:
    """II.C: constant velocity while gravity loads the joint."""
    return stiffness_run(VirtualRobot(robot, rate_hz=RATE_HZ, seed=seed), robot, joint, seconds=seconds).log


def maker_values(robot: Robot) -> Array:
    """Masses and centres of mass as the maker states them: those of the virtual arm."""
    return foreseen_values(Model(robot))


def first_moments(robot: Robot) -> dict[str, float]:
    """pi2, pi10 and pi18 of the virtual arm, link 7 included [kg m]."""
    truth = truth_of(robot)
    mass, my, mz = truth.inertia[:, 0], truth.inertia[:, 2], truth.inertia[:, 3]
    d = {length.name: length.value for length in robot.lengths}
    return {
        "my2": float(my[1] - mz[2] - d["d3"] * mass[2:].sum()),
        "my4": float(my[3] - mz[4] - d["d5"] * mass[4:].sum()),
        "my6": float(my[5] - mz[6] - d["d7"] * mass[6:].sum()),
    }


def sinusoids(robot: Robot, multiples: Sequence[int]) -> Trajectory:
    """III.B: sinusoidal velocities about the middle of the ranges, at different multiples of 0.1 Hz."""
    limits, width = robot.limits, 2.0 * np.pi * BASE_HZ * np.array(multiples, dtype=float)
    peak = np.minimum(SPEED_SHARE * limits.velocity, 0.5 * RANGE_SHARE * (limits.upper - limits.lower) * width)
    peak = np.minimum(peak, BEND_SHARE * limits.acceleration / width)
    return sinusoidal_velocity(0.5 * (limits.lower + limits.upper) - peak / width, peak, BASE_HZ, multiples)


def polynomials(robot: Robot, signs: Sequence[int], strokes: int = 6) -> Trajectory:
    """III.B: bell-shaped polynomial velocities, there and back about the middle of the ranges."""
    limits = robot.limits
    most = RANGE_SHARE * (limits.upper - limits.lower) * 15.0 / 8.0 / STROKE_S
    peak = np.array(signs) * np.minimum(SPEED_SHARE * limits.velocity, most)
    middle = 0.5 * (limits.lower + limits.upper)
    return polynomial_velocity(middle - peak * STROKE_S * 4.0 / 15.0, peak, STROKE_S, strokes)


def velocity_run(robot: Robot, motion: Trajectory, seed: int, *, periods: int = PERIODS) -> Log:
    """Drive velocities in velocity mode, commands and log at 400 Hz.

    The drives go linearly from one command to the next in steps of 0.5 ms. A command that jumps at every cycle would
    show in the torque, which is read at the same instants, as a quarter more inertia than there is.
    """
    sensors = Sensors(encoder_resolution=ENCODER, velocity_noise=0.1 * ENCODER * RATE_HZ)
    arm = VirtualRobot(robot, rate_hz=INTERPOLATED * RATE_HZ, seed=seed, sensors=sensors)
    move_to(arm, motion.at([0.0]).q[0], robot.limits)
    arm.set_mode("velocity")
    one = motion.sample(RATE_HZ)[1].qd
    commands = np.tile(one, (periods + 1, 1)) if motion.periodic else one
    fine = np.arange(INTERPOLATED * (len(commands) - 1) + 1) / INTERPOLATED
    coarse = np.arange(len(commands))
    recording = arm.stream(np.column_stack([np.interp(fine, coarse, column) for column in commands.T]))
    first = len(one) if motion.periodic else 0  # one period passes until the transient has died out
    kept = slice(INTERPOLATED * first, None, INTERPOLATED)
    thinned = Recording(*(getattr(recording, field.name)[kept] for field in fields(Recording)))
    about = {"period_s": motion.duration} if motion.periodic else {}
    return to_log(arm, thinned, "velocity", {"procedure": "velocity profile"}, rate_hz=RATE_HZ, **about)


def processed(log: Log, robot: Robot) -> Dataset:
    """Averaged over periods where there are any, else low-passed."""
    return process(log, LowPass() if log.info.period_s is None else PeriodicAverage(), robot=robot)


def identified(robot: Robot, sets: Sequence[Dataset], friction: Sequence[FrictionFit], loss: Array) -> Fit:
    """III.B: base parameters, with friction and load loss known beforehand.

    The load torque of the loss is that of the identified parameters: starting without loss, the estimate is repeated
    until it agrees with the load it was made with.

    Args:
        robot: the arm.
        sets: data.
        friction: of each joint.
        loss: slope and offset [N m] of each joint, joint side (joints, 2).
    """
    bare = without_friction(robot)
    known = tuple((Friction(one.law, False, one.per_direction), one.coefficients) for one in friction)
    weight: dict[str, float] = {}
    for _ in range(ROUNDS):
        fit = WeightedLeastSquares(known_torque=KnownTorque(known, loss, weight)).fit(bare, sets)
        weight = dict(zip(fit.columns, fit.values.tolist(), strict=True))
    return fit


def without_friction(robot: Robot) -> Robot:
    """The arm whose friction is no unknown."""
    return replace(robot, friction=tuple(Friction() for _ in robot.friction))
