"""The examples: each runs as it stands, is short, and prints what it promises."""

import importlib.util
import re
import sys
import types
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import armid
from armid.excitation.polynomial import quintic
from tests.remembering import remembered, shorter  # noqa: F401

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
LONGEST = 60  # lines


@pytest.fixture(params=[shorter, pytest.param(str, marks=pytest.mark.prove, id="as printed")])
def size(request):
    """Whether an example has a shorter experiment, or is run as printed."""
    return request.param


@pytest.fixture
def output_of(size, capsys):
    """What a script prints that is run as a program."""

    def run(name):
        path = EXAMPLES / name
        code = compile(size(path.read_text("utf-8")), str(path), "exec")
        exec(code, {"__name__": "__main__", "__file__": str(path)})
        return capsys.readouterr().out

    return run


def test_there_are_five_scripts_and_all_are_short():
    assert len(SCRIPTS) >= 5
    for script in SCRIPTS:
        assert len(script.read_text("utf-8").splitlines()) < LONGEST, script.name


def test_library_robot(output_of):
    assert "ir361: good" in output_of("library_robot.py")


def test_own_urdf_and_csv(output_of):
    """Better than the CAD values of the URDF, on every joint."""
    text = output_of("own_urdf_csv.py")
    assert "little_arm: good" in text
    rows = re.findall(r"^ *(?:turn|lift|bend|twist) .*?([\d.]+)%  \d\.\d+ .* ([\d.]+)%$", text, re.MULTILINE)
    assert len(rows) == 4
    assert all(float(identified) < float(nominal) for identified, nominal in rows)


def test_ros_bag(output_of):
    text = output_of("ros_bag.py")
    assert re.search(r"36 of 36 parameters are determined|little_arm: \d+ parameters, mixed", text)


def test_payload(output_of):
    text = output_of("payload.py")
    true, found = map(float, re.search(r"true mass ([\d.]+) kg, found ([\d.]+) kg", text).groups())
    assert abs(found - true) < 0.02 * true
    assert "little_arm: good" in text


def test_computed_torque(output_of):
    """The identified model tracks better than the URDF's, and better than no model."""
    text = output_of("computed_torque.py")
    pid, urdf, identified = (float(value) for value in re.findall(r"path +([\d.]+) mm", text))
    assert identified < urdf / 5
    assert identified < pid / 5


def executed(name, folder, size=str):
    """A notebook after all its cells have run."""
    notebook = nbformat.read(EXAMPLES / name, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(len(cell.source.splitlines()) for cell in cells) < LONGEST
    for cell in cells:
        cell.source = size(cell.source)
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return notebook


def test_notebook(tmp_path, size):
    assert "image/png" in executed("identify.ipynb", tmp_path, size).cells[-1].outputs[-1].data


@pytest.mark.prove
def test_notebook_on_a_real_robot(tmp_path, data):
    """Robot, log, fit and validation show themselves; the picture is there, and the header has been proved."""
    notebook = executed("real_robot.ipynb", tmp_path)
    shown = [output.data for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    assert sum("text/html" in one for one in shown) >= 3
    assert any("image/png" in one for one in shown)
    assert (tmp_path / "model" / "ur10e_dynamics.h").is_file()


def test_the_notebook_says_what_it_lacks(tmp_path, monkeypatch):
    """Without the logs its first cell ends with a sentence that says how to fetch them; no cell hides that."""
    monkeypatch.setenv("ARMID_DATA", str(tmp_path / "nowhere"))
    notebook = nbformat.read(EXAMPLES / "real_robot.ipynb", as_version=4)
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    with pytest.raises(SystemExit, match="run armid datasets ur10e --fetch"):
        exec(compile(first, "real_robot.ipynb", "exec"), {})


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_scripts_say_what_they_show(script):
    assert script.read_text("utf-8").startswith('"""')


class FakeXArm:
    """Answers as `xarm.wrapper.XArmAPI` does, and follows every command at once."""

    def __init__(self, address, is_radian=False):
        assert is_radian
        self.q, self.calls, self.temperatures, self.code = [0.0] * 7, [], [30] * 7, 0

    def __getattr__(self, name):
        return lambda *values, **options: self.calls.append((name, *values))

    def set_servo_angle_j(self, angles, is_radian=None):
        assert is_radian
        self.calls.append("servo")
        self.q = angles
        return 0

    def get_joint_states(self, is_radian=None, num=3):
        return self.code, [self.q, [0.1] * 7, [0.5] * 7]


class FakeClock:
    """Time that passes only while somebody sleeps."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_driver_of_one_more_arm(monkeypatch):
    """The driver implements the drive protocol: a trajectory is driven and recorded, cycle by cycle; errors end it."""
    wrapper = types.ModuleType("xarm.wrapper")
    wrapper.XArmAPI = FakeXArm
    monkeypatch.setitem(sys.modules, "xarm", types.ModuleType("xarm"))
    monkeypatch.setitem(sys.modules, "xarm.wrapper", wrapper)
    spec = importlib.util.spec_from_file_location("xarm_driver", EXAMPLES / "xarm_driver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.time = FakeClock()
    arm = module.XArm("192.168.1.185")
    motion = quintic([[0.0] * 7, [0.2] * 7], [1.0])
    log = armid.excite(arm, motion)
    assert log.joints == tuple(f"joint{number}" for number in range(1, 8))
    np.testing.assert_allclose(np.diff(log.time), 0.01, rtol=1e-6)
    np.testing.assert_allclose(log["position"][1:], log["command"][:-1])
    assert log["effort"][0].tolist() == [0.5] * 7
    assert arm.sdk.calls[:3] == [("motion_enable", True), ("set_mode", 1), ("set_state", 0)]
    assert arm.timing().steady == 1.0
    with pytest.raises(ValueError, match="torque"):
        arm.set_mode("torque")
    arm.sdk.code = 9
    with pytest.raises(RuntimeError, match="code 9"):
        arm.state()
