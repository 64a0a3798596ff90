"""The ground truth of a simulated arm."""

from __future__ import annotations

import numpy as np

from armid.errors import ArmidError
from armid.robot.friction import Friction
from armid.robot.robot import Robot, Virtual


def truth_of(robot: Robot) -> Virtual:
    """A description's `virtual` section, or the inertias and friction that its URDF or MJCF file states."""
    if robot.virtual is not None:
        return robot.virtual
    if robot.nominal_inertia is None:
        raise ArmidError(
            f"{robot.source}: virtual: is missing, so this arm cannot be simulated; "
            "describe its true links, friction and noise there, or start from a URDF with inertias"
        )
    n = robot.n_joints
    friction = np.zeros((n, 2)) if robot.nominal_friction is None else robot.nominal_friction
    reflected = np.zeros(n) if robot.nominal_rotors is None else robot.nominal_rotors
    ratios = np.array([drive.gear_ratio for drive in robot.drives])
    return Virtual(
        inertia=robot.nominal_inertia,
        rotor_inertia=reflected / ratios**2,
        friction=tuple(Friction("coulomb-viscous") for _ in range(n)),
        coefficients=tuple({"fv": float(fv), "fc": float(fc)} for fv, fc in friction),
        springs=tuple((0.0, 1.0) for _ in robot.springs),
        load_loss=np.zeros((n, 2)),
        torque_noise=np.zeros(n),
        encoder_resolution=0.0,
        payload=None,
        note="from the nominal inertias of the description",
    )
