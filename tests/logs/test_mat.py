"""MATLAB files: fields of structs, lying or standing, and files that cannot be used."""

import struct
import zlib

import numpy as np
import pytest
from scipy.io import savemat

from armid.logs import LogError, Recipe, open_log, read_log
from armid.logs.mat_file import DamagedFileError, numeric_arrays

RNG = np.random.default_rng(0)
Q, TAU, T = RNG.standard_normal((50, 3)), RNG.standard_normal((50, 3)), np.arange(50) * 0.01


def recipe(columns, text="", effort="joint torque"):
    return Recipe.parse(f"joints: [a, b, c]\neffort: {effort}\ncolumns: {columns}\n{text}")


@pytest.mark.parametrize("size", [7, 1000])
def test_fields_of_structs(tmp_path, size):
    """Nested structs; (joints, samples) and (samples, joints) are told apart; integers and single columns."""
    savemat(
        tmp_path / "m.mat", {"rec": {"t": T, "drive": {"q": Q.T}, "tau": TAU, "count": np.arange(50, dtype=np.int16)}}
    )
    made = recipe("{time: rec.t, position: rec.drive.q, effort: rec.tau, temperature: [rec.count, null, null]}")
    blocks = list(open_log(tmp_path / "m.mat", made).blocks(size))
    np.testing.assert_array_equal(np.concatenate([b.time for b in blocks]), T)
    np.testing.assert_array_equal(np.concatenate([b["position"] for b in blocks]), Q)
    np.testing.assert_array_equal(np.concatenate([b["effort"] for b in blocks]), TAU)
    np.testing.assert_array_equal(np.concatenate([b["temperature"][:, 0] for b in blocks]), np.arange(50))


def test_one_matrix_with_all_columns(tmp_path):
    """Columns of a matrix by number in brackets."""
    savemat(tmp_path / "m.mat", {"data": np.column_stack([T, Q, TAU])})
    log = read_log(tmp_path / "m.mat", recipe('{time: "data[1]", position: "data[{2..4}]", effort: "data[{7..5}]"}'))
    np.testing.assert_array_equal(log["position"], Q)
    np.testing.assert_array_equal(log["effort"], TAU[:, ::-1])


@pytest.mark.parametrize("compressed", [True, False])
def test_what_scipy_wrote(tmp_path, compressed):
    """Every numeric type and depth that SciPy writes is found with its value; the rest is passed over."""
    kinds = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    arrays = {f"a_{kind}": (100 * RNG.random((4, 3))).astype(kind) for kind in kinds}
    content = {
        "top": {"text": "hello", "deep": {"deeper": arrays, "cell": np.array([1, "x"], dtype=object)}, "empty": []}
    }
    content |= {"flag": np.array([[True, False]]), "many": np.array([(1,), (2,)], dtype=[("x", "f8")]), "z": 1j}
    savemat(tmp_path / "m.mat", content | arrays, do_compression=compressed, long_field_names=True)
    found = numeric_arrays((tmp_path / "m.mat").read_bytes())
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        np.testing.assert_array_equal(found[f"top.deep.deeper.{name}"], values)
    assert set(found) == {*arrays, *(f"top.deep.deeper.{name}" for name in arrays), "flag"}


def test_damage_never_crashes(tmp_path):
    """Changed, missing and added bytes are found or give other numbers, but nothing else happens."""
    savemat(
        tmp_path / "m.mat", {"rec": {"q": Q, "tau": TAU}, "text": "hello", "cell": np.array([1, "a"], dtype=object)}
    )
    whole, rng = (tmp_path / "m.mat").read_bytes(), np.random.default_rng(0)
    damaged = 0
    for _ in range(3000):
        content = bytearray(whole)
        place, length = int(rng.integers(128, len(whole))), int(rng.integers(1, 30))
        content[place : place + int(rng.integers(0, 30))] = rng.bytes(length)
        try:
            numeric_arrays(bytes(content))
        except DamagedFileError:
            damaged += 1
    assert damaged > 1000


def test_short_records_need_their_orientation(tmp_path):
    """With as many samples as joints or fewer, the recipe says where samples are."""
    savemat(tmp_path / "m.mat", {"q": Q[:2], "tau": TAU[:2]})
    columns, text = "{position: q, effort: tau}", "rate: 10\nsamples: rows"
    np.testing.assert_array_equal(read_log(tmp_path / "m.mat", recipe(columns, text))["position"], Q[:2])
    with pytest.raises(LogError, match=r"columns.position: stands for 2 columns, but 3 are needed, one for each joint"):
        read_log(tmp_path / "m.mat", recipe(columns, "rate: 10"))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            "{position: rec.p, effort: rec.tau}",
            "columns.position: there is no column 'rec.p', did you mean 'rec.t'? it has: rec.q, rec.tau, rec.t",
        ),
        ("{position: rec.qq, effort: rec.tau}", "there is no column 'rec.qq', did you mean 'rec.q'?"),
        ("{position: rec, effort: rec.tau}", "columns.position: there is no column 'rec'"),
        ("{position: rec.name, effort: rec.tau}", "columns.position: there is no column 'rec.name'"),
        (
            '{position: ["rec.q[4]", null, null], effort: rec.tau}',
            "there is no 'rec.q[4]'; rec.q has the columns 1 to 3",
        ),
        ("{position: 1-3, effort: rec.tau}", "columns.position: is number 1, but a MATLAB file has fields"),
        ("{position: rec.q, effort: rec.tau, time: rec.t}", "rec.t: has 49 samples, but rec.q has 50"),
    ],
)
def test_fields_that_do_not_fit(tmp_path, columns, said):
    """Missing, no numbers, of another length."""
    path = tmp_path / "m.mat"
    savemat(path, {"rec": {"q": Q, "tau": TAU, "t": T[1:], "name": "arm", "cell": np.array([1, "a"], dtype=object)}})
    with pytest.raises(LogError) as caught:
        read_log(path, recipe(columns, "rate: 10"))
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    """Without recipe, empty, cut off at any place, with changed bytes, of version 7.3, or something else."""
    path = tmp_path / "m.mat"
    savemat(path, {"rec": {"q": Q, "tau": TAU}}, do_compression=True)
    with pytest.raises(LogError, match=r"needs a recipe that says which field is what; its fields are: rec.q, rec.tau"):
        read_log(path)
    whole = path.read_bytes()
    broken = [whole[:cut] for cut in (0, 10, 127, 128, 140, len(whole) // 2, len(whole) - 9)]
    broken += [b"\x89HDF\r\n\x1a\n" + bytes(200), b"MATLAB 7.3 MAT-file" + bytes(200), b"hello" * 100, bytes(500)]
    savemat(path, {"rec": {"q": Q, "tau": TAU}})
    plain = path.read_bytes()
    broken += [plain[:cut] + plain[cut + missing :] for cut in range(130, len(plain), 97) for missing in (1, 8, 40)]
    for content in broken:
        path.write_bytes(content)
        with pytest.raises(LogError) as caught:
            read_log(path, recipe("{position: rec.q, effort: rec.tau}", "rate: 10"))
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


def test_a_byte_that_crashes_scipy(tmp_path):
    """SciPy 1.17's loadmat ends the process with a segmentation fault on this file: one byte, the type of the numbers.

    That is why MATLAB files are read by armid's own reader. If SciPy has learnt to refuse it, delete that reader.
    """
    savemat(tmp_path / "m.mat", {"q": np.arange(3.0)})
    content = bytearray((tmp_path / "m.mat").read_bytes())
    assert content[176] == 9
    content[176] = 14
    (tmp_path / "m.mat").write_bytes(content)
    with pytest.raises(LogError, match="cut off or damaged"):
        read_log(tmp_path / "m.mat", recipe("{position: q}", "rate: 1", "none"))


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def zeros(name, kind, stored, count):
    """A matrix of zeros, compressed a thousandfold."""
    parts = (element(6, struct.pack("<II", kind, 0)), element(5, struct.pack("<ii", count, 1)), element(1, name))
    return element(14, b"".join(parts) + element(stored, bytes(count)))


@pytest.mark.parametrize(
    "inside",
    [
        lambda: zeros(b"a", 9, 2, 60_000_000),  # bytes that become doubles: 480 MB
        lambda: b"".join(zeros(b"a%d" % k, 9, 9, 80_000_000) for k in range(4)),
        lambda: element(2, b"") * 1_000_000,  # a million empty elements
    ],
    ids=["bytes as doubles", "many", "elements"],
)
def test_bombs_are_refused_before_the_work(tmp_path, inside):
    """Files below a megabyte that would take gigabytes or minutes."""
    packed = zlib.compress(inside(), 9)
    head = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "m.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    assert (tmp_path / "m.mat").stat().st_size < 1_000_000
    with pytest.raises(LogError, match=r"far more than its size|damaged"):
        open_log(tmp_path / "m.mat", recipe("{position: [a, null, null]}", "rate: 10", effort="none"))
