"""Quick fits of a robot's model to motion and effort, and delays with their uncertainty."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import minimum_filter1d

from armid.arrays import Array, Indices, Mask
from armid.dynamics.factor import CompactFactor
from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION
from armid.dynamics.threads import one_blas_thread
from armid.signals.doctor.motion import Track
from armid.signals.filters import central_differences, low_pass

BLOCKS = 8  # contiguous parts of the log; leaving out one at a time tells the uncertainty
FRICTION_TERMS = 5  # offset, direction, velocity, speed, square root of speed with its direction
_ROWS, _FEW = 16_000, 6_000  # rows of a fit, and of the many that look for mistakes
_REVERSAL = 0.1  # rows with less than this much of a joint's usual speed are left out for that joint,
_REACH = 0.7  # and those around, as far as the low-pass smears, in units of its inverse cut-off
_ROUNDS, _FARTHEST_S = 3, 0.05  # of the search for delays, and how far each goes
_HIDDEN = 3.0  # times the residual that a joint's torque but for friction must have for its delay to be told
_PER_CUTOFF = 8.0  # rate over cut-off of thinned rows
_WEAK = 1e-9  # directions of the scaled normal matrix below this are not excited


@dataclass(frozen=True, eq=False)
class FitRows:
    """Band-limited motion and effort, at a rate that suits them.

    Attributes:
        q, qd, qdd, effort: (rows, joints).
        step: time between rows of a block [s].
        block: number of the contiguous block a row belongs to, (rows,).
        keep: rows to use for each joint: away from reversals, where friction is not a function of velocity, and from
            the ends of blocks, where filters swing, (rows, joints).
        cutoff_hz: of the low-pass.
        pieces: stretches without a break in time, of one length; filters and derivatives act within them.
        memory: what was computed of the motion alone; rows with the same motion share it.
    """

    q: Array
    qd: Array
    qdd: Array
    effort: Array
    step: float
    block: Indices
    keep: Mask
    cutoff_hz: float
    pieces: tuple[slice, ...]
    memory: dict[Any, Any] = field(default_factory=dict)

    def thinned(self) -> FitRows:
        """Every n-th row, as many as the low-pass needs; of those, where there are many, the first of each block."""
        every = max(1, int(1.0 / (_PER_CUTOFF * self.cutoff_hz * self.step)))
        index = [np.arange(piece.start, piece.stop, every) for piece in self.pieces]
        many = sum(map(len, index)) > _FEW
        if many:
            index = [np.flatnonzero(self.block == b)[::every][: _FEW // BLOCKS] for b in range(BLOCKS)]
        ends = np.cumsum([0, *map(len, index)]).tolist()
        parts = (self.q, self.qd, self.qdd, self.effort, self.block, self.keep)
        q, qd, qdd, effort, block, keep = (part[np.concatenate(index)] for part in parts)
        pieces = tuple(map(slice, ends[:-1], ends[1:]))
        reach = int(_REACH / (self.cutoff_hz * every * self.step)) + 1
        for piece in pieces if many else ():
            keep[piece][:reach] = keep[piece][-reach:] = False
        return FitRows(q, qd, qdd, effort, every * self.step, block, keep, self.cutoff_hz, pieces)


def rows_of(track: Track, effort: Array) -> FitRows:
    """FitRows for a fit; a long log is represented by eight stretches spread over it.

    Motion is low-passed at five times the track's cut-off, wide enough to show how joints really reverse; effort at the
    cut-off itself, and so are later the columns made of the motion.
    """
    rate, cutoff = track.rate_hz, track.cutoff_hz
    wide = min(5.0 * cutoff, 0.2 * rate)
    thin = max(1, int(rate / (5.0 * wide)))
    position = low_pass(track.channels["position"], rate, wide)
    velocity = central_differences(position, rate)
    acceleration = central_differences(velocity, rate)[::thin]
    q, qd, tau = position[::thin], velocity[::thin], low_pass(effort, rate, cutoff)[::thin]
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
    return FitRows(q, qd, acceleration, tau, step, block, keep, cutoff, pieces)


def friction_columns(qd: Array) -> Array:
    """Offset, direction, velocity, speed and its square root, (rows, joints, 5), all of the order of one."""
    speed = qd / np.maximum(np.percentile(np.abs(qd), 95.0, axis=0), 1e-12)
    direction = np.sign(speed)
    size = np.abs(speed)
    return np.stack([np.ones_like(speed), direction, speed, size, direction * np.sqrt(size)], axis=2)


def late_friction(rows: FitRows) -> Array:
    """Low-passed friction columns, and two derivatives of the direction: joints that stick change sides gradually."""
    if "friction" not in rows.memory:
        friction = low_passed(rows, friction_columns(rows.qd))
        once = _derivative(rows, friction[:, :, 1]) / rows.cutoff_hz
        twice = _derivative(rows, once) / rows.cutoff_hz
        rows.memory["friction"] = np.concatenate([friction, once[:, :, None], twice[:, :, None]], axis=2)
    return np.asarray(rows.memory["friction"])


def column_names(model: Model, *, base: bool = True) -> list[str]:
    """The robot's base parameters, or all its unknown ones, without friction."""
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    return [name for name in (model.base.kept if base else model.unknown) if kinds[name] != FRICTION]


def model_columns(model: Model, rows: FitRows, *, base: bool = True) -> Array:
    """Regressor of `column_names`, (rows, joints, columns)."""
    return model.regressor(rows.q, rows.qd, rows.qdd, column_names(model, base=base))


def known_torque(model: Model, rows: FitRows) -> Array:
    """Torque of everything the description states as known: counterbalances, rotors, fixed parameters."""
    return model.inverse_dynamics(rows.q, rows.qd, rows.qdd, {})


@dataclass(frozen=True, eq=False)
class EffortFit:
    """Result of a fit.

    Attributes:
        residual: mean square residual per joint over the variance of its effort.
        delay_s: how late the effort of each joint is [s]; 0 where it was not asked for.
        delay_error_s: its standard error from leaving out blocks [s].
        delay_doubt_s: the delay that would make an effect as large as the residual [s]; infinite for a joint whose
            inertia and weight hardly show.
        friction_power: mean power lost in friction per joint, over the mean power of the effort's magnitude.
        friction_error: its standard error.
    """

    residual: Array
    delay_s: Array
    delay_error_s: Array
    delay_doubt_s: Array
    friction_power: Array
    friction_error: Array


def factors(columns: Array, friction: Array, effort: Array, rows: FitRows, *, shared: bool) -> list[CompactFactor]:
    """One compact factor for each contiguous block of the log.

    Args:
        columns: (rows, joints, columns) that share parameters between joints, or are private to each (`shared` False).
        friction: (rows, joints, terms), always private.
        effort: (rows, joints).
        rows: blocks, and the rows to use.
        shared: whether joints share the parameters of `columns`.
    """
    joints, common, private = columns.shape[1], columns.shape[2] if shared else 0, friction.shape[2]
    own = private if shared else private + columns.shape[2]
    places = tuple(np.r_[:common, common + j * own : common + (j + 1) * own] for j in range(joints))
    names = tuple(map(str, range(common + joints * own)))
    tables = [np.column_stack([columns[:, j], friction[:, j], effort[:, j]]) for j in range(joints)]
    found = []
    for b in range(BLOCKS):
        parts = [table[(rows.block == b) & rows.keep[:, j]] for j, table in enumerate(tables)]
        grams, counts = tuple(part.T @ part for part in parts), tuple(map(len, parts))
        found.append(CompactFactor(names, places, grams, int((rows.block == b).sum()), counts=counts))
    return found


def total(parts: Iterable[CompactFactor]) -> CompactFactor:
    """Factors added up."""
    return reduce(operator.add, parts)


def solve(factor: CompactFactor) -> tuple[Array, Array]:
    """Coefficients (joints, columns) and sums of squared residuals (joints,); joints weigh by their own residuals."""
    power = np.maximum([matrix[-1, -1] for matrix in factor.matrices], 1e-300)
    squares = power
    with one_blas_thread():
        for _ in range(3):
            normal, right, _ = factor.normal_equations(1.0 / np.maximum(squares, 1e-8 * power))
            solution = _inverse(normal) @ right
            found = np.stack([solution[place] for place in factor.columns])
            full = np.concatenate([found, -np.ones((len(found), 1))], axis=1)
            squares = np.maximum(np.einsum("ji,jik,jk->j", full, np.stack(factor.matrices), full), 0.0)
    return found, squares


def variance(factor: CompactFactor, ones: int) -> Array:
    """Sum of squares of each joint's effort about its mean, given the place of the column of ones."""
    grams = np.stack(factor.matrices)
    count = np.maximum(grams[:, ones, ones], 1e-300)
    return np.asarray(np.maximum(grams[:, -1, -1] - grams[:, ones, -1] ** 2 / count, 1e-300))


def _doubt(factor: CompactFactor, squares: Array) -> Array:
    """Coefficient of each joint's last column that would explain as much as the residual leaves over."""
    with one_blas_thread():
        inverse = np.diag(_inverse(factor.normal_equations(1.0 / np.maximum(squares, 1e-300))[0]))
    return np.sqrt(inverse[[place[-1] for place in factor.columns]])


def _inverse(normal: Array) -> Array:
    """Inverse of a normal matrix, column-scaled; directions that are not excited get nothing."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    values, vectors = np.linalg.eigh(normal * scale[:, None] * scale)
    keep = values > _WEAK * values[-1]
    half = scale[:, None] * vectors[:, keep] / np.sqrt(values[keep])
    return np.asarray(half @ half.T)


def fit(rows: FitRows, columns: Array, known: Array, *, shared: bool) -> EffortFit:
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
    columns, friction, known = (low_passed(rows, x) for x in (columns, friction, known))
    effort, delay, count = rows.effort, np.zeros(rows.q.shape[1]), columns.shape[2]
    found, squares = solve(total(factors(columns, friction, effort - known, rows, shared=shared)))
    shown = (known + np.einsum("tjc,jc->tj", columns, found[:, :count])).var(axis=0)  # before anything may be late
    for _ in range(_ROUNDS):
        rigid = known + np.einsum("tjc,jc->tj", columns, found[:, :count])
        lost = np.einsum("tjc,jc->tj", friction, found[:, count : count + FRICTION_TERMS])
        slopes = [_derivative(rows, part) for part in (lost, rigid)]
        scales = [np.maximum(slope.std(axis=0), 1e-12) for slope in slopes]
        late = [-(slope / size)[:, :, None] for slope, size in zip(slopes, scales, strict=True)]
        scale, extended = scales[-1], np.concatenate([friction, *late], axis=2)
        parts = factors(columns, extended, effort - known, rows, shared=shared)
        whole = total(parts)
        found, squares = solve(whole)
        step = np.clip(found[:, -1] / scale, -_FARTHEST_S, _FARTHEST_S)
        delay = delay + step
        effort = moved(rows, effort, step)
    without = [solve(total(part for part in parts if part is not left))[0] for left in parts]
    residual = squares / variance(whole, count)
    hidden = shown < _HIDDEN**2 * residual * rows.effort.var(axis=0)
    power = partial(_friction_power, friction, rows, slice(count + 1, count + FRICTION_TERMS))
    return EffortFit(
        residual,
        delay,
        jackknife(np.stack([coefficients[:, -1] / scale for coefficients in without])),
        np.where(hidden, np.inf, _doubt(whole, squares) / scale),
        power(found),
        jackknife(np.stack([power(coefficients) for coefficients in without])),
    )


def jackknife(estimates: Array) -> Array:
    """Standard error from estimates that leave out one block each."""
    blocks = len(estimates)
    return np.asarray(np.sqrt((blocks - 1.0) * np.mean((estimates - estimates.mean(axis=0)) ** 2, axis=0)))


def _friction_power(friction: Array, rows: FitRows, here: slice, found: Array) -> Array:
    """Mean power of the fitted friction (without offset) over the mean magnitude of the effort times speed."""
    speed = rows.qd[:, :, None]
    share = np.where(rows.keep[:, :, None], friction[:, :, 1:] * speed, 0.0).sum(axis=0)
    scale = np.where(rows.keep, np.abs(rows.effort * rows.qd), 0.0).sum(axis=0)
    return np.asarray(np.einsum("jc,jc->j", share, found[:, here]) / np.maximum(scale, 1e-300))


def low_passed(rows: FitRows, x: Array) -> Array:
    """Columns, (rows, ...), as the effort has been low-passed."""
    return _by_piece(rows, x, lambda flat: low_pass(flat, 1.0 / rows.step, rows.cutoff_hz))


def _derivative(rows: FitRows, x: Array) -> Array:
    return _by_piece(rows, x, lambda flat: central_differences(flat, 1.0 / rows.step))


def _by_piece(rows: FitRows, x: Array, work: Callable[[Array], Array]) -> Array:
    """`work` on the columns of each stretch, of all stretches side by side."""
    pieces, length = len(rows.pieces), len(x) // len(rows.pieces)
    beside = x.reshape(pieces, length, -1).swapaxes(0, 1)
    done = work(beside.reshape(length, -1)).reshape(beside.shape)
    return np.ascontiguousarray(done.swapaxes(0, 1)).reshape(x.shape)


def moved(rows: FitRows, effort: Array, delay: Array) -> Array:
    """Effort read `delay` later [s], by cubic interpolation."""
    result = np.empty_like(effort)
    for piece in rows.pieces:
        time = rows.step * np.arange(piece.stop - piece.start)
        for j in range(effort.shape[1]):
            result[piece, j] = CubicSpline(time, effort[piece, j])(np.clip(time + delay[j], 0.0, time[-1]))
    return result
