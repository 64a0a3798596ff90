"""Arms that are wrong in many ways at once: each is named for what it is, and the others are as without it."""

import shutil

import numpy as np
import pytest

import armid
from armid.dynamics.factor import CompactFactor, triangle
from armid.fleet.day import ArmDay, DayFinding
from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from armid.fleet.words import two_digits
from armid.fleet.wrong_days import explained, wrong_channels
from armid.logs import read_log, write_log
from armid.logs.log import Log
from armid.robot.inertia import change_of_frame
from tests.fleet.arms import EXAMPLES, LINK, write_fleet

ARMS, DAYS = 9, 6
REVERSED, HALF, EXCHANGED, ODD_DAYS, CARRIER, UNFIT, SOUND = (
    "arm001",
    "arm002",
    "arm003",
    "arm004",
    "arm005",
    "arm006",
    6,
)
MASS, CENTRE = 0.4, (0.02, -0.01, 0.06)
DATES = [f"2026-03-{day + 1:02d}" for day in range(DAYS)]
#: Days without a recording: the log doctor takes its time over each that is wrong.
NO_LOG = [*((REVERSED, day) for day in range(2, DAYS)), (HALF, 5)]
NO_LOAD = np.zeros((3, 10))  # a payload acts on none of three parameters
TOTAL = ARMS * DAYS - len(NO_LOG)


def changed(values, arm, day):
    """A payload on two days in the middle; and an arm that is another one every day."""
    if arm == 4 and day in (2, 3):
        robot = armid.load_robot(EXAMPLES / "arm.yaml")
        payload = np.zeros(10)
        payload[0], payload[1:4] = MASS, MASS * np.array(CENTRE)
        for name, more in zip(LINK, change_of_frame(robot.tool) @ payload, strict=True):
            values[f"{name}{robot.n_joints}"] += more
    if arm == 5:
        rng = np.random.default_rng([3, day])
        values = {name: value * (1.0 + 0.3 * rng.normal() * name.startswith("m")) for name, value in values.items()}
    return values


def retouched(folder, name, days, torque):
    """Let `torque(time, effort)` alter the torque of an arm on some days."""
    for day in days:
        path = folder / "logs" / f"robot={name}" / f"date={DATES[day]}" / "log.parquet"
        log = read_log(path)
        channels = {**log.channels, "effort": torque(log.time, log["effort"].copy())}
        write_log(Log(log.time, channels, log.info), path)


def junk(time, effort):
    effort[:, 2] += 3.0 * np.sin(2.0 * np.pi * 1.7 * time) * np.sin(0.4 * time)
    return effort


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The fleet, and its result."""
    folder = tmp_path_factory.mktemp("survey")
    fleet = load_fleet(write_fleet(folder, ARMS, DAYS, change=changed))
    for name, day in NO_LOG:
        shutil.rmtree(folder / "logs" / f"robot={name}" / f"date={DATES[day]}")
    retouched(folder, REVERSED, range(2), lambda time, effort: effort * [-1.0, 1.0, 1.0, 1.0])
    retouched(folder, HALF, range(2, 5), lambda time, effort: effort * [1.0, -1.0, 1.0, 1.0])
    retouched(folder, EXCHANGED, (3, 4), lambda time, effort: effort[:, [1, 0, 2, 3]])
    retouched(folder, ODD_DAYS, (1, 2), junk)
    return folder, fleet, identify_fleet(fleet, folder / "result")


def told(result, arm):
    return [one.sentence for one in result.watch if one.robot == arm]


def data_of(result, arm):
    return next(one for one in result.arms if one.name == arm)


def test_an_arm_without_any_day_that_counts_is_named(home):
    """A torque reversed on all days: told since the first day; nothing is estimated, and nobody else suffers."""
    folder, _, result = home
    assert told(result, REVERSED) == [f"torque of joint 1 has the wrong sign since {DATES[0]}"]
    arm = data_of(result, REVERSED)
    assert (arm.state, arm.days) == ("look", 0)
    assert [getattr(arm, key) for key in ("noise", "values", "sigma", "own", "deviation", "fit", "series")] == [
        None
    ] * 7
    assert not (folder / "result" / "robots" / REVERSED).exists()
    sound = [f"arm{number + 1:03d}" for number in range(SOUND, ARMS)]
    assert {one.state for one in result.arms if one.name in sound} == {"good"}


def test_noise_is_that_of_the_days_that_count(home):
    """Most of an arm's days reversed: noise and intervals are those of an arm with two days."""
    _, _, result = home
    assert told(result, HALF) == [f"torque of joint 2 has the wrong sign since {DATES[2]}"]
    half, sound = data_of(result, HALF), data_of(result, "arm009")
    np.testing.assert_allclose(half.noise, sound.noise, rtol=0.25)
    ratio = np.array(half.sigma) / np.array(sound.sigma)
    assert np.median(ratio) < 1.3 * np.sqrt(DAYS / 2)


def test_exchanged_torques_are_named(home):
    """The log doctor suspects it, the fleet agrees: told by name, days left out."""
    _, _, result = home
    assert told(result, EXCHANGED) == [f"torques of turn and lift look exchanged from {DATES[3]} to {DATES[4]}"]
    assert data_of(result, EXCHANGED).days == DAYS - 2


def test_days_that_fit_nothing_are_told_once_and_counted(home):
    """Two days in a row: one entry, left out, counted apart, and so the result is not all good."""
    _, _, result = home
    (one,) = (one for one in result.watch if one.robot == ODD_DAYS)
    assert (one.code, one.joint, one.since, one.until) == ("misfit", 3, DATES[1], DATES[2])
    assert one.values["days"] == 2
    assert one.size > 3.0
    assert data_of(result, ODD_DAYS).days == DAYS - 2
    assert result.counts.misfit_days == 2
    assert result.counts.used == TOTAL - 2 - 3 - 2 - 2
    named = [(one.date, one.file) for one in result.problems if one.robot == ODD_DAYS]
    assert named == [(DATES[1], "all"), (DATES[2], "all")]
    assert not result.good
    first, *lines = result.summary().splitlines()
    assert f"{result.counts.used} of {TOTAL} arm-days used" in first
    assert first.endswith("; 2 left out because they fit nothing")
    whole = f"  {HALF} {DATES[2]} to {DATES[4]}, whole days: torque of joint 2 has the wrong sign"
    assert whole in lines


def test_an_arm_that_no_model_fits_is_one_sentence(home):
    """All days differ: one entry about the arm; the days still count."""
    _, _, result = home
    entries = [one for one in result.watch if one.robot == UNFIT and one.kind == "misfit"]
    assert len(entries) == 1
    assert (entries[0].code, entries[0].since) == ("unfit", None)
    assert entries[0].size > 3.0
    assert not [one for one in result.problems if one.robot == UNFIT]
    assert data_of(result, UNFIT).days == DAYS


def test_a_payload_that_is_put_down_again(home):
    """Mass and both dates in one sentence; the series of that arm shows the same mass on the same days, else none."""
    _, _, result = home
    (one,) = (one for one in result.watch if one.robot == CARRIER)
    assert (one.kind, one.since, one.until) == ("payload", DATES[2], DATES[3])
    assert one.size == pytest.approx(MASS, rel=0.08)
    assert one.sentence == f"carried about {one.size:.2g} kg of unreported payload from {DATES[2]} to {DATES[3]}"
    series = data_of(result, CARRIER).series.deviation["payload"]
    carried = np.isin(np.arange(DAYS), (2, 3))
    np.testing.assert_allclose(series[carried], one.size, rtol=0.08)
    np.testing.assert_allclose(series[~carried], 0.0, atol=0.06)


def test_fits_of_arms_that_are_gone_are_removed(home):
    """An arm of an earlier run, and not what else lies there."""
    folder, fleet, result = home
    robots = folder / "result" / "robots"
    for name, file in (("gone", "fit.json"), ("kept", "fit.json"), ("kept", "report.html")):
        (robots / name).mkdir(exist_ok=True)
        (robots / name / file).write_text("{}")
    again = identify_fleet(fleet, folder / "result")
    assert again.watch == result.watch
    assert not (robots / "gone").exists()
    assert [path.name for path in (robots / "kept").iterdir()] == ["report.html"]
    assert sorted(path.parent.name for path in robots.glob("*/fit.json")) == [f"arm{n:03d}" for n in range(2, ARMS + 1)]


def test_a_joint_that_never_moves_in_the_whole_fleet(tmp_path):
    """What no arm shows is unknown, without a warning; the rest and the page are there."""
    file = write_fleet(tmp_path, 5, 1)
    for path in (tmp_path / "logs").rglob("*.parquet"):
        log = read_log(path)
        position = log["position"].copy()
        position[:, 3] = 0.3
        write_log(Log(log.time, {"position": position, "effort": log["effort"]}, log.info), path)
    result = identify_fleet(load_fleet(file), tmp_path / "result")
    known = {one.name: one for one in result.parameters}
    assert [getattr(known["fv4"], key) for key in ("mean", "sigma", "spread")] == [None, None, None]
    assert known["fv1"].sigma < 0.1 * known["fv1"].mean
    assert (tmp_path / "result" / "fleet.html").stat().st_size > 10_000


@pytest.mark.parametrize(("value", "words"), [(360.4, "360"), (51.2, "51"), (7.53, "7.5"), (0.0123, "0.012")])
def test_numbers_without_exponents(value, words):
    """A friction that is 360 % higher is not 3.6e+02 % higher."""
    assert two_digits(value) == words


@pytest.mark.parametrize(("rows", "sign", "found"), [(40, -1, True), (8, -1, True), (8, 1, False), (4, -1, False)])
def test_a_reversed_torque_is_seen_in_few_rows(rows, sign, found):
    """A short day whose sign is wrong would else count, and make good days look wrong."""
    rng = np.random.default_rng(rows)
    W, x = rng.normal(size=(rows, 3)), np.array([2.0, -1.0, 0.5])
    table = np.column_stack([W, sign * W @ x + 0.2 * rng.normal(size=rows)])
    factor = CompactFactor(("a", "b", "c"), (np.arange(3),), (triangle(table),), rows, True, (rows,))
    day = ArmDay("arm", "2026-01-01", *np.ones((4, 1)), rows, 1.0, factor=factor)
    assert [one.code for one in wrong_channels(day, x, np.ones(1), ("turn",), NO_LOAD)] == ["sign"] * found


@pytest.mark.parametrize(
    ("rms", "of", "found"),
    [((0.9, 0.8), "motion", True), ((0.9, 0.2), "motion", False), ((0.9, 0.8), "effort", False)],
)
def test_motion_is_exchanged_where_the_doctor_says_so_and_nothing_else_fits(rms, of, found):
    """The log doctor may err about one log; residuals that no parameters explain, seen from other arms, decide."""
    rng = np.random.default_rng(0)
    W, x, rows = rng.normal(size=(200, 3)), np.array([2.0, -1.0, 0.5]), (200, 200)
    table = triangle(np.column_stack([W, W @ x + 0.1 * rng.normal(size=200)]))
    factor = CompactFactor(("a", "b", "c"), (np.arange(3),) * 2, (table, table), 200, True, rows)
    said = tuple(DayFinding("swapped-joints", "error", "log", joint, {"of": of}) for joint in ("turn", "lift"))
    day = ArmDay("arm", "2026-01-01", np.array(rms), *np.ones((3, 2)), 200, 1.0, findings=said, factor=factor)
    excluded = wrong_channels(day, x, np.full(2, 0.1), ("turn", "lift"), NO_LOAD)
    assert [(one.code, one.joints) for one in excluded] == [("motion", (0, 1))] * found


@pytest.mark.parametrize(("more", "found"), [(3.0, True), (1.6, False)])
def test_an_arm_that_is_far_louder_than_the_others_is_named(tmp_path, more, found):
    """All days alike, so that none is the odd one: what other arms' residuals are shows that something is wrong.

    One that is eight times as loud as the others on all days has its own noise, and a model that fits.
    """
    path = write_fleet(tmp_path, 5, 2)
    for seed, log_path in enumerate(sorted((tmp_path / "logs" / "robot=arm002").rglob("*.parquet"))):
        log, rng = read_log(log_path), np.random.default_rng(seed)
        effort = log["effort"] + rng.normal(size=log["effort"].shape) * [more, 0.0, 0.0, 0.0]
        write_log(Log(log.time, {**log.channels, "effort": effort}, log.info), log_path)
    result = identify_fleet(load_fleet(path), tmp_path / "result")
    assert [(one.robot, one.code, one.joint) for one in result.watch] == [("arm002", "loud", 1)] * found
    assert all(one.size > 10.0 for one in result.watch)


@pytest.mark.prove
def test_motion_that_is_exchanged_on_all_days_is_named(tmp_path):
    """The log doctor sees it, the fleet agrees: nothing of it counts, and nobody else suffers."""
    path = write_fleet(tmp_path, 6, 3)
    for log_path in (tmp_path / "logs" / "robot=arm002").rglob("*.parquet"):
        log = read_log(log_path)
        moved = {name: log[name][:, [3, 1, 2, 0]] for name in ("position", "velocity") if name in log.channels}
        write_log(Log(log.time, {**log.channels, **moved}, log.info), log_path)
    result = identify_fleet(load_fleet(path), tmp_path / "result")
    words = f"positions and velocities of turn and twist look exchanged since {DATES[0]}"
    assert [(one.robot, one.sentence) for one in result.watch] == [("arm002", words)]
    assert result.counts.used == 15


@pytest.mark.parametrize(("share", "noise", "found"), [(0.0, 0.0, True), (0.0, 0.2, True), (0.2, 0.1, False)])
def test_a_small_torque_that_goes_with_the_expected_one_is_not_dead(share, noise, found):
    """A last joint's torque is friction, of which an arm may have a fifth of what is usual; a dead channel has none."""
    rng = np.random.default_rng(0)
    W, x = rng.normal(size=(200, 3)), np.array([2.0, -1.0, 0.5])
    table = np.column_stack([W, share * W @ x + noise * rng.normal(size=200)])
    factor = CompactFactor(("a", "b", "c"), (np.arange(3),), (triangle(table),), 200, True, (200,))
    day = ArmDay("arm", "2026-01-01", *np.ones((4, 1)), 200, 1.0, factor=factor)
    assert [one.code for one in wrong_channels(day, x, np.ones(1), ("turn",), NO_LOAD)] == ["dead"] * found


@pytest.mark.parametrize(
    ("carried", "sensor", "blind", "found"),
    [(-2.0, 1, "dead", []), (0.0, 0, "dead", ["dead"]), (-4.0, 1, "sign", []), (0.0, -1, "sign", ["sign"])],
)
def test_a_payload_that_balances_or_turns_over_a_torque_is_no_bad_sensor(carried, sensor, blind, found):
    """Gravity of the last joint is gone or reversed with another load in the hand; the joint before it says so."""
    rng = np.random.default_rng(1)
    W, x, payload = rng.normal(size=(2, 200, 3)), np.array([5.0, 1.0, 0.1]), np.zeros((3, 10))
    payload[:2, 0] = 1.0, 0.5  # a mass acts on both joints
    W[0, :, 1] = W[1, :, 0] = 0.0
    torque = W @ (x + carried * payload[:, 0]) * np.array([[1.0], [sensor]])
    tables = tuple(triangle(one) for one in np.dstack([W, torque + 0.05 * rng.normal(size=torque.shape)]))
    factor = CompactFactor(("a", "b", "c"), (np.arange(3),) * 2, tables, 200, True, (200, 200))
    day = ArmDay("arm", "2026-01-01", *np.ones((4, 2)), 200, 1.0, factor=factor)
    given = day, x, np.full(2, 0.05), ("lift", "turn")
    assert [(one.code, one.joints) for one in wrong_channels(*given, NO_LOAD)] == [(blind, (1,))]
    assert [one.code for one in wrong_channels(*given, payload)] == found


def test_bad_days_do_not_spoil_sound_ones(tmp_path):
    """A day far off is left out alone, though in a fit that holds it others are off, too; bad days on half of an arm's
    days are its usual noise, but not that of the other arms.
    """
    path = write_fleet(tmp_path, 12, 6)
    retouched(tmp_path, "arm001", (3,), lambda time, effort: effort * [1.0, 1.0, 3.0, 1.0])
    retouched(tmp_path, "arm002", (0, 2, 4), lambda time, effort: 0.5 * effort + 0.5 * junk(time, effort.copy()))
    result = identify_fleet(load_fleet(path), tmp_path / "result")
    one, other = sorted(result.watch, key=lambda entry: entry.robot)
    assert (one.robot, one.code, one.joint, one.since, one.until) == ("arm001", "misfit", 3, DATES[3], DATES[3])
    assert (other.robot, other.code, other.joint, other.since) == ("arm002", "unfit", 3, None)
    assert [arm.days for arm in result.arms] == [5, *[6] * 11]


@pytest.mark.parametrize(
    ("plain", "times", "odd", "left"),
    [
        ([[60.0], [60.0], [20.0], [20.0], [20.0]], [[6.5], [1.5], [2.0], [4.9], [15.0]], [0, 3, 4], [4]),
        # what a payload does to friction is alike on all its days, whatever it explains of this joint
        ([[1.0, 1.0]] * 3 + [[90.0, 6.0]] * 3, [[1.0, 1.0]] * 3 + [[1.0, 6.0], [1.0, 5.0], [1.0, 7.0]], [3, 5], []),
        # a torque that is wrong on one of them is not
        ([[1.0, 1.0]] * 3 + [[90.0, 6.0]] * 3, [[1.0, 1.0]] * 3 + [[1.0, 1.0], [1.0, 1.0], [1.0, 7.0]], [5], [5]),
        # all days of a change are kept where it explains most, some of them more
        ([[1.0]] * 6 + [[20.0]] * 2, [[1.0]] * 6 + [[9.0], [9.0]], [6, 7], []),
        ([[1.0]] * 6 + [[20.0]] * 2, [[1.0]] * 6 + [[5.0], [9.0]], [6, 7], []),
        ([[1.0]] * 6 + [[20.0]] * 2, [[1.0]] * 6 + [[5.0], [25.0]], [6, 7], [7]),
    ],
)
def test_what_a_change_leaves_of_its_days_is_no_misfit(plain, times, odd, left):
    """A payload acts on friction, too, which is known only roughly: days that it explains nearly are not odd ones."""
    plain, times = np.array(plain), np.array(times)
    onset = int(np.argmax(np.any(plain != plain[0], axis=1)))
    joint = np.argmax(times, axis=1)
    given = np.zeros(times.shape, dtype=bool)
    given[odd, joint[odd]] = True
    given &= ~explained(given, times, plain, [onset])
    assert np.flatnonzero(given.any(axis=1)).tolist() == left


@pytest.mark.parametrize(
    "bad", [{1: "sign"}, {0: "dead", 2: "dead"}, dict.fromkeys(range(3), "sign"), {0: "sign", 2: "dead"}]
)
@pytest.mark.parametrize("carried", [0.0, 0.6])
def test_several_bad_torques_are_all_named_whatever_the_arm_carries(bad, carried):
    """No load turns them over; what other bad torques say of the hand does not count."""
    rng, count = np.random.default_rng(2), 3
    x, payload = np.array([8.0, 4.0, 2.0, 1.0, 0.6, 0.4]), np.zeros((6, 10))  # weight and friction of three joints
    payload[:3, 0], payload[2, 1] = (1.0, 0.5, 0.0), 1.0
    tables = []
    for joint in range(count):
        q, v = rng.normal(size=(2, 300))
        W = np.zeros((300, 6))
        W[:, joint], W[:, joint + 1 : 3], W[:, 3 + joint] = np.cos(q), 0.3 * np.cos(q)[:, None], np.sign(v)
        torque = W @ (x * rng.normal(1.0, 0.03, 6) + carried * payload[:, 0]) + 0.05 * rng.normal(size=300)
        tables.append(
            triangle(np.column_stack([W, {"sign": -torque, "dead": 0.0 * torque}.get(bad.get(joint), torque)]))
        )
    factor = CompactFactor(tuple("abcdef"), (np.arange(6),) * count, tuple(tables), 300, True, (300,) * count)
    day = ArmDay("arm", "2026-01-01", *np.ones((4, count)), 300, 1.0, factor=factor)
    found = wrong_channels(day, x, np.full(count, 0.05), ("lift", "bend", "turn"), payload)
    assert {one.joints[0]: one.code for one in found} == bad
