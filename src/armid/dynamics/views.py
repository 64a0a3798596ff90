"""The same dynamics in other people's parameters: barycentric, modified Newton-Euler, and the lists of the papers."""

from __future__ import annotations

import ast
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.dynamics.expressions import ratio_symbol
from armid.dynamics.model import Model
from armid.errors import ArmidError, DescriptionError, UnknownNameError
from armid.robot.inertia import INERTIAL_NAMES, INERTIAL_UNITS, change_of_frame
from armid.robot.robot import Robot, parameter_number

Terms = dict[str, float]
_ONE = ""  # key of the constant part while a formula is evaluated


class FormulaError(ArmidError):
    """A formula cannot be read."""


@dataclass(frozen=True, eq=False)
class View:
    """A list of parameters, each a linear combination of the model's.

    Attributes:
        name: of the view.
        model: the model.
        entries: names of the view's parameters.
        units: their units.
        matrix: (entries, parameters of the model); values are ``matrix @ model values``.
    """

    name: str
    model: Model
    entries: tuple[str, ...]
    units: tuple[str, ...]
    matrix: Array

    def values(self, values: Array | Mapping[str, float]) -> Array:
        """The view's parameters for given values of the model's."""
        return self.matrix @ self.model.vector(values)

    def classes(self) -> tuple[str, ...]:
        """For each entry: ``alone`` (identifiable as it stands), ``combined``, or ``no effect`` on any torque."""
        base = self.model.base
        rows = self._rows
        size = np.abs(rows).max(axis=1)
        weights = np.linalg.lstsq(base.matrix.T, rows.T, rcond=None)[0]
        left = np.abs(base.matrix.T @ weights - rows.T).max(axis=0)
        effect = np.abs(rows[:, [name not in base.no_effect for name in base.names]]).max(axis=1, initial=0.0) > 0.0
        words = np.where(left <= 1e-9 * size, "alone", "combined")
        return tuple(np.where(effect, words, "no effect").tolist())

    @property
    def _rows(self) -> Array:
        """The entries in terms of the unknown parameters."""
        return self.matrix[:, [self.model.names.index(name) for name in self.model.base.names]]

    def identifiable_combinations(self) -> int:
        """How many independent combinations of the entries can be identified: the rank of a regressor in this list."""
        base, rows = self.model.base, self._rows
        scale = np.abs(rows).max(axis=1, keepdims=True)
        own = rows[scale[:, 0] > 0.0] / scale[scale > 0.0][:, None]
        other = base.matrix / np.abs(base.matrix).max(axis=1, keepdims=True)
        together = np.linalg.matrix_rank(np.vstack([own, other]), tol=1e-9)
        return int(np.linalg.matrix_rank(own, tol=1e-9) + np.linalg.matrix_rank(other, tol=1e-9) - together)


def modified_newton_euler(model: Model) -> View:
    """Mass, first and second moments of each link in a frame at its joint axis (Swevers et al.).

    With modified DH and URDF axes along z these are armid's own parameters; with standard DH the frame moves from the
    far end of the link to its joint.
    """
    robot = model.robot
    blocks = [change_of_frame(joint.link_frame) for joint in robot.links]
    return _per_link("modified-newton-euler", model, blocks)


def barycentric(model: Model) -> View:
    """Barycentric parameters: each link with the masses of all links beyond it concentrated at the joints they hang on.

    In the frame at the link's joint axis: the augmented mass, and first and second moments with the masses carried
    beyond each following joint placed at that joint's origin (Swevers et al.; Renaud's augmented body).
    """
    robot = model.robot
    if any(joint.prismatic for joint in robot.joints):
        raise ArmidError(f"{robot.name} has prismatic joints; barycentric parameters are defined for revolute joints")
    view = modified_newton_euler(model)
    matrix = view.matrix.copy()
    carried = _carried_masses(robot)
    for number, joint in enumerate(robot.links, start=1):
        if joint.parent == 0:
            continue
        origin = robot.links[joint.parent - 1].link_frame @ joint.placement
        point_mass = change_of_frame(origin)[:, 0]
        rows = slice(10 * (joint.parent - 1), 10 * joint.parent)
        for link in carried[number]:
            matrix[rows, model.names.index(f"m{link}")] += point_mass
    return View("barycentric", model, view.entries, view.units, matrix)


def published(model: Model, name: str) -> View:
    """A published set of the robot's description, by its formulas; entries without a formula are left out.

    The view's model makes the set's own assumptions about gear ratio, zeros and rotors.
    """
    robot = model.robot
    if name not in robot.published:
        raise UnknownNameError(f"published set of {robot.name}", name, robot.published)
    model = Model(_as_assumed(robot, robot.published[name]))
    rows = [row for row in robot.published[name]["parameters"] if "formula" in row]
    constants = _constants(robot, robot.published[name])
    matrix = np.zeros((len(rows), len(model.names)))
    for i, row in enumerate(rows):
        try:
            terms = linear_terms(str(row["formula"]), constants)
        except FormulaError as error:
            raise DescriptionError(robot.source, f"published.{name}: {row['name']}: formula", str(error)) from None
        for parameter, value in terms.items():
            if parameter in model.names:
                matrix[i, model.names.index(parameter)] = value
    entries = tuple(str(row["name"]) for row in rows)
    return View(name, model, entries, tuple(str(row.get("unit", "")) for row in rows), matrix)


def _as_assumed(robot: Robot, published_set: Mapping[str, Any]) -> Robot:
    """The robot under the assumptions that a published set makes."""
    if "gear_ratio" in published_set:
        ratio = float(published_set["gear_ratio"])
        robot = replace(robot, drives=tuple(replace(drive, gear_ratio=ratio) for drive in robot.drives))
    if "simplify" in published_set:
        robot = robot.simplified(published_set["simplify"])
    return robot.without_rotors() if published_set.get("rotors") is False else robot


GENERAL: dict[str, Callable[[Model], View]] = {
    "barycentric": barycentric,
    "modified-newton-euler": modified_newton_euler,
}


def view_names(robot: Robot) -> tuple[str, ...]:
    """Views a robot has: the general ones and its published lists with formulas."""
    lists = (name for name, rows in robot.published.items() if any("formula" in row for row in rows["parameters"]))
    return (*GENERAL, *lists)


def view(model: Model, name: str) -> View:
    """The view called `name`."""
    if name not in view_names(model.robot):
        raise UnknownNameError(f"view of {model.robot.name}", name, view_names(model.robot))
    return GENERAL[name](model) if name in GENERAL else published(model, name)


def _constants(robot: Robot, published_set: Mapping[str, Any]) -> dict[str, float]:
    lengths = {length.name: length.value for length in robot.lengths}
    own = published_set.get("gear_ratio")
    ratios = {} if own is None else {"kr": float(own)}
    for i, drive in enumerate(robot.drives):
        value = drive.gear_ratio if own is None else float(own)
        ratios[f"kr{i + 1}"] = value
        ratios[ratio_symbol(robot, i)] = value
    gravity = {"g0": float(np.linalg.norm(robot.gravity))}
    return {**lengths, **ratios, **gravity, **published_set.get("constants", {})}


def _per_link(name: str, model: Model, blocks: list[Array]) -> View:
    links = len(model.robot.links)
    matrix = np.zeros((10 * links, len(model.names)))
    for i, block in enumerate(blocks):
        matrix[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = block
    entries = tuple(f"{entry}{link}" for link in range(1, links + 1) for entry in INERTIAL_NAMES)
    return View(name, model, entries, INERTIAL_UNITS * links, matrix)


def _carried_masses(robot: Robot) -> dict[int, tuple[int, ...]]:
    """For each link the links whose mass it carries, itself included."""
    return {
        number: tuple(other for other in range(1, len(robot.links) + 1) if number - 1 in robot.path_to(other))
        for number in range(1, len(robot.links) + 1)
    }


def linear_terms(formula: str, constants: Mapping[str, float]) -> Terms:
    """Coefficients of the parameters in a formula that is linear in them.

    Args:
        formula: sums, products, powers and brackets of names and numbers, in Python's notation.
        constants: values of all other names.
    """
    try:
        tree = ast.parse(formula, mode="eval")
        terms = _evaluate(tree.body, formula, constants)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"formula {reprlib.repr(formula)} cannot be read") from None
    if not all(math.isfinite(value) for value in terms.values()):
        raise FormulaError(f"formula {formula!r} has a coefficient that is not finite")
    if terms.pop(_ONE, 0.0) != 0.0:
        raise FormulaError(f"formula {formula!r} has a part without a parameter")
    return {name: value for name, value in terms.items() if value != 0.0}


def _evaluate(node: ast.expr, formula: str, constants: Mapping[str, float]) -> Terms:
    def value(part: ast.expr) -> Terms:
        return _evaluate(part, formula, constants)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return {_ONE: float(number)}
        case ast.Name(id=name) if parameter_number(name) > 0:
            return {name: 1.0}
        case ast.Name(id=name) if name in constants:
            return {_ONE: constants[name]}
        case ast.Name(id=name):
            known = ", ".join(constants)
            raise FormulaError(f"formula {formula!r} holds {name!r}, neither a parameter nor a constant ({known})")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {name: -v for name, v in value(operand).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            result = value(left)
            for name, v in value(right).items():
                result[name] = result.get(name, 0.0) + (v if isinstance(op, ast.Add) else -v)
            return result
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _product(value(left), value(right), formula)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() as power)) if 0 < power < 5:
            base = value(left)
            result = base
            for _ in range(power - 1):
                result = _product(result, base, formula)
            return result
    raise FormulaError(f"formula {formula!r} is more than sums and products of names and numbers")


def _product(left: Terms, right: Terms, formula: str) -> Terms:
    for scalar, other in ((left, right), (right, left)):
        if set(scalar) <= {_ONE}:
            factor = scalar.get(_ONE, 0.0)
            return {name: factor * v for name, v in other.items()}
    raise FormulaError(f"formula {formula!r} is not linear in the parameters")
