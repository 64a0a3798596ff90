"""Arms at work: an identified arm, recordings of it with friction of the day, sensor noise, and contacts."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from scipy.signal import lfilter

import armid
from armid.dynamics.model import Model
from armid.excitation.constraints import prior_values
from armid.logs.log import Log, LogInfo
from armid.robot.inertia import change_of_frame, from_com
from armid.robot.robot import inertial_names
from tests.payload.stand import arm
from tests.random_arms import random_arm

RATE_HZ = 100.0
SPREAD = 0.02  # of friction between recordings
NOISE = 0.01  # of the largest torque of a joint


@dataclass(frozen=True)
class Push:
    """A force [N] in the base frame on the origin of a link's child, from `start` for `duration` [s]."""

    start: float
    duration: float
    link: int
    torque: np.ndarray


def motion(robot, duration, seed):
    """Slow and fast waves inside the limits, with reversals of all joints at different times."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, duration, 1.0 / RATE_HZ)
    n, waves = robot.n_joints, 4
    low, high = np.clip(robot.limits.lower, -3.0, 3.0), np.clip(robot.limits.upper, -3.0, 3.0)
    omega, phase = rng.uniform(0.3, 1.5, (n, waves)), rng.uniform(0.0, 2.0 * np.pi, (n, waves))
    size = (rng.uniform(0.3, 1.0, (n, waves)) * 0.35 * (high - low)[:, None]) / waves
    angle = omega * time[:, None, None] + phase
    q = 0.5 * (low + high) + (size * np.sin(angle)).sum(axis=2)
    return time, q, (size * omega * np.cos(angle)).sum(axis=2), -(size * omega**2 * np.sin(angle)).sum(axis=2)


@cache
def truth(name):
    """Robot, its model and all true parameters by name; ``random210`` is a random arm with its own friction law."""
    robot = _random(int(name.removeprefix("random"))) if name.startswith("random") else arm(name)
    model = Model(robot)
    return robot, model, dict(zip(model.names, prior_values(model), strict=True))


def _random(seed):
    robot = random_arm(seed, Path(mkdtemp())).robot
    return replace(robot, virtual=replace(robot.virtual, payload=None, load_loss=np.zeros((robot.n_joints, 2))))


def rubbing(qd, lag_s):
    """Velocities as friction sees them: it changes sides later than the motion."""
    keep = lag_s * RATE_HZ / (1.0 + lag_s * RATE_HZ)
    late = lfilter([1.0 - keep], [1.0, -keep], qd, axis=0, zi=keep * qd[:1])[0]
    return np.where(late * qd < 0.0, -qd, qd)


def torque_of(name, q, qd, qdd, friction=1.0, payload=None, lag_s=0.0):
    """What the drives do without noise; friction times a factor for all joints or each, late by a lag at reversals."""
    robot, model, values = truth(name)
    if payload is not None:
        link = change_of_frame(robot.tool) @ payload
        names = inertial_names(robot.n_joints)
        values = values | {name: values[name] + part for name, part in zip(names, link, strict=True)}
    values = {k: 0.0 if k.startswith(("fv", "fc", "fo")) else v for k, v in values.items()}
    laws = zip(robot.virtual.friction, robot.virtual.coefficients, rubbing(qd, lag_s).T, strict=True)
    rest = np.column_stack([law.torque(v, coefficients) for law, coefficients, v in laws])
    return model.inverse_dynamics(q, qd, qdd, values) + friction * rest


@cache
def _scale(name):
    """Largest torque of an ordinary minute."""
    _, *moved = motion(truth(name)[0], 60.0, 10_000)
    return np.abs(torque_of(name, *moved)).max(axis=0)


def recording(name, duration, seed, pushes=(), *, friction=1.0, payload=None, noise=NOISE, lag_s=0.0):
    """A log of the arm at work."""
    robot = truth(name)[0]
    time, q, qd, qdd = motion(robot, duration, seed)
    rng = np.random.default_rng([seed, 1])
    today = friction * (1.0 + SPREAD * rng.normal(size=robot.n_joints)) if noise else friction
    tau = torque_of(name, q, qd, qdd, today, payload, lag_s)
    for push in pushes:
        during = (time >= push.start) & (time < push.start + push.duration)
        tau[during] -= push.torque
    tau = tau + noise * _scale(name) * rng.normal(size=tau.shape)
    fastest = np.abs(motion(robot, 60.0, 10_000)[2]).max(axis=0)  # of the sensor, whatever this recording does
    speed = qd + 0.1 * noise * fastest * rng.normal(size=qd.shape)
    info = LogInfo(robot.joint_names, "joint torque", rate_hz=RATE_HZ, robot=robot.name, source=f"{name} {seed}")
    return Log(time, {"position": q, "velocity": speed, "effort": tau}, info)


@cache
def fitted(name, lag_s=0.0):
    """The arm as it is identified by default, from a minute of motion."""
    robot = truth(name)[0]
    return armid.identify(robot, armid.process(recording(name, 60.0, 999, lag_s=lag_s), robot=robot))


BODY = from_com(1.0, [0.0, 0.0, 0.05], np.diag([0.002, 0.002, 0.002]))
