"""Programmes: continuity, the window, run-ins within limits."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.excitation import FourierSeries, programme
from armid.excitation.polynomial import quintic, trapezoidal
from armid.excitation.profiles import er16_beta_1, rx60_verification
from armid.excitation.sequence import Programme, Ramp, Repeated
from armid.excitation.trajectory import TrajectoryError
from armid.robot.robot import Limits
from tests.excitation.differences import assert_exact_derivatives


def joins(one):
    return np.cumsum([part.duration for part in one.parts])[:-1]


def assert_no_jumps(one, acceleration=True):
    """At every join, position and velocity (and acceleration) agree from both sides; it begins and ends at rest."""
    before, after = (one.at(joins(one) + side) for side in (-1e-9, 1e-9))
    for order in range(3 if acceleration else 2):
        assert np.abs(before[order] - after[order]).max(initial=0) < 1e-6
    assert np.abs(one.at([0.0, one.duration]).qd).max() < 1e-9


def inside(one, limits):
    q, qd, qdd = one.at(np.linspace(0, one.duration, 50_000))
    return (
        np.all(q >= limits.lower - 1e-9)
        and np.all(q <= limits.upper + 1e-9)
        and np.all(np.abs(qd) <= limits.velocity * (1 + 1e-6))
        and np.all(np.abs(qdd) <= limits.acceleration * (1 + 1e-6))
    )


def test_whole_programme():
    """Approach, run-in, settling and measured periods, run-out, return; the window holds exactly the periods."""
    series = er16_beta_1()
    one = programme(series, home=[0.0, 0.1, 0.2], periods=4, settle=1)
    assert [part.type_name for part in one.parts] == [
        "polynomial",
        "ramp",
        "repeated",
        "repeated",
        "ramp",
        "polynomial",
    ]
    assert_no_jumps(one)
    start, end = one.window
    assert end - start == pytest.approx(80)
    times = np.linspace(0, 80, 999)
    for measured, wanted in zip(one.at(start + times), series.at(times), strict=True):
        assert np.allclose(measured, wanted, atol=1e-9)
    assert one.at([0.0, one.duration]).q == pytest.approx(np.array([[0.0, 0.1, 0.2]] * 2))
    assert_exact_derivatives(one, away_from=joins(one))


@pytest.mark.parametrize("rising", [True, False])
def test_ramp_keeps_the_range_of_its_trajectory(rising):
    series = er16_beta_1()
    ramp = Ramp(series, 7.0, rising)
    found = series.extrema()
    q, qd, qdd = ramp.at(np.linspace(0, 7, 5000))
    assert np.all((q >= found.lower - 1e-9) & (q <= found.upper + 1e-9))
    assert np.all(np.abs(qd) <= found.velocity)
    assert np.all(np.abs(qdd) <= found.acceleration + 1.5 / 7 * found.velocity)
    assert np.abs(qd[0 if rising else -1]).max() < 1e-12
    assert_exact_derivatives(ramp)


def test_run_in_within_limits():
    """With limits the whole programme is inside them, even where the trajectory itself uses them up."""
    series = er16_beta_1()
    found = series.extrema()
    for margin in (1.05, 1.3):
        limits = replace(
            Limits.unknown(3),
            lower=found.lower - 0.01,
            upper=found.upper + 0.01,
            velocity=margin * found.velocity,
            acceleration=margin * found.acceleration,
        )
        one = programme(series, home=0.5 * (found.lower + found.upper), periods=2, limits=limits)
        assert_no_jumps(one)
        assert inside(one, limits)


def test_trajectory_that_is_not_periodic():
    """The RX-60 motion starts and ends with velocity; quintics meet position, velocity and acceleration."""
    robot = armid.load_robot("rx60")
    one = programme(rx60_verification(), home=np.zeros(3), limits=robot.limits)
    assert one.parts[one.main].type_name == "ramped-sinusoid"
    assert one.window[1] - one.window[0] == pytest.approx(20)
    assert_no_jumps(one)
    assert inside(one, robot.limits)
    with pytest.raises(TrajectoryError, match="not periodic"):
        programme(rx60_verification(), periods=2)


def test_nothing_is_added_to_what_rests_already():
    still = quintic([[0.0], [1.0]], [1.0])
    assert programme(still).parts == (still,)
    assert len(programme(still, home=[0.0]).parts) == 2  # only the return
    jerky = trapezoidal([[0.0], [1.0]], 1.0, 1.0)
    assert programme(jerky).parts == (jerky,)


def test_window_starts_on_a_sample():
    one = programme(er16_beta_1(), home=[0.3, 0.2, 0.1], periods=2, rate_hz=150.0)
    assert one.window[0] * 150 == pytest.approx(round(one.window[0] * 150), abs=1e-6)
    times, _ = one.sample(150.0)
    assert times[-1] >= one.duration - 1e-9


def test_bad_programmes():
    series = er16_beta_1()
    tight = replace(Limits.unknown(3), acceleration=np.full(3, 1e-3), lower=np.full(3, -3.0), upper=np.full(3, 3.0))
    with pytest.raises(TrajectoryError, match=r"trajectory takes joint \d over its acceleration limit even"):
        programme(series, limits=tight)
    with pytest.raises(TrajectoryError, match=r"run_in_s of 2 s takes joint \d over its acceleration limit"):
        programme(series, limits=tight, run_in_s=2.0)
    edge = rx60_verification()
    box = replace(Limits.unknown(3), lower=edge.at([0.0]).q[0] - [9, 9, 9], upper=edge.at([0.0]).q[0] + [0, 9, 9])
    with pytest.raises(TrajectoryError, match="takes joint 1 over its position limit"):
        programme(edge, limits=box)
    with pytest.raises(TrajectoryError, match=r"home has joint 2 at 4, outside its limits \[-3, 3\]"):
        programme(series, home=[0.0, 4.0, 0.0], limits=replace(tight, acceleration=np.full(3, 1e3)))
    with pytest.raises(TrajectoryError, match="limits are for 6 joints; the trajectory moves 3"):
        programme(series, limits=Limits.unknown(6))
    with pytest.raises(TrajectoryError, match="home has shape"):
        programme(series, home=[0.0])
    with pytest.raises(TrajectoryError, match="periods is 0"):
        programme(series, periods=0)
    with pytest.raises(TrajectoryError, match="run_in_s"):
        programme(series, run_in_s=-1.0)
    with pytest.raises(TrajectoryError, match="1 and 2 do not meet: velocities of joint"):
        Programme((quintic([[0.0] * 3, series.at([0.0]).q[0]], [1.0]), Repeated(series, 1)))
    with pytest.raises(TrajectoryError, match="1 and 2 do not meet: positions of joint"):
        Programme((quintic([[0.0], [1.0]], [1.0]), quintic([[0.0], [1.0]], [1.0])))
    with pytest.raises(TrajectoryError, match="move 3 and 1 joints"):
        Programme((Repeated(series, 1), quintic([[0.0], [1.0]], [1.0])))
    with pytest.raises(TrajectoryError, match="must be a periodic"):
        Ramp(quintic([[0.0], [1.0]], [1.0]), 1.0)
    with pytest.raises(TrajectoryError, match="main is 2"):
        Programme((Repeated(series, 1),), 2)
    still = FourierSeries(1.0, (1,), [[0.0]], [[0.0]], [0.0])
    assert len(programme(still, periods=2).parts) == 1
