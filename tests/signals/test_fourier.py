"""Fourier series fitted by least squares."""

import numpy as np
import pytest

from armid.signals.fourier import fit_fourier
from armid.signals.problems import SignalError
from tests.signals.waves import Wave


def relative(found, truth):
    return np.abs(found - truth).max() / np.abs(truth).max()


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
