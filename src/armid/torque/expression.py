"""A formula written once: evaluated with NumPy, and printed as C or NumPy text."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError

FUNCTIONS = ("exp", "tanh", "sqrt", "log", "atan")  # beside + - * / and powers
_NUMPY = {"atan": "arctan"}
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


class Expression:
    """A formula in the common part of Python and C, such as ``exp(-v / vs)``."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        """Parse the formula.

        Args:
            text: numbers, names, + - * / **, and the functions exp, tanh, sqrt, log and atan.
            names: what it may be a function of.

        Raises:
            ArmidError: it holds anything else.
        """
        self.text, self._names = text, tuple(names)
        try:
            self._tree = ast.parse(text, mode="eval").body
        except SyntaxError:
            raise ArmidError(f"{text!r} is not a formula") from None
        self.used = frozenset(n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)) - set(FUNCTIONS)
        printed = self._printed(self._tree, {name: name for name in self._names}, "numpy")
        self._code = compile(printed, f"<formula {text}>", "eval")

    def __call__(self, **values: Array | float) -> Array:
        """The value, broadcast over arrays; divisions by zero take their limits."""
        with np.errstate(all="ignore"):
            numbers = {name: np.asarray(values[name], dtype=float) for name in self.used}
            return np.asarray(eval(self._code, {"__builtins__": {}, "np": np}, numbers), dtype=float)

    def c(self, values: Mapping[str, str]) -> str:
        """C99 text with the names replaced; `sqrt` stays a name of its own for the caller to replace."""
        return self._printed(self._tree, values, "c")

    def numpy(self, values: Mapping[str, str]) -> str:
        """NumPy text with the names replaced."""
        return self._printed(self._tree, values, "numpy")

    def _printed(self, node: ast.AST, values: Mapping[str, str], language: str) -> str:
        def inner(part: ast.AST) -> str:
            return self._printed(part, values, language)

        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return repr(float(number))
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{inner(operand)})"
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)) if language == "c":
                return f"({inner(left)} * {inner(left)})"
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                base, power = inner(left), inner(right)
                return f"pow({base}, {power})" if language == "c" else f"({base} ** {power})"
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return f"({inner(left)} {_SIGNS[type(sign)]} {inner(right)})"
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                called = name if language == "c" else f"np.{_NUMPY.get(name, name)}"
                return f"{called}({inner(argument)})"
        known = ", ".join((*self._names, *FUNCTIONS))
        raise ArmidError(f"{ast.unparse(node)!r} in the formula {self.text!r} is not known; use numbers and {known}")
