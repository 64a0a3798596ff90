"""Logs and files for the tests of this folder."""

from dataclasses import replace

import numpy as np

from armid.logs import Log, LogInfo
from armid.logs.log import CHANNELS


def random_log(seed=0, samples=50, joints=("a", "b", "c"), channels=("position", "velocity", "effort"), **info):
    """A log of random numbers of all sizes, with NaN, infinities and negative zeros among them."""
    rng = np.random.default_rng(seed)

    def values(*shape):
        numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, shape)
        odd = rng.random(shape)
        return np.select([odd < 0.05, odd < 0.1, odd < 0.12], [np.nan, -0.0, -np.inf], numbers)

    time = 1234.5 + np.cumsum(rng.random(samples))
    info.setdefault("effort", "joint torque" if "effort" in channels else "none")
    return Log(time, {name: values(samples, len(joints)) for name in channels}, LogInfo(joints, source="made", **info))


def full_log(seed=0, samples=50):
    """A log with every channel and everything that its information can say."""
    return random_log(
        seed,
        samples,
        channels=CHANNELS,
        effort="motor torque",
        side="motor",
        mode="velocity",
        rate_hz=1.0 / 3.0,
        period_s=np.pi,
        gravity=(0.1, -0.2, -9.81),
        payload=tuple(np.arange(10) / 7.0),
        robot="böt",
        history={"seed": 3, "versions": {"armid": "1"}, "note": 'line\nbreak, "quote" and # sign', "list": [1, 2.5]},
    )


def assert_same(one, other):
    """Bit for bit the same numbers (any NaN equals any NaN), and the same information; a file has its own name."""
    assert set(one.channels) == set(other.channels)
    pairs = [(one.time, other.time), *((one[name], other[name]) for name in one.channels)]
    for mine, its in pairs:
        np.testing.assert_array_equal(mine, its)
        np.testing.assert_array_equal(np.signbit(mine[~np.isnan(mine)]), np.signbit(its[~np.isnan(its)]))
    assert one.info.source == other.info.history.get("origin", other.info.source)
    history = {key: value for key, value in other.info.history.items() if key != "origin"}
    for name, mine in vars(replace(one.info, source=other.info.source)).items():
        assert mine == (history if name == "history" else getattr(other.info, name)), name
