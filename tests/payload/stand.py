"""Arms with something in their hand: torque by MuJoCo, friction written out, noise added."""

from dataclasses import replace
from functools import cache

import numpy as np

import armid
from armid.dynamics.model import Motion
from armid.estimation.least_squares import WeightedLeastSquares
from armid.excitation.fourier import FourierSeries
from armid.experiment.physics import Physics
from armid.robot.inertia import from_com
from armid.robot.parts import Friction
from armid.signals.dataset import Dataset

RATE_HZ, PERIOD_S = 100.0, 10.0
BODY = from_com(5.0, [0.03, 0.05, 0.12], [[0.05, 0.005, 0.0], [0.005, 0.06, 0.002], [0.0, 0.002, 0.03]])
MORE_FRICTION = 1.15  # with payload


@cache
def arm(name, simplify="none"):
    """A library arm with Coulomb and viscous friction, no payload, no load-proportional loss."""
    robot = armid.load_robot(name)
    n = len(robot.virtual.inertia)
    robot = robot.first_links(n).simplified(simplify)
    law = (Friction("coulomb-viscous"),) * n
    friction = tuple({"fv": 8.0 / (1 + j), "fc": 12.0 / (1 + j)} for j in range(n))
    truth = replace(robot.virtual, payload=None, load_loss=np.zeros((n, 2)), friction=law, coefficients=friction)
    return replace(robot, friction=law, virtual=truth)


def swing(robot, seed, *, joints=None, share=0.5, period=PERIOD_S):
    """A random Fourier series inside the limits, of some joints or all."""
    rng = np.random.default_rng(seed)
    n = robot.n_joints
    low, high = np.clip(robot.limits.lower, -3.0, 3.0), np.clip(robot.limits.upper, -3.0, 3.0)
    sine, cosine = rng.normal(size=(2, n, 5)) / np.arange(1, 6) ** 0.5
    size = np.abs(sine).sum(axis=1) + np.abs(cosine).sum(axis=1)
    moving = np.isin(np.arange(n), range(n) if joints is None else joints)
    scale = (moving * share * 0.5 * (high - low) / size)[:, None]
    series = FourierSeries(1.0 / period, (1, 2, 3, 4, 5), scale * sine, scale * cosine, 0.5 * (low + high))
    return Motion(*(np.ascontiguousarray(array) for array in series.sample(RATE_HZ)[1]))


def torque(robot, motion, payload=None, more=1.0):
    """What the drives do: MuJoCo's mass matrix and bias, friction times `more`."""
    physics = Physics(robot, robot.virtual, payload)
    result = np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        mass, bias = physics.joint_space(q, v)
        result[row] = mass @ a + bias
    for joint, c in enumerate(robot.virtual.coefficients):
        v = motion.qd[:, joint]
        result[:, joint] += more * (c["fv"] * v + c["fc"] * np.sign(v))
    return result


def dataset(robot, motion, tau, **more):
    """Data as a pipeline without filters would give them."""
    samples = len(motion.q)
    return Dataset(
        joints=robot.joint_names,
        time=np.arange(samples) / RATE_HZ,
        q=motion.q,
        qd=motion.qd,
        qdd=motion.qdd,
        torque=tau,
        rows=np.arange(samples),
        **more,
    )


class Draws:
    """Arm and payload data of one arm, with fresh noise at each call."""

    def __init__(self, name, *, payload=BODY, joints=None, share=0.5, noise=0.02, seed=0, simplify="none"):
        self.robot = arm(name, simplify)
        self.payload = payload
        self.arm_motion = swing(self.robot, 1, share=0.8)
        self.motion = swing(self.robot, 2, joints=joints, share=share)
        self.arm_torque = torque(self.robot, self.arm_motion)
        self.torque = torque(self.robot, self.motion, payload, MORE_FRICTION)
        self.noise = noise * self.arm_torque.std(axis=0)
        self.rng = np.random.default_rng(seed)

    def _noisy(self, tau, share):
        return tau + share * self.noise * self.rng.normal(size=tau.shape)

    def fit(self, share=1.0):
        """The arm without payload."""
        data = dataset(self.robot, self.arm_motion, self._noisy(self.arm_torque, share))
        return WeightedLeastSquares().fit(self.robot, data)

    def loaded(self, share=1.0):
        """A run with the payload."""
        return dataset(self.robot, self.motion, self._noisy(self.torque, share))
