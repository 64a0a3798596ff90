"""Recipes: every field does what it says, and what is wrong is named in one sentence."""

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.logs import LogError, Recipe, open_log, read_log

RNG = np.random.default_rng(0)
TABLE = np.column_stack([np.arange(20) * 2.0, RNG.standard_normal((20, 8))])  # time [ms], then eight columns


def recipe(text, **changed):
    """A recipe for two joints; `changed` replaces or removes (None) lines."""
    lines = {"joints": "[a, b]", "effort": "joint torque", "columns": "{time: 1, position: 2-3, effort: 4-5}"}
    lines |= changed
    body = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    return Recipe.parse(f"{body}\n{text}")


@pytest.fixture
def table(tmp_path):
    """A text table of nine columns without header."""
    np.savetxt(tmp_path / "table.csv", TABLE, delimiter=",", fmt="%.17g")
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("2-3", [1, 2]),
        ("[3, 2]", [2, 1]),
        ('"3, 2"', [2, 1]),
        ('"5-6"', [4, 5]),
        ('["7", "6"]', [6, 5]),
        ('"{8..7}"', [7, 6]),
        ("{file: 1, columns: [2, 9]}", [1, 8]),
    ],
)
def test_columns(table, written, wanted):
    """By number, by range, by name (here the numbers themselves), by pattern."""
    log = read_log(table, recipe("", columns=f"{{time: 1, position: {written}, effort: 4-5}}"))
    np.testing.assert_array_equal(log["position"], TABLE[:, wanted])
    np.testing.assert_array_equal(log["effort"], TABLE[:, 3:5])
    np.testing.assert_array_equal(log.time, TABLE[:, 0])


def test_a_joint_without_the_channel(table):
    """null leaves a joint without the channel: NaN."""
    log = read_log(table, recipe("", columns="{time: 1, position: [2, null], effort: 4-5}"))
    np.testing.assert_array_equal(log["position"], np.column_stack([TABLE[:, 1], np.full(20, np.nan)]))


def test_columns_by_name(tmp_path):
    """Names from the header; columns of text that nobody asks for do no harm."""
    rows = ["state, q a,q b;1,tau_1,tau_2,t", *(f"run,{i},{-i},{i / 7},{2 * i},{i}" for i in range(4))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    columns = '{time: t, position: [q a, "q b;1"], effort: "tau_{1..2}"}'
    log = read_log(tmp_path / "t.csv", recipe("delimiter: ','", columns=columns))
    np.testing.assert_array_equal(log["position"], [[i, -i] for i in range(4)])
    np.testing.assert_array_equal(log["effort"], [[i / 7, 2 * i] for i in range(4)])


def test_units(table):
    """Each channel in its unit, one for all joints or one for each; a number is the unit's value in SI."""
    columns = "{time: 1, position: 2-3, velocity: 4-5, effort: 6-7, current: 8-9, temperature: 2-3}"
    units = "{time: ms, position: [deg, mm], velocity: rpm, effort: mNm, current: 0.25, temperature: K}"
    log = read_log(table, recipe(f"units: {units}", columns=columns))
    np.testing.assert_allclose(log.time, TABLE[:, 0] / 1000.0)
    expected = np.column_stack([np.deg2rad(TABLE[:, 1]), TABLE[:, 2] / 1000.0])
    np.testing.assert_allclose(log["position"], expected, rtol=1e-15)
    np.testing.assert_allclose(log["velocity"], TABLE[:, 3:5] * 2.0 * np.pi / 60.0)
    np.testing.assert_allclose(log["effort"], TABLE[:, 5:7] / 1000.0)
    np.testing.assert_allclose(log["current"], TABLE[:, 7:9] / 4.0)
    np.testing.assert_allclose(log["temperature"], TABLE[:, 1:3] - 273.15)


def test_motor_side_with_gears_signs_and_offsets(table):
    """q_model = sign q_motor / N + offset and tau = sign N tau_motor."""
    text = "side: motor\ngear_ratio: [10, -20]\nsign: [1, -1]\noffset: [0, pi/2]"
    log = read_log(table, recipe(text, effort="motor torque"))
    np.testing.assert_allclose(log["position"], TABLE[:, 1:3] / [10, -20] * [1, -1] + [0, np.pi / 2])
    np.testing.assert_allclose(log["effort"], TABLE[:, 3:5] * [10, -20] * [1, -1])
    assert (log.info.side, log.info.effort) == ("joint", "joint torque")


def test_motor_side_without_gears_stays_there(table):
    """Without gear ratios the log says that it is on the motor side."""
    log = read_log(table, recipe("side: motor", effort="motor torque"))
    assert (log.info.side, log.info.effort) == ("motor", "motor torque")
    np.testing.assert_array_equal(log["effort"], TABLE[:, 3:5])


def test_current_with_and_without_gain(table):
    """The current is kept, and becomes torque where the gain is known."""
    columns = "{time: 1, position: 2-3, current: 4-5}"
    plain = read_log(table, recipe("units: {current: mA}", effort="current", columns=columns))
    assert (plain.info.effort, set(plain.channels)) == ("current", {"position", "current"})
    text = "units: {current: mA}\ncurrent_gain: [12, [0.5, 10, 0, 2]]"
    log = read_log(table, recipe(text, effort="current", columns=columns))
    current = TABLE[:, 3:5] / 1000.0
    np.testing.assert_allclose(log["current"], current)
    expected = np.column_stack([12 * current[:, 0], 0.5 + 10 * current[:, 1] + 2 * current[:, 1] ** 3])
    np.testing.assert_allclose(log["effort"], expected)
    assert log.info.effort == "joint torque"


def test_rate_instead_of_time(table):
    """Without a column for time it follows from the rate, also across blocks and files."""
    made = recipe("rate: 50\nperiod: 0.1", columns="{position: 2-3, effort: 4-5}")
    log = read_log(table, made)
    np.testing.assert_allclose(log.time, np.arange(20) / 50.0)
    assert (log.rate_hz, log.info.period_s) == (50.0, 0.1)
    blocks = list(open_log([table, table], made).blocks(7))
    np.testing.assert_allclose(np.concatenate([block.time for block in blocks]), np.arange(40) / 50.0)


def test_what_the_information_says(table):
    """Robot, gravity, and payload by mass, centre and inertia about it, or by ten parameters."""
    text = (
        "robot: arm\ngravity: [0, 9.81, 0]\npayload: {mass: 2, com: [0, 0, 0.5], inertia: {xx: 0.1, yy: 0.2, zz: 0.3}}"
    )
    info = read_log(table, recipe(text)).info
    assert (info.robot, info.gravity, info.source) == ("arm", (0.0, 9.81, 0.0), str(table))
    np.testing.assert_allclose(info.payload, [2, 0, 0, 1, 0.1 + 0.5, 0, 0.2 + 0.5, 0, 0, 0.3])
    ten = read_log(table, recipe("payload: [1, 0, 0, 0, 1, 0, 1, 0, 0, 1]")).info.payload
    assert ten == (1, 0, 0, 0, 1, 0, 1, 0, 0, 1)


@pytest.mark.parametrize("size", [3, 100])
@pytest.mark.parametrize(
    ("window", "kept"),
    [
        ("rows: [3, 10]", slice(2, 10)),
        ("rows: [5, null]", slice(4, None)),
        ("seconds: [4, 10]", slice(2, 5)),  # times are 0, 2, 4, ...
        ("seconds: [30, null]", slice(15, None)),
        ("rows: [3, 10]\nseconds: [0, 12]", slice(2, 6)),
    ],
)
def test_windows(table, window, kept, size):
    """Rows from 1, both ends included; seconds from the first sample, the end excluded."""
    blocks = list(open_log(table, recipe(window)).blocks(size))
    np.testing.assert_array_equal(np.concatenate([block.time for block in blocks]), TABLE[kept, 0])
    np.testing.assert_array_equal(np.concatenate([block["effort"] for block in blocks]), TABLE[kept, 3:5])


def test_files_one_after_the_other_and_side_by_side(tmp_path):
    """The recipe itself names its files, relative to it."""
    np.savetxt(tmp_path / "one.csv", TABLE[:12], delimiter=";")
    np.savetxt(tmp_path / "two.csv", TABLE[12:], delimiter=";")
    base = "joints: [a, b]\neffort: joint torque\n"
    (tmp_path / "run.yaml").write_text(base + "files: [one.csv, two.csv]\ncolumns: {time: 1, effort: 4-5}")
    log = read_log(tmp_path / "run.yaml")
    np.testing.assert_allclose(log["effort"], TABLE[:, 3:5])
    np.savetxt(
        tmp_path / "three.csv", TABLE[:, :5], delimiter="\t", header="t q1 q2 x y".replace(" ", "\t"), comments=""
    )
    np.savetxt(tmp_path / "four.csv", TABLE[:, 5:], delimiter=" ")
    columns = 'columns: {time: t, position: "q{1..2}", effort: {file: 2, columns: 1-2}}'
    (tmp_path / "run.yaml").write_text(f"{base}files: [three.csv, four.csv]\njoin: columns\n{columns}")
    for size in (6, 100):
        blocks = list(open_log(tmp_path / "run.yaml").blocks(size))
        np.testing.assert_allclose(np.concatenate([b["position"] for b in blocks]), TABLE[:, 1:3])
        np.testing.assert_allclose(np.concatenate([b["effort"] for b in blocks]), TABLE[:, 5:7])
    np.savetxt(tmp_path / "four.csv", TABLE[:15, 5:], delimiter=" ")
    with pytest.raises(LogError, match=r"same number of samples, but .*three.csv has 20, .*four.csv has 15"):
        read_log(tmp_path / "run.yaml")


@pytest.mark.parametrize(
    ("text", "changed", "said"),
    [
        (
            "",
            {"effort": None},
            "effort: is missing; say what was measured: 'joint torque' (N m after the gear), 'motor torque' (N m",
        ),
        ("", {"effort": "torque"}, "effort: is 'torque'; say what was measured: 'joint torque' (N m after the gear), "),
        ("", {"effort": "3"}, "effort: is 3; say what was measured"),
        ("", {"joints": None}, "joints: is missing"),
        ("", {"joints": "[a, a]"}, "joints: must be the robot's joint names"),
        ("", {"joints": "[]"}, "joints: must be the robot's joint names"),
        ("colums: 1", {}, "colums: is not a known key, did you mean 'columns'?"),
        ("", {"columns": "{time: 1, postion: 2-3, effort: 4-5}"}, "columns.postion: is not a known key, did you mean"),
        ("", {"columns": "{time: 1, position: 0-3, effort: 4-5}"}, "columns.position: '0-3' is not a range"),
        ("", {"columns": "{time: 1, position: 3-2, effort: 4-5}"}, "columns.position: '3-2' is not a range"),
        ("", {"columns": "{time: 0, effort: 4-5}"}, "columns.time: must be a number from 1"),
        ("", {"columns": "{time: 1.5, effort: 4-5}"}, "columns.time: must be a number from 1"),
        ("", {"columns": "{time: 1, effort: []}"}, "columns.effort: names no column"),
        ("", {"columns": '{time: 1, effort: "x{0..99999999999}"}'}, "stands for more than 1000 columns"),
        ("", {"columns": "{time: 1, effort: {file: 2, columns: 4-5}}"}, "columns.effort: asks for file 2; say `join"),
        ("", {"columns": "{time: 1, effort: {file: 0, columns: 4-5}}"}, "effort.file: is 0; files are numbered from 1"),
        ("", {"columns": "{time: 1, position: 2-3}"}, "columns.effort: is missing, though the effort is said to be"),
        ("", {"effort": "current"}, "columns.current: is missing, though the effort is said to be 'current'"),
        ("", {"effort": "none"}, "columns.effort: is given, though the effort is said to be 'none'"),
        ("", {"columns": "{effort: 4-5}"}, "rate: is missing; without a column for time it is needed"),
        ("current_gain: 3", {}, "current_gain: is given, but the effort is said to be 'joint torque'"),
        ("gear_ratio: 3", {}, "gear_ratio: is given, but neither side nor effort is the motor's"),
        ("side: motor\ngear_ratio: [1, 0]", {}, "gear_ratio: is zero for a joint"),
        ("side: motor\ngear_ratio: [1, 2, 3]", {}, "gear_ratio: has 3 entries for 2 joints"),
        ("side: motor\ncoupling_matrix: [[1, 1], [1, 1]]", {}, "coupling_matrix: is zero for a joint, or singular"),
        ("side: motor\ncoupling_matrix: [[1, 1]]", {}, "coupling_matrix: has 1 rows for 2 joints"),
        ("side: motor\ngear_ratio: 2\ncoupling_matrix: [[1, 0], [0, 1]]", {}, "is given beside gear_ratio"),
        ("side: left", {}, "side: is 'left'; valid: joint, motor"),
        ("units: {position: degrees}", {}, "units.position: 'degrees' is not a unit of position; use one of: rad"),
        ("units: {position: [rad]}", {}, "units.position: has 1 entries for 2 joints"),
        ("units: {positon: rad}", {}, "units.positon: is not a known key, did you mean 'position'?"),
        ("sign: [1, 2]", {}, "sign: must be 1 or -1"),
        ("rate: -5", {}, "rate: is -5; it must be positive"),
        ("rate: .nan", {}, "rate: nan is not finite"),
        ("rows: [0, 5]", {}, "rows: is [0, 5]; the first row is 1"),
        ("rows: 5", {}, "rows: must be a list"),
        ("rows: [5]", {}, "rows: must be the first and the last row"),
        ("seconds: [5, 2]", {}, "seconds: is [5, 2]; the start is 0 or more"),
        ("delimiter: ab", {}, "delimiter: is 'ab'; use one character, tab or space"),
        ("header: 3", {}, "header: must be true or false"),
        ("skip_lines: -1", {}, "skip_lines: is -1"),
        ("delimiter: ','\ndecimal: ','", {}, "decimal: is the same sign as the delimiter"),
        ("format: excel", {}, "format: is 'excel'; valid: csv, rtde, mat, parquet, ros"),
        ("samples: left", {}, "samples: is 'left'"),
        ("gravity: [0, 0]", {}, "gravity: must be a list of 3 numbers"),
        ("payload: [1, 2]", {}, "payload: must be a list of 10 numbers"),
        ("payload: {mas: 1}", {}, "payload.mas: is not a known key, did you mean 'mass'?"),
        ("join: columns", {"columns": None}, "columns: is missing; files side by side"),
        ("armid: 2", {}, "armid: is the version of the format"),
        ("files: run.csv", {}, "files: must be a list"),
    ],
)
def test_what_is_wrong_is_named(text, changed, said):
    """Wrong values, wrong keys, and fields that contradict each other."""
    with pytest.raises(LogError) as caught:
        recipe(text, **changed)
    assert str(caught.value).startswith("recipe: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"columns": "{time: 1, position: 2-3, effort: 9-10}"},
            "columns.effort: there is no column 10; it has the columns 1 to 9",
        ),
        (
            {"columns": "{time: tiem, position: 2-3, effort: 4-5}"},
            "columns.time: there is no column 'tiem'; it has: 1, 2",
        ),
        (
            {"columns": "{time: 1, position: 2-4, effort: 4-5}"},
            "columns.position: stands for 3 columns, but 2 are needed",
        ),
        ({"columns": "{time: 1-2, effort: 4-5}"}, "columns.time: stands for 2 columns, but 1 are needed"),
    ],
)
def test_columns_that_are_not_there(table, changed, said):
    """The file is named, and the columns that it has."""
    with pytest.raises(LogError) as caught:
        read_log(table, recipe("", **changed))
    assert str(caught.value).startswith(f"{table}: {said}")


def test_missing_names_have_a_nearest(tmp_path):
    """A name close to one in the header is suggested, and all are listed."""
    (tmp_path / "t.csv").write_text("time,pos_1,pos_2,tau_1,tau_2\n0,1,2,3,4\n")
    with pytest.raises(LogError) as caught:
        read_log(tmp_path / "t.csv", recipe("", columns='{time: time, position: "ps_{1..2}", effort: 4-5}'))
    said = "columns.position: there is no column 'ps_1', did you mean 'pos_1'? it has: time, pos_1, pos_2, tau_1, tau_2"
    assert said in str(caught.value)


@pytest.mark.parametrize("window", ["rows: [21, 30]", "seconds: [100, 200]"])
def test_windows_that_leave_nothing(table, window):
    """A window beyond the end says how many samples there are."""
    with pytest.raises(LogError, match="leaves nothing; there are 20 samples"):
        read_log(table, recipe(window))


@pytest.mark.parametrize(
    "text", ["", "- 1\n- 2", "hello", "a: b: c", "\x00", "{", "joints: &a [*a]", "!!python/object:os.system {}"]
)
def test_files_that_are_no_recipe(tmp_path, text):
    """Empty, a list, text, broken YAML, dangerous tags: one sentence, and nothing is run."""
    (tmp_path / "r.yaml").write_text(text)
    for call in (lambda: read_log(tmp_path / "r.yaml"), lambda: read_log("x.csv", tmp_path / "r.yaml")):
        with pytest.raises(LogError) as caught:
            call()
        assert str(caught.value).startswith(str(tmp_path / "r.yaml"))
        assert "\n" not in str(caught.value)


def test_recipes_that_cannot_be_opened(tmp_path):
    """Missing, a folder, binary, with an impossible name, without files."""
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00\x01")
    (tmp_path / "d.yaml").mkdir()
    (tmp_path / "n.yaml").write_text("joints: [a]\neffort: none\ncolumns: {time: 1, position: 2}")
    for name in ("b.yaml", "d.yaml", "m.yaml", "n.yaml", "x\0.yaml"):
        with pytest.raises(ArmidError) as caught:
            read_log(f"{tmp_path}/{name}")
        assert "\n" not in str(caught.value)
    (tmp_path / "folder").mkdir()
    with pytest.raises(LogError, match=r"folder: is a folder; name the recipe itself, a \.yaml file"):
        Recipe.load(tmp_path / "folder")
    with pytest.raises(LogError, match="files: is missing; name the files there, or give them beside the recipe"):
        read_log(tmp_path / "n.yaml")
