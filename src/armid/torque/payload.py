"""Torque of an arm with something in its hand: the columns of its own model, followed by the ten of the payload."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics.model import Motion
from armid.robot.inertia import INERTIAL_NAMES, INERTIAL_UNITS, change_of_frame
from armid.robot.robot import inertial_names
from armid.torque.model import Filter, Kept, TorqueModel

PAYLOAD_NAMES = tuple(f"{name}L" for name in INERTIAL_NAMES)


class LoadedTorqueModel(TorqueModel):
    """tau = W x + W_L x_L, Swevers (12) and (13): what a model describes, and a body fixed to the last link.

    Attributes:
        carried: what load-dependent friction and gains of the weight take for the payload, ten parameters in the tool
            frame.
    """

    def __init__(self, own: TorqueModel, carried: Array | None = None) -> None:
        """Take over the columns of the arm without payload."""
        super().__init__(
            own.robot, terms=own.terms, load_values=own.load_values, known_torque=own.known, model=own.model
        )
        self.carried = np.zeros(10) if carried is None else np.asarray(carried, dtype=float)
        self._to_link = change_of_frame(own.robot.tool)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns: base parameters, terms, payload."""
        return (*super().names, *PAYLOAD_NAMES)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the columns' parameters."""
        return (*super().units, *INERTIAL_UNITS)

    @cached_property
    def joint_columns(self) -> tuple[Indices, ...]:
        """For each joint the columns of its rows; those between base and tool have the payload's."""
        first = len(self.names) - 10
        payload = np.arange(first, first + 10)
        moving = np.abs(self.robot.ratios[list(self.robot.path_to(self.robot.n_joints))]).sum(axis=0)
        pairs = zip(super().joint_columns, moving, strict=True)
        return tuple(np.concatenate([own, payload]) if moves else own for own, moves in pairs)

    def regressor(self, motion: Motion, filtered: Filter = np.asarray, kept: Kept | None = None) -> Array:
        """The matrix [W | W_L], (samples, joints, columns), `filtered` along the samples."""
        own = super().regressor(motion, filtered, kept)[:, :, : len(self.names) - 10]
        payload = filtered(self.model.regressor(*motion, inertial_names(self.robot.n_joints))) @ self._to_link
        return np.concatenate([own, payload], axis=2)

    def linear_torque(self, motion: Motion, values: Array, kept: Kept | None = None) -> Array:
        """The product [W | W_L] x (samples, joints)."""
        return super().linear_torque(motion, values[:-10], kept) + self._payload_torque(motion, values[-10:])

    def load(self, motion: Motion) -> Array | None:
        """Rigid-body torque that load terms go by, with what is carried."""
        own = super().load(motion)
        return own if own is None or not self.carried.any() else own + self._payload_torque(motion, self.carried)

    def weight(self, motion: Motion) -> Array | None:
        """Torque against gravity that gains of the weight go by, with what is carried."""
        own = super().weight(motion)
        if own is None or not self.carried.any():
            return own
        still = np.zeros_like(motion.q)
        return own + self._payload_torque(Motion(motion.q, still, still), self.carried)

    def _payload_torque(self, motion: Motion, payload: Array) -> Array:
        """Torque (samples, joints) of ten parameters in the tool frame."""
        vector = np.zeros(len(self.model.names))
        n = self.robot.n_joints
        vector[10 * (n - 1) : 10 * n] = self._to_link @ payload
        return self.model.linear_torque(*motion, vector)
