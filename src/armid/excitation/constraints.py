"""Limits that are not linear in a trajectory's coefficients, torque and tool, and what foresees them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import jacobian, tool_frame
from armid.dynamics.model import Model, Motion
from armid.dynamics.parameters import FRICTION, Local
from armid.dynamics.sensitivity import Sensitivity
from armid.errors import ArmidError, DataShapeError
from armid.excitation.trajectory import Extrema
from armid.robot.parts import Friction
from armid.robot.robot import Counterbalance, Robot, inertial_names
from armid.torque.friction.linear import nearest_linear

DISTANCE = 0.3  # [m] that counts in the search as much as the whole range of a torque


class MotionConstraint(ABC):
    """Bounds on quantities that depend on the motion at one instant.

    Attributes:
        name: for margins and messages.
        lower, upper: (quantities,) bounds, infinite where there is none.
    """

    name: str
    lower: Array
    upper: Array
    #: Unit that margins are stated in; empty where they are shares of the range between two bounds.
    unit: ClassVar[str] = ""
    #: Whether there is one quantity per joint.
    per_joint: ClassVar[bool] = False

    def _keep(self, **values: Any) -> None:
        """Set what follows from the fields of a frozen constraint, once."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def values(self, motion: Motion) -> Array:
        """The bounded quantities, (samples, quantities)."""

    @abstractmethod
    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """Derivative of each sample's sum(bar * values) with respect to that sample's motion; `bar` as `values`."""

    def rates(self, speed: Array, extrema: Extrema) -> Array | None:
        """Proved bounds (samples, quantities) on how fast the quantities change, per second; None if none is known.

        Args:
            speed: (samples, joints) bounds on the speeds of the joints.
            extrema: of the trajectory.
        """
        return None

    def parts(self, motion: Motion, swing: Array) -> tuple[Array, Array, Array]:
        """The quantities in parts, each (samples, quantities): a continuous one, and the range of what may jump.

        Args:
            motion: at the samples.
            swing: (joints,) how much the velocity may change around a sample.
        """
        values = self.values(motion)
        return values, np.zeros_like(values), np.zeros_like(values)

    @property
    def size(self) -> Array:
        """Range between the bounds, 1 where one of them is infinite: what margins are measured in."""
        span = self.upper - self.lower
        return np.where(np.isfinite(span), span, 1.0)

    def room(self, motion: Motion) -> tuple[Array, Array]:
        """Distances to the nearer bound as shares of the range or of `scale`, and their slopes over the values."""
        values = self.values(motion)
        above, below = values - self.lower, self.upper - values
        return np.minimum(above, below) / self.scale, np.where(above <= below, 1.0, -1.0) / self.scale

    @property
    def scale(self) -> Array:
        """What counts in the search as much as the whole range of a torque, (quantities,)."""
        return self.size * (DISTANCE if self.unit == "m" else 1.0)

    def described(self) -> dict[str, Any]:
        """Name and numbers of the constraint, for the plan's file."""
        constraint: Any = self  # every subclass is a data class
        given = {entry.name: getattr(self, entry.name) for entry in fields(constraint) if entry.init}
        return {"name": self.name, **{k: v for k, v in given.items() if isinstance(v, int | float | np.ndarray)}}


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
    per_joint: ClassVar[bool] = True
    _sensitivity: Sensitivity = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare the derivatives."""
        robot = self.model.robot
        if self.limit.shape != (robot.n_joints,):
            raise DataShapeError(f"torque limits have shape {self.limit.shape}; one per joint is needed")
        unknown = [joint.name for joint, limit in zip(robot.joints, self.limit, strict=True) if not limit > 0.0]
        if unknown:
            raise ArmidError(
                f"{robot.source}: limits.torque of {', '.join(unknown)} is not known or not positive; "
                "give it in a robot file (`armid new` writes one)"
            )
        allowed = self.share * self.limit
        self._keep(lower=-allowed, upper=allowed, _sensitivity=Sensitivity(self.model, self.model.names))

    def values(self, motion: Motion) -> Array:
        """Torques, with Coulomb friction smoothed for the search (see `Sensitivity`)."""
        return self._sensitivity.torque(motion, self.parameters) + self.model.counterbalance_torque(motion.q)

    def parts(self, motion: Motion, swing: Array) -> tuple[Array, Array, Array]:
        """Torques without friction, and the range of friction with its true jump where the velocity may change sign."""
        smooth = self.parameters.copy()
        low, high = np.zeros_like(motion.q), np.zeros_like(motion.q)
        for k, parameter in enumerate(self.model.parameters):
            if parameter.kind != FRICTION or not isinstance(parameter.column, Local) or not smooth[k]:
                continue
            weight, law = parameter.column.weight, _FRICTION[parameter.column.kind]
            velocity, reach = motion.qd @ weight, float(swing @ np.abs(weight))
            # Every law rises with velocity, so that its range lies between its values at the ends.
            ends = np.stack([law(velocity - reach), law(velocity + reach)])[:, :, None] * (smooth[k] * weight)
            low, high = low + ends.min(axis=0), high + ends.max(axis=0)
            smooth[k] = 0.0
        return self.model.inverse_dynamics(*motion, smooth), low, high

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """One adjoint pass, and the slopes of counterbalances."""
        result = self._sensitivity.torque_gradient(motion, self.parameters, np.ascontiguousarray(bar))
        for table in self.model.robot.counterbalances:
            j = table.joint - 1
            result.q[:, j] += bar[:, j] * _table_slope(motion.q[:, j], table)
        return result


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

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """Jacobian of the tool's position."""
        return of_position(np.einsum("ki,kij->kj", bar, jacobian(self.robot, motion.q)[:, :3]))

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest speed of the tool."""
        return np.repeat(_tool_speed(self.robot, speed, extrema), 3, axis=1)


@dataclass(frozen=True, eq=False)
class KeepOutBox(MotionConstraint):
    """The tool's origin keeps a distance from a box of the base frame [m]; the signed distance is the quantity."""

    robot: Robot
    corner: Array
    opposite: Array
    clearance: float = 0.0
    name: str = "keep-out box"
    unit: ClassVar[str] = "m"

    def __post_init__(self) -> None:
        """Refuse what is no box."""
        if not (np.all(self.opposite > self.corner) and 0.0 <= self.clearance < np.inf):
            raise ArmidError(
                f"the {self.name} from {self.corner.tolist()} to {self.opposite.tolist()} with clearance "
                f"{self.clearance} is no box; give its lower and its upper corner, and a clearance of 0 or more"
            )
        self._keep(lower=np.array([self.clearance]), upper=np.array([np.inf]))

    def values(self, motion: Motion) -> Array:
        """Signed distances, negative inside."""
        return self._distance(motion)[0][:, None]

    def pull_back(self, motion: Motion, bar: Array) -> Motion:
        """The distance's gradient times the Jacobian."""
        gradient = bar * self._distance(motion)[1]
        return of_position(np.einsum("ki,kij->kj", gradient, jacobian(self.robot, motion.q)[:, :3]))

    def rates(self, speed: Array, extrema: Extrema) -> Array:
        """Greatest speed of the tool."""
        return _tool_speed(self.robot, speed, extrema)

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


def of_position(bar: Array) -> Motion:
    """A derivative with respect to position alone."""
    return Motion(bar, np.zeros_like(bar), np.zeros_like(bar))


#: Friction laws of single coefficients, as in the kernel but sharp; all of them rise with velocity.
_FRICTION: dict[str, Callable[[Array], Array]] = {
    "velocity": lambda u: u,
    "sign": np.sign,
    "one": np.ones_like,
    "velocity_up": lambda u: np.maximum(u, 0.0),
    "velocity_down": lambda u: np.minimum(u, 0.0),
    "moving_up": lambda u: np.where(u > 0.0, 1.0, 0.0),
    "moving_down": lambda u: np.where(u < 0.0, -1.0, 0.0),
}


def _table_slope(q: Array, table: Counterbalance) -> Array:
    """Slope [N m/rad] of a tabulated torque; 0 outside the table."""
    steps = np.diff(table.torque) / np.diff(table.position)
    inside = (q >= table.position[0]) & (q <= table.position[-1])
    segment = np.clip(np.searchsorted(table.position, q, side="right") - 1, 0, len(steps) - 1)
    return np.where(inside, steps[segment], 0.0)


def _tool_speed(robot: Robot, speed: Array, extrema: Extrema) -> Array:
    """Bounds (samples, 1) on the speed of the tool's origin [m/s]."""
    return (speed @ lever_arms(robot, robot.n_joints, robot.tool[:3, 3], extrema))[:, None]


def lever_arms(robot: Robot, link: int, point: Array, extrema: Extrema) -> Array:
    """Upper bounds (joints,) on the speed of a point per unit of each joint's speed, [m/rad] or [m/m].

    For a turning joint that is the greatest distance of the point from the axis in any posture, the lengths between
    them laid end to end; for a sliding joint it is 1; for joints that do not move the point it is 0.

    Args:
        robot: the robot.
        link: number of the link that carries the point, 0 for the base.
        point: in the link's frame [m].
        extrema: positions that sliding joints may take.
    """
    arms = np.zeros(robot.n_joints)
    beyond = 0.0  # greatest distance of the point from the origin of the joint frame reached so far
    offset = point
    for j in reversed(robot.path_to(link)):
        joint = robot.joints[j]
        local = joint.link_frame[:3, :3] @ offset + joint.link_frame[:3, 3]
        if joint.prismatic:
            arms[j] = 1.0
            ends = [local + np.array([0.0, 0.0, q]) for q in (extrema.lower[j], extrema.upper[j])]
            beyond += max(float(np.linalg.norm(end)) for end in ends)
        else:
            arms[j] = np.hypot(local[0], local[1]) + beyond
            beyond += float(np.linalg.norm(local))
        offset = joint.placement[:3, 3]
    return arms


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
            values |= _linear_friction(i + 1, law, coefficients, robot.limits.velocity[i])
        for i, (k, l0) in enumerate(robot.virtual.springs, start=1):
            values |= {f"ks{i}": k, f"kl{i}": k * l0}
    elif robot.nominal_inertia is not None:
        inertia = robot.nominal_inertia
        if robot.nominal_friction is not None:
            for i, (viscous, coulomb) in enumerate(robot.nominal_friction, start=1):
                values |= {f"fv{i}": float(viscous), f"fc{i}": float(coulomb)}
        for i, spring in enumerate(robot.linear_springs, start=len(robot.springs) + 1):
            values |= {f"ks{i}": spring.stiffness, f"kl{i}": spring.stiffness * spring.rest}
        if robot.nominal_rotors is not None:
            reflected = zip(robot.nominal_rotors, robot.drives, strict=True)
            values |= {f"Im{i}": float(v) / drive.gear_ratio**2 for i, (v, drive) in enumerate(reflected, start=1)}
    else:
        raise ArmidError(
            f"{robot.source}: torques cannot be foreseen; the description has no virtual or nominal inertia"
        )
    for link, phi in enumerate(inertia, start=1):
        values |= dict(zip(inertial_names(link), phi.tolist(), strict=True))
    return model.vector({name: value for name, value in values.items() if name in model.names})


def _linear_friction(joint: int, law: Friction, coefficients: Mapping[str, float], fastest: float) -> dict[str, float]:
    """Viscous and Coulomb friction that come near a law, for both directions together (the greater) and for each."""
    offset = coefficients["fo"] if law.offset else 0.0
    speeds = np.array([0.1, 1.0]) * np.nan_to_num(fastest, nan=1.0)
    parts = {
        way: nearest_linear(speeds, sign * (law.torque(sign * speeds, coefficients) - offset))
        for way, sign in (("p", 1.0), ("n", -1.0))
    }
    both = max(parts.values(), key=lambda part: part[1] + part[0] * speeds[1])
    result = {f"fo{joint}": offset}
    for suffix, (viscous, coulomb) in {"": both, **parts}.items():
        result |= {f"fv{joint}{suffix}": viscous, f"fc{joint}{suffix}": coulomb}
    return result
