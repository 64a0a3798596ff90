"""Compiled primitives of the numeric core, each working on one block of samples.

A block holds `BLOCK` samples in structure-of-arrays layout: a scratch array is flat, its row *r* lies at
``[r * BLOCK, (r + 1) * BLOCK)``, and the inner loop runs over the samples of the block so that it is the SIMD loop.
`part` finds a row. Strides are constant on purpose: indices that the compiler cannot prove non-negative become gathers.

Everything here happens in *joint frames*: frame *i* sits on the axis of joint *i*, moves with link *i*, and has its
z axis along the joint's axis. Rows of a link's state:

====  =====================================================================
0-2   angular velocity w of the link [rad/s]
3-5   angular acceleration e [rad/s^2]
6-8   acceleration a of the frame's origin, minus gravity [m/s^2]
9,10  sine and cosine of the joint angle; 0 and 1 if prismatic
====  =====================================================================

A joint's screw axis (linear part v in rows 0-2, angular part z in rows 3-5) is carried outward from link to link; the
torque of joint j caused by link i is then a product of screw and wrench in frame i. Torques alone need no screws: there
wrenches go inward from link to link. All accelerations include -gravity, so gravity needs no term of its own
(Newton-Euler).
"""

import math
from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from armid.compiling import njit_apart, njit_apart_within

BLOCK = 128
TILE = 3  # of Gram matrices: nine sums and six rows fit into the 16 registers that processors have at least
STATE_ROWS = 11
_FLAT, _TABLE = (types.Array(types.float64, dimensions, "C") for dimensions in (1, 2))
# Nothing is allocated: without Numba's reference counts of every slice, loops begin at once.
_plain: Any = {"error_model": "numpy", "nogil": True, "_nrt": False}
# Reassociation and contraction let the compiler vectorise sums; NaN and infinity keep their meaning.
_fast: Any = {**_plain, "fastmath": {"reassoc", "contract", "nsz", "arcp"}}
compiled: Any = njit_apart(**_fast, no_cfunc_wrapper=True, cache=True)
# For compiled callers alone. A call that is not inlined passes some two hundred words, a robot's.
inner: Any = njit_apart_within(**_fast, forceinline=True)
# The reduction of angles must not be reassociated.
_in_order: Any = njit_apart_within(**_plain, fastmath={"contract"})


def memory(*shape: int) -> np.ndarray:
    """Zeros that begin where a cache line does: a vector that lies across two takes twice as long to load."""
    count = math.prod(shape)
    raw = np.zeros(count + 8)
    first = -raw.ctypes.data % 64 // 8
    return raw[first : first + count].reshape(shape)


@intrinsic
def part(typing, array, row):
    """Contiguous memory from a row on, a row being `BLOCK` numbers; a slice would be thrice as much code to compile."""

    def code(context, builder, signature, values):
        return _from_row(context, builder, signature.args[0], *values, _FLAT)

    return (_FLAT(array, types.intp), code) if array.layout == "C" else None


@intrinsic
def table(typing, array, row):
    """`part` as (rows, BLOCK)."""

    def code(context, builder, signature, values):
        return _from_row(context, builder, signature.args[0], *values, _TABLE)

    return (_TABLE(array, types.intp), code) if array.layout == "C" else None


@intrinsic
def either(typing, array, row, other, instead):
    """`part` of an array, or of another from row `instead` on where `row` is below zero."""

    def code(context, builder, signature, values):
        one, two = (_from_row(context, builder, signature.args[k], *values[k : k + 2], _FLAT) for k in (0, 2))
        return builder.select(builder.icmp_signed(">=", values[1], values[1].type(0)), one, two)

    both = array.layout == other.layout == "C"
    return (_FLAT(array, types.intp, other, types.intp), code) if both else None


def _from_row(context, builder, kind, array, row, wanted):
    whole, result = context.make_array(kind)(context, builder, array), context.make_array(wanted)(context, builder)
    first, block, item = builder.mul(row, row.type(BLOCK)), row.type(BLOCK), row.type(8)
    left = builder.sub(whole.nitems, first)
    shape, strides = [left], [item]
    if wanted is _TABLE:
        shape, strides = [builder.sdiv(left, block), block], [row.type(8 * BLOCK), item]
    populate_array(result, builder.gep(whole.data, [first]), shape, strides, item, None)
    return result._getvalue()


@inner
def in_block(first, end):
    """Samples of the block that begins with `first`, where there are `end` in all."""
    return BLOCK if end - first > BLOCK else end - first


@inner
def load(samples, first, column, dst):
    """Copy one column of a (samples, columns) array into a block row; rows past the end become zero."""
    count = in_block(first, samples.shape[0])
    for b in range(count):
        dst[b] = samples[first + b, column]
    for b in range(count, BLOCK):
        dst[b] = 0.0


@inner
def copy(src, dst, rows):
    """Copy so many rows."""
    for b in range(rows * BLOCK):
        dst[b] = src[b]


@inner
def clear(dst, rows):
    """Set so many rows to zero."""
    for b in range(rows * BLOCK):
        dst[b] = 0.0


@_in_order
def sine_cosine(angle, state):
    """Write sin and cos of a block of angles [rad] to rows 9 and 10 of the state; error < 2e-16 for |angle| < 1e5.

    Cody-Waite reduction to [-pi/4, pi/4] and minimax polynomials, without branches.
    """
    for b in range(BLOCK):
        x = angle[b]
        k = np.floor(x * 0.6366197723675814 + 0.5)
        r = x - k * 1.5707963267341256
        r = r - k * 6.0771005063039660e-11
        r = r - k * 2.0222662487959506e-21
        y = r * r
        s = 2.75573137070700676789e-06 + y * (-2.50507602534068634195e-08 + y * 1.58969099521155010221e-10)
        s = 8.33333333332248946124e-03 + y * (-1.98412698298579493134e-04 + y * s)
        s = r + r * y * (-1.66666666666666324348e-01 + y * s)
        c = -2.75573143513906633035e-07 + y * (2.08757232129817482790e-09 + y * -1.13596475577881948265e-11)
        c = -1.38888888888741095749e-03 + y * (2.48015872894767294178e-05 + y * c)
        c = 1.0 - 0.5 * y + y * y * (4.16666666666666019037e-02 + y * c)
        quadrant = k - 4.0 * np.floor(k * 0.25)
        half = np.floor(quadrant * 0.5)
        odd = quadrant - 2.0 * half
        following = quadrant + 1.0
        following = following - 4.0 * np.floor(following * 0.25)
        state[9 * BLOCK + b] = (1.0 - 2.0 * half) * (s + odd * (c - s))
        state[10 * BLOCK + b] = (1.0 - 2.0 * np.floor(following * 0.5)) * (c + odd * (s - c))


@inner
def base_state(gravity, state):
    """State of the fixed base: at rest, accelerated against gravity."""
    g0, g1, g2 = -gravity[0], -gravity[1], -gravity[2]
    for b in range(6 * BLOCK):
        state[b] = 0.0
    for b in range(BLOCK):
        state[6 * BLOCK + b] = g0
        state[7 * BLOCK + b] = g1
        state[8 * BLOCK + b] = g2


@inner
def outward(R, p, state, velocity, acceleration):
    """Turn the parent's state into the link's, in place; R, p place the joint, which turns, in the parent's frame."""
    r00, r01, r02 = R[0, 0], R[0, 1], R[0, 2]
    r10, r11, r12 = R[1, 0], R[1, 1], R[1, 2]
    r20, r21, r22 = R[2, 0], R[2, 1], R[2, 2]
    p0, p1, p2 = p[0], p[1], p[2]
    for b in range(BLOCK):
        s, c, qd = state[9 * BLOCK + b], state[10 * BLOCK + b], velocity[b]
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        e0, e1, e2 = state[3 * BLOCK + b], state[4 * BLOCK + b], state[5 * BLOCK + b]
        u0, u1, u2 = w1 * p2 - w2 * p1, w2 * p0 - w0 * p2, w0 * p1 - w1 * p0
        a0 = state[6 * BLOCK + b] + e1 * p2 - e2 * p1 + w1 * u2 - w2 * u1
        a1 = state[7 * BLOCK + b] + e2 * p0 - e0 * p2 + w2 * u0 - w0 * u2
        a2 = state[8 * BLOCK + b] + e0 * p1 - e1 * p0 + w0 * u1 - w1 * u0
        t0 = r00 * w0 + r10 * w1 + r20 * w2
        t1 = r01 * w0 + r11 * w1 + r21 * w2
        t2 = r02 * w0 + r12 * w1 + r22 * w2
        x0 = c * t0 + s * t1
        x1 = c * t1 - s * t0
        state[b] = x0
        state[BLOCK + b] = x1
        state[2 * BLOCK + b] = t2 + qd
        t0 = r00 * e0 + r10 * e1 + r20 * e2
        t1 = r01 * e0 + r11 * e1 + r21 * e2
        t2 = r02 * e0 + r12 * e1 + r22 * e2
        state[3 * BLOCK + b] = c * t0 + s * t1 + x1 * qd
        state[4 * BLOCK + b] = c * t1 - s * t0 - x0 * qd
        state[5 * BLOCK + b] = t2 + acceleration[b]
        t0 = r00 * a0 + r10 * a1 + r20 * a2
        t1 = r01 * a0 + r11 * a1 + r21 * a2
        t2 = r02 * a0 + r12 * a1 + r22 * a2
        state[6 * BLOCK + b] = c * t0 + s * t1
        state[7 * BLOCK + b] = c * t1 - s * t0
        state[8 * BLOCK + b] = t2


@inner
def add_own_screw(prismatic, factor, screw):
    """Add `factor` times a joint's screw in its own frame: unit vector z, angular (revolute) or linear (prismatic)."""
    row = 2 if prismatic else 5
    for b in range(BLOCK):
        screw[row * BLOCK + b] += factor


@inner
def carry(R, p, state, screws, count):
    """Carry the first `count` screws, six rows each, from the parent's frame to the link's, in place."""
    r00, r01, r02 = R[0, 0], R[0, 1], R[0, 2]
    r10, r11, r12 = R[1, 0], R[1, 1], R[1, 2]
    r20, r21, r22 = R[2, 0], R[2, 1], R[2, 2]
    p0, p1, p2 = p[0], p[1], p[2]
    for d in range(count):
        screw = part(screws, 6 * d)
        for b in range(BLOCK):
            s, c = state[9 * BLOCK + b], state[10 * BLOCK + b]
            z0, z1, z2 = screw[3 * BLOCK + b], screw[4 * BLOCK + b], screw[5 * BLOCK + b]
            v0 = screw[b] + z1 * p2 - z2 * p1
            v1 = screw[BLOCK + b] + z2 * p0 - z0 * p2
            v2 = screw[2 * BLOCK + b] + z0 * p1 - z1 * p0
            t0 = r00 * v0 + r10 * v1 + r20 * v2
            t1 = r01 * v0 + r11 * v1 + r21 * v2
            screw[b] = c * t0 + s * t1
            screw[BLOCK + b] = c * t1 - s * t0
            screw[2 * BLOCK + b] = r02 * v0 + r12 * v1 + r22 * v2
            t0 = r00 * z0 + r10 * z1 + r20 * z2
            t1 = r01 * z0 + r11 * z1 + r21 * z2
            screw[3 * BLOCK + b] = c * t0 + s * t1
            screw[4 * BLOCK + b] = c * t1 - s * t0
            screw[5 * BLOCK + b] = r02 * z0 + r12 * z1 + r22 * z2


@inner
def slide(motion, state):
    """Move a state along the z axis of a prismatic joint, whose motion that is, in place."""
    for b in range(BLOCK):
        d, w0, w1 = motion[b], state[b], state[BLOCK + b]
        twice, dw2 = 2.0 * motion[BLOCK + b], d * state[2 * BLOCK + b]
        state[6 * BLOCK + b] += state[4 * BLOCK + b] * d + w0 * dw2 + w1 * twice
        state[7 * BLOCK + b] += w1 * dw2 - state[3 * BLOCK + b] * d - w0 * twice
        state[8 * BLOCK + b] += motion[2 * BLOCK + b] - d * (w0 * w0 + w1 * w1)


@inner
def slide_screws(motion, screws, count):
    """Move the first `count` screws along the z axis of a prismatic joint, whose motion that is, in place."""
    for j in range(count):
        screw = part(screws, 6 * j)
        for b in range(BLOCK):
            screw[b] += motion[b] * screw[4 * BLOCK + b]
            screw[BLOCK + b] -= motion[b] * screw[3 * BLOCK + b]


@inner
def inertial_columns(state, screw, m, mx, my, mz, xx, xy, yy, xz, yz, zz):
    """Ten rows: torque along `screw` per unit of m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz of the link."""
    for b in range(BLOCK):
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        e0, e1, e2 = state[3 * BLOCK + b], state[4 * BLOCK + b], state[5 * BLOCK + b]
        a0, a1, a2 = state[6 * BLOCK + b], state[7 * BLOCK + b], state[8 * BLOCK + b]
        v0, v1, v2 = screw[b], screw[BLOCK + b], screw[2 * BLOCK + b]
        z0, z1, z2 = screw[3 * BLOCK + b], screw[4 * BLOCK + b], screw[5 * BLOCK + b]
        wv = w0 * v0 + w1 * v1 + w2 * v2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        u0, u1, u2 = z1 * w2 - z2 * w1, z2 * w0 - z0 * w2, z0 * w1 - z1 * w0
        m[b] = v0 * a0 + v1 * a1 + v2 * a2
        mx[b] = v1 * e2 - v2 * e1 + w0 * wv - v0 * ww + a1 * z2 - a2 * z1
        my[b] = v2 * e0 - v0 * e2 + w1 * wv - v1 * ww + a2 * z0 - a0 * z2
        mz[b] = v0 * e1 - v1 * e0 + w2 * wv - v2 * ww + a0 * z1 - a1 * z0
        xx[b] = z0 * e0 + u0 * w0
        xy[b] = z0 * e1 + z1 * e0 + u0 * w1 + u1 * w0
        yy[b] = z1 * e1 + u1 * w1
        xz[b] = z0 * e2 + z2 * e0 + u0 * w2 + u2 * w0
        yz[b] = z1 * e2 + z2 * e1 + u1 * w2 + u2 * w1
        zz[b] = z2 * e2 + u2 * w2


@inner
def own_columns(state, m, mx, my, mz, xx, xy, yy, xz, yz, zz):
    """`inertial_columns` for the link's own revolute joint, whose screw is the unit vector z: far fewer products."""
    for b in range(BLOCK):
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        m[b] = 0.0
        mx[b] = state[7 * BLOCK + b]
        my[b] = -state[6 * BLOCK + b]
        mz[b] = 0.0
        xx[b] = -w0 * w1
        xy[b] = w0 * w0 - w1 * w1
        yy[b] = w0 * w1
        xz[b] = state[3 * BLOCK + b] - w1 * w2
        yz[b] = state[4 * BLOCK + b] + w0 * w2
        zz[b] = state[5 * BLOCK + b]


@inner
def rate_of_momentum(phi, state, wrench):
    """Force (rows 0-2) and moment about the frame's origin (rows 3-5) that move a link with inertia `phi`."""
    m, h0, h1, h2 = phi[0], phi[1], phi[2], phi[3]
    xx, xy, yy, xz, yz, zz = phi[4], phi[5], phi[6], phi[7], phi[8], phi[9]
    for b in range(BLOCK):
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        e0, e1, e2 = state[3 * BLOCK + b], state[4 * BLOCK + b], state[5 * BLOCK + b]
        a0, a1, a2 = state[6 * BLOCK + b], state[7 * BLOCK + b], state[8 * BLOCK + b]
        wh = w0 * h0 + w1 * h1 + w2 * h2
        ww = w0 * w0 + w1 * w1 + w2 * w2
        wrench[b] = m * a0 + e1 * h2 - e2 * h1 + w0 * wh - h0 * ww
        wrench[BLOCK + b] = m * a1 + e2 * h0 - e0 * h2 + w1 * wh - h1 * ww
        wrench[2 * BLOCK + b] = m * a2 + e0 * h1 - e1 * h0 + w2 * wh - h2 * ww
        l0 = xx * w0 + xy * w1 + xz * w2
        l1 = xy * w0 + yy * w1 + yz * w2
        l2 = xz * w0 + yz * w1 + zz * w2
        wrench[3 * BLOCK + b] = h1 * a2 - h2 * a1 + xx * e0 + xy * e1 + xz * e2 + w1 * l2 - w2 * l1
        wrench[4 * BLOCK + b] = h2 * a0 - h0 * a2 + xy * e0 + yy * e1 + yz * e2 + w2 * l0 - w0 * l2
        wrench[5 * BLOCK + b] = h0 * a1 - h1 * a0 + xz * e0 + yz * e1 + zz * e2 + w0 * l1 - w1 * l0


@inner
def inward(R, p, state, shift, wrench, parent):
    """Add a link's wrench to its parent's; `shift` is how far the joint slides along its z axis, R, p place it."""
    r00, r01, r02 = R[0, 0], R[0, 1], R[0, 2]
    r10, r11, r12 = R[1, 0], R[1, 1], R[1, 2]
    r20, r21, r22 = R[2, 0], R[2, 1], R[2, 2]
    p0, p1, p2 = p[0], p[1], p[2]
    for b in range(BLOCK):
        s, c, d = state[9 * BLOCK + b], state[10 * BLOCK + b], shift[b]
        f0, f1, f2 = wrench[b], wrench[BLOCK + b], wrench[2 * BLOCK + b]
        n0, n1, n2 = wrench[3 * BLOCK + b] - d * f1, wrench[4 * BLOCK + b] + d * f0, wrench[5 * BLOCK + b]
        t0, t1 = c * f0 - s * f1, s * f0 + c * f1
        y0 = r00 * t0 + r01 * t1 + r02 * f2
        y1 = r10 * t0 + r11 * t1 + r12 * f2
        y2 = r20 * t0 + r21 * t1 + r22 * f2
        t0, t1 = c * n0 - s * n1, s * n0 + c * n1
        parent[b] += y0
        parent[BLOCK + b] += y1
        parent[2 * BLOCK + b] += y2
        parent[3 * BLOCK + b] += r00 * t0 + r01 * t1 + r02 * n2 + p1 * y2 - p2 * y1
        parent[4 * BLOCK + b] += r10 * t0 + r11 * t1 + r12 * n2 + p2 * y0 - p0 * y2
        parent[5 * BLOCK + b] += r20 * t0 + r21 * t1 + r22 * n2 + p0 * y1 - p1 * y0


@inner
def rotor_moment(axis, ratio, state, velocity, acceleration, moment, own):
    """Reaction of a rotor with unit inertia, spinning with `ratio` times the joint's velocity in a carrier link.

    Rows of `moment`: ratio (qdd z + qd w x z), what the carrier feels, in its frame. `own`: ratio z.e + ratio^2 qdd,
    what the driven joint feels. From the kinetic energy k qd I z.w + k^2 qd^2 I / 2 (PA-10 (5), Powerball (5)).
    """
    n0, n1, n2 = axis[0], axis[1], axis[2]
    for b in range(BLOCK):
        w0, w1, w2 = state[b], state[BLOCK + b], state[2 * BLOCK + b]
        spin = ratio * velocity[b]
        rate = ratio * acceleration[b]
        moment[b] = rate * n0 + spin * (w1 * n2 - w2 * n1)
        moment[BLOCK + b] = rate * n1 + spin * (w2 * n0 - w0 * n2)
        moment[2 * BLOCK + b] = rate * n2 + spin * (w0 * n1 - w1 * n0)
        turning = state[3 * BLOCK + b] * n0 + state[4 * BLOCK + b] * n1 + state[5 * BLOCK + b] * n2
        own[b] = ratio * (turning + rate)


@inner
def add_moment_power(screw, moment, factor, dst):
    """Add `factor` times the product of the screw's angular part and a moment to `dst`."""
    for b in range(BLOCK):
        dst[b] += factor * (
            screw[3 * BLOCK + b] * moment[b]
            + screw[4 * BLOCK + b] * moment[BLOCK + b]
            + screw[5 * BLOCK + b] * moment[2 * BLOCK + b]
        )


@inner
def add_scaled(factor, src, dst):
    """Add `factor` times `src` to `dst`."""
    for b in range(BLOCK):
        dst[b] += factor * src[b]


@inner
def add_gram(rows, count, samples, gram):
    """Add the products of the first `count` of `rows`, with zeros behind them, to the lower tiles of `gram`."""
    for r in range(0, count, TILE):
        for c in range(0, r + 1, TILE):
            a00 = a01 = a02 = a10 = a11 = a12 = a20 = a21 = a22 = 0.0
            for b in range(samples):
                x0, x1, x2 = rows[r, b], rows[r + 1, b], rows[r + 2, b]
                y0, y1, y2 = rows[c, b], rows[c + 1, b], rows[c + 2, b]
                a00 += x0 * y0
                a01 += x0 * y1
                a02 += x0 * y2
                a10 += x1 * y0
                a11 += x1 * y1
                a12 += x1 * y2
                a20 += x2 * y0
                a21 += x2 * y1
                a22 += x2 * y2
            gram[r, c] += a00
            gram[r, c + 1] += a01
            gram[r, c + 2] += a02
            gram[r + 1, c] += a10
            gram[r + 1, c + 1] += a11
            gram[r + 1, c + 2] += a12
            gram[r + 2, c] += a20
            gram[r + 2, c + 1] += a21
            gram[r + 2, c + 2] += a22
