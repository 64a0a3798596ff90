"""README and docs: Python examples run as printed, and figures are those of the demo."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
PICTURES = README.parent / "docs" / "pictures"
#: How far figures of a fresh demo may be from the README's, as a share: another processor finds another trajectory.
TOLERANCE, DISTANCE = 0.2, 1.0


def make_pictures():
    """The script behind `make pictures`."""
    spec = importlib.util.spec_from_file_location("make_pictures", PICTURES / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_are_those_of_the_run_behind_the_pictures():
    """The README's sentences about the demo are made from the figures that were written with the pictures."""
    make = make_pictures()
    figures = json.loads((PICTURES / "demo.json").read_text("utf-8"))
    assert make.PLACE.search(README.read_text("utf-8")).group().split("-->\n")[1].startswith(make.demo_words(figures))


@pytest.mark.prove
def test_a_fresh_demo_gives_the_figures_of_the_readme(tmp_path):
    """The same verdict; errors and counts within a fifth, the distance with the model within a factor of two."""
    from armid.run.procedure import run
    from armid.run.settings import Settings

    run(Settings(robot="pa10", to=("none",)), tmp_path / "demo")
    fresh = make_pictures().demo_figures(tmp_path / "demo")
    told = json.loads((PICTURES / "demo.json").read_text("utf-8"))
    numbers = [name for name in told if name not in ("verdict", "worst_joint", "tracking_m")]
    assert fresh["verdict"] == told["verdict"]
    assert {name: fresh[name] for name in numbers} == pytest.approx({n: told[n] for n in numbers}, rel=TOLERANCE)
    assert told["tracking_m"] / (1.0 + DISTANCE) < fresh["tracking_m"] < told["tracking_m"] * (1.0 + DISTANCE)


def test_python_example_runs(capsys):
    """Copied and pasted, the example works and prints the 21 + 14 groups' count."""
    code = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL).group(1)
    names: dict = {}
    exec(code, names)
    assert capsys.readouterr().out.startswith("21 ")
    kilobytes = sum(matrix.nbytes for matrix in names["factor"].matrices) / 1000
    assert 14 < kilobytes < 16
    assert names["W"].shape == (1000, 7, len(names["model"].base.kept))


def test_design_example_runs(capsys):
    """The example of docs/design.md makes a certified plan and a programme of 16 whole periods."""
    text = (README.parent / "docs" / "design.md").read_text("utf-8")
    names: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1), names)
    assert "all limits are kept" in capsys.readouterr().out
    begin, end = names["run"].window
    assert end - begin == 160.0


def test_shown_output_is_what_the_command_prints(capsys):
    """Every line of the README's `armid model pa10` that is shown in full is printed by the command."""
    from armid.cli import main

    assert main(["model", "pa10"]) == 0
    printed = capsys.readouterr().out
    shown = re.search(r"\$ armid model pa10\n(.*?)```", README.read_text("utf-8"), re.DOTALL).group(1)
    lines = [line for line in shown.splitlines() if line.strip() and "…" not in line]
    assert len(lines) >= 6
    for line in lines:
        assert line in printed
