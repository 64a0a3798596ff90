"""Spikes, missing values and time stamps out of order."""

import numpy as np
import pytest

from armid.logs import Log, LogError
from armid.signals import Hampel, Repair, process
from armid.signals.doctor import examine
from armid.signals.problems import SignalError
from armid.signals.repair import (
    fill_missing,
    find_gaps,
    find_jumps,
    find_spikes,
    increasing_rows,
    over_holes,
    recurring,
    without_turns,
)
from tests.signals.waves import make_log, periodic_log


def friction_signal(noise, seed=0):
    """Torque with Coulomb steps at every reversal, seven joints."""
    _, log = periodic_log(seed, periods=2, torque_noise=noise)
    return log["effort"]


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_clean_friction_signals_are_left_alone(noise, seed):
    """Steps of 6 N m at velocity reversals, with and without noise: not one sample is taken for a spike."""
    assert not find_spikes(friction_signal(noise, seed)).any()


def test_stribeck_peaks_and_quantised_currents_are_left_alone():
    """A peak of 20 ms at each reversal, at 1 kHz; a current in steps of 0.01 A that sits on one step."""
    time = np.arange(20_000) / 1000.0
    velocity = np.sin(time)
    peak = np.sign(velocity) * (3.0 + 4.0 * np.exp(-((velocity / 0.005) ** 2)))
    steps = np.round((0.004 * np.sin(3 * time) + 0.002 * np.random.default_rng(0).normal(size=len(time))) / 0.01) * 0.01
    assert not find_spikes(np.stack([peak, steps], axis=1)).any()


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_planted_single_sample_spikes_are_found_and_mended(noise):
    """All of 60 spikes of 3 N m or more away from the steps, and no other sample; mended to within the noise."""
    rng = np.random.default_rng(7)
    clean = friction_signal(noise)
    values, planted = np.array(clean), np.zeros(clean.shape, dtype=bool)
    steps = np.abs(np.diff(clean, axis=0)).max(axis=1) > 3.0
    quiet = np.flatnonzero(~np.convolve(steps, np.ones(21), mode="same").astype(bool))[20:-20:5]
    for row in rng.choice(quiet, 60, replace=False):
        joint = rng.integers(clean.shape[1])
        values[row, joint] += rng.choice([-1, 1]) * rng.uniform(3.0, 30.0)
        planted[row, joint] = True
    found = find_spikes(values)
    np.testing.assert_array_equal(found, planted)
    assert np.abs(over_holes(values, found) - clean).max() < 0.05 + 6.0 * noise


def test_spikes_between_missing_values_do_not_confuse():
    values = np.sin(np.arange(400) / 30.0)[:, None].copy()
    values[100:110] = np.nan
    values[200] += 5.0
    found = find_spikes(values)
    assert np.flatnonzero(found[:, 0]).tolist() == [200]


def sharp_log(noise=0.0, periods=4, period=20.0, seed=3, rate=100.0):
    """Torque with a peak of one sample at the same phase of every period, as friction makes it without noise."""
    _, log = periodic_log(seed, joints=3, periods=periods, period=period, rate=rate, torque_noise=noise)
    phase = np.round(np.mod(log.time, period) * rate).astype(int)
    peak = np.where(phase == 123, 8.0, 0.0)[:, None] * [1.0, -1.0, 1.5]
    return log.with_channels({"effort": log["effort"] + peak})


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_recurs_in_every_period_is_no_spike(noise):
    """Peaks at one phase stay to the last bit, and it is said; a spike beside them in one period is mended."""
    log = sharp_log(noise)
    assert find_spikes(log["effort"]).sum() == 12
    mended, notes = Hampel().apply(log, None)
    np.testing.assert_array_equal(mended["effort"], log["effort"])
    assert "recur" in str(notes[0])
    effort = np.array(log["effort"])
    effort[900, 1] += 20.0
    mended, notes = Hampel().apply(log.with_channels({"effort": effort}), None)
    assert np.abs(mended["effort"] - log["effort"]).max() < 0.2 + 6.0 * noise
    assert "Replaced 1 spike in effort (joint2 1)" in str(notes[0])


def test_friction_of_a_virtual_robot_without_noise_is_left_alone():
    """Reversals of an arm with perfect sensors make samples that stand out: four times each, in four periods."""
    pytest.importorskip("mujoco")
    from armid.experiment.settings import Sensors
    from armid.experiment.virtual import VirtualRobot
    from armid.robot import load_robot
    from armid.signals.doctor import examine
    from tests.signals.test_doctor import motion

    robot = load_robot("er16").first_links(3)
    arm = VirtualRobot(robot, rate_hz=100.0, seed=0, sensors=Sensors.perfect())
    log = arm.run(motion(robot, np.random.default_rng(0)), periods=4)
    assert find_spikes(log["effort"]).sum() == 28
    assert Hampel().apply(log, None)[0] is log
    assert not examine(log).of("spikes")


def test_recurring_looks_through_gaps_and_broken_periods():
    """Rows lost, a period of 499.7 samples; of three spikes at one phase in 12 periods none recurs."""
    time = np.delete(np.arange(6000) / 100.0, np.r_[700:760, 2200:2205])
    period = 4.997
    phase = np.mod(time, period)
    values = np.sin(2.0 * np.pi * time / period)[:, None]
    marks = (np.abs(phase - 1.3) < 0.005)[:, None]
    peaked = values + 0.5 * marks
    assert recurring(time, peaked, marks, period)[marks].all()
    few = marks & (time < 3 * period)[:, None]
    assert not recurring(time, values + 0.5 * few, few, period).any()


def test_round_off_is_no_spike():
    """Without any noise the threshold would be zero: blips of 1e-9 on torques of 10 N m are the arithmetic's."""
    values = np.repeat([[0.0], [10.0], [3.0], [10.0]], 500, axis=0)
    values[40::97, 0] += 1e-9 * np.arange(1, 22)
    assert not find_spikes(values).any()
    values[777] += 0.01
    assert np.flatnonzero(find_spikes(values)).tolist() == [777]


def test_ur10e_current_spikes_are_found(data):
    """The real log has single-sample spikes in the first joint's current; few samples are touched."""
    raw = np.loadtxt(data / "ur10e/ur-20_02_10-30sec_12harm.csv", delimiter=",")
    found = find_spikes(raw[:, 13:19])
    assert 3 <= found[:, 0].sum() <= 12
    assert found.sum() < 0.001 * found.size


def test_time_is_put_in_order():
    """Repeated stamps, one that goes back, one that jumps far ahead, and NaN are left out; the rest stays."""
    time = np.array([0.0, 1.0, 1.0, 2.0, 900.0, 3.0, 4.0, 2.5, 5.0, np.nan, 6.0])
    assert time[increasing_rows(time)].tolist() == [0, 1, 2, 3, 4, 5, 6]
    ordered = np.arange(50.0)
    assert increasing_rows(ordered).all()
    assert increasing_rows(np.array([99.0, 1.0, 2.0])).tolist() == [False, True, True]


def test_a_clock_that_was_set_back_goes_on():
    """The motion is that of the log as it was, and the doctor says so; two recordings that do not meet are cut."""
    _, log = periodic_log(1, joints=3, periods=2, q_noise=1e-5, torque_noise=0.05)
    early = np.where(np.arange(len(log)) < 700, log.time, log.time - 0.3)
    for time in (early, np.where(np.arange(len(log)) == 100, np.nan, early)):
        mended, notes = Repair().apply(Log(time, log.channels, log.info), None)
        assert [one.code for one in notes] == ["signals.set_back"] + ["signals.unordered"] * bool(np.isnan(time).any())
        np.testing.assert_allclose(mended.time, log.time[np.isfinite(time)], atol=1e-9)
    report = examine(Log(early, log.channels, log.info))
    (found,) = report.of("time-runs-backward")
    assert found.values["worst_s"] == pytest.approx(0.3 - log.time[1] + log.time[0])
    assert report.usable
    joined = np.concatenate([np.arange(700), np.arange(200, 1000)])
    other = Log(
        np.where(np.arange(1500) < 700, log.time[:1500], log.time[:1500] - 0.3), log.rows(joined).channels, log.info
    )
    assert [one.code for one in Repair().apply(other, None)[1]] == ["signals.unordered", "signals.joined"]


def test_gaps_are_found():
    time = np.delete(np.arange(100) / 100.0, [40, 41, 42, 70])
    rows, lengths_s = find_gaps(time, factor=1.5)
    assert rows.tolist() == [39, 66]
    np.testing.assert_allclose(lengths_s, [0.04, 0.02])


def test_short_holes_are_filled_and_long_ones_stay():
    time = np.arange(200) / 100.0
    values = np.stack([time, 2.0 * time], axis=1)
    values[50:53, 0] = np.nan
    values[100:150, 1] = np.nan
    values[:4, 0] = np.nan
    found, count = fill_missing(time, values, 0.05)
    assert count == 3
    np.testing.assert_allclose(found[50:53, 0], time[50:53])
    assert np.isnan(found[100:150, 1]).all()
    assert np.isnan(found[:4, 0]).all()


def test_steps_say_what_they_did():
    _, log = periodic_log(periods=2)
    effort = np.array(log["effort"])
    effort[30, 2] += 50.0
    effort[60:62, 1] = np.nan
    time = np.array(log.time)
    time[100] = time[99]
    log = make_log(time, log["position"], effort)
    log, notes = Repair().apply(log, None)
    assert len(log) == 1999
    assert "1 sample whose time" in str(notes[0])
    assert "Filled 2" in str(notes[1])
    log, notes = Hampel().apply(log, None)
    assert "joint3 1" in str(notes[0])


def test_bad_options_are_refused():
    with pytest.raises(SignalError, match="half_window"):
        find_spikes(np.zeros((50, 1)), half_window=0)


def jumped(log, row, size):
    """The log with positions that go on elsewhere from a row on."""
    position = np.array(log["position"])
    position[row:] += size
    return log.with_channels({"position": position})


def test_a_zero_that_moves_within_a_log_is_refused_and_named():
    """One joint, by 0.1 rad: no part is known to be right, so that nothing is cut silently."""
    _, log = periodic_log(0, periods=2)
    size = np.zeros(len(log.joints))
    size[2] = 0.1
    wrong = jumped(log, len(log) // 3, size)
    finding = next(one for one in examine(wrong).at_least("error"))
    assert (finding.code, finding.joint) == ("position-jump", log.joints[2])
    assert finding.values["time_s"] == pytest.approx(log.time[len(log) // 3])
    with pytest.raises(LogError, match=f"position.{log.joints[2]}: {finding.what}"):
        process(wrong)
    data = process(wrong, {"step": "Repair", "moved_zero": True})
    assert [step["step"] for step in data.pipeline] == ["Repair", "Hampel", "TrimRest", "LowPass"]


def test_positions_that_wrap_go_on():
    """By a whole turn, several times: the data set is that of the unwrapped log."""
    _, log = periodic_log(1, periods=2)
    size = np.zeros(len(log.joints))
    size[1] = -2.0 * np.pi
    coarse = log.with_channels({"position": np.round(log["position"] / 2e-3) * 2e-3})
    for row in range(100, 1900, 17):
        assert [one.kind for one in find_jumps(log.time, jumped(coarse, row, size)["position"])] == ["turns"]
    wrapped = jumped(jumped(log, 200, size), 900, -size)
    made, clean = process(wrapped), process(log)
    np.testing.assert_allclose(made.q, clean.q, atol=1e-9)
    assert any(one.code == "signals.unwrapped" for one in made.notes)
    assert "error" not in {one.severity for one in examine(wrapped).findings}


def test_a_joint_that_is_told_within_one_turn_wraps_often():
    """0 to 360 degrees, crossed back and forth many times, as some arms report: the motion is that without wraps."""
    _, log = periodic_log(3, periods=2)
    position = np.array(log["position"])
    position[:, 1] *= 2.0 / np.ptp(position[:, 1])
    position[:, 1] += 0.1 - position[:, 1].mean() + 2e-3 * np.random.default_rng(0).normal(size=len(position))
    wrapped = position.copy()
    wrapped[:, 1] %= 2.0 * np.pi
    jumps = find_jumps(log.time, wrapped)
    assert len(jumps) > 8
    assert {one.kind for one in jumps} == {"turns"}
    one, other = (log.with_channels({"position": some}) for some in (wrapped, position))
    moved = without_turns(one)[0]["position"] - position
    np.testing.assert_allclose(moved - moved[0], 0.0, atol=1e-9)
    assert {one.code for one in examine(one).findings} == {"position-jump", *(x.code for x in examine(other).findings)}


def test_joined_recordings_are_cut_where_they_meet():
    """All joints jump: rows near it are left out, all others are as if recorded apart."""
    _, one = periodic_log(2, periods=1, torque_noise=0.0)
    both = jumped(one, row := len(one) // 2, np.linspace(0.3, 0.9, len(one.joints)))
    data = process(both, "LowPass")
    plain = process(both, [Repair(), "LowPass"])
    assert any(note.code == "signals.joined" for note in plain.notes)
    assert np.abs(plain.qd[plain.rows][plain.use.all(axis=1)]).max() < 2.0 * np.abs(process(one, "LowPass").qd).max()
    assert np.abs(data.qd[data.rows]).max() > 2.0 * np.abs(plain.qd[plain.rows][plain.use.all(axis=1)]).max()
    (finding,) = examine(both).of("position-jump")
    assert (finding.severity, finding.joint, finding.where.rows) == ("warning", None, (row,))


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_motion_does_not_jump(seed):
    """Noise, coarse steps, lost rows, spikes and blips of half a second are no jumps."""
    rng = np.random.default_rng(seed)
    _, log = periodic_log(seed, periods=2)
    q = log["position"] + 1e-4 * rng.normal(size=log["position"].shape)
    blips = q.copy()
    blips[rng.integers(10, len(q) - 10, 15), 0] += 1.0
    blips[300:340, 1] = 0.0
    kept = np.delete(np.arange(len(q)), np.arange(500, 560))
    for position, rows in ((q, slice(None)), (np.round(q / 0.02) * 0.02, slice(None)), (blips, slice(None)), (q, kept)):
        assert not find_jumps(log.time[rows], position[rows])
