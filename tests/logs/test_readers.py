"""A log reader that is not part of armid: by decorator in a program, by entry point from the command line."""

import json

import numpy as np
import pytest

from armid.experiment import VirtualRobot
from armid.logs import READERS, LogError, Recipe, Table, read_log
from armid.logs.table import formats
from armid.robot import load_robot
from tests.estimation.virtual_arms import excitation
from tests.plugins import armid_with_plugins, install

PLUGIN = '''
import numpy as np
from armid.logs import LogInfo, Table


class HexTable(Table):
    """One row per line, every number as the hexadecimal text of a float; the first line names the joints."""

    title, suffixes = "hexadecimal text", (".hex",)

    def __init__(self, path):
        self.source, self.path = str(path), path
        joints = path.read_text().splitlines()[0].split()
        self.names = ("time", *(f"{channel}.{joint}" for channel in ("position", "effort") for joint in joints))
        self.info = LogInfo(tuple(joints), "joint torque", source=self.source)

    def blocks(self, columns, size):
        lines = self.path.read_text().splitlines()[1:]
        for start in range(0, len(lines), size):
            rows = [[float.fromhex(cell) for cell in line.split()] for line in lines[start : start + size]]
            yield np.array(rows)[:, list(columns)]
'''


@pytest.fixture(scope="module")
def log():
    """Two periods of an arm, as a controller would record them."""
    robot = load_robot("ir361")
    return VirtualRobot(robot, seed=0).run(excitation(robot), periods=3)


@pytest.fixture
def hex_reader():
    """A format that a program adds, and takes away again."""
    names: dict = {}
    exec(PLUGIN, names)
    yield READERS.add("hex")(names["HexTable"])
    del READERS._things["hex"]


def write_hex(path, log):
    """What the foreign recorder writes."""
    rows = np.column_stack([log.time, log["position"], log["effort"]])
    path.write_text("\n".join([" ".join(log.joints), *(" ".join(float(cell).hex() for cell in row) for row in rows)]))


def test_by_decorator(tmp_path, log, hex_reader):
    """It is found by its suffix, needs no recipe where it says what the numbers are, and may be named in one."""
    assert issubclass(hex_reader, Table)
    assert ".hex" in formats()
    write_hex(tmp_path / "a.hex", log)
    found = read_log(tmp_path / "a.hex")
    np.testing.assert_array_equal(found["position"], log["position"])
    assert found.info.effort == "joint torque"
    (tmp_path / "a.txt").write_text((tmp_path / "a.hex").read_text())
    recipe = Recipe.parse("{joints: [joint2], effort: joint torque, format: hex, sign: -1}")
    np.testing.assert_array_equal(read_log(tmp_path / "a.txt", recipe)["effort"][:, 0], -log["effort"][:, 1])
    with pytest.raises(LogError, match="format: is 'hax', did you mean 'hex'"):
        Recipe.parse("{joints: [joint2], effort: joint torque, format: hax}")
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(LogError, match=r"give a log \(.*\.hex"):
        read_log(tmp_path / "plan.json")


def test_by_entry_point(tmp_path, log):
    """An installed package adds a format: `inspect` and `identify` read it as they read armid's own."""
    install(tmp_path, "armid.readers", "hex = armid_hex:HexTable", PLUGIN)
    write_hex(tmp_path / "a.hex", log)
    seen, done = armid_with_plugins(
        tmp_path,
        ("inspect", "a.hex", "--robot", "ir361", "--json"),
        ("identify", "ir361", "a.hex", "-o", "fit.json", "--friction", "linear", "--method", "wls", "--json"),
    )
    assert json.loads(seen.out)["facts"]["rows"] == len(log)
    assert done.code == 0, done.err
    assert (tmp_path / "fit.json").exists()
