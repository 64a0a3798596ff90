"""Learning across arms: better for arms that move little, honest intervals, odd arms named and few others."""

from dataclasses import replace

import numpy as np
import pytest

from armid.fleet.hierarchy import Information, learn

P = 12


def drawn(seed, arms=40, poor=10, odd=None):
    """Arms from a type with a mean and a spread, each with its own data; the first ones hardly show half of it."""
    rng = np.random.default_rng(seed)
    size = np.logspace(-2, 2, P)
    mean = rng.normal(0.0, 3.0, P) * size
    sd = 0.05 * np.abs(mean) + 1e-3 * size
    root = rng.normal(size=(P, P))
    correlation = root @ root.T
    d = np.sqrt(np.diag(correlation))
    spread = (0.5 * np.eye(P) + 0.5 * correlation / np.outer(d, d)) * np.outer(sd, sd)
    truth = rng.multivariate_normal(mean, spread, arms)
    if odd is not None:
        truth[odd, 3] += 12.0 * sd[3]
    parts = {}
    for arm in range(arms):
        W = rng.normal(size=(200, P)) / sd * 0.3
        if arm < poor:
            W[:, P // 2 :] *= 0.02
        tau = W @ truth[arm] + rng.normal(size=200)
        parts[f"arm{arm:03d}"] = Information(W.T @ W, W.T @ tau)
    return truth, sd, parts


def test_poor_arms_gain_and_intervals_stay_honest():
    """Errors of arms that move little shrink at least twofold; 95 % intervals of all hold the truth as they say."""
    inside, fleet, alone = [], [], []
    for seed in range(12):
        truth, sd, parts = drawn(seed)
        found = learn([f"p{i}" for i in range(P)], parts)
        for index, (name, part) in enumerate(sorted(parts.items())):
            one = found.arms[name]
            inside.append(np.abs(one.values - truth[index]) < 1.96 * one.sigma)
            if index < 10:
                own = np.linalg.lstsq(part.matrix, part.vector, rcond=None)[0]
                fleet.append(((one.values - truth[index]) / sd)[P // 2 :])
                alone.append(((own - truth[index]) / sd)[P // 2 :])
    assert 0.92 <= np.mean(inside) <= 0.98
    assert np.sqrt(np.mean(np.square(alone))) > 2.0 * np.sqrt(np.mean(np.square(fleet)))


def test_intervals_hold_errors_that_all_arms_share():
    """Torque taken off all arms alike is wrong by a curve's error: intervals that count it hold, others do not.

    So do those of the mean. No arm is more or less unlike the others for it.
    """
    inside, blind, mean = [], [], []
    for seed in range(24):
        truth, sd, parts = drawn(seed, arms=20, poor=5)
        rng = np.random.default_rng(seed + 100)
        curve = 3.0 * rng.normal(size=(P, 2)) * sd[:, None]  # change of the values per error
        errors = {name: part.matrix @ curve for name, part in parts.items()}
        wrong = rng.normal(size=2)
        parts = {name: Information(part.matrix, part.vector + errors[name] @ wrong) for name, part in parts.items()}
        names = [f"p{i}" for i in range(P)]
        told = {name: replace(part, shared=errors[name]) for name, part in parts.items()}
        found, without = learn(names, told), learn(names, parts)
        for name in parts:
            np.testing.assert_array_equal(found.arms[name].deviation, without.arms[name].deviation)
        inside.append(_held(found, truth))
        blind.append(_held(without, truth))
        shift = np.sqrt(np.diag(found.mean_covariance) + found.mean_doubt)
        mean.append(np.abs(found.mean - truth.mean(axis=0)) < 1.96 * shift)
    assert 0.9 <= np.mean(inside) <= 0.99
    assert np.mean(mean) >= 0.9
    assert np.mean(blind) < 0.6


def test_intervals_hold_errors_that_each_arm_has_of_its_own():
    """Each arm's torque is wrong by an error of its own, which the others do not share, whatever its sign is called.

    It makes no arm unlike the others; how errors are named, one by one, does not matter.
    """
    inside, blind = [], []
    for seed in range(12):
        truth, sd, parts = drawn(seed, arms=20, poor=5)
        rng = np.random.default_rng(seed + 100)
        sizes = rng.normal(size=(P, 2)) * sd[:, None]
        errors = {name: part.matrix @ sizes for name, part in parts.items()}
        parts = {
            name: Information(part.matrix, part.vector + errors[name] @ rng.normal(size=2))
            for name, part in parts.items()
        }
        names = [f"p{i}" for i in range(P)]
        told, signs = (
            {name: replace(part, own=errors[name]) for name, part in parts.items()},
            rng.choice([-1.0, 1.0], 2),
        )
        found, without = learn(names, told), learn(names, parts)
        turned = learn(names, {name: replace(part, own=part.own * signs) for name, part in told.items()})
        np.testing.assert_allclose(found.mean_doubt, turned.mean_doubt, rtol=1e-9)
        for name in parts:
            np.testing.assert_allclose(found.arms[name].sigma, turned.arms[name].sigma, rtol=1e-9)
            assert np.all(np.abs(found.arms[name].deviation) <= np.abs(without.arms[name].deviation))
            assert np.abs(found.arms[name].deviation).max() < np.abs(without.arms[name].deviation).max()
        inside.append(_held(found, truth))
        blind.append(_held(without, truth))
    assert 0.92 <= np.mean(inside) <= 0.995
    assert np.mean(blind) < 0.9


def _held(found, truth):
    """Which 95 % intervals of arms hold the truth, (arms, parameters)."""
    arms = [found.arms[name] for name in sorted(found.arms)]
    return [np.abs(one.values - true) < 1.96 * one.sigma for one, true in zip(arms, truth, strict=True)]


def test_an_odd_arm_is_named_with_its_parameter():
    """Twelve standard deviations off in one parameter: named; of the others, none or nearly none."""
    others = 0
    for seed in range(10):
        _, _, parts = drawn(seed, odd=20)
        found = learn([f"p{i}" for i in range(P)], parts)
        assert "p3" in found.arms["arm020"].unusual
        others += sum(bool(one.unusual) for name, one in found.arms.items() if name != "arm020")
    assert others <= 2  # 390 sound arms; 0.1 are expected


@pytest.mark.parametrize("seed", range(3))
def test_an_odd_arm_does_not_hide_in_a_spread_it_made_itself(seed):
    """One of eleven arms, twelve standard deviations off: named, and no other; its values and intervals stay."""
    _, _, parts = drawn(seed, arms=11, poor=2, odd=7)
    names = [f"p{i}" for i in range(P)]
    found, plain = learn(names, parts), learn(names, parts, compare=False)
    assert "p3" in found.arms["arm007"].unusual
    assert [name for name, one in found.arms.items() if one.unusual] == ["arm007"]
    assert "p3" not in plain.arms["arm007"].unusual  # against a spread that it made itself
    for name, one in found.arms.items():
        np.testing.assert_array_equal(one.values, plain.arms[name].values)
        np.testing.assert_array_equal(one.covariance, plain.arms[name].covariance)


@pytest.mark.parametrize(("arms", "fleets"), [(5, 25), (8, 25), (12, 15), (40, 5)])
def test_sound_fleets_of_any_size_have_no_unusual_arm(arms, fleets):
    """A sound arm is called unusual in one fleet of a hundred; distances are those of Student's t."""
    names, largest, called = [f"p{i}" for i in range(P)], [], 0
    for seed in range(fleets):
        _, _, parts = drawn(300 + seed, arms=arms, poor=arms // 5)
        found = learn(names, parts)
        called += any(one.unusual for one in found.arms.values())
        largest.append(max(np.abs(one.deviation).max() for one in found.arms.values()))
    assert called == 0
    assert np.median(largest) > 2.0  # they do scatter


@pytest.mark.parametrize("arms", [1, 3])
def test_few_arms_keep_their_own(arms):
    """A spread cannot be told from three arms; each keeps what its data say."""
    _, _, parts = drawn(0, arms=arms, poor=0)
    found = learn([f"p{i}" for i in range(P)], parts)
    assert not found.told
    for name, part in parts.items():
        own = np.linalg.solve(part.matrix, part.vector)
        sigma = np.sqrt(np.diag(np.linalg.inv(part.matrix)))
        assert np.all(np.abs(found.arms[name].values - own) < 0.5 * sigma)
        assert not found.arms[name].unusual
