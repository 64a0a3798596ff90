"""`armid observe`: contacts in logs of a real arm and of virtual ones, and what is said about them."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armid
from armid.cli import main
from armid.dynamics.kinematics import link_frames
from armid.logs import read_log
from armid.logs.public import public_log
from armid.monitoring.observation import contact_force
from tests.monitoring import stand

ONSETS = [4.86, 7.01, 11.17, 13.71, 16.12, 19.84, 24.47, 28.31, 38.95, 47.26, 54.08]  # [s], by eye, +- 0.04
QUIET = ["ur-20_01_17-ptp_10_points", *(f"ur-20_01_22-joint_{k}" for k in range(1, 7))]
QUIET += ["ur-20_02_10-30sec_12harm", "ur-20_02_12-50sec_12harm", "collision/collision_free"]


@cache
def real(data):
    """Fit of the UR10e by defaults, log with contacts, contact-free logs."""
    robot = armid.load_robot(public_log("ur10e").robot_path(data))
    train = read_log(data / "ur10e" / "ur-20_02_10-30sec_12harm.csv", "ur10e")
    fit = armid.identify(robot, armid.process(train, robot=robot))
    logs = [
        read_log(data / "ur10e" / f"{name}.csv", "ur10e-collision") for name in (*QUIET, "collision/collision_3link")
    ]
    return fit, logs[-1], logs[:-1]


def test_contacts_of_the_ur10e(data):
    """At least 10 of 11 pushes, median delay at most 80 ms, at most one false alarm, each log left out for itself."""
    fit, pushed, quiet = real(data)
    found = armid.observe(fit, [pushed], quiet=quiet, false_alarms=10.0)
    times = np.array([alarm.time for alarm in found.alarms]) - pushed.time[0]
    delays = [min((t - onset for t in times if -0.05 < t - onset < 0.5), default=np.nan) for onset in ONSETS]
    assert np.isfinite(delays).sum() >= 10
    assert np.nanmedian(delays) <= 0.08
    assert len(times) <= 11
    assert sum(found.limits.left_out.values()) <= 1
    assert found.limits.extrapolated
    assert not beyond(found)


def test_a_log_of_the_calibration_is_left_out_for_itself():
    """A log with contacts that is also given as contact-free does not raise its own limits."""
    fit = stand.fitted("er16")
    strong = 3.0 * stand._scale("er16")
    pushes = [stand.Push(10.0 + k, 0.3, 3, strong) for k in range(0, 30, 3)]
    quiet = [stand.recording("er16", 60.0, k) for k in range(3)]
    bad = stand.recording("er16", 60.0, 9, pushes)
    alone = armid.observe(fit, [bad], quiet=quiet)
    both = armid.observe(fit, [bad], quiet=[*quiet, bad])
    assert [a.time for a in both.alarms] == [a.time for a in alone.alarms]
    assert all(any(a.time < p.start + 0.1 and a.until > p.start for a in alone.alarms) for p in pushes)
    assert np.all(both.limits.scale > alone.limits.scale)
    assert "no safety function" in alone.summary()
    assert alone.plot() is not None


def faster(log, times):
    """The same motion in less time: accelerations are larger by the square; torque as it was, which does not matter."""
    return replace(log, time=log.time / times).with_channels({"velocity": times * log["velocity"]}, rate_hz=None)


def beyond(found):
    """Whether the note is there that logs accelerate beyond the calibration; the rate is marked if it is."""
    noted = any(one.code == "monitoring.beyond" for one in found.notes)
    assert found.to_data()["rate_extrapolated"] == (noted or found.limits.extrapolated)
    return noted


def kinds(name, first, count, groups):
    """Shares of groups of recordings whose next one is said to be beyond them: as it is, at two and at three times."""
    fit, told = stand.fitted(name), []
    for group in range(groups):
        logs = [stand.recording(name, 60.0, first + group * (count + 1) + k) for k in range(count + 1)]
        hard = [logs[-1], faster(logs[-1], 2.0), faster(logs[-1], 3.0)]
        told.append([beyond(armid.observe(fit, [log], quiet=logs[:-1], false_alarms=1000.0)) for log in hard])
    return np.mean(told, axis=0)


def test_motion_beyond_the_calibration_is_extrapolated():
    """A log that accelerates nine times as hard as a calibration that is long enough is marked, also among others."""
    fit = stand.fitted("er16")
    quiet = [stand.recording("er16", 60.0, k) for k in range(6)]
    log = stand.recording("er16", 60.0, 9)
    found = armid.observe(fit, [*quiet, faster(log, 3.0)], quiet=quiet, false_alarms=1000.0)
    assert not found.limits.extrapolated
    assert beyond(found)
    assert "accelerate beyond" in found.summary()


def test_recordings_of_one_kind_are_not_beyond_each_other():
    """Six recordings, each left out for itself, and two others: no note, and hardly a sample counts as a hard stop."""
    fit = stand.fitted("er16")
    logs = [stand.recording("er16", 60.0, k) for k in range(8)]
    found = armid.observe(fit, logs, quiet=logs[:6], false_alarms=1000.0)
    assert not beyond(found)
    assert max(state["stop"] for state in found.states().values()) < 0.01


@pytest.mark.prove
@pytest.mark.parametrize("name", ["er16", "random221", "random223"])
def test_what_is_beyond_on_fresh_arms(name):
    """Nine times as hard is always said to be beyond, four times of six recordings; of one kind hardly any.

    One of N + 1 recordings of one kind is the hardest, with a chance of 1 / (N + 1) the last one: no more are marked.
    """
    for count, groups in ((3, 20), (6, 12), (12, 6)):
        same, four, nine = kinds(name, 2000, count, groups)
        print(name, count, same, four, nine)
        assert same * groups <= 1 + groups / (count + 1)
        assert nine == 1.0
        assert four >= (0.8 if count == 3 else 1.0)


@pytest.mark.prove
@pytest.mark.parametrize("times", [2.0, 3.0])
def test_what_is_beyond_on_the_ur10e(data, times):
    """No contact-free log of the real arm is beyond the others; each motion of all joints, driven faster, is."""
    fit, pushed, quiet = real(data)
    found = armid.observe(fit, [*quiet, pushed], quiet=quiet)
    assert not beyond(found)
    for log in (quiet[0], *quiet[7:]):
        assert beyond(armid.observe(fit, [faster(log, times)], quiet=[one for one in quiet if one is not log]))


def test_the_force_behind_a_contact():
    """A force at the tool of a six-joint arm is found from its torque; with three joints below, none is claimed."""
    robot = stand.truth("powerball")[0]
    q, force = np.array([0.3, 0.5, -0.8, 0.4, 0.9, 0.2]), np.array([10.0, -20.0, 30.0])
    torque = armid.jacobian(robot, q[None])[0, :3].T @ force
    found = contact_force(robot, q, torque, np.ones(6), 6)
    assert np.allclose(found.newton, force)
    assert found.explained == pytest.approx(1.0)
    assert np.allclose(found.point, armid.tool_frame(robot, q[None])[0, :3, 3])
    assert not found.moment.any()
    assert contact_force(robot, q, torque, np.ones(6), 3) is None


def test_the_wrench_behind_a_contact():
    """A force beside the tool is a wrench at the tool; its line of action passes where it was; noisy, nearly so."""
    robot = stand.truth("powerball")[0]
    q, force = np.array([0.3, 0.5, -0.8, 0.4, 0.9, 0.2]), np.array([10.0, -20.0, 30.0])
    place = robot.tool[:3, 3] + [0.15, -0.1, 0.05]
    torque = armid.jacobian(robot, q[None], 6, place)[0, :3].T @ force
    found = contact_force(robot, q, torque, np.ones(6), 6)
    assert np.allclose(found.newton, force)
    assert found.explained == pytest.approx(1.0)
    frame = link_frames(robot, q[None])[0, 5]
    lever = frame[:3, :3] @ place + frame[:3, 3] - found.point
    assert np.allclose(found.moment, np.cross(lever, force))
    assert contact_force(robot, q, torque, np.ones(6), 5).explained < 0.99
    straight = np.array([0.3, 0.5, -0.8, 0.4, 0.0, 0.2])  # two axes of the wrist are one: no joint feels a moment there
    torque_there = armid.jacobian(robot, straight[None], 6, place)[0, :3].T @ force
    assert not contact_force(robot, straight, torque_there, np.ones(6), 6).moment.any()
    noisy = torque + 0.01 * np.abs(torque).max() * np.random.default_rng(0).normal(size=6)
    assert np.linalg.norm(contact_force(robot, q, noisy, np.ones(6), 6).newton - force) < 0.2 * np.linalg.norm(force)


def lagging(name, folder, capsys):
    """An arm whose friction changes sides 60 ms late, identified and observed from files; sensitivity without and with.

    Every push of a quarter of the joints' torque is found, with at most three alarms beside.
    """
    lag, pushes = 0.06, [stand.Push(10.0 + 3 * k, 0.2, 2, 0.25 * stand._scale(name)) for k in range(15)]
    fit = stand.fitted(name, lag)
    assert np.all((fit.friction_lag_s > 0.5 * lag) & (fit.friction_lag_s < 1.5 * lag))
    logs = {f"quiet{k}": stand.recording(name, 60.0, k, lag_s=lag) for k in range(4)}
    logs["pushed"] = stand.recording(name, 60.0, 9, pushes, lag_s=lag)
    for key, log in logs.items():
        armid.write_log(log, folder / f"{key}.csv")
    sensitivity = {}
    for key, one in (("with", fit), ("without", replace(fit, friction_lag_s=None))):
        one.save(folder / f"{key}.json")
        quiet = [str(folder / f"quiet{k}.csv") for k in range(4)]
        words = ["observe", str(folder / f"{key}.json"), str(folder / "pushed.csv"), "--calibrate", *quiet]
        assert main([*words, "--false-alarms", "30/h", "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        sensitivity[key] = np.array([row["sensitivity_100ms"] for row in data["limits"].values()])
        spans = [(alarm["time"], alarm["until"]) for alarm in data["alarms"]]
        if key == "with":
            assert all(any(t < push.start + 0.3 and u > push.start for t, u in spans) for push in pushes)
            assert len(spans) <= len(pushes) + 3
    return sensitivity["without"], sensitivity["with"]


def test_friction_that_changes_sides_late(tmp_path, capsys):
    """A fit that knows the lag finds lighter contacts on each joint than the same without it."""
    without, known = lagging("er16", tmp_path, capsys)
    assert np.all(known < without)


@pytest.mark.prove
def test_friction_that_changes_sides_late_on_a_fresh_arm(tmp_path, capsys):
    """A random arm of six joints that nothing was tuned on: half as large."""
    without, known = lagging("random217", tmp_path, capsys)
    assert np.all(known < 0.5 * without)


def test_command(tmp_path, capsys):
    """Keys of the JSON, files that are written, words for people, and a rate that is none."""
    fit = stand.fitted("er16")
    fit.save(tmp_path / "fit.json")
    push = stand.Push(20.0, 0.3, 3, 3.0 * stand._scale("er16"))
    for k in range(3):
        armid.write_log(stand.recording("er16", 40.0, k), tmp_path / f"quiet{k}.csv")
    armid.write_log(stand.recording("er16", 40.0, 7, [push]), tmp_path / "pushed.csv")
    names = [str(tmp_path / name) for name in ("fit.json", "pushed.csv", "quiet0.csv", "quiet1.csv", "quiet2.csv")]
    words = ["observe", *names[:2], "--calibrate", *names[2:], "--false-alarms", "30/h"]
    files = {"-o": "limits.json", "--torque": "torque.csv", "--pictures": "pictures"}
    assert (
        main([*words, "--json", *(str(tmp_path / w) if w in files.values() else w for p in files.items() for w in p)])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    (alarm,) = [alarm for alarm in data["alarms"] if alarm["time"] < 20.1 and alarm["until"] > 20.0]
    assert {"time", "joints", "highest_link"} <= set(alarm)
    assert alarm["highest_link"] == 3
    assert data["rate_stated"] == 30.0
    assert data["rate_extrapolated"] is True
    assert alarm["log"] == names[1]
    assert set(data["calibration"]["alarms_left_out"]) == set(names[2:])
    assert set(data["limits"]) == set(fit.robot.joint_names)
    assert len(data["files"]) == 3
    assert (tmp_path / "torque.csv").read_text().startswith("time,torque.")
    assert main(words) == 0
    assert "no safety function" in capsys.readouterr().out
    assert main([*words[:-1], "often"]) == 2
    assert "10/h" in capsys.readouterr().err


def test_errors_name_the_file_that_was_given(tmp_path, capsys):
    """Not the arm or controller that it was recorded from, which all its logs have in common."""
    stand.fitted("er16").save(tmp_path / "fit.json")
    fit, good, silent = (str(tmp_path / name) for name in ("fit.json", "good.csv", "silent.parquet"))
    log = stand.recording("er16", 40.0, 1).with_channels({}, source="virtual er16")
    armid.write_log(log, good)
    armid.write_log(log.with_channels({"effort": None}, effort="none"), silent)
    for words in (
        ["observe", fit, good, "--calibrate", silent],
        ["observe", fit, silent, "--calibrate", good],
        ["update", fit, silent],
        ["identify", "er16", silent],
        ["payload", fit, silent],
    ):
        assert main(words) == 2
        message = capsys.readouterr().err
        assert silent in message
        assert "virtual er16" not in message


def test_recordings_of_one_name_are_told_apart_by_what_they_hold():
    """Logs of one controller share their source: none is dropped, and each is left out for itself."""
    fit = stand.fitted("er16")
    logs = [stand.recording("er16", 40.0, seed) for seed in (1, 2, 3)]
    logs = [log.with_channels({}, source="one name") for log in logs]
    found = armid.observe(fit, logs[:1], quiet=logs)
    assert found.limits.hours == pytest.approx(sum(log.time[-1] - log.time[0] for log in logs) / 3600.0, rel=0.01)
    assert len(found.limits.left_out) == 3
    assert found.parts[0].limits.hours < 0.7 * found.limits.hours


def test_recordings_of_currents():
    """As a controller sends them: torque is made by the gains, for the log and for the calibration alike."""
    fit, gains = stand.fitted("er16"), np.array([20.0, 15.0, 10.0])
    fit = replace(fit, robot=replace(fit.robot, current_gain=tuple((0.0, gain) for gain in gains)))

    def sent(seed, pushes=()):
        log = stand.recording("er16", 40.0, seed, pushes)
        return log.with_channels({"effort": None, "current": log["effort"] / gains}, effort="current")

    push = stand.Push(20.0, 0.2, 2, 200.0 * np.ones(3))
    quiet = [sent(seed) for seed in (1, 2, 3)]
    found = armid.observe(fit, [sent(4, [push]), quiet[0]], quiet=quiet, false_alarms=30.0)
    assert [alarm.time for alarm in found.alarms if alarm.time < 19.9 or alarm.time > 21.5] == []
    assert any(20.0 <= alarm.time < 20.3 for alarm in found.alarms)
