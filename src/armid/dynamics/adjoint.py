"""Compiled loops that turn derivatives with respect to the regressor into derivatives with respect to the motion."""

import numpy as np

from armid.dynamics.adjoint_blocks import (
    adjoint_carry_prismatic,
    adjoint_carry_revolute,
    adjoint_inertial_columns,
    adjoint_moment_power,
    adjoint_outward_prismatic,
    adjoint_outward_revolute,
    adjoint_rotor_moment,
)
from armid.dynamics.blocks import BLOCK, STATE_ROWS, add_scaled, compiled, load, rotor_moment
from armid.dynamics.kernel import (
    ACCELERATION,
    MOVING_DOWN,
    MOVING_UP,
    ONE,
    SIGN,
    SPRING_LENGTH,
    SPRING_STIFFNESS,
    VELOCITY,
    VELOCITY_DOWN,
    VELOCITY_UP,
    _combine,
    _fill,
    _load_inputs,
    _scratch,
)


@compiled
def _reverse_inertial(tree, columns, i, state, screws, bar, ten, state_bar, screws_bar):
    first, last = columns.link_start[i], columns.link_start[i + 1]
    if first == last:
        return
    for d in range(tree.depth[i]):
        joint = tree.path[i, d]
        ten[:] = 0.0
        for e in range(first, last):
            row = columns.position[joint, columns.link_column[e]]
            for k in range(columns.mix_start[e], columns.mix_start[e + 1]):
                c = columns.mix_row[k]
                add_scaled(columns.mix_value[k], bar[joint, row], ten[c * BLOCK : (c + 1) * BLOCK])
        adjoint_inertial_columns(state[i], screws[i, d], ten, state_bar[i], screws_bar[i, d])


@compiled
def _reverse_rotors(tree, columns, i, motion, state, screws, bar, ten, state_bar, screws_bar, motion_bar):
    for r in range(columns.rotor_start[i], columns.rotor_start[i + 1]):
        c, driven = columns.rotor_column[r], columns.rotor_joint[r]
        moment, own, moment_bar = ten[: 3 * BLOCK], ten[3 * BLOCK : 4 * BLOCK], ten[4 * BLOCK : 7 * BLOCK]
        velocity, acceleration = motion[driven, BLOCK : 2 * BLOCK], motion[driven, 2 * BLOCK :]
        axis, ratio = columns.rotor_axis[r], columns.rotor_ratio[r]
        rotor_moment(axis, ratio, state[i], velocity, acceleration, moment, own)
        moment_bar[:] = 0.0
        for d in range(tree.depth[i]):
            j = tree.path[i, d]
            adjoint_moment_power(screws[i, d], moment, bar[j, columns.position[j, c]], screws_bar[i, d], moment_bar)
        own_bar = bar[driven, columns.position[driven, c]]
        adjoint_rotor_moment(
            axis, ratio, state[i], velocity, acceleration, moment_bar, own_bar, state_bar[i], motion_bar[driven]
        )


@compiled
def _reverse_outward(tree, i, motion, state, screws, rest, state_bar, screws_bar, motion_bar):
    """From the cotangents of link i to those of its parent and of its joint's motion."""
    parent = tree.parent[i]
    R, p = tree.rotation[i], tree.translation[i]
    velocity = motion[i, BLOCK : 2 * BLOCK]
    before = state[parent] if parent >= 0 else rest
    before_bar = state_bar[parent]  # the base's (index -1) is the last row, which nobody reads
    if tree.prismatic[i]:
        for d in range(tree.depth[i] - 1):
            adjoint_carry_prismatic(
                R, p, state[i], screws[i, d], screws_bar[i, d], screws_bar[parent, d], motion_bar[i, :BLOCK]
            )
        adjoint_outward_prismatic(R, p, state[i], before, velocity, state_bar[i], before_bar, motion_bar[i])
    else:
        for d in range(tree.depth[i] - 1):
            adjoint_carry_revolute(
                R, p, state[i], screws[i, d], screws_bar[i, d], screws_bar[parent, d], motion_bar[i, :BLOCK]
            )
        adjoint_outward_revolute(R, p, state[i], before, velocity, state_bar[i], before_bar, motion_bar[i])


@compiled
def _local_slope(kind, constant, weight, motion, dst):
    """Derivative of a local column with respect to the derivative of u it depends on; returns which (0, 1, 2)."""
    factor = constant[0]
    if kind >= SPRING_STIFFNESS:
        _combine(motion, weight, 0, dst)
        a, b_, phi = constant[1], constant[2], constant[3]
        for b in range(BLOCK):
            x = dst[b] - phi
            slope, lever = a * b_ * np.cos(x), a * b_ * np.sin(x)
            if kind == SPRING_LENGTH:
                length = np.sqrt(a * a + b_ * b_ - 2.0 * a * b_ * np.cos(x))
                slope = -slope / length + lever * lever / (length * length * length)
            dst[b] = factor * slope
        return 0
    if kind in (ACCELERATION, VELOCITY):
        for b in range(BLOCK):
            dst[b] = factor
        return 2 if kind == ACCELERATION else 1
    _combine(motion, weight, 1, dst)
    width = constant[1]
    for b in range(BLOCK):
        u = dst[b]
        up = 1.0 if u > 0.0 else 0.0
        down = 1.0 if u < 0.0 else 0.0
        steep = 0.0
        if width > 0.0:
            t = np.tanh(u / width)
            up, down, steep = 0.5 + 0.5 * t, 0.5 - 0.5 * t, 0.5 * (1.0 - t * t) / width
        slope = 0.0
        if kind == SIGN:
            slope = 2.0 * steep
        elif kind == VELOCITY_UP:
            slope = up + u * steep
        elif kind == VELOCITY_DOWN:
            slope = down - u * steep
        elif kind in (MOVING_UP, MOVING_DOWN):
            slope = steep
        dst[b] = factor * slope
    return 1


@compiled
def _reverse_local(columns, motion, bar, ten, motion_bar):
    slope, total = ten[:BLOCK], ten[BLOCK : 2 * BLOCK]
    for k in range(columns.local_column.shape[0]):
        kind, weight, c = columns.local_kind[k], columns.local_weight[k], columns.local_column[k]
        if kind == ONE:
            continue
        derivative = _local_slope(kind, columns.local_constant[k], weight, motion, slope)
        total[:] = 0.0
        for j in range(weight.shape[0]):
            if weight[j] != 0.0:
                add_scaled(weight[j], bar[j, columns.position[j, c]], total)
        for b in range(BLOCK):
            total[b] *= slope[b]
        for j in range(weight.shape[0]):
            if weight[j] != 0.0:
                add_scaled(weight[j], total, motion_bar[j, derivative * BLOCK : (derivative + 1) * BLOCK])


@compiled
def _reverse(tree, columns, motion, state, screws, bar, ten, rest, state_bar, screws_bar, motion_bar):
    """Cotangents of the motion from those of all columns, ``bar`` (joints, columns seen, BLOCK)."""
    state_bar[:] = 0.0
    screws_bar[:] = 0.0
    motion_bar[:] = 0.0
    for i in range(tree.parent.shape[0] - 1, -1, -1):
        _reverse_inertial(tree, columns, i, state, screws, bar, ten, state_bar, screws_bar)
        _reverse_rotors(tree, columns, i, motion, state, screws, bar, ten, state_bar, screws_bar, motion_bar)
        _reverse_outward(tree, i, motion, state, screws, rest, state_bar, screws_bar, motion_bar)
    _reverse_local(columns, motion, bar, ten, motion_bar)


@compiled
def _store(motion_bar, first, end, out):
    for b in range(min(BLOCK, end - first)):
        for j in range(out.shape[2]):
            for derivative in range(3):
                out[derivative, first + b, j] = motion_bar[j, derivative * BLOCK + b]


@compiled
def information_gradient(tree, columns, weights, q, qd, qdd, begin, end, out):
    """Derivative of sum_j <weights_j, W_j' W_j> / 2 with respect to the motion, to `out` (3, N, n).

    `weights` (n, S, S) holds a symmetric matrix for each joint, in the order of the columns it sees. Every link has a
    scratch slot of its own (`tree.slot` is 0 .. n-1).
    """
    n, size = tree.parent.shape[0], weights.shape[1]
    motion, state, screws, ten = _scratch(tree)
    place = columns.position + size * np.arange(n).reshape((n, 1))
    packed, bar = np.zeros((n, size, BLOCK)), np.zeros((n, size, BLOCK))
    rest = np.zeros(STATE_ROWS * BLOCK)
    state_bar = np.empty((n + 1, STATE_ROWS * BLOCK))
    screws_bar, motion_bar = np.empty((n, n, 6 * BLOCK)), np.empty((n, 3 * BLOCK))
    for first in range(begin, end, BLOCK):
        _load_inputs(q, qd, qdd, first, motion)
        _fill(tree, columns, place, motion, state, screws, ten, packed.reshape((n * size, 1, BLOCK)), 0)
        for j in range(n):
            used = columns.used[j]
            bar[j, :used] = np.dot(np.ascontiguousarray(weights[j, :used, :used]), packed[j, :used])
        _reverse(tree, columns, motion, state, screws, bar, ten, rest, state_bar, screws_bar, motion_bar)
        _store(motion_bar, first, end, out)


@compiled
def torque_gradient(tree, columns, values, torque_bar, q, qd, qdd, begin, end, out):
    """Derivative of sum(torque_bar * torque) with respect to the motion, to `out` (3, N, n), for parameter `values`.

    Samples do not mix: row k of the result is the derivative of sample k's own weighted torque.
    """
    n, size = tree.parent.shape[0], columns.used.max()
    motion, state, screws, ten = _scratch(tree)
    place = columns.position + size * np.arange(n).reshape((n, 1))
    bar = np.zeros((n, size, BLOCK))
    rest = np.zeros(STATE_ROWS * BLOCK)
    state_bar = np.empty((n + 1, STATE_ROWS * BLOCK))
    screws_bar, motion_bar = np.empty((n, n, 6 * BLOCK)), np.empty((n, 3 * BLOCK))
    row = np.empty(BLOCK)
    for first in range(begin, end, BLOCK):
        _load_inputs(q, qd, qdd, first, motion)
        _fill(tree, columns, place, motion, state, screws, ten, bar.reshape((n * size, 1, BLOCK)), 0)
        for j in range(n):
            load(torque_bar, first, j, row)
            for c in range(columns.position.shape[1]):
                if columns.position[j, c] >= 0:
                    for b in range(BLOCK):
                        bar[j, columns.position[j, c], b] = values[c] * row[b]
        _reverse(tree, columns, motion, state, screws, bar, ten, rest, state_bar, screws_bar, motion_bar)
        _store(motion_bar, first, end, out)
