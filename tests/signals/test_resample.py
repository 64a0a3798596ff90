"""Other sample times, several rates in one log, delays."""

import numpy as np
import pytest

from armid.logs.log import LogError
from armid.signals import Shift, fuse
from armid.signals.problems import SignalError
from armid.signals.resample import (
    blocks_on_grid,
    bridged,
    grid_of,
    interpolate_band_limited,
    is_uniform,
    on_grid,
    resample,
    shifted,
)
from tests.signals.waves import Wave, make_log, periodic_log, torque_of


def jittered_log(seed=0, rate=100.0, jitter=0.3):
    rng = np.random.default_rng(seed)
    wave = Wave(rng, joints=3)
    time = (np.arange(2000) + jitter * rng.uniform(-1, 1, 2000)) / rate
    q, qd, qdd = wave.motion(time)
    return wave, make_log(time, q, torque_of(q, qd, qdd), rate_hz=rate)


def test_irregular_times_become_uniform():
    """Positions by cubic splines to 1e-6 rad, torque by lines to 1 % of its range away from friction steps."""
    wave, log = jittered_log()
    assert not is_uniform(log.time)
    found = resample(log)
    assert is_uniform(found.time, 1e-9)
    q, qd, qdd = wave.motion(found.time)
    assert np.abs(found["position"] - q)[5:-5].max() < 1e-6
    error = np.abs(found["effort"] - torque_of(q, qd, qdd))
    assert np.quantile(error, 0.98) < 0.01 * np.ptp(found["effort"])


def test_gaps_stay_open():
    """A second without samples becomes NaN; a single dropped sample is filled."""
    _, log = periodic_log(joints=2, periods=2)
    keep = np.ones(len(log), dtype=bool)
    keep[500:600] = False
    keep[900] = False
    found = resample(log.rows(keep))
    missing = np.isnan(found["position"]).any(axis=1)
    assert len(found) == len(log)
    assert missing[500:600].all()
    assert missing.sum() == 100


def test_missing_values_of_one_joint_stay_with_it():
    _, log = jittered_log()
    effort = np.array(log["effort"])
    effort[700:800, 1] = np.nan
    found = resample(log.with_channels({"effort": effort}))
    holes = np.isnan(found["effort"]).sum(axis=0)
    assert holes[[0, 2]].tolist() == [0, 0]
    assert 90 < holes[1] < 110


def test_band_limited_interpolation_keeps_noise_and_signal():
    """White noise keeps its variance within 4 % at half samples; a wave at a quarter of the rate is right to 1e-4."""
    noise = np.random.default_rng(0).normal(size=40_000)
    between = interpolate_band_limited(noise, np.arange(100, 39_900) + 0.5)
    assert between.var() == pytest.approx(1.0, rel=0.04)
    wave = np.sin(0.5 * np.pi * np.arange(400))
    at = np.arange(40, 360) + 0.37
    assert np.abs(interpolate_band_limited(wave, at) - np.sin(0.5 * np.pi * at)).max() < 1e-4


def test_shift_takes_the_delay_away():
    """Torque that lags by 13.7 ms and 4.2 ms, at 1 kHz, meets the motion again to 1e-4 of its range."""
    wave = Wave(np.random.default_rng(1), joints=2)
    time = np.arange(20_000) / 1000.0
    lag = np.array([0.0137, 0.0042])
    late = np.stack([wave.motion(time - lag[j])[2][:, j] for j in range(2)], axis=1)
    log = make_log(time, wave.motion(time)[0], late)
    found, notes = Shift(delay_s=tuple(lag)).apply(log, None)
    truth = wave.motion(found.time)[2]
    assert np.abs(found["effort"] - truth)[20:-20].max() < 1e-4 * np.ptp(truth)
    assert len(found) == len(log) - 14
    assert notes[0].values["delay_s"] == pytest.approx(lag)
    assert "13.7, 4.2 ms" in str(notes[0])
    np.testing.assert_array_equal(shifted(late, 0.0), late)


def test_300_hz_and_1_khz_become_one_log():
    """Acceleration from a camera at 300 Hz joins encoder and torque at 1 kHz, by name and by clock (RX-60)."""
    wave = Wave(np.random.default_rng(2), joints=3)
    fast, slow = np.arange(8000) / 1000.0, 0.1 + np.arange(2200) / 300.0
    q, qd, qdd = wave.motion(fast)
    encoder = make_log(fast, q, torque_of(q, qd, qdd))
    camera = make_log(slow, q[:2200], channels={"acceleration": wave.motion(slow)[2]})
    camera = camera.with_channels({"position": None}).for_joints(("joint3", "joint1"))
    log = fuse([encoder, camera])
    assert log.rate_hz == pytest.approx(1000.0)
    assert log.time[0] == pytest.approx(0.1)
    assert log.time[-1] <= slow[-1] + 1e-9
    truth = wave.motion(log.time)
    assert np.abs(log["position"] - truth[0]).max() < 1e-9
    assert np.abs(log["acceleration"][:, [0, 2]] - truth[2][:, [0, 2]]).max() < 1e-6
    assert np.isnan(log["acceleration"][:, 1]).all()
    assert log.info.effort == "joint torque"


def test_bad_input_is_refused():
    _, log = periodic_log(joints=2, periods=2)
    with pytest.raises(SignalError, match="rate_hz"):
        resample(log, -5.0)
    with pytest.raises(SignalError, match="linear, cubic"):
        resample(log, effort="steps")
    with pytest.raises(LogError, match="does not increase"):
        resample(make_log(np.zeros(50), np.zeros((50, 1)), rate_hz=10.0))
    with pytest.raises(LogError, match="do not overlap"):
        fuse([log, make_log(log.time + 1e3, log["position"])])
    with pytest.raises(SignalError, match="2 of them"):
        Shift(delay_s=(0.1, 0.1, 0.1)).apply(log, None)


class TestGrid:
    def test_lost_rows_are_counted(self):
        """Steps of one, three and sixty sample times; stamps rounded to a microsecond, clock 50 ppm off."""
        rows = np.delete(np.arange(50_000), np.r_[100:102, 7000:7059])
        grid = grid_of(np.round(rows * 1e-3 * 1.00005, 6))
        np.testing.assert_array_equal(grid.index, rows)
        assert (grid.count, grid.missing) == (50_000, 61)
        assert grid.step == pytest.approx(1.00005e-3, rel=1e-7)

    @pytest.mark.parametrize(
        "time",
        [
            np.cumsum(np.random.default_rng(0).choice([0.010, 0.012], size=500)),
            np.r_[np.arange(300) * 0.01, 4.0035 + np.arange(300) * 0.01],
            np.r_[0.0, 0.1, 0.1, 0.2],
            np.r_[np.arange(20) * 0.01, 50.0],
        ],
        ids=["jitter", "another clock", "repeated", "mostly gap"],
    )
    def test_other_times_have_no_grid(self, time):
        assert grid_of(time) is None

    def test_a_lost_row_is_a_row_of_nan(self):
        _, log = periodic_log(joints=2, periods=2)
        assert on_grid(log) is log
        placed = on_grid(log.rows(np.r_[0:50, 53:2000]))
        np.testing.assert_allclose(placed.time, log.time, atol=1e-12)
        assert np.isnan(placed["effort"][50:53]).all()
        np.testing.assert_array_equal(placed["position"][53:], log["position"][53:])

    def test_bridges_are_short(self):
        """Two rows are bridged, by a cubic, three are not; measured values stay to the last bit."""
        _, log = periodic_log(joints=2, periods=2)
        found = bridged(on_grid(log.rows(np.delete(np.arange(2000), [50, 51, 500, 501, 502]))))
        assert np.abs(found["position"] - log["position"])[50:52].max() < 1e-6
        assert np.isnan(found["position"][500:503]).all()
        np.testing.assert_array_equal(found["effort"][600:], log["effort"][600:])

    def test_a_long_gap_of_a_stream_keeps_the_phase(self):
        """A thousand periods without rows become less than two; repeated stamps are dropped."""
        _, log = periodic_log(joints=1, periods=4, period=1.0)
        late = make_log(np.r_[log.time[:130], log.time[129], log.time[130:] + 1000.0], np.zeros((401, 1)))
        rows = sum(
            len(block) for block in blocks_on_grid([late.rows(slice(0, 200)), late.rows(slice(200, 401))], 0.01, 100)
        )
        assert 400 < rows < 700
        assert rows % 100 == 0
