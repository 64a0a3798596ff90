"""What is known of an arm before it is measured: parameter values to foresee torques with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.errors import ArmidError
from armid.robot.friction import Friction
from armid.robot.robot import inertial_names


def prior_values(model: Model) -> Array:
    """Parameter values to foresee torques with: the virtual arm's, else what a URDF or MJCF file states.

    Nonlinear friction enters through its Coulomb and viscous parts, taken between a tenth of and the full speed.
    """
    robot = model.robot
    values: dict[str, float] = {}
    if robot.virtual is not None and len(robot.virtual.inertia) == robot.n_joints:
        inertia = robot.virtual.inertia
        values |= {f"Im{i + 1}": v for i, v in enumerate(robot.virtual.rotor_inertia) if robot.rotors}
        for i, (law, coefficients) in enumerate(zip(robot.virtual.friction, robot.virtual.coefficients, strict=True)):
            values |= _linear_friction(i + 1, law, coefficients, robot.limits.velocity[i])
        for i, (k, l0) in enumerate(robot.virtual.springs, start=1):
            values |= {f"ks{i}": k, f"kl{i}": k * l0}
    elif robot.nominal_inertia is not None:
        inertia = robot.nominal_inertia
        if robot.nominal_friction is not None:
            for i, (viscous, coulomb) in enumerate(robot.nominal_friction, start=1):
                values |= {f"fv{i}": float(viscous), f"fc{i}": float(coulomb)}
        if robot.nominal_rotors is not None:
            reflected = zip(robot.nominal_rotors, robot.drives, strict=True)
            values |= {f"Im{i}": float(v) / drive.gear_ratio**2 for i, (v, drive) in enumerate(reflected, start=1)}
    else:
        raise ArmidError(
            f"{robot.source}: torques cannot be foreseen; the description has no virtual or nominal inertia"
        )
    for link, phi in enumerate(inertia, start=1):
        values |= dict(zip(inertial_names(link), phi.tolist(), strict=True))
    return model.vector({name: value for name, value in values.items() if name in model.names})


def _linear_friction(joint: int, law: Friction, coefficients: Mapping[str, float], fastest: float) -> dict[str, float]:
    """Viscous and Coulomb friction that come near a law, for both directions together (the greater) and for each."""
    offset = coefficients["fo"] if law.offset else 0.0
    speeds = np.array([0.1, 1.0]) * np.nan_to_num(fastest, nan=1.0)
    parts = {}
    for direction, sign in (("p", 1.0), ("n", -1.0)):
        slow, fast = sign * (law.torque(sign * speeds, coefficients) - offset)
        slope = float((fast - slow) / (speeds[1] - speeds[0]))
        parts[direction] = (slope, float(slow - slope * speeds[0]))
    both = max(parts.values(), key=lambda part: part[1] + part[0] * speeds[1])
    result = {f"fo{joint}": offset}
    for suffix, (viscous, coulomb) in {"": both, **parts}.items():
        result |= {f"fv{joint}{suffix}": viscous, f"fc{joint}{suffix}": coulomb}
    return result
