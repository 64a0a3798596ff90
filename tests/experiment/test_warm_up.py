"""Warm-up: it stops by itself, not too early and not too late."""

import numpy as np
import pytest

import armid
from armid.experiment.drive import ExperimentError
from armid.experiment.warm_up import harmonic, warm_up
from armid.progress import watch_progress
from tests.experiment.fake_arm import FakeArm

POWERBALL = armid.load_robot("powerball")


def test_it_stops_when_little_is_left_to_come():
    """Friction falls by 10 % with 60 s: at the end, no more than the threshold of 1 % is left, and not long after."""
    arm = FakeArm(POWERBALL, rate_hz=50.0, cold=1.0 / 9.0, time_constant_s=60.0)
    told = []
    with watch_progress(lambda text, share: told.append(text)):
        run = warm_up(arm, POWERBALL, cycle_s=4.0)
    assert run.warm
    left = (1.0 / 9.0) * np.exp(-run.time[-1] / 60.0)
    assert left < 0.012
    assert run.time[-1] < 6.0 * 60.0
    assert run.means.shape == (len(run.time), 6)
    assert np.all(run.means[-1] < run.means[0])
    assert "to come" in told[-1]


def test_a_warm_arm_is_soon_done():
    """Nothing changes: a few dozen cycles at most."""
    run = warm_up(FakeArm(POWERBALL, rate_hz=50.0), POWERBALL, [4], cycle_s=4.0)
    assert run.warm
    assert len(run.time) < 40


def test_time_runs_out():
    """A time limit far below the time constant ends it, and says that the arm is not warm."""
    arm = FakeArm(POWERBALL, rate_hz=50.0, cold=0.2, time_constant_s=600.0)
    run = warm_up(arm, POWERBALL, [4], cycle_s=4.0, longest_s=100.0)
    assert not run.warm
    assert run.log.info.history["warm"] is False
    assert len(run.log) == 25 * 200


def test_motion_is_moderate_and_periodic():
    """Inside limits, at most 40 % of the speed, one period per cycle, only the joints asked for."""
    motion = harmonic(POWERBALL, (1, 3), np.zeros(6), 8.0)
    q, qd, _ = motion.sample(100.0)[1]
    assert np.ptp(q, axis=0)[[0, 2, 4, 5]] == pytest.approx(np.zeros(4))
    assert np.abs(qd).max() <= 0.4 * POWERBALL.limits.velocity[1] * 1.0001
    assert np.all((q > POWERBALL.limits.lower) & (q < POWERBALL.limits.upper))
    run = warm_up(FakeArm(POWERBALL, rate_hz=50.0), POWERBALL, [2], cycle_s=4.0)
    assert run.log.info.period_s == 4.0
    assert run.log["command"][:200] == pytest.approx(run.log["command"][200:400])


def test_bad_input():
    """No joints, thresholds that are no share, and a joint at its limit are refused."""
    arm = FakeArm(POWERBALL)
    with pytest.raises(ExperimentError, match="at least one joint"):
        warm_up(arm, POWERBALL, [])
    with pytest.raises(ExperimentError, match="between 0 and 1"):
        warm_up(arm, POWERBALL, threshold=5.0)
    with pytest.raises(ExperimentError, match="no room"):
        warm_up(arm, POWERBALL, [1], posture=POWERBALL.limits.upper)
