"""Excitation, point-to-point and repeated runs on an arm that follows every command."""

import numpy as np
import pytest

import armid
from armid.excitation import FourierSeries
from armid.excitation.polynomial import quintic
from armid.excitation.trajectory import SamplingError
from armid.experiment.drive import ExperimentError, move_to
from armid.experiment.excite import excite, point_to_point
from armid.progress import watch_progress
from tests.experiment.fake_arm import FakeArm

POWERBALL = armid.load_robot("powerball")


@pytest.fixture
def arm():
    return FakeArm(POWERBALL, rate_hz=100.0)


def series(period=2.0):
    rng = np.random.default_rng(0)
    sine, cosine = 0.2 * rng.normal(size=(2, 6, 3))
    return FourierSeries(1.0 / period, (1, 2, 3), sine, cosine, np.full(6, 0.1))


def test_whole_periods_of_the_trajectory_are_recorded(arm):
    """Commands of the log are the trajectory itself, period after period; approach and settling are not in it."""
    told = []
    with watch_progress(lambda text, share: told.append(share)):
        log = excite(arm, series(), periods=3, settle=2)
    q = series().sample(100.0)[1].q
    assert len(log) == 600
    assert log["command"] == pytest.approx(np.tile(q, (3, 1)), abs=1e-9)
    assert log.info.period_s == 2.0
    assert log.info.mode == "position"
    assert log.info.history["procedure"] == "excitation"
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_nothing_jumps_and_the_arm_returns(arm):
    """All commands together are smooth, from where the arm stood and back again."""
    excite(arm, series(), periods=2)
    driven = np.vstack([np.zeros((1, 6)), *(commands for _, commands in arm.driven)])
    fastest = np.abs(np.diff(driven, axis=0)).max() * 100.0
    assert fastest < 1.2 * np.abs(series().sample(100.0)[1].qd).max() + 0.6
    assert driven[-1] == pytest.approx(np.zeros(6), abs=1e-9)


def test_another_home(arm):
    """The arm goes to `home` first and ends there."""
    home = np.full(6, 0.4)
    excite(arm, series(), home=home)
    assert arm.position == pytest.approx(home, abs=1e-9)


def test_period_must_be_whole_cycles(arm):
    """2.0034 s at 100 Hz: the error proposes 2 s or another rate."""
    with pytest.raises(SamplingError, match="period of 2 s"):
        excite(arm, series(2.0034))


def test_a_trajectory_that_is_not_periodic_is_recorded_once(arm):
    """A quintic from point to point, without a period in the log."""
    path = quintic(np.array([np.zeros(6), np.full(6, 0.5)]), [2.0])
    log = excite(arm, path)
    assert log.info.period_s is None
    assert log["command"][-1] == pytest.approx(np.full(6, 0.5))
    assert log.duration == pytest.approx(2.0)


@pytest.mark.parametrize(("periods", "words"), [(1, "recording 1 period"), (2, "recording 2 periods")])
def test_progress_says_what_is_recorded(arm, periods, words):
    told = set()
    with watch_progress(lambda text, share: told.add(text)):
        excite(arm, series(), periods=periods)
    assert words in told


def test_payload_is_noted(arm):
    """Ten numbers end up in the log; another count is refused."""
    assert excite(arm, series(), payload=[1.0] * 10).info.payload == (1.0,) * 10
    with pytest.raises(ExperimentError, match="payload has 4 numbers"):
        excite(arm, series(), payload=[1.0] * 4)


def test_rounds_from_point_to_point_can_be_averaged(arm):
    """A closed round of a whole number of cycles, repeated; speeds and accelerations stay within the limits."""
    log = point_to_point(arm, POWERBALL, points=5, repetitions=3, seed=1)
    rows = round(log.info.period_s * 100.0)
    assert len(log) == 3 * rows
    assert log["command"][:rows] == pytest.approx(log["command"][rows : 2 * rows])
    assert np.abs(np.diff(log["command"], axis=0)).max() * 100.0 <= 0.901 * POWERBALL.limits.velocity.max()
    closed = np.vstack([log["command"][:rows], log["command"][:1]])
    assert np.abs(np.diff(closed, 2, axis=0)).max() * 100.0**2 <= 1.01 * POWERBALL.limits.acceleration.max()


def test_wrong_arms_are_refused(arm):
    """A trajectory of other joints, a robot with other joints, a posture of other size."""
    with pytest.raises(ExperimentError, match="moves 3 joints; the arm has 6"):
        excite(arm, FourierSeries(0.5, (1,), np.ones((3, 1)), np.ones((3, 1)), np.zeros(3)))
    with pytest.raises(ExperimentError, match="describe the same arm"):
        point_to_point(arm, armid.load_robot("pa10"))
    with pytest.raises(ExperimentError, match="3 positions"):
        move_to(arm, np.zeros(3))


def test_moving_takes_the_limits(arm):
    """Half of the limits' speed, rest to rest."""
    move_to(arm, np.full(6, 1.0), POWERBALL.limits)
    q = np.vstack([commands for _, commands in arm.driven])
    assert np.abs(np.diff(q, axis=0)).max() * 100.0 <= 0.5 * POWERBALL.limits.velocity.min() * 1.001
    assert arm.position == pytest.approx(np.ones(6))
