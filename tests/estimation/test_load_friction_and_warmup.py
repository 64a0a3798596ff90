"""Load-proportional loss and warm-up, on an arm whose truth is exact."""

import json

import numpy as np
import pytest

import armid
from armid.estimation.single_joint.curves import FitError
from armid.estimation.single_joint.load_friction import fit_load_friction
from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
from armid.experiment.friction_runs import load_friction_run
from armid.experiment.warm_up import warm_up
from armid.logs.log import LogError
from tests.experiment.fake_arm import FakeArm

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")
SLOPES = {1: 0.1036, 2: 0.1054, 3: 0.1199, 4: 0.1161}


@pytest.mark.parametrize("joint", range(1, 7))
def test_slopes_of_equation_19(joint):
    """Joints 1 to 4 within 2 % and three standard deviations, with their offsets; 5 and 6 have none."""
    arm = FakeArm(PA10, rate_hz=400.0, seed=joint)
    run = load_friction_run(arm, PA10, joint)
    fit = fit_load_friction(run.log, PA10, joint, values=arm.values, friction=lambda v: arm.friction(joint - 1, v))
    slope, offset = PA10.virtual.load_loss[joint - 1]
    assert abs(fit.slope - slope) < 4.0 * fit.slope_sigma
    assert abs(fit.offset - offset / 50.0) < 4.0 * fit.offset_sigma + 1e-6
    if joint in SLOPES:
        assert slope == SLOPES[joint]
        assert fit.slope == pytest.approx(slope, rel=0.02)
        assert fit.present
    else:
        assert not fit.present
        assert abs(fit.slope) < 0.03
    assert json.loads(json.dumps(fit.to_data()))["slope"] == fit.slope


def test_slope_needs_no_friction_curve():
    """Friction is one number per direction at constant speed: unknown, the slope is the same; changed, it is told."""
    arm = FakeArm(PA10, rate_hz=400.0)
    log = load_friction_run(arm, PA10, 3).log
    without = fit_load_friction(log, PA10, 3, values=arm.values)
    stale = fit_load_friction(log, PA10, 3, values=arm.values, friction=lambda v: arm.friction(2, v) - 0.5 * np.sign(v))
    assert without.slope == pytest.approx(stale.slope, rel=1e-6)
    assert not without.friction_known
    assert stale.friction_change == pytest.approx(0.5, abs=0.05)


def test_a_joint_without_load_is_refused():
    """Gravity does not reach joint 7 of the virtual PA-10; and a log of something else has no strokes."""
    arm = FakeArm(PA10, rate_hz=100.0)
    log = load_friction_run(arm, PA10, 7, seconds=10.0).log
    with pytest.raises(FitError, match="carry a payload"):
        fit_load_friction(log, PA10, 7, values=arm.values)
    with pytest.raises(LogError, match="never moves alone"):
        fit_load_friction(log, PA10, 1, values=arm.values)


def test_drop_and_time_constant():
    """Friction that is 11.1 % higher when cold: a drop of 10 % and the time constant, within 10 % and intervals."""
    arm = FakeArm(POWERBALL, rate_hz=50.0, cold=1.0 / 9.0, time_constant_s=120.0)
    run = warm_up(arm, POWERBALL, [4], cycle_s=5.0)
    assert run.warm
    fit = fit_warmup("joint4", *cycle_means(run.log, POWERBALL, 4))
    assert fit.significant
    assert fit.drop == pytest.approx(0.1, abs=0.01)
    assert fit.time_constant == pytest.approx(120.0, rel=0.1)
    low, high = fit.fit.interval("T", 0.999)
    assert low < 120.0 < high
    assert json.loads(json.dumps(fit.to_data()))["significant"] is True


def test_cycle_means_are_those_of_the_experiment():
    """The same numbers from the log as the procedure saw; a cut cycle at the end is left out."""
    run = warm_up(FakeArm(POWERBALL, rate_hz=50.0), POWERBALL, [4], cycle_s=5.0)
    time, means = cycle_means(run.log.rows(slice(0, len(run.log) - 100)), POWERBALL, 4)
    assert time == pytest.approx(run.time[:-1])
    assert means == pytest.approx(run.means[:-1, 0])


def test_logs_that_do_not_serve():
    """An unknown cycle and too few cycles are named."""
    run = warm_up(FakeArm(POWERBALL, rate_hz=50.0), POWERBALL, [4], cycle_s=5.0)
    with pytest.raises(LogError, match="how long a cycle"):
        cycle_means(run.log.with_channels({}, period_s=None), POWERBALL, 4)
    with pytest.raises(FitError, match="at least 8"):
        fit_warmup("joint4", run.time[:5], run.means[:5, 0])
