"""The KR 15's test stand: the arm with and without the reference payload, and the trajectories of its plug-in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import tool_frame
from armid.errors import ArmidError
from armid.estimation.consistent.feasible import feasible_fit
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.excitation.constraints import ToolBox
from armid.excitation.design import Fourier, design
from armid.excitation.plan import Plan
from armid.experiment.settings import DriveLoop, Presliding, Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.payload.body import QUANTITIES, undescribed
from armid.robot.friction import Friction
from armid.robot.load import load_robot
from armid.robot.robot import Robot
from armid.signals.pipeline import process

# From the paper.
CYCLE_S = 0.012
PERIOD_S = 30.0  # 0.033 Hz is not a whole number of cycles, 1/30 Hz is
HARMONICS = ((1, 20), (1, 25))  # one or the other
JOINTS = (3, 4, 5, 6)
RUNS, PERIODS = 10, 10

# What the paper leaves open.
POSTURE = (0.0, -1.0, 1.2, 0.0, 0.9, 0.0)  # [rad]
BOX_M = 0.3  # edge of the cube around the flange that the motion stays in
TORQUE_NOISE = (3.0, 3.0, 3.0, 3.0, 1.0, 1.0)  # [N m]
MORE_COULOMB, MORE_VISCOUS = 1.2, 1.1  # friction with payload over friction without
BREAKAWAY, STRIBECK_SPEED, DEFLECTION = 1.2, 0.05, 1e-4  # rich friction as on the IR 361's stand [–, rad/s, rad]
LOOP_HZ, ENCODER_NOISE = 30.0, 7.5e-6  # the same [Hz, rad]
ARM_PERIOD_S, ARM_HARMONICS, ARM_PERIODS = 12.0, 5, 10  # identification of the arm without payload


@dataclass(frozen=True, eq=False)
class Printed:
    """Table 3, in the order of `QUANTITIES`: reference from CAD, mean and standard deviation of ten experiments."""

    reference: Array
    mean: Array
    sigma: Array


def printed(robot: Robot) -> Printed:
    """Table 3."""
    told, found = (
        {entry["name"]: entry for entry in robot.published[name]["parameters"]}
        for name in ("payload-reference", "payload-mean")
    )
    names = [name for name, _ in QUANTITIES]
    return Printed(
        np.array([float(told[name]["value"]) for name in names]),
        np.array([float(found[name]["value"]) for name in names]),
        np.array([float(found[name]["std"]) for name in names]),
    )


def kr15_arm() -> Robot:
    """The description: Coulomb and viscous friction."""
    return load_robot("kr15")


def virtual_arm(seed: int, *, loaded: bool) -> VirtualRobot:
    """The arm with friction that Coulomb and viscous friction do not describe; with payload there is more of it."""
    robot = kr15_arm()
    truth = robot.virtual
    assert truth is not None
    dry, oily = (MORE_COULOMB, MORE_VISCOUS) if loaded else (1.0, 1.0)
    coefficients = tuple(
        {"fv": oily * c["fv"], "fc": dry * c["fc"], "fs": BREAKAWAY * dry * c["fc"], "vs": STRIBECK_SPEED}
        for c in truth.coefficients
    )
    laws = (Friction("stribeck"),) * robot.n_joints
    rich = replace(robot, virtual=replace(truth, friction=laws, coefficients=coefficients))
    return VirtualRobot(
        rich,
        rate_hz=1.0 / CYCLE_S,
        seed=seed,
        posture=POSTURE,
        payload=undescribed(printed(robot).reference) if loaded else np.zeros(10),
        loop=DriveLoop(bandwidth_hz=LOOP_HZ),
        sensors=Sensors(torque_noise=TORQUE_NOISE, encoder_noise=ENCODER_NOISE),
        presliding=Presliding(deflection=DEFLECTION),
    )


def arm_plan(robot: Robot, seed: int) -> Plan:
    """A motion of all joints, for the arm itself."""
    shape = Fourier(ARM_HARMONICS, ARM_PERIOD_S)
    return design(
        robot,
        shape,
        starts=1,
        iterations=150,
        seed=seed,
        workers=1,
        rate_hz=1.0 / CYCLE_S,
        noise=TORQUE_NOISE,
    )


def arm_fit(robot: Robot, log: Log) -> Fit:
    """Links, rotors and friction of the arm without payload: what is known a priori."""
    return feasible_fit(WeightedLeastSquares().fit(robot, process(log, robot=robot)))


def payload_plan(robot: Robot, number: int, seed: int) -> Plan:
    """One of the plug-in's trajectories: joints 3 to 6, two frequencies, the flange in a small box."""
    flange = tool_frame(robot, np.array([POSTURE]))[0, :3, 3]
    half = 0.5 * BOX_M
    for iterations in (25, 50, 300):  # a short search is as good, where it ends inside all limits
        try:
            return design(
                robot,
                Fourier(HARMONICS[number % len(HARMONICS)], PERIOD_S),
                parameters="payload",
                joints=JOINTS,
                posture=POSTURE,
                rate_hz=1.0 / CYCLE_S,
                noise=TORQUE_NOISE,
                constraints=(ToolBox(robot, flange - half, flange + half),),
                starts=1,
                iterations=iterations,
                seed=seed + number,
                workers=1,
            )
        except ArmidError:
            if iterations == 300:
                raise
    raise AssertionError
