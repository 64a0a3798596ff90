"""The finite filter that acts on torque and regressor alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.signals.filters import butterworth
from armid.signals.problems import SignalError

Rows = NDArray[Any]  # whole numbers
BLOCK = 8192  # samples filtered at a time
DENSE_TAPS_PER_STEP = 300  # up to here a matrix product is faster than FFTs
DENSE_ELEMENTS = 2_000_000  # largest matrix for it


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
    return kernel / kernel.sum()


def decimated_rows(samples: int, kernel: Array | None, step: int, rate_hz: float | None = None) -> Rows:
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


def filtered(values: Array, kernel: Array | None, rows: Rows) -> Array:
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


def row_blocks(rows: Rows, kernel: Array | None, block: int = BLOCK) -> Iterator[tuple[slice, slice]]:
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


def filtered_blocks(blocks: Iterable[Array], kernel: Array | None, rows: Rows) -> Iterator[Array]:
    """Filter samples that come in consecutive blocks; yields the rows each block completes.

    Only the samples that later rows still need are kept, so that a log of any length takes constant memory and no
    sample has to be computed twice. The yields, one after the other, are ``filtered`` of the whole.
    """
    taps = np.ones(1) if kernel is None else kernel
    half, done, first = len(taps) // 2, 0, 0
    kept: Array | None = None
    for block in blocks:
        kept = np.asarray(block) if kept is None else np.concatenate([kept, block])
        stop = int(np.searchsorted(rows, first + len(kept) - half, side="left"))
        part = rows[done:stop]
        yield filtered(kept, taps, part - first)
        done = stop
        needed = (int(rows[done]) if done < len(rows) else first + len(kept)) - half
        drop = min(max(needed - first, 0), len(kept))
        kept, first = kept[drop:].copy(), first + drop
    if done < len(rows):
        raise SignalError("filter", f"the blocks ended before sample {int(rows[-1]) + half}, which the last row needs")


def _filter_block(values: Array, kernel: Array, rows: Rows) -> Array:
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
