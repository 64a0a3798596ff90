"""Numbers as people write them in YAML files, 0.3, -pi/2, 90 deg, as types for `armid.files.checked`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from armid.arrays import Array
from armid.files import LARGEST, FieldError, convert, shown

Value = TypeVar("Value")

_PI = re.compile(r"([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*\*?\s*)?pi\s*(?:/\s*(\d+(?:\.\d*)?))?")
_DEGREES = re.compile(r"([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)\s*deg")


def number(value: object) -> float:
    """Return a finite float from a number or a string such as ``-3*pi/4`` or ``90 deg``; ValueError otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("is not a number")
    try:
        result = _parse(value.strip()) if isinstance(value, str) else float(value)
    except (OverflowError, ZeroDivisionError):
        raise ValueError("is not finite") from None
    if not abs(result) <= LARGEST:
        raise ValueError("is not finite" if not math.isfinite(result) else "is larger than anything in mechanics")
    return result


def _parse(text: str) -> float:
    if match := _PI.fullmatch(text):
        sign, factor, divisor = match.groups()
        value = float(factor or 1.0) * math.pi / float(divisor or 1.0)
        return -value if sign == "-" else value
    if match := _DEGREES.fullmatch(text):
        return math.radians(float(match.group(1)))
    try:
        return float(text)
    except ValueError:
        raise ValueError("is not a number (examples: 0.3, -pi/2, 90 deg)") from None


class Number(float):
    """A finite number that a file may write as ``-3*pi/4`` or ``90 deg``."""

    @classmethod
    def from_plain(cls, value: object) -> Number:
        """Read it."""
        try:
            return cls(number(value))
        except ValueError as error:
            raise ValueError(f"{shown(value)} {error}") from None


Vector = tuple[Number, Number, Number]


class PerJoint(Generic[Value]):
    """One value for all joints, or a list with one for each."""

    def __init__(self, value: Any) -> None:
        """Keep the value or the list."""
        self.value = value

    @classmethod
    def from_plain(cls, value: object, kind: Any) -> PerJoint[Value]:
        """Read it; `kind` is the type of a value."""
        return cls(convert(value, list[kind] if isinstance(value, list) else kind))

    def over(self, joints: int, field: str) -> list[Value]:
        """A value for each joint; FieldError about `field` if there are not so many."""
        if not isinstance(self.value, list):
            return [self.value] * joints
        if len(self.value) != joints:
            problem = f"has {len(self.value)} entries for {joints} joints; give one value or one for each joint"
            raise FieldError(field, problem)
        return self.value


def coupling_matrix(field: str, rows: Sequence[Sequence[float]], joints: int) -> Array:
    """The matrix (joints, joints) from motors to joints that rows make; FieldError where it is none."""
    if len(rows) != joints:
        raise FieldError(field, f"has {len(rows)} rows for {joints} joints")
    for index, row in enumerate(rows):
        if len(row) != joints:
            raise FieldError(f"{field}[{index + 1}]", f"must be a list of {joints} numbers")
    matrix = np.array(rows, dtype=float)
    if np.any(np.diag(matrix) == 0.0) or np.linalg.cond(matrix) > 1e12:
        raise FieldError(field, "is zero for a joint, or singular; every motor must move its own joint")
    return matrix
