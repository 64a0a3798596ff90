"""What somebody states about an arm's parameters, and why no arm can have them, in words to check by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linprog, nnls

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.threads import one_blas_thread
from armid.dynamics.views import published
from armid.errors import ArmidError, UnknownNameError
from armid.estimation.consistent.conditions import Unknowns, reach, reference_bodies
from armid.estimation.consistent.semidefinite import minimise
from armid.estimation.fit import Fit
from armid.experiment.virtual import truth_of
from armid.robot.parts import Friction
from armid.robot.robot import Robot, inertial_names
from armid.validation.metrics import REACH

EXACT = 1e-6  # relative tolerance with which a witness must be possible


@dataclass(frozen=True, eq=False)
class Claim:
    """Values of combinations of an arm's parameters.

    Attributes:
        title: whose values.
        unknowns: the arm's unknown parameters and what makes them possible.
        entries: names of the combinations.
        values: stated values.
        matrix: (entries, unknowns); what is known beforehand is taken off `values` already.
        friction: stated friction law and coefficients per joint, joint side; empty where none is stated beside.
        full: whether all parameters of all links are stated one by one.
        witness: all unknowns, where they are stated too; if they are possible, so is the claim.
        printed: whether the entries are somebody's own choice, and not base parameters.
        covariance: of the values, where they contradict physics only beyond their intervals: estimates whose links are
            consistent, but whose friction is a curve that may be anything near zero; None where values are exact.
    """

    title: str
    unknowns: Unknowns
    entries: tuple[str, ...]
    values: Array
    matrix: Array
    friction: tuple[tuple[Friction, Mapping[str, float]], ...] = ()
    full: bool = False
    witness: Array | None = None
    printed: bool = False
    covariance: Array | None = None

    def doubt(self, weights: Array) -> float:
        """By how much a combination of the values may be off, at 95 %."""
        return 0.0 if self.covariance is None else REACH * float(np.sqrt(weights @ self.covariance @ weights))

    def witnessed(self) -> bool:
        """Whether the witness is possible and has the stated values."""
        if self.witness is None:
            return False
        size = max(float(np.abs(self.values).max()), 1e-300)
        if np.abs(self.matrix @ self.witness - self.values).max() > EXACT * size:
            return False
        for condition in self.unknowns.conditions:
            eigenvalues = np.linalg.eigvalsh(condition.matrix(self.witness))
            if eigenvalues[0] < -EXACT * max(abs(eigenvalues[-1]), abs(eigenvalues[0])) and eigenvalues[0] < -1e-12:
                return False
        return True


@dataclass(frozen=True, eq=False)
class BodyClaim:
    """Bodies stated by mass, centre of mass and inertia about it; without mass only the inertia counts.

    Attributes:
        title: whose values.
        bodies: name -> (mass [kg] or None, centre of mass [m], inertia tensor about it [kg m^2]).
    """

    title: str
    bodies: Mapping[str, tuple[float | None, Array, Array]]


def claim_of_fit(fit: Fit) -> Claim:
    """The base parameters and friction terms of a fit; a load coefficient is claimed where it differs from zero."""
    unknowns = Unknowns(fit.torque_model.model, fit.terms)
    loads = {name for term in fit.terms if term.loaded for name in term.names}
    unclear = np.isin(fit.columns, list(loads)) & (np.abs(fit.values) < 2.0 * fit.sigma)
    fit = replace(fit, values=np.where(unclear, 0.0, fit.values))
    witness = None if fit.standard_parameters is None else np.array([_of(fit, name) for name in unknowns.names])
    covariance = None if witness is None else fit.covariance
    given = (unknowns, fit.names, np.asarray(fit.values), unknowns.matrix)
    return Claim("fit", *given, witness=witness, covariance=covariance)


def _of(fit: Fit, name: str) -> float:
    """A link parameter of a fit, or the coefficient of a friction term."""
    if fit.standard_parameters is not None and name in fit.standard_parameters:
        return float(fit.standard_parameters[name])
    return float(fit.values[fit.columns.index(name)])


def claim_of_robot(robot: Robot) -> Claim:
    """The link inertias that a URDF or MJCF file, or the `virtual` section of a robot file, states."""
    if robot.nominal_inertia is None and robot.virtual is None:
        more = f"; its published sets are {', '.join(robot.published)}: use --published" if robot.published else ""
        raise ArmidError(f"{robot.source} states no inertias of links to audit{more}")
    if robot.nominal_inertia is not None:
        inertia, rotors, title = robot.nominal_inertia, robot.nominal_rotors, "its stated inertias"
    else:
        truth = truth_of(robot)
        inertia, rotors, title = truth.inertia, truth.rotor_inertia, "its virtual arm"
        robot = robot.first_links(len(inertia))
    robot = robot.simplified("none")
    model = Model(robot)
    unknowns = Unknowns(model)
    stated = {
        name: float(value)
        for number, phi in enumerate(inertia, start=1)
        for name, value in zip(inertial_names(number), phi, strict=True)
        if phi.any()
    }
    if rotors is not None:
        stated |= {f"Im{joint}": float(value) for joint, value in enumerate(rotors, start=1)}
    entries = tuple(name for name in unknowns.names if name in stated)
    matrix = np.eye(len(unknowns.names))[[unknowns.names.index(name) for name in entries]]
    values = np.array([stated[name] for name in entries])
    witness = np.array([stated.get(name, 0.0) for name in unknowns.names])
    return Claim(f"{robot.name}, {title}", unknowns, entries, values, matrix, full=True, witness=witness)


def claims_of_published(robot: Robot, name: str | None = None) -> list[Claim | BodyClaim]:
    """The published set called `name`, or all of them."""
    if not robot.published:
        raise ArmidError(f"{robot.name} has no published sets; leave --published out")
    if name is not None and name not in robot.published:
        raise UnknownNameError(f"published set of {robot.name}", name, robot.published)
    return [_published(robot, one) for one in (robot.published if name is None else (name,))]


def _published(robot: Robot, name: str) -> Claim | BodyClaim:
    data = robot.published[name]
    title = f"{robot.name}, {name}: {data.get('title', '')}".rstrip(": ")
    rows = data["parameters"]
    if not any("formula" in row for row in rows):
        return BodyClaim(title, _bodies(robot, name, {str(row["name"]): float(row["value"]) for row in rows}))
    # A list that names no rotor is about an arm without: its makers took them off, or left them out.
    if not any(re.search(r"\bIm\d", str(row.get("formula", ""))) for row in rows):
        robot = robot.without_rotors()
    view = published(Model(robot), name)
    unknowns = Unknowns(view.model)
    known = view.model.known
    values = np.array([float(row["value"]) for row in rows if "formula" in row])
    columns = {parameter: view.matrix[:, i] for i, parameter in enumerate(view.model.names)}
    for parameter, value in known.items():
        values = values - value * columns[parameter]
    matrix = np.column_stack([columns[parameter] for parameter in unknowns.names])
    told = matrix[:, [parameter[0] == "f" for parameter in unknowns.names]].any()
    friction = () if told else _friction(view.model.robot, data)
    return Claim(title, unknowns, view.entries, values, matrix, friction, printed=True)


def _friction(robot: Robot, data: Mapping[str, Any]) -> tuple[tuple[Friction, Mapping[str, float]], ...]:
    """Stated friction laws, joint by joint; sign and shape do not depend on the side of the gear."""
    stated = data.get("friction")
    if not stated:
        return ()
    law = Friction(stated["law"], per_direction=bool(stated.get("per_direction", False)))
    lists = stated["coefficients"]
    count = min(robot.n_joints, *(len(values) for values in lists.values()))
    return tuple((law, {name: float(values[joint]) for name, values in lists.items()}) for joint in range(count))


_LETTERS = {"Axx": (0, 0), "Byy": (1, 1), "Czz": (2, 2), "D": (1, 2), "E": (0, 2), "F": (0, 1)}
_PAYLOAD = ("m", "c_x", "c_y", "c_z", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")


def _bodies(robot: Robot, name: str, values: Mapping[str, float]) -> dict[str, tuple[float | None, Array, Array]]:
    if set(values) == set(_PAYLOAD):
        m, x, y, z, xx, yy, zz, xy, xz, yz = (values[key] for key in _PAYLOAD)
        return {"payload": (m, np.array([x, y, z]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))}
    tensors: dict[str, Array] = {}
    for key, value in values.items():
        match = re.fullmatch(r"([A-F])(xx|yy|zz)?(\d+)", key)
        if match is None or f"{match[1]}{match[2] or ''}" not in _LETTERS:
            raise ArmidError(f"{robot.name}: the published set {name!r} has no formulas and is no list of bodies")
        i, j = _LETTERS[f"{match[1]}{match[2] or ''}"]
        tensor = tensors.setdefault(f"link {match[3]}", np.zeros((3, 3)))
        tensor[i, j] = tensor[j, i] = value if i == j else -value
    return {link: (None, np.zeros(3), tensor) for link, tensor in tensors.items() if np.diag(tensor).all()}


def typical_sizes(claim: Claim) -> Array:
    """Typical size of each unknown, from the largest stated value and the arm's reach."""
    robot = claim.unknowns.model.robot
    length = max(reach(robot), 0.05)
    units = {parameter.name: parameter.unit for parameter in claim.unknowns.model.parameters}
    size = 0.0
    for row, value in zip(claim.matrix, claim.values, strict=True):
        name = claim.unknowns.names[int(np.argmax(np.abs(row)))]
        power = {"kg": 0, "kg m": 1, "kg m^2": 2}.get(units.get(name, ""))
        if power is not None and not name.startswith("Im"):
            size = max(size, abs(float(value)) / length**power / float(np.abs(row).max()))
    mass = (size or 1.0) * float(np.mean([body[3, 3] for body in reference_bodies(robot)]))
    short = max(length / robot.n_joints, 0.05)
    result = np.ones(len(claim.unknowns.names))
    for index, name in enumerate(claim.unknowns.names):
        if name.startswith("Im"):
            ratio = robot.drives[int(name.lstrip("Imc")) - 1].gear_ratio if not name.startswith("Imc") else 1.0
            result[index] = mass * short**2 / ratio**2
        elif name[0] in "mI":
            result[index] = mass * short ** {"kg": 0, "kg m": 1, "kg m^2": 2}[units[name]]
    return result


STATED = 1e-8  # relative residual below which a combination counts as stated
LEGIBLE = 5  # coefficients of friction above which it is no sum that one could check by hand
PRINTED = " (as printed; torque does not show it)"
SLACK = 1e-6  # share of the largest value by which a limit must be passed


@dataclass(frozen=True, eq=False)
class Limit:
    """A combination of parameters that is not negative for any arm.

    Attributes:
        row: its coefficients over the unknowns.
        words: why it cannot be negative.
        sum: what it is, where a sum of its coefficients could not be read.
    """

    row: Array
    words: str
    sum: str = ""


def simple_limits(unknowns: Unknowns) -> list[Limit]:
    """Limits that concern one link, rotor or friction coefficient."""
    result = []
    for condition in unknowns.conditions:
        if condition.constant.shape == (1, 1):
            row = condition.slopes[:, 0, 0]
            name = condition.name if np.count_nonzero(row) > LEGIBLE else ""
            result.append(Limit(row, f"{condition.name} cannot be negative", name))
    for number in range(1, len(unknowns.model.robot.links) + 1):
        whole = unknowns.pseudo_inertia(number)
        if not whole.slopes.any() or whole.constant.any():
            continue
        second = [whole.slopes[:, axis, axis] for axis in range(3)]
        for axis, name in enumerate("xyz"):
            one, two = (a for a in range(3) if a != axis)
            label = f"I{name}{name}{number}"
            result.append(Limit(second[one] + second[two], f"the moment of inertia {label} cannot be negative"))
        for axis, name in enumerate("xyz"):
            first, other = (f"I{a}{a}{number}" for a in "xyz" if a != name)
            words = f"I{name}{name}{number} cannot exceed {first} + {other} (triangle inequality)"
            result.append(Limit(2.0 * second[axis], words))
        result.append(Limit(whole.slopes[:, 3, 3], f"the mass m{number} cannot be negative"))
    return [limit for limit in result if limit.row.any()]


def certificates(claim: Claim, base: Array) -> list[str]:
    """Violated limits in words, the simplest first.

    Args:
        claim: what is stated.
        base: (groups, unknowns) the combinations that show in torque; a limit outside of them concerns what is printed
            only.
    """
    with one_blas_thread():
        size = float(np.abs(claim.values).max())
        worst: dict[str, tuple[float, str, Array]] = {}
        limits = simple_limits(claim.unknowns)
        combinations = _combinations(claim.matrix, np.array([limit.row for limit in limits]))
        for limit, weights in zip(limits, combinations, strict=True):
            if weights is None:
                continue
            value, least = float(weights @ claim.values), -max(SLACK * size, claim.doubt(weights))
            if value < min(least, worst.get(limit.words, (0.0,))[0]):
                worst[limit.words] = value, _sentence(claim, weights, value, limit, base), weights
        found = [(words, weights) for _, words, weights in worst.values()]
        found += list(_signs(claim, base, size, [weights for _, weights in found]))
    used = np.any([weights != 0.0 for _, weights in found], axis=0) if found else np.zeros(len(claim.values), bool)
    sentences = sorted(dict.fromkeys(words for words, _ in found), key=lambda words: PRINTED in words)
    return [*sentences, *_products(claim, used)]


def _combinations(matrix: Array, rows: Array) -> Iterator[Array | None]:
    """For each of some rows sparse weights of the entries that make it up; None if they cannot."""
    found, _, rank, _ = np.linalg.lstsq(matrix.T, rows.T, rcond=None)
    for weights, row in zip(found.T, rows, strict=True):
        made = np.abs(matrix.T @ weights - row).max() <= STATED * np.abs(row).max()
        yield _sparse(matrix, row, weights, unique=rank == len(matrix)) if made else None


def _sparse(matrix: Array, row: Array, weights: Array, *, unique: bool) -> Array:
    """The weights, if they are the only ones; otherwise those of least sum."""
    count = len(matrix)
    if not unique:
        found = linprog(np.ones(2 * count), A_eq=np.hstack([matrix.T, -matrix.T]), b_eq=row, method="highs")
        weights = found.x[:count] - found.x[count:] if found.status == 0 else weights
    return np.where(np.abs(weights) < 1e-9 * np.abs(weights).max(), 0.0, weights)


def _signs(claim: Claim, base: Array, size: float, known: Sequence[Array]) -> Iterator[tuple[str, Array]]:
    """Entries that are sums of things that cannot be negative, but are stated negative (or the reverse)."""
    generators = np.array([limit.row for limit in simple_limits(claim.unknowns)])
    length = np.linalg.norm(generators, axis=1)
    for index, row in enumerate(claim.matrix):
        for sign in (1.0, -1.0):
            weights = np.zeros(len(claim.values))
            weights[index] = sign
            value = sign * float(claim.values[index])
            if value > -max(SLACK * size, claim.doubt(weights)) or any(
                np.count_nonzero(w) == 1 and w[index] != 0.0 for w in known
            ):
                continue
            try:
                share, left = nnls((generators / length[:, None]).T, sign * row)
            except RuntimeError:
                continue
            if left <= STATED * np.abs(row).max() and share.any():
                side = "negative" if sign > 0.0 else "positive"
                limit = Limit(sign * row, f"{_sum(claim.unknowns.names, row)} cannot be {side}")
                yield _sentence(claim, weights, value, limit, base), weights


def _sentence(claim: Claim, weights: Array, value: float, limit: Limit, base: Array) -> str:
    """Such as ``I4xxR - I4zzR = 0.2155 must be <= 0: Ixx4 cannot exceed Iyy4 + Izz4 (triangle inequality)``."""
    if limit.sum:
        return f"{limit.sum} = {value:.3g}, but must be ≥ 0 at every speed"
    lead = np.flatnonzero(weights)
    unit = float(np.abs(weights[lead]).min())
    # Written with a positive leading term where there are several.
    flip = len(lead) > 1 and weights[lead[0]] < 0.0
    signed = (-weights if flip else weights) / unit
    text = _sum(claim.entries, signed)
    shown = (-value if flip else value) / unit
    if len(lead) == 1 and signed[lead[0]] < 0.0:
        text, shown, flip = claim.entries[lead[0]], -shown, True
    bound = "must be ≤ 0" if flip else "must be ≥ 0"
    where = "" if next(_combinations(base, limit.row[None])) is not None else PRINTED
    return f"{text} = {shown:.4g}, but {bound}: {limit.words}{where}"


def _sum(names: Sequence[str], factors: Array) -> str:
    """A sum as people write it."""
    text = ""
    for index in np.flatnonzero(factors).tolist():
        size = abs(float(factors[index]))
        number = "" if np.isclose(size, 1.0) else f"{size:.6g} "
        sign = " - " if factors[index] < 0.0 else " + " if text else ""
        text += f"{sign}{number}{names[index]}"
    return text.strip()


def _products(claim: Claim, used: Array) -> list[str]:
    """Products of inertia that are too large for the other values, apart from those already found impossible."""
    result = []
    scale = typical_sizes(claim)
    for index, row in enumerate(claim.matrix):
        columns = np.flatnonzero(row)
        name = claim.unknowns.names[columns[0]] if len(columns) == 1 else ""
        if name[:3] not in ("Ixy", "Ixz", "Iyz") or used[index]:
            continue
        others = np.array([i != index and not used[i] for i in range(len(claim.values))])
        rows, values = claim.matrix[others], claim.values[others]
        upwards = -np.sign(claim.values[index]) * row
        tiny = 1e-3 * np.diag(1.0 / scale)
        found = minimise(
            tiny, np.zeros(len(scale)), claim.unknowns.conditions, scale, linear=upwards, equal=(rows, values)
        )
        most = abs(float(row @ found.x))
        if found.good and most < 0.99 * abs(claim.values[index]):
            result.append(
                f"|{claim.entries[index]}| = {abs(claim.values[index]):.4g}, but can be at most {most:.3g} with the "
                f"other values: a product of inertia is bounded by the second moments of link {name[3:]}"
            )
    return result
