"""Filters against SciPy, and the kernel that torque and regressor share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal

from armid.signals.filters import (
    central_differences,
    decimated_rows,
    differenced,
    filtered,
    low_pass,
    low_pass_kernel,
    motion_band,
    row_blocks,
    smooth,
    smoothing_kernel,
)
from armid.signals.problems import SignalError
from tests.signals.waves import Wave


@pytest.mark.parametrize(
    ("rate", "cutoff", "order"),
    [(100.0, 5.0, 4), (1000.0, 5.0, 4), (1000.0, 40.0, 2), (5000.0, 5.0, 4), (100.0, 45.0, 6)],
)
def test_kernel_is_the_zero_phase_butterworth(rate, cutoff, order):
    """In the interior it equals SciPy's forward-backward filter to 1e-8 of the signal."""
    kernel = low_pass_kernel(rate, cutoff, order)
    assert len(kernel) % 2 == 1
    np.testing.assert_array_equal(kernel, kernel[::-1])
    assert kernel.sum() == pytest.approx(1.0, abs=1e-14)
    half = len(kernel) // 2
    values = np.random.default_rng(0).normal(size=(6 * half + 100, 2))
    sections = signal.butter(order, cutoff, fs=rate, output="sos")
    reference = signal.sosfiltfilt(sections, values, axis=0)
    rows = np.arange(2 * half, len(values) - 2 * half)
    np.testing.assert_allclose(filtered(values, kernel, rows), reference[rows], atol=1e-8)


def test_a_larger_tail_shortens_the_kernel():
    """1e-4 takes less than half the length of 1e-9 and still stops frequencies far above the cut-off."""
    long, short = (low_pass_kernel(1000.0, 5.0, tail=tail) for tail in (1e-9, 1e-4))
    assert len(short) < 0.55 * len(long)
    gain = np.abs(signal.freqz(short, worN=[100.0], fs=1000.0)[1])
    assert gain[0] < 1e-4


def direct(values, kernel, rows):
    """The sum that `Dataset` documents, written out."""
    half = len(kernel) // 2
    return np.array([np.tensordot(kernel, values[row - half : row + half + 1], axes=1) for row in rows])


@settings(max_examples=40, deadline=None)
@given(
    half=st.integers(0, 60),
    step=st.integers(1, 40),
    samples=st.integers(130, 900),
    seed=st.integers(0, 5),
    gaps=st.booleans(),
)
def test_filtered_is_the_documented_sum(half, step, samples, seed, gaps):
    """For any kernel and any rows, regular or not."""
    rng = np.random.default_rng(seed)
    kernel = rng.normal(size=2 * half + 1)
    kernel += kernel[::-1]
    values = rng.normal(size=(samples, 2, 3))
    rows = decimated_rows(samples, kernel, step)
    if gaps:
        rows = rows[rng.random(len(rows)) < 0.7]
    wanted = direct(values, kernel, rows).reshape(len(rows), 2, 3)
    np.testing.assert_allclose(filtered(values, kernel, rows), wanted, atol=1e-10)


def test_row_blocks_cover_every_row_with_the_samples_it_needs():
    """Filtering part by part, from the sample slices alone, is filtering the whole."""
    kernel = low_pass_kernel(1000.0, 20.0, tail=1e-4)
    values = np.random.default_rng(1).normal(size=(50_000, 4))
    rows = decimated_rows(len(values), kernel, 20)
    whole = filtered(values, kernel, rows)
    parts, seen = [], 0
    for chosen, span in row_blocks(rows, kernel, block=3000):
        assert chosen.start == seen
        seen = chosen.stop
        parts.append(filtered(values[span], kernel, rows[chosen] - span.start))
    assert seen == len(rows)
    assert len(parts) > 10
    np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-12)


def test_without_a_kernel_rows_are_picked():
    values = np.arange(10.0)[:, None]
    np.testing.assert_array_equal(filtered(values, None, np.array([2, 5]))[:, 0], [2.0, 5.0])


def test_differences_are_exact_for_polynomials_and_sharp_for_waves():
    """Degree six at every sample, the ends included; 2 Hz at 100 Hz to 1e-5."""
    time = np.arange(60) / 50.0
    for order in (1, 2):
        polynomial = np.polynomial.Polynomial([1, -2, 3, 0.5, -1, 0.2, 0.1])
        found = central_differences(polynomial(time)[:, None], 50.0, order)[:, 0]
        np.testing.assert_allclose(found, polynomial.deriv(order)(time), rtol=1e-6, atol=1e-6)
    wave = np.sin(2 * np.pi * 2.0 * np.arange(500) / 100.0)[:, None]
    motion = differenced(wave, 100.0)
    assert np.abs(motion.qdd + (4 * np.pi) ** 2 * wave)[3:-3].max() < 1e-5 * (4 * np.pi) ** 2


def test_low_pass_does_not_delay():
    """A slow wave passes with its phase; noise far above the cut-off does not."""
    time = np.arange(4000) / 200.0
    slow = np.sin(2 * np.pi * 0.5 * time)[:, None]
    found = low_pass(slow + 0.1 * np.sin(2 * np.pi * 60 * time)[:, None], 200.0, 5.0)
    assert np.abs(found - slow)[200:-200].max() < 1e-4


def test_bandwidth_sees_through_encoder_noise():
    """Five harmonics of 0.1 Hz: 99 % of the velocity's power lies below 0.5 Hz, noise or not."""
    time = np.arange(16_000) / 100.0
    q = Wave(np.random.default_rng(1), joints=3).motion(time)[0]
    noisy = q + 1e-3 * np.random.default_rng(2).normal(size=q.shape)
    for values in (q, noisy):
        assert 0.3 < motion_band(values, 100.0).bandwidth_hz < 0.6
    with pytest.raises(SignalError, match="no joint moves"):
        motion_band(np.zeros((500, 2)), 100.0)


def test_noise_of_positions_limits_the_cut_off():
    """Where noise has 1 % of the acceleration's power after an ideal low-pass, by Fourier transforms of either."""
    time = np.arange(40_000) / 200.0
    wave = np.sin(2 * np.pi * 0.5 * time)[:, None]
    noise = 1e-3 * np.random.default_rng(0).normal(size=wave.shape)
    cutoff = motion_band(wave + noise, 200.0).clean_hz
    frequency = np.fft.rfftfreq(len(time), 1.0 / 200.0)
    passed = frequency**2 * (frequency < cutoff)
    power = [np.sum(np.abs(passed * np.fft.rfft(x[:, 0])) ** 2) for x in (wave, noise)]
    assert power[1] / power[0] == pytest.approx(0.01, rel=0.3)
    assert motion_band(wave, 200.0).clean_hz > 50.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: low_pass(np.zeros((50, 1)), 100.0, 50.0), "below 50 Hz"),
        (lambda: low_pass_kernel(100.0, 80.0), "below 50 Hz"),
        (lambda: low_pass_kernel(100.0, 5.0, 0), "order"),
        (lambda: low_pass_kernel(100.0, 5.0, tail=0.0), "tail"),
        (lambda: central_differences(np.zeros((5, 1)), 100.0), "at least 7"),
        (lambda: decimated_rows(50, np.ones(101) / 101, 1), "longer log"),
        (lambda: smooth(np.zeros((4, 1))), "five samples"),
        (lambda: smooth(np.zeros((9, 1)), passes=0), "passes"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(SignalError, match=words):
        call()


class TestSmoothing:
    @given(st.lists(st.floats(-10, 10), min_size=4, max_size=4), st.integers(1, 4))
    def test_cubics_pass_unchanged(self, coefficients, passes):
        """All five printed rows of (17) are exact on cubics, so their ends are right."""
        time = np.linspace(-1.0, 1.0, 11)
        values = np.polynomial.polynomial.polyval(time, coefficients)[:, None]
        np.testing.assert_allclose(smooth(values, passes), values, atol=1e-12)

    def test_it_is_the_least_squares_cubic_over_five_points(self):
        """SciPy's Savitzky-Golay filter of window 5 and degree 3, the ends included."""
        values = np.random.default_rng(3).normal(size=(40, 2))
        np.testing.assert_allclose(smooth(values), signal.savgol_filter(values, 5, 3, axis=0), atol=1e-12)

    def test_the_kernel_is_the_interior(self):
        values = np.random.default_rng(4).normal(size=(80, 2))
        rows = np.arange(8, 72)
        np.testing.assert_allclose(filtered(values, smoothing_kernel(4), rows), smooth(values, 4)[rows], atol=1e-12)
