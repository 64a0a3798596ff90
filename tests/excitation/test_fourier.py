"""Fourier series: derivatives, extremes, both forms, basis."""

import numpy as np
import pytest

from armid.excitation import FourierSeries
from armid.excitation.fourier import FourierVariables, basis
from armid.excitation.trajectory import TrajectoryError
from tests.excitation.differences import assert_exact_derivatives

HARMONICS = [(1,), (1, 2, 3, 4, 5), (1, 20), (1, 25), (3,), (2, 4, 7), (20, 40), (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)]


def random_series(seed):
    """A random series; some coefficients vanish, or nearly."""
    rng = np.random.default_rng(seed)
    harmonics = HARMONICS[seed % len(HARMONICS)]
    shape = (3, len(harmonics))
    sine, cosine = rng.normal(size=shape), rng.normal(size=shape)
    if seed % 3 == 1:
        sine, cosine = (np.where(rng.random(shape) < 0.5, 0.0, table) for table in (sine, cosine))
    if seed % 3 == 2:
        sine, cosine = (table * 10.0 ** rng.uniform(-18, 0, shape) for table in (sine, cosine))
    return FourierSeries(rng.uniform(0.02, 2.0), harmonics, sine, cosine, rng.normal(size=3))


@pytest.mark.parametrize("seed", range(len(HARMONICS)))
def test_derivatives(seed):
    one = random_series(3 * seed)
    assert_exact_derivatives(one, step=2e-4 * one.duration / max(one.harmonics))


def test_formula():
    """Swevers (4), written out."""
    one = FourierSeries(0.1, (1, 3), [[0.5, 0.2]], [[-0.3, 0.1]], [0.7])
    t, w = 1.234, 2 * np.pi * 0.1
    q = 0.7 + 0.5 * np.sin(w * t) - 0.3 * np.cos(w * t) + 0.2 * np.sin(3 * w * t) + 0.1 * np.cos(3 * w * t)
    assert one.at([t]).q[0, 0] == pytest.approx(q, abs=1e-15)
    assert one.duration == pytest.approx(10)
    assert one.joints == 1
    assert one.periodic


def on_grid(one, order, points):
    """A derivative, without the offset, over one period by the inverse FFT: (joints, points)."""
    spectrum = np.zeros((one.joints, points // 2 + 1), dtype=complex)
    rates = 2j * np.pi * one.base_frequency_hz * np.array(one.harmonics)
    spectrum[:, list(one.harmonics)] = 0.5 * points * (one.cosine - 1j * one.sine) * rates**order
    return np.fft.irfft(spectrum, points)


@pytest.mark.parametrize("block", range(4))
def test_extremes_on_a_dense_grid(block):
    """200 random series, sparse ones too: no value of 100 000 exceeds the extremes, and they are attained."""
    for seed in range(50 * block, 50 * block + 50):
        one = random_series(seed)
        found = one.extrema()
        top = max(one.harmonics)
        q, qd, qdd = (on_grid(one, order, 100_000) for order in range(3))
        for exact, grid in (
            (found.upper - one.offset, q.max(axis=1)),
            (one.offset - found.lower, -q.min(axis=1)),
            (found.velocity, np.abs(qd).max(axis=1)),
            (found.acceleration, np.abs(qdd).max(axis=1)),
        ):
            scale = np.abs(exact) + 1e-12
            assert np.all(exact >= grid - 1e-11 * scale - 1e-14)
            # Between points of the grid a wave of the highest frequency rises by (pi top / points)^2 / 2 at most,
            # times the sum of its amplitudes, which exceeds the extreme itself by a moderate factor.
            assert np.all(exact <= grid + 20 * (np.pi * top / 100_000) ** 2 * scale + 1e-14)


def test_extremes_of_a_flat_top():
    """sin x + sin 3x / 9 has a fourfold flat maximum: multiple roots are no trouble. A still joint has none."""
    one = FourierSeries(1.0, (1, 3), [[1.0, 1 / 9], [0.0, 0.0]], np.zeros((2, 2)), [0.0, 2.0])
    found = one.extrema()
    assert found.upper == pytest.approx([8 / 9, 2.0], abs=1e-14)
    assert found.lower == pytest.approx([-8 / 9, 2.0], abs=1e-14)
    assert found.velocity == pytest.approx([2 * np.pi * 4 / 3, 0.0], abs=1e-12)


def test_velocity_form():
    """Powerball (18)-(20): the variables of a design are the velocity's coefficients, qd = sum a cos + b sin."""
    rng = np.random.default_rng(5)
    a, b, q0 = rng.normal(size=(6, 4)), rng.normal(size=(6, 4)), rng.normal(size=6)
    variables = FourierVariables(0.1, (1, 2, 3, 4), tuple(range(6)), np.zeros(6))
    one = variables.series(np.column_stack([q0, a, b]).ravel())
    t = np.linspace(0, 10, 101)[:, None, None]
    phase = 2 * np.pi * 0.1 * np.arange(1, 5) * t
    assert np.allclose(one.at(t.ravel()).qd, (a * np.cos(phase) + b * np.sin(phase)).sum(axis=2), atol=1e-13)
    assert np.allclose(one.offset, q0, rtol=1e-14, atol=0)


def test_basis_is_linear():
    """The matrices times [offset, a.., b..] are the motion: what the optimiser relies on."""
    one = random_series(1)
    times = np.linspace(0, 3, 50)
    coefficients = np.hstack([one.offset[:, None], one.sine, one.cosine])
    for matrix, motion in zip(basis(times, one.base_frequency_hz, one.harmonics), one.at(times), strict=True):
        assert matrix.shape == (50, 1 + 2 * len(one.harmonics))
        assert np.allclose(matrix @ coefficients.T, motion, atol=1e-12)


@pytest.mark.parametrize("harmonics", [(0, 1), (1.5,), (-1,), (), (1, 1), "12"])
def test_bad_harmonics(harmonics):
    count = len(harmonics)
    with pytest.raises(TrajectoryError, match="harmonics"):
        FourierSeries(0.1, harmonics, np.zeros((1, count)), np.zeros((1, count)), [0.0])
