"""Friction fits of a joint: which law, which directions, and why."""

import json

import numpy as np
import pytest

from armid.errors import UnknownNameError
from armid.estimation.single_joint.curves import FitError, fit_curve
from armid.estimation.single_joint.friction_fit import FrictionPoints, better_law, fit_friction, friction_from_data
from tests.estimation.tables import PA10, PA10_CURVES, pa10_truth, powerball_truth


def joints(count, *few):
    """Numbers of joints; all but a few are left to the long proofs."""
    return [joint if joint in few else pytest.param(joint, marks=pytest.mark.prove) for joint in range(count)]


def points(v, torque, error, seed=0, **more):
    y = torque + error * np.random.default_rng(seed).normal(size=len(v))
    return FrictionPoints("joint", v, y, error, np.full(len(v), 15.0), "test", **more)


def pa10_points(joint, seed=0):
    up, down = pa10_truth(joint, 1.0), pa10_truth(joint, -1.0)
    return points(*(np.concatenate(pair) for pair in zip(up, down, strict=True)), seed=seed)


@pytest.mark.parametrize(("joint", "sign"), PA10_CURVES)
def test_pa10_law_beats_stribeck_where_its_fifth_coefficient_is_not_zero(joint, sign):
    """By the F-test against the nested law (f5 = 0), and with Stribeck's Gaussian as a yardstick; not on joint 6."""
    v, torque, error = pa10_truth(joint, sign)
    p = points(v, torque, error, seed=joint)
    full, plain, gauss = (
        fit_curve(name, v, p.torque, error) for name in ("double-exponential", "single-exponential", "stribeck")
    )
    against_nested = better_law(full, plain, len(v))
    assert against_nested.nested
    assert against_nested.better == (joint != 5)
    against_gauss = better_law(full, gauss, len(v))
    assert not against_gauss.nested
    assert against_gauss.better
    if joint != 5:
        assert against_nested.p_value < 1e-6


def test_statistic_is_the_textbook_one():
    """F and p by hand for two nested lines."""
    v, torque, error = pa10_truth(5, 1.0)
    large, small = (fit_curve(n, v, torque, error) for n in ("single-exponential", "coulomb-viscous"))
    found = better_law(small, large, len(v))
    assert (found.law, found.other) == ("single-exponential", "coulomb-viscous")
    expected = (small.chi2 - large.chi2) / 2 / (large.chi2 / (len(v) - 4))
    assert found.statistic == pytest.approx(expected)
    assert "is better than" in found.sentence()


@pytest.mark.parametrize("joint", joints(7, 0, 5))
def test_auto_finds_the_pa10_law_per_direction(joint):
    """All seven joints of Table II: law and asymmetry are recognised, the second exponential dropped on joint 6."""
    fit = fit_friction(pa10_points(joint))
    assert (fit.law, fit.per_direction) == ("double-exponential", True)
    assert "information criterion" in fit.reason
    if joint == 5:
        assert fit.coefficients["f6p"] == fit.coefficients["f6n"] == 0.0
    v = fit.points.speed
    truth = PA10.virtual.friction[joint].torque(v, PA10.virtual.coefficients[joint])
    assert np.all(np.abs(fit.curve(v) - truth) < 4.0 * fit.standard_error(v))


@pytest.mark.parametrize("joint", joints(6, 1, 4))
def test_auto_finds_the_powerball_law(joint):
    """Joints of Table 2: the described law, both directions together."""
    fit = fit_friction(points(*powerball_truth(joint)), prefer="hyperbolic")
    assert (fit.law, fit.per_direction) == ("hyperbolic", False)


def test_plain_friction_is_called_plain():
    """A line with noise is not dressed up as something richer; directions that differ are told apart."""
    v = np.concatenate([np.linspace(0.05, 1.0, 12), -np.linspace(0.05, 1.0, 12)])
    same = fit_friction(points(v, 2.0 * v + 3.0 * np.sign(v), np.full(24, 0.05)))
    assert (same.law, same.per_direction) == ("coulomb-viscous", False)
    other = fit_friction(points(v, 2.0 * v + np.where(v > 0.0, 3.0, -4.0), np.full(24, 0.05)), "coulomb-viscous")
    assert other.per_direction
    assert other.coefficients["fcp"] == pytest.approx(3.0, abs=0.1)
    assert other.coefficients["fcn"] == pytest.approx(4.0, abs=0.1)
    assert other.comparisons[0].better


def test_symmetric_points_stand_for_both_directions():
    """Points at positive speeds only give one curve, which is odd."""
    v = np.linspace(0.05, 1.0, 15)
    fit = fit_friction(points(v, 2.0 * v + 3.0, np.full(15, 0.05), symmetric=True))
    assert not fit.per_direction
    assert fit.curve(-0.5) == pytest.approx(-fit.curve(0.5))


def test_round_trip_through_json():
    """A fit read back from JSON has the same curve, band, coefficients and reasons."""
    fit = fit_friction(pa10_points(5))
    again = friction_from_data(json.loads(json.dumps(fit.to_data())))
    v = np.linspace(-0.5, 0.5, 21)
    assert np.array_equal(again.band(v)[0], fit.band(v)[0])
    assert again.coefficients == fit.coefficients
    assert again.to_data() == fit.to_data()


def test_bad_input():
    """Too few speeds and unknown laws are named; auto falls back on what the points allow."""
    few = points(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, 0.1))
    with pytest.raises(FitError, match="joint: double-exponential has 6 coefficients and needs 7 different speeds"):
        fit_friction(few, "double-exponential")
    assert fit_friction(few).law == "coulomb-viscous"
    with pytest.raises(UnknownNameError, match="stribeck"):
        fit_friction(few, "striebeck")
    with pytest.raises(FitError, match="there are 1"):
        fit_friction(points(np.array([0.1]), np.array([1.0]), np.array([0.1])))
