"""A Fourier trajectory as the vector of numbers that an optimiser changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion


@dataclass(frozen=True, eq=False)
class FourierVariables:
    """Offset and coefficients of each moving joint, in velocity form (Powerball (18)-(20)), joint after joint.

    q_j = x_0 + sum_k x_k sin(k w t) / (k w) - x_(H+k) cos(k w t) / (k w); joints that do not move keep their posture.

    Attributes:
        base_frequency_hz: of the fundamental.
        harmonics: multiples of it that are used.
        moving: indices of the joints that move.
        posture: (n,) position of the joints that do not.
    """

    base_frequency_hz: float
    harmonics: tuple[int, ...]
    moving: tuple[int, ...]
    posture: Array

    @property
    def per_joint(self) -> int:
        """Variables per moving joint."""
        return 2 * len(self.harmonics) + 1

    @property
    def count(self) -> int:
        """Number of variables."""
        return self.per_joint * len(self.moving)

    def bases(self, times: Array) -> tuple[Array, Array, Array]:
        """Matrices (samples, per_joint) that give position, velocity and acceleration of a joint."""
        w = 2.0 * np.pi * self.base_frequency_hz * np.array(self.harmonics, dtype=float)
        s, c = np.sin(np.outer(times, w)), np.cos(np.outer(times, w))
        one, zero = np.ones((len(times), 1)), np.zeros((len(times), 1))
        return (
            np.hstack([one, s / w, -c / w]),
            np.hstack([zero, c, s]),
            np.hstack([zero, -s * w, c * w]),
        )

    def motion(self, x: Array, bases: tuple[Array, Array, Array]) -> Motion:
        """Positions, velocities and accelerations (samples, joints)."""
        coefficients = x.reshape(len(self.moving), self.per_joint).T
        arrays = []
        for derivative, basis in enumerate(bases):
            array = np.zeros((len(basis), len(self.posture)))
            if derivative == 0:
                array[:] = self.posture
            array[:, self.moving] = basis @ coefficients
            arrays.append(array)
        return Motion(*arrays)

    def pull_back(self, bar: Motion, bases: tuple[Array, Array, Array]) -> Array:
        """Derivative with respect to the variables from the derivative with respect to the motion."""
        parts = zip(bar, bases, strict=True)
        return np.asarray(sum(array[:, self.moving].T @ basis for array, basis in parts)).ravel()

    def coefficients(self, x: Array) -> tuple[Array, Array, Array]:
        """Sine and cosine coefficients (joints, harmonics) and offsets (joints,) in position form."""
        n, h = len(self.posture), len(self.harmonics)
        table = x.reshape(len(self.moving), self.per_joint)
        w = 2.0 * np.pi * self.base_frequency_hz * np.array(self.harmonics, dtype=float)
        sine, cosine, offset = np.zeros((n, h)), np.zeros((n, h)), self.posture.copy()
        sine[list(self.moving)] = table[:, 1 : h + 1] / w
        cosine[list(self.moving)] = -table[:, h + 1 :] / w
        offset[list(self.moving)] = table[:, 0]
        return sine, cosine, offset
