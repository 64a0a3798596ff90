"""External torque without a force sensor: the generalised-momentum observer (De Luca and Mattone 2003).

    r' = gain (p' - tau + G - C' qd + friction - r),    p = M qd

r follows the external torque with the time constant 1 / gain and needs no acceleration. Between samples p is taken as a
straight line and the torque as its mean, so that the filter is exact for these, at any and at changing sample rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array, Mask, read_only
from armid.compiling import njit
from armid.control.control_model import fit_model
from armid.dynamics.model import Motion
from armid.errors import ArmidError, DataShapeError
from armid.estimation.fit import Fit

GAIN = 25.0  # [1/s]
FADE_S = 300.0  # [s] over which a change of friction is forgotten
STRANGE = 4.0  # standard deviations beyond which external torque is no change of friction
_compiled: Any = njit(error_model="numpy", cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)


def _reading(kernel: Any) -> Any:
    """Call a compiled loop that writes to its last argument alone, one like its second: arrays of files do as well."""

    @wraps(kernel)
    def call(dt: Array, x: Array, *given: Any) -> Array:
        y = np.empty(x.shape)
        kernel(*(read_only(one)[0] if isinstance(one, np.ndarray) else one for one in (dt, x, *given)), y)
        return y

    return call


@dataclass(frozen=True, eq=False)
class Observed:
    """What an observer says, each (samples, joints).

    Attributes:
        torque: external torque, positive where it moves the joint forwards [N m].
        acceleration: of the joints, filtered like the torque [rad/s^2].
        still: whether a joint stands still: its friction is anything up to its level and counts as zero.
        rubbing: velocity as friction sees it: zero for a joint that stands still, of the other sign while friction has
            not changed sides yet [rad/s].
        friction: of the fit at these velocities, without its offset [N m].
    """

    torque: Array
    acceleration: Array
    still: Mask
    rubbing: Array
    friction: Array


class Observer:
    """Momentum observer of an identified arm; a stream sample by sample (`step`), or a recording at once (`run`).

    A torque that lags motion by the fit's delay is compared with the model's, lagged by as much on average; friction
    changes sides when a velocity lagged by the fit's `friction_lag_s` does.

    Attributes:
        gain: [1/s]; the time constant is its inverse.
        delay_s: lag of each joint's torque.
        still_speed: below which a joint stands still [rad/s].
        level: friction at the slowest speed of the data [N m].
    """

    def __init__(self, fit: Fit, *, gain: float = GAIN) -> None:
        """Start without a sample."""
        if not (np.isfinite(gain) and gain > 0.0):
            raise ArmidError(f"the observer's gain is {gain:g}; it must be above zero [1/s]")
        self.gain, self.delay_s = float(gain), fit.delay_s
        self.friction_lag_s = np.zeros_like(fit.delay_s) if fit.friction_lag_s is None else fit.friction_lag_s
        self.still_speed, self.level = fit.standstill
        self._model = fit_model(fit)
        self.reset()

    def mass_matrix(self, q: Array) -> Array:
        """The model's M (samples, joints, joints)."""
        return self._model.model.mass_matrix(q, self._model.values)

    def reset(self) -> None:
        """Forget all samples, as after a gap: the next one starts from no external torque."""
        self._before: tuple[Array, ...] | None = None

    def step(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, dt: float) -> Array:
        """External torque (joints,) [N m] from the next sample, `dt` seconds after the one before."""
        rows = (np.atleast_2d(np.asarray(array, dtype=float)) for array in (q, qd, tau))
        return np.asarray(self.run(np.array([dt]), *rows).torque[0])

    def run(self, dt: ArrayLike, q: Array, qd: Array, tau: Array) -> Observed:
        """External torque of samples (samples, joints), each `dt` (samples,) after the one before."""
        steps, n = np.asarray(dt, dtype=float), self._model.robot.n_joints
        for array in (q, qd, tau):
            if array.shape != (len(steps), n) or not np.isfinite(array).all():
                raise DataShapeError(
                    f"samples have the shape {array.shape}; ({len(steps)}, {n}) finite ones are needed"
                )
        if not (steps > 0.0).all():
            raise DataShapeError("the time between samples must be above zero")
        still = np.abs(qd) < self.still_speed
        momentum, bias = self._model.rigid.momentum(q, qd)
        first = self._before is None
        if first:
            steps = np.concatenate([[0.0], steps[1:]])
        before = self._before or (qd[0], qd[0], np.zeros(n), np.zeros(n), momentum[0], np.zeros(n), np.zeros(n))
        speed, late_speed, force, acceleration, late, late_bias, residual = before
        rate = filtered(steps, qd, np.zeros_like(qd), self.gain, speed, np.zeros(n), acceleration)
        direction = _lagged(steps, qd, self.friction_lag_s, late_speed)
        rubbing = np.where(still, 0.0, np.where(direction * qd < 0.0, -qd, qd))
        rest = self._model.rest(Motion(q, rubbing, rate))
        known = bias + rest
        late_known = _lagged(steps, known, self.delay_s, known[0] if first else late_bias)
        late_momentum = _lagged(steps, momentum, self.delay_s, late)
        given = tau - late_known
        found = filtered(steps, late_momentum, given, self.gain, late, given[0] if first else force, residual)
        self._before = (qd[-1], direction[-1], given[-1], rate[-1], late_momentum[-1], late_known[-1], found[-1])
        friction = rest - self._model.rest(Motion(q, np.zeros_like(q), rate))
        return Observed(found, rate, still, rubbing, friction)


@_reading
@_compiled
def filtered(dt, x, u, gain, x_before, u_before, start, y):  # type: ignore[no-untyped-def]
    """Y' = gain (x' - u - y), with x a straight line between samples and u its mean."""
    for k in range(len(x)):
        keep = np.exp(-gain * dt[k])
        for j in range(x.shape[1]):
            if dt[k] == 0.0:
                y[k, j] = start[j]
                continue
            old, last, force = (y[k - 1, j], x[k - 1, j], u[k - 1, j]) if k else (start[j], x_before[j], u_before[j])
            y[k, j] = keep * old + (1.0 - keep) * ((x[k, j] - last) / dt[k] - 0.5 * (force + u[k, j]))


@_reading
@_compiled
def _lagged(dt, x, delay, start, y):  # type: ignore[no-untyped-def]
    """A first-order lag whose mean delay is `delay`, whatever the steps."""
    for k in range(len(x)):
        for j in range(x.shape[1]):
            old = y[k - 1, j] if k else start[j]
            y[k, j] = (delay[j] * old + dt[k] * x[k, j]) / (delay[j] + dt[k]) if delay[j] > 0.0 else x[k, j]


@_reading
@_compiled
def held(dt, x, gain, start, y):  # type: ignore[no-untyped-def]
    """Peaks of x that fall with the observer's time constant."""
    for k in range(len(x)):
        keep = np.exp(-gain * dt[k])
        for j in range(x.shape[1]):
            fallen = keep * (y[k - 1, j] if k else start[j])
            y[k, j] = fallen if fallen > x[k, j] else x[k, j]


def learned(dt: Array, torque: Array, *given: Any) -> tuple[Array, Array]:
    """What friction that differs from the fit's adds to the external torque, and its variance, before each sample.

    A Kalman filter per joint for changes of all friction in proportion (whose curve keeps its shape, at slow speeds
    too), of viscous friction and of the offset, which wander about zero with the standard deviations `usual`
    (joints, 3). Samples count as the observer's filter leaves them independent; where a joint is beyond `strange`
    standard deviations, something else is at work, and nothing is learnt.

    `given` are friction, rubbing, noise, moving (samples, joints each), strange, usual, gain, and the filter's state:
    phi, mean and spread.
    """
    bias, variance = np.empty_like(torque), np.empty_like(torque)
    _learned(dt, torque, *given, np.empty((torque.shape[1], 3)), np.empty(3), bias, variance)
    return bias, variance


@_compiled
def _learned(  # type: ignore[no-untyped-def]
    dt, torque, friction, rubbing, noise, moving, strange, usual, gain, phi, mean, spread, change, row, bias, variance
):
    """`learned` with memory for its results, and scratch `change` (joints, 3) and `row` (3,)."""
    for k in range(len(dt)):
        keep, fade = np.exp(-gain * dt[k]), dt[k] / FADE_S
        usable = dt[k] > 0.0
        for j in range(torque.shape[1]):
            row[0], row[1], row[2] = friction[k, j], rubbing[k, j], 1.0
            for a in range(3):
                phi[j, a] = keep * phi[j, a] + (1.0 - keep) * row[a]
                mean[j, a] *= 1.0 - fade
                for b in range(3):
                    spread[j, a, b] *= 1.0 - 2.0 * fade
                spread[j, a, a] += 2.0 * fade * usual[j, a] ** 2
            expected, size = 0.0, 0.0
            for a in range(3):
                change[j, a] = spread[j, a, 0] * phi[j, 0] + spread[j, a, 1] * phi[j, 1] + spread[j, a, 2] * phi[j, 2]
                expected += phi[j, a] * mean[j, a]
                size += phi[j, a] * change[j, a]
            bias[k, j], variance[k, j] = expected, size
            if moving[k, j] and (torque[k, j] - expected) ** 2 > strange**2 * (size + noise[k, j]):
                usable = False
        for j in range(torque.shape[1]):
            if usable and moving[k, j]:
                whole = variance[k, j] + noise[k, j] * 2.0 / (gain * dt[k])
                for a in range(3 if whole > 0.0 else 0):
                    mean[j, a] += change[j, a] * (torque[k, j] - bias[k, j]) / whole
                    for b in range(3):
                        spread[j, a, b] -= change[j, a] * change[j, b] / whole


def warm() -> None:
    """Call every compiled loop once."""
    rows, one, three = np.zeros((1, 1)), np.zeros(1), np.zeros((1, 3))
    filtered(one, rows, rows, GAIN, one, one, one)
    _lagged(one, rows, one, one)
    held(one, rows, GAIN, one)
    learned(
        one, rows, rows, rows, rows, rows > 0.0, STRANGE, three.copy(), GAIN, three.copy(), three, np.zeros((1, 3, 3))
    )
