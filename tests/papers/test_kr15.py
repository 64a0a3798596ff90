"""The KR 15 payload: a small reproduction and the counting of Table 3; the full one is in `make prove`."""

import numpy as np
import pytest

from armid.papers import kr15
from armid.papers.bench import PaperBench
from armid.robot.load import load_robot
from tests.papers.experiments import run_in_order


def ours(outcome, quantity):
    """The row of a quantity."""
    return next(row for row in outcome.rows if row.quantity == quantity)


def test_small(tmp_path, monkeypatch):
    """Two trajectories of two periods: mass within 5 %, centre within 1 cm, a possible body, all pictures."""
    monkeypatch.setattr(kr15.STAND, "iterations", 100)
    monkeypatch.setattr(kr15.STAND.arm, "periods", 4)
    found = run_in_order("kr15", tmp_path, design={"runs": 2}, payload={"runs": 2, "periods": 2})
    table = found["payload"]
    assert ours(table, "mass, error of the mean").ours <= 0.05
    assert ours(table, "centre of mass, largest error of the mean").ours <= 0.01
    assert (
        ours(table, "smallest eigenvalue of the mean's pseudo-inertia (a body can exist if it is positive)").ours > 0.0
    )
    assert ours(table, "reference values within 2 σ of the published spread").ours == 10
    assert ours(found["design"], "parameters: payload and friction of four joints").verdict == "match"
    assert ours(found["design"], "column-scaled condition number, largest of the trajectories").ours <= 10.0
    pictures = {path.name for path in tmp_path.rglob("*.png")}
    assert {"frames.png", "motion.png", "tool-path.png", "table-3.png", "torque-validation.png"} <= pictures


def test_counting_as_the_paper_does(tmp_path):
    """Experiments with the printed means and spreads give the printed counts: 10 by 2 σ, 5 by 2 σ/√10 (SW-6)."""
    table = kr15.table_3(load_robot("kr15"))
    pattern = np.array([1.0, -1.0] * 5)[:, None] * 0.999 * np.sqrt(9.0 / 10.0)
    values = table.mean + pattern * table.sigma
    bench = PaperBench("kr15", "payload", tmp_path)
    kr15.compare_claims(bench, values, table, values)
    by_name = {row.quantity: row for row in bench.rows}
    assert by_name["reference values within 2 σ of single experiments"].ours == 10
    strict = by_name["reference values within 2 σ/√10, the test of a mean"]
    assert (strict.ours, strict.published) == (5, 5)
    assert by_name["mass, error of the mean"].ours == pytest.approx(0.039 / 9.579)
    (possible,) = [row for name, row in by_name.items() if "pseudo-inertia" in name]
    assert possible.ours == pytest.approx(-0.012, abs=0.001)
    assert "triangle" in possible.note
    bench.rows.clear()
    kr15.compare_table(bench, values, table)
    assert len(bench.rows) == 20
    assert all(row.ours == pytest.approx(row.published, rel=0.01, abs=1e-6) for row in bench.rows)
    assert "Table 3" in kr15.table_figure(values, np.ones_like(values) * table.sigma, table).get_suptitle()
