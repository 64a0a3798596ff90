"""Filters: zero-phase low-pass, derivatives and smoothing of samples, and the finite kernel of torque and regressor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import signal

from armid.arrays import Array, Indices
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.signals.problems import SignalError, check_cutoff, check_whole

STENCIL = 7  # points of the central differences: exact for polynomials up to degree 6
FIVE_POINTS = np.array([-3.0, 12.0, 17.0, 12.0, -3.0]) / 35.0  # the cubic through five points, in their middle
BLOCK = 8192  # samples filtered at a time
DENSE_TAPS_PER_STEP = 300  # up to here a matrix product is faster than FFTs
DENSE_ELEMENTS = 2_000_000  # largest matrix for it
STANDS_OUT = 30.0  # times the noise: a line of white noise does so once in 1e9
FASTEST_MOTION_HZ = 10.0  # or a hundredth of the sample rate, if that is more
NOISY = 0.01  # power of an acceleration's noise over its own: what an inertia is underestimated by
STRONG = 0.01  # power of a joint's acceleration over the largest, from which on its noise counts


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
    return _designed(float(rate_hz), float(cutoff_hz), int(order)).copy()


@lru_cache(maxsize=64)
def _designed(rate_hz: float, cutoff_hz: float, order: int) -> Array:
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


def smooth(values: Array, passes: int = 1) -> Array:
    """Smooth each column by the five-point cubic of ER-16 (17), `passes` times.

    Every value is replaced by that of the cubic fitted to five neighbours, at the ends to the outermost five: a
    Savitzky-Golay filter. All five printed rows are right.

    Args:
        values: (samples, ...), at least five samples.
        passes: how often; more is smoother.
    """
    check_whole("smoothing", "passes", passes)
    if len(values) < 5:
        raise SignalError("smoothing", f"needs at least five samples; there are {len(values)}")
    for _ in range(passes):
        values = signal.savgol_filter(values, 5, 3, axis=0)
    return np.asarray(values, dtype=float)


def smoothing_kernel(passes: int = 1) -> Array:
    """What `smooth` does away from the ends: a symmetric filter of 4 `passes` + 1 taps with sum 1."""
    check_whole("smoothing", "passes", passes)
    kernel = np.ones(1)
    for _ in range(passes):
        kernel = np.convolve(kernel, FIVE_POINTS)
    result: Array = kernel / kernel.sum()
    return result


@dataclass(frozen=True)
class Band:
    """What the spectrum of positions says about a low-pass.

    Attributes:
        bandwidth_hz: 99 % of the velocity's power lies below.
        clean_hz: up to here the acceleration's noise has less than 1 % of its power, on the worst of the joints that
            accelerate; inf where positions have no noise.
    """

    bandwidth_hz: float
    clean_hz: float


def motion_band(position: Array, rate_hz: float) -> Band:
    """Bandwidth of the motion and of what noise leaves of it, from the spectrum of the positions (Welch).

    Rounding, jittering clocks and rows that repeat the one before make noise that is nearly white, and that ω² and ω⁴
    would lift over any motion. So its level is read where no arm moves, and lines count only below, if they stand far
    above it. The accelerations of a low-pass at f keep the variance S (2π)⁴ f⁵ / 5 of noise with the density S.

    Args:
        position: (samples, joints), uniformly sampled, without holes.
        rate_hz: sample rate.

    Raises:
        SignalError: no joint moves.
    """
    length = min(len(position), max(256, int(60.0 * rate_hz)))
    frequency, power = signal.welch(
        position - position.mean(axis=0), fs=rate_hz, nperseg=length, axis=0, detrend="linear", window="hann"
    )
    fastest = max(FASTEST_MOTION_HZ, 0.01 * rate_hz)
    noise = _noise_density(frequency, power, fastest)
    seen = (power > STANDS_OUT * noise) & (frequency < fastest)[:, None]
    omega = 2.0 * np.pi * frequency[:, None]
    velocity, acceleration = (np.where(seen, power * omega**n, 0.0) for n in (2, 4))
    totals = velocity.sum(axis=0)
    if not totals.max() > 0.0:
        raise SignalError("bandwidth", "no joint moves; there is nothing to identify from this log")
    moving = totals > 1e-6 * totals.max()
    edges = [frequency[np.searchsorted(np.cumsum(column), 0.99 * column.sum())] for column in velocity.T[moving]]
    spread = acceleration.sum(axis=0) * frequency[1]
    strong = spread > STRONG * spread.max()
    with np.errstate(divide="ignore"):
        clean = (5.0 * NOISY * spread[strong] / (noise[strong] * (2.0 * np.pi) ** 4)) ** 0.2
    return Band(float(max(np.max(edges), frequency[1])), float(clean.min()))


def _noise_density(frequency: Array, power: Array, fastest: float) -> Array:
    """The noisiest octave where no arm moves; the rounding of slow positions makes noise that falls with frequency.

    Medians, which lines do not touch, made means of what scatters as a periodogram does.
    """
    least = min(fastest, 0.25 * float(frequency[-1]))
    octave = np.floor(np.log2(np.maximum(frequency, 1e-300) / least))
    levels = [np.median(power[octave == number], axis=0) for number in np.unique(octave[octave >= 0.0])[:-1]]
    return np.asarray(np.max(levels, axis=0) / np.log(2.0))


def low_pass_kernel(rate_hz: float, cutoff_hz: float, order: int = 4, *, tail: float = 1e-9) -> Array:
    """Impulse response of the zero-phase Butterworth filter, cut where its tails hold less than `tail` of its sum.

    Forward and backward filtering with the impulse response h is filtering with the autocorrelation of h, which is
    symmetric. The finite kernel has sum 1 and is what acts on torque *and* regressor: whatever `tail` is, both sides
    see exactly the same filter; a larger one costs some attenuation and saves samples at the ends of a log.
    """
    if not 0.0 < tail < 0.5:
        raise SignalError("kernel", f"tail is {tail!r}; use a small positive number such as 1e-4")
    sections = butterworth(rate_hz, cutoff_hz, order)
    poles = np.concatenate([np.roots(section[3:]) for section in sections])
    slowest = float(np.abs(poles).max())
    length = int(np.ceil(np.log(1e-16) / np.log(slowest))) + 8 if slowest > 0.0 else 8
    impulse = np.zeros(length)
    impulse[0] = 1.0
    response = signal.sosfilt(sections, impulse)
    kernel = signal.fftconvolve(response, response[::-1]) if length > 500 else np.convolve(response, response[::-1])
    kernel = 0.5 * (kernel + kernel[::-1])
    beyond = 2.0 * np.cumsum(np.abs(kernel[:length]))  # both tails outside each distance from the centre
    cut = int(np.searchsorted(beyond, 0.5 * tail * kernel.sum()))
    kernel = kernel[cut : len(kernel) - cut]
    result: Array = kernel / kernel.sum()
    return result


def decimated_rows(samples: int, kernel: Array | None, step: int, rate_hz: float | None = None) -> Indices:
    """Every `step`-th sample that half a kernel does not carry over the ends, spread evenly between them.

    The rate is for the message only that says how long a log would have to be.
    """
    half = 0 if kernel is None else len(kernel) // 2
    room = samples - 2 * half
    if room < 1:
        needed = 2 * half + 1
        long = "" if rate_hz is None else f" ({needed / rate_hz:.2g} s)"
        raise SignalError(
            "filter",
            f"the log is too short for the low-pass: it has {samples} samples and {needed}{long} are the least; use a "
            "longer log, or a LowPass with a higher cutoff_hz (--signals)",
        )
    offset = ((room - 1) % step) // 2
    return np.arange(half + offset, samples - half, step)


def filtered(values: Array, kernel: Array | None, rows: Indices) -> Array:
    """Filter the samples by a symmetric kernel and keep `rows`: what `Dataset` did with its torque.

    Row k of the result is the sum over i of ``kernel[half + i] * values[rows[k] + i]``.

    Args:
        values: (samples, ...), such as torque or a stacked regressor.
        kernel: odd length; None keeps the rows as they are.
        rows: increasing indices, half a kernel or more from both ends.

    Returns:
        (rows, ...); values are filtered in blocks, so that little more memory than the result is needed.
    """
    values = np.asarray(values)
    if kernel is None or len(kernel) == 1:
        return np.asarray(values[rows] if kernel is None else kernel[0] * values[rows])
    result = np.empty((len(rows), *values.shape[1:]))
    with one_blas_thread():
        for chosen, span in row_blocks(rows, kernel):
            result[chosen] = _filter_block(values[span], kernel, rows[chosen] - span.start)
    return result


def row_blocks(rows: Indices, kernel: Array | None, block: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Parts of `rows` with the samples each needs: pairs of slices, into `rows` and into the samples.

    The samples of neighbouring parts overlap by one kernel. Use it to compute a regressor part by part.
    """
    half = 0 if kernel is None else len(kernel) // 2
    block = max(block, 4 * half)  # else the overlap would cost more than the work
    start = 0
    while start < len(rows):
        stop = int(np.searchsorted(rows, rows[start] + block, side="left"))
        stop = max(stop, start + 1)
        yield slice(start, stop), slice(int(rows[start]) - half, int(rows[stop - 1]) + half + 1)
        start = stop


def _filter_block(values: Array, kernel: Array, rows: Indices) -> Array:
    """`filtered` on a short array: a product with a banded matrix where few rows are left, FFTs otherwise."""
    half, count = len(kernel) // 2, len(rows)
    flat = values.reshape(len(values), -1)
    step = len(values) / max(count, 1)
    if len(kernel) / step > DENSE_TAPS_PER_STEP:
        result = signal.oaconvolve(flat, kernel[:, None], mode="valid", axes=0)[rows - half]
        return np.asarray(result).reshape(count, *values.shape[1:])
    result = np.empty((count, flat.shape[1]))
    size = int(np.clip(len(kernel) / step, 8, max(DENSE_ELEMENTS // (2 * len(kernel)), 8)))
    matrix, shape = np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
    for start in range(0, count, size):
        part = rows[start : start + size]
        origin = part[0] - half
        if len(shape) != len(part) or not np.array_equal(part - part[0], shape):
            shape = part - part[0]
            matrix = np.zeros((len(part), int(shape[-1]) + len(kernel)))
            np.put_along_axis(matrix, shape[:, None] + np.arange(len(kernel)), kernel[None, :], axis=1)
        result[start : start + len(part)] = matrix @ flat[origin : origin + matrix.shape[1]]
    return result.reshape(count, *values.shape[1:])
