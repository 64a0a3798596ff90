"""The Python examples of README and docs run as printed."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


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
