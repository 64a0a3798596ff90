"""Virtual arms, excitation and torque without simulation, for the tests of the feasible fit, priors and the audit."""

import numpy as np

import armid
from armid.dynamics.model import Motion
from armid.excitation import FourierSeries
from armid.robot.robot import inertial_names
from armid.signals import Dataset


def library_arm(name):
    robot = armid.load_robot(name)
    return robot.first_links(len(robot.virtual.inertia))


def excitation(robot, seed, period=10.0):
    """A random Fourier series at 80 % of the limits."""
    rng = np.random.default_rng(seed)
    k = np.arange(1, 6)
    sine, cosine = rng.normal(size=(2, robot.n_joints, 5)) / k
    w, t = 2.0 * np.pi / period, np.linspace(0.0, period, 400)
    s, c = np.sin(np.outer(k, w * t)), np.cos(np.outer(k, w * t))
    moves = [sine @ s + cosine @ c, (sine * k * w) @ c - (cosine * k * w) @ s]
    moves.append(-(sine * (k * w) ** 2) @ s - (cosine * (k * w) ** 2) @ c)
    limits = robot.limits
    allowed = (0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration)
    room = 0.8 * np.min([a / np.abs(m).max(axis=1) for a, m in zip(allowed, moves, strict=True)], axis=0)[:, None]
    middle = 0.5 * (limits.upper + limits.lower)
    return FourierSeries(1.0 / period, tuple(k.tolist()), room * sine, room * cosine, middle)


def made(robot, samples=400, noise=0.0, seed=0, friction=None):
    """Torque of the virtual links on random states, without simulating."""
    rng = np.random.default_rng(seed)
    shape = (samples, robot.n_joints)
    motion = Motion(rng.uniform(-2.0, 2.0, shape), rng.uniform(-1.5, 1.5, shape), rng.uniform(-4.0, 4.0, shape))
    model = armid.dynamics.Model(robot)
    values = truth(robot)
    torque = model.inverse_dynamics(*motion, values) + noise * rng.normal(size=shape)
    if friction is not None:
        torque += friction(motion.qd)
    time = 0.01 * np.arange(samples)
    return Dataset(robot.joint_names, time, *motion, torque, np.arange(samples))


def truth(robot):
    """All parameters of the virtual arm."""
    virtual = robot.virtual
    values = {f"Im{i + 1}": float(v) for i, v in enumerate(virtual.rotor_inertia) if robot.rotors}
    for number, row in enumerate(virtual.inertia, start=1):
        values |= dict(zip(inertial_names(number), row.tolist(), strict=True))
        values |= {f"{name}{number}": value for name, value in virtual.coefficients[number - 1].items()}
    for number, (k, free) in enumerate(virtual.springs, start=1):
        values |= {f"ks{number}": k, f"kl{number}": k * free}
    return {name: value for name, value in values.items() if name in armid.dynamics.Model(robot).names}


def phi(fit, number):
    return np.array([fit.standard_parameters[name] for name in inertial_names(number)])
