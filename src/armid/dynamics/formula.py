"""Linear formulas in parameters, such as ``Izz1 + Iyy2 + kr**2*Im1``, with geometric constants as coefficients."""

from __future__ import annotations

import ast
import math
import reprlib
from collections.abc import Callable, Mapping

from armid.errors import ArmidError

Terms = dict[str, float]
_ONE = ""  # key of the constant part while a formula is evaluated


class FormulaError(ArmidError):
    """A formula cannot be read."""


def linear_terms(formula: str, parameters: Callable[[str], bool], constants: Mapping[str, float]) -> Terms:
    """Coefficients of the parameters in a formula that is linear in them.

    Args:
        formula: sums, products, powers and brackets of names and numbers, in Python's notation.
        parameters: tells whether a name is a parameter.
        constants: values of all other names.
    """
    try:
        tree = ast.parse(formula, mode="eval")
        terms = _evaluate(tree.body, formula, parameters, constants)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise FormulaError(f"formula {reprlib.repr(formula)} cannot be read") from None
    if not all(math.isfinite(value) for value in terms.values()):
        raise FormulaError(f"formula {formula!r} has a coefficient that is not finite")
    if terms.pop(_ONE, 0.0) != 0.0:
        raise FormulaError(f"formula {formula!r} has a part without a parameter")
    return {name: value for name, value in terms.items() if value != 0.0}


def _evaluate(node: ast.expr, formula: str, parameters: Callable[[str], bool], constants: Mapping[str, float]) -> Terms:
    def value(part: ast.expr) -> Terms:
        return _evaluate(part, formula, parameters, constants)

    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return {_ONE: float(number)}
        case ast.Name(id=name) if parameters(name):
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
