"""A motion replayed by MuJoCo alone: torques, tool positions, distances between capsules."""

import mujoco
import numpy as np

import armid
from armid.robot.inertia import to_com


def _text(numbers):
    return " ".join(repr(float(value)) for value in numbers)


def _quaternion(matrix):
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, np.ascontiguousarray(matrix[:3, :3]).ravel())
    return _text(result)


def mjcf(robot, values, capsules=()):
    """The arm as MJCF: link inertias from parameter values, capsules as geoms g0, g1, ..."""

    def geoms(link):
        shapes = {
            k: f'"capsule" fromto="{_text(c.start)} {_text(c.end)}"'
            if np.linalg.norm(c.end - c.start) > 1e-6
            else f'"sphere" pos="{_text(c.start)}"'
            for k, c in enumerate(capsules)
            if c.link == link
        }
        return "".join(
            f'<geom name="g{k}" type={shape} size="{capsules[k].radius}" mass="0"/>' for k, shape in shapes.items()
        )

    def body(i):
        joint = robot.joints[i]
        pose, pivot = joint.placement @ joint.link_frame, np.linalg.inv(joint.link_frame)
        mass, com, tensor = to_com(values[10 * i : 10 * i + 10])
        full = (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])
        inner = f'<joint pos="{_text(pivot[:3, 3])}" axis="{_text(pivot[:3, 2])}"/>'
        inner += f'<inertial mass="{mass!r}" pos="{_text(com)}" fullinertia="{_text(full)}"/>'
        inner += geoms(i + 1)
        inner += "".join(body(k) for k, child in enumerate(robot.joints) if child.parent == i + 1)
        return f'<body name="b{i + 1}" pos="{_text(pose[:3, 3])}" quat="{_quaternion(pose)}">{inner}</body>'

    bodies = geoms(0) + "".join(body(k) for k, child in enumerate(robot.joints) if child.parent == 0)
    option = f'<option gravity="{_text(robot.gravity)}"><flag contact="disable"/></option>'
    compiler = '<compiler angle="radian" inertiafromgeom="false"/>'
    return f"<mujoco>{compiler}{option}<worldbody>{bodies}</worldbody></mujoco>"


def replay(robot, values, motion, capsules=(), pairs=()):
    """Torque (linear friction added by its definition), position of the last link, distances of capsule pairs."""
    model = mujoco.MjModel.from_xml_string(mjcf(robot, values, capsules))
    data = mujoco.MjData(model)
    ids = [model.geom(f"g{k}").id for k in range(len(capsules))]
    last = model.body(f"b{robot.n_joints}").id
    torque, tip, gaps = [], [], []
    for q, qd, qdd in zip(*motion, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        torque.append(data.qfrc_inverse.copy())
        tip.append(data.xpos[last].copy())
        gaps.append([mujoco.mj_geomDistance(model, data, ids[i], ids[j], 10.0, None) for i, j in pairs])
    named = dict(zip(armid.Model(robot).names, values, strict=True))
    joints = range(1, robot.n_joints + 1)
    viscous, coulomb = (np.array([named.get(f"{name}{j}", 0.0) for j in joints]) for name in ("fv", "fc"))
    friction = viscous * motion.qd + coulomb * np.sign(motion.qd)
    return np.array(torque) + friction, np.array(tip), np.array(gaps)
