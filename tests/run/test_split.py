"""A single log: its last part is kept for validation, and there always is one."""

import numpy as np
import pytest

from armid.logs import Log, LogInfo
from armid.run.procedure import _split


@pytest.mark.parametrize(("samples", "period_s"), [(1000, 10.0), (1000, 20.0), (1001, 10.0), (1000, 3.0), (700, None)])
def test_both_parts_have_samples(samples, period_s):
    """Also of a point-to-point log whose period is its length, or longer; whole periods where there are several."""
    info = LogInfo(("a",), "none", rate_hz=100.0, period_s=period_s)
    log = Log(np.arange(samples) / 100.0, {"position": np.zeros((samples, 1))}, info)
    first, rest = map(len, _split(log))
    assert first + rest == samples
    assert rest > 0.2 * samples
    assert first > 0.5 * samples
    assert period_s != 3.0 or first % 300 == 0
