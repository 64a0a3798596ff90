"""A small arm, its truth, and data made from formulas alone."""

from dataclasses import replace

import numpy as np

import armid
from armid.dynamics.model import Motion
from armid.logs import write_log
from armid.logs.log import Log, LogInfo
from armid.signals.dataset import Dataset
from armid.torque.model import model_of

VALUES = {
    "m1": 3.0, "mx1": 0.4, "my1": 0.1, "Izz1": 0.3, "m2": 2.0, "mx2": 0.5, "my2": 0.05, "Izz2": 0.2,
    "fv1": 2.0, "fc1": 3.0, "fo1": 0.5, "fv2": 1.0, "fc2": 1.5, "fo2": -0.2,
}  # fmt: skip


def planar(tmp_path):
    """Two links that swing in a vertical plane."""
    path = tmp_path / "planar.yaml"
    path.write_text(
        "name: planar\nkinematics:\n  convention: modified-dh\n  rows: [[0, 0, 0, 0], [0, 0.5, 0, 0]]\n"
        "gravity: [0, -9.81, 0]\nfriction: {law: coulomb-viscous, offset: true}\n"
    )
    return armid.load_robot(path)


def swing(samples=3000, seconds=20.0, seed=0):
    """Times and a smooth motion of two joints, with its derivatives."""
    t = np.arange(samples) * (seconds / samples)
    rng = np.random.default_rng(seed)
    q, qd, qdd = np.zeros((3, samples, 2))
    for harmonic in range(1, 6):
        w = 2 * np.pi * harmonic / seconds
        a, b = 0.5 * rng.normal(size=(2, 2))
        q += np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b)
        qd += w * (np.outer(np.cos(w * t), a) - np.outer(np.sin(w * t), b))
        qdd -= w**2 * (np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b))
    return t, Motion(q, qd, qdd)


def data_of(robot, *, noise=0.05, seed=0, extra=None, **changes):
    """A data set of a swing; `extra` is added to the torque as a function of time and motion."""
    t, motion = swing(seed=seed)
    torque = model_of(robot).inverse_dynamics(*motion, VALUES)
    if extra is not None:
        torque = torque + extra(t, motion)
    torque = torque + noise * np.random.default_rng(seed + 100).normal(size=torque.shape)
    data = Dataset(
        joints=robot.joint_names, time=t, q=motion.q, qd=motion.qd, qdd=motion.qdd, torque=torque,
        rows=np.arange(len(t)), torque_noise=np.full(2, noise),
    )  # fmt: skip
    return replace(data, **changes)


def write_files(folder):
    """The robot's file, planar.yaml, and logs of different motion, train.csv and other.csv."""
    robot = planar(folder)
    for name, seed in (("train", 1), ("other", 2)):
        t, motion = swing(seed=seed)
        info = LogInfo(robot.joint_names, "joint torque", rate_hz=150.0, robot="planar")
        log = Log(t, {"position": motion.q, "effort": data_of(robot, seed=seed, noise=0.3).torque}, info)
        write_log(log, folder / f"{name}.csv")
    return folder
