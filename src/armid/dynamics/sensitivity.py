"""Derivatives of information and torque with respect to the motion, for the design of experiments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics import adjoint, kernel
from armid.dynamics.blocks import BLOCK
from armid.dynamics.factor import joint_grams, mirrored
from armid.dynamics.model import Model, Motion
from armid.dynamics.threads import over_samples

#: Width [rad/s] of the tanh that stands for the sign of velocity while a trajectory is being optimised.
SIGN_WIDTH = 0.02


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
        size = int(self.columns.used.max())
        matrices, both = np.zeros((joints, size, size)), bar + bar.T
        for j, (seen, used) in enumerate(zip(self._seen, self.columns.used, strict=True)):
            matrices[j, :used, :used] = weight[j] / samples * both[seen]
        return self._gradient(motion, matrices, np.zeros(0), np.zeros((0, 0)))

    def torque(self, motion: Motion, values: Array) -> Array:
        """Torque (samples, joints) for values of the wanted parameters."""
        samples, joints = motion.q.shape
        memory = np.zeros((len(self.names), joints, -(-samples // BLOCK), BLOCK))
        self.model.fill(self.columns, motion, 0, samples, memory)
        result: Array = np.einsum("cjk,c->kj", memory.reshape(len(self.names), joints, -1)[:, :, :samples], values)
        return result

    def torque_gradient(self, motion: Motion, values: Array, torque_bar: Array) -> Motion:
        """Derivative of each sample's sum(torque_bar * torque) with respect to that sample's motion."""
        size = int(self.columns.used.max())
        return self._gradient(motion, np.zeros((0, size, size)), values, torque_bar)

    def _gradient(self, motion: Motion, weights: Array, values: Array, torque_bar: Array) -> Motion:
        out = np.empty((3, *motion.q.shape))
        place = kernel.joint_places(self.columns, weights.shape[1])
        given = self.tree, self.columns, place, weights, values, torque_bar
        over_samples(lambda _, a, b: adjoint.gradient(*given, *motion, a, b, out), len(motion.q))
        return Motion(*out)
