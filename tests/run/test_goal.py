"""Goals of `armid run --until`: where a fit is, what more motion brings, and a run that goes on until it is there."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import armid
from armid.cli import main
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.estimation.least_squares import WeightedLeastSquares
from armid.run import procedure
from armid.run.goal import Goal, GoalStanding, Outlook
from armid.run.procedure import run, stages_of
from armid.run.settings import make_settings
from armid.run.stages import Workplace
from armid.signals import Dataset
from tests.exporting.arms import states, truth

SMALL = {
    **{"robot": "ir361", "no_warmup": True, "starts": 1, "harmonics": 3, "period": 6.0, "rate": 100.0, "periods": 1},
    **{"to": ("none",), "method": "wls", "friction": "linear", "track": "none"},
}


def data_of(robot, rows, seed):
    """Torque of random states with noise."""
    motion = states(robot, rows, seed)
    torque = armid.Model(robot).inverse_dynamics(*motion, truth(robot))
    torque += 2.0 * np.random.default_rng(seed + 1).normal(size=torque.shape)
    return Dataset(robot.joint_names, 0.01 * np.arange(rows), *motion, torque, np.arange(rows))


@pytest.mark.parametrize(
    ("words", "goal"),
    [
        (["mx2R", "2%"], Goal("mx2R", 0.02)),
        (["torque 1 %"], Goal("torque", 0.01)),
        (["torque:.5%"], Goal("torque", 0.005)),
    ],
)
def test_goals_in_words(words, goal):
    assert Goal.parse(words) == goal


@pytest.mark.parametrize("words", [["torque"], ["2%"], ["torque", "two", "%"], ["torque", "0%"], ["a", "b", "1%"], []])
def test_words_that_are_no_goal(words):
    with pytest.raises(ArmidError, match="is no goal"):
        Goal.parse(words)


@pytest.mark.parametrize("what", ["torque", "Izz1R", "fv3"])
@pytest.mark.parametrize("seed", [0, 10])
def test_the_outlook_comes_true(what, seed):
    """What is foretold for four times the motion is what a fit of that motion has; so is the time it takes."""
    robot = armid.load_robot("ir361")
    check = Motion(*states(robot, 300, 99))
    data = data_of(robot, 500, seed)
    more = data_of(robot, 1500, seed + 1)
    outlook = Outlook(Goal(what, 1e-3), WeightedLeastSquares().fit(robot, data), [data], check)
    standing = outlook.standing(Motion(more.q, more.qd, more.qdd))
    fit = WeightedLeastSquares().fit(robot, [data, more])
    later = Outlook(Goal(what, 1e-3), fit, [data, more], check).standing(Motion(more.q, more.qd, more.qdd))
    assert standing.outlook[1][0] == pytest.approx(3.0 * standing.seconds)
    assert later.share == pytest.approx(standing.outlook[1][1], rel=0.15)
    assert later.share == pytest.approx(0.5 * standing.share, rel=0.2)
    goal = Goal(what, 0.5 * standing.share)
    needed = Outlook(goal, WeightedLeastSquares().fit(robot, data), [data], check).standing(
        Motion(more.q, more.qd, more.qdd)
    )
    assert needed.seconds_more == pytest.approx(3.0 * standing.seconds, rel=0.2)


def test_a_mean_of_periods_counts_as_all_of_them():
    """Four periods in one: four times the seconds so far, and four times those that are still needed."""
    robot = armid.load_robot("ir361")
    data = data_of(robot, 500, 0)
    fit, check = WeightedLeastSquares().fit(robot, data), Motion(*states(robot, 300, 99))
    following, found = Motion(*states(robot, 500, 5)), []
    for one in (data, replace(data, periods=4)):
        found.append(Outlook(Goal("torque", 1e-3), fit, [one], check).standing(following))
    assert found[1].seconds == pytest.approx(4.0 * found[0].seconds)
    assert found[1].outlook[0][1] == pytest.approx(found[0].outlook[0][1])


def test_friction_that_no_motion_shows_is_named(tmp_path):
    """A term beyond the arm's parameters that makes most of the interval stays in the outlook, and is the reason."""
    robot = armid.load_robot("ir361")
    data, check = data_of(robot, 500, 0), Motion(*states(robot, 300, 99))
    fit = WeightedLeastSquares().fit(robot, data)
    outlook = Outlook(Goal("torque", 1e-3), fit, [data], check)
    outlook.fit = SimpleNamespace(**{**vars(fit), "columns": (*fit.columns[:-1], "sr1")})
    outlook._names = fit.columns[:-1]
    covariance = fit.covariance.copy()
    covariance[-1, :], covariance[:, -1] = 0.0, 0.0
    covariance[-1, -1] = 1e6 * np.abs(fit.covariance).max()
    outlook.fit.covariance, outlook.fit.weights, outlook.fit.torque_model = covariance, fit.weights, fit.torque_model
    standing = outlook.standing(check)
    assert standing.mostly == "sr1"
    assert standing.seconds_more is None
    assert standing.outlook[-1][1] == pytest.approx(standing.share, rel=0.01)
    assert "sr1" in standing.sentence()


def test_goals_that_are_reached_or_unknown():
    """A goal that is reached says so; a parameter that is none is named with the nearest."""
    robot = armid.load_robot("ir361")
    data = data_of(robot, 500, 0)
    fit, check = WeightedLeastSquares().fit(robot, data), Motion(*states(robot, 50, 1))
    outlook = Outlook(Goal("torque", 0.5), fit, [data], check)
    assert outlook.reached
    assert "which is enough" in outlook.standing(None).sentence()
    with pytest.raises(ArmidError, match=r"Izz1r.*Izz1R"):
        Goal("Izz1r", 0.1).check(robot)
    Goal("Izz1R", 0.1).check(robot)


def test_out_of_reach_is_said():
    """Motion that tells nothing of a parameter does not bring it: more than an hour, and no seconds are promised."""
    robot = armid.load_robot("ir361")
    data = data_of(robot, 500, 0)
    outlook = Outlook(
        Goal("torque", 1e-6), WeightedLeastSquares().fit(robot, data), [data], Motion(*states(robot, 50, 1))
    )
    still = np.zeros((10, robot.n_joints))
    standing = outlook.standing(Motion(still, still, still))
    assert standing.seconds_more is None
    assert "more than an hour" in standing.sentence()


@pytest.mark.parametrize(
    ("shares", "more", "experiments"),
    [
        ([0.005], [0.0], 1),
        ([0.08, 0.02, 0.009], [200.0, 90.0, 0.0], 3),
        ([0.08, 0.07], [None, None], 2),  # one outlook is not enough to give up
        ([0.08, 0.04, 0.079, 0.01], [500.0] * 4, 3),  # no longer shrinks
        ([0.08, 0.06, 0.05, 0.04], [500.0] * 4, 4),  # as many as are allowed
    ],
)
def test_when_experiments_end(tmp_path, monkeypatch, shares, more, experiments):
    """Reached, out of reach, stuck, or enough of them; each stage is carried out once, and all together are a run's."""
    settings = make_settings({**SMALL, "until": ("torque", "1%"), "rounds": 4})
    done = []
    standings = [GoalStanding("torque", 0.01, a, a < 0.01, 9.0, b, ()) for a, b in zip(shares, more, strict=True)]
    monkeypatch.setattr(procedure, "carry_out", lambda stages, place, tell: [done.append(s.name) or s for s in stages])
    monkeypatch.setattr(procedure, "standing_of", lambda folder, number: standings[number - 1])
    rounds = procedure._experiments(Workplace(tmp_path, settings, lambda text, share: None), lambda stage: None)
    assert len(rounds) == experiments
    assert done == [stage.name for stage in stages_of(settings, experiments)][: len(done)]
    assert done[-1] == f"next-{experiments}"


@pytest.mark.prove
def test_a_run_goes_on_until_it_is_there(tmp_path, capsys):
    """Another experiment, planned for what the first left open, brings the accuracy; the run again repeats nothing."""
    folder = tmp_path / "run"
    outcome = run(make_settings({**SMALL, "until": ("torque", "1%")}), folder)
    until = outcome.numbers["until"]
    assert until["experiments"] >= 2
    assert until["reached"]
    assert until["share"] <= 0.01
    first = json.loads((folder / "next-1/standing.json").read_text())
    assert first["share"] > 0.01
    assert 0.0 < first["seconds_more"] < 3600.0
    assert (folder / "training-2.parquet").exists()
    assert (folder / "fit.json").read_bytes() == (folder / f"fit-{until['experiments']}.json").read_bytes()
    again = run(make_settings({**SMALL, "until": ("torque", "1%")}), folder)
    assert all(stage.kept for stage in again.stages)


@pytest.mark.prove
def test_own_logs_wait_for_the_next_one(tmp_path, capsys):
    """With logs of one's own the plan of the next experiment lies there, with how long it will take; exit code 1."""
    robot = armid.load_robot("ir361")
    plan = armid.design(robot, armid.Fourier(harmonics=3, period=6.0), rate_hz=100.0, starts=1)
    logs = [tmp_path / f"{name}.parquet" for name in "ab"]
    for seed, path in enumerate(logs):
        armid.write_log(armid.VirtualRobot(robot, rate_hz=100.0, seed=seed).run(plan, periods=1), path)
    words = ["run", "ir361", "--log", str(logs[0]), "--validation", str(logs[1]), "--no-warmup", "--starts", "1"]
    words += ["--harmonics", "3", "--period", "6", "--rate", "100", "--method", "wls", "--to", "none"]
    assert main([*words, "--until", "Ixx2R", "0.01%", "-o", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().out
    assert "Ixx2R 0.01 %: ±" in said
    assert f"next motion to record: {tmp_path / 'run/next-1/plan.json'}; run again" in said
    assert json.loads((tmp_path / "run/run.json").read_text())["numbers"]["until"]["plan"] == "next-1/plan.json"
    assert armid.load_plan(tmp_path / "run/next-1/plan.json").certified
