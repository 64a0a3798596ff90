"""Friction sweeps and stiffness runs: speeds, strokes, ranges, refusals."""

import numpy as np
import pytest

import armid
from armid.experiment.drive import ExperimentError
from armid.experiment.friction_runs import (
    friction_sweep,
    load_friction_run,
    pa10_speeds,
    plan_strokes,
    powerball_speeds,
)
from armid.progress import watch_progress
from tests.experiment.fake_arm import FakeArm

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")


def test_grids_of_the_papers():
    """PA-10: 0.001 rad/s to 60 % of the maximum; Powerball: 11 speeds up to 0.2 and 7 more up to 0.55 rad/s."""
    v = pa10_speeds(2.0)
    assert (v[0], v[-1]) == pytest.approx((0.001, 1.2))
    assert np.diff(np.log(v)) == pytest.approx(np.full(23, np.log(1200.0) / 23))
    w = powerball_speeds()
    assert len(w) == 18
    assert np.sum(w <= 0.2 + 1e-12) == 11
    assert (w[0], w[-1]) == pytest.approx((0.01, 0.55))
    with pytest.raises(ExperimentError, match=r"above 0\.01"):
        pa10_speeds(float("nan"))


def test_both_directions_at_every_speed_for_long_enough():
    """Each commanded speed holds for the asked time in both directions; only the joint moves, inside its range."""
    arm = FakeArm(PA10, rate_hz=100.0)
    told = []
    with watch_progress(lambda text, share: told.append((text, share))):
        run = friction_sweep(arm, PA10, 5, seconds=3.0)
    command = run.log["command"][:, 4]
    for speed in run.speeds:
        for sign in (1.0, -1.0):
            assert np.sum(np.isclose(command, sign * speed, rtol=1e-9)) >= 300
    assert np.abs(np.delete(run.log["command"], 4, axis=1)).max() == 0.0
    q = run.log["position"]
    assert PA10.limits.lower[4] < q[:, 4].min() < q[:, 4].max() < PA10.limits.upper[4]
    assert np.abs(np.delete(q - run.posture.position, 4, axis=1)).max() < 1e-9
    assert run.log.info.mode == "velocity"
    assert run.seconds == pytest.approx(arm.clock, rel=0.01)
    assert told[-1][1] == 1.0


def test_a_minute_of_motion_beforehand():
    """The warm-up of the PA-10 paper: about a minute in position mode over most of the range, before the sweep."""
    cold, warm = (FakeArm(PA10, rate_hz=50.0) for _ in range(2))
    friction_sweep(cold, PA10, 3, speeds=[0.1, 0.2, 0.3], seconds=2.0)
    friction_sweep(warm, PA10, 3, speeds=[0.1, 0.2, 0.3], seconds=2.0, warm_up_s=60.0)
    assert 50.0 < warm.clock - cold.clock < 120.0
    moved = np.vstack([commands for mode, commands in warm.driven if mode == "position"])[:, 2]
    assert np.ptp(moved) > 0.3 * (PA10.limits.upper[2] - PA10.limits.lower[2])


def test_a_mounting_that_does_not_do_is_named():
    """Joint 2 of the upright Powerball: the error says how to mount it; a given posture is taken as it is."""
    arm = FakeArm(POWERBALL, rate_hz=100.0)
    with pytest.raises(ExperimentError, match="base horizontal, x0 up"):
        friction_sweep(arm, POWERBALL, 2)
    run = friction_sweep(arm, POWERBALL, 2, speeds=[0.1, 0.2, 0.3], seconds=1.0, posture=np.zeros(6))
    assert run.posture.reason == "the posture was given"


def test_fast_speeds_need_room():
    """Strokes are repeated when one is too short, and refused when none is long enough."""
    assert plan_strokes(1.0, 10.0, 3.0, 5.0)[0] > 3
    assert plan_strokes(0.001, 10.0, 3.0, 5.0) == (1, 18.0)
    with pytest.raises(ExperimentError, match="leaves no steady part"):
        plan_strokes(5.0, 10.0, 1.0, 1.0)


@pytest.mark.parametrize(("speeds", "words"), [([0.1, -0.1], "at least 1e-05"), ([], "at least 1e-05")])
def test_bad_speeds(speeds, words):
    with pytest.raises(ExperimentError, match=words):
        friction_sweep(FakeArm(PA10), PA10, 1, speeds=speeds)


def test_load_friction_run_spans_the_range_under_load():
    """Both directions, one speed, most of the range, in the posture with most load; a bad speed is refused."""
    arm = FakeArm(PA10, rate_hz=100.0)
    run = load_friction_run(arm, PA10, 4, seconds=10.0)
    q, command = run.log["position"][:, 3], run.log["command"][:, 3]
    assert np.ptp(q) > 0.8 * (PA10.limits.upper[3] - PA10.limits.lower[3])
    assert set(np.sign(command)) == {-1.0, 0.0, 1.0}
    assert np.abs(command).max() == pytest.approx(0.4)
    assert run.posture.torque > 25.0
    with pytest.raises(ExperimentError, match="must be at least 1e-05"):
        load_friction_run(arm, PA10, 4, speed=-1.0)
