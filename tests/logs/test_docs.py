"""The recipes of docs/logs.md work as they are printed."""

import re
from pathlib import Path

import numpy as np

from armid.logs import Recipe, read_log

TEXT = (Path(__file__).parents[2] / "docs" / "logs.md").read_text("utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def test_every_recipe_is_valid():
    """All of them, the parts with the joints and the effort added."""
    assert len(BLOCKS) >= 5
    for block in BLOCKS:
        if "effort: " not in block.split("columns:")[0]:  # the part about several files
            block = f"joints: [a, b, c, d, e, f]\neffort: joint torque\nrate: 1000\n{block}"
        if "joints:" in block or "rtde" in block:
            block += "" if "time:" in block or "rate:" in block or "columns:" not in block else "rate: 1000\n"
        Recipe.parse(block)


def test_the_complete_example(tmp_path):
    """Numbers worked out by hand from what the comments say."""
    (tmp_path / "recipe.yaml").write_text(BLOCKS[0], "utf-8")
    names = "ms;q_a;q_b;q_c;qd_a;qd_b;qd_c;i_1;i_2;i_3;t_1;t_3"
    row = "360,0;90,0;2000,0;60,0;30,0;0,0;1000,0;-2000,0;500,0;20,5;21,5"
    lines = ["Recorder", "serial 7", names, *(f"{k},5;{row}" for k in range(4000))]
    (tmp_path / "monday.csv").write_text("\n".join(lines))
    log = read_log(tmp_path / "recipe.yaml")
    assert len(log) == 3510 - 634
    np.testing.assert_allclose(log.time[[0, -1]], [634.5e-3, 3509.5e-3])
    joint = np.array([2 * np.pi / 100, -np.pi / 2 / 100, 2.0 / 80])
    np.testing.assert_allclose(log["position"][0], joint * [1, 1, -1] + [0, -np.pi / 2, np.pi / 2])
    np.testing.assert_allclose(log["velocity"][0], [2 * np.pi / 100, -np.pi / 100, 0])
    np.testing.assert_allclose(log["current"][0], [1.0, -2.0, -0.5])
    np.testing.assert_allclose(log["effort"][0], [11.9, -23.8, -(9.8 * 0.5 + 0.02 * 0.125)])
    np.testing.assert_array_equal(log["temperature"][0], [20.5, np.nan, 21.5])
    assert (log.info.side, log.info.effort, log.info.period_s) == ("joint", "joint torque", 10.0)
