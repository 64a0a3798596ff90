"""A stated rate that contradicts the timestamps would scale velocities and accelerations: it is refused."""

from dataclasses import replace

import numpy as np
import pytest

from armid.logs.log import Log, LogError, LogInfo
from armid.signals import LowPass, process

RATE_HZ = 150.0


def log_with(time, rate_hz):
    """Two joints that swing, at the given times."""
    swing = np.sin(np.outer(time, [2.0, 3.0]))
    info = LogInfo(joints=("a", "b"), effort="joint torque", rate_hz=rate_hz, source="swing.csv")
    return Log(time, {"position": swing, "effort": 3.0 * swing}, info)


@pytest.mark.parametrize("stated", [100.0, 200.0, 0.15, 150e3])
def test_a_contradiction_is_refused(stated):
    """The sentence names the file, both rates and what to do."""
    log = log_with(np.arange(3000) / RATE_HZ, stated)
    with pytest.raises(LogError, match=r"swing.csv: rate: is stated as .* Hz, but the timestamps say 150 Hz; correct"):
        process(log, LowPass(cutoff_hz=5.0))
    data = process(Log(log.time, log.channels, replace(log.info, rate_hz=None)), LowPass(cutoff_hz=5.0))
    assert data.rate_hz == pytest.approx(RATE_HZ)


def test_lost_and_alternating_samples_are_no_contradiction():
    """A tenth of the samples lost changes the mean step, alternating steps the usual one; both agree with 150 Hz."""
    time = np.arange(3000) / RATE_HZ
    keep = np.random.default_rng(0).random(len(time)) > 0.1
    steps = np.where(np.arange(3000) % 2, 1.1, 0.9) / RATE_HZ
    for times in (time[keep], np.cumsum(steps)):
        data = process(log_with(times, RATE_HZ), LowPass(cutoff_hz=5.0))
        assert data.rate_hz == pytest.approx(RATE_HZ, rel=1e-9)
        expected = np.array([2.0, 3.0]) * np.cos(np.outer(data.time, [2.0, 3.0]))
        inner = slice(300, -300)
        np.testing.assert_allclose(data.qd[inner], expected[inner], atol=0.02)


def test_jitter_with_lost_samples_is_no_contradiction():
    """30 % of a step and 5 % lost: usual step and mean are both off, by what steps scatter."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        time = np.sort((np.arange(900) + 0.3 * rng.normal(size=900))[rng.random(900) > 0.05]) / RATE_HZ
        process(log_with(time, RATE_HZ), LowPass(cutoff_hz=5.0))
        with pytest.raises(LogError, match="is stated as 200 Hz"):
            process(log_with(time, 200.0), LowPass(cutoff_hz=5.0))
