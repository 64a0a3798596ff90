"""Sound models of random arms, and the same with something planted that makes them bad."""

from dataclasses import replace

import numpy as np

from armid.estimation.mixed import MixedEffects
from armid.excitation import Fourier, design
from armid.experiment.settings import DriveLoop
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.robot.inertia import from_com
from armid.robot.robot import inertial_names
from armid.signals import process
from armid.torque.friction.term import FrictionTerm
from armid.validation.comparison import friction_curve
from tests.random_arms import random_arm

RATE_HZ = 150.0


class Sound:
    """A random arm with two logs of different designed motion, and a model of the first."""

    def __init__(self, seed, folder):
        arm = random_arm(seed, folder)
        self.robot, self.loop, self.seed = arm.robot, DriveLoop(bandwidth_hz=arm.loop_hz), seed
        self.plans = [
            design(self.robot, Fourier(harmonics, 10.0), starts=1, seed=seed + k, rate_hz=RATE_HZ)
            for k, harmonics in enumerate((5, 3))
        ]
        self.log, self.other = (self.record(plan.trajectory, k) for k, plan in enumerate(self.plans))
        self.fit = self.identified(self.log)

    def record(self, motion, k, payload=None):
        """A log of two periods; the arm carries `payload`."""
        arm = VirtualRobot(self.robot, rate_hz=RATE_HZ, loop=self.loop, seed=self.seed + k, payload=payload)
        return arm.run(motion, periods=2)

    def identified(self, log):
        """The model of a log."""
        return MixedEffects().fit(self.robot, process(log, robot=self.robot))

    def slow_log(self):
        """The training motion at a quarter of its speed."""
        motion = self.plans[0].trajectory
        return self.record(replace(motion, base_frequency_hz=0.25 * motion.base_frequency_hz), 0)

    def loaded_log(self, share):
        """The other motion with a payload of some of the arm's own mass, a ball at the flange."""
        mass = share * float(truth_of(self.robot).inertia[:, 0].sum())
        return self.record(self.plans[1].trajectory, 1, from_com(mass, np.zeros(3), 1e-3 * mass * np.eye(3)))


def heavy_link(fit, heavy=2, light=3):
    """One link fifty times as heavy, another as light."""
    values = dict(fit.standard_parameters)
    for number, times in ((heavy, 50.0), (light, 0.02)):
        values |= {name: times * values[name] for name in inertial_names(number)}
    return replace(fit, standard_parameters=values)


def spiky_friction(fit, joint=1):
    """Friction of one joint that grows to four times its size below the slowest speed of the data."""
    slowest = fit.history["range"]["speed"][joint][0]
    level = max(friction_curve(fit, joint, np.array([slowest]), mean=True)[0][0], 2.0 * fit.residual_rms[joint])
    term = FrictionTerm("rest", joint, (0.3 * slowest,))
    rest = [one for one in fit.terms if (one.law, one.joint) == ("rest", joint)]
    if not rest:
        covariance = np.pad(fit.covariance, (0, 1))
        judged = replace(fit.identifiability, classes=(*fit.identifiability.classes, "curve"))
        fit = replace(
            fit, terms=(*fit.terms, term), columns=(*fit.columns, *term.names), values=np.append(fit.values, 0.0),
            covariance=covariance, identifiability=judged,
        )  # fmt: skip
    column = np.array([name in term.names for name in fit.columns])
    terms = tuple(term if one in rest else one for one in fit.terms)
    values, known = np.where(column, 3.0 * level, fit.values), np.where(column, 0.0, 1.0)
    return replace(fit, terms=terms, values=values, covariance=fit.covariance * np.outer(known, known))


def with_gain(log, joint, gain):
    """A log whose torque of one joint is reported larger."""
    effort = log["effort"].copy()
    effort[:, joint] *= gain
    return log.with_channels({"effort": effort})
