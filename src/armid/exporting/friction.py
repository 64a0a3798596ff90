"""Viscous and Coulomb friction that stand for a joint's whole friction curve, for formats that hold no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.exporting.arm import Arm, random_states

STATES = 2000


@dataclass(frozen=True, eq=False)
class LinearFriction:
    """What `<dynamics>` of a URDF and a joint of an MJCF can say.

    Attributes:
        damping: (joints,) [N m s/rad].
        coulomb: (joints,) [N m].
        curved: (joints,) whether the joint has more friction than these two, which are then the nearest ones.
    """

    damping: Array
    coulomb: Array
    curved: Array

    def torque(self, qd: Array) -> Array:
        """Friction torque (samples, joints)."""
        return self.damping * qd + self.coulomb * np.sign(qd)


def linear_friction(arm: Arm, seed: int = 0) -> LinearFriction:
    """Non-negative viscous and Coulomb friction of each joint.

    Where the fit's friction is just that, its own values; elsewhere the least-squares fit to the part of its curve that
    changes sign with the velocity, over the joint's whole range of speeds and random loads.
    """
    motion = random_states(arm.robot, STATES, seed)
    forwards = arm.friction(motion)
    backwards = arm.friction(Motion(motion.q, -motion.qd, motion.qdd))
    odd = 0.5 * (forwards - backwards) * np.sign(motion.qd)
    joints = arm.robot.n_joints
    damping, coulomb = np.zeros((2, joints))
    curved = np.array([arm.has_curve(joint) for joint in range(joints)])
    for joint in range(joints):
        stated = [_stated(arm, joint, name) for name in ("fv", "fc")]
        curved[joint] |= min(stated) < 0.0
        if not curved[joint]:
            damping[joint], coulomb[joint] = stated
        else:
            damping[joint], coulomb[joint] = _nearest(np.abs(motion.qd[:, joint]), odd[:, joint])
    return LinearFriction(damping, coulomb, curved)


def _stated(arm: Arm, joint: int, name: str) -> float:
    """A joint's own coefficient and that of friction known beforehand."""
    known = None if arm.fit.known_torque is None else arm.fit.known_torque.friction[joint]
    extra = 0.0 if known is None else float(known[1].get(name, 0.0))
    return arm.by_name.get(f"{name}{joint + 1}", 0.0) + extra


def _nearest(speed: Array, torque: Array) -> tuple[float, float]:
    """Least squares under non-negativity, two unknowns: the free solution, else the better of the two edges."""
    columns = np.column_stack([speed, np.ones_like(speed)])
    free = np.linalg.lstsq(columns, torque, rcond=None)[0]
    if free.min() >= 0.0:
        return float(free[0]), float(free[1])
    slope = max(float(speed @ torque / (speed @ speed)), 0.0)
    level = max(float(torque.mean()), 0.0)
    by_slope, by_level = np.sum((torque - slope * speed) ** 2), np.sum((torque - level) ** 2)
    return (slope, 0.0) if by_slope <= by_level else (0.0, level)
