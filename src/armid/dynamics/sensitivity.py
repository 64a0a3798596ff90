"""Derivatives of information and torque with respect to the motion, for the design of experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array, read_only
from armid.dynamics import adjoint, kernel
from armid.dynamics.blocks import BLOCK, STATE_ROWS, memory
from armid.dynamics.factor import joint_grams, mirrored
from armid.dynamics.model import Model, Motion
from armid.dynamics.threads import over_samples

#: Width [rad/s] of the tanh that stands for the sign of velocity while a trajectory is being optimised.
SIGN_WIDTH = 0.02
#: Of one joint's columns in the block from a sample on, (columns seen, BLOCK); written to the last argument.
Cotangent = Callable[[int, int, Array, Array], None]


class Sensitivity:
    """Information matrix and torque of a model along a motion, and their derivatives.

    Coulomb friction enters through tanh(velocity / width), so that derivatives exist; `width` 0 means the sharp sign.
    """

    def __init__(self, model: Model, parameters: Sequence[str], *, width: float = SIGN_WIDTH) -> None:
        """Prepare for the wanted columns."""
        model.robot.refuse_undriven("torques of this arm cannot be differentiated", passive=False)
        self.model = model
        self.names = tuple(parameters)
        columns = model.columns(self.names)
        smooth = (columns.local_kind >= kernel.SIGN) & (columns.local_kind < kernel.SPRING_STIFFNESS)
        constant = columns.local_constant.copy()
        constant[smooth & (columns.local_kind != kernel.ONE), 1] = width
        self.columns = columns._replace(local_constant=constant)
        self.tree = model.tree._replace(slot=np.arange(model.robot.n_joints))
        self._seen = [np.ix_(seen, seen) for seen in map(np.flatnonzero, columns.position >= 0)]

    def information(self, motion: Motion, weights: ArrayLike | None = None) -> Array:
        """The matrix sum_j weight_j W_j' W_j / samples, (parameters, parameters)."""
        samples, joints = motion.q.shape
        grams = joint_grams(self.model, self.columns, motion, motion.q)
        weight = np.ones(joints) if weights is None else np.asarray(weights, dtype=float)
        result = np.zeros((len(self.names), len(self.names)))
        for gram, one, seen, used in zip(grams, weight, self._seen, self.columns.used, strict=True):
            result[seen] += one / samples * gram[:used, :used]
        return mirrored(result)

    def information_gradient(self, motion: Motion, bar: Array, weights: ArrayLike | None = None) -> Motion:
        """Derivative of a scalar with respect to the motion, given its derivative `bar` to the information matrix."""
        samples, joints = motion.q.shape
        weight = np.ones(joints) if weights is None else np.asarray(weights, dtype=float)
        both = bar + bar.T
        matrices = [one / samples * both[seen] for one, seen in zip(weight, self._seen, strict=True)]

        def cotangent(joint: int, _: int, columns: Array, result: Array) -> None:
            np.dot(matrices[joint], columns, out=result)

        return self._gradient(motion, cotangent)

    def torque(self, motion: Motion, values: Array) -> Array:
        """Torque (samples, joints) for values of the wanted parameters."""
        samples, joints = motion.q.shape
        rows = memory(len(self.names), joints, -(-samples // BLOCK), BLOCK)
        self.model.fill(self.columns, motion, 0, samples, rows)
        result: Array = np.einsum("cjk,c->kj", rows.reshape(len(self.names), joints, -1)[:, :, :samples], values)
        return result

    def torque_gradient(self, motion: Motion, values: Array, torque_bar: Array) -> Motion:
        """Derivative of each sample's sum(torque_bar * torque) with respect to that sample's motion."""
        shares = [values[seen[0]] for seen in self._seen]

        def cotangent(joint: int, first: int, _: Array, result: Array) -> None:
            here = torque_bar[first : first + BLOCK, joint]
            np.multiply(shares[joint], here, out=result[:, : len(here)])

        return self._gradient(motion, cotangent)

    def _gradient(self, motion: Motion, cotangent: Cotangent) -> Motion:
        out = np.empty((3, *motion.q.shape))
        over_samples(lambda _, a, b: self._reverse(motion, a, b, cotangent, out), len(motion.q))
        return Motion(*out)

    def _reverse(self, motion: Motion, begin: int, end: int, cotangent: Cotangent, out: Array) -> None:
        """Block by block: the columns, their cotangents, and from these the motion's to `out`."""
        tree, used = self.tree, self.columns.used
        joints, size = len(used), int(used.max())
        scratch, bars = kernel.scratch(tree), (memory(STATE_ROWS * BLOCK), *adjoint.scratch(tree))
        columns, bar = memory(joints, size, BLOCK), memory(joints, size, BLOCK)
        seen = [(joint, columns[joint, :count], bar[joint, :count]) for joint, count in enumerate(used)]
        use, grams = np.zeros((0, 0), dtype=np.uint8), np.zeros((0, 0, 0))  # all samples; none wanted
        given = tree, self.columns, kernel.packed_places(tree, self.columns, size), *read_only(*motion, motion.q), use
        for first in range(begin, end, BLOCK):
            kernel.fill(*given, first, first + BLOCK, columns.reshape(-1, 1, BLOCK), grams, *scratch)
            for joint, own, result in seen:
                cotangent(joint, first, own, result)
            adjoint.reverse(tree, self.columns, bar, *scratch, *bars, first, out)
