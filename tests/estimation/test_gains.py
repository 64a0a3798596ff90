"""Uncertain drive gains: what they do to estimates, what intervals hold, what the recipe's source of torque implies."""

from dataclasses import replace

import numpy as np
import pytest

from armid.estimation.fit import load_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.logs.log import LogError, LogInfo
from armid.logs.recipe import Recipe
from armid.payload import identify_payload
from armid.payload.body import described
from tests.estimation.virtual_arms import true_values
from tests.payload.stand import Draws, dataset
from tests.random_arms import random_arm

STATED = 0.1


class Gained:
    """Fits and payload runs of one arm whose drive gains are drawn anew at the stated size, each joint's by itself."""

    def __init__(self, name, seed):
        self.draws, self.rng = Draws(name, seed=seed), np.random.default_rng(seed + 100)

    def pair(self):
        """Fit of the arm and a run with payload, in units of the same wrong drives."""
        draws, joints = self.draws, self.draws.robot.n_joints
        scale, stated = 1.0 + STATED * self.rng.normal(size=joints), {"gain_uncertainty": (STATED,) * joints}
        arm = draws.arm_torque + draws.noise * self.rng.normal(size=draws.arm_torque.shape)
        loaded = draws.torque + draws.noise * self.rng.normal(size=draws.torque.shape)
        fit = WeightedLeastSquares().fit(draws.robot, dataset(draws.robot, draws.arm_motion, scale * arm, **stated))
        return fit, dataset(draws.robot, draws.motion, scale * loaded, **stated)

    def covered(self, count):
        """Shares of 95 % intervals that hold the truth: of mass and centre, of all of the payload, of parameters."""
        truth, values, inside, own = described(self.draws.payload), true_values(self.draws.robot), [], []
        for _ in range(count):
            fit, loaded = self.pair()
            found = identify_payload(fit, loaded)
            inside.append([q.lower <= t <= q.upper for q, t in zip(found.quantities, truth, strict=True)])
            own.append(np.abs(fit.values - values) < 1.96 * fit.sigma)
        return np.mean([row[:4] for row in inside]), np.mean(inside), np.mean(own)


def test_effects_are_those_of_scaled_torque(tmp_path):
    """One joint's torque 0.1 % larger moves the estimate as `gain_effects` say; all joints' move it by its own size."""
    draws = Draws("kr15")
    tau = draws.arm_torque + draws.noise * draws.rng.normal(size=draws.arm_torque.shape)
    fits = []
    for joint in (None, 1, 4):
        scale = np.ones(draws.robot.n_joints)
        scale[joint] = 1.001 if joint is not None else 1.0
        fits.append(WeightedLeastSquares().fit(draws.robot, dataset(draws.robot, draws.arm_motion, scale * tau)))
    plain = fits[0]
    for fit, joint in zip(fits[1:], (1, 4), strict=True):
        moved = (fit.values - plain.values) / 1e-3
        wrong = np.abs((moved - plain.gain_effects[:, joint]) / plain.sigma)
        assert wrong.max() < 0.05 * np.abs(moved / plain.sigma).max()
    np.testing.assert_allclose(plain.gain_effects.sum(axis=1), plain.values, atol=1e-6 * np.abs(plain.values).max())
    plain.save(tmp_path / "fit.json")
    np.testing.assert_array_equal(load_fit(tmp_path / "fit.json").gain_effects, plain.gain_effects)


def test_intervals_hold_the_truth_under_wrong_gains():
    """Gains drawn at 10 %: intervals of payload and parameters hold; without the gains they would not."""
    stand = Gained("kr15", 1)
    first, _, own = stand.covered(12)
    assert first > 0.85
    assert own > 0.9
    fit, _ = stand.pair()
    blind = replace(fit, gain_uncertainty=None)
    assert np.mean(np.abs(fit.values - true_values(stand.draws.robot)) < 1.96 * blind.sigma) < 0.7


@pytest.mark.prove
@pytest.mark.parametrize("name", ["kr15", "powerball", 301, 302, 303, 304])
def test_coverage_of_payloads_under_wrong_gains(name, tmp_path):
    """200 draws of gains: 95 % intervals of mass and centre hold in 92 to 98 %."""
    if isinstance(name, int):
        random_arm(name, tmp_path)
        name = str(tmp_path / f"random{name}.yaml")
    first, every, own = Gained(name, 2).covered(200)
    print(f"{name}: mass and centre {first:.3f}, all of the payload {every:.3f}, parameters {own:.3f}")
    assert 0.92 <= first <= 0.98


def test_gains_that_contradict_each_other_show():
    """Of one joint whose gain is 20 % off one log tells the ratio to the others; the common scale stays as stated."""
    draws = Draws("kr15")
    scale = np.array([1.0, 1.0, 1.2, 1.0, 1.0, 1.0])
    tau = scale * (draws.arm_torque + draws.noise * draws.rng.normal(size=draws.arm_torque.shape))
    fit = WeightedLeastSquares().fit(draws.robot, dataset(draws.robot, draws.arm_motion, tau))
    found = fit.gain_errors(np.full(6, STATED))
    ratio, spread = np.array([0.0, -1.0, 1.0, 0.0, 0.0, 0.0]), np.sqrt(np.diag(found.covariance))
    assert ratio @ found.mean == pytest.approx(0.19, abs=0.04)
    assert np.sqrt(ratio @ found.covariance @ ratio) < 0.2 * STATED
    assert spread[1] > 0.3 * STATED


def test_the_source_of_torque_implies_an_uncertainty():
    """10 % for currents and motor torques, 1 % for joint torque; a recipe states another; conversions keep it."""
    text = "joints: [a, b]\neffort: {}\ncolumns: {{time: 1, position: 2-3, {}: 4-5}}\n"
    assert Recipe.parse(text.format("current", "current")).info.gain_uncertainty == (0.1, 0.1)
    assert Recipe.parse(text.format("joint torque", "effort")).info.gain_uncertainty == (0.01, 0.01)
    stated = Recipe.parse(text.format("current", "current") + "gain_uncertainty: [0.03, 0.05]\n").info
    assert stated.gain_uncertainty == (0.03, 0.05)
    assert replace(stated, effort="joint torque").gain_uncertainty == (0.03, 0.05)
    with pytest.raises(LogError, match="gain_uncertainty"):
        Recipe.parse(text.format("current", "current") + "gain_uncertainty: 1.5\n")
    with pytest.raises(LogError, match="gain_uncertainty"):
        LogInfo(("a", "b"), "current", gain_uncertainty=(0.1,))
