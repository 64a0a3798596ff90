"""Friction identified on a cold arm is not that of the warm one."""

import numpy as np

import armid
from armid.estimation.single_joint.friction_points import friction_points
from armid.experiment import Thermal, VirtualRobot
from armid.experiment.friction_runs import friction_sweep


def slope(thermal):
    """Slope of friction over speed between 0.2 and 0.5 rad/s on joint 4 of the Powerball [N m s/rad]."""
    robot = armid.load_robot("powerball")
    arm = VirtualRobot(robot, rate_hz=200, seed=3, thermal=thermal)
    points = friction_points(friction_sweep(arm, robot, 4, speeds=[0.2, 0.35, 0.5], seconds=3.0).log, robot, 4)
    return np.polyfit(np.abs(points.speed), np.sign(points.speed) * points.torque, 1)[0]


def test_cold_friction_differs_visibly():
    """35 % more viscous friction on the cold arm, which hardly warms in a minute, raise the slope by g5 * 0.35."""
    viscous = armid.load_robot("powerball").virtual.coefficients[3]["g5"]
    difference = slope(Thermal(excess=0.35, time_constant_s=5000.0)) - slope(None)
    assert np.isclose(difference, 0.35 * viscous, rtol=0.15)
