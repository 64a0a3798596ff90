"""Zero-phase filters and derivatives of sampled motion."""

from __future__ import annotations

import numpy as np
from scipy import signal

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.signals.problems import SignalError, check_cutoff

STENCIL = 7  # points of the central differences: exact for polynomials up to degree 6


def low_pass(values: Array, rate_hz: float, cutoff_hz: float, order: int = 4) -> Array:
    """Zero-phase Butterworth: forward and backward, so that the gain at the cut-off is 1/2 and nothing is delayed.

    Args:
        values: (samples, ...), uniformly sampled.
        rate_hz: sample rate.
        cutoff_hz: frequency at which half the amplitude is left.
        order: of one pass.
    """
    sections = butterworth(rate_hz, cutoff_hz, order)
    # Long enough for the filter's memory: SciPy's default padding lasts a few samples only, whatever the cut-off.
    wanted = int(np.ceil(order * rate_hz / cutoff_hz))
    padding = min(max(wanted, 3 * (2 * len(sections) + 1)), len(values) - 1)
    if padding < 1:
        raise SignalError("low-pass", f"needs at least two samples; there are {len(values)}")
    return np.asarray(signal.sosfiltfilt(sections, values, axis=0, padlen=padding))


def butterworth(rate_hz: float, cutoff_hz: float, order: int = 4) -> Array:
    """Second-order sections of one pass."""
    check_cutoff("low-pass", cutoff_hz, rate_hz)
    if not isinstance(order, (int, np.integer)) or not 1 <= order <= 12:
        raise SignalError("low-pass", f"order is {order!r}; use a whole number from 1 to 12")
    return np.asarray(signal.butter(order, cutoff_hz, fs=rate_hz, output="sos"))


def central_differences(values: Array, rate_hz: float, derivative: int = 1) -> Array:
    """Derivative of each column by seven-point differences, at the ends by the polynomial through the last seven.

    The error at frequency f is of order (2πf / rate)^6, against (2πf / rate)^2 for the usual three points.
    """
    if len(values) < STENCIL:
        raise SignalError("differences", f"needs at least {STENCIL} samples; there are {len(values)}")
    return np.asarray(signal.savgol_filter(values, STENCIL, STENCIL - 1, deriv=derivative, delta=1.0 / rate_hz, axis=0))


def differenced(position: Array, rate_hz: float) -> Motion:
    """Velocity and acceleration by central differences; filter the position first."""
    velocity, acceleration = (central_differences(position, rate_hz, order) for order in (1, 2))
    return Motion(position, velocity, acceleration)


def savitzky_golay(position: Array, rate_hz: float, window: int = 21, degree: int = 4) -> Motion:
    """Position, velocity and acceleration from polynomials fitted to `window` neighbouring samples.

    Args:
        position: (samples, joints), uniformly sampled.
        rate_hz: sample rate.
        window: number of samples, odd.
        degree: of the polynomial, at least 2 and below `window`.
    """
    check_window(window, degree, len(position))
    parts = (
        signal.savgol_filter(position, window, degree, deriv=order, delta=1.0 / rate_hz, axis=0) for order in (0, 1, 2)
    )
    return Motion(*(np.ascontiguousarray(part) for part in parts))


def savitzky_golay_kernel(window: int, degree: int) -> Array:
    """The smoothing part of `savitzky_golay` away from the ends, to filter torque and regressor alike."""
    check_window(window, degree, window)
    kernel = signal.savgol_coeffs(window, degree)
    kernel = 0.5 * (kernel + kernel[::-1])
    return np.asarray(kernel / kernel.sum())


def check_window(window: int, degree: int, samples: int) -> None:
    """Refuse windows that SciPy could not use."""
    whole = isinstance(window, (int, np.integer)) and isinstance(degree, (int, np.integer))
    if not whole or window % 2 == 0 or not 2 <= degree < window:
        raise SignalError(
            "Savitzky-Golay", f"window is {window!r}, degree {degree!r}; use an odd window and 2 <= degree < window"
        )
    if window > samples:
        raise SignalError("Savitzky-Golay", f"the window has {window} samples and the log {samples}; use a shorter one")


def velocity_bandwidth(position: Array, rate_hz: float, share: float = 0.99) -> float:
    """Frequency [Hz] below which `share` of the velocity's power lies, noise taken off.

    The position's spectrum (Welch) loses its floor, the median of its upper half, before it is multiplied by ω²;
    without that the noise of an encoder would dominate. Columns are weighted by their own velocity's power.
    """
    length = min(len(position), max(256, int(60.0 * rate_hz)))
    frequency, power = signal.welch(
        position - position.mean(axis=0), fs=rate_hz, nperseg=length, axis=0, detrend="linear", window="hann"
    )
    power = power - 3.0 * np.median(power[len(power) // 2 :], axis=0)
    velocity = np.maximum(power, 0.0) * frequency[:, None] ** 2
    totals = velocity.sum(axis=0)
    if not totals.max() > 0.0:
        raise SignalError("bandwidth", "no joint moves; there is nothing to identify from this log")
    moving = totals > 1e-6 * totals.max()
    edges = [frequency[np.searchsorted(np.cumsum(column), share * column.sum())] for column in velocity.T[moving]]
    return float(max(np.max(edges), frequency[1]))
