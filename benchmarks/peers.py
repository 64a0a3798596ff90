"""The peers, called the way their users call them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from armid.robot.robot import Robot


def pinocchio_model(robot: Robot) -> pin.Model:
    """A Pinocchio model with the same kinematics as a robot in modified DH (link frame = joint frame)."""
    model = pin.Model()
    model.gravity.linear = robot.gravity
    for index, joint in enumerate(robot.joints):
        placement = pin.SE3(joint.placement[:3, :3], joint.placement[:3, 3])
        kind = pin.JointModelPZ() if joint.prismatic else pin.JointModelRZ()
        number = model.addJoint(joint.parent, kind, placement, joint.name)
        assert number == index + 1
    return model


def regressor_loop(model: pin.Model, q, qd, qdd, columns, out) -> None:
    """The usual loop: one call per sample, wanted columns kept. `out` is (samples, joints, columns)."""
    data = model.createData()
    compute = pin.computeJointTorqueRegressor
    for k in range(len(q)):
        out[k] = compute(model, data, q[k], qd[k], qdd[k])[:, columns]


def bare_loop(model: pin.Model, q, qd, qdd) -> None:
    """The calls alone, results thrown away: the least a Python loop can cost."""
    data = model.createData()
    compute = pin.computeJointTorqueRegressor
    for k in range(len(q)):
        compute(model, data, q[k], qd[k], qdd[k])


def blocked_qr(
    model: pin.Model,
    q: np.ndarray,
    qd: np.ndarray,
    qdd: np.ndarray,
    tau: np.ndarray,
    columns: np.ndarray,
    block: int = 1000,
) -> np.ndarray:
    """Samples to a triangular factor of [W | tau] in constant memory: the loop above and a QR per block."""
    factor = np.zeros((0, len(columns) + 1))
    buffer = np.empty((min(block, len(q)), model.nv, len(columns) + 1))
    for first in range(0, len(q), block):
        rows = slice(first, first + block)
        part = buffer[: len(q[rows])]
        regressor_loop(model, q[rows], qd[rows], qdd[rows], columns, part[:, :, :-1])
        part[:, :, -1] = tau[rows]
        factor = np.linalg.qr(np.vstack([factor, part.reshape(-1, part.shape[2])]), mode="r")
    return factor
