"""What is known before the experiment: links from CAD, a URDF or an earlier fit, with a stated strength."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.errors import DescriptionError
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.semidefinite import Condition, upper_triangle
from armid.estimation.fit import Fit, load_fit
from armid.estimation.problem import EstimationError
from armid.files import FieldError, checked, parse_yaml, read_text
from armid.notes import Note, note
from armid.robot.description import Body, DescriptionSection
from armid.robot.inertia import impossibility, pseudo_inertia
from armid.robot.load import load_robot
from armid.robot.quantities import Number, PerJoint
from armid.robot.robot import Robot, inertial_names
from armid.torque.model import TorqueModel

SOLID = 0.02  # [m] radius of gyration below which a prior's link counts as this thick: CAD may state point masses
VAGUE = 1e4  # relative standard deviation of what a prior does not speak of
STRONGEST = 1e-6  # smallest relative standard deviation: less is beyond what a double can weigh


@dataclass(frozen=True, eq=False)
class Prior:
    """Values known beforehand, and how firmly.

    A link's deviation is measured by the Frobenius norm of P0^-1/2 (P - P0) P0^-1/2, with P the link's pseudo-inertia
    and P0 the prior's: to second order the distance of positive definite matrices that does not depend on units or
    frames (Lee, Wensing, Park 2018/2020). A `strength` of 0.05 takes this norm's parts to have a standard deviation of
    0.05: the mass is known to 5 %, the centre of mass to about 4 % of the link's radius of gyration.

    Attributes:
        values: by parameter name; for a link all ten parameters, for rotors and friction single ones.
        strength: relative standard deviation.
        source: where the values come from.
        link_strength: strength of single links, by number.
        data_sha256: data that an earlier fit was made from, by hash; they must not count twice.
    """

    values: Mapping[str, float]
    strength: float = 0.05
    source: str = "prior"
    link_strength: Mapping[int, float] = field(default_factory=dict)
    data_sha256: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check strengths and links."""
        for strength in (self.strength, *self.link_strength.values()):
            if not STRONGEST <= strength <= VAGUE:
                raise EstimationError(
                    f"{self.source}: the strength of a prior is {strength:g}; give a relative standard deviation such "
                    "as 0.05, at least 1e-6"
                )
        for number in self.links:
            finite = bool(np.isfinite(self.link(number)).all())
            reason = impossibility(self.link(number)) if finite else "a number is not finite"
            if reason is None and not self.link(number).any():
                reason = "it has no mass"
            if reason is not None:
                raise EstimationError(f"{self.source}: link {number} of the prior is impossible: {reason}")

    @property
    def links(self) -> tuple[int, ...]:
        """Numbers of the links it speaks of."""
        numbers = [int(name[1:]) for name in self.values if name[0] == "m" and name[1:].isdigit()]
        for number in numbers:
            missing = [name for name in inertial_names(number) if name not in self.values]
            if missing:
                raise EstimationError(f"{self.source}: link {number} of the prior lacks {', '.join(missing)}")
        return tuple(sorted(numbers))

    def link(self, number: int) -> Array:
        """Ten parameters of a link."""
        return np.array([self.values[name] for name in inertial_names(number)])

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        own = {str(number): strength for number, strength in self.link_strength.items()}
        return {"source": self.source, "strength": self.strength, "link_strength": own, "values": dict(self.values)}

    def of_link(self, number: int) -> float | None:
        """Strength of a link's values; None if it does not speak of the link."""
        return self.link_strength.get(number, self.strength) if number in self.links else None

    def rows(self, unknowns: Unknowns) -> tuple[Array, Array]:
        """Its deviations as rows A x - b of unit variance."""
        links, other = self.link_rows(unknowns), self.other_rows(unknowns)
        rows, target = np.vstack([links[0], other[0]]), np.concatenate([links[1], other[1]])
        if not rows.any():
            raise EstimationError(f"{self.source}: the prior speaks of no unknown parameter of this robot")
        return rows, target

    def link_rows(self, unknowns: Unknowns) -> tuple[Array, Array]:
        """Deviations of links."""
        blocks, targets = [np.zeros((0, len(unknowns.names)))], [np.zeros(0)]
        robot = unknowns.model.robot
        for number in self.links:
            if number > len(robot.links):
                raise EstimationError(
                    f"{self.source}: the prior speaks of link {number}; {robot.name} has {len(robot.links)} links"
                )
            rows, target = deviation_rows(unknowns.pseudo_inertia(number), pseudo_inertia(self.link(number)))
            strength = self.of_link(number) or self.strength
            blocks.append(rows / strength)
            targets.append(target / strength)
        return np.vstack(blocks), np.concatenate(targets)

    def other_rows(self, unknowns: Unknowns) -> tuple[Array, Array]:
        """Deviations of rotors and friction."""
        inertial = {name for number in self.links for name in inertial_names(number)}
        names = [name for name, value in self.values.items() if name in unknowns.names and value != 0.0]
        single = [name for name in names if name not in inertial]
        rows = np.zeros((len(single), len(unknowns.names)))
        for row, name in zip(rows, single, strict=True):
            row[unknowns.names.index(name)] = 1.0 / (self.strength * abs(self.values[name]))
        return rows, np.array([np.sign(self.values[name]) / self.strength for name in single])

    def note(self) -> Note:
        """What it speaks of, and how firmly."""
        own = {str(number): strength for number, strength in sorted(self.link_strength.items())}
        given = {"source": self.source, "strength": self.strength, "link_strength": own}
        return note("estimation.prior", links=list(self.links), **given)


def solid(body: Array) -> Array:
    """The pseudo-inertia of a body, made at least `SOLID` thick in every direction."""
    about = body[:3, :3] - np.outer(body[:3, 3], body[:3, 3]) / body[3, 3]
    eigenvalues, axes = np.linalg.eigh(about)
    result = body.copy()
    result[:3, :3] += (axes * (np.maximum(eigenvalues, body[3, 3] * SOLID**2) - eigenvalues)) @ axes.T
    return result


def deviation_rows(link: Condition, reference: Array) -> tuple[Array, Array]:
    """Rows A x - b whose squares sum to the squared norm of P0^-1/2 (P(x) - P0) P0^-1/2."""
    root = np.linalg.inv(np.linalg.cholesky(solid(reference)))
    slopes = upper_triangle(root @ link.slopes @ root.T)
    return slopes.T, upper_triangle(root @ (reference - link.constant) @ root.T)


def base_precision(torque_model: TorqueModel, prior: Prior) -> tuple[Array, Array]:
    """Precision matrix and mean of the estimated columns that follow from a prior on all parameters."""
    unknowns = Unknowns(torque_model.model, torque_model.terms)
    rows, target = prior.rows(unknowns)
    matrix = unknowns.matrix
    with one_blas_thread():
        told = np.linalg.norm(rows, axis=0) > 0.0
        size = _typical(rows, matrix)
        # What the prior speaks of and what it does not are independent of each other.
        scaled = rows[:, told] * size[told]
        half = (matrix[:, told] * size[told]) @ np.linalg.pinv(scaled)
        vague = VAGUE * matrix[:, ~told] * size[~told]
        covariance = half @ half.T + vague @ vague.T
        mean = matrix[:, told] @ (size[told] * np.linalg.lstsq(scaled, target)[0])
        length = np.sqrt(np.diag(covariance))
        precision = np.linalg.inv(covariance / np.outer(length, length)) / np.outer(length, length)
    return 0.5 * (precision + precision.T), mean


def _typical(rows: Array, matrix: Array) -> Array:
    """Size of each parameter: its prior standard deviation, or that of the groups it enters."""
    length = np.linalg.norm(rows, axis=0)
    known = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
    if np.all(length > 0.0):
        return known
    largest = np.max(np.abs(matrix) * known, axis=1, initial=0.0)
    default = float(largest.max())
    shares = [
        max((largest[g] / abs(column[g]) for g in np.flatnonzero(column) if largest[g] > 0.0), default=default)
        for column in matrix.T
    ]
    return np.where(length > 0.0, known, shares)


def nominal_prior(robot: Robot, strength: float = 0.05) -> Prior:
    """Prior from the inertias that a URDF or MJCF file states; links without mass are left out."""
    if robot.nominal_inertia is None:
        raise EstimationError(
            f"{robot.source} states no inertias to serve as a prior; use a URDF with <inertial>, or a prior file"
        )
    values: dict[str, float] = {}
    for number, phi in enumerate(robot.nominal_inertia, start=1):
        if np.any(phi != 0.0):
            values |= dict(zip(inertial_names(number), phi.tolist(), strict=True))
    return Prior(values, strength, robot.source)


def fit_prior(fit: Fit, strength: float = 0.05, source: str = "an earlier fit") -> Prior:
    """Prior from the full link parameters of a physically consistent fit."""
    if fit.standard_parameters is None:
        raise EstimationError(f"{source} has no link parameters; make it with the method `feasible`")
    massive = [n for n in range(1, len(fit.robot.links) + 1) if fit.standard_parameters.get(f"m{n}", 0.0) > 0.0]
    names = {name for number in massive for name in inertial_names(number)}
    values = {name: value for name, value in fit.standard_parameters.items() if name in names}
    return Prior(values, strength, source, data_sha256=tuple(fit.history.get("data_sha256", ())))


class _PriorLink(Body):
    """A link of a prior file."""

    link: int | None = None
    strength: Number | None = None


class _PriorFile(DescriptionSection):
    """Entries of a prior file."""

    links: tuple[_PriorLink, ...] = ()
    rotor_inertia: PerJoint[Number] | None = None
    strength: Number = Number(0.05)
    source: str = ""


def read_prior(path: str | Path, robot: Robot, strength: float | None = None) -> Prior:
    """Prior from a file: YAML (below), a URDF or MJCF file, or a fit.

    YAML holds ``links``, each with ``mass`` [kg], ``com`` [m] and ``inertia`` about it [kg m^2] as in the ``virtual``
    section of a robot file, and optionally ``link`` (its number; else its place in the list) and ``strength``. Beside
    them may stand ``strength``, ``source`` and ``rotor_inertia`` per joint [kg m^2, motor side].
    """
    path = Path(path)
    if path.suffix == ".json":
        return fit_prior(load_fit(path), 0.05 if strength is None else strength, str(path))
    if path.suffix in (".urdf", ".xml", ".mjcf"):
        other = load_robot(path)
        if len(other.links) != len(robot.links):
            raise EstimationError(f"{path} has {len(other.links)} joints; {robot.name} has {len(robot.links)}")
        return nominal_prior(other, 0.05 if strength is None else strength)
    file = checked(parse_yaml(read_text(path), str(path)), _PriorFile, str(path))
    values: dict[str, float] = {}
    own: dict[int, float] = {}
    for place, entry in enumerate(file.links, start=1):
        number = place if entry.link is None else entry.link
        if not 1 <= number <= len(robot.links):
            problem = f"is {number}; {robot.name} has the links 1 to {len(robot.links)}"
            raise DescriptionError(str(path), f"links[{place}].link", problem)
        if entry.strength is not None:
            own[number] = float(entry.strength)
        values |= dict(zip(inertial_names(number), entry.parameters.tolist(), strict=True))
    if file.rotor_inertia is not None:
        try:
            rotors = file.rotor_inertia.over(robot.n_joints, "rotor_inertia")
        except FieldError as error:
            raise DescriptionError(str(path), error.field, error.problem) from None
        values |= {f"Im{joint}": float(value) for joint, value in enumerate(rotors, start=1)}
    if not values:
        raise DescriptionError(str(path), "links", "is empty; give mass, com and inertia of each link")
    return Prior(values, float(file.strength) if strength is None else strength, file.source or str(path), own)


def parse_prior(text: str, robot: Robot) -> Prior:
    """Prior from ``FILE:STRENGTH``, ``FILE``, or ``nominal[:STRENGTH]`` for the robot's own URDF."""
    name, colon, number = text.rpartition(":")
    strength: float | None = None
    if colon and name:
        try:
            strength = float(number.removesuffix("%")) / (100.0 if number.endswith("%") else 1.0)
        except ValueError:
            name = text
    else:
        name = text
    if name == "nominal":
        return nominal_prior(robot, 0.05 if strength is None else strength)
    return read_prior(name, robot, strength)
