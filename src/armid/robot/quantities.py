"""Numbers as people write them in descriptions: 0.3, -pi/2, 90 deg."""

import math
import re

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
    if not math.isfinite(result):
        raise ValueError("is not finite")
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


def rounded_angle(text: str) -> float | None:
    """The exact angle that `text` rounds: a right angle to two decimals or more, a multiple of 15 deg to four.

    Returns None for angles that are exact already or that are nobody's rounding.
    """
    match = re.fullmatch(r"[+-]?\d*\.(\d+)", text.strip())
    if match is None:
        return None
    written = len(match.group(1))
    shortest = len(match.group(1).rstrip("0"))
    for digits in dict.fromkeys((written, shortest)):
        exact = _rounded_to(float(text), digits)
        if exact is not None:
            return exact
    return None


def _rounded_to(value: float, digits: int) -> float | None:
    """The exact angle that `value` is, rounded or cut off after `digits` decimals."""
    if not 2 <= digits < 15:
        return None
    step = math.pi / 2 if digits < 4 else math.pi / 12
    exact = round(value / step) * step
    unit = 10.0**-digits
    rounded = abs(value - exact) <= 0.5001 * unit
    cut_off = abs(math.trunc(exact / unit) * unit - value) < 1e-3 * unit
    return exact if exact not in (0.0, value) and (rounded or cut_off) else None
