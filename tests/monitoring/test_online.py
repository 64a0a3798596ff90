"""`armid update`: what has changed since a fit, from ten seconds of motion or from a stream."""

import json
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.cli import main
from armid.monitoring import stretches
from tests.monitoring import stand

MORE = 1.3


def today(name, seed, more=MORE):
    """Friction of a recording over that of the arm, joint by joint."""
    n = stand.truth(name)[0].n_joints
    return more * (1.0 + stand.SPREAD * np.random.default_rng([seed, 1]).normal(size=n))


def check(name, seed):
    """Friction up by 30 % and a load of 1 kg are found; the prediction is as good as that of a new identification."""
    fit, robot = stand.fitted(name), stand.truth(name)[0]
    found = armid.update(fit, stand.recording(name, 10.0, seed, friction=MORE, payload=stand.BODY))
    change = {c.name: c for c in found.changes}
    assert abs(change["m"].change - 1.0) <= 3.0 * change["m"].sigma
    assert change["m"].unusual
    risen = today(name, seed) - today(name, 999, 1.0)  # since the recording of the fit
    for j, (c, more) in enumerate(zip(robot.virtual.coefficients, risen, strict=True), start=1):
        for kind in ("fc", "fv"):
            one = change[f"{kind}{j}"]
            assert abs(one.change - more * c[kind]) <= 3.0 * one.sigma, one
    fresh = stand.recording(name, 60.0, seed + 1, friction=MORE, payload=stand.BODY)
    new = armid.identify(robot, armid.process(fresh, robot=robot))
    other = stand.recording(name, 30.0, seed + 2, friction=MORE, payload=stand.BODY)
    before, after, again = (armid.validate(f, other, nominal=False).relative_error for f in (fit, found.fit, new))
    print(name, seed, before, after, again)
    assert after < 0.5 * before
    assert after <= 1.25 * again + 0.002


def test_friction_and_load_are_brought_up_to_date():
    """A six-joint arm."""
    check("powerball", 77)


@pytest.mark.prove
@pytest.mark.parametrize("name", ["er16", "powerball", "random217"])
@pytest.mark.parametrize("seed", [177, 277, 377])
def test_friction_and_load_of_several_arms_and_days(name, seed):
    """Other arms and recordings."""
    check(name, seed)


def test_a_fit_that_knows_no_spread_between_recordings():
    """As of linear friction: what is usual is then a share of each joint's friction."""
    fit = replace(stand.fitted("powerball"), recording=None)
    usual = armid.Online(fit).usual
    assert len(usual) == len(armid.Online(stand.fitted("powerball")).usual)
    assert (usual[:-4] > 0.0).all()


def test_nothing_new_is_reported_as_usual():
    """The same arm on another day: no load, nothing but what friction usually does."""
    found = armid.update(stand.fitted("powerball"), stand.recording("powerball", 10.0, 55))
    change = {c.name: c for c in found.changes}
    assert abs(change["m"].change) <= 3.0 * change["m"].sigma
    assert sum(c.unusual for c in found.changes) <= 2


def test_a_stream_is_the_same_as_a_log_and_forgets():
    """Sample by sample gives the log's estimate; with forgetting the old friction fades; memory does not grow."""
    fit = stand.fitted("er16")
    (part,) = stretches(fit, stand.recording("er16", 10.0, 5))
    at_once, streamed = armid.Online(fit), armid.Online(fit)
    at_once.run(part.dt, part.q, part.qd, part.tau)
    for row in zip(part.q, part.qd, part.tau, part.dt, strict=True):
        streamed.step(*row)
    wanted, found = (np.array([c.change for c in online.changes()]) for online in (at_once, streamed))
    assert np.allclose(found, wanted, rtol=1e-6, atol=1e-9)
    fading = armid.Online(fit, forget_s=5.0)
    for friction in (1.0, MORE):
        (part,) = stretches(fit, stand.recording("er16", 60.0, 6, friction=friction))
        fading.restart()
        fading.run(part.dt, part.q, part.qd, part.tau)
    assert fading.seconds < 5.1
    change = {c.name: c for c in fading.changes()}["fc1"]
    assert change.change == pytest.approx((today("er16", 6)[0] - 1.0) * 12.0, abs=3.0 * np.hypot(change.sigma, 0.36))


def test_command(tmp_path, capsys):
    """A fit is written, the JSON has its keys, words say what changed."""
    stand.fitted("er16").save(tmp_path / "fit.json")
    armid.write_log(stand.recording("er16", 10.0, 5, friction=MORE), tmp_path / "log.csv")
    words = ["update", str(tmp_path / "fit.json"), str(tmp_path / "log.csv"), "-o", str(tmp_path / "new.json")]
    assert main([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {"name", "change", "sigma", "usual", "unusual"} <= set(data["changes"][0])
    assert armid.load_fit(tmp_path / "new.json").notes[-1].code == "monitoring.updated"
    assert main(words) == 0
    assert "More than usual has changed: fc1" in capsys.readouterr().out
