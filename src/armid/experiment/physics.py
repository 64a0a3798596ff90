"""Rigid-body dynamics of the virtual robot, by MuJoCo alone, and what its sensors say of them."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import lfilter

from armid.arrays import Array
from armid.errors import ArmidError, MissingExtraError
from armid.experiment import stepping
from armid.experiment.settings import Sensors, Thermal, per_joint
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
        self.bias = np.zeros(self.model.nv)

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

    def take_motors_off(self) -> Array:
        """Rotors turn with their carriers from now on; returns their inertia on the joint side, (joints,) [kg m^2]."""
        n = self.projection.shape[1]
        spin = self.projection.copy()
        spin[self.joint_dofs] = 0.0
        self.update()
        found = np.diagonal(self.reflected + spin.T @ self.mass @ spin).copy()
        self.projection[np.setdiff1d(np.arange(len(spin)), self.joint_dofs)] = 0.0
        self.reflected = np.zeros((n, n))
        return found

    def update(self) -> None:
        """Mass matrix `mass` and bias torque `bias` of all dofs at the data's qpos and qvel."""
        mujoco, model, data = self._mujoco, self.model, self.data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_makeM(model, data)
        mujoco.mj_fullM(model, data, self.mass)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, self.bias)

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


#: Functions that `Physics.update` calls, in its order, as compiled code calls them.
CALLED = (
    "mj_kinematics(const mjModel* m, mjData* d)",
    "mj_comPos(const mjModel* m, mjData* d)",
    "mj_makeM(const mjModel* m, mjData* d)",
    "mj_fullM(const mjModel* m, const mjData* d, mjtNum* dst)",
    "mj_comVel(const mjModel* m, mjData* d)",
    "mj_rne(const mjModel* m, mjData* d, int flg_acc, mjtNum* result)",
)


@cache
def mujoco_functions() -> tuple[int, ...]:
    """Addresses of the functions `CALLED`.

    Raises:
        ArmidError: this MuJoCo declares one of them otherwise, so that a call could do anything.
    """
    import mujoco

    declared = (Path(mujoco.HEADERS_DIR) / "mujoco.h").read_text("utf-8")
    for one in CALLED:
        if f"MJAPI void {one};" not in declared:
            name = one.partition("(")[0]
            raise ArmidError(f"MuJoCo {mujoco.__version__} has another {name} than armid calls; install mujoco 4.0")
    library = ctypes.CDLL("mujoco.dll" if os.name == "nt" else mujoco._functions.__file__)
    addresses = (ctypes.cast(getattr(library, one.partition("(")[0]), ctypes.c_void_p).value for one in CALLED)
    return tuple(address or 0 for address in addresses)


def _child(parent: Any, pose: Array, mujoco: Any) -> Any:
    """A body at `pose` in its parent, with a stand-in inertia."""
    body = parent.add_body()
    body.pos = pose[:3, 3]
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(pose[:3, :3]).ravel())
    body.quat = quaternion
    body.mass, body.inertia, body.explicitinertial = 1.0, [1.0, 1.0, 1.0], True
    return body


class Sensing:
    """Sensors of the virtual robot. They remember the last instants, for delays and coloured noise."""

    def __init__(
        self,
        robot: Robot,
        truth: Virtual,
        sensors: Sensors,
        thermal: Thermal | None,
        *,
        effort: str,
        cycle_s: float,
        step_s: float,
        seed: int,
        standing: Array,
    ) -> None:
        """Set up; `standing` is the record's row of the arm at rest, where it has been for a while."""
        n = robot.n_joints
        self._sensors, self._thermal, self._cycle, self._step = sensors, thermal, cycle_s, step_s
        self._rng = np.random.default_rng(seed)
        self._gains = _gains(robot, effort)
        given = truth.encoder_resolution if sensors.encoder_resolution is None else sensors.encoder_resolution
        self._resolution = float(given)
        self._delay = np.array(per_joint("effort_delay_s", sensors.effort_delay_s, n)) / step_s
        noise = tuple(truth.torque_noise) if sensors.torque_noise is None else sensors.torque_noise
        self._torque_noise = np.array(per_joint("torque_noise", noise, n))
        self._encoder_noise = np.array(per_joint("encoder_noise", sensors.encoder_noise, n))
        speed = 0.1 * self._resolution / cycle_s if sensors.velocity_noise is None else sensors.velocity_noise
        self._velocity_noise = np.array(per_joint("velocity_noise", speed, n))
        bound = np.inf if sensors.effort_range is None else sensors.effort_range
        self._range = np.array(per_joint("effort_range", bound, n))
        self._memory = np.zeros(n)
        rows = int(np.ceil(self._delay.max() + 2.0 * cycle_s / step_s)) + 2
        self._tail = np.repeat(standing[None], rows, axis=0)

    def snapshot(self, row: Array, time: float) -> dict[str, Array]:
        """What is reported at the instant `row`, at `time` [s]."""
        history = np.concatenate([self._tail, row[None]])
        return self._reported(history, np.array([len(self._tail)], dtype=float), np.array([time]))

    def readings(self, record: Array, after: Array, times: Array) -> dict[str, Array]:
        """What is reported at `times`, one cycle apart; rows of `record` are one step apart, from `times[0]` on.

        Lost samples are left out; `row` tells which are left. `after` is the instant following the record.
        """
        history = np.concatenate([self._tail, record, after[None]])
        stamps = times
        if self._sensors.jitter_s > 0.0:
            most = 0.45 * self._cycle
            stamps = times + np.clip(self._rng.normal(0.0, self._sensors.jitter_s, len(times)), -most, most)
        index = len(self._tail) + (stamps - times[0]) / self._step
        found = self._reported(history, index, stamps)
        self._tail = history[-1 - len(self._tail) : -1]
        kept = self._rng.random(len(times)) >= self._sensors.drop_probability
        found["row"] = np.arange(len(times), dtype=np.float64)
        return {name: values[kept] for name, values in found.items()}

    def _reported(self, history: Array, index: Array, stamps: Array) -> dict[str, Array]:
        rng, joints = self._rng, range(history.shape[2])
        q = _at(history[:, stepping.R_Q], index)
        q = q + self._encoder_noise * rng.normal(size=q.shape)
        if self._resolution > 0.0:
            q = np.round(q / self._resolution) * self._resolution
        v = _at(history[:, stepping.R_V], index)
        late = [_at(history[:, stepping.R_TAU, j : j + 1], index - self._delay[j]) for j in joints]
        effort = np.clip(np.hstack(late) + self._noise(len(index)), -self._range, self._range)
        temperature = np.full_like(q, np.nan)
        if self._thermal is not None:
            warmth = _at(history[:, stepping.R_WARMTH], index)
            temperature = np.round(self._thermal.ambient + self._thermal.rise * warmth, 1)
        return {
            "time": stamps,
            "position": q,
            "velocity": v + self._velocity_noise * rng.normal(size=v.shape),
            "effort": effort / self._gains,
            "temperature": temperature,
        }

    def _noise(self, count: int) -> Array:
        """Torque noise (count, joints), white or with a correlation time."""
        white = self._rng.normal(size=(count, len(self._memory)))
        if self._sensors.noise_time_constant_s <= 0.0:
            return self._torque_noise * white
        keep = float(np.exp(-self._cycle / self._sensors.noise_time_constant_s))
        coloured, _ = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0, zi=keep * self._memory[None])
        self._memory = coloured[-1]
        result: Array = self._torque_noise * coloured
        return result


def _gains(robot: Robot, effort: str) -> Array:
    """What joint torque is divided by to give the reported effort."""
    if effort == "joint torque":
        return np.ones(robot.n_joints)
    if effort != "current":
        raise ArmidError(f"effort is {effort!r}; the virtual robot reports 'joint torque' or 'current'")
    if robot.current_gain is None or any(len(p) != 2 or p[0] != 0.0 or p[1] == 0.0 for p in robot.current_gain):
        raise ArmidError(f"{robot.source}: drives.current_gain must be one number per joint to simulate currents")
    return np.array([polynomial[1] for polynomial in robot.current_gain])


def _at(history: Array, index: Array) -> Array:
    """Rows of `history` (rows, joints) at fractional indices, linear in between."""
    low = np.clip(np.floor(index + 1e-6).astype(np.int64), 0, len(history) - 1)
    high = np.minimum(low + 1, len(history) - 1)
    share = np.clip(index - low, 0.0, 1.0)[:, None]
    share[share < 1e-6] = 0.0
    return history[low] * (1.0 - share) + history[high] * share
