"""Periods found in motion, and logs cut to whole ones."""

import numpy as np
import pytest

from armid.logs.log import LogError
from armid.signals import find_period, whole_periods
from armid.signals.period import leading_transient
from tests.signals.waves import Wave, make_log, periodic_log, smooth_step


def run_with_approach(seed, noise, *, approach=4.0, back=3.0, period=None, periods=None, rate=None, joints=None):
    """Approach from rest, M periods, return to rest; random where not given."""
    rng = np.random.default_rng(seed)
    period = rng.uniform(3.0, 20.0) if period is None else period
    periods = int(rng.integers(3, 17)) if periods is None else periods
    rate = float(rng.choice([100.0, 250.0])) if rate is None else rate
    wave = Wave(rng, joints=int(rng.integers(1, 8)) if joints is None else joints, period=period)
    time = np.arange(int((approach + periods * period + back) * rate)) / rate
    inner = np.clip(time - approach, 0.0, periods * period)
    blend = smooth_step(time / approach) * (1.0 - smooth_step((time - approach - periods * period) / back))
    q = wave.motion(inner)[0] * blend[:, None]
    return wave, periods, make_log(time, q + noise * rng.normal(size=q.shape))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_period_is_found_between_approach_and_return(seed, noise):
    """To a hundredth of a sample, with the number of periods, and the span to 2 % of a period."""
    wave, count, log = run_with_approach(seed, noise)
    period = find_period(log).period
    assert period is not None
    assert abs(period.seconds - wave.period) * log.rate_hz < 0.02
    assert period.count == count
    assert abs(period.first_s - 4.0) < 0.02 * wave.period + 0.05


def test_heavy_noise_is_no_obstacle():
    """Noise of 5 % of the motion, two periods."""
    wave, log = periodic_log(3, periods=2, q_noise=0.03)
    period = find_period(log).period
    assert period is not None
    assert period.seconds == pytest.approx(wave.period, abs=0.02)


def test_whole_and_broken_numbers_of_samples_are_told_apart():
    """2500 samples of 12 ms (30 s) are whole, the printed 0.033 Hz gives 2525.25 and is not (erratum SW-3)."""
    for period_s, whole in ((30.0, True), (1.0 / 0.033, False)):
        wave = Wave(np.random.default_rng(1), joints=4, period=period_s)
        time = np.arange(25_300) * 0.012
        q = wave.motion(time)[0] + 1e-5 * np.random.default_rng(2).normal(size=(25_300, 4))
        period = find_period(make_log(time, q)).period
        assert period.seconds == pytest.approx(period_s, rel=1e-6)
        assert period.is_whole is whole


def test_fundamental_and_twentieth_harmonic():
    """The payload motion of the KR 15: the strong 20th harmonic must not be taken for the period."""
    time = np.arange(4 * 2500) * 0.012
    omega = 2.0 * np.pi / 30.0
    q = np.stack(
        [0.2 * np.sin(omega * time) + 0.3 * np.sin(20 * omega * time), 0.3 * np.sin(25 * omega * time)], axis=1
    )
    period = find_period(make_log(time, q)).period
    assert period.seconds == pytest.approx(30.0, rel=1e-6)


def test_the_command_is_preferred_and_the_log_may_know():
    """A clean command beside noisy positions; a stated period is refined, not believed blindly."""
    wave, log = periodic_log(4, periods=4, q_noise=0.01)
    log = log.with_channels({"command": wave.motion(log.time)[0]})
    assert find_period(log).period.seconds == pytest.approx(10.0, abs=1e-6)
    hinted = log.with_channels({}, period_s=10.1)
    assert find_period(hinted).period.seconds == pytest.approx(10.0, abs=1e-6)


def test_irregular_times_are_no_obstacle():
    rng = np.random.default_rng(5)
    time = np.cumsum(rng.choice([0.010, 0.012], size=6000))
    wave = Wave(rng, joints=3, period=9.0)
    period = find_period(make_log(time, wave.motion(time)[0])).period
    assert period.seconds == pytest.approx(9.0, abs=1e-5)


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (np.zeros((500, 2)), "no joint moves"),
        (np.zeros((10, 2)), "too few"),
        (np.cumsum(np.random.default_rng(0).normal(size=(3000, 2)), axis=0), "repeats"),
        (np.linspace(0, 1, 2000)[:, None] ** 2, "repeat"),
    ],
)
def test_what_does_not_repeat_has_no_period(position, words):
    """And the reason is said."""
    found = find_period(make_log(np.arange(len(position)) / 100.0, position))
    assert found.period is None
    assert words in str(found.reason)


def test_real_xmate_log_repeats_every_20_seconds(data):
    """Three periods of 20 s at 50 Hz."""
    for name in ("traj1", "traj2"):
        raw = np.loadtxt(data / f"xmate7p/{name}.csv", delimiter=",")
        period = find_period(make_log(np.arange(len(raw)) / 50.0, raw[:, :7])).period
        assert period.seconds == pytest.approx(20.0, abs=1e-4)
        assert (period.count, period.is_whole) == (3, True)


@pytest.mark.parametrize("name", ["ur-20_01_17-ptp_10_points", "ur-20_02_10-30sec_12harm", "ur-20_02_12-50sec_12harm"])
def test_real_ur10e_logs_do_not_repeat(data, name):
    """Point-to-point motion, and single periods of an excitation."""
    raw = np.loadtxt(data / f"ur10e/{name}.csv", delimiter=",")
    raw = raw[np.concatenate([[True], np.diff(raw[:, 0]) > 0])]
    assert find_period(make_log(raw[:, 0], raw[:, 1:7])).period is None


def test_whole_periods_takes_samples_as_they_are():
    """A whole number of samples: rows of the log, the last periods of it."""
    _, log = periodic_log(joints=2, periods=3)
    longer = make_log(np.arange(3123) / 100.0, np.concatenate([np.zeros((123, 2)), log["position"]]))
    cut, samples = whole_periods(longer, 10.0)
    assert samples == 1000
    np.testing.assert_array_equal(cut["position"], log["position"])


def test_whole_periods_interpolates_a_broken_number_of_samples():
    """2525.25 samples per period: 2525 after it, on the same motion to 1e-8."""
    wave = Wave(np.random.default_rng(6), joints=2, period=1.0 / 0.033)
    time = np.arange(25_300) * 0.012
    log = make_log(time, wave.motion(time)[0], wave.motion(time)[2])
    cut, samples = whole_periods(log, find_period(log).period)
    assert (samples, len(cut)) == (2525, 10 * 2525)
    q, _, qdd = wave.motion(cut.time)
    assert np.abs(cut["position"] - q).max() < 1e-8
    assert np.abs(cut["effort"] - qdd)[50:-50].max() < 1e-4 * np.ptp(qdd)
    periods = cut["position"].reshape(10, samples, 2)
    assert np.ptp(periods, axis=0).max() < 1e-7


def test_too_short_a_log_has_no_whole_period():
    _, log = periodic_log(joints=2, periods=1)
    with pytest.raises(LogError, match="less than one period"):
        whole_periods(log, 12.0)
    with pytest.raises(LogError, match="positive"):
        whole_periods(log, -1.0)
    with pytest.raises(LogError, match="position"):
        find_period(log.with_channels({"position": None}))


def test_a_transient_is_seen_in_the_first_periods():
    """A decaying start differs from the rest; steady noisy periods do not, over 30 seeds."""
    for seed in range(30):
        _, log = periodic_log(seed, joints=3, periods=6, period=5.0, q_noise=1e-4)
        periods = log["position"].reshape(6, 500, 3)
        assert leading_transient(periods) == 0
        decaying = log["position"] + 0.01 * np.exp(-log.time / 1.5)[:, None]
        assert leading_transient(decaying.reshape(6, 500, 3)) in (1, 2)
