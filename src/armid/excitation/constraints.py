"""Limits that are not linear in a trajectory's coefficients: torque, the tool's whereabouts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from armid.dynamics.kinematics import jacobian, tool_frame
from armid.dynamics.model import Model, Motion
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError, DataShapeError
from armid.robot.inertia import Array
from armid.robot.robot import Robot, inertial_names


class MotionConstraint(ABC):
    """Bounds on quantities that depend on the motion at one instant.

    Attributes:
        name: for margins and messages.
        lower, upper: (quantities,) bounds, infinite where there is none.
    """

    name: str
    lower: Array
    upper: Array

    @abstractmethod
    def values(self, motion: Motion) -> Array:
        """The bounded quantities, (samples, quantities)."""

    @abstractmethod
    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Derivatives with respect to position, velocity, acceleration, each (samples, quantities, joints)."""

    @property
    def size(self) -> Array:
        """Range between the bounds, 1 where one of them is infinite: what margins are measured in."""
        span = self.upper - self.lower
        return np.where(np.isfinite(span), span, 1.0)

    def margin(self, motion: Motion) -> float:
        """Smallest distance to a bound over all samples, as a share of the range; negative if one is broken."""
        values = self.values(motion)
        if not values.size:
            return np.inf
        return float(min(np.min((values - self.lower) / self.size), np.min((self.upper - values) / self.size)))


@dataclass(frozen=True, eq=False)
class TorqueLimit(MotionConstraint):
    """Joint torques of a prior model stay within a share of their limits.

    Attributes:
        model: the model.
        parameters: its parameter values, standard order.
        limit: (joints,) largest torque [N m], infinite where there is none.
        share: of the limit that may be used, the rest being the prior's uncertainty.
    """

    model: Model
    parameters: Array
    limit: Array
    share: float = 0.8
    name: str = "torque"
    _sensitivity: Sensitivity = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare the derivatives."""
        if self.limit.shape != (self.model.robot.n_joints,):
            raise DataShapeError(f"torque limits have shape {self.limit.shape}; one per joint is needed")
        object.__setattr__(self, "_sensitivity", Sensitivity(self.model, self.model.names))

    @property
    def upper(self) -> Array:  # type: ignore[override]
        """Largest torques allowed."""
        return self.share * self.limit

    @property
    def lower(self) -> Array:  # type: ignore[override]
        """Smallest torques allowed."""
        return -self.share * self.limit

    def values(self, motion: Motion) -> Array:
        """Torques."""
        return self._sensitivity.torque(motion, self.parameters)

    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Derivatives of the torques, by one adjoint pass per joint."""
        samples, joints = motion.q.shape
        result = np.empty((3, samples, joints, joints))
        for j, unit in enumerate(np.eye(joints)):
            bar = np.ascontiguousarray(np.broadcast_to(unit, (samples, joints)))
            result[:, :, j] = np.array(self._sensitivity.torque_gradient(motion, self.parameters, bar))
        return result[0], result[1], result[2]


@dataclass(frozen=True, eq=False)
class ToolBox(MotionConstraint):
    """The tool's origin stays inside a box of the base frame [m]."""

    robot: Robot
    lower: Array
    upper: Array
    name: str = "tool box"

    def __post_init__(self) -> None:
        """Refuse a box without room."""
        if not np.all(self.upper > self.lower):
            raise ArmidError(f"the tool box from {self.lower.tolist()} to {self.upper.tolist()} has no room inside")

    def values(self, motion: Motion) -> Array:
        """Tool positions."""
        return tool_frame(self.robot, motion.q)[:, :3, 3]

    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """Jacobian of the tool's position."""
        linear = jacobian(self.robot, motion.q)[:, :3]
        return linear, np.zeros_like(linear), np.zeros_like(linear)


@dataclass(frozen=True, eq=False)
class KeepOutBox(MotionConstraint):
    """The tool's origin keeps a distance from a box of the base frame [m]; the signed distance is the quantity."""

    robot: Robot
    corner: Array
    opposite: Array
    clearance: float = 0.0
    name: str = "keep-out box"

    @property
    def lower(self) -> Array:  # type: ignore[override]
        """Smallest distance allowed."""
        return np.array([self.clearance])

    @property
    def upper(self) -> Array:  # type: ignore[override]
        """No largest distance."""
        return np.array([np.inf])

    def values(self, motion: Motion) -> Array:
        """Signed distances, negative inside."""
        return self._distance(motion)[0][:, None]

    def slopes(self, motion: Motion) -> tuple[Array, Array, Array]:
        """The distance's gradient times the Jacobian."""
        gradient = self._distance(motion)[1]
        linear = np.einsum("ki,kij->kj", gradient, jacobian(self.robot, motion.q)[:, :3])[:, None]
        return linear, np.zeros_like(linear), np.zeros_like(linear)

    def _distance(self, motion: Motion) -> tuple[Array, Array]:
        point = tool_frame(self.robot, motion.q)[:, :3, 3]
        beyond = np.maximum(self.corner - point, point - self.opposite)
        outside = np.maximum(beyond, 0.0)
        far = np.linalg.norm(outside, axis=1)
        inside = far == 0.0
        sign = np.where(self.corner - point > point - self.opposite, -1.0, 1.0)
        gradient = sign * outside / np.where(inside, 1.0, far)[:, None]
        nearest = np.argmax(beyond, axis=1)
        rows = np.flatnonzero(inside)
        gradient[rows, nearest[rows]] = sign[rows, nearest[rows]]
        return np.where(inside, beyond.max(axis=1), far), gradient


def prior_values(model: Model) -> Array:
    """Parameter values to foresee torques with: the virtual arm's, else what a URDF or MJCF file states.

    Nonlinear friction enters through its Coulomb and viscous parts, taken between a tenth of and the full speed.
    """
    robot = model.robot
    values: dict[str, float] = {}
    if robot.virtual is not None and len(robot.virtual.inertia) == robot.n_joints:
        inertia = robot.virtual.inertia
        values |= {f"Im{i + 1}": v for i, v in enumerate(robot.virtual.rotor_inertia) if robot.rotors}
        for i, (law, coefficients) in enumerate(zip(robot.virtual.friction, robot.virtual.coefficients, strict=True)):
            speeds = np.array([0.1, 1.0]) * np.nan_to_num(robot.limits.velocity[i], nan=1.0)
            slow, fast = law.torque(speeds, coefficients)
            slope = (fast - slow) / (speeds[1] - speeds[0])
            values |= {f"fv{i + 1}": float(slope), f"fc{i + 1}": float(slow - slope * speeds[0])}
        for i, (k, l0) in enumerate(robot.virtual.springs, start=1):
            values |= {f"ks{i}": k, f"kl{i}": k * l0}
    elif robot.nominal_inertia is not None:
        inertia = robot.nominal_inertia
    else:
        raise ArmidError(
            f"{robot.source}: torques cannot be foreseen; the description has no virtual or nominal inertia"
        )
    for link, phi in enumerate(inertia, start=1):
        values |= dict(zip(inertial_names(link), phi.tolist(), strict=True))
    return model.vector({name: value for name, value in values.items() if name in model.names})
