"""The default pipeline is chosen from what the log doctor sees, and each reason names the finding."""

import subprocess
import sys

import numpy as np
import pytest

from armid.signals import Hampel, LowPass, PeriodicAverage, Resample, Trim, TrimRest, process
from armid.signals.pipeline import choose
from tests.signals.waves import Wave, make_log, periodic_log, smooth_step, torque_of


def chosen(log):
    """Kinds of steps, and the notes in one text."""
    pipeline, notes = choose(log)
    return {type(step) for step in pipeline.steps}, " ".join(map(str, notes))


def single(rate=100.0, seconds=30.0, jitter=0.0, seed=0):
    """A motion that does not repeat."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    time = time + jitter / rate * rng.uniform(-0.5, 0.5, size=len(time))
    q, qd, qdd = Wave(rng, joints=3, period=2.0 * seconds).motion(time)
    return make_log(time, q, torque_of(q, qd, qdd) + 0.1 * rng.normal(size=q.shape))


def test_a_periodic_log():
    """Averaged because of the finding `periodic`, with its period and count; nothing else is said."""
    kinds, text = chosen(periodic_log(1, periods=6, q_noise=1e-5, torque_noise=0.3)[1])
    assert PeriodicAverage in kinds
    assert Trim not in kinds
    assert "finding periodic: every 10 s, 6 times" in text
    assert text.count("finding") == 1


def test_a_motion_that_does_not_repeat():
    kinds, text = chosen(single())
    assert {LowPass, TrimRest, Hampel} <= kinds
    assert Resample not in kinds
    assert text.startswith("Chosen because the motion does not repeat (")


def test_irregular_timestamps():
    """Resampled because of the finding, with its numbers."""
    kinds, text = chosen(single(jitter=0.4))
    assert Resample in kinds
    assert "finding irregular-timestamps" in text
    assert "steps scatter by" in text


def test_gaps():
    kinds, text = chosen(single().rows(np.r_[0:1000, 1100:3000]))
    assert Resample in kinds
    assert "finding gaps" in text


def test_spikes_are_named_and_replaced():
    """Counts per joint as the doctor gives them; the mended effort is that without spikes."""
    _, log = periodic_log(1, joints=3, periods=6, torque_noise=0.05)
    effort = np.array(log["effort"])
    effort[[777, 3210], 1] += 20.0
    data = process(log.with_channels({"effort": effort}))
    assert "finding spikes: effort joint2 2" in " ".join(map(str, data.notes))
    assert np.abs(data.torque - process(log).torque).max() < 0.1


def settling(periods, length=3.0, period=10.0):
    """Effort and position of the first seconds are not those of the later periods."""
    wave, log = periodic_log(1, joints=3, periods=periods, period=period, q_noise=1e-5, torque_noise=0.05)
    fading = (1.0 - smooth_step(log.time / length))[:, None]
    channels = {"position": log["position"] + 0.002 * fading, "effort": log["effort"] + 8.0 * fading}
    return wave, log.with_channels(channels)


def test_a_transient_is_cut_off():
    """As the finding says where it ends; the torque is that of the settled periods, which `auto` alone would not see.

    The transient is in the effort alone, so that positions do not show it.
    """
    _, log = settling(6)
    _, clean = periodic_log(1, joints=3, periods=6, q_noise=1e-5, torque_noise=0.05)
    log = log.with_channels({"position": clean["position"]})
    data = process(log)
    text = " ".join(map(str, data.notes))
    assert "finding transient" in text
    assert "are left out" in text
    assert data.periods == 5
    steady = clean["effort"][1000:].reshape(5, 1000, 3).mean(axis=0)
    shift = round((data.pipeline[-2]["start_s"] if data.pipeline[-2]["step"] == "Trim" else 0.0) * 100.0)
    assert shift > 0
    best = min(np.abs(np.roll(steady, -k, axis=0) - data.torque).max() for k in range(1000))
    assert best < 0.2


def test_a_transient_stays_where_too_little_would_be_left():
    kinds, text = chosen(settling(3)[1])
    assert Trim not in kinds
    assert "finding transient" in text
    assert "kept" in text


def test_what_cannot_be_mended_is_told():
    """A dead effort and a saturated one: still processed, and the notes say what the doctor says."""
    _, log = periodic_log(1, joints=3, periods=6, torque_noise=0.05)
    effort = np.array(log["effort"])
    effort[:, 0] = 1.25
    limit = 0.7 * np.abs(effort[:, 1]).max()
    effort[:, 1] = np.clip(effort[:, 1], -limit, limit)
    text = " ".join(map(str, process(log.with_channels({"effort": effort})).notes))
    assert "Beware (finding dead-channel): The effort of joint1 is 1.25 in all rows." in text
    assert "Beware (finding saturated): The effort of joint2 is cut off at" in text


@pytest.mark.parametrize("rows", [20, 100])
def test_short_logs_are_judged_without_the_doctor(rows):
    """Fewer rows than the doctor needs: low-pass or a clear refusal, never a crash."""
    kinds, text = chosen(single().rows(slice(0, rows)))
    assert LowPass in kinds
    assert "does not repeat" in text


def test_the_doctor_is_imported_when_needed():
    """`armid.signals` does not import the doctor; `armid.examine` is the doctor's."""
    code = (
        "import sys, armid, armid.signals\n"
        "assert 'armid.signals.doctor' not in sys.modules\n"
        "from armid.signals.doctor import examine as same\n"
        "assert armid.examine is same\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.prove
def test_a_million_rows_are_chosen_for_in_seconds():
    """1e6 rows of 7 joints: less than 30 s of processor time, on a slow machine too."""
    import time

    _, log = periodic_log(1, joints=7, periods=100, rate=1000.0, q_noise=1e-5, torque_noise=0.2)
    start = time.process_time()
    choose(log)
    assert time.process_time() - start < 30.0
