"""Piecewise polynomials and quintics."""

import numpy as np
import pytest

from armid.excitation.polynomial import PiecewisePolynomial, from_velocity, quintic, spline
from armid.excitation.trajectory import TrajectoryError
from tests.excitation.differences import assert_exact_derivatives

POINTS = np.random.default_rng(2).uniform(-2, 2, (5, 3))


def test_quintic_rests_at_its_waypoints():
    one = quintic(POINTS, [1.0, 0.5, 2.0, 1.5])
    q, qd, qdd = one.at(one.breaks)
    assert np.allclose(q, POINTS, atol=1e-12)
    assert np.abs(qd).max() < 1e-12
    assert np.abs(qdd).max() < 1e-10
    assert_exact_derivatives(one, away_from=one.breaks)


def test_quintic_with_prescribed_velocities():
    rng = np.random.default_rng(3)
    velocity, acceleration = rng.normal(size=(2, 5, 3))
    one = quintic(POINTS, [1.0, 0.5, 2.0, 1.5], velocity, acceleration)
    for side in (-1e-12, 1e-12):
        q, qd, qdd = one.at(one.breaks[1:-1] + side)
        assert np.allclose(q, POINTS[1:-1], atol=1e-9)
        assert np.allclose(qd, velocity[1:-1], atol=1e-9)
        assert np.allclose(qdd, acceleration[1:-1], atol=1e-8)
    assert_exact_derivatives(one, away_from=one.breaks)


def test_constant_velocity_and_rest():
    """Pieces of low degree: a parabola there and back beside a joint at rest, and a posture that is kept."""
    one = from_velocity([0.0, 1.0], [2.0, 2.0], [[[1.0, 0.0], [-1.0, 0.0]], [[-1.0, 0.0], [1.0, 0.0]]])
    q, qd, qdd = one.at([1.0, 3.0])
    assert np.allclose(q, [[0.5, 1.0], [-0.5, 1.0]])
    assert np.allclose(qd, 0.0)
    assert np.allclose(qdd, [[-1.0, 0.0], [1.0, 0.0]])
    still = PiecewisePolynomial([1.0], [[[3.0]]])
    assert still.at([0.5]).q == pytest.approx(3.0)
    assert not still.at([0.5]).qd.any()


def test_spline_follows_a_smooth_curve():
    """A quintic spline through samples of sines has their derivatives, inside and at the ends."""
    times = np.linspace(0, 4, 161)
    one = spline(times, np.stack([np.sin(2 * times), np.cos(3 * times)], axis=1))
    dense = np.linspace(0, 4, 1001)
    q, qd, qdd = one.at(dense)
    assert np.allclose(q, np.stack([np.sin(2 * dense), np.cos(3 * dense)], axis=1), atol=1e-8)
    assert np.allclose(qd, np.stack([2 * np.cos(2 * dense), -3 * np.sin(3 * dense)], axis=1), atol=1e-5)
    assert np.allclose(qdd, np.stack([-4 * np.sin(2 * dense), -9 * np.cos(3 * dense)], axis=1), atol=1e-3)
    assert_exact_derivatives(one, step=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: quintic([[0.0]], []), "waypoints has shape"),
        (lambda: quintic([[0.0], [1.0]], [0.0]), "durations must be positive"),
        (lambda: quintic([[0.0], [1.0]], [1.0, 1.0]), "durations has shape"),
        (lambda: quintic([[0.0], [np.inf]], [1.0]), "waypoints must be finite"),
        (lambda: quintic([[0.0], [1.0]], [1.0], velocities=[[0.0]]), "velocities has shape"),
        (
            lambda: PiecewisePolynomial([1.0, 1.0], [[[0.0]], [[1.0]]]),
            "position of joint 1 jump at the end of segment 1",
        ),
        (lambda: PiecewisePolynomial([1.0, 1.0], [[[0.0], [1.0]], [[1.0], [0.0]]]), "velocity of joint 1 jump"),
        (lambda: PiecewisePolynomial([], np.zeros((0, 1, 1))), "coefficients is empty"),
        (lambda: spline([0, 1, 2], np.zeros((3, 1))), "times must be at least 6"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(TrajectoryError, match=message):
        make()
