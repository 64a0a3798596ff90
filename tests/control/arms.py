"""A small arm with friction, fits made from formulas, and a tool path that the arm can follow."""

import numpy as np

import armid
from armid.dynamics.kinematics import tool_frame
from armid.dynamics.model import Motion
from armid.estimation import WeightedLeastSquares
from armid.excitation.constraints import prior_values
from armid.signals.dataset import Dataset
from armid.torque.model import model_of

MIDDLE = np.array([0.2, -0.5, 0.9])  # a posture with room around it
_DESCRIPTION = """\
name: small
kinematics:
  convention: modified-dh
  rows: [[0, 0, 0.3, 0], [-pi/2, 0, 0, 0], [0, 0.4, 0, 0]]
tool: {xyz: [0.35, 0, 0]}
gravity: [0, 0, -9.81]
limits:
  position: [[-170 deg, 170 deg], [-120 deg, 60 deg], [-10 deg, 150 deg]]
  velocity: [2, 2, 3]
  acceleration: [20, 20, 30]
  torque: [200, 200, 100]
friction: {law: coulomb-viscous}
virtual:
  links:
    - {mass: 8, com: [0, 0, -0.1], inertia: {xx: 0.08, xy: 0, xz: 0, yy: 0.08, yz: 0, zz: 0.05}}
    - {mass: 5, com: [0.2, 0, 0], inertia: {xx: 0.02, xy: 0, xz: 0, yy: 0.1, yz: 0, zz: 0.1}}
    - {mass: 2, com: [0.15, 0.02, 0], inertia: {xx: 0.005, xy: 0, xz: 0, yy: 0.03, yz: 0, zz: 0.03}}
  friction: {law: coulomb-viscous, coefficients: {fv: [3, 4, 1.5], fc: [6, 7, 3]}}
  torque_noise: [0.5, 0.5, 0.2]
  encoder_resolution: 1.0e-5
"""


def small_arm(folder):
    """Three joints, three links, friction; a file that commands can read."""
    path = folder / "small.yaml"
    path.write_text(_DESCRIPTION)
    return armid.load_robot(path)


def motion_of(robot, samples=3000, seconds=20.0, seed=0):
    """Times and a smooth motion of all joints about the middle of their ranges."""
    t, n = np.arange(samples) * (seconds / samples), robot.n_joints
    rng = np.random.default_rng(seed)
    q, qd, qdd = np.zeros((3, samples, n))
    for harmonic in range(1, 6):
        w = 2 * np.pi * harmonic / seconds
        a, b = 0.3 * rng.normal(size=(2, n))
        q += np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b)
        qd += w * (np.outer(np.cos(w * t), a) - np.outer(np.sin(w * t), b))
        qdd -= w**2 * (np.outer(np.sin(w * t), a) + np.outer(np.cos(w * t), b))
    return t, Motion(q, qd, qdd)


def fitted(robot, *, noise=0.3, seed=0):
    """A fit to the torque of the virtual arm's own parameters along a smooth motion, with noise."""
    t, motion = motion_of(robot, seed=seed)
    model = model_of(robot)
    torque = model.inverse_dynamics(*motion, prior_values(model))
    torque = torque + noise * np.random.default_rng(seed + 1).normal(size=torque.shape)
    data = Dataset(
        joints=robot.joint_names, time=t, q=motion.q, qd=motion.qd, qdd=motion.qdd, torque=torque,
        rows=np.arange(len(t)), torque_noise=np.full(robot.n_joints, noise),
    )  # fmt: skip
    return WeightedLeastSquares().fit(robot, data)


def circle_csv(robot, path, *, radius=0.06, seconds=2.0, poses=21):
    """Write a circle about where the tool is in `MIDDLE`, from rest to rest, orientation free."""
    centre = tool_frame(robot, MIDDLE[None])[0, :3, 3]
    u = np.linspace(0.0, 1.0, poses)
    angle = 2 * np.pi * (10 * u**3 - 15 * u**4 + 6 * u**5)
    x, z = centre[0] + radius * (np.cos(angle) - 1.0), centre[2] + radius * np.sin(angle)
    rows = [f"{seconds * a:.6f},{b:.9f},{centre[1]:.9f},{c:.9f}" for a, b, c in zip(u, x, z, strict=True)]
    path.write_text("\n".join(["time,x,y,z", *rows]) + "\n")
    return path
