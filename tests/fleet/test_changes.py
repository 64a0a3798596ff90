"""Usual changes and faults: temperature and scatter are recovered, faults dated and sized, false alarms as promised."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from armid.dynamics.factor import CompactFactor
from armid.fleet.changes import ArmChanges, Change, reversal_search
from armid.fleet.day import ArmDay, DayFinding
from armid.fleet.hierarchy import History, Information, history_of, learn
from armid.fleet.promise import chance_of, limit, null_of
from armid.fleet.result import WatchEntry
from armid.fleet.type_model import TypeModel
from armid.fleet.usual import Watched, as_usual, deviations, learn_usual, own_deviations, scatter_of
from armid.fleet.watch import change_entries, finding_entries, ordered, unusual_entry

P, DAYS = 6, 20
WATCHED = (
    Watched("fv1", "friction", "viscous friction of joint 1", 0, "N m s/rad", True, np.eye(P)[0]),
    Watched("fc1", "friction", "Coulomb friction of joint 1", 0, "N m", True, np.eye(P)[1]),
    Watched("payload", "payload", "mass in the hand", None, "kg", False, np.eye(P)[2] + 0.5 * np.eye(P)[3]),
)
MEAN = np.array([2.0, 3.0, 4.0, 1.0, 0.5, -0.3])
PAYLOAD = np.column_stack([WATCHED[2].direction, *np.zeros((9, P))])
PER_DEGREE, DAILY = -0.012, 0.02


def histories(rng, arms, change=None, rows=300):
    """Gaussian arms with known truth: spread, temperature, daily scatter of viscous friction, noise of 1."""
    warmth = 25.0 + rng.normal(0.0, 4.0, DAYS)
    made = []
    for arm in range(arms):
        own = MEAN * (1.0 + 0.05 * rng.normal(size=P))
        matrices, vectors, days = [], [], []
        for day in range(DAYS):
            x = own.copy()
            felt = warmth[day]
            x[0] *= 1.0 + PER_DEGREE * (felt - 25.0) + DAILY * rng.normal()
            if change is not None:
                x = x + change(arm, day, own)
            W = rng.normal(size=(rows, P)) @ np.diag([1.0, 0.7, 0.5, 0.5, 1.0, 2.0])
            matrices.append(W.T @ W)
            vectors.append(W.T @ (W @ x + rng.normal(size=rows)))
            days.append(a_day(day, temperature=np.array([felt + 0.1 * rng.normal()])))
        made.append(History(f"arm{arm}", tuple(days), np.array(matrices), np.array(vectors), np.ones(1), np.ones(1)))
    return made


def curved_histories(rng, arms, change=None, days=5, rows=200):
    """Arms of two joint parameters, torque fv v + fc + e v^3, each with its own e: days differ in how fast they are."""
    warmth = 25.0 + 1.0 * np.arange(days)
    made = []
    for arm in range(arms):
        own, bend = MEAN[:2] * (1.0 + 0.05 * rng.normal(size=2)), rng.normal()
        matrices, vectors, dates = [], [], []
        for day in range(days):
            x = own * np.array([1.0 + PER_DEGREE * (warmth[day] - 25.0), 1.0])
            x = x if change is None else x + change(arm, day, own)
            v = rng.uniform(0.1, rng.uniform(0.6, 1.5), rows)
            W = np.column_stack([v, np.ones(rows), v**3]) / 0.1
            matrices.append(W.T @ W)
            vectors.append(W.T @ (W @ [*x, bend] + rng.normal(size=rows)))
            dates.append(a_day(day, temperature=np.array([warmth[day] + 0.1 * rng.normal()])))
        information = np.array(matrices), np.array(vectors)
        found = np.linalg.solve(information[0].sum(axis=0), information[1].sum(axis=0))[2:]
        curve = {"fixed": np.zeros(3), "change": np.eye(3), "found": found, "prior_error": np.zeros((1, 0))}
        made.append(History(f"arm{arm}", tuple(dates), *information, np.ones(1), np.ones(1), **curve))
    return made


def threshold_for(searcher, rate):
    """Score that an arm without changes exceeds as rarely as promised."""
    return limit(chance_of(rate, DAYS, len(WATCHED) * len(searcher.shapes.names)))


UNKNOWN = np.array([np.nan])


def a_day(day, *, temperature=UNKNOWN, reversal=UNKNOWN):
    one = np.ones(1)
    return ArmDay("arm", f"2026-01-{day + 1:02d}", one, one, temperature, reversal, 0, 0.0)


def learnt(made, watched=WATCHED):
    """The usual steps of the survey, up to one searcher per arm."""
    count = len(watched[0].direction)
    first = learn([f"p{i}" for i in range(count)], {one.name: one.known_curve.total for one in made})
    usual = learn_usual(lambda: made, watched, first)
    searchers = []
    for one in made:
        part, prior = own_deviations(one, watched, usual, first)
        corrected, shift = as_usual(one.scaled(scatter_of(part, usual)), watched, usual, part)
        searchers.append(ArmChanges(corrected, watched, part.scale, prior, PAYLOAD[:count], shift))
    return usual, searchers


@pytest.mark.parametrize("found", [False, True])
def test_errors_of_a_curve_are_those_of_the_days_as_they_count(found):
    """Information of an arm whose friction changes from day to day, and the errors of its curve, make the whole.

    Variances and the effect of another mean of the curve are those of one problem of parameters, curve and changes.
    """

    def wear(arm, day, own):
        return own * (0.5 if found and arm == 0 and day >= 3 else 0.0) * np.array([0.0, 1.0])

    made = [
        replace(one, prior_error=np.array([[0.4, -1.1]]))
        for one in curved_histories(np.random.default_rng(3), 30, wear)
    ]
    watched = tuple(replace(one, direction=one.direction[:2]) for one in WATCHED[:2])
    first = learn(["p0", "p1"], {one.name: one.known_curve.total for one in made})
    usual = replace(learn_usual(lambda: made, watched, first), day_to_day=np.array([0.05, 0.03]))
    part, prior = own_deviations(made[0], watched, usual, first)
    whole = Information(1e-6 * prior.matrix, 1e-6 * prior.vector)
    whole.matrix[2, 2] = 1.0
    corrected, shift = as_usual(made[0], watched, usual, part)
    results = []
    for error in (np.zeros(2), np.array([0.3, 0.2])):
        told = Information(whole.matrix, whole.vector + np.array([0.0, 0.0, made[0].prior_error[0] @ error]))
        searcher = ArmChanges(corrected, watched, part.scale, told, PAYLOAD[:2], shift)
        searcher.search(4.0, np.ones(2), np.zeros(2))
        assert bool(searcher.changes) == found
        results.append((searcher.healthy(), searcher._normal()[0], error))
    (arm, J, _), (other, _, error) = results
    covariance = np.linalg.inv(arm.matrix)
    assert np.trace(covariance @ arm.own @ arm.own.T) > 0.1  # the curve does hide something
    total = covariance + covariance @ arm.own @ arm.own.T @ covariance
    np.testing.assert_allclose(total, np.linalg.inv(J)[:2, :2], rtol=1e-3, atol=1e-3 * np.diag(total).min())
    np.testing.assert_allclose(other.vector - arm.vector, -arm.shared @ error, rtol=1e-4)


def test_days_after_an_early_change_have_a_deviation_and_its_error():
    """The arm's own values come from its first day alone: later days, made often, scatter as their variance says."""
    rng = np.random.default_rng(5)
    z = []
    for one in histories(rng, 60):
        total = one.only(np.arange(DAYS) == 0).total
        found = deviations(one, WATCHED[1:2], *total.solved(), MEAN[1:2], one.days[1].date)
        z.append((found.values / np.sqrt(found.variance))[1:])
    assert np.isfinite(z).all()
    assert np.mean(np.square(z)) == pytest.approx(1.0, abs=0.3)


def test_temperature_and_daily_scatter_are_recovered():
    """The pooled regression finds the effect of a degree and what scatters beside it; others have none."""
    usual, _ = learnt(histories(np.random.default_rng(0), 40))
    assert usual.per_degree[0] == pytest.approx(PER_DEGREE, rel=0.1)
    assert abs(usual.per_degree[1]) < 0.1 * abs(PER_DEGREE)
    assert usual.day_to_day[0] == pytest.approx(DAILY, rel=0.15)
    assert usual.day_to_day[1] < 0.6 * DAILY  # 800 values with a noise of 0.027 tell no less
    assert np.isnan(usual.per_degree[2])


def test_temperature_is_recovered_although_arms_are_faulty():
    """A fifth of the arms with friction that doubles does not spoil what is usual."""

    def wear(arm, day, own):
        return own[0] * (0.1 * max(day - 8, 0) if arm % 5 == 0 else 0.0) * np.eye(P)[0]

    usual, _ = learnt(histories(np.random.default_rng(1), 40, wear))
    assert usual.per_degree[0] == pytest.approx(PER_DEGREE, rel=0.2)
    assert usual.day_to_day[0] < 2.5 * DAILY


FRICTION = tuple(replace(one, direction=one.direction[:2]) for one in WATCHED[:2])


def test_an_arms_own_friction_curve_takes_nothing_of_temperature_and_changes():
    """Curves that days of different speeds tell: the effect of a degree and a ramp come out whole, scores as they are.

    A curve that is estimated first and then taken for known swallows part of both.
    """
    made = curved_histories(np.random.default_rng(0), 400)
    usual, searchers = learnt(made, FRICTION)
    assert usual.per_degree[0] == pytest.approx(PER_DEGREE, rel=0.1)
    assert abs(usual.per_degree[1]) < 0.1 * abs(PER_DEGREE)
    z = np.concatenate([one.scan().score.ravel() for one in searchers])
    assert 0.85 < z.std() < 1.08
    believed, _ = learnt([one.known_curve for one in made], FRICTION)
    assert abs(believed.per_degree[0]) < 0.9 * abs(PER_DEGREE)

    def wear(arm, day, own):
        return 0.08 * own[0] * day * np.eye(2)[0] * (arm == 3)

    _, searchers = learnt(curved_histories(np.random.default_rng(1), 60, wear), FRICTION)
    found = searchers[3].scan()
    ramp = searchers[3].shapes.names.index("ramp")
    assert found.size[ramp, 0] == pytest.approx(0.08, abs=3.0 * found.sigma[ramp, 0])
    assert found.score[ramp, 0] > 5.0


def test_a_change_is_not_taken_for_the_arms_own_friction_curve():
    """Before its change an arm is as without it; its curve from all days alike would make it unlike the others."""

    def wear(arm, day, own):
        return 0.5 * own[0] * (day >= 2) * np.eye(2)[0] * (arm == 3)

    sound, made = (curved_histories(np.random.default_rng(6), 30, change) for change in (None, wear))
    truth = sound[3].total.solved()[0]
    one = learnt(made, FRICTION)[1][3]
    one.search(6.0, np.ones(2), np.zeros(2), rounds=1)
    healthy = one.healthy().solved()[0]
    assert healthy == pytest.approx(truth[:2], rel=0.03)
    assert one.curve == pytest.approx(truth[2:], abs=0.1)
    assert abs(one.history.found - truth[2:]) > 0.3  # that of all days


def test_of_sure_courses_the_likeliest_is_reported():
    """Scores count by how far those of sound arms reach, courses by how well they describe the days.

    Errors that make courses which many days decide less sure must not change the day of a ramp.
    """

    def wear(arm, day, own):
        return 0.1 * own[0] * max(day - 9, 0) * np.eye(P)[0] * (arm == 3)

    one = learnt(histories(np.random.default_rng(7), 12, wear))[1][3]
    true = [k for k, (name, day) in enumerate(zip(one.shapes.names, one.shapes.onsets, strict=True)) if day == 10]
    spread = np.ones((len(one.shapes.names), len(WATCHED)))
    spread[true] = 1.3
    one.search(6.0, spread, np.zeros(3))
    assert [(found.shape, found.onset) for found in one.changes] == [("ramp", 10)]


def test_of_quantities_of_a_joint_the_one_that_explains_most_is_reported():
    """At speeds that hardly differ, viscous friction that has risen looks like Coulomb friction.

    What the model leaves of it may make one of them look surer than the other; what changed leaves nothing.
    """
    rng, truth = np.random.default_rng(8), np.array([2.0, 3.0])
    matrices, vectors = [], []
    for day in range(DAYS):
        W = np.column_stack([rng.uniform(0.5, 1.0, 2000), np.ones(2000)])
        x = truth + (0.4 if day >= 10 else 0.0) * np.eye(2)[0]
        matrices.append(W.T @ W)
        vectors.append(W.T @ (W @ x + rng.normal(size=2000)))
    days = tuple(a_day(day) for day in range(DAYS))
    history = History("arm", days, np.array(matrices), np.array(vectors), np.ones(1), np.ones(1))
    loose = Information(1e-9 * np.eye(2), np.zeros(2))
    one = ArmChanges(history, FRICTION, truth, loose, np.zeros((2, 10)), np.zeros((DAYS, 2)))
    spread = np.array([1.4, 1.0])
    surest = np.abs(one.scan().score) / spread
    assert surest[:, 1].max() > surest[:, 0].max()
    one.search(4.3, spread, np.zeros(2))
    assert [(found.watched, found.shape, found.onset) for found in one.changes] == [(0, "step", 10)]


@pytest.mark.parametrize("changed", [0, 1])
def test_what_hardly_shows_beside_a_quantity_is_not_taken_for_nothing(changed):
    """After a change on the second day the arm's own parameters hide what a wrong quantity leaves: scores decide."""
    for seed in range(12):
        rng, truth, matrices, vectors = np.random.default_rng(seed), np.array([2.0, 3.0]), [], []
        for day in range(20):
            W = np.column_stack([rng.uniform(0.3, 1.0, 2000), np.ones(2000)])
            x = truth + (0.6 if day >= 1 else 0.0) * np.eye(2)[changed]
            matrices.append(W.T @ W)
            vectors.append(W.T @ (W @ x + rng.normal(size=2000)))
        days = tuple(a_day(day) for day in range(20))
        history = History("arm", days, np.array(matrices), np.array(vectors), np.ones(1), np.ones(1))
        loose = Information(1e-9 * np.eye(2), np.zeros(2))
        one = ArmChanges(history, FRICTION, truth, loose, np.zeros((2, 10)), np.zeros((20, 2)))
        one.search(4.3, np.ones(2), np.zeros(2), rounds=1)
        assert one.changes[0].watched == changed


def test_scores_are_standard_normal_without_changes():
    """Scores of single candidates have mean 0 and variance 1, and false alarms are as rare as the threshold says."""
    scores, alarms, arms = [], 0, 0
    rate = 0.02
    for seed in range(8):
        _, searchers = learnt(histories(np.random.default_rng(100 + seed), 30))
        for one in searchers:
            found = one.scan().score
            scores.append(found[::7].ravel())
            arms += 1
            one.search(threshold_for(one, rate), np.ones(3), np.zeros(3), rounds=1)
            alarms += bool(one.changes)
    z = np.concatenate(scores)
    assert abs(z.mean()) < 0.1
    assert 0.85 < z.std() < 1.08
    assert alarms <= 0.05 * arms  # the most for one arm, however long it is watched


@pytest.mark.parametrize(
    ("change", "watched", "shape", "size"),
    [
        (lambda arm, day, own: 0.08 * own[0] * max(day - 9, 0) * np.eye(P)[0] * (arm == 3), 0, "ramp", 0.08),
        (lambda arm, day, own: 0.4 * own[1] * (day >= 10) * np.eye(P)[1] * (arm == 3), 1, "step", 0.4),
        (lambda arm, day, own: 0.7 * (day >= 10) * WATCHED[2].direction * (arm == 3), 2, "step", 0.7),
    ],
)
def test_changes_are_dated_and_sized(change, watched, shape, size):
    """A ramp of friction, a step of friction, a mass in the hand: quantity, shape, first day and size come out."""
    _, searchers = learnt(histories(np.random.default_rng(2), 12, change))
    for one in searchers:
        one.search(threshold_for(one, 1e-3), np.ones(3), np.zeros(3))
    assert [bool(one.changes) for one in searchers] == [arm == 3 for arm in range(12)]
    (found,) = searchers[3].changes
    assert (found.watched, found.shape) == (watched, shape)
    assert abs(found.onset - 10) <= 1
    assert found.size == pytest.approx(size, rel=0.35)  # of the mean over all days; the survey refers it to before
    healthy = searchers[3].healthy()
    own = np.linalg.solve(healthy.matrix, healthy.vector)
    error = np.sqrt(np.diag(np.linalg.inv(healthy.matrix)))
    made = histories(np.random.default_rng(2), 12)[3]  # the same arm without the change
    truth = np.linalg.solve(made.total.matrix, made.total.vector)
    assert np.all(np.abs(own - truth) < 6.0 * error + 0.02 * np.abs(truth))


@pytest.mark.parametrize(("left", "sentences"), [(0.0, 1), (0.4, 2)])
def test_a_payload_taken_up_and_put_down(left, sentences):
    """Both masses come out although one follows the other; one sentence if nothing is left in the hand, else two."""

    def carried(arm, day, own):
        return (0.9 * (8 <= day < 13) + left * (day >= 13)) * WATCHED[2].direction * (arm == 3)

    _, searchers = learnt(histories(np.random.default_rng(4), 12, carried))
    one = searchers[3]
    one.search(threshold_for(one, 1e-3), np.ones(3), np.zeros(3))
    found = one.payloads()
    days = {change.onset: found[k] for k, change in enumerate(one.changes)}
    assert sorted(days) == [8, 13]
    assert days[8].mass == pytest.approx(0.9, abs=4.0 * days[8].sigma)
    assert days[13].mass == pytest.approx(left - 0.9, abs=4.0 * days[13].sigma)
    assert max(days[8].sigma, days[13].sigma) < 0.1
    dates = [day.date for day in one.history.days]
    changes = [replace(c, since=dates[c.onset], carried=found[k]) for k, c in enumerate(one.changes)]
    entries = change_entries("arm3", changes, WATCHED, dates)
    assert len(entries) == sentences
    by_day = {entry.since: entry for entry in entries}
    assert by_day[dates[8]].size == pytest.approx(days[8].mass, rel=1e-3)
    assert by_day[dates[8]].until == (None if left else dates[12])
    mass = f"{days[8].mass:.2g}"
    if left:
        assert by_day[dates[8]].sentence == f"carries about {mass} kg of unreported payload since {dates[8]}"
        assert by_day[dates[13]].size == pytest.approx(left - 0.9, abs=0.3)
        assert " kg lighter in the hand than before" in by_day[dates[13]].sentence
    else:
        words = f"carried about {mass} kg of unreported payload from {dates[8]} to {dates[12]}"
        assert by_day[dates[8]].sentence == words


@pytest.mark.parametrize("days", [(3, 6), (7, 10), (10, 13)])
def test_two_steps_of_a_load_are_no_ramp(days):
    """Each alone, a ramp explains both best; beside one of them, the other is a step, and no ramp is left."""

    def carried(arm, day, own):
        return 2.2 * sum(day >= one for one in days) * WATCHED[2].direction * (arm == 3)

    _, searchers = learnt(histories(np.random.default_rng(4), 12, carried))
    one = searchers[3]
    one.search(threshold_for(one, 1e-3), np.ones(3), np.zeros(3))
    assert sorted((c.watched, c.shape, c.onset) for c in one.changes) == [(2, "step", day) for day in days]
    for change in one.changes:
        assert change.size == pytest.approx(2.2, abs=4.0 * change.sigma)


def test_a_load_of_the_last_day_is_dated_where_scores_of_single_days_scatter_widely():
    """That something changed is sure from courses that several days decide; which day it was, the likeliest says."""

    def carried(arm, day, own):
        return 3.0 * (day == DAYS - 1) * WATCHED[2].direction * (arm == 3)

    _, searchers = learnt(histories(np.random.default_rng(4), 12, carried))
    one = searchers[3]
    spread = np.where(one.shapes.single[:, None], 24.0, 1.0) * np.ones(3)
    one.search(threshold_for(one, 1e-3), spread, np.zeros(3))
    assert [(c.watched, c.shape, c.onset) for c in one.changes] == [(2, "step", DAYS - 1)]
    assert one.payloads()[0].mass == pytest.approx(3.0, abs=4.0 * one.payloads()[0].sigma)


def test_a_change_of_what_is_hardly_known_is_in_its_unit():
    """The share of a value that friction curves hide would be a guess."""
    change = Change(0, "ramp", 2, 1.26, 0.04, 31.0, days=4.0, since="2026-01-03", in_unit=True)
    (one,) = change_entries("arm", [change], WATCHED, [])
    assert (one.unit, one.size, one.size_sigma) == ("N m s/rad", 1.26, 0.04)
    assert one.sentence == "viscous friction of joint 1 rises by 1.3 N m s/rad a day since 2026-01-03"


@pytest.mark.parametrize(
    ("size", "sigma", "words"), [(1.4, 0.03, "1.4 kg"), (1.4, 0.52, "1.4 ± 0.52 kg"), (123.0, 1.0, "120 kg")]
)
def test_a_mass_that_is_hardly_known_is_told_with_its_error(size, sigma, words):
    one = WatchEntry("arm", "payload", "payload", "2026-01-03", size=size, size_sigma=sigma, unit="kg")
    assert one.sentence == f"carries about {words} of unreported payload since 2026-01-03"


@pytest.mark.parametrize(("quantity", "days", "brief"), [(1, 1, [8]), (1, 3, []), (2, 1, [])])
def test_one_day_of_another_friction_is_an_odd_day(quantity, days, brief):
    """What the next day takes back is no change of the arm; a load may be carried for a day."""

    def once(arm, day, own):
        step = (2.0 if quantity == 2 else 0.6 * own[1]) * WATCHED[quantity].direction
        return step * (arm == 3 and 8 <= day < 8 + days)

    _, searchers = learnt(histories(np.random.default_rng(11), 12, once))
    one = searchers[3]
    one.search(threshold_for(one, 1e-3), np.ones(3), np.zeros(3))
    assert sorted((c.watched, c.onset) for c in one.changes) == [(quantity, 8), (quantity, 8 + days)]
    assert one.brief == brief


def test_play_shows_at_reversals():
    """A ratio that doubles from a day on is found on that joint and day; the others stay quiet."""
    rng = np.random.default_rng(3)
    arms = {}
    for arm in range(10):
        ratios = np.exp(0.1 * rng.normal(size=(DAYS, 2))) * 1.3
        if arm == 4:
            ratios[12:, 1] *= 2.0
        arms[f"arm{arm}"] = tuple(a_day(day, reversal=ratios[day]) for day in range(DAYS))
    searchers = {name: reversal_search(days) for name, days in arms.items()}
    null = null_of([one.scan().score for one in searchers.values()], [DAYS - 1] * len(arms))
    assert null.scale == pytest.approx([0.1, 0.1], rel=0.25)
    for name, one in searchers.items():
        one.search(limit(1e-4), null.spread(1e-4, 0.0), np.zeros(2))
        assert [(c.watched, c.onset, c.shape) for c in one.changes] == ([(1, 12, "step")] if name == "arm4" else [])
    assert searchers["arm4"].changes[0].size == pytest.approx(np.log(2.0), abs=0.15)
    silent = reversal_search(tuple(replace(day, reversal=np.full(2, np.nan)) for day in arms["arm4"]))
    silent.search(4.0, null.scale, np.zeros(2))
    assert silent.changes == []


def test_words_of_entries():
    """What the recorder's clock is, that a channel is dead, what a parameter is; data before friction."""

    clock = DayFinding("clock-jump", "warning", "a.csv", values={"days_off": -365})
    dead = DayFinding("dead-channel", "error", "a.csv", "turn", {"channel": "effort"})
    days = [replace(a_day(day), findings=(clock, dead)) for day in range(3)]
    entries = ordered(finding_entries("arm", days, ["turn"]))
    since = "since 2026-01-01"
    said = [f"torque of joint 1 is dead {since}", f"the recorder's clock is 365 days behind {since}"]
    assert [one.sentence for one in entries] == said
    assert [(one.code, one.joint, one.until) for one in entries] == [
        ("dead-channel", 1, None),
        ("clock-jump", None, None),
    ]
    friction = WatchEntry("arm", "friction", "step", score=99.0)
    assert [one.kind for one in ordered([friction, *entries])] == ["dead", "data", "friction"]
    one = Watched("fvp3", "friction", "viscous friction of joint 3 in positive direction", 2, "", True, np.eye(P)[0])
    unusual = unusual_entry("arm", ["Izz2R", "fvp3", "q"], [8.8, -7.0, 6.0], [one]).sentence
    assert "inertia of link 2 (Izz2R, +8.8 standard deviations)" in unusual
    assert "viscous friction of joint 3 in positive direction (fvp3, -7.0 standard deviations)" in unusual
    assert unusual.endswith("q (+6.0 standard deviations)")


def test_a_joint_that_hardly_moves_does_not_tell_its_noise():
    """As many rows as parameters fit whatever they are: the noise is that of days with more, else of other arms."""
    rng = np.random.default_rng(6)

    def day_of(number, rows, rms):
        W = np.column_stack([rng.normal(size=(rows, 4)), rng.normal(size=rows)])
        factor = CompactFactor(tuple("abcd"), (np.arange(4),), (np.linalg.qr(W, mode="r"),), rows, True, (rows,))
        return replace(a_day(number), factor=factor, rms=np.array([rms]))

    model = TypeModel(None, (), None, np.zeros(1), np.zeros(0))
    object.__setattr__(model, "followed", SimpleNamespace(joint_columns=(np.arange(4),)))

    def noise_of(days, **more):
        return history_of("arm", days, model, **more).noise

    few = [day_of(number, 5, 1e-9) for number in range(3)]
    assert noise_of([*few, day_of(3, 200, 0.3)]) == pytest.approx([0.3])
    assert noise_of(few, typical=np.array([0.2])) == pytest.approx([0.2])
    spoilt = [day_of(number, 200, 5.0) for number in range(4, 8)]
    counted = np.array([True, True, False, False, False, False])
    assert noise_of([day_of(2, 200, 0.3), day_of(3, 200, 0.3), *spoilt], counted=counted) == pytest.approx([0.3])
