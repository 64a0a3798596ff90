"""Finite Fourier series: periodic trajectories with exact derivatives and exact extremes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.excitation.trajectory import Extrema, Trajectory, TrajectoryError, number, numbers


@dataclass(frozen=True, eq=False)
class FourierSeries(Trajectory, type_name="fourier"):
    """q(t) = offset + sum_k a_k sin(k w t) + b_k cos(k w t), w = 2 pi base_frequency_hz: Swevers (4), ER-16 (14).

    Attributes:
        base_frequency_hz: the frequency that all joints share [Hz]; its inverse is the period.
        harmonics: multiples k of it, any positive whole numbers, such as (1, 2, 3, 4, 5) or (1, 20) for a payload.
        sine, cosine: coefficients a_k and b_k [rad or m], (joints, harmonics).
        offset: position about which each joint moves [rad or m], (joints,).
    """

    base_frequency_hz: float
    harmonics: tuple[int, ...]
    sine: Array
    cosine: Array
    offset: Array
    periodic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check and freeze the fields."""
        offset = numbers("offset", self.offset, 1)
        if not len(offset):
            raise TrajectoryError("offset", "is empty; give one number per joint")
        harmonics = _harmonics(self.harmonics)
        shape = (len(offset), len(harmonics))
        frequency = number("base_frequency_hz", self.base_frequency_hz, above=0.0)
        sine, cosine = (numbers(name, getattr(self, name), 2, shape) for name in ("sine", "cosine"))
        checked = {"harmonics": harmonics, "sine": sine, "cosine": cosine, "offset": offset}
        self._freeze(len(offset), 1.0 / frequency, base_frequency_hz=frequency, **checked)

    def _motion(self, times: Array) -> Motion:
        coefficients = np.hstack([self.offset[:, None], self.sine, self.cosine]).T
        q, qd, qdd = basis(times, self.base_frequency_hz, self.harmonics)
        return Motion(q @ coefficients, qd @ coefficients, qdd @ coefficients)

    def extrema(self) -> Extrema:
        """Extremes over continuous time, from the roots of the derivatives.

        With z = exp(i w t) a derivative is a polynomial in z over a power of z, and its zeros in time are roots on the
        unit circle, found as eigenvalues of a companion matrix.
        """
        rates = _rates(self.base_frequency_hz, self.harmonics)
        phasor = self.cosine - 1j * self.sine
        with threadpool_limits(limits=1, user_api="blas"):
            found = [_extremes(phasor * (1j * rates) ** order, self.harmonics) for order in range(3)]
        (low, high), velocity, acceleration = found[0], found[1], found[2]
        return Extrema(
            lower=self.offset + low,
            upper=self.offset + high,
            velocity=np.maximum(-velocity[0], velocity[1]),
            acceleration=np.maximum(-acceleration[0], acceleration[1]),
        )


def basis(times: ArrayLike, base_frequency_hz: float, harmonics: Sequence[int]) -> tuple[Array, Array, Array]:
    """Matrices that turn coefficients into q, qd, qdd at `times`, each (samples, 1 + 2 harmonics).

    Columns are [1, sin_1, sin_2, ..., cos_1, cos_2, ...], so that the coefficients of one joint are
    [offset, a_1, a_2, ..., b_1, b_2, ...].
    """
    rates = _rates(base_frequency_hz, harmonics)
    wanted = np.asarray(times, dtype=float)
    # Whole periods are taken off first: far from t = 0 the sine of a large angle would lose digits.
    phase = np.remainder(wanted * base_frequency_hz, 1.0)[:, None] * (2.0 * np.pi * np.asarray(harmonics, dtype=float))
    sin, cos = np.sin(phase), np.cos(phase)
    one, zero = np.ones((len(wanted), 1)), np.zeros((len(wanted), 1))
    return (
        np.hstack([one, sin, cos]),
        np.hstack([zero, rates * cos, -rates * sin]),
        np.hstack([zero, -(rates**2) * sin, -(rates**2) * cos]),
    )


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
        w = _rates(self.base_frequency_hz, self.harmonics)
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

    def series(self, x: Array) -> FourierSeries:
        """The trajectory that the variables stand for."""
        h, moving = len(self.harmonics), list(self.moving)
        shape, table = (len(self.posture), h), x.reshape(len(self.moving), self.per_joint)
        w = _rates(self.base_frequency_hz, self.harmonics)
        sine, cosine, offset = np.zeros(shape), np.zeros(shape), self.posture.copy()
        sine[moving], cosine[moving], offset[moving] = table[:, 1 : h + 1] / w, -table[:, h + 1 :] / w, table[:, 0]
        return FourierSeries(self.base_frequency_hz, self.harmonics, sine, cosine, offset)


def _harmonics(value: Any) -> tuple[int, ...]:
    orders = numbers("harmonics", list(value) if isinstance(value, range | tuple | list | np.ndarray) else value, 1)
    if not len(orders) or np.any(orders != np.round(orders)) or np.any(orders < 1) or len(set(orders)) < len(orders):
        raise TrajectoryError("harmonics", "must be different positive whole numbers, such as 1 2 3 4 5")
    return tuple(int(order) for order in orders)


def _rates(base_frequency_hz: float, harmonics: Sequence[int]) -> Array:
    """Angular frequency of each harmonic [rad/s]."""
    return 2.0 * np.pi * base_frequency_hz * np.asarray(harmonics, dtype=float)


def _extremes(phasor: Array, harmonics: Sequence[int]) -> tuple[Array, Array]:
    """Least and greatest value over a period of Re sum_k c_k exp(i k x), for each row c (joints, harmonics)."""
    orders = np.asarray(harmonics) // np.gcd.reduce(harmonics)  # common factor: the same wave, only more often
    grid = np.linspace(0.0, 2.0 * np.pi, 4 * int(orders.max()), endpoint=False)
    low, high = np.zeros(len(phasor)), np.zeros(len(phasor))
    for j, row in enumerate(phasor):
        scale = np.max(np.abs(row))
        if scale == 0.0:
            continue
        slope, bend = 1j * orders * row, -(orders**2) * row
        x = np.concatenate([_stationary(slope, orders), grid])
        for _ in range(2):  # Newton steps sharpen roots of nearly touching pairs; the grid guards the rest
            wave = np.exp(1j * x[:, None] * orders)
            first, second = (wave @ slope).real, (wave @ bend).real
            step = np.divide(first, second, out=np.zeros_like(x), where=np.abs(second) > 1e-9 * scale)
            x = np.concatenate([x, x - np.clip(step, -0.1, 0.1)])
        values = (np.exp(1j * x[:, None] * orders) @ row).real
        low[j], high[j] = values.min(), values.max()
    return low, high


def _stationary(slope: Array, orders: Array) -> Array:
    """Angles of all roots of the polynomial whose zeros on the unit circle are those of Re sum_k c_k exp(i k x)."""
    top = int(orders.max())
    polynomial = np.zeros(2 * top + 1, dtype=complex)
    polynomial[top - orders] = slope  # numpy.roots wants the highest power first
    polynomial[top + orders] = np.conj(slope)
    polynomial /= np.max(np.abs(polynomial))
    polynomial[np.abs(polynomial) < 1e-14] = 0.0  # would only make roots at zero and infinity
    return np.asarray(np.angle(np.roots(polynomial)), dtype=float)
