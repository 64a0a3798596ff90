"""A physically consistent body near ten estimated parameters, and what it is in words of a CAD program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.errors import DescriptionError
from armid.estimation.consistent.log_det import newton
from armid.files import checked, parse_yaml, read_text
from armid.payload.estimate import ReferenceValue
from armid.robot.description import DescriptionSection, Tensor
from armid.robot.inertia import INERTIAL_NAMES, from_com, impossibility, pseudo_inertia, to_com
from armid.robot.quantities import Number, Vector

PRIOR_WEIGHT = 1.0 / 30.0**2  # weight of the plausible body, known to 3000 % as the links are in `feasible`
TYPICAL_RADIUS_M = 0.1  # of gyration, of that body
LEAST_MASS_KG = 0.01
DONE = 1e-6  # expected decrease, over the weight, at which Newton's method stops
#: What a data sheet or Table 3 of Swevers et al. says about a payload: name and unit. Inertia is about the centre.
QUANTITIES = (
    *(("m", "kg"), ("c_x", "m"), ("c_y", "m"), ("c_z", "m")),
    *((name, "kg m^2") for name in ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")),
)
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
_SLOPES = np.array([pseudo_inertia(unit) for unit in np.eye(len(INERTIAL_NAMES))])


def consistent_body(estimate: Array, information: Array) -> Array:
    """The ten physically consistent parameters nearest to an estimate in the metric of its information.

    Minimises (x - estimate)' information (x - estimate) / 2 + w (trace(P0^-1 P) - log det P), with P the pseudo-inertia
    of x and P0 that of a plausible body where the estimate has its mass: a proper divergence (Lee, Wensing, Park 2020)
    that no impossible body can reach, and too weak to be seen where the data say something. A convex problem; Newton's
    method.
    """
    x = start = plausible_body(estimate)
    cost = _BodyCost(estimate, information, np.tensordot(_SLOPES, np.linalg.inv(pseudo_inertia(start)), axes=2))
    away = start - estimate
    weight = max(PRIOR_WEIGHT, float(away @ information @ away))
    while True:  # the weight falls step by step, so that Newton's method never meets the edge unprepared
        x, _ = newton(cost, x, weight, DONE * weight)
        if weight <= PRIOR_WEIGHT:
            return x
        weight = max(PRIOR_WEIGHT, weight / 10.0)


class _BodyCost(NamedTuple):
    """Distance from an estimate in the metric of its information, and divergence from a plausible body."""

    estimate: Array
    information: Array
    pull: Array

    def value(self, x: Array, strength: float) -> float:
        """Infinity where no body has these parameters."""
        try:
            root = np.linalg.cholesky(pseudo_inertia(x))
        except np.linalg.LinAlgError:
            return float("inf")
        away = x - self.estimate
        divergence = self.pull @ x - 2.0 * np.log(np.diag(root)).sum()
        return float(0.5 * away @ self.information @ away + strength * divergence)

    def derivatives(self, x: Array, strength: float) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        root = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(x)))  # the factor that `value` is finite with
        turned = root.T @ root @ _SLOPES
        gradient = self.information @ (x - self.estimate) + strength * (self.pull - np.einsum("iaa->i", turned))
        return gradient, self.information + strength * np.einsum("iab,jba->ij", turned, turned)


def plausible_body(estimate: Array) -> Array:
    """A round body of the estimated mass, about where its centre of mass is estimated."""
    mass = max(float(estimate[0]), LEAST_MASS_KG)
    centre = estimate[1:4] / mass
    centre *= min(1.0, 0.5 / max(float(np.linalg.norm(centre)), 1e-300))
    return from_com(mass, centre, 2.0 / 3.0 * mass * TYPICAL_RADIUS_M**2 * np.eye(3))


def described(parameters: Array) -> Array:
    """Mass, centre of mass and inertia about it, in the order of `QUANTITIES`."""
    mass, centre, tensor = to_com(parameters)
    return np.array([mass, *centre, *(tensor[pair] for pair in _PAIRS)])


def undescribed(values: Array) -> Array:
    """Ten parameters in the tool frame from the values of `QUANTITIES`."""
    tensor = np.empty((3, 3))
    for (row, column), value in zip(_PAIRS, values[4:], strict=True):
        tensor[row, column] = tensor[column, row] = value
    return from_com(float(values[0]), values[1:4], tensor)


def spread(parameters: Array, covariance: Array) -> tuple[Array, Array]:
    """Mass, centre of mass and inertia with their covariance, by the slopes over a thousandth of the uncertainty."""
    sigma = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    steps = np.maximum(1e-3 * sigma, 1e-9)
    slopes = np.empty((10, 10))
    for i, step in enumerate(steps):
        change = step * np.eye(10)[i]
        slopes[:, i] = (described(parameters + change) - described(parameters - change)) / (2.0 * step)
    return described(parameters), slopes @ covariance @ slopes.T


class _Inertia(Tensor, kw_only=True):
    """Products of inertia that are not stated are zero."""

    xy: Number = Number(0.0)
    xz: Number = Number(0.0)
    yz: Number = Number(0.0)


class _Reference(DescriptionSection):
    """Entries of a file with a known payload."""

    mass: Number
    com: Vector | None = None
    inertia: _Inertia | None = None


class _Written(msgspec.Struct, frozen=True):
    """What counts of a result that armid wrote."""

    parameters: Annotated[list[float], msgspec.Meta(min_length=10, max_length=10)]


def known_body(path: str | Path) -> Array:
    """Ten parameters of the payload that a file describes, as `load_reference` reads it; what it leaves out is 0."""
    values = load_reference(path)
    return undescribed(np.array([values.get(name, 0.0) for name, _ in QUANTITIES]))


def load_reference(path: str | Path) -> dict[str, float]:
    """Read a known payload: mass, and where known com and inertia about it, in the tool frame.

    A YAML or JSON file such as ``{mass: 9.579, com: [0.024, 0.09, -0.202], inertia: {xx: 0.612, yy: 0.063, …}}``, or
    what `armid payload -o` wrote.

    Returns:
        Values by the names of `QUANTITIES`, those that are known.
    """
    data = parse_yaml(read_text(path), str(path))
    if "format" in data:
        if not str(data["format"]).startswith("armid payload"):
            problem = "is not that of a payload; give mass, com and inertia, or what armid payload -o wrote"
            raise DescriptionError(str(path), "format", problem)
        return _named(checked(data, _Written, str(path)).parameters)
    file = checked(data, _Reference, str(path))
    if file.mass <= 0.0:
        raise DescriptionError(str(path), "mass", f"is {file.mass:g}; it must be above zero")
    values = {"m": float(file.mass)}
    if file.com is not None:
        values |= dict(zip(("c_x", "c_y", "c_z"), map(float, file.com), strict=True))
    if file.inertia is not None:
        values |= {f"I{axes}": float(getattr(file.inertia, axes)) for axes in ("xx", "yy", "zz", "xy", "xz", "yz")}
    if len(values) == len(QUANTITIES):
        reason = impossibility(undescribed(np.array([values[name] for name, _ in QUANTITIES])))
        if reason is not None:
            problem = f"no body can have it, since {reason}; it must be about the centre of mass"
            raise DescriptionError(str(path), "inertia", problem)
    return values


def compared(values: Array, sigmas: Array, reference: Mapping[str, float] | ArrayLike) -> tuple[ReferenceValue, ...]:
    """Estimates (in the order of `QUANTITIES`) beside those reference values that are known."""
    told = reference if isinstance(reference, Mapping) else _named(reference)
    rows = []
    for (name, unit), value, sigma in zip(QUANTITIES, values.tolist(), sigmas.tolist(), strict=True):
        if name in told:
            known = float(told[name])
            away = abs(value - known) / sigma if sigma > 0.0 else float("inf")
            rows.append(ReferenceValue(name, unit, value, sigma, known, away, away <= 2.0))
    return tuple(rows)


def _named(parameters: ArrayLike) -> dict[str, float]:
    """Ten parameters in the tool frame, as quantities."""
    return dict(zip((name for name, _ in QUANTITIES), described(np.asarray(parameters, dtype=float)), strict=True))
