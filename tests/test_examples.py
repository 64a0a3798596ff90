"""The examples: each runs as it stands, is short, and prints what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
LONGEST = 60  # lines


def output_of(name):
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_five_scripts_and_all_are_short():
    assert len(SCRIPTS) >= 5
    for script in SCRIPTS:
        assert len(script.read_text("utf-8").splitlines()) < LONGEST, script.name


def test_library_robot():
    assert "ir361: good" in output_of("library_robot.py")


def test_own_urdf_and_csv():
    """Better than the CAD values of the URDF, on every joint."""
    text = output_of("own_urdf_csv.py")
    assert "little_arm: good" in text
    rows = re.findall(r"^ *(?:turn|lift|bend|twist) .*?([\d.]+)%  \d\.\d+ .* ([\d.]+)%$", text, re.MULTILINE)
    assert len(rows) == 4
    assert all(float(identified) < float(nominal) for identified, nominal in rows)


def test_ros_bag():
    text = output_of("ros_bag.py")
    assert re.search(r"36 of 36 parameters are determined|little_arm: \d+ parameters, mixed", text)


def test_payload():
    text = output_of("payload.py")
    true, found = map(float, re.search(r"true mass ([\d.]+) kg, found ([\d.]+) kg", text).groups())
    assert abs(found - true) < 0.02 * true
    assert "little_arm: good" in text


def test_computed_torque():
    """The identified model tracks better than the URDF's, and better than no model."""
    text = output_of("computed_torque.py")
    pid, urdf, identified = (float(value) for value in re.findall(r"path +([\d.]+) mm", text))
    assert identified < urdf / 5
    assert identified < pid / 5


def test_notebook(tmp_path):
    notebook = nbformat.read(EXAMPLES / "identify.ipynb", as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert len(code.splitlines()) < LONGEST
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    last = notebook.cells[-1].outputs[-1]
    assert "image/png" in last.data


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_say_what_they_show(script):
    assert script.read_text("utf-8").startswith('"""')
