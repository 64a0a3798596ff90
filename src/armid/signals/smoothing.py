"""Five-point cubic smoothing (ER-16, (17))."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.signals.problems import SignalError

CENTRE = np.array([-3.0, 12.0, 17.0, 12.0, -3.0]) / 35.0
FIRST = np.array([69.0, 4.0, -6.0, 4.0, -1.0]) / 70.0
SECOND = np.array([2.0, 27.0, 12.0, -8.0, 2.0]) / 35.0


def smooth(values: Array, passes: int = 1) -> Array:
    """Smooth each column by the five-point cubic of (17), `passes` times.

    Every value is replaced by that of the cubic fitted to five neighbours, at the ends to the outermost five; cubics
    pass unchanged. All five printed rows are right.

    Args:
        values: (samples, ...), at least five samples.
        passes: how often; more is smoother.
    """
    check_passes(passes)
    if len(values) < 5:
        raise SignalError("smoothing", f"needs at least five samples; there are {len(values)}")
    result = np.array(values, dtype=float)
    for _ in range(passes):
        first, last = result[:5], result[-5:][::-1]
        ends = [np.tensordot(w, part, axes=1) for part in (first, last) for w in (FIRST, SECOND)]
        inner = 17.0 * result[2:-2] + 12.0 * (result[1:-3] + result[3:-1]) - 3.0 * (result[:-4] + result[4:])
        result[2:-2] = inner / 35.0
        result[0], result[1], result[-1], result[-2] = ends
    return result


def smoothing_kernel(passes: int = 1) -> Array:
    """What `smooth` does away from the ends: a symmetric filter of 4 `passes` + 1 taps with sum 1."""
    check_passes(passes)
    kernel = np.ones(1)
    for _ in range(passes):
        kernel = np.convolve(kernel, CENTRE)
    return kernel / kernel.sum()


def check_passes(passes: int) -> None:
    """Refuse anything but a whole number from 1."""
    if not isinstance(passes, (int, np.integer)) or passes < 1:
        raise SignalError("smoothing", f"passes is {passes!r}; use a whole number from 1")
