"""Intervals from residuals that are correlated in time: Monte-Carlo on short logs of an arm with known parameters."""

import numpy as np
import pytest
from scipy.signal import lfilter

import armid
from armid.estimation.least_squares import WeightedLeastSquares
from armid.logs.log import Log
from armid.signals import LowPass, process
from armid.torque.model import model_of
from tests.fleet.arms import NOISE, arm_file, log_of, true_parameters


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The example arm and its parameters, by name: base parameters and friction."""
    robot = armid.load_robot(arm_file(tmp_path_factory.mktemp("arm")))
    values = true_parameters(robot.virtual)
    base = model_of(robot).base
    grouped = base.matrix @ np.array([values.get(name, 0.0) for name in base.names])
    return robot, values, {**values, **dict(zip(base.kept, grouped, strict=True))}


def share_inside(arm, *, seconds, draws, memory, cutoff_hz=5.0):
    """Share of the 95 % intervals that hold the truth; `memory` is the pole of the noise, 0 for white noise."""
    robot, values, truth = arm
    inside = []
    for seed in range(draws):
        clean = log_of(robot, values, seconds=seconds, seed=seed)
        white = np.random.default_rng([seed, 1]).normal(size=clean["effort"].shape)  # as log_of draws it
        other = np.random.default_rng([seed, 2]).normal(size=white.shape)
        noise = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], other, axis=0)
        effort = clean["effort"] + NOISE * (noise - white)
        log = Log(clean.time, {"position": clean["position"], "effort": effort}, clean.info)
        fit = WeightedLeastSquares().fit(robot, process(log, LowPass(cutoff_hz=cutoff_hz), robot=robot))
        z = (fit.values - np.array([truth[name] for name in fit.columns])) / fit.sigma
        inside.append(np.abs(z) < 1.96)
    return float(np.mean(inside))


def test_short_filtered_logs(arm):
    """Twenty seconds behind a filter: 230 rows for 36 parameters."""
    assert 0.92 < share_inside(arm, seconds=20.0, draws=40, memory=0.0) < 0.98


def test_noise_with_a_memory_longer_than_the_filter(arm):
    """Noise that forgets within half a second; with few draws, whose parameters err together, the share scatters."""
    assert 0.90 < share_inside(arm, seconds=40.0, draws=30, memory=0.98) < 0.99


@pytest.mark.prove
@pytest.mark.parametrize("memory", [0.0, 0.9, 0.98])
@pytest.mark.parametrize("seconds", [10.0, 20.0, 40.0, 80.0])
def test_any_length_and_memory(arm, seconds, memory):
    """Two hundred draws each; the shortest have 105 rows for 36 parameters and may be a little narrow."""
    share = share_inside(arm, seconds=seconds, draws=200, memory=memory)
    print(f"{seconds:g} s, pole {memory:g}: {share:.3f} inside")
    assert (0.90 if seconds < 20.0 else 0.92) <= share <= 0.985
