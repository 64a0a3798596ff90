"""The published friction tables as truths: speeds, torques and noise of the joints' means."""

import numpy as np

import armid
from armid.experiment.friction_runs import pa10_speeds, powerball_speeds

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")
PA10_CURVES = [(joint, sign) for joint in range(7) for sign in (1.0, -1.0)]


def pa10_truth(joint, sign):
    """Speeds, torque and standard error of means over 15 s at 400 Hz, one curve of Table II, joint side."""
    v = sign * pa10_speeds(PA10.limits.velocity[joint])
    return v, torque(PA10, joint, v), np.full(len(v), PA10.virtual.torque_noise[joint] / np.sqrt(400 * 15))


def powerball_truth(joint):
    """The same for a joint of Powerball Table 2, both directions, 15 s at 200 Hz."""
    v = np.concatenate([powerball_speeds(), -powerball_speeds()])
    return v, torque(POWERBALL, joint, v), np.full(len(v), POWERBALL.virtual.torque_noise[joint] / np.sqrt(200 * 15))


def torque(robot, joint, v):
    """Friction of the virtual arm."""
    return robot.virtual.friction[joint].torque(v, robot.virtual.coefficients[joint])
