"""IR 361 (R3, R4): the paper's numbers on the virtual robot; short versions here, full size in `make prove`."""

import numpy as np
import pytest

pytest.importorskip("mujoco")
pytest.importorskip("matplotlib")

from armid.papers import ir361
from armid.papers.stand import TorqueCheck, true_values
from tests.papers.experiments import rows_of as rows
from tests.papers.experiments import run_experiment


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ir361")


@pytest.fixture(scope="module")
def run(folder):
    """Runs an experiment once in the module's folder."""
    done = {}

    def once(name, **options):
        if name not in done:
            done[name] = run_experiment("ir361", name, folder, earlier=done, **options)
        return done[name]

    return once


@pytest.fixture(scope="module")
def design(run):
    return run("design", starts=1)


@pytest.fixture(scope="module")
def identified(design, run):
    return run("R3", periods=16, beside=False)


def test_counts_of_the_paper(run):
    """15 link, 1 rotor, 6 friction and 2 spring parameters; 23 in all if axes 1 and 2 crossed (SW-10)."""
    outcome = run("model")
    assert [row.ours for row in outcome.rows] == [15, 1, 6, 2, 24, 23]
    assert all(row.verdict == "match" for row in outcome.rows[:5])


def test_design_beats_random_motion_and_keeps_limits(design, folder):
    assert design.rows[0].ours > design.rows[0].bar
    assert rows(design, "limits")[0].ours == "kept"
    assert (folder / "design" / "tool-path.png").stat().st_size > 10_000


def test_simple_friction_comes_down_to_the_noise(identified):
    """R3: RMS over noise at most 1.2 on moving samples, and at most 1.9 with rich friction; 24 parameters."""
    for words, bar in (("Coulomb and viscous", 1.2), ("rich friction", 1.9)):
        found = rows(
            identified, f"{words} friction: RMS over noise on samples".replace("friction friction", "friction")
        )
        assert len(found) == 3
        assert all(row.ours <= bar == row.bar and row.verdict == "no number" for row in found)
    assert len(identified.data["simple"]["statistics"]["parameters"]) == 24


def test_noise_and_its_two_errata(identified):
    """(5) with the right divisor finds Table 1's noise; as printed it is low by the root of 15/16 (SW-1)."""
    assert all(row.verdict == "recovered" for row in rows(identified, "noise of the averaged torque"))
    printed = rows(identified, "as printed over")[0].ours
    assert np.allclose([float(value) for value in printed.split("/")], np.sqrt(15.0 / 16.0), atol=2e-4)
    assert rows(identified, "noise of the average of 16")[0].verdict == "no number"


def test_rich_friction_peaks_at_reversals(identified):
    """Errors near reversals stand out, as in Fig. 8."""
    assert np.all(np.array(identified.data["rich"]["reversal_over_elsewhere"]) > 1.3)


def test_friction_changes_sides_over_the_distance_that_the_arm_has(identified):
    """The stand's bristles bend by 0.1 mrad; friction that jumps has no distance that an encoder of 15 µrad shows."""
    rich, simple = (np.array(identified.data[name]["presliding"]) for name in ("rich", "simple"))
    assert np.all((rich > 3e-5) & (rich < 3e-4))
    assert np.all(simple < 2e-5)


def test_statistics_are_all_there(identified):
    told = identified.data["rich"]
    assert {"rms", "mse", "correlation", "noise_ratio", "statistics"} <= set(told)
    judged = told["statistics"]
    assert {"sigma", "relative_sigma", "condition_number", "feasibility_distance"} <= set(judged)
    assert np.allclose(np.square(told["rms"]), told["mse"])


def test_covariance_of_a_few_experiments(design, run):
    """(11) covers the truth at its rate; with the variance of one period it is four times too wide (SW-2)."""
    outcome = run("covariance", draws=12)
    assert abs(rows(outcome, "by (11), 12")[0].ours - 0.954) < 0.06
    assert rows(outcome, "one period")[0].ours > 0.999
    assert np.all(np.abs(outcome.data["bias_over_sigma"]) < 2.0)


def test_short_validation(identified, run):
    """R4 with eight points and eight rounds: below Table 2 on every joint and with both frictions."""
    outcome = run("R4", points=8, repetitions=8)
    found = rows(outcome, "Table 2")
    assert len(found) == 6
    assert all(row.ours < row.published and row.verdict == "better" for row in found)


def test_exact_differentiation_leaves_one_line_of_noise():
    """Theory: noise sigma on K samples leaves sigma omega sqrt(2/K) in the velocity of one harmonic."""
    errors = []
    for seed in range(40):
        _, position, exact, _, true = ir361.differentiation_demo(seed)
        errors.append(np.mean((exact - true) ** 2))
    expected = 0.01 * 2.0 * np.pi * 0.1 * np.sqrt(2.0 / len(position))
    assert np.sqrt(np.mean(errors)) == pytest.approx(expected, rel=0.25)


def test_truth_has_the_arm_that_mujoco_moves():
    """Base parameters called true give MuJoCo's torque along random motion."""
    from armid.dynamics.base import random_motion
    from armid.experiment.physics import Physics
    from armid.torque.model import model_of

    robot = ir361.ir361_arm()
    motion = random_motion(robot, 20, np.random.default_rng(0))
    truth, physics = robot.virtual, Physics(robot, robot.virtual, None)
    regressor = model_of(robot).regressor(*motion, model_of(robot).base.kept)
    torque = regressor @ true_values(robot)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        mass, bias = physics.joint_space(q, v)
        friction = [c["fv"] * s + c["fc"] * np.sign(s) for c, s in zip(truth.coefficients, v, strict=True)]
        expected = mass @ a + bias + friction
        spring, (k, free) = robot.springs[0], truth.springs[0]
        angle = q[1] - spring.phi
        length = np.sqrt(spring.a**2 + spring.b**2 - 2.0 * spring.a * spring.b * np.cos(angle))
        expected[1] += k * spring.a * spring.b * np.sin(angle) * (1.0 - free / length)
        assert torque[row] == pytest.approx(expected, abs=1e-6)


def test_prediction_figures_by_hand():
    """RMS, ratio on moving samples and peaks of a made-up prediction."""
    error = np.array([[3.0], [4.0], [0.0], [12.0]])
    moving = np.array([[0.1], [0.1], [0.01], [-0.2]])
    near = np.array([[False], [False], [False], [True]])
    check = TorqueCheck(("joint1",), np.arange(4.0), moving, error, np.zeros((4, 1)), np.array([2.0]), near)
    assert check.rms()[0] == pytest.approx(6.5)
    assert check.ratio(0.05)[0] == pytest.approx(np.sqrt((9 + 16 + 144) / 3) / 2.0)
    assert check.peaks[0] == pytest.approx(12.0 / np.sqrt(25.0 / 3.0))
