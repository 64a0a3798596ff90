"""Compiled loops that turn derivatives with respect to the regressor into derivatives with respect to the motion.

A cotangent is the derivative of a scalar with respect to a quantity; it has that quantity's rows. A function named
adjoint reverses the function of that name in `blocks`, adding to the cotangents of its inputs. The ten columns of a
link are linear in its inertial parameters, so that their cotangents act like the parameters of a virtual body.
"""

import numpy as np

from armid.dynamics.blocks import (
    BLOCK,
    STATE_ROWS,
    add_scaled,
    clear,
    compiled,
    in_block,
    inner,
    inward,
    memory,
    part,
    rotor_moment,
)
from armid.dynamics.kernel import (
    ACCELERATION,
    MOVING_DOWN,
    MOVING_UP,
    ONE,
    POSITION,
    SIGN,
    SPRING_LENGTH,
    SPRING_STIFFNESS,
    VELOCITY,
    VELOCITY_DOWN,
    VELOCITY_UP,
    Tree,
    _combine,
)


@inner
def adjoint_inertial_columns(state, screw, columns_bar, state_bar, screw_bar):
    """Reverse `inertial_columns`."""
    for b in range(BLOCK):
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        e0, e1, e2 = state[3 * BLOCK + b], state[4 * BLOCK + b], state[5 * BLOCK + b]
        a0, a1, a2 = state[6 * BLOCK + b], state[7 * BLOCK + b], state[8 * BLOCK + b]
        v0, v1, v2 = screw[b], screw[BLOCK + b], screw[2 * BLOCK + b]
        z0, z1, z2 = screw[3 * BLOCK + b], screw[4 * BLOCK + b], screw[5 * BLOCK + b]
        m = columns_bar[b]
        h0, h1, h2 = columns_bar[BLOCK + b], columns_bar[2 * BLOCK + b], columns_bar[3 * BLOCK + b]
        xx = columns_bar[4 * BLOCK + b]
        xy = columns_bar[5 * BLOCK + b]
        yy = columns_bar[6 * BLOCK + b]
        xz = columns_bar[7 * BLOCK + b]
        yz = columns_bar[8 * BLOCK + b]
        zz = columns_bar[9 * BLOCK + b]
        wh = w0 * h0 + w1 * h1 + w2 * h2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        vw = v0 * w0 + v1 * w1 + v2 * w2
        vh = v0 * h0 + v1 * h1 + v2 * h2
        # With the virtual body's inertia I: I w and, below, I (z x w).
        Iw0 = xx * w0 + xy * w1 + xz * w2
        Iw1 = xy * w0 + yy * w1 + yz * w2
        Iw2 = xz * w0 + yz * w1 + zz * w2
        u0, u1, u2 = z1 * w2 - z2 * w1, z2 * w0 - z0 * w2, z0 * w1 - z1 * w0
        screw_bar[b] += m * a0 + e1 * h2 - e2 * h1 + w0 * wh - h0 * ww
        screw_bar[BLOCK + b] += m * a1 + e2 * h0 - e0 * h2 + w1 * wh - h1 * ww
        screw_bar[2 * BLOCK + b] += m * a2 + e0 * h1 - e1 * h0 + w2 * wh - h2 * ww
        screw_bar[3 * BLOCK + b] += h1 * a2 - h2 * a1 + xx * e0 + xy * e1 + xz * e2 + w1 * Iw2 - w2 * Iw1
        screw_bar[4 * BLOCK + b] += h2 * a0 - h0 * a2 + xy * e0 + yy * e1 + yz * e2 + w2 * Iw0 - w0 * Iw2
        screw_bar[5 * BLOCK + b] += h0 * a1 - h1 * a0 + xz * e0 + yz * e1 + zz * e2 + w0 * Iw1 - w1 * Iw0
        state_bar[b] += v0 * wh + h0 * vw - 2.0 * w0 * vh + Iw1 * z2 - Iw2 * z1 + xx * u0 + xy * u1 + xz * u2
        state_bar[BLOCK + b] += v1 * wh + h1 * vw - 2.0 * w1 * vh + Iw2 * z0 - Iw0 * z2 + xy * u0 + yy * u1 + yz * u2
        state_bar[2 * BLOCK + b] += (
            v2 * wh + h2 * vw - 2.0 * w2 * vh + Iw0 * z1 - Iw1 * z0 + xz * u0 + yz * u1 + zz * u2
        )
        state_bar[3 * BLOCK + b] += h1 * v2 - h2 * v1 + xx * z0 + xy * z1 + xz * z2
        state_bar[4 * BLOCK + b] += h2 * v0 - h0 * v2 + xy * z0 + yy * z1 + yz * z2
        state_bar[5 * BLOCK + b] += h0 * v1 - h1 * v0 + xz * z0 + yz * z1 + zz * z2
        state_bar[6 * BLOCK + b] += m * v0 + z1 * h2 - z2 * h1
        state_bar[7 * BLOCK + b] += m * v1 + z2 * h0 - z0 * h2
        state_bar[8 * BLOCK + b] += m * v2 + z0 * h1 - z1 * h0


@inner
def adjoint_slide(motion, state, state_bar, motion_bar):
    """Reverse `slide`; rows of `motion_bar`: cotangents of position, velocity, acceleration."""
    for b in range(BLOCK):
        d, w0, w1, w2 = motion[b], state[b], state[BLOCK + b], state[2 * BLOCK + b]
        twice, across = 2.0 * motion[BLOCK + b], w0 * w0 + w1 * w1
        A0, A1, A2 = state_bar[6 * BLOCK + b], state_bar[7 * BLOCK + b], state_bar[8 * BLOCK + b]
        e0, e1 = state[3 * BLOCK + b], state[4 * BLOCK + b]
        motion_bar[b] += A0 * (e1 + w0 * w2) + A1 * (w1 * w2 - e0) - A2 * across
        motion_bar[BLOCK + b] += 2.0 * (A0 * w1 - A1 * w0)
        motion_bar[2 * BLOCK + b] += A2
        state_bar[b] += d * (A0 * w2 - 2.0 * A2 * w0) - A1 * twice
        state_bar[BLOCK + b] += d * (A1 * w2 - 2.0 * A2 * w1) + A0 * twice
        state_bar[2 * BLOCK + b] += d * (A0 * w0 + A1 * w1)
        state_bar[3 * BLOCK + b] -= A1 * d
        state_bar[4 * BLOCK + b] += A0 * d


@inner
def adjoint_turn(prismatic, screw, screw_bar, q_bar):
    """What the joint's own motion does to a screw that `carry` and `slide_screws` brought to the link's frame."""
    if prismatic:
        for b in range(BLOCK):
            q_bar[b] += screw_bar[b] * screw[4 * BLOCK + b] - screw_bar[BLOCK + b] * screw[3 * BLOCK + b]
        return
    for b in range(BLOCK):
        linear = screw_bar[b] * screw[BLOCK + b] - screw_bar[BLOCK + b] * screw[b]
        q_bar[b] += (
            linear + screw_bar[3 * BLOCK + b] * screw[4 * BLOCK + b] - screw_bar[4 * BLOCK + b] * screw[3 * BLOCK + b]
        )


@inner
def adjoint_outward(R, p, state, parent, velocity, state_bar, parent_bar, motion_bar):
    """Reverse `outward`; rows of `motion_bar`: cotangents of position, velocity, acceleration."""
    r00, r01, r02 = R[0, 0], R[0, 1], R[0, 2]
    r10, r11, r12 = R[1, 0], R[1, 1], R[1, 2]
    r20, r21, r22 = R[2, 0], R[2, 1], R[2, 2]
    p0, p1, p2 = p[0], p[1], p[2]
    for b in range(BLOCK):
        s, c = state[9 * BLOCK + b], state[10 * BLOCK + b]
        qd, w0, w1 = velocity[b], state[b], state[BLOCK + b]
        W0, W1, W2 = state_bar[b], state_bar[BLOCK + b], state_bar[2 * BLOCK + b]
        E0, E1, E2 = state_bar[3 * BLOCK + b], state_bar[4 * BLOCK + b], state_bar[5 * BLOCK + b]
        A0, A1, A2 = state_bar[6 * BLOCK + b], state_bar[7 * BLOCK + b], state_bar[8 * BLOCK + b]
        e0, e1 = state[3 * BLOCK + b] - w1 * qd, state[4 * BLOCK + b] + w0 * qd
        motion_bar[BLOCK + b] += W2 + E0 * w1 - E1 * w0
        motion_bar[2 * BLOCK + b] += E2
        W0 -= E1 * qd
        W1 += E0 * qd
        turned = W0 * w1 - W1 * w0 + E0 * e1 - E1 * e0
        motion_bar[b] += turned + A0 * state[7 * BLOCK + b] - A1 * state[6 * BLOCK + b]
        t0, t1 = c * A0 - s * A1, s * A0 + c * A1
        a0 = r00 * t0 + r01 * t1 + r02 * A2
        a1 = r10 * t0 + r11 * t1 + r12 * A2
        a2 = r20 * t0 + r21 * t1 + r22 * A2
        parent_bar[6 * BLOCK + b] += a0
        parent_bar[7 * BLOCK + b] += a1
        parent_bar[8 * BLOCK + b] += a2
        t0, t1 = c * E0 - s * E1, s * E0 + c * E1
        parent_bar[3 * BLOCK + b] += r00 * t0 + r01 * t1 + r02 * E2 + p1 * a2 - p2 * a1
        parent_bar[4 * BLOCK + b] += r10 * t0 + r11 * t1 + r12 * E2 + p2 * a0 - p0 * a2
        parent_bar[5 * BLOCK + b] += r20 * t0 + r21 * t1 + r22 * E2 + p0 * a1 - p1 * a0
        t0, t1 = c * W0 - s * W1, s * W0 + c * W1
        v0, v1, v2 = parent[b], parent[BLOCK + b], parent[2 * BLOCK + b]
        vp = v0 * p0 + v1 * p1 + v2 * p2
        av = a0 * v0 + a1 * v1 + a2 * v2
        ap = a0 * p0 + a1 * p1 + a2 * p2
        parent_bar[b] += r00 * t0 + r01 * t1 + r02 * W2 + a0 * vp + p0 * av - 2.0 * v0 * ap
        parent_bar[BLOCK + b] += r10 * t0 + r11 * t1 + r12 * W2 + a1 * vp + p1 * av - 2.0 * v1 * ap
        parent_bar[2 * BLOCK + b] += r20 * t0 + r21 * t1 + r22 * W2 + a2 * vp + p2 * av - 2.0 * v2 * ap


@inner
def adjoint_rotor_moment(axis, ratio, state, velocity, acceleration, moment_bar, own_bar, state_bar, motion_bar):
    """Reverse `rotor_moment`; `motion_bar` belongs to the driven joint."""
    n0, n1, n2 = axis[0], axis[1], axis[2]
    for b in range(BLOCK):
        m0, m1, m2 = moment_bar[b], moment_bar[BLOCK + b], moment_bar[2 * BLOCK + b]
        own = ratio * own_bar[b]
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        spin = ratio * velocity[b]
        gyro = m0 * (w1 * n2 - w2 * n1) + m1 * (w2 * n0 - w0 * n2) + m2 * (w0 * n1 - w1 * n0)
        motion_bar[BLOCK + b] += ratio * gyro
        motion_bar[2 * BLOCK + b] += ratio * (m0 * n0 + m1 * n1 + m2 * n2 + own)
        state_bar[b] += spin * (n1 * m2 - n2 * m1)
        state_bar[BLOCK + b] += spin * (n2 * m0 - n0 * m2)
        state_bar[2 * BLOCK + b] += spin * (n0 * m1 - n1 * m0)
        state_bar[3 * BLOCK + b] += own * n0
        state_bar[4 * BLOCK + b] += own * n1
        state_bar[5 * BLOCK + b] += own * n2


@inner
def adjoint_moment_power(screw, moment, bar, screw_bar, moment_bar):
    """Reverse `add_moment_power` with factor 1."""
    for b in range(BLOCK):
        g = bar[b]
        screw_bar[3 * BLOCK + b] += g * moment[b]
        screw_bar[4 * BLOCK + b] += g * moment[BLOCK + b]
        screw_bar[5 * BLOCK + b] += g * moment[2 * BLOCK + b]
        moment_bar[b] += g * screw[3 * BLOCK + b]
        moment_bar[BLOCK + b] += g * screw[4 * BLOCK + b]
        moment_bar[2 * BLOCK + b] += g * screw[5 * BLOCK + b]


@inner
def _reverse_inertial(tree, columns, i, state, screws, bar, ten, state_bar, screws_bar):
    first, last = columns.link_start[i], columns.link_start[i + 1]
    if first == last:
        return
    links = tree.parent.shape[0]
    for d in range(tree.depth[i]):
        joint, at = tree.path[i, d], 6 * (links * i + d)
        clear(part(ten, 0), 10)
        for e in range(first, last):
            row = columns.position[joint, columns.link_column[e]]
            for k in range(columns.mix_start[e], columns.mix_start[e + 1]):
                c = columns.mix_row[k]
                add_scaled(columns.mix_value[k], part(bar, joint * bar.shape[1] + row), part(ten, c))
        kin, kin_bar = part(state, STATE_ROWS * i), part(state_bar, STATE_ROWS * i)
        adjoint_inertial_columns(kin, part(screws, at), ten, kin_bar, part(screws_bar, at))


@inner
def _reverse_rotors(tree, columns, i, motion, state, screws, bar, ten, state_bar, screws_bar, motion_bar):
    for r in range(columns.rotor_start[i], columns.rotor_start[i + 1]):
        c, driven = columns.rotor_column[r], columns.rotor_joint[r]
        moment, own, moment_bar, kin = part(ten, 0), part(ten, 3), part(ten, 4), part(state, STATE_ROWS * i)
        velocity, acceleration = part(motion, 3 * driven + 1), part(motion, 3 * driven + 2)
        axis, ratio = columns.rotor_axis[r], columns.rotor_ratio[r]
        rotor_moment(axis, ratio, kin, velocity, acceleration, moment, own)
        clear(moment_bar, 3)
        for d in range(tree.depth[i]):
            j, at = tree.path[i, d], 6 * (tree.parent.shape[0] * i + d)
            own_bar = part(bar, j * bar.shape[1] + columns.position[j, c])
            adjoint_moment_power(part(screws, at), moment, own_bar, part(screws_bar, at), moment_bar)
        own_bar = part(bar, driven * bar.shape[1] + columns.position[driven, c])
        kin_bar, driven_bar = part(state_bar, STATE_ROWS * i), part(motion_bar, 3 * driven)
        adjoint_rotor_moment(axis, ratio, kin, velocity, acceleration, moment_bar, own_bar, kin_bar, driven_bar)


@inner
def _reverse_outward(tree, i, motion, state, screws, rest, ten, state_bar, screws_bar, motion_bar):
    """From the cotangents of link i to those of its parent and of its joint's motion.

    A screw's cotangent is a wrench, and goes inward as wrenches do.
    """
    parent, prismatic, links = tree.parent[i], tree.prismatic[i], tree.parent.shape[0]
    R, p, own_bar = tree.rotation[i], tree.translation[i], part(motion_bar, 3 * i)
    still, own = part(rest, 0), part(motion, 3 * i)
    kin, kin_bar = part(state, STATE_ROWS * i), part(state_bar, STATE_ROWS * i)
    shift = own if prismatic else still
    for d in range(tree.depth[i] - 1):
        bar = part(screws_bar, 6 * (links * i + d))
        adjoint_turn(prismatic, part(screws, 6 * (links * i + d)), bar, own_bar)
        inward(R, p, kin, shift, bar, part(screws_bar, 6 * (links * parent + d)))
    velocity = part(own, 1)
    if prismatic:
        adjoint_slide(own, kin, kin_bar, own_bar)
        velocity, own_bar = still, part(ten, 0)  # it does not turn, and nobody asks what turning would do
    before = part(state, STATE_ROWS * parent) if parent >= 0 else still
    # The base's cotangents are the last rows, which nobody reads.
    before_bar = part(state_bar, STATE_ROWS * (parent if parent >= 0 else links))
    adjoint_outward(R, p, kin, before, velocity, kin_bar, before_bar, own_bar)


@inner
def _local_slope(kind, constant, weight, motion, dst):
    """Derivative of a local column with respect to the derivative of u it depends on; returns which (0, 1, 2)."""
    factor = constant[0]
    if kind >= SPRING_STIFFNESS:
        _combine(motion, weight, np.int64(0), dst)
        a, b_, phi = constant[1], constant[2], constant[3]
        for b in range(BLOCK):
            x = dst[b] - phi
            slope, lever = a * b_ * np.cos(x), a * b_ * np.sin(x)
            if kind == POSITION:
                slope = 1.0
            if kind == SPRING_LENGTH:
                length = np.sqrt(a * a + b_ * b_ - 2.0 * a * b_ * np.cos(x))
                slope = -slope / length + lever * lever / (length * length * length)
            dst[b] = factor * slope
        return 0
    if kind in (ACCELERATION, VELOCITY):
        for b in range(BLOCK):
            dst[b] = factor
        return 2 if kind == ACCELERATION else 1
    _combine(motion, weight, np.int64(1), dst)
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


@inner
def _reverse_local(columns, motion, bar, ten, motion_bar):
    slope, total = part(ten, 0), part(ten, 1)
    for k in range(columns.local_column.shape[0]):
        kind, weight, c = columns.local_kind[k], columns.local_weight[k], columns.local_column[k]
        if kind == ONE:
            continue
        derivative = _local_slope(kind, columns.local_constant[k], weight, motion, slope)
        clear(total, 1)
        for j in range(weight.shape[0]):
            if weight[j] != 0.0:
                add_scaled(weight[j], part(bar, j * bar.shape[1] + columns.position[j, c]), total)
        for b in range(BLOCK):
            total[b] *= slope[b]
        for j in range(weight.shape[0]):
            if weight[j] != 0.0:
                add_scaled(weight[j], total, part(motion_bar, 3 * j + derivative))


def scratch(tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Memory for the cotangents of one block's states, screws and motion."""
    n = len(tree.parent)
    return memory(n + 1, STATE_ROWS * BLOCK), memory(n, n, 6 * BLOCK), memory(n, 3 * BLOCK)


@compiled
def reverse(tree, columns, bar, motion, state, screws, ten, _, rest, state_bar, screws_bar, motion_bar, first, out):
    """Cotangents of one block's motion, to `out` (3, N, n), from those of all columns, `bar` (n, columns seen, BLOCK).

    `motion`, `state`, `screws` are those of `fill` for the block that begins with sample `first`, where every link
    had a slot of its own (`tree.slot` is 0 .. n-1); `rest` is a state of zeros.
    """
    links = tree.parent.shape[0]
    clear(part(state_bar, 0), STATE_ROWS * links)
    clear(part(screws_bar, 0), 6 * links * links)
    clear(part(motion_bar, 0), 3 * links)
    for i in range(links - 1, -1, -1):
        _reverse_inertial(tree, columns, i, state, screws, bar, ten, state_bar, screws_bar)
        _reverse_rotors(tree, columns, i, motion, state, screws, bar, ten, state_bar, screws_bar, motion_bar)
        _reverse_outward(tree, i, motion, state, screws, rest, ten, state_bar, screws_bar, motion_bar)
    _reverse_local(columns, motion, bar, ten, motion_bar)
    for b in range(in_block(first, out.shape[1])):
        for j in range(out.shape[2]):
            for derivative in range(3):
                out[derivative, first + b, j] = motion_bar[j, derivative * BLOCK + b]
