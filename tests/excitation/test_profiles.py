"""Velocity profiles."""

import numpy as np
import pytest

from armid.excitation.profiles import polynomial_velocity, sinusoidal_velocity
from armid.excitation.trajectory import TrajectoryError
from tests.excitation.differences import assert_exact_derivatives


def test_sinusoidal_velocity():
    """qd_j = v_j sin(n_j w t), from the start posture."""
    one = sinusoidal_velocity([0.1, -0.2, 0.3], [1.0, 0.5, -0.7], 0.2, (1, 3, 1))
    times = np.linspace(0, 5, 77)
    expected = np.array([1.0, 0.5, -0.7]) * np.sin(2 * np.pi * 0.2 * times[:, None] * [1, 3, 1])
    assert np.allclose(one.at(times).qd, expected, atol=1e-14)
    assert one.at([0.0]).q[0] == pytest.approx([0.1, -0.2, 0.3])
    assert one.harmonics == (1, 3)
    assert_exact_derivatives(one)
    with pytest.raises(TrajectoryError, match="multiples"):
        sinusoidal_velocity([0.0], 1.0, 0.2, 0.5)
    with pytest.raises(TrajectoryError, match="peak_velocity has shape"):
        sinusoidal_velocity([0.0], [1.0, 2.0], 0.2)


def test_polynomial_velocity():
    """A bell with the peak in the middle of each stroke, there and back again, smooth between strokes."""
    one = polynomial_velocity([0.2, 0.4], [1.0, -0.5], 2.0, strokes=4)
    assert one.duration == 8.0
    assert one.at([1.0]).qd[0] == pytest.approx([1.0, -0.5])
    assert one.at([3.0]).qd[0] == pytest.approx([-1.0, 0.5])
    assert one.at([2.0]).q[0] - [0.2, 0.4] == pytest.approx(np.array([1.0, -0.5]) * 2 * 8 / 15)
    assert one.at([4.0, 8.0]).q == pytest.approx(np.array([[0.2, 0.4]] * 2))
    assert np.abs(one.at([0.0, 2.0, 4.0]).qdd).max() < 1e-12
    assert np.abs(one.at(np.linspace(0.0, 8.0, 801)).qd).max(axis=0) == pytest.approx([1.0, 0.5])
    assert_exact_derivatives(one, away_from=one.breaks)
