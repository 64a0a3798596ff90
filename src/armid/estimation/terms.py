"""Friction terms beyond Coulomb and viscous friction: shapes over velocity and load, each with one coefficient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import UnknownNameError

#: kind of term: prefix of its parameter's name, unit of its coefficient, what it is.
KINDS = {
    "root": ("fr", "N m (s/rad)^0.5", "viscous friction that grows less than the speed, sign(v) sqrt|v|"),
    "stribeck": ("fs", "N m", "friction that fades with speed, sign(v) exp(-|v|/vs)"),
    "asymmetry": ("fa", "N m s/rad", "viscous friction that differs by direction, |v|"),
    "load": ("fl", "1", "Coulomb friction in proportion to the load, sign(v) |load torque|"),
}


@dataclass(frozen=True)
class FrictionTerm:
    """One shape of one joint; its torque is a coefficient times `shape`.

    Attributes:
        kind: one of `KINDS`.
        joint: index, from 0.
        constant: speed vs [rad/s] of a Stribeck term; not used by the others.
    """

    kind: str
    joint: int
    constant: float = 0.0

    def __post_init__(self) -> None:
        """Check the kind."""
        if self.kind not in KINDS:
            raise UnknownNameError("friction term", self.kind, KINDS)

    @property
    def name(self) -> str:
        """Name of its coefficient, such as ``fl2``."""
        return f"{KINDS[self.kind][0]}{self.joint + 1}"

    @property
    def unit(self) -> str:
        """Unit of its coefficient."""
        return KINDS[self.kind][1]

    def shape(self, velocity: Array, load: Array | None) -> Array:
        """Values (samples,) for velocities [rad/s] and load torques [N m] of its joint."""
        sign = np.sign(velocity)
        if self.kind == "root":
            return sign * np.sqrt(np.abs(velocity))
        if self.kind == "stribeck":
            return sign * np.exp(-np.abs(velocity) / self.constant)
        if self.kind == "asymmetry":
            return np.abs(velocity)
        if load is None:
            raise ValueError("a load term needs the load torque")
        return sign * np.abs(load)

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {"kind": self.kind, "joint": self.joint, "constant": self.constant}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> FrictionTerm:
        """Inverse of `to_data`."""
        return cls(str(data["kind"]), int(data["joint"]), float(data["constant"]))
