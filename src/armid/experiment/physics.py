"""Rigid-body dynamics of the virtual robot, by MuJoCo alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, MissingExtraError
from armid.robot.geometry import along, placement
from armid.robot.inertia import change_of_frame, to_com
from armid.robot.robot import Robot, Virtual

ROTOR_MASS = 1e-9  # [kg] MuJoCo wants one; a rotor's real mass is part of the link that carries it


class Physics:
    """Mass matrix and bias torque of links, rotors and payload.

    Each rotor that feels its carrier's rotation is a body of its own with the tensor diag(1/2, 1/2, 1) I_m, taken out
    of the link that carries it (links of a description are augmented by the rotors on them). MuJoCo sees joints and
    rotors as independent; the gear, q_rotor = k_r q (or the coupling matrix), is imposed exactly by projection: with
    the constant matrix T of (q, q_rotor) = T q, the mass matrix is T' M T and the bias torque T' h.

    Attributes:
        model, data: MuJoCo's.
        projection: T, (dofs, joints).
        reflected: inertia of rotors that do not feel their carrier, (joints, joints).
    """

    def __init__(self, robot: Robot, truth: Virtual, payload: Array | None) -> None:
        """Build the model from the truth; `payload` are ten parameters in the tool frame."""
        try:
            import mujoco
        except ImportError:
            raise MissingExtraError("the virtual robot", "sim") from None
        self._mujoco = mujoco
        n = robot.n_joints
        gear = np.diag([drive.gear_ratio for drive in robot.drives]) if robot.coupling is None else robot.coupling
        self.reflected = np.zeros((n, n))
        rotors: list[int] = []
        inertia = truth.inertia.copy()
        if robot.rotors:
            for index, drive in enumerate(robot.drives):
                value = float(truth.rotor_inertia[index])
                if value <= 0.0:
                    continue
                if drive.coupled:
                    rotors.append(index)
                else:
                    self.reflected += value * np.outer(gear[index], gear[index])
        if payload is not None:
            inertia[-1] += change_of_frame(robot.tool) @ payload
        self._build(robot, inertia, truth.rotor_inertia, rotors)
        self.projection = np.zeros((self.model.nv, n))
        self.projection[self._order] = np.vstack([np.eye(n), gear[rotors]])
        self.joint_dofs = np.array(self._order[:n], dtype=np.int64)
        self.mass = np.zeros((self.model.nv, self.model.nv))
        self.bias, self.weight = np.zeros(self.model.nv), np.zeros(self.model.nv)

    def _build(self, robot: Robot, inertia: Array, rotor_inertia: Array, rotors: list[int]) -> None:
        """Compile the tree with stand-in inertias, then write the true ones, which MuJoCo would round or refuse."""
        mujoco = self._mujoco
        spec = mujoco.MjSpec()
        spec.option.gravity = robot.gravity
        spec.option.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        kinds = mujoco.mjtJoint
        bodies, frames = [spec.worldbody], [np.eye(4)]
        for joint in robot.joints:
            pose = frames[joint.parent] @ joint.placement
            body = _child(bodies[joint.parent], pose, mujoco)
            body.add_joint(type=kinds.mjJNT_SLIDE if joint.prismatic else kinds.mjJNT_HINGE, axis=[0.0, 0.0, 1.0])
            bodies.append(body)
            frames.append(joint.link_frame)
        pairs = zip(inertia, robot.joints, strict=True)
        parameters = [change_of_frame(joint.link_frame) @ values for values, joint in pairs]
        spins = []
        for index in rotors:
            drive, value = robot.drives[index], float(rotor_inertia[index])
            axis = frames[drive.carrier][:3, :3] @ drive.axis
            where = np.zeros(3) if drive.carrier == 0 else to_com(parameters[drive.carrier - 1])[1]
            pose = placement(along(axis), where)
            body = _child(bodies[drive.carrier], pose, mujoco)
            body.add_joint(type=kinds.mjJNT_HINGE, axis=[0.0, 0.0, 1.0])
            rotor = np.array([ROTOR_MASS, 0.0, 0.0, 0.0, 0.5 * value, 0.0, 0.5 * value, 0.0, 0.0, value])
            spins.append((body, rotor))
            if drive.carrier > 0:
                parameters[drive.carrier - 1] -= change_of_frame(pose) @ rotor
        for number, body in enumerate(bodies[1:]):
            body.name = f"link{number + 1}"
        for number, (body, _) in enumerate(spins):
            body.name = f"rotor{number + 1}"
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        names = [f"link{i + 1}" for i in range(robot.n_joints)] + [f"rotor{i + 1}" for i in range(len(spins))]
        self._order = [int(self.model.body(name).dofadr[0]) for name in names]
        for number, values in enumerate(parameters):
            self._set_inertia(f"link{number + 1}", values)
        for number, (_, values) in enumerate(spins):
            self._set_inertia(f"rotor{number + 1}", values)
        mujoco.mj_setConst(self.model, self.data)

    def _set_inertia(self, name: str, values: Array) -> None:
        body = self.model.body(name).id
        if not values[0] > 0.0:
            raise ArmidError(f"{name} of the virtual robot has the mass {values[0]:g} kg; it must be above zero")
        mass, com, tensor = to_com(values)
        moments, axes = np.linalg.eigh(tensor)
        if np.linalg.det(axes) < 0.0:
            axes[:, 0] *= -1.0
        self.model.body_mass[body] = mass
        self.model.body_ipos[body] = com
        self.model.body_inertia[body] = moments
        self._mujoco.mju_mat2Quat(self.model.body_iquat[body], np.ascontiguousarray(axes).ravel())

    def update(self) -> None:
        """Mass matrix `mass` and bias torque `bias` of all dofs at the data's qpos and qvel."""
        mujoco, model, data = self._mujoco, self.model, self.data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_makeM(model, data)
        mujoco.mj_fullM(model, data, self.mass)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, self.bias)

    def update_weight(self) -> None:
        """Torque `weight` of all dofs that holds the arm at rest, at the position of the last `update`."""
        velocity = self.data.qvel.copy()
        self.data.qvel[:] = 0.0
        self._mujoco.mj_comVel(self.model, self.data)
        self._mujoco.mj_rne(self.model, self.data, 0, self.weight)
        self.data.qvel[:] = velocity

    def place(self, q: Array, v: Array) -> None:
        """Set joint positions and velocities, rotors with them; a rotor's angle does not matter."""
        self.data.qpos[self.joint_dofs] = q
        self.data.qvel[:] = self.projection @ v

    def joint_space(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Mass matrix (joints, joints) and bias torque (joints,) with the gears imposed."""
        self.place(q, v)
        self.update()
        t = self.projection
        return t.T @ self.mass @ t + self.reflected, t.T @ self.bias

    def energy(self, q: Array, v: Array) -> float:
        """Kinetic and potential energy of links, rotors and payload [J], as MuJoCo adds them up."""
        self.place(q, v)
        self._mujoco.mj_fwdPosition(self.model, self.data)
        self._mujoco.mj_energyPos(self.model, self.data)
        self._mujoco.mj_energyVel(self.model, self.data)
        return float(self.data.energy.sum() + 0.5 * v @ self.reflected @ v)


def _child(parent: Any, pose: Array, mujoco: Any) -> Any:
    """A body at `pose` in its parent, with a stand-in inertia."""
    body = parent.add_body()
    body.pos = pose[:3, 3]
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(pose[:3, :3]).ravel())
    body.quat = quaternion
    body.mass, body.inertia, body.explicitinertial = 1.0, [1.0, 1.0, 1.0], True
    return body
