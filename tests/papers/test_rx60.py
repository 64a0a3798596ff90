"""The RX-60 paper: its tables re-made on the virtual robot, its errors shown, its bars kept."""

import json

import numpy as np
import pytest

from armid.dynamics.base import random_motion
from armid.papers import rx60
from armid.papers.rx60_equations import torque
from armid.robot.load import load_robot
from tests.papers.experiments import row_of, rows_of, run_experiment, run_in_order

WORST = np.array([0.0256, 0.1136, 0.0252])  # Table VI, joint-wise [(N m)^2]
NOISE = np.array([0.1, 0.2, 0.1])  # of the virtual robot [N m]


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Three paths of six seconds each, two verification runs."""
    folder = tmp_path_factory.mktemp("rx60")
    options = {"R1": {"paths": ("ellipse", "helix", "free"), "seconds": 6.0}, "R2": {"runs": 2}}
    return folder, run_in_order("rx60", folder, **options)


def test_errors_are_below_table_6_and_the_unfiltered_ones_stand_beside(short):
    """Every cell of Table VI, both torques filtered; what is left unfiltered is said."""
    _, found = short
    assert {row.verdict for row in rows_of(found["R2"], "largest mean squared error")} == {"better"}
    cells = [row for row in rows_of(found["R2"], "mean squared error of joint") if "run " in row.quantity]
    assert len(cells) == 6
    assert {row.verdict for row in cells} == {"better"}
    assert all("of the unfiltered torque" in row.note for row in cells)
    worse = [row for outcome in found.values() for row in outcome.rows if row.verdict == "worse"]
    assert all("worse: " in row.note and "not known" not in row.note for row in worse)


def test_every_path_uses_the_same_share_of_the_drives():
    """The largest acceleration of a joint is between 0.7 and 0.85 of its limit on each of the six paths."""
    robot = rx60.rx60_arm()
    for name, path in rx60.tool_paths().items():
        motion = rx60.along(robot, path)
        used = motion.at(np.linspace(0.0, motion.duration, 2000)).qdd
        assert 0.7 < np.max(np.abs(used) / robot.limits.acceleration) < 0.85, name


def test_data_sheet_gives_all_constants_to_the_last_digit(short):
    rows = rows_of(short[1]["model"], "known part")
    assert len(rows) == 8
    assert all(abs(row.ours - row.published) <= 5e-5 for row in rows)


def test_spread_over_the_paths_is_below_ten_per_cent(short):
    """Tables III and IV: NumPy's spread of the saved combinations, not the row's own number."""
    _, found = short
    each = found["R1"].data["combinations"]
    for name in rx60.WELL_DETERMINED:
        values = np.array([one[name] for one in each.values()])
        spread = np.std(values, ddof=1) / abs(values.mean())
        assert spread <= 0.10, name
        row = row_of(found["R1"], f"coefficient of variation of {name}")
        assert row.ours == pytest.approx(spread)


def test_estimates_are_those_of_the_virtual_robot(short):
    """The eleven combinations come out as the truth has them: within 1 % of the largest (7 kg m^2)."""
    _, found = short
    truth, each = found["R1"].data["true_combinations"], found["R1"].data["combinations"]
    for name, value in truth.items():
        mean = np.mean([one[name] for one in each.values()])
        assert mean == pytest.approx(value, abs=0.01 * max(truth.values())), name


def test_verification_errors_lie_between_noise_and_table_6(short):
    """Joint-wise bars; and no model can go below the noise of an unfiltered torque that it is compared with."""
    _, found = short
    for one in found["R2"].data["runs"]:
        mse = np.array(one["mse"])
        assert np.all(mse <= WORST)
        assert np.all(mse < one["mse_unfiltered"])
        assert np.all(np.array(one["mse_unfiltered"]) >= 0.95 * NOISE**2)
        assert np.all(np.array(one["correlation"]) > 0.99)


def test_free_directions_change_no_torque():
    """RX-7: two directions in the thirteen alphas are invisible, and the eleven combinations do not feel them."""
    robot = rx60.rx60_arm()
    motion = random_motion(robot, 100, np.random.default_rng(1))
    alpha = np.random.default_rng(2).normal(size=16)
    for up, down in (((1, 2), (8, 13)), ((3, 7), (8, 14))):
        moved = alpha.copy()
        moved[[i - 1 for i in up]] += 1.7
        moved[[i - 1 for i in down]] -= 1.7
        np.testing.assert_allclose(torque(*motion, moved), torque(*motion, alpha), atol=1e-12)
        for name, value in rx60.combinations(moved).items():
            assert value == pytest.approx(rx60.combinations(alpha)[name], abs=1e-12), name


def test_combinations_and_free_directions_are_all_there_is():
    """Eleven independent combinations and two free directions make thirteen; the columns have rank 11."""
    matrix = np.zeros((11, 16))
    for row, parts in enumerate(rx60.COMBINATIONS.values()):
        for i, c in parts.items():
            matrix[row, i - 1] = c
    assert np.linalg.matrix_rank(matrix) == 11
    assert not np.any(matrix[:, [i - 1 for i in rx60.STAND.known]])
    motion = random_motion(rx60.rx60_arm(), 100, np.random.default_rng(3))
    columns = np.stack([torque(*motion, one).ravel() for one in np.eye(16)], axis=1)
    assert np.linalg.matrix_rank(columns) == 14
    assert np.linalg.matrix_rank(columns[:, [i - 1 for i in rx60.FREE]]) == 11


def test_printed_means_follow_from_printed_experiments():
    """Table IV is the mean and sample deviation of Table III, so that combinations may be formed from either."""
    for row in load_robot("rx60").published["alpha"]["parameters"]:
        assert np.mean(row["experiments"]) == pytest.approx(row["value"], abs=5.1e-5), row["name"]
        assert np.std(row["experiments"], ddof=1) == pytest.approx(row["std"], abs=5.1e-5), row["name"]


def test_bars_are_those_of_table_6():
    np.testing.assert_array_equal(np.max(rx60.PRINTED["table_6"], axis=0), WORST)


def test_errata_show_when_asked_for(short):
    """Gravity's printed sign (RX-3) ruins joints 2 and 3, the printed alpha15 (RX-6) joint 2."""
    _, found = short
    row = row_of(found["R2"], "RX-3 left in")
    first, second, third = (float(part) for part in row.ours.split(" / "))
    assert first < WORST[0]
    assert second > 100.0
    assert third > 1.0
    row = row_of(found["R2"], "RX-6 left in")
    assert float(row.ours.split(" / ")[1]) > 1.0
    assert rows_of(found["R1"], "torque equations as printed")
    assert len(rows_of(found["model"], "torque equations as printed")) == 5


def test_outcome_has_pictures_statistics_and_seeds(short):
    """What every run must print is there, and JSON holds it all."""
    folder, found = short
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.png")}
    pictures = {"model/frames.png", "R1/tool-paths.png", "R1/combinations.png", "R2/motion.png", "R2/torque.png"}
    assert pictures <= names
    words = " ".join(row.quantity for row in found["R1"].rows)
    for statistic in ("RMS", "mean squared", "correlation", "over noise", "sigma", "condition number", "possible"):
        assert statistic in words
    saved = json.loads((folder / "R1" / "outcome.json").read_text())
    assert len(saved["data"]["table_4"]["mean"]) == 16
    assert set(saved["data"]["table_5"]) >= {"Czz1", "Byy2", "F3"}


def test_without_as_printed_no_wrong_equation_is_used(tmp_path):
    outcome = run_experiment("rx60", "model", tmp_path, as_printed=False)
    assert not [row for row in outcome.rows if "as printed" in row.quantity]
