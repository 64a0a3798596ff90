"""Rigid placements as (4, 4) matrices, exact at right angles, and Denavit-Hartenberg tables."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.robot.robot import Joint, Length

_SNAP = 1e-15


def cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle [rad], exactly 0 or 1 where the angle is a right angle to double precision."""
    values = math.cos(angle), math.sin(angle)
    c, s = (round(v) if abs(v - round(v)) < _SNAP else v for v in values)
    return float(c), float(s)


def placement(rotation: ArrayLike | None = None, translation: ArrayLike | None = None) -> Array:
    """Compose a (4, 4) placement from a (3, 3) rotation and a translation [m]."""
    result = np.eye(4)
    if rotation is not None:
        result[:3, :3] = rotation
    if translation is not None:
        result[:3, 3] = translation
    return result


def inverse(matrix: Array) -> Array:
    """Inverse of a placement."""
    rotation = matrix[:3, :3].T
    return placement(rotation, -rotation @ matrix[:3, 3])


def about_x(angle: float) -> Array:
    """Rotation (3, 3) about x."""
    c, s = cos_sin(angle)
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def about_y(angle: float) -> Array:
    """Rotation (3, 3) about y."""
    c, s = cos_sin(angle)
    return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])


def about_z(angle: float) -> Array:
    """Rotation (3, 3) about z."""
    c, s = cos_sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def from_rpy(rpy: ArrayLike) -> Array:
    """Rotation (3, 3) of fixed-axis roll, pitch, yaw [rad], as in URDF: Rz(yaw) Ry(pitch) Rx(roll)."""
    roll, pitch, yaw = (float(angle) for angle in np.asarray(rpy, dtype=float))
    return about_z(yaw) @ about_y(pitch) @ about_x(roll)


def along(axis: ArrayLike) -> Array:
    """A rotation (3, 3) whose third column is the unit vector of `axis`; a signed permutation for x, y, z."""
    unit = np.asarray(axis, dtype=float)
    unit = unit / np.linalg.norm(unit)
    main = int(np.argmax(np.abs(unit)))
    cyclic = np.roll(np.eye(3), main - 2, axis=0)
    if unit[main] < 0.0:
        cyclic = cyclic @ np.diag([1.0, -1.0, -1.0])
    third = cyclic[:, 2]
    # Smallest rotation from the coordinate axis to `unit` (Rodrigues); the angle is at most 54.8 degrees.
    v = np.cross(third, unit)
    skew = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    result: Array = (np.eye(3) + skew + skew @ skew / (1.0 + third @ unit)) @ cyclic
    return result


class DHRow(NamedTuple):
    """One row: alpha, a, d, theta of the convention; `theta` is the offset of a revolute joint.

    For a prismatic joint `theta` is the constant angle and the displacement is added to `d`.
    """

    alpha: float
    a: float
    d: float
    theta: float
    prismatic: bool = False


def dh_joints(
    rows: Sequence[DHRow], *, modified: bool, parents: Sequence[int], names: Sequence[str]
) -> tuple[tuple[Joint, ...], tuple[Length, ...]]:
    """Joints and named lengths of a DH table.

    Modified: frame i in frame i-1 is Rx(alpha) Tx(a) Rz(theta + q) Tz(d) (PA-10 (1)); link and joint frame coincide.
    Standard: Rz(theta + q) Tz(d) Tx(a) Rx(alpha) (Powerball (1)); the link frame sits at the far end of the link.
    """
    joints, lengths = [], []
    for index, (row, parent, name) in enumerate(zip(rows, parents, names, strict=True)):
        c, s = cos_sin(row.alpha)
        near, far = np.eye(4), np.eye(4)
        if modified:
            directions = {"a": np.array([1.0, 0.0, 0.0]), "d": np.array([0.0, -s, c])}
            near = placement(about_x(row.alpha) @ about_z(row.theta), row.a * directions["a"] + row.d * directions["d"])
        else:
            ct, st = cos_sin(row.theta)
            directions = {"a": np.array([ct, st, 0.0]), "d": np.array([0.0, 0.0, 1.0])}
            far = placement(about_z(row.theta) @ about_x(row.alpha), row.a * directions["a"] + row.d * directions["d"])
        joints.append(Joint(name, f"link{index + 1}", parent, row.prismatic, near, far))
        numbers = {"a": index if modified else index + 1, "d": index + 1}
        for letter, value in (("a", row.a), ("d", row.d)):
            if value != 0.0:
                constant = f"{letter}{numbers[letter]}"
                lengths.append(Length(constant, value, index, not modified, directions[letter]))
    return tuple(joints), tuple(lengths)
