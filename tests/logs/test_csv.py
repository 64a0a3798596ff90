"""Text tables of others, UR RTDE recordings, and what is wrong in them."""

import numpy as np
import pytest

from armid.logs import LogError, Recipe, open_log, read_log, write_log
from armid.logs.csv_file import RtdeTable
from armid.signals.doctor import examine
from tests.logs.samples import random_log

VALUES = np.random.default_rng(0).standard_normal((12, 3))
RECIPE = "joints: [a]\neffort: joint torque\ncolumns: {time: 1, position: 2, effort: 3}\n"


def read(path, text=""):
    return read_log(path, Recipe.parse(RECIPE + text))


def assert_values(log, values=VALUES):
    np.testing.assert_array_equal(np.column_stack([log.time, log["position"], log["effort"]]), values)


@pytest.fixture
def rows():
    return [[repr(float(cell)) for cell in row] for row in VALUES]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "   ", ", ", "|"])
@pytest.mark.parametrize("header", ["", "t{0}q{0}tau\n", "# a remark\n\nt{0}q{0}tau\n", '"t"{0}"q"{0}"tau"\n'])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiter_and_header_are_found(tmp_path, rows, delimiter, header, end):
    """Whatever separates the columns, with a header or without; a bar has to be told."""
    text = header.format(delimiter) + "".join(delimiter.join(row) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text.replace("\n", end), newline="")
    assert_values(read(tmp_path / "t.csv", "delimiter: '|'" if delimiter == "|" else ""))


def test_lines_before_the_table(tmp_path, rows):
    """skip_lines leaves out what stands before the header."""
    text = "Recorder 3.1, serial 7\nunits; are; SI\nt,q,tau\n" + "".join(",".join(row) + "\n" for row in rows)
    (tmp_path / "t.txt").write_text(text)
    assert_values(read(tmp_path / "t.txt", "skip_lines: 2"))


def test_decimal_comma(tmp_path, rows):
    """Numbers as German spreadsheets write them, with a byte order mark before the header."""
    text = "\ufefft;q;tau\n" + "".join(";".join(row).replace(".", ",") + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert_values(read(tmp_path / "t.csv", "decimal: ','"))
    assert_values(read(tmp_path / "t.csv"))  # which the first lines show as well
    (tmp_path / "bare.csv").write_text(text.partition("\n")[2], encoding="utf-8")
    assert_values(read(tmp_path / "bare.csv"))


@pytest.mark.parametrize("end", ["", "Z", "+01:00"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_dates(tmp_path, end, delimiter):
    """A clock written as ISO 8601 says counts seconds; what is no date is named."""
    first = "2026-11-17 10:59:59.25" if end != "Z" else "2026-11-17T10:59:59.250000"
    lines = [f"when{delimiter}q{delimiter}tau", f"{first}{end}{delimiter}1{delimiter}2"]
    lines += [f"2026-11-17 11:00:01.5{end}{delimiter}3{delimiter}4", ""]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    log = read(tmp_path / "t.csv")
    assert np.diff(log.time) == pytest.approx([2.25], abs=1e-6)
    np.testing.assert_array_equal(log["position"][:, 0], [1.0, 3.0])
    (tmp_path / "t.csv").write_text("\n".join(lines).replace("11:00", "11:77"))
    with pytest.raises(LogError, match="line 3, column 'when': '2026-11-17 11:77"):
        read(tmp_path / "t.csv")


def test_letters_of_another_encoding(tmp_path):
    """A header in Latin-1 does not matter when columns are given by number."""
    (tmp_path / "t.csv").write_bytes("t,q [°],tau\n0,1,2\n1,3,4\n".encode("latin-1"))
    assert_values(read(tmp_path / "t.csv"), [[0, 1, 2], [1, 3, 4]])


def test_empty_cells_are_nan(tmp_path):
    """A missing value is a fault of the measurement, for the log doctor to report; so are NaN and steps in time."""
    (tmp_path / "t.csv").write_text("t,q,tau\n0,1,\n2,,3\n1,nan,NaN\n# remark\n\n1,5,6,7\n")
    assert_values(read(tmp_path / "t.csv"), [[0, 1, np.nan], [2, np.nan, 3], [1, np.nan, np.nan], [1, 5, 6]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  \n\n", "is empty"),
        ("# nothing\n", "is empty"),
        ("t,q,tau\n", "holds no samples; check that rows of numbers follow its header"),
        ("t,q,tau\n0,1,2\n1,x,3\n", "line 3, column 'q': 'x' is not a number; correct the cell, or empty it"),
        ("0,1,2\n1,2,3\n\n2,3,1_0\n", "line 4, column '3': '1_0' is not a number"),
        ("t,q,tau\n0,1,2\n1,2\n2,3,4\n", "line 3: has 2 of 3 columns; is the file cut off?"),
        ("t,q\n0,1\n", "columns.effort: there is no column 3; it has the columns 1 to 2"),
        ("5,1,2\n5,2,3\n5,3,4\n", "time: never increases; name another column for it, or give the rate"),
        ("nan,1,2\nnan,2,3\n", "time: never increases"),
        ("hello world\n", "columns.effort: there is no column 3"),
    ],
)
def test_bad_tables(tmp_path, text, said):
    """Empty, cut off, text among the numbers (with its line), a clock that stands still."""
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(LogError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {said}")
    assert "\n" not in str(caught.value)


def test_the_line_is_right_in_later_blocks(tmp_path):
    """Line numbers count from the start of the file, not of the block."""
    lines = ["t,q,tau", *(f"{i},0,0" for i in range(100))]
    lines[77] = "76,0,?"
    (tmp_path / "t.csv").write_text("\n".join(lines))
    with pytest.raises(LogError, match="line 78, column 'tau': '\\?' is not a number"):
        list(open_log(tmp_path / "t.csv", Recipe.parse(RECIPE)).blocks(10))


def test_binary_files(tmp_path):
    """A picture, a spreadsheet, text in UTF-16."""
    rng = np.random.default_rng(0)
    for content in (rng.bytes(5000), b"PK\x03\x04\x00\x00", "t,q,tau\n0,1,2".encode("utf-16"), b"\x01" * 100):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(LogError, match="is a binary file, not text"):
            read(tmp_path / "t.csv")


def test_tables_without_recipe(tmp_path):
    """Foreign columns need a recipe; our names need the effort at least."""
    path = tmp_path / "t.csv"
    path.write_text("t,q,tau\n0,1,2\n1,2,3\n")
    with pytest.raises(LogError, match="needs a recipe that says which column is what; its columns are: t, q, tau"):
        read_log(path)
    path.write_text("time,position.a,effort.a\n0,1,2\n1,2,3\n")
    with pytest.raises(LogError, match="effort: is not explained in the file; say what was measured"):
        read_log(path)
    with pytest.raises(LogError, match="effort: is 'torque'; use one of: joint torque"):
        read_log(path, effort="torque")
    log = read_log(path, effort="motor torque")
    assert (log.joints, log.info.effort, log.info.source) == (("a",), "motor torque", str(path))
    assert read_log(path, effort="current")["current"].tolist() == [[2], [3]]
    path.write_text("time,position.a,current.a\n0,1,2\n1,2,3\n")
    assert read_log(path).info.effort == "current"


def test_a_last_row_that_is_cut_off_is_left_out(tmp_path):
    """In our own file, and in somebody's; the doctor says so, and the rest is there. 1e282 counts as missing to it."""
    log = random_log(joints=("a", "b", "c"))
    write_log(log, tmp_path / "log.csv")
    own = tmp_path / "log.csv"
    own.write_text(own.read_text()[:-20])
    np.testing.assert_array_equal(read_log(own)["effort"], log["effort"][:-1])
    assert read_log(own).info.history["cut_off"]
    other = tmp_path / "other.csv"
    recipe = "joints: [a]\neffort: joint torque\ncolumns: {time: t, position: [q], effort: [tau]}\n"
    for end in ("", "\n"):
        other.write_text(f"t,q,tau\n0,1,2\n0.1,2,3\n0.2,1e282,3\n0.3,2{end}")
        found = read_log(other, Recipe.parse(recipe))
        np.testing.assert_array_equal(found["effort"][:, 0], [2.0, 3.0, 3.0])
        assert {"cut-off", "not-a-number"} <= {f.code for f in examine(found).findings}


def test_our_own_columns_with_a_recipe(tmp_path):
    """A recipe without columns goes by our names; joints are found by name, an unknown one is named."""
    log = random_log(joints=("a", "b", "c"), side="motor")
    write_log(log, tmp_path / "log.csv")
    text = "joints: [c, a]\neffort: joint torque\n"
    result = read_log(tmp_path / "log.csv", Recipe.parse(text))
    np.testing.assert_array_equal(result["effort"], log["effort"][:, [2, 0]])
    with pytest.raises(LogError, match=r"joints: there is no column 'position.d', did you mean"):
        read_log(tmp_path / "log.csv", Recipe.parse("joints: [d]\neffort: joint torque\n"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.replace("# armid log 1", "# armid log 9"), "line 1: says version 9 of the format"),
        (lambda t: t.replace('"effort": "joint torque"', '"effort": "magic"'), "effort: is 'magic'"),
        (lambda t: t.replace('"effort": "joint torque", ', ""), "effort: is missing"),
        (lambda t: t.replace('"mode"', '"moods"'), "moods: is not known, did you mean"),
        (lambda t: t.replace('["a", "b", "c"]', '"abc"'), "joints: must be a list, not 'abc'"),
        (lambda t: t.replace('["a", "b", "c"]', '["a", "b", "d"]'), "there is no column 'position.d'"),
        (lambda t: t.replace('"rate_hz": null', '"rate_hz": "x"'), "rate_hz: must be a number or null, not 'x'"),
        (lambda t: t.replace('"history": {}', '"history": 3'), "history: must be a mapping of names to values, not 3"),
        (lambda t: t.replace('"gravity": null', '"gravity": [1]'), "gravity: must be a list of 3 numbers"),
        (lambda t: t.replace('{"joints"', '{joints"'), "is not valid JSON"),
        (lambda t: t.replace("time,", "tme,"), "there is no column 'time', did you mean 'tme'?"),
    ],
)
def test_our_own_files_damaged(tmp_path, change, said):
    """Cut off, of a newer version, or with a changed description."""
    path = tmp_path / "log.csv"
    write_log(random_log(), path)
    path.write_text(change(path.read_text()))
    with pytest.raises(LogError) as caught:
        read_log(path)
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


RTDE_FIELDS = ("actual_q", "actual_qd", "actual_current", "target_moment", "target_q", "joint_temperatures")


def rtde(path, delimiter, fields=RTDE_FIELDS):
    rng = np.random.default_rng(1)
    values = {name: rng.standard_normal((30, 6)) for name in fields}
    time = 1000.0 + np.arange(30) * 0.002
    names = ["timestamp", *(f"{name}_{i}" for name in fields for i in range(6)), "robot_mode"]
    table = np.column_stack([time, *values.values(), np.full(30, 7)])
    np.savetxt(path, table, delimiter=delimiter, header=delimiter.join(names), comments="", fmt="%.17g")
    return time, values


@pytest.mark.parametrize("delimiter", [" ", ","])
def test_rtde(tmp_path, delimiter):
    """Recognised by its columns; the controller's current is the effort, the joints have UR's names."""
    time, values = rtde(tmp_path / "r.csv", delimiter)
    log = read_log(tmp_path / "r.csv")
    np.testing.assert_array_equal(log.time, time)
    pairs = {"position": "actual_q", "velocity": "actual_qd", "current": "actual_current", "command": "target_q"}
    for channel, name in (pairs | {"temperature": "joint_temperatures"}).items():
        np.testing.assert_array_equal(log[channel], values[name])
    assert (log.joints, log.info.effort, log.info.mode) == (RtdeTable.joints, "current", "position")
    with pytest.raises(LogError, match="effort: is 'current' in the file, but 'joint torque' is asked for"):
        read_log(tmp_path / "r.csv", effort="joint torque")


def test_rtde_with_a_recipe(tmp_path):
    """A recipe adds what is missing, such as the gains; its own columns go first."""
    _, values = rtde(tmp_path / "r.csv", " ")
    log = read_log(tmp_path / "r.csv", Recipe.parse("format: rtde\neffort: current\ncurrent_gain: 10"))
    np.testing.assert_allclose(log["effort"], 10 * values["actual_current"])
    assert log.joints == RtdeTable.joints
    text = 'format: rtde\neffort: joint torque\ncolumns: {time: timestamp, effort: "target_moment_{0..5}"}'
    np.testing.assert_array_equal(read_log(tmp_path / "r.csv", Recipe.parse(text))["effort"], values["target_moment"])
    (tmp_path / "x.csv").write_text("time,q\n0,1\n")
    with pytest.raises(LogError, match="format: there is no column 'timestamp'"):
        read_log(tmp_path / "x.csv", Recipe.parse("format: rtde\neffort: current"))


def test_rtde_without_current(tmp_path):
    """Without currents there is no effort."""
    rtde(tmp_path / "r.csv", ",", ("actual_q", "actual_qd"))
    log = read_log(tmp_path / "r.csv")
    assert (log.info.effort, set(log.channels)) == ("none", {"position", "velocity"})
