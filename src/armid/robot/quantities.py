"""Numbers as people write them in descriptions: 0.3, -pi/2, 90 deg."""

import math
import re

_PI = re.compile(r"([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*\*?\s*)?pi\s*(?:/\s*(\d+(?:\.\d*)?))?")
_DEGREES = re.compile(r"([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)\s*deg")


def number(value: object) -> float:
    """Return a finite float from a number or a string such as ``-3*pi/4`` or ``90 deg``; ValueError otherwise."""
    if isinstance(value, bool):
        raise ValueError("is not a number")
    if isinstance(value, int | float):
        result = float(value)
    elif isinstance(value, str):
        result = _parse(value.strip())
    else:
        raise ValueError("is not a number")
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
    digits, value = len(match.group(1).rstrip("0")), float(text)
    if digits < 2:
        return None
    step = math.pi / 2 if digits < 4 else math.pi / 12
    exact = round(value / step) * step
    if exact == 0.0 or exact == value or digits >= 15:
        return None
    unit = 10.0**-digits
    return (
        exact
        if abs(value - exact) <= 0.5001 * unit or abs(math.trunc(exact / unit) * unit - value) < 1e-3 * unit
        else None
    )
