"""The promise about false alarms: kept on any tails, withdrawn where too little is known, blind to some faults."""

import numpy as np
import pytest

from armid.fleet.changes import shapes_of
from armid.fleet.promise import RESERVE, chance_of, limit, null_of, nulls_of, promise_of

QUANTITIES = 12


def scores(rng, arms, days, draw):
    """Scores of steps and ramps of arms without any change; `draw(shape)` gives the days' deviations."""
    F = shapes_of(tuple(f"2026-01-{day + 1:02d}" for day in range(days))).courses
    F = F - F.mean(axis=1, keepdims=True)
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    return [F @ draw((days, QUANTITIES)) for _ in range(arms)]


@pytest.mark.parametrize(("days", "freedom"), [(3, np.inf), (3, 4.0), (20, np.inf), (20, 4.0)])
def test_false_alarms_are_as_rare_as_promised(days, freedom):
    """Sound fleets with normal and with heavy-tailed days: the threshold learnt from one holds on ten others."""
    rng = np.random.default_rng(days)

    def draw(shape):
        return rng.standard_normal(shape) if np.isinf(freedom) else 1.7 * rng.standard_t(freedom, shape)

    arms, rate = 150, 1e-2
    made = scores(rng, arms, days, draw)
    null = null_of(made, [days - 1] * arms)
    chance = chance_of(rate, days, QUANTITIES * len(made[0]))
    most = limit(chance) * null.spread(chance)
    alarms = sum(bool((np.abs(one) > most).any()) for one in scores(rng, 10 * arms, days, draw))
    assert alarms <= 1.5 * RESERVE * rate * days * 10 * arms
    if np.isinf(freedom):
        assert null.spread(chance).max() < 1.5


@pytest.mark.parametrize(("days", "freedom"), [(5, 8.0), (20, 8.0), (20, np.inf)])
def test_odd_days_make_no_more_alarms_than_promised(days, freedom):
    """Days with heavy tails: what one day decides is judged by its own, and the promised rate holds on other arms."""
    rng, arms, rate = np.random.default_rng(days), 150, 1e-3

    def draw(shape):
        return rng.standard_normal(shape) if np.isinf(freedom) else rng.standard_t(freedom, shape)

    single = shapes_of(tuple(f"2026-01-{day + 1:02d}" for day in range(days))).single
    alarms = 0
    for _ in range(3):
        made = scores(rng, arms, days, draw)
        nulls = nulls_of(made, [days - 1] * arms, [single] * arms)
        chance = chance_of(rate, days, QUANTITIES * len(made[0]))
        assert promise_of(nulls[0], rate, days, QUANTITIES * len(made[0])).holds
        many, one = (limit(chance) * null.spread(chance) for null in nulls)
        others = np.abs(scores(rng, 10 * arms, days, draw))
        alarms += int((others > np.where(single[:, None], one, many)).any(axis=(1, 2)).sum())
    assert alarms <= rate * days * 30 * arms
    assert single[[0, -1]].all()  # the first and the last day against all others
    assert single.mean() < 0.7


def test_faults_do_not_hide_themselves():
    """A fifth of the arms with changes of all sizes moves the threshold by little."""
    rng = np.random.default_rng(1)
    sound = scores(rng, 50, 10, rng.standard_normal)
    faulty = [one.copy() for one in sound]
    for one in faulty[::5]:
        one[:, :2] += rng.uniform(0.0, 30.0, (len(one), 1))
    first, second = (np.median(null_of(some, [9] * 50).spread(1e-6)) for some in (sound, faulty))
    assert second < 1.3 * first


def test_some_changes_do_not_end_the_promise():
    """Four of fifty arms whose changes show in most quantities, none of them far off: what is promised stays."""
    rng = np.random.default_rng(4)
    made = scores(rng, 50, 20, rng.standard_normal)
    course = np.abs(made[0][:, :1]) / np.abs(made[0][:, 0]).max()
    for one in made[:4]:
        one[:, :8] += course * rng.uniform(3.0, 8.0, 8)
    promise = promise_of(null_of(made, [19] * 50), 1e-3, 20, QUANTITIES * len(course))
    assert promise.holds
    assert promise.spread < 1.3


def test_little_data_promise_nothing():
    """A few arms on a few days: withdrawn, with the number of scores that is needed; with more days it stands."""
    rng = np.random.default_rng(2)
    few, many = (null_of(scores(rng, 2, days, rng.standard_normal), [days - 1] * 2) for days in (3, 20))
    withdrawn, standing = (promise_of(null, 1e-3, 3, 200) for null in (few, many))
    assert (withdrawn.holds, withdrawn.code, withdrawn.threshold) == (False, "too-few-scores", None)
    assert withdrawn.scores < withdrawn.needed
    assert (standing.holds, standing.code) == (True, "promised")
    assert 4.0 < standing.threshold < 15.0


def test_tails_too_heavy_for_any_promise():
    """Cauchy-like days: withdrawn in words before any alarm."""
    rng = np.random.default_rng(3)
    made = scores(rng, 100, 5, lambda shape: rng.standard_t(1.5, shape))
    promise = promise_of(null_of(made, [4] * 100), 1e-3, 5, 200)
    assert (promise.holds, promise.code, promise.threshold) == (False, "heavy-tails", None)
    assert "no change is reported" in promise.sentence
