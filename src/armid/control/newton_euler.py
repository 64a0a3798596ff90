"""Inverse dynamics and momentum of one sample: compiled Newton-Euler recursions for controllers and observers.

The kernels of `armid.dynamics` work on blocks of 128 samples, which a control cycle would have to pay for one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array, read_only
from armid.compiling import njit, njit_within
from armid.dynamics import kernel
from armid.dynamics.model import Model
from armid.dynamics.parameters import frame_changes

RIGID = ("inertial", "rotor")
_compiled: Any = njit(error_model="numpy", cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=False)
_inner: Any = njit_within(error_model="numpy", nogil=True, _nrt=False)


class RigidTorque:
    """Torque of links and rotors, M(q) qdd + C(q, qd) qd + G(q), sample by sample.

    Attributes:
        values: parameters in the model's standard order; those of friction and springs count as zero.
    """

    def __init__(self, model: Model, values: ArrayLike) -> None:
        """Prepare the constants of the recursion."""
        model.robot.refuse_undriven("armid cannot control this arm")
        kinds = np.array([parameter.kind in RIGID for parameter in model.parameters])
        self.values: Array = np.where(kinds, np.asarray(values, dtype=float), 0.0)
        columns, tree, n = model.columns(), model.tree, model.robot.n_joints
        links = self.values[: 10 * n].reshape(-1, 10)
        phi = np.ascontiguousarray(np.einsum("nij,nj->ni", frame_changes(model.robot), links))
        own = columns.local_kind == kernel.ACCELERATION
        weight, size = (
            columns.local_weight[own],
            self.values[columns.local_column[own]] * columns.local_constant[own, 0],
        )
        reflected = np.ascontiguousarray(np.einsum("k,ki,kj->ij", size, weight, weight))
        self._constants = (
            tree.parent,
            tree.prismatic,
            tree.rotation,
            tree.translation,
            phi,
            columns.rotor_start,
            columns.rotor_joint,
            columns.rotor_ratio,
            columns.rotor_axis,
            self.values[columns.rotor_column],
            reflected,
        )
        self._gravity = tree.gravity
        self._memory = (np.empty((n, 3, 3)), np.empty((n, 3)), np.empty((n, 9)), np.empty((n, 6)))

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque (joints,) [N m] of one sample, each argument contiguous, (joints,)."""
        out = np.empty(len(q))
        _recursion(*self._constants, self._gravity, q, qd, qdd, *self._memory, out)
        return out

    def momentum(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """Generalised momentum M qd, and G - C' qd: what changes it beside the torque; (samples, joints) each."""
        q, qd = read_only(*(np.ascontiguousarray(array, dtype=np.float64) for array in (q, qd)))
        momentum, bias = np.empty_like(q), np.empty_like(q)
        still, now, weightless = np.zeros(q.shape[1]), np.empty((2, q.shape[1])), np.zeros(3)
        _momenta(self._constants, self._gravity, weightless, q, qd, still, now, self._memory, momentum, bias)
        return momentum, bias


@_compiled
def _recursion(  # type: ignore[no-untyped-def]
    parent, prismatic, rotation, translation, phi, rotor_start, rotor_joint, rotor_ratio, rotor_axis, rotor, reflected,
    gravity, q, qd, qdd, turn, arm, state, wrench, out,
):  # fmt: skip
    """Outward: rotations, angular velocity, angular and linear acceleration; inward: forces and moments."""
    n = len(q)
    for i in range(n):
        out[i] = 0.0
        for j in range(n):
            out[i] += reflected[i, j] * qdd[j]
    for i in range(n):
        _place(rotation[i], translation[i], prismatic[i], q[i], turn[i], arm[i])
        _outward(parent[i], prismatic[i], gravity, turn[i], arm[i], qd[i], qdd[i], state, i)
        _newton_euler(phi[i], state[i], wrench[i])
        for r in range(rotor_start[i], rotor_start[i + 1]):
            # PA-10 (5): k qd I z.w + k^2 qd^2 I / 2
            driven, z = rotor_joint[r], rotor_axis[r]
            spin, rate = rotor[r] * rotor_ratio[r] * qd[driven], rotor[r] * rotor_ratio[r] * qdd[driven]
            w, e = state[i, :3], state[i, 3:6]
            wrench[i, 3] += rate * z[0] + spin * (w[1] * z[2] - w[2] * z[1])
            wrench[i, 4] += rate * z[1] + spin * (w[2] * z[0] - w[0] * z[2])
            wrench[i, 5] += rate * z[2] + spin * (w[0] * z[1] - w[1] * z[0])
            turning = e[0] * z[0] + e[1] * z[1] + e[2] * z[2]
            out[driven] += rotor_ratio[r] * (rotor[r] * turning + rate)
    for i in range(n - 1, -1, -1):
        out[i] += wrench[i, 2] if prismatic[i] else wrench[i, 5]
        p = parent[i]
        if p >= 0:
            _inward(turn[i], arm[i], wrench[i], wrench[p])


@_inner
def _place(rotation, translation, slides, q, turn, arm):  # type: ignore[no-untyped-def]
    """Joint frame in its parent's: rotation `turn` and origin `arm`."""
    if slides:
        for r in range(3):
            arm[r] = translation[r] + rotation[r, 2] * q
            for c in range(3):
                turn[r, c] = rotation[r, c]
        return
    s, c = np.sin(q), np.cos(q)
    for r in range(3):
        arm[r] = translation[r]
        turn[r, 0] = c * rotation[r, 0] + s * rotation[r, 1]
        turn[r, 1] = c * rotation[r, 1] - s * rotation[r, 0]
        turn[r, 2] = rotation[r, 2]


@_inner
def _outward(p, slides, gravity, turn, arm, qd, qdd, state, i):  # type: ignore[no-untyped-def]
    """Angular velocity (0-2), angular (3-5) and linear acceleration (6-8) of a link, in its joint frame."""
    w0 = w1 = w2 = e0 = e1 = e2 = 0.0
    a0, a1, a2 = -gravity[0], -gravity[1], -gravity[2]
    if p >= 0:
        w0, w1, w2, e0, e1, e2 = state[p, 0], state[p, 1], state[p, 2], state[p, 3], state[p, 4], state[p, 5]
        x, y, z = arm[0], arm[1], arm[2]
        u0, u1, u2 = w1 * z - w2 * y, w2 * x - w0 * z, w0 * y - w1 * x
        a0 = state[p, 6] + e1 * z - e2 * y + w1 * u2 - w2 * u1
        a1 = state[p, 7] + e2 * x - e0 * z + w2 * u0 - w0 * u2
        a2 = state[p, 8] + e0 * y - e1 * x + w0 * u1 - w1 * u0
    s = state[i]
    for k in range(3):
        s[k] = turn[0, k] * w0 + turn[1, k] * w1 + turn[2, k] * w2
        s[3 + k] = turn[0, k] * e0 + turn[1, k] * e1 + turn[2, k] * e2
        s[6 + k] = turn[0, k] * a0 + turn[1, k] * a1 + turn[2, k] * a2
    if slides:
        s[6] += 2.0 * s[1] * qd
        s[7] -= 2.0 * s[0] * qd
        s[8] += qdd
    else:
        s[3] += s[1] * qd
        s[4] -= s[0] * qd
        s[5] += qdd
        s[2] += qd


@_inner
def _newton_euler(phi, s, out):  # type: ignore[no-untyped-def]
    """Force (0-2) and moment about the frame's origin (3-5) that move a link with inertia `phi`."""
    m, x, y, z = phi[0], phi[1], phi[2], phi[3]
    w0, w1, w2, e0, e1, e2, a0, a1, a2 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8]
    along, speed = w0 * x + w1 * y + w2 * z, w0 * w0 + w1 * w1 + w2 * w2
    out[0] = m * a0 + e1 * z - e2 * y + w0 * along - x * speed
    out[1] = m * a1 + e2 * x - e0 * z + w1 * along - y * speed
    out[2] = m * a2 + e0 * y - e1 * x + w2 * along - z * speed
    l0 = phi[4] * w0 + phi[5] * w1 + phi[7] * w2
    l1 = phi[5] * w0 + phi[6] * w1 + phi[8] * w2
    l2 = phi[7] * w0 + phi[8] * w1 + phi[9] * w2
    out[3] = y * a2 - z * a1 + phi[4] * e0 + phi[5] * e1 + phi[7] * e2 + w1 * l2 - w2 * l1
    out[4] = z * a0 - x * a2 + phi[5] * e0 + phi[6] * e1 + phi[8] * e2 + w2 * l0 - w0 * l2
    out[5] = x * a1 - y * a0 + phi[7] * e0 + phi[8] * e1 + phi[9] * e2 + w0 * l1 - w1 * l0


@_inner
def _inward(turn, arm, own, parent):  # type: ignore[no-untyped-def]
    """Add a link's force and moment to its parent's."""
    f0 = turn[0, 0] * own[0] + turn[0, 1] * own[1] + turn[0, 2] * own[2]
    f1 = turn[1, 0] * own[0] + turn[1, 1] * own[1] + turn[1, 2] * own[2]
    f2 = turn[2, 0] * own[0] + turn[2, 1] * own[1] + turn[2, 2] * own[2]
    parent[0] += f0
    parent[1] += f1
    parent[2] += f2
    for r in range(3):
        parent[3 + r] += turn[r, 0] * own[3] + turn[r, 1] * own[4] + turn[r, 2] * own[5]
    parent[3] += arm[1] * f2 - arm[2] * f1
    parent[4] += arm[2] * f0 - arm[0] * f2
    parent[5] += arm[0] * f1 - arm[1] * f0


@_compiled
def _momenta(constants, gravity, weightless, q, qd, still, now, memory, momentum, bias):  # type: ignore[no-untyped-def]
    """Momentum p = M qd and G - C' qd of each sample: the recursion at rest, accelerated by qd without gravity.

    What it carries outward are then the links' velocities v_k, and inward the momenta h_k of all links from k on. With
    S_k the joint's axis, (C' qd)_k = d(kinetic energy) / dq_k = (v_k x S_k) . h_k: turning a joint turns all that
    follows, but not the velocity that comes from below.
    """
    prismatic, state, wrench, here, speed = constants[1], memory[2], memory[3], now[0], now[1]
    for k in range(len(q)):
        for i in range(len(still)):
            here[i], speed[i] = q[k, i], qd[k, i]
        _recursion(*constants, gravity, here, still, still, *memory, bias[k])
        _recursion(*constants, weightless, here, still, speed, *memory, momentum[k])
        for i in range(len(still)):
            w0, w1, v0, v1, h = state[i, 3], state[i, 4], state[i, 6], state[i, 7], wrench[i]
            if prismatic[i]:
                bias[k, i] -= w1 * h[0] - w0 * h[1]
            else:
                bias[k, i] -= w1 * h[3] - w0 * h[4] + v1 * h[0] - v0 * h[1]
