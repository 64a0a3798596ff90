"""Averages over periods and the noise that their spread shows."""

import numpy as np
import pytest
from scipy import stats

from armid.signals.averaging import (
    PeriodAccumulator,
    average_periods,
    differentiate,
    f_limit,
    given_harmonics,
    resolution,
    select_harmonics,
)
from armid.signals.filters import differenced, low_pass
from armid.signals.problems import SignalError
from tests.signals.waves import Wave, periodic_log


def noise_only(rng, periods, samples, joints=2, sigma=0.7):
    return sigma * rng.normal(size=(periods * samples, joints))


def test_noise_of_the_average_falls_with_the_root_of_the_periods():
    """Measured over 200 runs: the average of M periods scatters by sigma / sqrt(M), within 3 %."""
    rng = np.random.default_rng(1)
    for count in (1, 4, 16, 64):
        means = [average_periods(noise_only(rng, count, 50), 50).mean for _ in range(200)]
        assert np.std(means) == pytest.approx(0.7 / np.sqrt(count), rel=0.03)


def test_corrected_variance_is_unbiased_and_the_printed_one_is_low():
    """Monte-Carlo, 400 runs: K (M - 1) hits the variance within 3 standard errors; MK - 1 gives 15/16 at M = 16."""
    rng = np.random.default_rng(2)
    runs = [average_periods(noise_only(rng, 16, 40), 40) for _ in range(400)]
    corrected = np.array([run.variance for run in runs])
    error = corrected.std() / np.sqrt(corrected.size)
    assert abs(corrected.mean() - 0.49) < 3.0 * error
    printed = np.array([run.variance_as_printed for run in runs])
    exact = (16 * 40 - 40) / (16 * 40 - 1)
    np.testing.assert_allclose(printed / corrected, exact, rtol=1e-12)
    assert exact == pytest.approx(15 / 16, rel=2e-3)
    assert abs(printed.mean() - 0.49) > 10.0 * error


def test_covariance_between_joints_and_of_the_mean():
    """Correlated noise is found with its correlation; the mean has 1 / M of it."""
    rng = np.random.default_rng(3)
    truth = np.array([[1.0, 0.6], [0.6, 2.0]])
    noise = rng.multivariate_normal(np.zeros(2), truth, size=20 * 2000)
    found = average_periods(noise, 2000)
    np.testing.assert_allclose(found.covariance, truth, atol=0.05)
    np.testing.assert_allclose(found.covariance_of_mean, found.covariance / 20)
    np.testing.assert_allclose(found.variance_of_mean, np.diag(found.covariance) / 20)


def test_streaming_equals_averaging_in_memory():
    """Blocks of any size give the mean and scatter to 1e-12, even on a large offset."""
    rng = np.random.default_rng(4)
    values = 1e3 + np.tile(rng.normal(size=(37, 3)), (29, 1)) + 1e-3 * rng.normal(size=(29 * 37, 3))
    direct = average_periods(values, 37)
    for size in (1, 5, 36, 37, 38, 400, 5000):
        total = PeriodAccumulator(37, 3)
        for start in range(0, len(values), size):
            total.add(values[start : start + size])
        streamed = total.result()
        assert streamed.periods == 29
        np.testing.assert_allclose(streamed.mean, direct.mean, rtol=1e-12)
        scale = np.abs(direct.scatter).max()
        np.testing.assert_allclose(streamed.scatter, direct.scatter, atol=1e-9 * scale)
        np.testing.assert_allclose(streamed.spectrum_scatter, direct.spectrum_scatter, rtol=1e-7)


def test_periods_that_are_no_numbers_are_left_out():
    """One NaN and one infinity: the other periods' average, in memory, streamed and from blocks, and how many."""
    _, log = periodic_log(periods=6, period=2.0, q_noise=1e-3)
    position, intact = np.array(log["position"]), [0, 2, 3, 5]
    position[250, 3], position[999, 1] = np.nan, np.inf
    wanted = average_periods(log["position"].reshape(6, 200, -1)[intact].reshape(800, -1), 200)
    stream = PeriodAccumulator(200, 7)
    stream.add(position)
    pieces = PeriodAccumulator(200, 7)
    for start in range(0, len(position), 77):
        pieces.add(position[start : start + 77])
    for found in (average_periods(position, 200), stream.result(), pieces.result()):
        assert (found.periods, found.refused) == (4, 2)
        np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.variance, wanted.variance, rtol=1e-9)
    assert wanted.columns(slice(0, 2)).refused == 0


def test_resolution_finds_the_step_of_a_quantised_channel():
    """0.001 degree, the encoder of the Powerball; a constant column has none."""
    step = np.deg2rad(1e-3)
    values = np.stack([np.round(np.sin(np.linspace(0, 6, 5000)) / step) * step, np.full(5000, 0.3)], axis=1)
    np.testing.assert_allclose(resolution(values), [step, 0.0], rtol=1e-6)


def test_bad_input_is_refused():
    with pytest.raises(SignalError, match="whole number of periods"):
        average_periods(np.zeros((10, 2)), 4)
    with pytest.raises(SignalError, match="at least two periods"):
        _ = average_periods(np.zeros((4, 2)), 4).variance
    with pytest.raises(SignalError, match="complete"):
        PeriodAccumulator(5, 1).result()
    with pytest.raises(SignalError, match="2 were refused"):
        average_periods(np.full((8, 1), np.nan), 4)


def relative(found, truth):
    return np.abs(found - truth).max() / np.abs(truth).max()


@pytest.mark.parametrize("samples", [1000, 999])
@pytest.mark.parametrize("harmonics", ["auto", "given"])
def test_noise_free_motion_is_differentiated_exactly(samples, harmonics):
    """Velocity and acceleration of a five-harmonic motion, relative error below 1e-10."""
    wave = Wave(np.random.default_rng(0))
    time = np.arange(3 * samples) * (wave.period / samples)
    averaged = average_periods(wave.motion(time)[0], samples)
    selected = select_harmonics(averaged) if harmonics == "auto" else given_harmonics(5, samples, 7)
    motion = differentiate(averaged.mean, wave.period, selected)
    for found, truth in zip(motion, wave.motion(time[:samples]), strict=True):
        assert relative(found, truth) < 1e-10


def errors_of_acceleration(seed):
    """RMS errors per joint: exact differentiation, and the best of many Butterworth cut-offs."""
    wave, log = periodic_log(seed, periods=16, rate=150.0, q_noise=1e-3)
    samples = 1500
    truth = wave.motion(log.time)[2]
    averaged = average_periods(log["position"], samples)
    exact = differentiate(averaged.mean, wave.period, select_harmonics(averaged)).qdd
    middle = slice(samples, -samples)  # ends of the filter left out, in its favour
    cutoffs = (0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
    filtered = [differenced(low_pass(log["position"], 150.0, cutoff), 150.0).qdd for cutoff in cutoffs]
    rms = [np.sqrt(((qdd - truth)[middle] ** 2).mean(axis=0)) for qdd in filtered]
    # the filter may also average: the same periods, after filtering
    averaged_too = [average_periods(qdd[middle], samples).mean for qdd in filtered]
    rms += [np.sqrt(((qdd - truth[samples : 2 * samples]) ** 2).mean(axis=0)) for qdd in averaged_too]
    single = len(cutoffs)
    return (
        np.sqrt(((exact - truth[:samples]) ** 2).mean(axis=0)),
        np.min(rms[:single], axis=0),
        np.min(rms[single:], axis=0),
    )


def ratio_over_seeds(seeds):
    results = [errors_of_acceleration(seed) for seed in range(seeds)]
    return (
        np.median([butter / exact for exact, butter, _ in results]),
        np.median([averaged / exact for exact, _, averaged in results]),
    )


def test_noisy_acceleration_beats_butterworth_on_a_few_seeds():
    """At least 5 times smaller error than the best Butterworth of seven cut-offs, per joint; median."""
    assert ratio_over_seeds(4)[0] >= 5.0


@pytest.mark.prove
def test_noisy_acceleration_beats_butterworth_on_100_seeds():
    """The same over 100 seeds; and still better if the filtered signal is averaged over the periods as well."""
    plain, averaged = ratio_over_seeds(100)
    assert plain >= 5.0
    assert averaged > 1.0


def test_selection_keeps_the_signal_and_hardly_any_noise():
    """All five harmonics are kept; with 1 % false alarms, pure-noise harmonics appear in about 1 % of joints."""
    wrong = 0
    for seed in range(60):
        _, log = periodic_log(seed, periods=8, period=5.0, q_noise=1e-4)
        selected = select_harmonics(average_periods(log["position"], 500), false_alarm=0.01)
        assert selected[:6].all()
        wrong += int(selected[6:].any(axis=0).sum())
    assert wrong <= 12  # of 420; expected 4.2, and 12 is 3.8 standard deviations above


def test_rounding_that_repeats_is_not_taken_for_motion():
    """A quantised, otherwise noise-free encoder: only the moved harmonics are kept."""
    wave = Wave(np.random.default_rng(5), joints=3)
    time = np.arange(4000) / 100.0
    step = np.deg2rad(0.001)
    position = np.round(wave.motion(time)[0] / step) * step
    selected = select_harmonics(average_periods(position, 1000))
    assert selected[1:6].all()
    assert selected[6:].sum() <= 1


def test_limit_of_the_f_test_is_scipys():
    for freedom in (2, 8, 150.0):
        for chance in (0.01, 1e-5):
            assert f_limit(chance, freedom) == pytest.approx(stats.f.isf(chance, 2, freedom), rel=1e-10)


def test_given_harmonics_may_be_sparse():
    """The fundamental and the 20th, as the KR 15's payload motion."""
    selected = given_harmonics((1, 20), 2500, 2)
    assert np.flatnonzero(selected[:, 0]).tolist() == [0, 1, 20]


@pytest.mark.parametrize("harmonics", [50, (3, 60)])
def test_harmonics_above_nyquist_are_refused(harmonics):
    with pytest.raises(SignalError, match="Nyquist"):
        given_harmonics(harmonics, 100, 2)


def test_one_period_needs_given_harmonics():
    with pytest.raises(SignalError, match="one period"):
        select_harmonics(average_periods(np.random.default_rng(0).normal(size=(50, 2)), 50))
