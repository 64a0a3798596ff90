"""What makes a set of parameters physically consistent, as conditions on the unknown parameters of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.parameters import FRICTION, ROTOR, SPRING, CoupledRotor
from armid.errors import ArmidError
from armid.estimation.consistent.semidefinite import Condition
from armid.robot.inertia import pseudo_inertia
from armid.robot.robot import Robot, inertial_names
from armid.torque.dissipation import resistances
from armid.torque.friction.term import FrictionTerm


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What else is known about the links; link numbers start at 1, points are in link frames.

    Attributes:
        mass: link -> least and largest mass [kg].
        total_mass: least and largest mass of all links together [kg].
        box: link -> lower and upper corner [m] of a box that holds all of its mass.
        ellipsoid: link -> centre and semi-axes [m] of an ellipsoid that holds all of its mass.
    """

    mass: Mapping[int, tuple[float, float]] | None = None
    total_mass: tuple[float, float] | None = None
    box: Mapping[int, tuple[Sequence[float], Sequence[float]]] | None = None
    ellipsoid: Mapping[int, tuple[Sequence[float], Sequence[float]]] | None = None

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Unknowns:
    """The unknown parameters of a model followed by the coefficients of friction terms, and what must hold for them.

    Attributes:
        model: the model.
        terms: friction terms beyond the model's own.
        names: of the unknowns.
        matrix: from the unknowns to base parameters and terms.
        conditions: what makes them possible.
    """

    def __init__(self, model: Model, terms: Sequence[FrictionTerm] = (), bounds: Bounds | None = None) -> None:
        """Collect the conditions: links and rotors, friction, springs, then `bounds`."""
        self.model, self.terms = model, tuple(terms)
        self.names = (*model.unknown, *(name for term in terms for name in term.names))
        self._index = {name: i for i, name in enumerate(self.names)}
        self._known = model.known
        conditions = [self.link(number) for number in range(1, len(model.robot.links) + 1)]
        conditions += self._scalars()
        if bounds is not None:
            conditions += self._bounded(bounds)
        base = model.base.matrix
        own = len(self.names) - base.shape[1]
        self.matrix = np.zeros((len(base) + own, len(self.names)))
        self.matrix[: len(base), : base.shape[1]] = base
        self.matrix[len(base) :, base.shape[1] :] = np.eye(own)
        # What holds no unknown is not for the solver to decide.
        self.conditions = tuple(c for c in conditions if c.slopes.any())

    def affine(self, coefficients: Mapping[str, float]) -> tuple[float, Array]:
        """A combination of parameters as constant and slopes; parameters that do not exist count as zero."""
        constant, slopes = 0.0, np.zeros(len(self.names))
        for name, value in coefficients.items():
            if name in self._index:
                slopes[self._index[name]] += value
            else:
                constant += value * self._known.get(name, 0.0)
        return constant, slopes

    def pseudo_inertia(self, number: int) -> Condition:
        """Pseudo-inertia of a link as it is modelled, rotors it carries included (augmented)."""
        return self._matrix(number, rotors=False)

    def link(self, number: int) -> Condition:
        """Pseudo-inertia of a link without the second moments of the rotors it carries.

        A rotor with inertia I_m about its axis z has second moments of at least (E - z z') I_m / 2 of its own.
        """
        return self._matrix(number, rotors=True)

    def _matrix(self, number: int, *, rotors: bool) -> Condition:
        parts = dict(zip(inertial_names(number), (pseudo_inertia(unit) for unit in np.eye(10)), strict=True))
        if rotors:
            for parameter in self.model.parameters:
                column = parameter.column
                if isinstance(column, CoupledRotor) and column.carrier == number - 1:
                    own = np.zeros((4, 4))
                    own[:3, :3] = -0.5 * (np.eye(3) - np.outer(column.axis, column.axis))
                    parts[parameter.name] = own
        constant, slopes = np.zeros((4, 4)), np.zeros((len(self.names), 4, 4))
        for name, part in parts.items():
            if name in self._index:
                slopes[self._index[name]] = part
            else:
                constant += self._known.get(name, 0.0) * part
        return Condition(f"link {number}", constant, slopes)

    def _inequality(self, name: str, coefficients: Mapping[str, float], constant: float = 0.0) -> Condition:
        known, slopes = self.affine(coefficients)
        return Condition(name, np.array([[constant + known]]), slopes[:, None, None])

    def _scalars(self) -> list[Condition]:
        """Rotors, friction and stiffness; offsets and preloads may have any sign."""
        curved = {term.joint for term in self.terms}
        result = []
        for parameter in self.model.parameters:
            free_sign = parameter.name.startswith(("fo", "kl"))
            by_curve = parameter.kind == FRICTION and parameter.number - 1 in curved and parameter.name[2] != "c"
            if parameter.kind in (ROTOR, FRICTION, SPRING) and not free_sign and not by_curve:
                result.append(self._inequality(parameter.name, {parameter.name: 1.0}))
        for joint in sorted(curved):
            result += [self._inequality(*one) for one in resistances(self.model, self.terms, joint)]
        return result

    def _bounded(self, bounds: Bounds) -> list[Condition]:
        result = []
        for number, (least, most) in (bounds.mass or {}).items():
            name = self._link_name(number, "m")
            result.append(self._inequality(f"least mass of link {number}", {name: 1.0}, -least))
            result.append(self._inequality(f"largest mass of link {number}", {name: -1.0}, most))
        if bounds.total_mass is not None:
            masses = [f"m{number}" for number in range(1, len(self.model.robot.links) + 1)]
            result.append(self._inequality("least total mass", dict.fromkeys(masses, 1.0), -bounds.total_mass[0]))
            result.append(self._inequality("largest total mass", dict.fromkeys(masses, -1.0), bounds.total_mass[1]))
        for number, (lower, upper) in (bounds.box or {}).items():
            for axis, (low, high) in enumerate(zip(lower, upper, strict=True)):
                # The mean of (x - low)(high - x) over a body between low and high is not negative; nor are those of
                # its factors.
                square = np.zeros((4, 4))
                square[axis, axis], square[3, 3] = -1.0, -low * high
                square[axis, 3] = square[3, axis] = 0.5 * (low + high)
                result.append(self._mean(f"box of link {number}", number, square))
                for sign, end in ((1.0, low), (-1.0, high)):
                    side = np.zeros((4, 4))
                    side[axis, 3] = side[3, axis] = 0.5 * sign
                    side[3, 3] = -sign * end
                    result.append(self._mean(f"box of link {number}", number, side))
        for number, (centre, axes) in (bounds.ellipsoid or {}).items():
            middle, inside = np.asarray(centre, dtype=float), np.zeros((4, 4))
            inside[:3, :3] = -np.diag(1.0 / np.square(np.asarray(axes, dtype=float)))
            inside[:3, 3] = inside[3, :3] = -inside[:3, :3] @ middle
            inside[3, 3] = 1.0 + middle @ inside[:3, :3] @ middle
            result.append(self._mean(f"ellipsoid of link {number}", number, inside))
        return result

    def _mean(self, name: str, number: int, weight: Array) -> Condition:
        """trace(weight P) >= 0 for the pseudo-inertia P of a link."""
        self._link_name(number, "m")
        whole = self.pseudo_inertia(number)
        constant = np.array([[float(np.sum(weight * whole.constant))]])
        return Condition(name, constant, np.tensordot(whole.slopes, weight, axes=2)[:, None, None])

    def _link_name(self, number: int, what: str) -> str:
        if not 1 <= number <= len(self.model.robot.links):
            robot = self.model.robot
            raise ArmidError(f"bounds are given for link {number}; {robot.name} has the links 1 to {len(robot.links)}")
        return f"{what}{number}"


def reach(robot: Robot) -> float:
    """Sum of the distances between neighbouring joints, and to the tool [m]."""
    return float(sum(_length(robot, number) for number in range(1, robot.n_joints + 1)))


def reference_bodies(robot: Robot, least: float = 0.0) -> Array:
    """Pseudo-inertias (links, 4, 4) of a plausible arm of this geometry whose mean link has 1 kg.

    Each link is a body around the middle between its joint and the next, as long as that, and as heavy in relation as
    what is left of the arm's reach beyond its joint. It decides what neither data nor prior do. No link is shorter than
    the share `least` of a typical one.
    """
    count = len(robot.links)
    lengths = np.array([_length(robot, number) for number in range(1, count + 1)])
    typical = max(float(lengths.mean()), 0.05)
    rest = np.array([sum(lengths[i] for i in range(k, count)) for k in range(count)]) + typical
    masses = rest / rest.mean()
    result = np.zeros((count, 4, 4))
    for index in range(count):
        start, end = _ends(robot, index + 1)
        middle = 0.5 * (start + end)
        spread = max(lengths[index], least * typical) ** 2 / 12.0 + (0.25 * typical) ** 2
        result[index, :3, :3] = spread * np.eye(3) + np.outer(middle, middle)
        result[index, :3, 3] = result[index, 3, :3] = middle
        result[index, 3, 3] = 1.0
        result[index] *= masses[index]
    return result


def _ends(robot: Robot, number: int) -> tuple[Array, Array]:
    """The link's own joint and the next one (or the tool), in the link's frame [m]."""
    frame = robot.links[number - 1].link_frame
    start = -frame[:3, :3].T @ frame[:3, 3]
    after = [joint.placement[:3, 3] for joint in robot.links if joint.parent == number]
    if after:
        return start, np.asarray(np.mean(after, axis=0))
    return start, robot.tool[:3, 3] if number == robot.n_joints else start


def _length(robot: Robot, number: int) -> float:
    start, end = _ends(robot, number)
    return float(np.linalg.norm(end - start))
