"""Synthetic motion with known derivatives, for the tests of signals."""

import numpy as np

from armid.logs.log import Log, LogInfo


class Wave:
    """A random Fourier series per joint, with exact derivatives."""

    def __init__(self, rng, joints=7, harmonics=5, period=10.0):
        self.omega = 2.0 * np.pi / period * np.arange(1, harmonics + 1)
        self.sine, self.cosine = rng.normal(size=(2, harmonics, joints)) * 0.3
        self.offset = rng.normal(size=joints)
        self.period = period

    def motion(self, time):
        """Position, velocity, acceleration."""
        phase = np.outer(time, self.omega)
        s, c, w = np.sin(phase), np.cos(phase), self.omega
        return (
            self.offset + s @ self.sine + c @ self.cosine,
            (c * w) @ self.sine - (s * w) @ self.cosine,
            -(s * w**2) @ self.sine - (c * w**2) @ self.cosine,
        )


def torque_of(q, qd, qdd):
    """Something like the torque of an arm: inertia, gravity, viscous and Coulomb friction."""
    return 2.0 * qdd + 5.0 * np.sin(q) + 1.5 * qd + 3.0 * np.sign(qd)


def make_log(time, position, effort=None, **info):
    """A log of joint positions and joint torques."""
    names = tuple(f"joint{i + 1}" for i in range(position.shape[1]))
    channels = {"position": position} | ({} if effort is None else {"effort": effort})
    extra = info.pop("channels", {})
    kind = info.pop("effort_kind", "none" if effort is None else "joint torque")
    return Log(time, channels | extra, LogInfo(names, kind, **info))


def periodic_log(seed=0, *, joints=7, periods=16, period=10.0, rate=100.0, q_noise=0.0, torque_noise=0.0, **info):
    """A wave repeated `periods` times; returns the wave and the log."""
    rng = np.random.default_rng(seed)
    wave = Wave(rng, joints, period=period)
    time = np.arange(round(periods * period * rate)) / rate
    q, qd, qdd = wave.motion(time)
    torque = torque_of(q, qd, qdd)
    q = q + q_noise * rng.normal(size=q.shape)
    return wave, make_log(time, q, torque + torque_noise * rng.normal(size=q.shape), **info)


def smooth_step(x):
    """0 to 1 with zero slope and curvature at both ends."""
    x = np.clip(x, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
