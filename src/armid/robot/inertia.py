"""Inertial parameters of a rigid body: ten numbers, their frames, and whether a body can have them."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array

#: Order of the ten inertial parameters of a link, in its frame and about its origin. Products are tensor elements.
INERTIAL_NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
INERTIAL_UNITS = ("kg",) + ("kg m",) * 3 + ("kg m^2",) * 6

# Tensor element -> position in the vector.
_TENSOR = np.array([[4, 5, 7], [5, 6, 8], [7, 8, 9]])


def from_com(mass: float, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Ten parameters from mass [kg], centre of mass [m] and inertia tensor about it [kg m^2]."""
    c = np.asarray(com, dtype=float)
    about_origin = np.asarray(inertia, dtype=float) + mass * (c @ c * np.eye(3) - np.outer(c, c))
    return from_tensor(mass, mass * c, about_origin)


def from_tensor(mass: float, first_moment: ArrayLike, tensor: ArrayLike) -> Array:
    """Ten parameters from mass, first moment [kg m] and inertia tensor about the frame's origin [kg m^2]."""
    phi = np.empty(10)
    phi[0] = mass
    phi[1:4] = first_moment
    phi[_TENSOR] = np.asarray(tensor, dtype=float)
    return phi


def tensor(phi: ArrayLike) -> Array:
    """Inertia tensor (3, 3) about the frame's origin."""
    result: Array = np.asarray(phi, dtype=float)[_TENSOR]
    return result


def to_com(phi: ArrayLike) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia tensor about it. A massless body has its centre at the origin."""
    phi = np.asarray(phi, dtype=float)
    mass = float(phi[0])
    com = phi[1:4] / mass if mass != 0.0 else np.zeros(3)
    return mass, com, tensor(phi) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def pseudo_inertia(phi: ArrayLike) -> Array:
    """Symmetric (4, 4) matrix of second moments, first moments and mass; positive definite for a real body."""
    phi = np.asarray(phi, dtype=float)
    about = tensor(phi)
    result = np.empty((4, 4))
    result[:3, :3] = 0.5 * np.trace(about) * np.eye(3) - about
    result[:3, 3] = result[3, :3] = phi[1:4]
    result[3, 3] = phi[0]
    return result


def from_pseudo_inertia(matrix: Array) -> Array:
    """Inverse of `pseudo_inertia`."""
    second = matrix[:3, :3]
    return from_tensor(float(matrix[3, 3]), matrix[:3, 3], np.trace(second) * np.eye(3) - second)


def change_of_frame(placement: Array) -> Array:
    """Matrix (10, 10) from parameters in frame B to parameters in frame A; `placement` (4, 4) is B seen from A."""
    return _change_of_frame(np.asarray(placement, dtype=float).tobytes()).copy()


@lru_cache(maxsize=256)
def _change_of_frame(data: bytes) -> Array:
    placement = np.frombuffer(data).reshape(4, 4)
    columns = [from_pseudo_inertia(placement @ pseudo_inertia(unit) @ placement.T) for unit in np.eye(10)]
    return np.column_stack(columns)


def impossibility(phi: ArrayLike, tolerance: float = 1e-6) -> str | None:
    """Why no body can have these parameters, in words; None if one can.

    A violation counts when it exceeds `tolerance` relative to the size of the inertia about the centre of mass, and
    what rounding of that about the origin may do: a point mass can exist.
    """
    phi = np.asarray(phi, dtype=float)
    if phi[0] < 0.0:
        return f"its mass is negative ({phi[0]:.4g} kg)"
    if phi[0] == 0.0:
        return "it has inertia but no mass" if np.any(phi != 0.0) else None
    about = to_com(phi)[2]
    if not np.isfinite(about).all():
        return f"its mass of {phi[0]:.2g} kg is out of all proportion to its moments"
    moments = np.linalg.eigvalsh(about)
    slack = tolerance * max(np.abs(moments).max(), 1e-12) + 1e-12 * np.abs(phi[4:]).max()
    if moments[0] < -slack:
        return f"a principal moment of inertia about its centre of mass is negative ({moments[0]:.4g} kg m^2)"
    if moments[0] + moments[1] < moments[2] - slack:
        first, second, third = (f"{value:.4g}" for value in moments)
        return f"its principal moments of inertia break the triangle inequality ({first} + {second} < {third} kg m^2)"
    return None
