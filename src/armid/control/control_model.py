"""What a controller knows of an arm: rigid-body torque, and the rest (friction, losses, springs)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from armid.arrays import Array
from armid.control.newton_euler import RIGID, RigidTorque
from armid.dynamics.model import Model, Motion
from armid.dynamics.views import published
from armid.errors import ArmidError
from armid.estimation.fit import Fit
from armid.excitation.constraints import prior_values
from armid.robot.robot import Robot


class ControlError(ArmidError):
    """A tracking experiment cannot be carried out as asked."""


@dataclass(frozen=True, eq=False)
class ControlModel:
    """A model in the form that controllers use: tau = M qdd + C qd + G + rest.

    Attributes:
        title: where it comes from, in words.
        model: linear model of the robot.
        values: parameters in standard order; of links and rotors only.
        rest: torque (samples, joints) [N m] of everything else as a function of motion: friction F and load loss S of
            PA-10 (21), springs, counterbalances.
    """

    title: str
    model: Model
    values: Array
    rest: Callable[[Motion], Array]

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.model.robot

    @cached_property
    def rigid(self) -> RigidTorque:
        """M qdd + C qd + G of one sample."""
        return RigidTorque(self.model, self.values)

    def torque(self, motion: Motion) -> Array:
        """All of the torque (samples, joints) [N m]."""
        return _rigid(self.model, self.values, motion) + self.rest(motion)

    def mass_matrix(self, q: Array) -> Array:
        """M (samples, joints, joints).

        Raises:
            ControlError: it is not positive definite, so that no controller can be built on it.
        """
        mass = self.model.mass_matrix(q, self.values)
        smallest = np.linalg.eigvalsh(mass)[:, 0]
        if smallest.min() <= 0.0:
            posture = " ".join(f"{angle:.2f}" for angle in q[int(smallest.argmin())])
            raise ControlError(
                f"{self.title}: the mass matrix is not positive definite at the posture {posture}, no arm has such "
                "parameters; identify with --method feasible"
            )
        return mass


def fit_model(fit: Fit) -> ControlModel:
    """The identified model: estimated parameters, friction terms and whatever was known beforehand.

    Links are the fit's own where it has some, as in exports: with rounded angles in the robot's file they differ from
    base parameters, which are those of the exact angles, by as much as these are rounded.
    """
    model = fit.torque_model.model
    estimated = {name: float(value) for name, value in zip(fit.columns, fit.values, strict=True) if name in model.names}
    grouped = _only_rigid(model, model.vector(estimated))
    links = fit.standard_parameters
    values = grouped if links is None else _only_rigid(model, np.array([links[name] for name in model.names]))

    def rest(motion: Motion) -> Array:
        return fit.predict(motion, sigma=False).torque - _rigid(model, grouped, motion)

    return ControlModel("identified model", model, values, rest)


def nominal_model(robot: Robot) -> ControlModel:
    """What is known of an arm without identifying it.

    The inertias that a URDF or MJCF file states, with its friction; for arms of the library, which have none, the
    links and rotors of a published list, without friction and losses, which no maker's data sheet holds.

    Raises:
        ControlError: the description states neither.
    """
    if robot.nominal_inertia is not None:
        model = Model(replace(robot, virtual=None))
        stated = prior_values(model)
        values = _only_rigid(model, stated)
        return ControlModel(
            "nominal model (URDF or MJCF)",
            model,
            values,
            lambda motion: model.inverse_dynamics(*motion, stated) - _rigid(model, values, motion),
        )
    for name, data in robot.published.items():
        if any("formula" in row for row in data["parameters"]):
            try:
                return _published_model(robot, name)
            except ArmidError:  # of all links, where only some are in use
                continue
    raise ControlError(
        f"{robot.name}: the description states no nominal inertia (URDF, MJCF) and no published parameters, so there "
        "is no nominal model to compare with; leave `nominal` out"
    )


def _published_model(robot: Robot, name: str) -> ControlModel:
    """The smallest parameters that have the published values; others with the same values move the arm alike."""
    view = published(Model(robot), name)
    model = view.model
    rows = [row for row in robot.published[name]["parameters"] if "formula" in row]
    targets = np.array([float(row["value"]) for row in rows])
    free = np.array([p.kind in RIGID and p.name not in model.known for p in model.parameters])
    values = model.vector({})
    scale = np.array([1e-3 if p.kind == "rotor" else 1.0 for p in model.parameters])
    matrix = (view.matrix * scale)[:, free]
    found = np.linalg.lstsq(matrix, targets - view.matrix @ values, rcond=1e-10)[0]
    if np.abs(matrix @ found - (targets - view.matrix @ values)).max() > 1e-6 * np.abs(targets).max():
        raise ArmidError(f"{robot.name}: the published set {name!r} contradicts itself, so there is no nominal model")
    values[free] += found * scale[free]
    return ControlModel(
        f"nominal model (published {name}, no friction)",
        model,
        _only_rigid(model, values),
        lambda motion: model.counterbalance_torque(motion.q),
    )


def _only_rigid(model: Model, values: Array) -> Array:
    return np.where([parameter.kind in RIGID for parameter in model.parameters], values, 0.0)


def _rigid(model: Model, values: Array, motion: Motion) -> Array:
    return model.inverse_dynamics(*motion, values) - model.counterbalance_torque(motion.q)
