"""The `drives` section of a robot file: gears, rotors, couplings, current gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armid.arrays import Array
from armid.robot.robot import Drive, Robot
from armid.robot.schema import Fields


def with_drives(parent: Fields, robot: Robot) -> Robot:
    """The robot with its drives; without a section every rotor is a reflected inertia."""
    n = robot.n_joints
    given = "drives" in parent
    fields = parent.section("drives")
    ratios = fields.numbers_per_joint("gear_ratio", n, 1.0)
    if not ratios.all():
        fields.fail("gear_ratio", f"is 0 for joint {int(np.argmin(np.abs(ratios))) + 1}")
    inertias = fields.per_joint("rotor_inertia", n, lambda key, v: _rotor_inertia(fields, key, v), "unknown")
    carriers = [fields.checked_integer(f"carrier[{i + 1}]", c) for i, c in enumerate(fields.items("carrier"))]
    carriers = carriers or [joint.parent for joint in robot.joints]
    axes = [fields.checked_vector(f"axis[{i + 1}]", axis, 3) for i, axis in enumerate(fields.items("axis"))]
    axes = axes or [_default_axis(robot, index, carrier) for index, carrier in enumerate(carriers)]
    coupled = fields.per_joint("coupled", n, fields.checked_flag, given)
    for key, values in (("carrier", carriers), ("axis", axes)):
        if len(values) != n:
            fields.fail(key, f"has {len(values)} entries for {n} joints")
    for index, carrier in enumerate(carriers):
        if not 0 <= carrier <= n:
            fields.fail(f"carrier[{index + 1}]", f"is {carrier}; links are numbered 0 (base) to {n}")
        if np.linalg.norm(axes[index]) < 1e-9:
            fields.fail(f"axis[{index + 1}]", "has zero length; give the rotor's direction in the carrier's frame")
    coupling = _coupling(fields, n)
    gain = (
        fields.per_joint("current_gain", n, lambda key, v: _polynomial(fields, key, v))
        if "current_gain" in fields
        else None
    )
    fields.finish()
    drives = tuple(
        Drive(float(ratio), inertia, carrier, axis / np.linalg.norm(axis), couples)
        for ratio, inertia, carrier, axis, couples in zip(ratios, inertias, carriers, axes, coupled, strict=True)
    )
    return replace(robot, drives=drives, coupling=coupling, current_gain=None if gain is None else tuple(gain))


def reflected_drives(robot: Robot) -> tuple[Drive, ...]:
    """Drives of a bare URDF or MJCF: unknown reflected inertias on the joint side, without coupling."""
    axes = [_default_axis(robot, index, joint.parent) for index, joint in enumerate(robot.joints)]
    return tuple(Drive(1.0, None, joint.parent, axis, False) for joint, axis in zip(robot.joints, axes, strict=True))


def _default_axis(robot: Robot, index: int, carrier: int) -> Array:
    """The joint's axis at zero position in the carrier's frame (exact when the carrier is the joint's parent)."""
    joint = robot.joints[index]
    if carrier == joint.parent:
        return joint.placement[:3, 2].copy()
    frames = [np.eye(4)]
    for other in robot.joints:
        frames.append(frames[other.parent] @ other.placement @ other.link_frame)
    axis = (frames[joint.parent] @ joint.placement)[:3, 2]
    return frames[min(carrier, robot.n_joints)][:3, :3].T @ axis


def _rotor_inertia(fields: Fields, key: str, value: object) -> float | None:
    if value == "unknown":
        return None
    inertia = fields.checked_number(key, value)
    if inertia < 0.0:
        fields.fail(key, f"is negative ({inertia:g}); write `unknown` if it is to be estimated")
    return inertia


def _polynomial(fields: Fields, key: str, value: object) -> tuple[float, ...]:
    """A gain, or a polynomial with the lowest power first."""
    if isinstance(value, list):
        if not value:
            fields.fail(key, "is an empty polynomial; give a gain or coefficients, lowest power first")
        return tuple(fields.checked_number(key, item) for item in value)
    return 0.0, fields.checked_number(key, value)


def _coupling(fields: Fields, n: int) -> Array | None:
    rows = fields.items("coupling_matrix")
    if not rows:
        return None
    if len(rows) != n:
        fields.fail("coupling_matrix", f"has {len(rows)} rows for {n} joints")
    matrix = np.array([fields.checked_vector(f"coupling_matrix[{i + 1}]", row, n) for i, row in enumerate(rows)])
    if np.any(np.diag(matrix) == 0.0) or np.linalg.cond(matrix) > 1e12:
        fields.fail("coupling_matrix", "is singular or has a zero on its diagonal; every motor must move its own joint")
    return matrix
