"""Proof of an MJCF file: MuJoCo's inverse dynamics, with friction as MuJoCo itself applies it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.exporting.arm import Arm
from armid.exporting.proof import TOLERANCE, Proof, checked

SLIDING = 1e-9  # share of frictionloss by which a sliding joint's friction may differ from it


def prove_mjcf(path: Path, arm: Arm, motion: Motion, wanted: Array, terms: Mapping[str, Array]) -> Proof:
    """Inverse dynamics of the written file.

    `frictionloss` is a soft constraint: MuJoCo's friction equals it while a joint slides, and is less where the joint
    is slow enough to count as sticking. Torque is compared twice: with friction written out, on all states; and as
    `mj_inverse` gives it, constraints included, on the states where every frictional joint slides.
    """
    try:
        import mujoco
    except ImportError:
        note = "not proved: install MuJoCo (pip install 'armid[sim]') and export again"
        return Proof(path.name, None, None, 0, TOLERANCE, note)
    model = mujoco.MjModel.from_xml_path(str(path))
    smooth, loss = _inverse(mujoco, model, arm, motion, constraints=False)
    pairs = {"torque": (smooth + loss, wanted)}
    whole, found = _inverse(mujoco, model, arm, motion, constraints=True)
    size = np.maximum(np.abs(loss).max(axis=0), 1e-12)
    sliding = (np.abs(found - loss) <= SLIDING * size).all(axis=1)
    note = "links, armature, damping, tendons, frictionloss"
    if sliding.any():
        # Ranges are those of all states, so that few sliding ones do not make the test milder or harder.
        whole[~sliding], good = wanted[~sliding], int(sliding.sum())
        pairs["torque of mj_inverse"] = (whole, wanted)
        note += f"; mj_inverse with its own friction on the {good} of {len(sliding)} states where all joints slide"
    sizes = dict.fromkeys(pairs, terms["torque"])
    return checked(path, f"MuJoCo {mujoco.__version__}", pairs, TOLERANCE, note, sizes)


def _inverse(mujoco: Any, model: Any, arm: Arm, motion: Motion, *, constraints: bool) -> tuple[Array, Array]:
    """Torque by mj_inverse and friction (samples, joints): MuJoCo's own, or frictionloss times direction."""
    flags = mujoco.mjtDisableBit
    model.opt.disableflags = flags.mjDSBL_LIMIT if constraints else flags.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    dofs = [int(model.joint(name).dofadr[0]) for name in arm.robot.joint_names]
    places = [int(model.joint(name).qposadr[0]) for name in arm.robot.joint_names]
    torque, friction = np.empty_like(motion.q), np.empty_like(motion.q)
    tendons: Any = np.flatnonzero(model.tendon_frictionloss) if model.ntendon else []
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(model, data)
        torque[row] = data.qfrc_inverse[dofs]
        if constraints:
            friction[row] = -data.qfrc_constraint[dofs]
            continue
        full = model.dof_frictionloss * np.sign(data.qvel)
        for tendon in tendons:
            weight = _weight(mujoco, model, int(tendon))
            full = full + model.tendon_frictionloss[tendon] * weight * np.sign(weight @ data.qvel)
        friction[row] = full[dofs]
    return torque, friction


def _weight(mujoco: Any, model: Any, tendon: int) -> Array:
    """Direction of a fixed tendon in joint space."""
    result = np.zeros(model.nv)
    first = int(model.tendon_adr[tendon])
    for wrap in range(first, first + int(model.tendon_num[tendon])):
        result[model.jnt_dofadr[model.wrap_objid[wrap]]] = model.wrap_prm[wrap]
    return result
