"""Numbers as a page shows them: few digits, intervals beside values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from armid.arrays import Array, Indices

DASH = "–"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits, without an exponent where that reads well; a dash for none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0.0:
        return "0"
    exponent = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    if not -4 < exponent < 6:
        return _signed(f"{value / 10.0**exponent:.{digits - 1}f} × 10{str(exponent).translate(_SUPERSCRIPTS)}")
    return _signed(f"{float(f'{value:.{digits - 1}e}'):.{max(0, digits - 1 - exponent)}f}")


def percent(share: float | None) -> str:
    """A fraction as percent, with two significant digits or one decimal."""
    if share is None or not math.isfinite(share):
        return DASH
    value = 100.0 * share
    if abs(value) < 1e-6:  # rounding of the computer
        return "0 %"
    if abs(value) >= 99.5:
        return f"{value:.0f} %"
    return f"{value:.1f} %" if abs(value) >= 1.0 else f"{short(value, 2)} %"


def exact(value: float) -> str:
    """A number that is known, such as a setting: no digits are added to it."""
    return _signed(f"{value:.4g}") if math.isfinite(value) else DASH


def share(value: float) -> str:
    """A fraction that is known, such as a limit, as percent."""
    return f"{exact(100.0 * value)} %"


def spaced(words: str) -> str:
    """Sentences of other parts of armid, with the space before the percent sign that this page uses."""
    return re.sub(r"(?<=\d)%", " %", words)


def plus_minus(value: float, half: float) -> str:
    """A value with its interval, to the digits that the interval leaves: 1.23 ± 0.04."""
    if not math.isfinite(half):
        return f"{short(value)} (not determined)"
    if half <= 0.0:
        return short(value)
    place = math.floor(math.log10(half))
    digits = 2 if half / 10.0**place < 2.0 else 1
    decimals = digits - 1 - place
    size = math.floor(math.log10(max(abs(value), half)))
    if -4 < size < 6 and decimals <= 5:
        shown = max(0, decimals)
        return _signed(f"{round(value, decimals):.{shown}f} ± {round(half, decimals):.{shown}f}")
    shown = max(0, decimals + size)
    power = f"10{str(size).translate(_SUPERSCRIPTS)}"
    return _signed(f"({value / 10.0**size:.{shown}f} ± {half / 10.0**size:.{shown}f}) × {power}")


def pretty(unit: str) -> str:
    """A unit with a raised exponent."""
    return unit.replace("^2", "²").replace("^3", "³").replace("^0.5", "½")


def listed(words: Sequence[str]) -> str:
    """Words joined as in a sentence: a, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else list(words))


def joined_time(dataset: Indices, time: Array) -> Array:
    """Time of several records one after the other, starting at zero [s]."""
    result, end = np.empty(len(time)), 0.0
    for index in np.unique(dataset):
        rows = dataset == index
        part = time[rows]
        step = float(np.median(np.diff(part))) if len(part) > 1 else 0.0
        result[rows] = end + part - part[0]
        end += float(part[-1] - part[0]) + step
    return result


def _signed(text: str) -> str:
    """With a true minus sign, and none before a value that rounds to zero."""
    return re.sub(r"^(\(?)-(?=0(\.0*)?( |$))", r"\1", text).replace("-", "\N{MINUS SIGN}")
