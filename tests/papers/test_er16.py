"""The ER-16 paper: colony, correlations and excitation re-made on the virtual robot."""

import json

import numpy as np
import pytest

from armid.dynamics.model import Model
from armid.estimation.box_search import published_box
from armid.estimation.fit import load_fit
from armid.excitation.profiles import Er16Reading, er16_beta_1
from armid.papers import er16
from armid.papers.stand import true_values
from tests.papers.experiments import row_of as one_row
from tests.papers.experiments import run_experiment

IDENTIFICATION, VALIDATION = np.array([0.9533, 0.9856, 0.9801]), np.array([0.9272, 0.9534, 0.9606])


@pytest.fixture(scope="module")
def identified(tmp_path_factory):
    """R10 with three seeds of the colony and one long run."""
    folder = tmp_path_factory.mktemp("er16")
    return folder / "R10", run_experiment("er16", "R10", folder, seeds=3, long_seeds=1, evolve=False)


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    """R11 without workspace and torque limits, which take most of its time."""
    folder = tmp_path_factory.mktemp("er16")
    return folder / "R11", run_experiment("er16", "R11", folder, starts=1, constrained=False)


def test_counts_and_audit_of_table_2(tmp_path):
    """15 + 6 parameters as published; the audit's distance is that of an independent solver (0.48)."""
    outcome = run_experiment("er16", "model", tmp_path)
    assert one_row(outcome, "base parameters").ours == 15
    assert one_row(outcome, "friction parameters").ours == 6
    assert one_row(outcome, "distance").ours == pytest.approx(0.48, abs=0.01)
    assert (tmp_path / "model" / "frames.png").exists()


def test_least_squares_reaches_what_the_colony_does_not(identified):
    """At least 0.99 on all joints, on both motions."""
    _, outcome = identified
    for name in ("identification", "validation"):
        for joint in (1, 2, 3):
            row = one_row(outcome, "least squares", f"joint {joint}", name)
            assert row.ours >= 0.99
            assert row.verdict == "better"


def test_long_colony_meets_the_bars(identified):
    """500 iterations in the published box, which does not hold the arm: both above the published values."""
    _, outcome = identified
    found = outcome.data["searches"]["long"]
    assert np.all(np.min(found["identification"], axis=0) > IDENTIFICATION)
    assert np.all(np.min(found["validation"], axis=0) > VALIDATION)
    assert max(found["objective"]) < 0.15


def test_fifty_iterations_have_not_converged(identified):
    """ER-10: the paper's settings leave an objective several times that of the long run, and seeds differ."""
    _, outcome = identified
    searches = outcome.data["searches"]
    short = np.array(searches["as published"]["objective"])
    assert short.min() > 2.0 * max(searches["long"]["objective"])
    assert np.ptp(short) > 0.01
    assert len(short) == 3


def test_parameters_are_found_with_honest_intervals(identified):
    """17 or more of 21 intervals of the default estimator hold the truth; least squares comes within 5 %."""
    _, outcome = identified
    assert one_row(outcome, "95 % interval").ours >= 17
    found = outcome.data["least_squares"]
    truth = true_values(er16.er16_arm())
    assert np.linalg.norm(np.array(found["values"]) - truth) < 0.05 * np.linalg.norm(truth)
    assert found["condition_number"] == pytest.approx(6.1, abs=0.3)


def test_correlation_is_numpys(identified):
    """(18) by another hand, and the noise is five per cent of the torque."""
    folder, outcome = identified
    robot, path = er16.er16_arm(), er16_beta_1()
    noise = np.array(outcome.data["torque_noise"])
    data = er16.prepare(er16.record(robot, path, noise, 0), robot, path, noise)
    fit = load_fit(folder / "fit.json")
    predicted = fit.predict(data.motion, sigma=False).torque[data.rows]
    for j, value in enumerate(er16.correlations(fit, data)):
        assert value == pytest.approx(np.corrcoef(data.torque[:, j], predicted[:, j])[0, 1], abs=1e-12)
    np.testing.assert_allclose(noise / np.std(predicted, axis=0), 0.05, rtol=0.1)
    assert data.time[-1] - data.time[0] == pytest.approx(25.0, abs=0.01)
    assert data.rate_hz == pytest.approx(1000.0)


def test_the_published_box_does_not_hold_the_arm(identified):
    """Known beforehand from the truth: Izz1, Izz2, Izz3 and fc2 lie outside; exchanging two rows mends fc2 (ER-3)."""
    _, outcome = identified
    assert outcome.data["outside_published_box"] == ["Izz1", "Izz2", "Izz3", "fc2"]
    robot = er16.er16_arm()
    swapped = er16.box_of_table_3(robot, swapped=True)
    assert swapped["fc2"] == published_box(robot, "table-2")["fv2"] == (-30.0, 30.0)


def test_the_colony_is_judged_with_the_papers_own_settings(identified):
    """Seven numbers of its 50 iterations; what more give is said. A worse one says why."""
    _, outcome = identified
    rows = [row for row in outcome.rows if row.quantity.startswith("bee colony")]
    assert len(rows) == 7
    assert {row.verdict for row in rows} <= {"worse", "match", "better"}
    short = outcome.data["searches"]["as published"]
    chosen = int(np.argmin(short["objective"]))
    assert [row.ours for row in rows[:3]] == pytest.approx(short["identification"][chosen])
    assert all("stop on the way" in row.note for row in rows if row.verdict == "worse")
    assert all("iterations" in row.note for row in rows)


def test_new_excitation_is_better_conditioned_than_the_published(designed):
    """beta_1: 60 to 63 raw and 6.1 scaled by two readings (figures of an independent audit); ours is below both."""
    _, outcome = designed
    theirs = outcome.data["beta_1"]
    printed = er16.PRINTED.condition_beta_1
    for one in theirs.values():
        assert printed.raw[0] - 0.5 < one["condition_raw"] < printed.raw[1] + 0.5
    assert theirs["q0,a,b"]["condition"] == pytest.approx(printed.scaled, abs=0.1)
    ours = outcome.data["optimal"]
    assert outcome.data["certified"]
    assert ours["condition_raw"] <= min(one["condition_raw"] for one in theirs.values())
    assert ours["condition"] <= min(one["condition"] for one in theirs.values())


def test_condition_number_is_numpys(designed):
    """Of the stacked regressor itself."""
    robot, series = er16.er16_arm(), er16_beta_1(Er16Reading("q0,a,b"))
    model = Model(robot)
    motion = series.at(np.arange(512) * series.duration / 512)
    regressor = model.regressor(*motion, model.base.kept).reshape(-1, 21)
    _, outcome = designed
    assert outcome.data["beta_1"]["q0,a,b"]["condition_raw"] == pytest.approx(np.linalg.cond(regressor), rel=1e-6)
    scaled = np.linalg.cond(regressor / np.linalg.norm(regressor, axis=0))
    assert outcome.data["beta_1"]["q0,a,b"]["condition"] == pytest.approx(scaled, rel=1e-6)


def test_only_the_colony_as_published_is_worse_and_errata_are_named(identified, designed):
    rows = [*identified[1].rows, *designed[1].rows]
    notes = " ".join(row.note for row in rows)
    for erratum in ("ER-1", "ER-2", "ER-3", "ER-4", "ER-5", "ER-10"):
        assert erratum in notes
    assert not [row.quantity for row in rows if row.verdict == "worse" and "colony as published" not in row.quantity]


def test_pictures_and_statistics(identified, designed):
    names = {path.name for folder, _ in (identified, designed) for path in folder.glob("*.png")}
    assert names >= {"evolution.png", "motion-beta-1.png", "motion-beta-2.png", "motion-optimal.png", "tool-path.png"}
    assert sum(name.startswith("torque-") for name in names) == 4
    saved = json.loads((identified[0] / "outcome.json").read_text())
    assert len(saved["data"]["least_squares"]["relative_sigma"]) == 21
    words = " ".join(row["quantity"] for row in saved["rows"])
    for statistic in ("RMS", "mean squared", "correlation", "over noise", "sigma", "condition number", "possible"):
        assert statistic in words
