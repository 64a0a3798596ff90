"""Acceleration sequences, velocity profiles, sweeps."""

import numpy as np
import pytest

from armid.excitation import (
    TrajectoryError,
    acceleration_sequence,
    constant_velocity_sweep,
    polynomial_velocity,
    sinusoidal_velocity,
)
from tests.excitation.differences import assert_exact_derivatives


def test_acceleration_sequence():
    """Constant acceleration, integrated twice; the last velocity follows from the sum."""
    one = acceleration_sequence([1.0, 0.0], [[1.0, 0.0], [-2.0, 1.0], [0.0, -1.0]], [1.0, 0.5, 0.5], [0.0, 0.2])
    q, qd, qdd = one.at([0.5, 1.25, 2.0])
    assert qdd.tolist() == [[1.0, 0.0], [-2.0, 1.0], [0.0, -1.0]]
    assert qd[2] == pytest.approx([0.0, 0.2])
    assert q[0] == pytest.approx([1.125, 0.1])
    assert_exact_derivatives(one, away_from=one.breaks)
    for bad in ([], [[]], [1.0]):
        with pytest.raises(TrajectoryError):
            acceleration_sequence([0.0], bad, [])


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
    assert one.extrema().velocity == pytest.approx([1.0, 0.5])
    assert_exact_derivatives(one, away_from=one.breaks)


def test_sweep():
    """Every cruise is at its speed exactly, both ways, inside the range; other joints rest; ends where it began."""
    speeds = [0.01, 0.05, 0.2, 0.55]
    one = constant_velocity_sweep([0.3, 0.1, -0.2], 2, speeds, -0.5, 0.6, 2.0, longest_cruise_s=5.0)
    assert one.speeds == pytest.approx(np.repeat(speeds, 2) * np.tile([1, -1], 4))
    for speed, (start, end) in zip(one.speeds, one.windows, strict=True):
        times = np.linspace(start + 1e-9, end - 1e-9, 20)
        _, qd, qdd = one.trajectory.at(times)
        assert qd[:, 1] == pytest.approx(np.full(20, speed))
        assert not qdd[:, 1].any()
        assert not qd[:, [0, 2]].any()
        assert end - start <= 5.0 + 1e-9
    found = one.trajectory.extrema()
    assert found.lower == pytest.approx([0.3, -0.5, -0.2], abs=1e-9)
    assert found.upper == pytest.approx([0.3, 0.6, -0.2], abs=1e-9)
    assert found.velocity == pytest.approx([0, 0.55, 0])
    assert found.acceleration == pytest.approx([0, 2.0, 0])
    assert one.trajectory.at([0.0, one.trajectory.duration]).q == pytest.approx(np.array([[0.3, 0.1, -0.2]] * 2))
    assert_exact_derivatives(one.trajectory, away_from=one.trajectory.breaks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"speeds": [0.1, 3.0]}, r"speeds contains 3, too fast: between -0\.5 and 0\.5 there is only room below 1"),
        ({"speeds": [-0.1]}, "speeds must be positive"),
        ({"speeds": []}, "speeds must be positive"),
        ({"joint": 3}, "joint is 3; joints are numbered 1 to 2"),
        ({"joint": 0}, "joint is 0"),
        ({"posture": [0.0, 2.0]}, "posture has joint 2 at 2, outside"),
        ({"upper": -1.0}, "too fast"),
        ({"acceleration": 0.0}, "acceleration is 0"),
    ],
)
def test_bad_sweep(change, message):
    good = {"posture": [0.0, 0.0], "joint": 2, "speeds": [0.1], "lower": -0.5, "upper": 0.5, "acceleration": 1.0}
    with pytest.raises(TrajectoryError, match=message):
        constant_velocity_sweep(**{**good, **change})
