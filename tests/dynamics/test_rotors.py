"""Rotor coupling against MuJoCo with explicit rotor bodies."""

import mujoco
import numpy as np
import pytest

import armid
from armid.dynamics.base import random_motion
from armid.robot.geometry import along, placement
from armid.robot.inertia import change_of_frame, from_com, to_com
from armid.robot.robot import Drive, Joint, Robot
from tests.dynamics.arms import random_body, random_placement

ROTOR_MASS = 0.7


def arm(seed, joints):
    """A tree with revolute and prismatic joints whose rotors sit on the base, on parents, or elsewhere."""
    rng = np.random.default_rng(seed)
    described, drives = [], []
    for i in range(joints):
        parent = int(rng.integers(max(0, i - 1), i + 1))
        slides = bool(rng.random() < 0.25)
        described.append(Joint(f"j{i}", f"l{i}", parent, slides, random_placement(rng), random_placement(rng)))
        carrier = parent if rng.random() < 0.6 else int(rng.integers(0, joints + 1))
        axis = rng.normal(size=3)
        drives.append(Drive(float(rng.uniform(2, 40)), None, carrier, axis / np.linalg.norm(axis), True))
    robot = Robot(
        name="geared", source="test", joints=tuple(described), drives=tuple(drives), gravity=rng.normal(scale=5, size=3)
    )
    bodies = np.array([random_body(rng) for _ in range(joints)])
    return robot, bodies, rng.uniform(1e-3, 1e-2, joints), rng.uniform(-0.2, 0.2, (joints, 3))


def mjcf(robot, bodies, rotors, places):
    """The arm with every rotor a body of its own, hinged to its carrier."""
    numbers = lambda values: " ".join(repr(float(v)) for v in values)  # noqa: E731

    def inertial(phi):
        mass, com, tensor = to_com(phi)
        full = (tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2])
        return f'<inertial mass="{mass!r}" pos="{numbers(com)}" fullinertia="{numbers(full)}"/>'

    def quaternion(matrix):
        result = np.empty(4)
        mujoco.mju_mat2Quat(result, matrix[:3, :3].ravel())
        return numbers(result)

    def rotor(i):
        turn = placement(along(robot.drives[i].axis), places[i])
        phi = from_com(ROTOR_MASS, [0, 0, 0], rotors[i] * np.diag([0.5, 0.5, 1.0]))
        pose = f'pos="{numbers(turn[:3, 3])}" quat="{quaternion(turn)}"'
        return f'<body {pose}><joint name="r{i}" axis="0 0 1"/>{inertial(phi)}</body>'

    def body(i):
        joint = robot.joints[i]
        pose = joint.placement @ joint.link_frame
        pivot = np.linalg.inv(joint.link_frame)
        kind = "slide" if joint.prismatic else "hinge"
        inner = f'<joint name="j{i}" type="{kind}" pos="{numbers(pivot[:3, 3])}" axis="{numbers(pivot[:3, 2])}"/>'
        inner += inertial(bodies[i])
        inner += "".join(rotor(k) for k, drive in enumerate(robot.drives) if drive.carrier == i + 1)
        inner += "".join(body(k) for k, child in enumerate(robot.joints) if child.parent == i + 1)
        return f'<body pos="{numbers(pose[:3, 3])}" quat="{quaternion(pose)}">{inner}</body>'

    inner = "".join(body(k) for k, child in enumerate(robot.joints) if child.parent == 0)
    inner += "".join(rotor(k) for k, drive in enumerate(robot.drives) if drive.carrier == 0)
    option = f'<option gravity="{numbers(robot.gravity)}"><flag contact="disable"/></option>'
    return f'<mujoco><compiler angle="radian"/>{option}<worldbody>{inner}</worldbody></mujoco>'


def explicit_torque(robot, bodies, rotors, places, motion):
    """Torque of the extended system, projected by q_rotor = k q."""
    model = mujoco.MjModel.from_xml_string(mjcf(robot, bodies, rotors, places))
    data = mujoco.MjData(model)
    n = robot.n_joints
    expand = np.zeros((model.nv, n))
    for i, drive in enumerate(robot.drives):
        expand[model.jnt_dofadr[model.joint(f"j{i}").id], i] = 1.0
        expand[model.jnt_dofadr[model.joint(f"r{i}").id], i] = drive.gear_ratio
    torque = []
    for q, qd, qdd in zip(*motion, strict=True):
        data.qpos[:], data.qvel[:], data.qacc[:] = expand @ q, expand @ qd, expand @ qdd
        mujoco.mj_inverse(model, data)
        torque.append(expand.T @ data.qfrc_inverse)
    return np.array(torque)


@pytest.mark.parametrize("seed", range(12))
def test_rotor_coupling_equals_explicit_rotor_bodies(seed):
    """Augmented links plus k qd Im z.w and k^2 Im are the dynamics of real rotors, wherever they sit."""
    robot, bodies, rotors, places = arm(seed, joints=2 + seed % 5)
    motion = random_motion(robot, 20, np.random.default_rng(seed))
    expected = explicit_torque(robot, bodies, rotors, places, motion)
    augmented = bodies.copy()
    for i, drive in enumerate(robot.drives):
        if drive.carrier > 0:
            turn = placement(along(drive.axis), places[i])
            body = from_com(ROTOR_MASS, [0, 0, 0], rotors[i] * np.diag([0.5, 0.5, 1.0]))
            augmented[drive.carrier - 1] += change_of_frame(turn) @ body
    model = armid.Model(robot)
    values = np.concatenate([augmented.ravel(), rotors])
    found = model.inverse_dynamics(*motion, values)
    assert np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()
    assert np.abs(model.regressor(*motion) @ values - expected).max() <= 1e-9 * np.abs(expected).max()
    accelerated = model.inverse_dynamics(motion.q, motion.qd, motion.qdd + 1.0, values) - found
    by_mass = model.mass_matrix(motion.q, values).sum(axis=2)
    assert np.abs(accelerated - by_mass).max() <= 1e-9 * np.abs(expected).max()
    without = model.inverse_dynamics(*motion, np.concatenate([augmented.ravel(), 0 * rotors]))
    assert np.abs(without - expected).max() > 1e-4 * np.abs(expected).max()
