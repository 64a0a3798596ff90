"""The KR 15 payload: a small reproduction, the counting of Table 3, and the full one as a proof."""

from inspect import signature

import numpy as np
import pytest

from armid.papers import kr15
from armid.papers.experiment import Bench
from armid.papers.kr15_bench import kr15_arm, printed
from armid.papers.kr15_pictures import table_figure


def reproduce(folder, **size):
    """Outcomes of the paper's experiments, in order."""
    found = {}
    for experiment in kr15.EXPERIMENTS:
        place = folder / experiment.name
        place.mkdir()
        bench = Bench("kr15", experiment.name, place, earlier=found)
        options = {key: value for key, value in size.items() if key in signature(experiment.run).parameters}
        found[experiment.name] = experiment.run(bench, **options)
    return found


def ours(outcome, quantity):
    """The row of a quantity."""
    return next(row for row in outcome.rows if row.quantity == quantity)


def test_small(tmp_path):
    """Two trajectories of three periods: mass within 1 %, centre within 5 mm, a possible body, all pictures."""
    found = reproduce(tmp_path, runs=2, periods=3)
    table = found["payload"]
    assert ours(table, "mass, error of the mean").ours <= 0.01
    assert ours(table, "centre of mass, largest error of the mean").ours <= 0.005
    assert ours(table, "a body with the mean can exist").verdict == "better"
    assert ours(table, "reference values within 2 σ of the published spread").ours == 10
    assert ours(found["design"], "parameters: payload and friction of four joints").verdict == "match"
    assert ours(found["design"], "column-scaled condition number, largest of the trajectories").ours <= 10.0
    pictures = {path.name for path in tmp_path.rglob("*.png")}
    assert {"frames.png", "motion.png", "tool-path.png", "table-3.png", "torque-validation.png"} <= pictures


def test_counting_as_the_paper_does(tmp_path):
    """Experiments with the printed means and spreads give the printed counts: 10 by 2 σ, 5 by 2 σ/√10 (SW-6)."""
    table = printed(kr15_arm())
    pattern = np.array([1.0, -1.0] * 5)[:, None] * 0.999 * np.sqrt(9.0 / 10.0)
    values = table.mean + pattern * table.sigma
    bench = Bench("kr15", "payload", tmp_path)
    by_name = {row.quantity: row for row in kr15._claim_rows(bench, values, table)}
    assert by_name["reference values within 2 σ of single experiments"].ours == 10
    strict = by_name["reference values within 2 σ/√10, the test of a mean"]
    assert (strict.ours, strict.published) == (5, 5)
    assert by_name["mass, error of the mean"].ours == pytest.approx(0.039 / 9.579)
    possible = kr15._possible_rows(bench, values, table)[0]
    assert possible.verdict == "worse"
    assert "triangle" in possible.ours
    rows = kr15._table_rows(bench, values, table)
    assert len(rows) == 20
    assert all(row.verdict != "worse" for row in rows)
    assert "Table 3" in table_figure(values, np.ones_like(values) * table.sigma, table).get_suptitle()


@pytest.mark.prove
def test_full(tmp_path):
    """Ten trajectories of ten periods: no row is worse than published; all ten references within 2 σ of one run."""
    found = reproduce(tmp_path)
    rows = [row for outcome in found.values() for row in outcome.rows]
    assert not [row for row in rows if row.verdict == "worse"]
    assert ours(found["payload"], "reference values within 2 σ of single experiments").ours == 10
