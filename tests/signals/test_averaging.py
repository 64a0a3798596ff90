"""Averages over periods and the noise that their spread shows."""

import numpy as np
import pytest

from armid.signals import PeriodAccumulator, SignalError, average_periods
from armid.signals.averaging import resolution
from tests.signals.waves import periodic_log


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
