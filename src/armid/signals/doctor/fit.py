"""A quick fit of a robot's model to motion and effort, with delays and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.ndimage import minimum_filter1d

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION
from armid.dynamics.threads import one_blas_thread
from armid.signals.doctor.motion import Track, derivative, low_pass

BLOCKS = 8  # contiguous parts of the log; leaving out one at a time tells the uncertainty
FRICTION_TERMS = 4  # offset, direction, velocity, square root of speed with its direction
_ROWS = 16_000  # rows of a fit
_REVERSAL = 0.1  # rows with less than this much of a joint's usual speed are left out for that joint,
_REACH = 0.7  # and those around, as far as the low-pass smears, in units of its inverse cut-off
_ROUNDS, _FARTHEST_S = 3, 0.05  # of the search for delays, and how far each goes
_WEAK = 1e-9  # directions of the scaled normal matrix below this are not excited


@dataclass(frozen=True, eq=False)
class Rows:
    """Band-limited motion and effort, at a rate that suits them.

    Attributes:
        q, qd, qdd, effort: (rows, joints).
        step: time between rows of a block [s].
        block: number of the contiguous block a row belongs to, (rows,).
        keep: rows to use for each joint: away from reversals, where friction is not a function of velocity, and from
            the ends of blocks, where filters swing, (rows, joints).
        cutoff_hz: of the low-pass.
        pieces: stretches without a break in time; filters and derivatives act within them.
    """

    q: Array
    qd: Array
    qdd: Array
    effort: Array
    step: float
    block: NDArray[np.int64]
    keep: NDArray[np.bool_]
    cutoff_hz: float
    pieces: tuple[slice, ...]

    def thinned(self, most: int) -> Rows:
        """Every n-th row, so that at most `most` are left; for fits without filters."""
        every = slice(None, None, max(1, -(-len(self.q) // most)))
        q, qd, qdd, effort = (part[every] for part in (self.q, self.qd, self.qdd, self.effort))
        return Rows(q, qd, qdd, effort, self.step, self.block[every], self.keep[every], self.cutoff_hz, ())


def rows_of(track: Track, effort: Array) -> Rows:
    """Rows for a fit; a long log is represented by eight stretches spread over it.

    Motion is low-passed at five times the track's cut-off, wide enough to show how joints really reverse; effort at the
    cut-off itself, and so are later the columns made of the motion.
    """
    rate, cutoff = track.rate_hz, track.cutoff_hz
    wide = min(5.0 * cutoff, 0.2 * rate)
    thin = max(1, int(rate / (5.0 * wide)))
    position = low_pass(track.channels["position"], wide, rate)
    velocity = derivative(position, track.step)
    acceleration = derivative(velocity, track.step)[::thin]
    q, qd, tau = position[::thin], velocity[::thin], low_pass(effort, cutoff, rate)[::thin]
    samples = len(q)
    length = min(samples, _ROWS) // BLOCKS
    whole = samples <= _ROWS
    starts = np.arange(BLOCKS) * (length if whole else samples // BLOCKS)
    index = (starts[:, None] + np.arange(length)).ravel()
    block = np.repeat(np.arange(BLOCKS), length)
    pieces = (slice(0, len(index)),) if whole else tuple(slice(b * length, (b + 1) * length) for b in range(BLOCKS))
    q, qd, acceleration, tau = (x[index] for x in (q, qd, acceleration, tau))
    step = thin * track.step
    reach = int(_REACH / (cutoff * step)) + 1
    keep = np.abs(qd) > _REVERSAL * np.nanpercentile(np.abs(qd), 95.0, axis=0)
    for piece in pieces:
        keep[piece] = minimum_filter1d(keep[piece], 2 * reach + 1, axis=0, mode="constant", cval=0)
    return Rows(q, qd, acceleration, tau, step, block, keep, cutoff, pieces)


def friction_columns(qd: Array) -> Array:
    """Offset, direction, velocity and square root of speed, (rows, joints, 4), all of the order of one."""
    speed = qd / np.maximum(np.percentile(np.abs(qd), 95.0, axis=0), 1e-12)
    direction = np.sign(speed)
    return np.stack([np.ones_like(speed), direction, speed, direction * np.sqrt(np.abs(speed))], axis=2)


def model_columns(model: Model, rows: Rows) -> Array:
    """Regressor of the robot's base parameters without friction, (rows, joints, columns)."""
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    names = [name for name in model.base.kept if kinds[name] != FRICTION]
    return model.regressor(rows.q, rows.qd, rows.qdd, names)


def known_torque(model: Model, rows: Rows) -> Array:
    """Torque of everything the description states as known: counterbalances, rotors, fixed parameters."""
    return model.inverse_dynamics(rows.q, rows.qd, rows.qdd, {})


@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a fit.

    Attributes:
        residual: mean square residual per joint over the variance of its effort.
        delay_s: how late the effort of each joint is [s]; 0 where it was not asked for.
        delay_error_s: its standard error from leaving out blocks [s].
        delay_doubt_s: the delay that would make an effect as large as the residual [s].
        friction_power: mean power lost in friction per joint, over the mean power of the effort's magnitude.
        friction_error: its standard error.
    """

    residual: Array
    delay_s: Array
    delay_error_s: Array
    delay_doubt_s: Array
    friction_power: Array
    friction_error: Array


class Problem:
    """Normal equations of a fit: per block and joint the Gram matrix of its columns and effort.

    Args:
        columns: (rows, joints, columns) that share parameters between joints, or are private to each (`shared` False).
        friction: (rows, joints, terms), always private.
        rows: effort, blocks and the rows to use.
        shared: whether joints share the parameters of `columns`.
    """

    def __init__(self, columns: Array, friction: Array, effort: Array, rows: Rows, *, shared: bool) -> None:
        _, self.joints, self.common = columns.shape
        self.private = friction.shape[2]
        self.shared = shared
        size = self.common + self.private + 1
        self.grams = np.zeros((BLOCKS, self.joints, size, size))
        self.counts = np.zeros((BLOCKS, self.joints))
        for j in range(self.joints):
            table = np.column_stack([columns[:, j], friction[:, j], effort[:, j]])
            for b in range(BLOCKS):
                part = table[(rows.block == b) & rows.keep[:, j]]
                self.grams[b, j] = part.T @ part
                self.counts[b, j] = len(part)

    def solve(self, grams: Array) -> tuple[Array, Array]:
        """Coefficients (joints, columns + terms) and sums of squared residuals (joints,), from Gram matrices by joint.

        Joints are weighted by their own residuals, in two rounds.
        """
        with one_blas_thread():
            if not self.shared:
                found = np.stack([_solve(gram[:-1, :-1], gram[:-1, -1]) for gram in grams])
                return found, self._squares(grams, found)
            power = np.maximum(grams[:, -1, -1], 1e-300)
            found, squares = np.zeros((self.joints, self.common + self.private)), power
            for _ in range(3):
                found = self._shared(grams, 1.0 / np.maximum(squares, 1e-8 * power))
                squares = self._squares(grams, found)
            return found, squares

    def _normal(self, grams: Array, weight: Array) -> tuple[Array, Array]:
        p, f, n = self.common, self.private, self.joints
        normal, right = np.zeros((p + n * f, p + n * f)), np.zeros(p + n * f)
        for j in range(n):
            index = np.concatenate([np.arange(p), p + j * f + np.arange(f)])
            normal[np.ix_(index, index)] += weight[j] * grams[j, :-1, :-1]
            right[index] += weight[j] * grams[j, :-1, -1]
        return normal, right

    def _shared(self, grams: Array, weight: Array) -> Array:
        p, f = self.common, self.private
        solution = _solve(*self._normal(grams, weight))
        starts = p + f * np.arange(self.joints)
        return np.stack([np.concatenate([solution[:p], solution[start : start + f]]) for start in starts])

    def doubt(self, squares: Array) -> Array:
        """Coefficient of each joint's last private column that would explain as much as the residual leaves over."""
        grams, weight = self.grams.sum(axis=0), 1.0 / np.maximum(squares, 1e-300)
        with one_blas_thread():
            if self.shared:
                inverse = np.diag(_inverse(self._normal(grams, weight)[0]))
                return np.sqrt(inverse[self.common + self.private - 1 :: self.private])
            return np.sqrt([_inverse(w * gram[:-1, :-1])[-1, -1] for w, gram in zip(weight, grams, strict=True)])

    @staticmethod
    def _squares(grams: Array, found: Array) -> Array:
        full = np.concatenate([found, -np.ones((len(found), 1))], axis=1)
        return np.maximum(np.einsum("ji,jik,jk->j", full, grams, full), 0.0)

    def variance(self, offset: int) -> Array:
        """Sum of squares of each joint's effort about its mean, given the column of ones."""
        grams = self.grams.sum(axis=0)
        count = np.maximum(grams[:, offset, offset], 1e-300)
        return np.maximum(grams[:, -1, -1] - grams[:, offset, -1] ** 2 / count, 1e-300)


def _inverse(normal: Array) -> Array:
    """Inverse of a normal matrix, column-scaled; directions that are not excited get nothing."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    values, vectors = np.linalg.eigh(normal * scale[:, None] * scale)
    keep = values > _WEAK * values[-1]
    half = scale[:, None] * vectors[:, keep] / np.sqrt(values[keep])
    return np.asarray(half @ half.T)


def _solve(normal: Array, right: Array) -> Array:
    return np.asarray(_inverse(normal) @ right)


def fit(rows: Rows, columns: Array, known: Array, *, shared: bool) -> Fit:
    """Fit effort to motion, and how late the effort of each joint is.

    All columns pass the low-pass that the effort has passed. A late effort tau(t - d) differs from tau(t) by
    -d dtau/dt, so that the derivative of the fitted effort is one more column, and its coefficient the delay; three
    rounds, each with the effort moved by the delays found before. Friction itself follows a reversal late
    (presliding), so that its delay is fitted apart, and that of inertia and gravity alone is returned.

    Args:
        rows: motion and effort.
        columns: (rows, joints, columns) of the model.
        known: torque that is not to be fitted, (rows, joints).
        shared: whether joints share the coefficients; otherwise each has its own.
    """
    friction = friction_columns(rows.qd)
    columns, friction, known = (_low_passed(rows, x) for x in (columns, friction, known))
    effort, delay = rows.effort, np.zeros(rows.q.shape[1])
    problem = Problem(columns, friction, effort - known, rows, shared=shared)
    found, squares = problem.solve(problem.grams.sum(axis=0))
    scale = np.ones_like(delay)
    for _ in range(_ROUNDS):
        rigid = known + np.einsum("tjc,jc->tj", columns, found[:, : problem.common])
        lost = np.einsum("tjc,jc->tj", friction, found[:, problem.common : problem.common + FRICTION_TERMS])
        slopes = [_derivative(rows, part) for part in (lost, rigid)]
        scales = [np.maximum(slope.std(axis=0), 1e-12) for slope in slopes]
        late = [-(slope / size)[:, :, None] for slope, size in zip(slopes, scales, strict=True)]
        scale, extended = scales[-1], np.concatenate([friction, *late], axis=2)
        problem = Problem(columns, extended, effort - known, rows, shared=shared)
        found, squares = problem.solve(problem.grams.sum(axis=0))
        step = np.clip(found[:, -1] / scale, -_FARTHEST_S, _FARTHEST_S)
        delay = delay + step
        effort = _moved(rows, effort, step)
    without = [problem.solve(problem.grams.sum(axis=0) - part)[0] for part in problem.grams]
    error = _jackknife(np.stack([coefficients[:, -1] / scale for coefficients in without]))
    powers = np.stack([_friction_power(problem, friction, rows, coefficients) for coefficients in without])
    return Fit(
        squares / problem.variance(problem.common),
        delay,
        error,
        problem.doubt(squares) / scale,
        _friction_power(problem, friction, rows, found),
        _jackknife(powers),
    )


def _jackknife(estimates: Array) -> Array:
    """Standard error from estimates that leave out one block each."""
    blocks = len(estimates)
    return np.asarray(np.sqrt((blocks - 1.0) * np.mean((estimates - estimates.mean(axis=0)) ** 2, axis=0)))


def _friction_power(problem: Problem, friction: Array, rows: Rows, found: Array) -> Array:
    """Mean power of the fitted friction (without offset) over the mean magnitude of the effort times speed."""
    speed = rows.qd[:, :, None]
    share = np.where(rows.keep[:, :, None], friction[:, :, 1:] * speed, 0.0).sum(axis=0)
    scale = np.where(rows.keep, np.abs(rows.effort * rows.qd), 0.0).sum(axis=0)
    here = slice(problem.common + 1, problem.common + FRICTION_TERMS)
    return np.asarray(np.einsum("jc,jc->j", share, found[:, here]) / np.maximum(scale, 1e-300))


def _low_passed(rows: Rows, x: Array) -> Array:
    flat = np.array(x.reshape(len(x), -1))
    for piece in rows.pieces:
        flat[piece] = low_pass(flat[piece], rows.cutoff_hz, 1.0 / rows.step)
    return flat.reshape(x.shape)


def _derivative(rows: Rows, x: Array) -> Array:
    return np.concatenate([derivative(x[piece], rows.step) for piece in rows.pieces])


def _moved(rows: Rows, effort: Array, delay: Array) -> Array:
    """Effort read `delay` later [s], by cubic interpolation."""
    result = np.empty_like(effort)
    for piece in rows.pieces:
        time = rows.step * np.arange(piece.stop - piece.start)
        for j in range(effort.shape[1]):
            result[piece, j] = CubicSpline(time, effort[piece, j])(np.clip(time + delay[j], 0.0, time[-1]))
    return result
