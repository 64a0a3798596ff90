"""Input that is not as it should be: each thing is named in a sentence, and nothing else suffers."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.fleet import reduce
from armid.fleet.day import Store
from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from armid.fleet.partitions import find_partitions
from armid.fleet.reduce import reduce_partition
from armid.fleet.simulate import FAULTS, LOST_SHARE, Fault, simulate_fleet, virtual_fleet
from armid.logs import read_log, write_log
from armid.notes import note
from armid.robot.inertia import from_com
from tests.fleet.arms import arm_file, write_fleet


def logs_of(folder):
    return sorted((folder / "logs").rglob("*.parquet"))


def spoil(path, change):
    """Rewrite a log; `change(name, values)` gives the new values of each channel."""
    log = read_log(path)
    write_log(
        log.with_channels({name: change(name, np.array(v)) for name, v in log.channels.items()}, history={}), path
    )


def at_rest(name, values):
    return np.tile(values[0], (len(values), 1)) + 1e-4 * np.random.default_rng(0).normal(size=values.shape)


def lost(name, values):
    return np.where(np.arange(len(values))[:, None] > 100, np.nan, values)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (at_rest, "the arm does not move: no row of any joint is above slow_floor"),
        (lost, "misses 93% of its values"),
    ],
)
def test_a_day_without_motion_or_numbers_is_named(tmp_path, change, reason):
    """It is a problem of its own; the other days come out as if it were not there."""
    fleet = load_fleet(write_fleet(tmp_path, 2, 2))
    bad = logs_of(tmp_path)[1]
    spoil(bad, change)
    result = identify_fleet(fleet, tmp_path / "result")
    (problem,) = result.problems
    assert (problem.robot, problem.date, problem.file) == ("arm001", "2026-03-02", "log.parquet")
    assert reason in problem.reason
    shutil.rmtree(bad.parent)
    clean = identify_fleet(fleet, tmp_path / "clean")
    assert clean.good
    assert result.counts.used == clean.counts.used == 3
    for one, other in zip(result.arms, clean.arms, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.sigma, other.sigma)


def test_an_idle_file_of_a_day_costs_nothing(tmp_path):
    """Beside a file in motion, one at rest adds no row and is no problem."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    (path,) = logs_of(tmp_path)
    (partition,) = find_partitions(fleet)
    alone = reduce_partition(fleet, partition)
    shutil.copy(path, path.with_name("idle.parquet"))
    spoil(path.with_name("idle.parquet"), at_rest)
    (partition,) = find_partitions(fleet)
    both = reduce_partition(fleet, partition)
    assert both.problems == ()
    assert both.factor.counts == alone.factor.counts
    np.testing.assert_allclose(both.rms, alone.rms, rtol=1e-9)


def test_a_day_on_which_some_joints_move_counts(tmp_path):
    """Where one joint rests on most days, these days count, and its noise is that of the day on which it moves."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 3))
    usual = identify_fleet(fleet, tmp_path / "usual").arms[0]

    def rests(name, values):
        values[:, 3] = values[0, 3] if name == "position" else values[:, 3]
        return values

    for path in logs_of(tmp_path)[1:]:
        spoil(path, rests)
    result = identify_fleet(fleet, tmp_path / "result")
    assert result.good
    assert result.counts.used == 3
    (arm,) = result.arms
    assert np.all(np.isfinite(arm.values))
    assert np.all(np.array(arm.sigma) > 0.0)
    np.testing.assert_allclose(arm.noise, usual.noise, rtol=0.35)  # its median was next to nothing before


def test_what_cannot_be_solved_is_named(tmp_path, monkeypatch):
    """Should linear algebra fail on a day, the day is named, and the work goes on."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 2))
    right = reduce._residuals

    def fails_once(*arguments):
        monkeypatch.setattr(reduce, "_residuals", right)
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(reduce, "_residuals", fails_once)
    result = identify_fleet(fleet, tmp_path / "result")
    (problem,) = result.problems
    assert (problem.date, problem.file) == ("2026-03-01", "log.parquet")
    assert "SVD did not converge" in problem.reason
    assert result.counts.used == 1


def test_the_key_does_not_depend_on_places(tmp_path, monkeypatch):
    """Spelt relative or absolute, with a detour, or moved: the same keys, so that nothing is computed again."""
    file = write_fleet(tmp_path / "one", 1, 1)
    (tmp_path / "one" / "recipe.yaml").write_text(
        "joints: [turn, lift, bend, twist]\neffort: joint torque\nrate: 100\n"
        "columns: {time: time, position: 'position.{joint}', effort: 'effort.{joint}'}\n"
    )
    file.write_text("robot: arm.yaml\nlogs: logs\nrecipe: recipe.yaml\n")

    def keys(path):
        fleet = load_fleet(path)
        return [partition.key(fleet.key()) for partition in find_partitions(fleet)]

    expected = keys(file)
    monkeypatch.chdir(tmp_path / "one")
    assert keys("fleet.yaml") == expected
    assert keys("../one/fleet.yaml") == expected
    shutil.move(tmp_path / "one", tmp_path / "two")
    assert keys(tmp_path / "two" / "fleet.yaml") == expected
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two" / "sub").mkdir()
    (tmp_path / "two" / "sub" / "fleet.yaml").write_text("robot: ../arm.yaml\nlogs: ../logs\n")
    assert load_fleet("two/sub/fleet.yaml").robot.source == str(Path("two") / "arm.yaml")


def test_folders_without_logs_are_named(tmp_path):
    """An empty day, unknown endings, an arm without days, another name for days, logs too deep: one problem each."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    logs = tmp_path / "logs"
    for place in ("robot=arm001/date=2026-03-02", "robot=arm003"):
        (logs / place).mkdir(parents=True)
    for place in (
        *("robot=arm001/date=2026-03-03/a.bag", "robot=arm001/date=2026-03-03/b.csv.gz"),
        *("robot=arm002/day=1/log.parquet", "robot=arm001/date=2026-03-04/deep/log.parquet"),
    ):
        (logs / place).parent.mkdir(parents=True, exist_ok=True)
        (logs / place).write_bytes(b"")
    result = identify_fleet(fleet, tmp_path / "result")
    assert not result.good
    reasons = {(one.robot, one.date, one.file): one.reason for one in result.problems}
    assert len(reasons) == 5
    assert "it is empty" in reasons["arm001", "2026-03-02", "all"]
    assert "there are: .bag, .csv.gz" in reasons["arm001", "2026-03-03", "all"]
    assert "folders below" in reasons["arm001", "2026-03-04", "all"]
    assert "robot=arm002/date=YYYY-MM-DD" in reasons["arm002", "", "day=1"]
    assert "no folder date=" in reasons["arm003", "", "robot=arm003"]
    assert {arm.name: arm.state for arm in result.arms} == {
        "arm001": "good",
        "arm002": "no data",
        "arm003": "no data",
    }
    assert result.counts.arm_days == 4  # of arm001: folders that are of no day are no arm-days
    assert identify_fleet(fleet, tmp_path / "result").problems == result.problems
    memory = fsspec.filesystem("memory")  # an object store: folders are parts of names
    try:
        memory.pipe("/depot/robot=a/date=2026-03-01/log.parquet", logs_of(tmp_path)[0].read_bytes())
        memory.pipe("/depot/robot=a/day=2/log.bag", b"1")
        found = find_partitions(replace(fleet, logs="memory://depot"))
    finally:
        memory.rm("/depot", recursive=True)
    assert [(one.date, len(one.files), [problem.file for problem in one.problems]) for one in found] == [
        ("", 0, ["day=2"]),
        ("2026-03-01", 1, []),
    ]


@pytest.mark.parametrize("date", ["20260105", "2026-W02-2", "2026-1-5", "tomorrow"])
def test_dates_are_written_in_one_way(tmp_path, date):
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    shutil.copytree(logs_of(tmp_path)[0].parent, tmp_path / "logs" / "robot=arm001" / f"date={date}")
    with pytest.raises(ArmidError, match=f"date={date} is no date; name the folder date=YYYY-MM-DD"):
        find_partitions(fleet)


def test_files_are_read_in_the_order_of_their_numbers(tmp_path):
    """log_1 to log_12 that go on in one another are one recording, without leading zeros."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    (whole,) = find_partitions(fleet)
    expected = reduce_partition(fleet, whole)
    (path,) = logs_of(tmp_path)
    log = read_log(path)
    path.unlink()
    cuts = np.linspace(0, len(log), 13).astype(int)
    for number in range(12):
        write_log(log.rows(slice(cuts[number], cuts[number + 1])), path.with_name(f"log_{number + 1}.parquet"))
    (split,) = find_partitions(fleet)
    assert [Path(file.path).name for file in split.files] == [f"log_{k + 1}.parquet" for k in range(12)]
    assert reduce_partition(fleet, split).factor.counts == expected.factor.counts


def test_a_line_break_in_a_name_hides_no_log(tmp_path):
    """On many file systems any character may stand in a name."""
    file = write_fleet(tmp_path, 1, 1)
    (log,) = logs_of(tmp_path)
    log.rename(log.with_name("lo\ng.parquet"))
    (partition,) = find_partitions(load_fleet(file))
    assert [Path(one.path).name for one in partition.files] == ["lo\ng.parquet"]
    assert not partition.problems


def test_a_copy_within_a_day_is_left_out_and_told(tmp_path):
    """The file counts once, with the values of the day without the copy; the watch list names it."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 2))
    clean = identify_fleet(fleet, tmp_path / "clean")
    first = logs_of(tmp_path)[0]
    shutil.copy(first, first.with_name("zcopy.parquet"))
    result = identify_fleet(fleet, tmp_path / "result")
    assert result.good
    np.testing.assert_array_equal(result.arms[0].values, clean.arms[0].values)
    (entry,) = result.watch
    assert entry.kind == "data"
    assert "zcopy.parquet is a copy of log.parquet" in entry.sentence


@pytest.mark.parametrize(("arm", "left"), [("arm001", 4), ("arm002", 3)])
def test_a_copy_beside_other_files(tmp_path, arm, left):
    """A file of another day beside the day's own counts on both days; one of another arm spoils the day."""
    fleet = load_fleet(write_fleet(tmp_path, 2, 2))
    first, second = logs_of(tmp_path)[0], tmp_path / "logs" / f"robot={arm}" / "date=2026-03-02"
    shutil.copy(first, second / "zcopy.parquet")
    result = identify_fleet(fleet, tmp_path / "result")
    (problem,) = result.problems
    assert (problem.robot, problem.date, problem.file) == (arm, "2026-03-02", "zcopy.parquet")
    assert "is the same file as arm001 2026-03-01 log.parquet" in problem.reason
    assert result.counts.used == left


def test_one_arm_in_two_folders_is_refused(tmp_path):
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    for site in ("site=A", "site=B"):
        shutil.copytree(tmp_path / "logs" / "robot=arm001", tmp_path / "logs" / site / "robot=arm001")
    shutil.rmtree(tmp_path / "logs" / "robot=arm001")
    with pytest.raises(ArmidError, match="site=A/robot=arm001 and site=B/robot=arm001 are two folders of one arm"):
        find_partitions(fleet)


def test_damaged_factors_are_computed_again(tmp_path):
    """Bytes that have changed in the middle of a file are seen by its check sums."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 2))
    result = identify_fleet(fleet, tmp_path / "result")
    for path in (tmp_path / "result" / "factors").glob("*.npz"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2 : len(data) // 2 + 40] = bytes(255 - byte for byte in data[len(data) // 2 :][:40])
        path.write_bytes(data)
        assert not Store(path.parent).has(path.stem)
        with pytest.raises(ArmidError, match="damaged"):
            Store(path.parent).get(path.stem)
    again = identify_fleet(fleet, tmp_path / "result")
    assert again.counts.kept == 0
    np.testing.assert_array_equal(again.arms[0].values, result.arms[0].values)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("signals: 5", "signals: must be"),
        ("signals: [LowPass, 5]", "signals[2]: must be"),
        ("signals: {step: LowPass, cutoff_hz: -5}", "signals: LowPass: cutoff_hz is -5; it must be above zero"),
        ("signals: {step: LowPass, cutoff_hz: .nan}", "signals: LowPass: cutoff_hz"),
        ("signals: {step: LowPass, motion_cutoff_hz: 0}", "signals: LowPass: motion_cutoff_hz is 0"),
        ("signals: {step: LowPass, order: -2}", "signals: low-pass: order is -2; use a whole number"),
        ("signals: {step: LowPass, decimate: 0}", "signals: LowPass: decimate is 0; use a whole number"),
        ("effort: 7", "effort: must be text"),
        ("effort: bananas", "effort: is 'bananas'; valid: joint torque"),
        ("friction: 7", "friction: must be text"),
        ("friction: nowhere.json", "friction: nowhere.json: there is no such file"),
        ("recipe: 12", "recipe: must be text"),
        ("recipe: nowhere.yaml", "recipe: nowhere.yaml"),
        ("slow_floor: .inf", "slow_floor: "),
        ("slow_floor: .nan", "slow_floor: "),
        ("slow_floor: 100", "slow_floor: is 100; give a speed above zero and up to 1 rad/s"),
        ("slow_floor: true", "slow_floor: "),
        ("robot_options: {rotors: maybe}", "robot_options.rotors: must be true or false"),
        ("robot_options: {links: 2.5}", "robot_options.links: must be a whole number"),
        ("robot_options: {links: 9}", "links"),
        ("robot_options: {links: 0}", "robot_options.links: is 0"),
        ("robot_options: {gravity: [0, 0]}", "robot_options.gravity: "),
        ("robot_options: {gravity: [0, 0, 0]}", "robot_options.gravity: has zero length"),
        ("robot_options: {simplify: 3}", "robot_options.simplify: must be text"),
        ("robot_options: {simplify: most}", "robot: simplification of"),
        ("robot_options: {feet: 2}", "robot_options.feet: is not a known"),
    ],
)
def test_wrong_entries_of_the_fleet_file(tmp_path, line, message):
    """One sentence with the fleet file and the key."""
    arm_file(tmp_path)
    path = tmp_path / "fleet.yaml"
    path.write_text(f"robot: arm.yaml\nlogs: logs\n{line}\n")
    with pytest.raises(ArmidError) as error:
        load_fleet(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_another_mounting_is_said_with_plain_numbers(tmp_path):
    """Logs of arms on the ceiling for a robot on the floor: the reason names the entry that mends it, which does."""
    robot = armid.load_robot(arm_file(tmp_path), gravity=[0.0, 0.0, 9.81])
    simulate_fleet(virtual_fleet(robot, robots=1, days=1), tmp_path)
    with pytest.raises(ArmidError) as error:
        identify_fleet(load_fleet(tmp_path / "fleet.yaml"), tmp_path / "result")
    assert "was recorded with gravity [0, 0, 9.81] m/s^2" in str(error.value)
    assert "robot_options: {gravity: [0, 0, 9.81]}" in str(error.value)
    with (tmp_path / "fleet.yaml").open("a") as file:
        file.write("robot_options: {gravity: [0, 0, 9.81]}\n")
    assert identify_fleet(load_fleet(tmp_path / "fleet.yaml"), tmp_path / "result").good


def test_options_of_the_robot_reach_the_fleet_file(tmp_path):
    """The robot of a simulated fleet is the one that its fleet file describes."""
    options = {"links": 3, "rotors": False, "gravity": [0.0, 0.0, 9.81], "simplify": "none"}
    robot = armid.load_robot(arm_file(tmp_path), **options)
    fleet = virtual_fleet(robot, robots=1, days=1, robot_options=options)
    read = load_fleet(simulate_fleet(fleet, tmp_path / "hall"))
    assert read.robot.joint_names == robot.joint_names
    np.testing.assert_array_equal(read.robot.gravity, robot.gravity)
    assert replace(read, robot=robot).key() == read.key()
    assert identify_fleet(read, tmp_path / "result").good


@pytest.fixture
def arm(tmp_path):
    return armid.load_robot(arm_file(tmp_path))


def test_a_fleet_grows_by_days(arm, tmp_path):
    """More days of the same seed: arms, weather, faults and earlier logs stay; other options are refused."""
    short = virtual_fleet(arm, robots=4, days=12, faults=3, poor=0.25, seed=5)
    long = virtual_fleet(arm, robots=4, days=40, faults=3, poor=0.25, seed=5)
    assert (long.faults, long.poor) == (short.faults, short.poor)
    np.testing.assert_array_equal(long.temperature[:12], short.temperature)
    assert len({round(t, 9) for t in long.temperature}) == 40
    home = tmp_path / "hall"
    two, three = (virtual_fleet(arm, robots=1, days=days, seed=5) for days in (2, 3))
    simulate_fleet(two, home, points=2)
    stamps = {path: path.stat().st_mtime_ns for path in home.rglob("log.parquet")}
    simulate_fleet(three, home, points=2)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())
    assert len(list(home.rglob("log.parquet"))) == len(json.loads((home / "truth.json").read_text())["dates"]) == 3
    for other, points in ((two, 2), (three, 3), (virtual_fleet(arm, robots=1, days=3, seed=6), 2)):
        with pytest.raises(ArmidError, match="was made with other options; choose another folder or remove it"):
            simulate_fleet(other, home, points=points)
    (home / "truth.json").unlink()
    with pytest.raises(ArmidError, match=r"holds logs, but no truth\.json"):
        simulate_fleet(three, home, points=2)


def test_a_payload_that_nobody_told_of_comes_on_top_of_what_the_arm_carries():
    robot = armid.load_robot("kr15")
    fleet = virtual_fleet(robot, robots=1, days=2, faults=[Fault("payload", 0, 1, 0)])
    before, after = (fleet.truth(0, day).payload for day in range(2))
    mass = LOST_SHARE * float(fleet.arms[0].inertia[:, 0].sum())
    assert after - before == pytest.approx(from_com(mass, [0.0, 0.0, 0.05], 1e-3 * mass * np.eye(3)))
    assert before == pytest.approx(fleet.arms[0].payload)


def test_faults_have_an_effect(arm):
    """Friction rises only where there is some; kinds without effect are left out and that is said."""
    truth = arm.virtual
    one = tuple({**c, "fv": 0.0} if joint != 2 else dict(c) for joint, c in enumerate(truth.coefficients))
    fleet = virtual_fleet(replace(arm, virtual=replace(truth, coefficients=one)), robots=9, days=8, faults=9, seed=1)
    assert {fault.joint for fault in fleet.faults if fault.kind == "friction"} == {2}
    assert {fault.kind for fault in fleet.faults} == set(FAULTS)
    assert all(0 < fault.day < 8 for fault in fleet.faults)
    none = tuple({**c, "fv": 0.0} for c in truth.coefficients)
    fleet = virtual_fleet(replace(arm, virtual=replace(truth, coefficients=none)), robots=9, days=8, faults=9, seed=1)
    assert {fault.kind for fault in fleet.faults} == set(FAULTS) - {"friction"}
    assert fleet.notes == (note("fleet.no-effect", kind="friction"),)
    assert str(fleet.notes[0]) == "no friction faults are planted: they would have no effect"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"robots": 1, "days": 1, "faults": 1}, "at least 2 days"),
        ({"robots": 1, "days": 3, "faults": (Fault("sign", 0, 3, 0),)}, "at least"),
        ({"robots": 1, "days": 1, "seed": -1}, "seed is -1"),
        ({"robots": 1, "days": 100_000_000}, "at most 10000 days"),
        ({"robots": 10_000_000, "days": 1}, "1000000 recordings"),
    ],
)
def test_fleets_that_cannot_be(arm, options, message):
    with pytest.raises(ArmidError, match=message):
        virtual_fleet(arm, **options)


def test_recordings_that_are_too_short(tmp_path):
    """Days with fewer rows than parameters fit whatever they are: the fleet is refused in a sentence."""
    fleet = virtual_fleet(armid.load_robot("ir361"), robots=3, days=1, seed=0)
    file = simulate_fleet(fleet, tmp_path / "hall", points=2, rate_hz=100.0)
    with pytest.raises(ArmidError, match=r"too short: \d+ rows a day are needed for joint\d .* give longer recordings"):
        identify_fleet(load_fleet(file), tmp_path / "result")
