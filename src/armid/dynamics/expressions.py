"""Groups of parameters in words: numbers recognised as what they are, 2 d3 or a1² + a2² or kr²."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from armid.arrays import Array
from armid.dynamics.parameters import INERTIAL, ROTOR, Parameter
from armid.robot.robot import Robot

Monomial = tuple[str, ...]
Polynomial = dict[Monomial, float]

_MAX_LENGTHS = 8  # more geometric constants than this are printed as numbers
_EXACT = 1e-9
_DEGREES = {"m": 0, "mx": 1, "my": 1, "mz": 1, "Ixx": 2, "Ixy": 2, "Iyy": 2, "Ixz": 2, "Iyz": 2, "Izz": 2}


@dataclass(frozen=True)
class Group:
    """One base parameter.

    Attributes:
        name: the kept parameter's name, with ``R`` (regrouped) if others belong to it.
        kind: inertial, rotor, friction or spring.
        unit: SI unit.
        expression: the sum in words.
        terms: parameters and their coefficients, the kept one first.
    """

    name: str
    kind: str
    unit: str
    expression: str
    terms: tuple[tuple[str, float], ...]


def readable_groups(
    robot: Robot,
    parameters: Mapping[str, Parameter],
    names: tuple[str, ...],
    kept: tuple[str, ...],
    matrix: Array,
    regroup: Callable[[Robot], Array],
) -> tuple[Group, ...]:
    """Write each row of the grouping matrix as an expression in the robot's geometric constants.

    A coefficient is recognised by what it becomes when the constants change: `regroup` computes the matrix again for
    robots with random constants, a polynomial is fitted, and it is used only if it is exact with simple factors.

    Args:
        robot: the robot, angles exact.
        parameters: all parameters by name.
        names: the unknown parameters, columns of `matrix`.
        kept: the parameters that name the groups, rows of `matrix`.
        matrix: grouping coefficients.
        regroup: grouping coefficients of a robot with other constants.
    """
    pairs = [(k, c) for k, c in zip(*np.nonzero(matrix), strict=True) if names[c] != kept[k]]
    polynomials = _recognise(robot, parameters, names, kept, matrix, pairs, regroup)
    groups = []
    for k, name in enumerate(kept):
        absorbed = [c for row, c in pairs if row == k]
        words = [(parameters[names[c]], polynomials.get((k, c)) or {(): float(matrix[k, c])}) for c in absorbed]
        terms = ((name, 1.0), *((names[c], float(matrix[k, c])) for c in absorbed))
        entry = parameters[name]
        groups.append(Group(f"{name}R" if absorbed else name, entry.kind, entry.unit, _sentence(name, words), terms))
    return tuple(groups)


def _recognise(
    robot: Robot,
    parameters: Mapping[str, Parameter],
    names: tuple[str, ...],
    kept: tuple[str, ...],
    matrix: Array,
    pairs: Sequence[tuple[int, int]],
    regroup: Callable[[Robot], Array],
) -> dict[tuple[int, int], Polynomial]:
    """Polynomials for those coefficients that are exactly one."""
    if not pairs or len(robot.lengths) > _MAX_LENGTHS:
        return {}
    constants = _constants(robot)
    bases: dict[tuple[Monomial, ...], list[tuple[int, int]]] = {}
    for k, c in pairs:
        bases.setdefault(_basis(robot, parameters[kept[k]], parameters[names[c]]), []).append((k, c))
    rng = np.random.default_rng(2)
    settings = [{name: rng.uniform(0.5, 2.0) for name in constants} for _ in range(max(map(len, bases)) + 4)]
    values = np.array([regroup(_redrawn(robot, setting)) for setting in settings])
    found: dict[tuple[int, int], Polynomial] = {}
    for basis, own in bases.items():
        rows, columns = np.array(own).T
        design = np.array([[_value(monomial, setting) for monomial in basis] for setting in settings])
        here = np.array([_value(monomial, constants) for monomial in basis])
        factors = _fit(design, values[:, rows, columns])
        wrong = np.abs(here @ factors - matrix[rows, columns]) > _EXACT * np.maximum(1.0, np.abs(matrix[rows, columns]))
        for pair, column in zip(own, np.where(wrong, 0.0, factors).T, strict=True):
            if column.any():
                found[pair] = {basis[i]: float(column[i]) for i in np.flatnonzero(column)}
    return found


def _constants(robot: Robot) -> dict[str, float]:
    """Named constants of a robot: lengths and gear ratios (other than 1)."""
    lengths = {length.name: length.value for length in robot.lengths}
    ratios = {
        ratio_symbol(robot, i): drive.gear_ratio for i, drive in enumerate(robot.drives) if drive.gear_ratio != 1.0
    }
    return {**lengths, **ratios}


def ratio_symbol(robot: Robot, joint: int) -> str:
    """Symbol of a gear ratio: ``kr`` where all are equal, else ``kr`` and the joint's number."""
    same = len({drive.gear_ratio for drive in robot.drives}) == 1
    return "kr" if same else f"kr{joint + 1}"


def _basis(robot: Robot, kept: Parameter, absorbed: Parameter) -> tuple[Monomial, ...]:
    """Monomials that a coefficient can consist of, by dimension."""
    if kept.kind == INERTIAL and absorbed.kind == INERTIAL:
        degree = _DEGREES[kept.name.rstrip("0123456789")] - _DEGREES[absorbed.name.rstrip("0123456789")]
        lengths = sorted({length.name for length in robot.lengths})
        return tuple(combinations_with_replacement(lengths, degree)) if degree >= 0 else ()
    if kept.kind == INERTIAL and absorbed.kind == ROTOR and robot.drives[absorbed.number - 1].gear_ratio != 1.0:
        symbol = ratio_symbol(robot, absorbed.number - 1)
        return (), (symbol,), (symbol, symbol)
    return ((),)


def _redrawn(robot: Robot, setting: Mapping[str, float]) -> Robot:
    """The robot with other constants."""
    ratios = [setting.get(ratio_symbol(robot, i), drive.gear_ratio) for i, drive in enumerate(robot.drives)]
    drives = tuple(replace(drive, gear_ratio=ratio) for drive, ratio in zip(robot.drives, ratios, strict=True))
    return replace(robot.with_lengths(setting), drives=drives)


def _value(monomial: Monomial, constants: Mapping[str, float]) -> float:
    return float(np.prod([constants[name] for name in monomial]))


def _fit(design: Array, targets: Array) -> Array:
    """Simple factors (quarters) of the monomials that give each column of the targets exactly; zeros if none do."""
    factors = np.round(4.0 * np.linalg.lstsq(design, targets, rcond=None)[0]) / 4.0
    wrong = np.abs(design @ factors - targets).max(axis=0) > _EXACT * np.maximum(1.0, np.abs(targets).max(axis=0))
    return np.where(wrong, 0.0, factors)


def _sentence(name: str, words: Sequence[tuple[Parameter, Polynomial]]) -> str:
    """Write ``name + coefficient term ...``: positive first, one coefficient's terms in brackets, rotors last."""
    bundles: dict[tuple[bool, bool, int, str], list[Parameter]] = {}
    for parameter, polynomial in words:
        negative = all(factor < 0.0 for factor in polynomial.values())
        sign = -1.0 if negative else 1.0
        text = _coefficient({monomial: sign * factor for monomial, factor in polynomial.items()})
        degree = max(len(monomial) for monomial in polynomial)
        bundles.setdefault((negative, parameter.kind == ROTOR, degree, text), []).append(parameter)
    sentence = name
    for (negative, _, _, text), bundle in sorted(bundles.items(), key=lambda item: (item[0][:3], item[1][0].number)):
        sign_text = " − " if negative else " + "
        terms = [parameter.name for parameter in bundle]
        if not text:
            sentence += "".join(f"{sign_text}{term}" for term in terms)
        elif len(terms) == 1:
            sentence += f"{sign_text}{text} {terms[0]}"
        else:
            sentence += f"{sign_text}{text} ({' + '.join(terms)})"
    return sentence


def _coefficient(polynomial: Polynomial) -> str:
    """A coefficient in words, empty for 1; a sum starts with a positive part."""
    ordered = sorted(polynomial.items(), key=lambda item: item[1] < 0.0)
    text = _monomial(*ordered[0])
    for monomial, factor in ordered[1:]:
        text += f" {'−' if factor < 0.0 else '+'} {_monomial(monomial, abs(factor))}"
    if len(ordered) > 1:
        return f"({text})"
    return "" if text == "1" else text


def _monomial(monomial: Monomial, factor: float) -> str:
    powers = " ".join(f"{name}²" if monomial.count(name) == 2 else name for name in dict.fromkeys(monomial))
    if not powers:
        return f"{factor:.9g}"
    return powers if factor == 1.0 else f"{factor:g} {powers}"
