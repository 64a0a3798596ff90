"""Powerball (R12 to R15) on the virtual robot: short versions of the experiments; full size in `make prove`."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("matplotlib")

from armid.estimation.single_joint.friction_fit import FrictionPoints, fit_friction
from armid.experiment.friction_runs import powerball_speeds
from armid.experiment.settings import Thermal
from armid.papers import powerball
from armid.papers.bench import PaperBench, PaperOutcome
from armid.robot.load import load_robot
from tests.papers.experiments import rows_of as rows
from tests.papers.experiments import run_experiment

ROBOT = load_robot("powerball")


def points_of(joint, rng):
    """What a sweep of twenty seconds per speed would give: Table 2 with the noise of its means."""
    truth, noise = ROBOT.virtual, ROBOT.virtual.torque_noise[joint] / np.sqrt(4000.0)
    speed = np.concatenate([-powerball_speeds()[::-1], powerball_speeds()])
    torque = truth.friction[joint].torque(speed, truth.coefficients[joint]) + noise * rng.normal(size=len(speed))
    same = np.full(len(speed), noise), np.full(len(speed), 20.0)
    return FrictionPoints(ROBOT.joint_names[joint], speed, torque, *same, "made up")


@pytest.fixture(scope="module")
def curves():
    rng = np.random.default_rng(0)
    return [fit_friction(points_of(joint, rng), "hyperbolic") for joint in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("powerball")


@pytest.fixture(scope="module")
def excitation(folder):
    return run_experiment("powerball", "R14", folder, starts=1)


def test_twenty_nine_is_no_rank(folder):
    """PB-1: 23 base parameters, 19 with gear ratio 1; the paper's 29 columns have rank 19; Table 3 is no arm."""
    outcome = run_experiment("powerball", "model", folder)
    assert outcome.data["counts"] == {
        "equation (12), gear ratios 160 and 100": 23,
        "equation (12), no rotors": 19,
        "rank of the paper's 29 columns (gear ratio 1)": 19,
        "independent combinations told by Table 3": 19,
        "no zeros, gear ratios 160 and 100": 40,
    }
    assert len(powerball.STAND.columns_29) == len(set(powerball.STAND.columns_29)) == 29
    assert rows(outcome, "possible")[0].ours > 0.1
    assert not [row for row in outcome.rows if row.verdict == "worse"]


def test_short_warm_up(folder):
    """R12 with grease that warms in 15 s: ends by itself, right time constant, friction repeats afterwards.

    The signed mean of a symmetric cycle is near zero (PB-13).
    """
    outcome = run_experiment("powerball", "R12", folder, thermal=Thermal(time_constant_s=15.0), cycle_s=2.0)
    assert outcome.data["warm"]
    for part, wanted in (("ends by itself", "match"), ("time constant", "recovered"), ("measured twice", "no number")):
        assert rows(outcome, part)[0].verdict == wanted
    assert rows(outcome, "signed as printed")[0].ours < 0.05
    assert outcome.data["drop"] > 0.05


def test_short_friction_sweeps(folder):
    """R13, one joint in each mounting, three seconds per speed: curves within noise."""
    outcome = run_experiment("powerball", "R13", folder, joints=(2, 4), seconds=3.0, as_printed=False)
    assert outcome.data["mountings"] == {"2": "base horizontal, x0 up", "4": "as mounted"}
    assert rows(outcome, "base upright")[0].verdict == "match"
    assert all(row.verdict == "recovered" for row in rows(outcome, "distance of the curve"))
    assert rows(outcome, "falls with speed")[0].ours == 0.0


def test_table_two_from_points(curves, tmp_path):
    """Points with the noise of a long sweep: gamma5 and gamma1 + gamma3 within 2 % for all six joints."""
    bench = PaperBench("powerball", "R13", tmp_path)
    powerball.compare_friction(bench, curves, ROBOT)
    assert [row.verdict for row in bench.rows] == ["recovered"] * 18
    fifth = rows(PaperOutcome(tuple(bench.rows)), "joint 5: largest distance")[0]
    assert float(fifth.note.split("first, ")[1].split()[0]) == pytest.approx(0.28, rel=0.1)  # printed second


def test_excitation_beats_random_motion(excitation, folder):
    """R14: cond(Y), the smallest singular value and G better than the best of 25 random series; limits kept.

    In the paper's 29 columns cond(Y) is infinite but for rounding.
    """
    assert all(row.verdict == "no number" for row in rows(excitation, "(17)"))
    assert rows(excitation, "limits")[0].ours == "kept"
    assert rows(excitation, "29 columns")[0].ours > 1e12
    assert (folder / "R14" / "motion.png").stat().st_size > 10_000


def test_short_identification(excitation, curves, folder):
    """R15 with two periods: NRMS at most 5 % on all six axes of the second sinusoid; 23 parameters.

    Filters that differ between the sides (PB-17) do worse on every axis.
    """
    friction = PaperOutcome((), data={"fits": [{"number": j + 1, **fit.to_data()} for j, fit in enumerate(curves)]})
    outcome = run_experiment("powerball", "R15", folder, earlier={"R13": friction, "R14": excitation}, periods=2)
    found = rows(outcome, "Fig. 8, joint")
    assert len(found) == 6
    assert all(row.ours <= 0.05 == row.bar and row.verdict == "no number" for row in found)
    assert len(outcome.data["statistics"]["parameters"]) == 23
    printed = [float(value) for value in rows(outcome, "filters as printed")[0].ours.split("/")]
    assert np.all(np.array(printed) > outcome.data["nrms"])
    assert {"rms", "mse", "correlation", "noise_ratio"} <= set(outcome.data)


def test_second_sinusoid_keeps_limits_and_is_another_motion(excitation):
    series, limits = powerball.second_sinusoid(ROBOT), ROBOT.limits
    extrema = series.extrema()
    assert np.all(extrema.lower > limits.lower)
    assert np.all(extrema.upper < limits.upper)
    assert np.all(extrema.velocity < limits.velocity)
    assert np.all(extrema.acceleration < limits.acceleration)
    assert np.all(extrema.upper - extrema.lower > 0.5 * (limits.upper - limits.lower))
    assert np.all(np.count_nonzero(np.hypot(series.sine, series.cosine), axis=1) == 1)
