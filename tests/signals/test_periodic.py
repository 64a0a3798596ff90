"""Averaging over periods where rows were lost, and where the period that was given is wrong."""

import numpy as np
import pytest

from armid.logs.log import LogStream
from armid.signals import LowPass, PeriodicAverage, find_period, process, whole_periods
from armid.signals.problems import SignalError
from tests.signals.test_period import run_with_approach
from tests.signals.waves import make_log, periodic_log, torque_of

LOST = {
    "one gap": np.r_[0:4300, 4360:16_000],
    "one row": np.r_[0:4300, 4301:16_000],
    "across a boundary": np.r_[0:9980, 10_030:16_000],
    "three periods": np.r_[0:4300, 7360:16_000],
}
LEFT = {"one gap": [5], "one row": [5], "across a boundary": [10, 11], "three periods": [5, 6, 7, 8]}


def streamed(log, size=777):
    """The log as a stream of blocks."""
    blocks = [log.rows(slice(k, k + size)) for k in range(0, len(log), size)]
    return LogStream(log.info, tuple(log.channels), lambda _: iter(blocks))


class TestLostRows:
    @pytest.mark.parametrize("case", LOST)
    def test_intact_periods_are_averaged_as_if_nothing_had_happened(self, case):
        """To the last digits the average of the intact periods, harmonics and noise included; the note says which."""
        _, log = periodic_log(1, periods=16, q_noise=1e-4, torque_noise=0.5)
        intact = np.setdiff1d(np.arange(16), np.array(LEFT[case]) - 1)
        wanted = {name: log[name].reshape(16, 1000, 7)[intact].mean(axis=0) for name in ("position", "effort")}
        for data in (process(log.rows(LOST[case]), PeriodicAverage()), process(log.rows(LOST[case]))):
            assert data.periods == len(intact)
            np.testing.assert_allclose(data.torque, wanted["effort"], atol=1e-12)
            series = np.fft.irfft(np.fft.rfft(wanted["position"], axis=0)[:6], n=1000, axis=0)
            np.testing.assert_allclose(data.q, series, atol=1e-12)
            text = " ".join(map(str, data.notes))
            assert "transient" not in text
            assert ", ".join(map(str, LEFT[case])) in text
            assert f"of {16}" in text

    @pytest.mark.parametrize("case", LOST)
    def test_a_stream_does_the_same(self, case):
        _, log = periodic_log(1, joints=3, periods=16, q_noise=1e-4, torque_noise=0.5)
        part = log.rows(LOST[case])
        whole, found = process(part, PeriodicAverage()), process(streamed(part), PeriodicAverage())
        assert found.periods == whole.periods
        np.testing.assert_allclose(found.qdd, whole.qdd, atol=1e-11)
        np.testing.assert_allclose(found.torque, whole.torque, atol=1e-11)

    @pytest.mark.parametrize("seed", range(4))
    def test_a_gap_does_not_end_the_repeated_part(self, seed):
        """Between approach and return, at any place: period and whole periods as without it."""
        wave, count, log = run_with_approach(seed, 1e-4, period=6.0, periods=8, rate=100.0, joints=3)
        rng = np.random.default_rng(seed)
        start = int(rng.integers(900, 4300))
        period = find_period(log.rows(np.delete(np.arange(len(log)), np.arange(start, start + 80)))).period
        assert period.seconds == pytest.approx(wave.period, abs=2e-4)
        assert period.count == count
        assert abs(period.first_s - 4.0) < 0.02 * wave.period + 0.05

    def test_rows_lost_now_and_then_are_bridged(self):
        """One row of a hundred is missing, so that no period is intact: accelerations to 1e-4, and it is said."""
        wave, log = periodic_log(1, periods=16, q_noise=1e-4, torque_noise=0.5)
        part = log.rows(np.sort(np.random.default_rng(0).choice(16_000, 15_840, replace=False)))
        data = process(part)
        assert data.periods == 16
        assert "Bridged holes" in " ".join(map(str, data.notes))
        assert np.abs(data.qdd - wave.motion(data.time)[2]).max() < 1e-4

    def test_a_broken_number_of_samples_and_a_gap(self):
        """Interpolated as ever, but for the damaged periods: accelerations as without it, to 1e-5 of their range."""
        _, log = periodic_log(3, joints=3, periods=12, period=10.0037, q_noise=1e-6)
        data = process(log.rows(np.r_[0:4300, 4360 : len(log)]), PeriodicAverage())
        wanted = process(log, PeriodicAverage())
        assert (data.periods, wanted.periods) == (11, 12)
        assert np.abs(data.qdd - wanted.qdd).max() < 1e-5 * np.ptp(wanted.qdd)

    def test_discarded_periods_are_counted_from_the_first(self):
        """Period 1 has a hole and is discarded anyway: 2 and 3 are discarded, not 3 and 4."""
        _, log = periodic_log(4, joints=2, periods=8, period=5.0, q_noise=1e-5)
        part = log.rows(np.r_[0:100, 150:4000])
        assert process(part, PeriodicAverage(discard_periods=2)).periods == 6

    def test_too_few_intact_periods(self):
        """Asked for, it is one clear error; by default the low-pass, with the reason."""
        _, log = periodic_log(2, joints=2, periods=4)
        part = log.rows(np.delete(np.arange(4000), np.r_[500:550, 1500:1550, 2500:2550]))
        with pytest.raises(SignalError, match=r"1 of the 4 .* 3 have missing samples or values: use LowPass"):
            process(part, PeriodicAverage())
        data = process(part)
        assert data.pipeline[-1]["step"] == "LowPass"
        assert "1 of 4 have all samples and values" in str(data.notes[0])
        with pytest.raises(SignalError, match="missing samples or values"):
            process(streamed(part), PeriodicAverage())

    def test_a_joint_without_effort_is_left_out(self):
        """Its rows do not count, and the other joint is averaged as if nothing were missing."""
        _, log = periodic_log(2, joints=2, periods=4)
        effort = np.array(log["effort"])
        effort[:, 1] = np.nan
        data, whole = process(log.with_channels({"effort": effort})), process(log)
        assert data.pipeline[-1]["step"] == "PeriodicAverage"
        assert np.allclose(data.torque[:, 0], whole.torque[:, 0])
        assert data.use[:, 0].any()
        assert not data.use[:, 1].any()

    def test_whole_periods_of_a_given_length(self):
        """The rate of a log with a gap is that of its grid, not rows over duration."""
        _, log = periodic_log(joints=2, periods=3)
        cut, samples = whole_periods(log.rows(np.r_[0:100, 300:3000]), 10.0)
        assert (samples, len(cut)) == (1000, 3000)
        np.testing.assert_array_equal(cut["position"][1000:], log["position"][1000:])


class TestWrongPeriod:
    @pytest.mark.parametrize("given", [7.0, 10.1, 9.8, 3.3])
    def test_a_given_period_that_is_wrong_is_refused(self, given):
        """The message names it, the one that is found, and the way out; in memory and as a stream."""
        _, log = periodic_log(4, joints=3, periods=6, q_noise=1e-4)
        for what in (log, streamed(log)):
            with pytest.raises(SignalError, match=rf"period_s is {given:g}, .*leave period_s out, or give 10\b"):
                process(what, PeriodicAverage(period_s=given))

    def test_longer_than_half_the_log(self):
        _, log = periodic_log(4, joints=3, periods=3, q_noise=1e-4)
        with pytest.raises(SignalError, match=r"period_s is 17,.*or give 10\b"):
            process(log, PeriodicAverage(period_s=17.0))

    def test_a_motion_without_any_period(self):
        time = np.arange(4000) / 100.0
        q = np.cumsum(np.cumsum(np.random.default_rng(0).normal(size=(4000, 2)), axis=0), axis=0) * 1e-4
        log = make_log(time, q, q)
        with pytest.raises(SignalError, match=r"period_s is 10,.*does not repeat.*no other period.*use LowPass"):
            process(log, PeriodicAverage(period_s=10.0))

    @pytest.mark.parametrize("given", [10.0, 20.0, 10.0005])
    def test_right_ones_and_multiples_are_taken(self, given):
        _, log = periodic_log(4, joints=3, periods=6, q_noise=1e-4)
        assert process(log, PeriodicAverage(period_s=given, harmonics=10)).time[-1] == pytest.approx(
            given - 0.01, abs=1e-3
        )

    def test_a_single_period_needs_the_given_one(self):
        """Nothing to compare it with."""
        _, log = periodic_log(4, joints=3, periods=1)
        data = process(log, PeriodicAverage(period_s=10.0, periods=1, harmonics=5))
        assert data.periods == 1

    def test_a_stated_period_that_is_wrong_is_told_and_not_used(self):
        """The log's own words are wrong: the motion is averaged over the right one, and the notes say so."""
        _, log = periodic_log(4, joints=3, periods=6, q_noise=1e-4, period_s=7.0)
        data = process(log)
        assert data.periods == 6
        assert "the log states a period of 7 s" in " ".join(map(str, data.notes))
        assert process(log, LowPass()).periods == 0
        time = np.arange(4000) / 100.0
        q = np.stack([np.tanh(time / 10.0 - 2.0), np.exp(-time / 20.0)], axis=1)
        first = process(make_log(time, q, torque_of(q, q, q), period_s=7.0)).notes[0]
        assert "the log states a period of 7 s" in str(first)
