"""Rows that a recorder lost: their place is kept."""

import numpy as np
import pytest

from armid.signals.resample import blocks_on_grid, bridged, grid_of, on_grid
from tests.signals.waves import make_log, periodic_log


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
