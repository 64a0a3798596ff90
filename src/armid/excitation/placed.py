"""Points that move with the links of an arm: where they are, how fast they move, and the derivatives of both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.kinematics import all_frames
from armid.robot.robot import Robot


class LinkPoints:
    """Points fixed to links of an arm (0: the base), given in the links' frames, (points, 3) [m]."""

    def __init__(self, robot: Robot, links: Sequence[int], local: ArrayLike) -> None:
        """Find out which joints move which point."""
        self.robot, self.links, self.local = robot, list(links), np.reshape(np.asarray(local, dtype=float), (-1, 3))
        self.slides = np.array([joint.prismatic for joint in robot.joints])
        self.carries = np.zeros((robot.n_joints, len(self.links)))
        for k, link in enumerate(self.links):
            self.carries[list(robot.path_to(link)), k] = 1.0
        self._last: Placed | None = None

    def at(self, q: Array) -> Placed:
        """The points along a motion; those of the last one are kept for the next question."""
        if self._last is None or not np.array_equal(self._last.q, q):
            self._last = Placed(self, q)
        return self._last


class Placed:
    """Points in the base frame along a motion.

    Attributes:
        q: positions of the joints, (samples, joints).
        points: (samples, points, 3) [m].
    """

    def __init__(self, fixed: LinkPoints, q: Array) -> None:
        """Place the points."""
        self.q = q.copy()
        joints, frames = _frames(fixed.robot, q)
        self._axis, self._origin = joints[:, :, :3, 2], joints[:, :, :3, 3]
        self._slides, self._carries = fixed.slides, fixed.carries
        of = frames[:, fixed.links]
        self.points: Array = np.einsum("kmij,mj->kmi", of[..., :3, :3], fixed.local) + of[..., :3, 3]

    def pull_back(self, bar: Array) -> Array:
        """Derivative (samples, joints) of each sample's sum(bar * points) with respect to the positions."""
        force = np.einsum("jm,kmi->kji", self._carries, bar)
        moment = np.einsum("jm,kmi->kji", self._carries, cross(self.points, bar))
        turned = moment - cross(self._origin, force)
        return np.asarray(np.einsum("kji,kji->kj", self._axis, np.where(self._slides[:, None], force, turned)))

    def velocities(self, qd: Array) -> Array:
        """Of the points, (samples, points, 3) [m/s]."""
        return np.asarray(np.einsum("kmji,kj->kmi", self._columns, qd))

    def pull_back_velocities(self, qd: Array, bar: Array) -> tuple[Array, Array]:
        """Derivatives of each sample's sum(bar * velocities) with respect to positions and velocities of the joints.

        The column of joint i turns with every joint before it, and that of joint j > i moves joint i's point: together
        the derivative with respect to q_j is (turning speed up to j) x column_j + axis_j x (speed beyond j).
        """
        columns = self._columns
        moved = columns * qd[:, None, :, None]
        turning = np.einsum("jm,kji->kmji", self._carries, self._axis * np.where(self._slides, 0.0, qd)[..., None])
        turning = np.cumsum(turning, axis=2)
        beyond = moved.sum(axis=2, keepdims=True) - np.cumsum(moved, axis=2)
        axis = np.where(self._slides[:, None], 0.0, self._axis)[:, None] * self._carries.T[None, :, :, None]
        change = cross(turning, columns) + cross(axis, beyond)
        return np.einsum("kmi,kmji->kj", bar, change), np.einsum("kmi,kmji->kj", bar, columns)

    @cached_property
    def _columns(self) -> Array:
        """Linear Jacobians (samples, points, joints, 3)."""
        arm = self.points[:, :, None] - self._origin[:, None]
        axis = np.broadcast_to(self._axis[:, None], arm.shape)
        column = np.where(self._slides[:, None], axis, cross(axis, arm))
        return np.asarray(column * self._carries.T[None, :, :, None])


_last: tuple[Robot, Array, Array, Array] | None = None


def _frames(robot: Robot, q: Array) -> tuple[Array, Array]:
    """Joint frames, and frames of the base and all links; those of the last motion are kept for the next question."""
    global _last
    if _last is None or _last[0] is not robot or not np.array_equal(_last[1], q):
        joints, frames = all_frames(robot, q)
        base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
        _last = robot, q.copy(), joints, np.concatenate([base, frames], axis=1)
    return _last[2], _last[3]


def cross(a: Array, b: Array) -> Array:
    """Vector products along the last axis; `numpy.cross` spends most of its time on the shapes."""
    result = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        result[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return result
