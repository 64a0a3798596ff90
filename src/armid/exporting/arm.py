"""What is exported: the torque of a fit by its causes, from full parameters that other programs can hold."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model, Motion
from armid.dynamics.parameters import FRICTION, INERTIAL, ROTOR, SPRING, CoupledRotor, Parameter
from armid.errors import ArmidError
from armid.escaping import identifier
from armid.estimation.fit import Fit
from armid.files import plain
from armid.robot.inertia import impossibility
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names
from armid.torque.friction.linear import nearest_linear

SPEED, ACCELERATION = 2.0, 5.0  # [rad/s], [rad/s^2] of random states where a joint states no limit
FRICTION_STATES = 2000  # at which the nearest viscous and Coulomb friction is found
FEW = 3  # coefficients of a term that are named one by one
SLOWEST = 0.05  # share of a joint's speed below which no random state lies: friction jumps at rest

# Causes of torque, in the order in which they are listed.
LINKS, ROTORS, ROTOR_COUPLING = "links", "rotors", "rotor coupling"
MOTOR_INERTIA, MOTOR_FRICTION = "inertia of coupled motors", "friction of coupled motors"
JOINT_FRICTION, OFFSET, LOAD_LOSS = "friction", "offset", "load-proportional loss"
SPRINGS, COUNTERBALANCE = "springs", "counterbalance"


class ExportError(ArmidError):
    """A fit cannot be written in the wanted form."""


@dataclass(frozen=True, eq=False)
class IdentifiedArm:
    """A fit as full parameters.

    Attributes:
        fit: the fit.
        values: all parameters of its model, standard order.
        complete: the values are physically consistent links; otherwise base parameters with zeros in place of the
            others, which give the same torque but are no bodies.
    """

    fit: Fit
    values: Array
    complete: bool

    @property
    def robot(self) -> Robot:
        """The robot of the fit."""
        return self.fit.robot

    @cached_property
    def model(self) -> Model:
        """Its linear model."""
        return self.fit.torque_model.model

    @cached_property
    def by_name(self) -> dict[str, float]:
        """Parameter values by name."""
        return dict(zip(self.model.names, self.values.tolist(), strict=True))

    @cached_property
    def links(self) -> Array:
        """Inertial parameters (links, 10) in link frames."""
        return self.values[: 10 * len(self.robot.links)].reshape(-1, 10)

    @cached_property
    def identifier(self) -> str:
        """The robot's name as programming languages want it."""
        return identifier(self.robot.name)

    @cached_property
    def coefficients(self) -> dict[str, float]:
        """Coefficients of the friction terms beyond the model's own, by name."""
        first = len(self.model.base.kept)
        return dict(zip(self.fit.names[first:], self.fit.values[first:].tolist(), strict=True))

    @cached_property
    def load(self) -> Array | None:
        """Parameters whose rigid-body torque is the load of load terms, standard order; None without such terms."""
        loads = self.fit.load_values
        if loads is None or not any(term.loaded for term in self.fit.terms):
            return None
        return self._inertial(loads)

    @cached_property
    def load_loss(self) -> tuple[Array, Array] | None:
        """Slope and offset (joints, 2) of the torque in proportion to weight, and whose weight, standard order.

        It was known beforehand, or is a term of the fit; None without either.
        """
        known, terms = self.fit.known_torque, [term for term in self.fit.terms if term.formula.weighted]
        if known is not None and known.load_loss is not None:
            if terms:
                raise ArmidError("torque in proportion to weight is both known beforehand and estimated; keep one")
            return known.load_loss, self.model.vector(dict(known.weight or {}))
        if not terms:
            return None
        loss = np.zeros((self.robot.n_joints, 2))
        for term in terms:
            loss[term.joint, 0] = self.coefficients[term.names[0]]
        return loss, self._inertial(self.fit.load_values or {})

    def _inertial(self, loads: Mapping[str, float]) -> Array:
        """Inertial base parameters of some values, in standard order, all others zero."""
        inertial = {p.name for p in self.model.parameters if p.kind == INERTIAL}
        wanted = {name: loads[name] for name in self.model.base.kept if name in inertial}
        return np.array([wanted.get(name, 0.0) for name in self.model.names])

    @cached_property
    def reflected(self) -> Array:
        """Inertia (joints,) that each rotor adds to its own joint [kg m^2]."""
        result = np.zeros(self.robot.n_joints)
        for parameter in self.model.parameters:
            if parameter.kind == ROTOR and not parameter.name.startswith("Imc"):
                ratio = self.robot.drives[parameter.number - 1].gear_ratio
                result[parameter.number - 1] = ratio**2 * self.by_name[parameter.name]
        return result

    def torque(self, motion: Motion) -> Array:
        """Torque (samples, joints) of all causes; delays left out."""
        result: Array = np.sum(list(self.parts(motion).values()), axis=0)
        return result

    def parts(self, motion: Motion) -> dict[str, Array]:
        """Torque (samples, joints) by cause; causes the arm does not have are left out."""

        def of(test: Callable[[Parameter], bool]) -> Array:
            return self._linear(motion, [p.name for p in self.model.parameters if test(p)])

        zero = np.zeros_like(motion.q)
        coupled = {p.number for p in self.model.parameters if isinstance(p.column, CoupledRotor)}
        own = self.reflected * [joint + 1 in coupled for joint in range(self.robot.n_joints)]
        sums = {
            LINKS: of(lambda p: p.kind == INERTIAL),
            ROTORS: motion.qdd * self.reflected,
            ROTOR_COUPLING: of(lambda p: isinstance(p.column, CoupledRotor)) - motion.qdd * own,
            MOTOR_INERTIA: of(lambda p: p.name.startswith("Imc")),
            JOINT_FRICTION: self.friction(motion),
            MOTOR_FRICTION: of(lambda p: p.name.startswith(("fvc", "fcc"))),
            OFFSET: zero + [self.offset(joint) for joint in range(self.robot.n_joints)],
            SPRINGS: of(lambda p: p.kind == SPRING),
            COUNTERBALANCE: self.model.counterbalance_torque(motion.q),
        }
        if self.load_loss is not None:
            loss, links = self.load_loss
            sums[LOAD_LOSS] = loss[:, 0] * self.model.gravity_torque(motion.q, links) + loss[:, 1]
        return {cause: torque for cause, torque in sums.items() if np.any(torque)}

    def sizes(self, motion: Motion) -> dict[str, Array]:
        """Largest sums of the absolute terms of torque, gravity (joints,) and mass matrix (joints * joints,).

        A term is one parameter's share. Where such a sum is much larger than what it is the sum of, terms cancel, and
        round-off is as large as the terms make it.
        """
        n, still = self.robot.n_joints, np.zeros_like(motion.q)
        size = np.abs(self.values)
        inertia = size * [p.kind in (INERTIAL, ROTOR) for p in self.model.parameters]
        weight = self.model.regressor(motion.q, still, still)
        columns = [self.model.regressor(motion.q, still, still + unit) - weight for unit in np.eye(n)]
        mass = np.stack([np.abs(column) @ inertia for column in columns], axis=2)
        return {
            "torque": (np.abs(self.model.regressor(*motion)) @ size).max(axis=0),
            "gravity": (np.abs(weight) @ inertia).max(axis=0),
            "mass matrix": mass.reshape(len(motion.q), -1).max(axis=0),
        }

    def friction(self, motion: Motion) -> Array:
        """Friction (samples, joints) of each joint in its own velocity and load, without offsets."""
        result = self.linear_friction(motion)
        load = None if self.load is None else self._rigid(motion, self.load)
        for term in self.fit.terms:
            if term.formula.weighted:  # `load_loss`
                continue
            part = None if load is None else load[:, term.joint]
            own = np.array([self.coefficients[name] for name in term.names])
            result[:, term.joint] += term.columns(motion.qd[:, term.joint], part) @ own
        for joint, known in enumerate(self._known_friction):
            if known is not None:
                law, values = known
                still = float(values["fo"]) if law.offset else 0.0
                result[:, joint] += law.torque(motion.qd[:, joint], values) - still
        return result

    def linear_friction(self, motion: Motion) -> Array:
        """The share of the friction that is the model's own: viscous and Coulomb friction, maybe by direction."""
        return self._linear(motion, [p.name for p in self.model.parameters if p.kind == FRICTION and _of_joint(p.name)])

    def curve_words(self, joint: int) -> list[str]:
        """What a joint's friction is made of beside viscous and Coulomb friction."""
        mine = [term for term in self.fit.terms if term.joint == joint]
        words = [t.law if len(t.names) > FEW else f"{t.law} ({', '.join(t.names)})" for t in mine]
        own = (p.name for p in self.model.parameters if p.kind == FRICTION and p.number == joint + 1)
        if any(name[-1] in "pn" for name in own):
            words.append("difference between directions")
        known = self._known_friction[joint]
        if known is not None and (not known[0].formula.linear or known[0].per_direction):
            words.append(f"{known[0].law} law")
        return words

    def beyond_description(self, joint: int) -> bool:
        """Whether a joint has friction that its description's law does not have: terms, or what was known before."""
        return self._known_friction[joint] is not None or any(term.joint == joint for term in self.fit.terms)

    def offset(self, joint: int) -> float:
        """Constant torque of a joint [N m]."""
        known = self._known_friction[joint]
        extra = float(known[1]["fo"]) if known is not None and known[0].offset else 0.0
        return self.by_name.get(f"fo{joint + 1}", 0.0) + extra

    def has_curve(self, joint: int) -> bool:
        """Whether a joint's friction is more than viscous and Coulomb friction alike in both directions."""
        return bool(self.curve_words(joint))

    @property
    def _known_friction(self) -> tuple[tuple[Friction, Mapping[str, float]] | None, ...]:
        known = self.fit.known_torque
        return (None,) * self.robot.n_joints if known is None else known.friction

    def _linear(self, motion: Motion, names: list[str]) -> Array:
        """Torque of some parameters alone."""
        wanted = np.isin(self.model.names, names)
        return self._rigid(motion, np.where(wanted, self.values, 0.0)) if wanted.any() else np.zeros_like(motion.q)

    def _rigid(self, motion: Motion, vector: Array) -> Array:
        return self.model.inverse_dynamics(*motion, vector) - self.model.counterbalance_torque(motion.q)


def _of_joint(name: str) -> bool:
    return not name.startswith(("fo", "fvc", "fcc"))


def arm_of(fit: Fit, *, complete: bool) -> IdentifiedArm:
    """The arm of a fit.

    Args:
        fit: the fit.
        complete: ask for physically consistent links; otherwise base parameters will do where the fit has no links.

    Raises:
        ExportError: the fit has no links, or some that are not physically consistent.
    """
    model = fit.torque_model.model
    if fit.standard_parameters is None and not complete:
        return IdentifiedArm(fit, model.vector(dict(zip(model.base.kept, fit.values.tolist(), strict=False))), False)
    if fit.standard_parameters is None:
        raise ExportError(
            f"the fit of {fit.robot.name} (method {fit.method}) has base parameters only, from which no links can be "
            "written; make it with `armid identify --method feasible`, or export to c, python or yaml"
        )
    values = np.array([fit.standard_parameters[name] for name in model.names])
    for number in range(1, len(fit.robot.links) + 1):
        reason = impossibility([fit.standard_parameters[name] for name in inertial_names(number)])
        if reason is not None:
            raise ExportError(
                f"link {number} of the fit of {fit.robot.name} is not physically consistent: {reason}; make the fit "
                "with `armid identify --method feasible`"
            )
    return IdentifiedArm(fit, values, True)


def random_states(robot: Robot, count: int, seed: int) -> Motion:
    """Random states over the whole of a robot's limits, no joint at rest."""
    rng = np.random.default_rng(seed)
    slides = np.array([joint.prismatic for joint in robot.joints])
    reach, scale = np.where(slides, 0.5, np.pi), np.where(slides, 0.25, 1.0)
    known = robot.limits
    low, high, fastest, hardest = (
        np.where(np.isnan(stated), default, stated)
        for stated, default in (
            (known.lower, -reach),
            (known.upper, reach),
            (known.velocity, SPEED * scale),
            (known.acceleration, ACCELERATION * scale),
        )
    )
    shape = (count, robot.n_joints)
    q = rng.uniform(low, high, shape)
    qd = fastest * rng.uniform(SLOWEST, 1.0, shape) * rng.choice([-1.0, 1.0], shape)
    return Motion(q, qd, hardest * rng.uniform(-1.0, 1.0, shape))


@dataclass(frozen=True, eq=False)
class LinearFriction:
    """What `<dynamics>` of a URDF and a joint of an MJCF can say.

    Attributes:
        damping: (joints,) [N m s/rad].
        coulomb: (joints,) [N m].
        curved: (joints,) whether the joint has more friction than these two, which are then the nearest ones.
    """

    damping: Array
    coulomb: Array
    curved: Array

    def torque(self, qd: Array) -> Array:
        """Friction torque (samples, joints)."""
        return self.damping * qd + self.coulomb * np.sign(qd)


def linear_friction(arm: IdentifiedArm, seed: int = 0) -> LinearFriction:
    """Non-negative viscous and Coulomb friction of each joint.

    Where the fit's friction is just that, its own values; elsewhere the least-squares fit to the part of its curve that
    changes sign with the velocity, over the joint's whole range of speeds and random loads.
    """
    motion = random_states(arm.robot, FRICTION_STATES, seed)
    forwards = arm.friction(motion)
    backwards = arm.friction(Motion(motion.q, -motion.qd, motion.qdd))
    odd = 0.5 * (forwards - backwards) * np.sign(motion.qd)
    joints = arm.robot.n_joints
    damping, coulomb = np.zeros((2, joints))
    curved = np.array([arm.has_curve(joint) for joint in range(joints)])
    for joint in range(joints):
        stated = [_stated(arm, joint, name) for name in ("fv", "fc")]
        curved[joint] |= min(stated) < 0.0
        if not curved[joint]:
            damping[joint], coulomb[joint] = stated
        else:
            damping[joint], coulomb[joint] = nearest_linear(np.abs(motion.qd[:, joint]), odd[:, joint])
    return LinearFriction(damping, coulomb, curved)


def _stated(arm: IdentifiedArm, joint: int, name: str) -> float:
    """A joint's own coefficient and that of friction known beforehand."""
    known = None if arm.fit.known_torque is None else arm.fit.known_torque.friction[joint]
    extra = 0.0 if known is None else float(known[1].get(name, 0.0))
    return arm.by_name.get(f"{name}{joint + 1}", 0.0) + extra


def text_of(*values: float) -> str:
    """Numbers with a space between them, each of which reads back as the same double."""
    return " ".join(repr(float(value) + 0.0) for value in values)


def fit_digest(fit: Fit) -> str:
    """SHA-256 of what a fit's torque depends on."""
    names = ("columns", "values", "standard_parameters", "terms", "load_values", "known_torque", "robot")
    data = {name: plain(getattr(fit, name)) for name in names}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
