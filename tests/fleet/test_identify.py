"""A fleet from logs to the watch list: the same from any number of workers, nothing done twice, bad data named."""

import json
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

from armid.errors import ArmidError, MissingExtraError
from armid.estimation.fit import load_fit
from armid.fleet import engine as engine_module
from armid.fleet.description import load_fleet
from armid.fleet.identify import identify_fleet
from armid.fleet.result import FleetResult
from armid.fleet.simulate import Fault, simulate_fleet, virtual_fleet
from armid.logs import read_log, write_log
from armid.progress import watch_progress
from tests.fleet.arms import arm_file, base_values, known_type, log_of, true_parameters, write_fleet

ARMS, DAYS = 8, 5
FAULTS = (Fault("friction", 0, 1, 2), Fault("payload", 1, 2, 0), Fault("sign", 2, 2, 1), Fault("dead", 3, 3, 3))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A virtual fleet with one fault of each kind, and its result."""
    import armid

    folder = tmp_path_factory.mktemp("fleet")
    robot = armid.load_robot(arm_file(folder))
    fleet = virtual_fleet(robot, robots=ARMS, days=DAYS, faults=FAULTS, seed=3)
    file = simulate_fleet(fleet, folder)
    file.write_text(f"{file.read_text()}friction: {known_type()}\n")
    result = identify_fleet(load_fleet(file), folder / "result")
    return folder, fleet, result


def test_planted_faults_are_found_dated_and_explained(home):
    """Each fault is in the list with its arm, joint and first day, in words; no other arm is."""
    _, fleet, result = home
    found = {one.robot: one for one in result.watch}
    assert sorted(found) == [fleet.names[fault.arm] for fault in FAULTS]
    for fault in FAULTS:
        one = found[fleet.names[fault.arm]]
        assert one.kind == fault.kind
        assert one.since == fleet.dates[fault.day]
        assert fault.kind == "payload" or one.joint == fault.joint + 1
    assert found["arm001"].parameter == "fv3"
    assert found["arm001"].size == pytest.approx(0.08, rel=0.35)
    assert (found["arm001"].code, found["arm001"].unit) == ("ramp", "1")
    assert "viscous friction of joint 3 rises by" in found["arm001"].sentence
    mass = 0.04 * fleet.arms[1].inertia[:, 0].sum()
    assert found["arm002"].size == pytest.approx(mass, rel=0.25)
    assert "carries about 0." in found["arm002"].sentence
    assert found["arm003"].sentence == f"torque of joint 2 has the wrong sign since {fleet.dates[2]}"
    assert found["arm004"].sentence == f"torque of joint 4 is dead since {fleet.dates[3]}"
    assert not result.good  # dead and reversed days were not used


def test_the_result_is_a_file_and_fits_are_fits(home):
    """fleet.json holds what the docstring says; each arm's fit loads, is near the truth and predicts."""
    folder, fleet, result = home
    again = FleetResult.load(folder / "result" / "fleet.json")
    assert again.to_data() == json.loads(json.dumps(result.to_data()))
    assert len(again.arms) == ARMS
    assert len(again.parameters) == len(again.arms[0].values) == len(again.arms[0].sigma)
    series = again.arms[4].series
    assert series.days == tuple(range(DAYS))
    assert len(series.deviation["fv1"]) == DAYS
    fit = load_fit(folder / "result" / again.arms[4].fit)
    truth = base_values(fleet.robot, fleet.truth(4, 0))
    assert np.mean(np.abs(fit.values - truth) < 4.0 * fit.sigma) > 0.9
    assert fit.standard_parameters is not None
    assert fit.factor.samples > 0


def test_nothing_is_done_twice(home, monkeypatch):
    """A second run keeps every arm-day and fit, bit by bit, and says the same, with memory for a few arm-days alone."""
    folder, _, result = home
    monkeypatch.setattr("armid.fleet.day.HELD", 200_000)
    before = {
        path: path.stat().st_mtime_ns
        for path in (folder / "result").rglob("*")
        if path.suffix not in (".html", ".json") or path.name == "fit.json"
    }
    told = []
    with watch_progress(lambda *what: told.append(what)):
        again = identify_fleet(load_fleet(folder / "fleet.yaml"), folder / "result")
    assert not [text for text, _ in told if text.startswith(("reading logs", "estimating arms"))]
    assert again.counts.kept == ARMS * DAYS
    after = {
        path: path.stat().st_mtime_ns
        for path in (folder / "result").rglob("*")
        if path.suffix not in (".html", ".json") or path.name == "fit.json"
    }
    folders = {path for path in before if path.is_dir()}
    assert {p: t for p, t in after.items() if p not in folders} == {p: t for p, t in before.items() if p not in folders}
    assert again.watch == result.watch


def test_a_damaged_fit_is_made_again(home):
    """Whatever became of its file, after a run it is the arm's fit."""
    folder, _, _ = home
    file = folder / "result" / "robots" / "arm005" / "fit.json"
    written = file.read_bytes()
    file.write_text(written.decode().replace("1", "2", 1))
    identify_fleet(load_fleet(folder / "fleet.yaml"), folder / "result")
    assert file.read_bytes() == written


def numbers(result):
    return {arm.name: arm.values for arm in result.arms if arm.values is not None}


def test_workers_change_nothing(home, tmp_path):
    """A worker process gives the numbers of a single process."""
    same_from_workers(home[0], (6,), tmp_path, 1, f"friction: {known_type()}\n")


@pytest.mark.prove
def test_workers_change_nothing_where_friction_is_learnt(home, tmp_path):
    """The same of three arms, with the type of arm learnt from the logs."""
    same_from_workers(home[0], (4, 5, 6), tmp_path, 2, "")


def same_from_workers(folder, arms, tmp_path, workers, friction):
    small = tmp_path / "fleet.yaml"
    for number in arms:
        source = folder / "logs" / f"robot=arm{number:03d}"
        shutil.copytree(source, tmp_path / "logs" / source.name)
    arm_file(tmp_path)
    small.write_text(f"robot: arm.yaml\nlogs: logs\n{friction}")
    alone = identify_fleet(load_fleet(small), tmp_path / "alone")
    two = identify_fleet(load_fleet(small), tmp_path / "two", workers=workers)
    assert two.watch == alone.watch
    for name, values in numbers(alone).items():
        np.testing.assert_allclose(numbers(two)[name], values, rtol=1e-10)
        one, other = (load_fit(tmp_path / where / "robots" / name / "fit.json") for where in ("alone", "two"))
        np.testing.assert_allclose(other.values, one.values, rtol=1e-10, atol=1e-10 * np.abs(one.values).max())
        np.testing.assert_allclose(other.sigma, one.sigma, rtol=1e-10)


def test_order_and_grouping_of_days_change_nothing(home):
    """Factors added in any order and grouping give the same values to 1e-10."""
    from armid.estimation.linear import solve
    from armid.fleet.day import Store

    folder, _, _ = home
    store = Store(folder / "result" / "factors")
    days = [store.get(path.stem) for path in store.folder.glob("*.npz")]
    own = [day.factor for day in sorted(days, key=lambda day: day.date) if day.robot == "arm005"]
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    expected = solve(own[0] + own[1] + own[2] + own[3] + own[4], weights).values
    size = np.abs(expected).max()
    for total in (own[4] + own[2] + own[0] + own[1] + own[3], (own[3] + own[1]) + (own[0] + (own[4] + own[2]))):
        np.testing.assert_allclose(solve(total, weights).values, expected, rtol=1e-10, atol=1e-10 * size)


def test_bad_partitions_do_not_harm_the_rest(tmp_path):
    """One corrupt, one empty, one of another type among eight: named with reasons; the other five as without them."""
    spoilt_among(tmp_path, 4, 2)


@pytest.mark.prove
def test_bad_partitions_among_two_hundred(tmp_path):
    """The same among 200."""
    spoilt_among(tmp_path, 20, 10)


def spoilt_among(folder, arms, days):
    fleet = load_fleet(write_fleet(folder, arms, days))
    logs = sorted((folder / "logs").rglob("*.parquet"))
    bad = logs[1], logs[days + 2], logs[3 * days]
    bad[0].write_bytes(bad[0].read_bytes()[:1000])
    bad[1].write_bytes(b"")
    write_log(log_of(fleet.robot, true_parameters(fleet.robot.virtual), name="another"), bad[2])
    result = identify_fleet(fleet, folder / "result")
    assert not result.good
    named = [(one.robot, one.date) for one in result.problems]
    assert named == [tuple(part.partition("=")[2] for part in path.parts[-3:-1]) for path in bad]
    assert "'another'" in result.problems[2].reason
    assert all(one.reason for one in result.problems)
    for path in bad:
        shutil.rmtree(path.parent)
    clean = identify_fleet(fleet, folder / "clean")
    assert clean.good
    assert clean.counts.used == result.counts.used == arms * days - 3
    for name, values in numbers(clean).items():
        np.testing.assert_allclose(numbers(result)[name], values, rtol=1e-9, atol=1e-12)


def test_a_recording_that_is_there_twice_counts_once(tmp_path):
    """A copied file under another day is named, not counted."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 2))
    first, second = sorted((tmp_path / "logs").rglob("*.parquet"))
    shutil.copy(first, second)
    result = identify_fleet(fleet, tmp_path / "result")
    (problem,) = result.problems
    assert "is the same file as arm001 2026-03-01" in problem.reason
    assert result.counts.used == 1


def test_a_new_day_costs_only_itself(tmp_path):
    """Tomorrow's run reads only tomorrow's log, and ends as if all had been read at once."""
    incremental(tmp_path, days=3, seconds=15.0)


@pytest.mark.prove
def test_a_new_day_in_thirty_is_fifteen_times_cheaper(tmp_path):
    """One new day in 30: at least 15 times less work than from scratch, with ten minutes of data a day."""
    from_scratch, daily = incremental(tmp_path, days=30, seconds=600.0)
    assert from_scratch > 15.0 * daily


def incremental(folder, days, seconds):
    """Seconds of work from scratch, and for one day more."""
    fleet = load_fleet(write_fleet(folder, 2, days, seconds=seconds, rate_hz=200.0))
    began = time.process_time()
    whole = identify_fleet(fleet, folder / "whole")
    from_scratch = time.process_time() - began
    last = [folder / "logs" / f"robot=arm00{arm}" / f"date=2026-03-{days:02d}" for arm in (1, 2)]
    for path in last:
        shutil.move(path, folder / f"{path.parent.name} {path.name}")
    identify_fleet(fleet, folder / "daily")
    for path in last:
        shutil.move(folder / f"{path.parent.name} {path.name}", path)
    began = time.process_time()
    daily = identify_fleet(fleet, folder / "daily")
    spent = time.process_time() - began
    assert daily.counts.kept == 2 * (days - 1)
    for name, values in numbers(whole).items():
        np.testing.assert_allclose(numbers(daily)[name], values, rtol=1e-10)
    return from_scratch, spent


def test_a_changed_option_is_another_factor(home):
    """Another filter makes another key; another folder of results does not."""
    folder, _, _ = home
    fleet = load_fleet(folder / "fleet.yaml")
    from armid.signals.filtering import LowPass
    from armid.signals.pipeline import Pipeline

    assert replace(fleet, pipeline=Pipeline((LowPass(cutoff_hz=6.0),))).key() != fleet.key()
    assert replace(fleet, slow_floor=0.05).key() != fleet.key()
    assert load_fleet(folder / "fleet.yaml").key() == fleet.key()


def test_trouble_is_found_before_the_work(home, tmp_path, monkeypatch):
    """An output that cannot be written, a scheduler that is not there, Dask that is not installed."""
    folder, _, _ = home
    fleet = load_fleet(folder / "fleet.yaml")
    (tmp_path / "file").write_text("")
    with pytest.raises(ArmidError, match="cannot be written"):
        identify_fleet(fleet, tmp_path / "file" / "result")
    monkeypatch.setattr(engine_module, "CONNECT_S", 0.5)
    with pytest.raises(ArmidError, match=r"--scheduler tcp://127.0.0.1:9: cannot be reached"):
        identify_fleet(fleet, tmp_path / "result", scheduler="tcp://127.0.0.1:9")
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"armid\[fleet\]"):
        identify_fleet(fleet, tmp_path / "result", workers=1)


def test_only_recordings_of_another_arm_are_an_error(tmp_path):
    """If nothing can be used, the first reason is reported, and nothing is left behind."""
    fleet = load_fleet(write_fleet(tmp_path, 1, 1))
    path = next((tmp_path / "logs").rglob("*.parquet"))
    log = read_log(path)
    write_log(type(log)(log.time, log.channels, replace(log.info, robot="another")), path)
    with pytest.raises(ArmidError, match=r"fleet.yaml: no recording.*arm001 2026-\S+, log.parquet: .*'another'"):
        identify_fleet(fleet, tmp_path / "result")
    assert not (tmp_path / "result").exists()
