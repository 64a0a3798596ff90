"""The momentum observer: external torque of a step, streams and recordings alike."""

import numpy as np
import pytest

import armid
from armid.monitoring import stretches
from tests.monitoring import stand


def run(observer, log, fit):
    """Observed torque of a log in one stretch."""
    (part,) = stretches(fit, log)
    return observer.run(part.dt, part.q, part.qd, part.tau)


@pytest.fixture(scope="module")
def exact():
    """A fit whose values are the truth, without noise, delay or friction beyond the law."""
    from armid.estimation.least_squares import WeightedLeastSquares

    robot = stand.truth("er16")[0]
    log = stand.recording("er16", 40.0, 3, noise=0.0)
    return WeightedLeastSquares().fit(robot, armid.process(log, robot=robot))


def test_a_step_is_right_after_five_time_constants(exact):
    """External torque that appears at once: 1 % of it five time constants later, on each joint, gain 25 and 60."""
    size = np.array([40.0, -60.0, 25.0])
    push = stand.Push(10.0, 5.0, 3, size)
    for gain in (25.0, 60.0):
        quiet, pushed = (
            run(armid.Observer(exact, gain=gain), stand.recording("er16", 20.0, 5, p, noise=0.0), exact).torque
            for p in ((), (push,))
        )
        found = pushed - quiet
        settled = slice(int((10.0 + 5.0 / gain) * stand.RATE_HZ) + 1, int(15.0 * stand.RATE_HZ))
        assert np.abs(found[settled] / size - 1.0).max() < 0.01
        assert np.abs(found[: int(10.0 * stand.RATE_HZ)]).max() < 1e-9


def test_sample_by_sample_is_the_same_as_at_once():
    """`step` with irregular steps gives what `run` gives, bit for bit but for round-off; `reset` forgets."""
    fit = stand.fitted("er16")
    (part,) = stretches(fit, stand.recording("er16", 3.0, 6))
    observer = armid.Observer(fit)
    dt = part.dt * np.random.default_rng(0).uniform(0.5, 1.5, len(part.dt))
    at_once = observer.run(dt, part.q, part.qd, part.tau).torque
    observer.reset()
    one_by_one = np.array([observer.step(*row) for row in zip(part.q, part.qd, part.tau, dt, strict=True)])
    assert np.abs(one_by_one - at_once).max() < 1e-9 * np.abs(at_once).max()


def test_a_torque_that_lags_is_compared_with_a_model_that_lags():
    """With the fit's delay the error along a fast motion is a fraction of that without."""
    from dataclasses import replace

    fit = stand.fitted("er16")
    log = stand.recording("er16", 30.0, 7, noise=0.0)
    late = log.with_channels({"effort": np.vstack([log["effort"][:2], log["effort"][:-2]])})
    known = replace(fit, delay_s=np.full(3, 0.02))
    errors = [np.std(run(armid.Observer(f), late, f).torque[50:], axis=0) for f in (known, fit)]
    assert np.all(errors[0] < 0.5 * errors[1])


def test_what_is_not_a_sample_is_refused():
    """Clear words for a gain that is none, samples of another arm, time that stands still."""
    fit = stand.fitted("er16")
    with pytest.raises(armid.ArmidError, match="gain is 0"):
        armid.Observer(fit, gain=0.0)
    with pytest.raises(armid.ArmidError, match=r"\(1, 3\)"):
        armid.Observer(fit).step(np.zeros(4), np.zeros(4), np.zeros(4), 0.01)
    with pytest.raises(armid.ArmidError, match="above zero"):
        armid.Observer(fit).step(np.zeros(3), np.zeros(3), np.zeros(3), 0.0)
