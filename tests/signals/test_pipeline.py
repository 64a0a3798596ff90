"""Pipelines as data, and `process` from log to dataset."""

import json
import random
import re
from dataclasses import replace

import numpy as np
import pytest

from armid.errors import ArmidError, UnknownNameError
from armid.logs.log import Log, LogError, LogInfo, LogStream
from armid.robot import load_robot
from armid.signals import (
    CurrentToTorque,
    FourierFit,
    Hampel,
    LowPass,
    PeriodicAverage,
    Pipeline,
    Repair,
    Resample,
    Shift,
    Smoothed,
    ToJointSide,
    Trim,
    TrimRest,
    load_pipeline,
    process,
)
from armid.signals.filters import filtered
from armid.signals.problems import SignalError
from armid.signals.steps import Step
from tests.signals.waves import Wave, make_log, periodic_log, smooth_step, torque_of


def single_run(seed=0, rate=200.0, q_noise=0.0, torque_noise=0.0, rest=3.0):
    """A motion that does not repeat, between two rests."""
    rng = np.random.default_rng(seed)
    wave = Wave(rng, joints=3, period=25.0)
    time = np.arange(int((20.0 + 2 * rest) * rate)) / rate
    blend = smooth_step((time - rest) / 3.0) * (1.0 - smooth_step((time - rest - 17.0) / 3.0))
    q = wave.motion(time)[0] * blend[:, None]
    qd = np.gradient(q, time, axis=0)
    torque = torque_of(q, qd, np.gradient(qd, time, axis=0))
    noisy = [a + s * rng.normal(size=a.shape) for a, s in ((q, q_noise), (torque, torque_noise))]
    return make_log(time, *noisy)


class TestData:
    def test_every_step_survives_json(self):
        """Name and options to JSON and back give an equal step."""
        steps = (
            Trim(start_s=1.0), TrimRest(), Repair(), Hampel(longest=2), Resample(rate_hz=500.0),
            Shift(delay_s=(0.01, 0.02)), CurrentToTorque(gains=(1.0, (0.0, 2.0))),
            ToJointSide(ratio=((2.0, 0.0), (1.0, 3.0))), LowPass(cutoff_hz="auto"),
            Smoothed(passes=5), FourierFit(harmonics=(1, 20)), PeriodicAverage(harmonics=5),
        )  # fmt: skip
        assert {type(step).__name__ for step in steps} == set(Step.registry)
        for step in steps:
            again = Pipeline.of(json.loads(json.dumps(step.to_data()))).steps[0]
            assert again.to_data() == step.to_data()

    def test_names_and_sequences_are_understood(self):
        assert Pipeline.of("LowPass").steps == (LowPass(),)
        mixed = Pipeline.of(["Repair", {"step": "LowPass", "cutoff_hz": 3.0}])
        assert mixed.steps == (Repair(), LowPass(cutoff_hz=3.0))
        assert Pipeline.from_data(mixed.to_data()) == mixed
        assert Pipeline.of(None).steps == ()

    def test_unknown_names_are_refused_with_the_nearest(self):
        with pytest.raises(UnknownNameError, match="LowPass"):
            Pipeline.of("Lowpass")
        with pytest.raises(UnknownNameError, match="cutoff_hz"):
            Pipeline.of({"step": "LowPass", "cutof_hz": 3.0})
        with pytest.raises(SignalError, match="names no step"):
            Pipeline.of({"cutoff_hz": 3.0})

    def test_a_strategy_is_the_last_step(self):
        with pytest.raises(SignalError, match="put it last"):
            Pipeline((LowPass(), Repair()))


class TestAutomatic:
    def test_a_repeated_motion_is_averaged(self):
        """Five harmonics kept, torque with its noise over 4, and the notes say so."""
        wave, log = periodic_log(1, periods=16, q_noise=1e-4, torque_noise=0.5)
        data = process(log)
        assert data.periods == 16
        assert "repeats" in str(data.notes[0])
        truth = wave.motion(data.time)
        assert np.abs(data.qdd - truth[2]).max() < 1e-3
        np.testing.assert_allclose(data.torque_noise, 0.5 / 4.0, rtol=0.05)
        np.testing.assert_allclose(np.diag(data.noise_covariance), data.torque_noise**2)
        away = np.abs(truth[1]) > 0.02
        assert (data.torque - torque_of(*truth))[away].std() == pytest.approx(0.125, rel=0.05)
        assert [step["step"] for step in data.pipeline] == ["Repair", "Hampel", "PeriodicAverage"]
        np.testing.assert_allclose(data.position_noise, 1e-4 * np.sqrt(11 / 16_000), rtol=0.25)

    def test_a_single_run_is_low_passed(self):
        """The rests are cut, the cut-off follows the motion, rows are thinned; the notes say why."""
        data = process(single_run(q_noise=1e-5, torque_noise=0.2))
        text = " ".join(map(str, data.notes))
        assert "does not repeat" in text
        assert "standstill" in text
        assert "low-passed alike" in text
        step = data.pipeline[-1]
        assert step["step"] == "LowPass"
        assert 2.0 <= step["cutoff_hz"] <= 8.0
        assert len(data) < len(data.time) / 5

    def test_a_recorded_pipeline_gives_the_same_dataset(self):
        """What the dataset holds as its pipeline, run again, makes the same numbers."""
        for log in (single_run(q_noise=1e-5, torque_noise=0.2), periodic_log(1, periods=4, torque_noise=0.1)[1]):
            first = process(log)
            again = process(log, json.loads(json.dumps(first.pipeline)))
            np.testing.assert_array_equal(again.torque, first.torque)
            np.testing.assert_array_equal(again.qdd, first.qdd)
            assert again.pipeline == first.pipeline

    def test_two_periods_are_too_few_to_average(self):
        data = process(periodic_log(1, periods=2)[1])
        assert data.pipeline[-1]["step"] == "LowPass"
        assert "3 are needed" in str(data.notes[0])


class TestLowPass:
    def test_a_log_that_is_too_short_for_the_filter(self):
        """The error says how long a log must be, and that a higher cut-off needs less."""
        log = single_run(rate=200.0).rows(slice(0, 59))
        with pytest.raises(SignalError, match=r"too short .* 59 samples and \d+ \(1\.\d+ s\) are the least.*--signals"):
            process(log, LowPass(cutoff_hz=5.0))

    @pytest.mark.parametrize(("step", "word"), [(2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (21, "21st")])
    def test_rows_that_are_kept_are_told_in_words(self, step, word):
        notes = process(single_run(), LowPass(decimate=step)).notes
        assert any(f"every {word} row is kept" in str(note) for note in notes)

    def test_torque_and_regressor_agree_after_the_kernel(self):
        """Torque filtered equals the model's torque filtered, friction steps included: to 1e-3 of its range."""
        log = single_run(rate=1000.0)
        data = process(log, LowPass(cutoff_hz=5.0))
        model = filtered(torque_of(data.q, data.qd, data.qdd), data.kernel, data.rows)
        moving = np.abs(filtered(np.abs(data.qd), data.kernel, data.rows)) > 0.05
        error = (model - data.torque)[moving.all(axis=1)]
        assert np.sqrt((error**2).mean()) < 2e-3 * np.ptp(data.torque)

    def test_noise_is_what_is_left_after_the_kernel(self):
        """Known white noise of 0.4 N m under friction steps: prediction and remainder agree, friction adds little."""
        clean, noisy = single_run(1), single_run(1, torque_noise=0.4)
        step = LowPass(cutoff_hz=5.0)
        a, b = process(clean, step), process(noisy, step)
        np.testing.assert_allclose((a.torque - b.torque).std(axis=0), b.torque_noise, rtol=0.15)
        expected = 0.4 * np.sqrt((b.kernel**2).sum())
        np.testing.assert_allclose(b.torque_noise, expected, rtol=0.08)

    def test_holes_are_masked(self):
        """A torque missing for half a second masks its joint's rows nearby, a position all joints' rows."""
        log = single_run()
        effort, position = np.array(log["effort"]), np.array(log["position"])
        effort[2000:2100, 1] = np.nan
        position[3000:3100, 0] = np.nan
        data = process(log.with_channels({"effort": effort, "position": position}), LowPass(rest_speed=0.0))
        assert np.isfinite(data.torque).all()
        assert np.isfinite(data.qdd).all()
        at = np.searchsorted(data.rows, 2050)
        assert data.use[at].tolist() == [True, False, True]
        assert not data.use[np.searchsorted(data.rows, 3050)].any()
        assert data.use.mean() > 0.7
        assert "left out" in str(data.notes[-1])

    def test_rows_at_rest_are_left_out(self):
        """A joint that stands still in the second half is not used there; the others are."""
        log = single_run(rest=0.5)
        position = np.array(log["position"])
        position[2000:, 1] = position[2000, 1]
        data = process(log.with_channels({"position": position}), LowPass())
        late = (data.rows > 2200) & (data.rows < 3400)
        assert not data.use[late, 1].any()
        assert data.use[late, 0].mean() > 0.8
        assert "no faster than" in str(data.notes[-1])
        assert process(log, LowPass(rest_speed=100.0)).use is None

    def test_measured_channels_are_used_on_request(self):
        log = single_run()
        velocity = np.gradient(log["position"], log.time, axis=0)
        log = log.with_channels({"velocity": 1.1 * velocity, "acceleration": np.full_like(velocity, 3.0)})
        data = process(log, LowPass(measured=True))
        np.testing.assert_allclose(data.qdd, 3.0)
        assert np.abs(data.qd).max() > 1.05 * np.abs(process(log, LowPass()).qd).max()

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"cutoff_hz": 120.0}, "below 100 Hz"),
            ({"motion_cutoff_hz": 150.0}, "below 100 Hz"),
            ({"cutoff_hz": "slow"}, "auto"),
            ({"decimate": 0}, "decimate"),
            ({"cutoff_hz": 0.05}, "longer log"),
        ],
    )
    def test_bad_options_are_refused(self, options, words):
        with pytest.raises(SignalError, match=words):
            process(single_run(), LowPass(**options))


class TestOtherStrategies:
    @pytest.mark.parametrize("strategy", [Smoothed(passes=4, decimate=5), LowPass(decimate=1)])
    def test_motion_is_right_and_shapes_fit(self, strategy):
        """Accelerations within 2 % of their range in the middle, torque at the rows of the kernel."""
        wave, log = periodic_log(2, periods=2, rate=200.0)
        data = process(log, strategy)
        truth = wave.motion(data.time)
        middle = slice(400, -400)
        assert np.abs(data.qdd - truth[2])[middle].max() < 0.02 * np.ptp(truth[2])
        np.testing.assert_allclose(data.torque, filtered(log["effort"], data.kernel, data.rows), atol=1e-9)

    def test_fourier_fit_on_irregular_times(self):
        """Period found, frequency refined, derivatives analytic."""
        rng = np.random.default_rng(8)
        wave = Wave(rng, joints=3, period=9.0)
        time = np.cumsum(rng.choice([0.010, 0.012], size=3000))
        q, qd, qdd = wave.motion(time)
        log = make_log(time, q + 1e-5 * rng.normal(size=q.shape), torque_of(q, qd, qdd))
        data = process(log, FourierFit())
        truth = wave.motion(data.time)
        assert np.abs(data.qdd - truth[2]).max() < 1e-4
        np.testing.assert_allclose(data.position_noise, 1e-5 * np.sqrt(11 / 3000), rtol=0.1)


class TestPeriodicAverage:
    def test_approach_and_return_are_left_out(self):
        """The dataset of a run with approach and return is that of the periods between."""
        wave = Wave(np.random.default_rng(3), joints=3)
        time = np.arange(6000) / 100.0
        blend = (smooth_step(time / 5.0) * (1.0 - smooth_step((time - 55.0) / 5.0)))[:, None]
        q = wave.motion(np.clip(time, 5.0, 55.0) - 5.0)[0] * blend
        log = make_log(time, q, q)
        data = process(log, PeriodicAverage(harmonics=5))
        assert data.periods == 5
        spread = np.ptp(data.q, axis=0)
        phase = np.argmin(
            [np.abs(np.roll(data.q, k, axis=0)[0] - wave.motion(np.zeros(1))[0]).max() for k in range(1000)]
        )
        truth = np.roll(wave.motion(data.time)[0], -phase, axis=0)
        assert (np.abs(data.q - truth).max(axis=0) < 2e-3 * spread).all()

    def test_a_transient_is_left_out(self):
        _, log = periodic_log(4, joints=2, periods=8, period=5.0, q_noise=1e-5)
        disturbed = log["position"] + 0.01 * np.exp(-log.time / 0.5)[:, None]
        data = process(log.with_channels({"position": disturbed}), PeriodicAverage())
        assert data.periods == 7
        assert "transient" in " ".join(map(str, data.notes))

    def test_a_period_with_holes_is_left_out(self):
        _, log = periodic_log(4, joints=2, periods=8, period=5.0)
        effort = np.array(log["effort"])
        effort[1234:1300, 1] = np.nan
        data = process(log.with_channels({"effort": effort}), PeriodicAverage())
        assert data.periods == 7

    def test_a_stream_gives_the_dataset_of_the_whole(self):
        """Blocks of 777 samples: the same numbers to 1e-12."""
        _, log = periodic_log(5, joints=3, periods=12, period=5.0, q_noise=1e-4, torque_noise=0.1)
        stream = LogStream(
            log.info, tuple(log.channels), lambda size: (log.rows(slice(k, k + 777)) for k in range(0, len(log), 777))
        )
        whole, streamed = process(log, PeriodicAverage()), process(stream, PeriodicAverage())
        for name in ("q", "qd", "qdd", "torque", "torque_noise", "noise_covariance"):
            wanted = getattr(whole, name)
            np.testing.assert_allclose(getattr(streamed, name), wanted, atol=1e-12 * np.abs(wanted).max(), rtol=1e-10)
        assert process(stream).periods == 12

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"periods": 9}, "9 periods are asked for, 4 of the 4"),
            ({"discard_periods": 3}, "2 periods are asked for, 1 of the 4"),
            ({"harmonics": 600}, "Nyquist"),
            ({"harmonics": "all"}, "auto"),
            ({"discard_periods": "all"}, "discard_periods"),
        ],
    )
    def test_bad_options_are_refused(self, options, words):
        with pytest.raises(SignalError, match=words):
            process(periodic_log(6, joints=2, periods=4)[1], PeriodicAverage(**options))

    def test_a_motion_without_period_is_refused(self):
        with pytest.raises(SignalError, match="use LowPass"):
            process(single_run(), PeriodicAverage())


class TestRobot:
    def test_columns_are_picked_by_name(self):
        """A log with the joints in another order and one too many."""
        robot = load_robot("powerball")
        _, log = periodic_log(7, joints=7, periods=3)
        names = ("extra", *robot.joint_names[::-1])
        log = replace(log, info=replace(log.info, joints=names))
        data = process(log, robot=robot)
        assert data.joints == robot.joint_names
        np.testing.assert_allclose(data.torque, process(log.for_joints(robot.joint_names)).torque)

    def test_currents_need_gains(self):
        """Without them the error names all ways to give them; with them the torque is their product."""
        _, log = periodic_log(7, joints=2, periods=3)
        current = log.with_channels({"current": log["effort"], "effort": None}, effort="current")
        with pytest.raises(LogError, match=r"current_gain in the recipe.*drives\.current_gain.*CurrentToTorque"):
            process(current)
        data = process(current, [CurrentToTorque(gains=(2.0, (0.0, 3.0))), PeriodicAverage()])
        np.testing.assert_allclose(data.torque, process(log, PeriodicAverage()).torque * [2.0, 3.0])

    def test_motor_side_needs_ratios(self):
        _, log = periodic_log(7, joints=2, periods=3)
        motor = log.with_channels(
            {"position": log["position"] * [10.0, -20.0], "effort": log["effort"] / [10.0, -20.0]},
            side="motor", effort="motor torque",
        )  # fmt: skip
        with pytest.raises(LogError, match="ToJointSide"):
            process(motor)
        data, wanted = process(motor, [ToJointSide(ratio=(10.0, -20.0))]), process(log)
        np.testing.assert_allclose(data.q, wanted.q, atol=1e-12)
        np.testing.assert_allclose(data.torque, wanted.torque, atol=1e-9)


class TestMissingChannels:
    def test_position_and_effort_are_required(self):
        _, log = periodic_log(joints=2, periods=3)
        for strategy in (None, LowPass(), PeriodicAverage(), FourierFit(), Smoothed()):
            with pytest.raises(LogError, match="position"):
                process(log.with_channels({"position": None}), strategy)
            with pytest.raises(LogError, match=r"effort.*missing"):
                process(log.with_channels({"effort": None}, effort="none"), strategy)

    def test_a_joint_without_positions_is_named(self):
        _, log = periodic_log(joints=2, periods=3)
        position = np.array(log["position"])
        position[:, 1] = np.nan
        with pytest.raises(LogError, match=r"position\.joint2"):
            process(log.with_channels({"position": position}))

    def test_short_logs_are_refused(self):
        _, log = periodic_log(joints=2, periods=3)
        with pytest.raises(LogError, match="at least 8"):
            process(log.rows(slice(0, 5)))
        with pytest.raises(SignalError, match="nothing is left"):
            process(log, [Trim(start_s=100.0), LowPass()])
        with pytest.raises(LogError, match="no motion"):
            TrimRest().apply(make_log(np.arange(100.0), np.zeros((100, 1))), None)


class TestRealLogs:
    def ur10e(self, data, name):
        raw = np.loadtxt(data / f"ur10e/{name}.csv", delimiter=",")
        gains = [11.976, 11.976, 9.8386, 10.763, 10.763, 10.763]
        return make_log(raw[:, 0], raw[:, 1:7], raw[:, 13:19] * gains, source=name)

    def test_ur10e_is_processed_end_to_end(self, data):
        """Steps of 10 and 12 ms, spikes, rest at both ends: all of it is mended and told."""
        found = process(self.ur10e(data, "ur-20_02_10-30sec_12harm"))
        text = " ".join(map(str, found.notes))
        assert all(word in text for word in ("spikes", "standstill", "Resampled to 100 Hz", "low-passed alike"))
        assert 28.0 < found.time[-1] - found.time[0] < 34.0
        assert np.isfinite(found.torque).all()
        assert 3.0 < found.pipeline[-1]["cutoff_hz"] < 6.0

    def test_xmate_is_averaged(self, data):
        """Velocity from 3 periods of position agrees with the controller's own to 1 % of its range."""
        raw = np.loadtxt(data / "xmate7p/traj1.csv", delimiter=",")
        log = make_log(np.arange(len(raw)) / 50.0, raw[:, :7], raw[:, 21:28])
        found = process(log)
        assert found.periods == 3
        velocity = raw[-3000:, 7:14].reshape(3, 1000, 7).mean(axis=0)
        best = [np.abs(np.roll(velocity, k, axis=0) - found.qd).max() for k in (-2, -1, 0, 1, 2)]
        assert min(best) < 0.03 * np.ptp(velocity)


def test_log_shorter_than_the_filter_is_named():
    """The sentence about a log that is too short says which one it is."""
    t = 0.01 * np.arange(50)
    info = LogInfo(("a",), "joint torque", rate_hz=100.0, source="short.csv")
    log = Log(t, {"position": np.sin(t)[:, None], "effort": np.cos(t)[:, None]}, info)
    with pytest.raises(SignalError, match=r"short\.csv: .*it has 50 samples"):
        process(log, LowPass(cutoff_hz=1.0))


PIPELINE = """
- {step: Repair, max_gap_s: 0.05}
- {step: Hampel, half_window: 3, threshold: 8.0, channels: [position, effort]}
- {step: Shift, delay_s: [0.1, 0.2]}
- {step: LowPass, cutoff_hz: 5, decimate: auto, measured: true}
"""
ODD = (
    "null",
    "true",
    "1e999",
    ".nan",
    "[]",
    "{}",
    "[[[1]]]",
    "{a: {b: c}}",
    "9" * 40,
    "2020-01-01",
    "&a [*a]",
    "''",
    "!!x y",
)


def test_damaged_pipeline_files_are_one_sentence(tmp_path):
    """400 files with other bytes, missing parts, other types: a pipeline, or one line that says why not."""
    rng = random.Random(0)
    path = tmp_path / "steps.yaml"
    said = []
    for _ in range(400):
        text = PIPELINE
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(text))
            values = [match.span() for match in re.finditer(r"(?<=[:,\[] )[^,\]}\n]+", text)]
            kind = rng.random()
            if kind < 0.3:
                text = text[:place] + chr(rng.randrange(1, 256)) + text[place + 1 :]
            elif kind < 0.5 or not values:
                text = text[:place] + text[place + rng.randint(1, 8) :]
            else:
                start, stop = rng.choice(values)
                text = text[:start] + rng.choice(ODD) + text[stop:]
        path.write_text(text, encoding="utf-8")
        try:
            load_pipeline(str(path))
        except ArmidError as error:
            said.append(str(error))
    assert len(said) > 200
    assert not [sentence for sentence in said if "\n" in sentence]
