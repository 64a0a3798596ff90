"""Parts of a log by share or seconds."""

import numpy as np
import pytest

import armid
from armid.logs.log import LogError
from armid.run.procedure import _split


def log(rows=101, **info):
    return armid.Log(0.1 * np.arange(rows), {"position": np.zeros((rows, 1))}, armid.LogInfo(("a",), "none", **info))


@pytest.mark.parametrize(
    ("span", "first", "last"),
    [("0:60%", 0, 59), ("60%:100%", 60, 100), ("60%:", 60, 100), (":2.05", 0, 20), ("1:2", 10, 19)],
)
def test_part(span, first, last):
    """Parts that meet share no row, and the last one holds the last row."""
    assert log().part(span).time[[0, -1]] == pytest.approx([0.1 * first, 0.1 * last])


@pytest.mark.parametrize("span", ["", "60%", "a:b", "5:5", "20:30", "nan:1", "1:2:3"])
def test_no_part(span):
    """What is no span, or holds nothing, is refused in a sentence."""
    with pytest.raises(LogError, match="is no part of 10 s; write it as"):
        log().part(span)


@pytest.mark.parametrize("period", [None, 10.0, 4.0])
def test_a_single_log_is_split(period):
    """Also where it is one period and no more, as a motion from point to point is; else by whole periods."""
    first, rest = _split(log(period_s=period))
    assert len(first) + len(rest) == 101
    assert len(first) == {None: 71, 10.0: 71, 4.0: 80}[period]
