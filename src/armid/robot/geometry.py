"""Rigid placements as (4, 4) matrices, exact at right angles."""

import math

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array

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
    return (np.eye(3) + skew + skew @ skew / (1.0 + third @ unit)) @ cyclic
