"""Figures of merit against NumPy, SciPy and hand-made numbers."""

import numpy as np
import pytest
from scipy.stats import pearsonr

from armid.files import plain
from armid.validation import joint_metrics, percentage_accuracy
from armid.validation.metrics import correlation, relative_error


def test_figures_of_a_joint():
    """Each figure is what its definition says, moving samples apart."""
    rng = np.random.default_rng(0)
    measured = 5.0 * rng.normal(size=400)
    predicted = measured + 0.5 * rng.normal(size=400)
    velocity = np.where(np.arange(400) < 100, 0.01, 1.0)
    found = joint_metrics("a", measured, predicted, velocity, noise=0.25)
    error = measured - predicted
    assert found.mse == pytest.approx(np.mean(error**2))
    assert found.rms == pytest.approx(np.sqrt(np.mean(error**2)))
    assert found.nrms == pytest.approx(found.rms / np.std(measured))
    assert found.nrms_moving == pytest.approx(np.sqrt(np.mean(error[100:] ** 2)) / np.std(measured[100:]))
    assert found.r2 == pytest.approx(1.0 - np.sum(error**2) / np.sum((measured - measured.mean()) ** 2))
    assert found.relative_error == pytest.approx(np.linalg.norm(error) / np.linalg.norm(measured))
    assert found.noise_ratio == pytest.approx(found.rms_moving / 0.25)


def test_correlation_is_pearsons():
    """ER-16 (18), read with the means taken over the samples, is Pearson's coefficient."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=50)
    b = 2.0 * a + rng.normal(size=50) + 7.0
    assert correlation(a, b) == pytest.approx(pearsonr(a, b).statistic)


def test_figures_without_meaning_are_nan():
    """A joint that stands still, unknown noise and torque that does not change give NaN, and null in JSON."""
    found = joint_metrics("a", np.ones(10), np.zeros(10), np.zeros(10))
    assert np.isnan([found.nrms, found.nrms_moving, found.noise_ratio, found.correlation]).all()
    assert plain(found)["nrms_moving"] is None
    rounding = joint_metrics("a", np.arange(10.0), np.zeros(10), np.ones(10), noise=1e-13)
    assert np.isnan(rounding.noise_ratio)
    assert plain([1.0, np.inf, (2, np.float64("nan"))]) == [1.0, None, [2, None]]


def test_percentage_accuracy_is_that_of_the_pa10_paper():
    """A mass of 9.512 kg for 9.579 kg is 99.3 % accurate."""
    found = percentage_accuracy(np.array([9.512, 1.0]), np.array([9.579, 0.0]))
    assert found[0] == pytest.approx(99.3, abs=0.01)
    assert np.isnan(found[1])


def test_relative_error_of_some_places():
    """Only the places that count are looked at."""
    error, torque = np.array([1.0, 100.0]), np.array([10.0, 1.0])
    assert relative_error(error, torque, np.array([True, False])) == pytest.approx(0.1)
