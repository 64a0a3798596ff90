"""Exact differentiation on selected harmonics, and Fourier series by least squares."""

import numpy as np
import pytest
from scipy import stats

from armid.signals import SignalError, average_periods, differentiate, fit_fourier, select_harmonics
from armid.signals.averaging import f_limit, given_harmonics
from armid.signals.filters import differenced, low_pass
from tests.signals.waves import Wave, periodic_log


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


class TestFourierFit:
    def jittered(self, seed=0, noise=0.0, samples=3000):
        rng = np.random.default_rng(seed)
        wave = Wave(rng, joints=4)
        time = 100.0 + np.sort(rng.uniform(0.0, 31.7, samples))
        q = wave.motion(time)[0]
        return wave, time, q + noise * rng.normal(size=q.shape)

    def test_irregular_timestamps_are_no_obstacle(self):
        """Random times, not even a whole number of periods: exact to 1e-10."""
        wave, time, q = self.jittered()
        for harmonics in (5, (1, 2, 3, 4, 5), "auto"):
            series = fit_fourier(time, q, frequency_hz=0.1, harmonics=harmonics)
            for found, truth in zip(series.motion(time), wave.motion(time), strict=True):
                assert relative(found, truth) < 1e-10

    def test_noise_leaves_what_theory_says(self):
        """Residual equals the noise; the fit's error is sigma sqrt(p / N); automatic choice keeps five harmonics."""
        wave, time, q = self.jittered(1, noise=1e-2)
        series = fit_fourier(time, q, frequency_hz=0.1)
        np.testing.assert_allclose(series.residual, 1e-2, rtol=0.05)
        assert series.harmonics.tolist() == [5, 5, 5, 5]
        error = (series.motion(time).q - wave.motion(time)[0]).std()
        assert error == pytest.approx(1e-2 * np.sqrt(11 / 3000), rel=0.3)

    def test_base_frequency_is_refined(self):
        """Started 0.3 % off over three periods, it comes back: exactly without noise, to 1e-5 with."""
        for noise, tolerance in ((0.0, 1e-10), (1e-3, 1e-5)):
            _, time, q = self.jittered(2, noise)
            series = fit_fourier(time, q, frequency_hz=0.1003, harmonics=5, refine=True)
            assert abs(series.series.base_frequency_hz / 0.1 - 1.0) < tolerance

    def test_kr15_period_of_2525_and_a_quarter_samples(self):
        """0.033 Hz at 12 ms (erratum SW-3): no whole number of samples, exact all the same."""
        wave = Wave(np.random.default_rng(3), joints=2, period=1.0 / 0.033)
        time = np.arange(25_000) * 0.012
        series = fit_fourier(time, wave.motion(time)[0], frequency_hz=0.033, harmonics=5)
        assert relative(series.motion(time).qdd, wave.motion(time)[2]) < 1e-10

    def test_bad_input_is_refused(self):
        _, time, q = self.jittered(samples=40)
        with pytest.raises(SignalError, match="Nyquist"):
            fit_fourier(time, q, frequency_hz=0.1, harmonics=30)
        with pytest.raises(SignalError, match="frequency_hz"):
            fit_fourier(time, q, frequency_hz=0.0, harmonics=3)
        with pytest.raises(SignalError, match="harmonics"):
            fit_fourier(time, q, frequency_hz=0.1, harmonics=(0, 1))
        with pytest.raises(SignalError, match="auto"):
            fit_fourier(time, q, frequency_hz=0.1, harmonics="all")
