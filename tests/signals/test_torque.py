"""Torques that cannot be used are refused in a sentence; those of a joint that was not measured are left out."""

import numpy as np
import pytest

import armid
from armid.logs.log import LogError, LogStream
from armid.signals import LowPass, PeriodicAverage, process
from armid.signals.doctor.robot import check_torque
from tests.signals.waves import Wave


def swinging(torque):
    """Two joints in motion for a minute, their torque changed by a function."""
    time = np.arange(6000) / 100.0
    q, _, qdd = Wave(np.random.default_rng(0), joints=2).motion(time)
    effort = 3.0 * qdd + np.sin(q) + 0.01 * np.random.default_rng(1).normal(size=q.shape)
    return armid.Log(time, {"position": q, "effort": torque(effort)}, armid.LogInfo(("a", "b"), "joint torque"))


@pytest.mark.parametrize(
    ("torque", "said"),
    [
        (lambda t: 0.0 * t, "effort: is 0 N m at the most, which is no arm's"),
        (lambda t: 1e-9 * t, "N m at the most, which is no arm's; check"),
        (lambda t: 1e9 * t, "N m at the most, which is no arm's; check"),
        (lambda t: t * [1.0, 0.0], "effort.b: is 0 in all rows although the joint moves; .* write `null`"),
        (lambda t: np.where(np.arange(6000)[:, None] % 10 < [0, 3], np.nan, t), None),
        (lambda t: np.where(np.arange(6000)[:, None] // 20 % 10 < [0, 3], np.nan, t), "effort.b: misses 30% of its"),
    ],
)
def test_unusable_torque(torque, said):
    """All zero, absurdly small or large, dead, missing here and there (filled), missing in stretches."""
    log = swinging(torque)
    if said is None:
        assert len(process(log))
        return
    with pytest.raises(LogError, match=said):
        check_torque(process(log), None)


def test_a_joint_without_measured_torque_is_left_out():
    """Its rows do not count, those of the other do."""
    data = process(swinging(lambda t: t * [1.0, np.nan]), LowPass(cutoff_hz=5.0))
    assert data.use[:, 0].any()
    assert not data.use[:, 1].any()


def test_a_stream_is_averaged_without_the_joint_that_has_no_torque():
    """Block by block as in memory: periods are averaged, and its rows do not count."""
    time = np.arange(5000) / 100.0
    q = np.column_stack([np.sin(0.4 * np.pi * time), np.cos(0.4 * np.pi * time)])
    log = armid.Log(time, {"position": q, "effort": q * [1.0, np.nan]}, armid.LogInfo(("a", "b"), "joint torque"))
    halves = [log.rows(slice(0, 2000)), log.rows(slice(2000, None))]
    stream = LogStream(log.info, tuple(log.channels), lambda size: iter(halves))
    data = process(stream, PeriodicAverage(period_s=5.0))
    assert data.periods == 10
    assert data.use.any(axis=0).tolist() == [True, False]
