"""Logs as recorders make them: stale rows, clocks that jitter, coarse steps. The fit is as good as that of a clean log.

Judged by the model's torque on another motion without noise, everything low-passed at one common frequency.
"""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import armid
from armid.estimation import identify
from armid.excitation import FourierSeries
from armid.experiment.settings import DriveLoop, Sensors
from armid.experiment.virtual import VirtualRobot
from armid.signals import LowPass, process
from armid.signals.doctor import examine
from armid.signals.repair import stale_rows
from armid.signals.resample import interpolate
from armid.validation import validate
from tests.random_arms import random_arm

RATE_HZ = 500.0
COMMON_HZ = 5.0  # of the comparison
WORSE = 1.15  # error over that of the clean log


def motion(robot, rng, seconds, periods):
    """A random Fourier series up to 0.6 Hz that uses 40 to 80 % of the limits; one long period, or several short."""
    n, limits, harmonics = robot.n_joints, robot.limits, np.arange(1, int(0.6 * seconds / periods) + 1)
    sine, cosine = rng.normal(size=(2, n, len(harmonics))) / np.sqrt(harmonics)
    series = FourierSeries(periods / seconds, tuple(harmonics), sine, cosine, np.zeros(n))
    reach = series.extrema()
    span = reach.upper - reach.lower
    room = (limits.upper - limits.lower) / span
    scale = rng.uniform(0.4, 0.8) * np.minimum.reduce(
        [room, limits.velocity / reach.velocity, limits.acceleration / reach.acceleration]
    )
    middle = 0.5 * (limits.upper + limits.lower) - 0.5 * scale * (reach.upper + reach.lower)
    return FourierSeries(periods / seconds, tuple(harmonics), sine * scale[:, None], cosine * scale[:, None], middle)


@cache
def recorded(arm_seed, which, seconds=30.0, periods=1):
    """A random arm, and what perfect sensors say of a motion."""
    arm = random_arm(arm_seed, Path(mkdtemp()))
    virtual = VirtualRobot(
        arm.robot, rate_hz=RATE_HZ, sensors=Sensors.perfect(), loop=DriveLoop(bandwidth_hz=arm.loop_hz)
    )
    path = motion(arm.robot, np.random.default_rng([arm_seed, which]), seconds, periods)
    log = virtual.run(path, periods=periods, settle=0)
    return arm.robot, log.with_channels({"velocity": None, "command": None})


def measured(robot, log, rng):
    """With the noise of usual sensors: torque as the arm's truth says, encoders of 17 bits."""
    step = 2.0 * np.pi / 2**17
    effort = log["effort"] + np.array(robot.virtual.torque_noise) * rng.normal(size=log["effort"].shape)
    return log.with_channels({"position": step * np.round(log["position"] / step), "effort": effort})


def with_stale_rows(log, rng, share=0.05):
    """Single rows, and stretches of up to twenty, repeat the row before."""
    bad = np.zeros(len(log), dtype=bool)
    for length, part in ((1, 0.6), (4, 0.3), (20, 0.1)):
        for start in rng.integers(1, len(log) - 21, int(part * share * len(log) / length)):
            bad[start : start + length] = True
    source = np.maximum.accumulate(np.where(bad, 0, np.arange(len(log))))
    return log.with_channels({name: values[source] for name, values in log.channels.items()}), bad


def jittering(log, rng, share=0.3, *, told):
    """Sampled off the grid by up to `share` of a step; the timestamps tell it, or those alone are off."""
    time = log.time + share / RATE_HZ * rng.uniform(-1.0, 1.0, len(log))
    if not told:
        return armid.Log(time, log.channels, log.info)
    rows = slice(1, -1)
    moved = {
        name: interpolate(log.time, values, time[rows], "cubic" if name == "position" else "linear")
        for name, values in log.channels.items()
    }
    return armid.Log(time[rows], moved, log.info)


def in_steps(log, bits=10):
    """Each channel in steps of its range over 2^bits."""
    steps = {name: np.ptp(values, axis=0) / 2**bits for name, values in log.channels.items()}
    return log.with_channels({name: steps[name] * np.round(log[name] / steps[name]) for name in steps})


FAULTS = {
    "stale rows": lambda log, rng: with_stale_rows(log, rng)[0],
    "jittering samples": lambda log, rng: jittering(log, rng, told=True),
    "jittering timestamps": lambda log, rng: jittering(log, rng, told=False),
    "ten bits": lambda log, rng: in_steps(log),
}


def error(robot, log, arm_seed):
    """Error of the fit's torque on another motion over that torque."""
    fit = identify(robot, process(log, robot=robot), method="wls", friction="linear")
    other = process(recorded(arm_seed, 1)[1], LowPass(cutoff_hz=COMMON_HZ), robot=robot)
    return validate(fit, other, nominal=False).relative_error_moving


def ratios(arm_seed, periods, seeds):
    """Error of each faulty log over that of the clean one, (seeds,) each."""
    robot, perfect = recorded(arm_seed, 0, periods=periods)
    found = {name: [] for name in FAULTS}
    for seed in seeds:
        clean = measured(robot, perfect, np.random.default_rng(seed))
        usual = error(robot, clean, arm_seed)
        for name, spoil in FAULTS.items():
            found[name].append(error(robot, spoil(clean, np.random.default_rng(seed)), arm_seed) / usual)
    return found


def test_one_arm():
    """One random arm, one seed."""
    assert max(max(found) for found in ratios(202, 1, [0]).values()) < WORSE


@pytest.mark.prove
@pytest.mark.parametrize("periods", [1, 3])
@pytest.mark.parametrize("arm_seed", [200, 201, 202])
def test_three_arms(arm_seed, periods):
    """Three random arms, 20 seeds each, for a motion that is low-passed and for one that is averaged."""
    for name, found in ratios(arm_seed, periods, range(20)).items():
        print(f"arm {arm_seed}, {periods} periods, {name}: at most {max(found):.3f}, mean {np.mean(found):.3f}")
        assert max(found) < WORSE


@pytest.mark.parametrize("bits", [None, 10])
def test_stale_rows_are_found_named_and_left_out(bits):
    """All of them and no others; the doctor says how many there are, the data set that they are left out."""
    robot, perfect = recorded(202, 0)
    clean = measured(robot, perfect, np.random.default_rng(0))
    clean = clean if bits is None else in_steps(clean, bits)
    log, bad = with_stale_rows(clean, np.random.default_rng(0))
    found = stale_rows(log)
    assert not found[~bad].any()
    assert found[bad].mean() > 0.98
    report = examine(log, robot)
    assert report.of("stale-rows")[0].values["count"] == found.sum()
    assert report.usable
    notes = {said.code: said for said in process(log, robot=robot).notes}
    assert notes["signals.stale"].values["count"] == found.sum()
    assert not stale_rows(clean).any()


def test_rest_is_not_stale():
    """A joint that stops, stays where it is to the last digit, and goes on."""
    time = 0.01 * np.arange(600)
    way = np.concatenate([np.sin(np.pi * time[:200]), np.zeros(200), np.sin(np.pi * time[:200]) ** 2])
    log = armid.Log(
        time, {"position": way[:, None], "effort": 2.0 * way[:, None]}, armid.LogInfo(("a",), "joint torque")
    )
    assert stale_rows(log).sum() <= 1
