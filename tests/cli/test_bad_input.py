"""Bad input of every kind: exit code 2 and one line that names the file and the field, never a traceback."""

import pytest

MODIFIED = "kinematics: {convention: modified-dh, rows: ["
ARM = f"name: arm\n{MODIFIED}[0, 0, 0.3, 0], [-pi/2, 0.1, 0, 0]]}}\n"
BOMB = '<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


def yaml(extra):
    """A two-joint arm with one more line."""
    return ARM + extra + "\n"


def row(text, more=""):
    """An arm with one DH row."""
    return f"name: arm\n{MODIFIED}{text}]{more}}}\n"


def urdf(*joints, links="abc"):
    """A URDF with links a, b, c and joints given as "parent child type extra"."""
    text = "".join(f'<link name="{name}"/>' for name in links)
    for number, joint in enumerate(joints, start=1):
        parent, child, kind, *extra = joint.split(" ", 3)
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        text += f'<joint name="j{number}" type="{kind}">{ends}{"".join(extra)}</joint>'
    return f'<robot name="r">{text}</robot>'


YAML = {  # what the file holds, words that the message must contain
    "binary": (b"\x00\xff\xfe\x80", ["is not a text file"]),
    "control characters": ("name: \x07", ["is not valid YAML"]),
    "empty": ("", ["holds no fields; write each as `name: value`"]),
    "a list": ("[1, 2]", ["holds no fields"]),
    "two documents": (ARM + "---\n" + ARM, ["is not valid YAML"]),
    "malformed": ("name: [arm\nkinematics: 5", ["line 2, column", "is not valid YAML"]),
    "a date that is none": (yaml("gravity: 2001-13-45"), ["gravity", "must be a list of 3 numbers"]),
    "deeply nested": ("name: arm\ntitle: " + "[" * 2000 + "]" * 2000, ["is not valid YAML"]),
    "Python object": (yaml("title: !!python/object/apply:os.getcwd []"), ["is not valid YAML", "line 3"]),
    "duplicate key": (yaml("name: other"), ["'name' is given twice"]),
    "unknown key": (yaml("gravty: [0, 0, 1]"), ["gravty: is not a known key", "did you mean 'gravity'?"]),
    "unknown key with a line break": (yaml('"a\\nb": 1'), ["is not a known key"]),
    "unknown nested key": (yaml("limits: {velocty: 1}"), ["limits.velocty: is not a known key", "'velocity'"]),
    "key that is no name": (yaml("[1, 2]: 3"), ["line 3"]),
    "null name": (ARM.replace("arm", "null", 1), ["name: is missing"]),
    "short DH row": (row("[0, 0, 0]"), ["kinematics.rows[1]: has 3 entries"]),
    "long DH row": (row("[0, 0, 0, 0, prismatic, 0]"), ["kinematics.rows[1]: has 6 entries"]),
    "DH row that is no list": (row("5"), ["kinematics.rows[1]: is not a list"]),
    "word": (row("[0, 0, two, 0]"), ["kinematics.rows[1]", "'two' is not a number"]),
    "nan": (row("[0, 0, .nan, 0]"), ["kinematics.rows[1]", "is not finite"]),
    "inf": (row("[0, 0, .inf, 0]"), ["kinematics.rows[1]", "is not finite"]),
    "1e999": (row("[0, 0, 1e999, 0]"), ["kinematics.rows[1]", "is not finite"]),
    "400 digits": (row(f"[0, 0, {'9' * 400}, 0]"), ["kinematics.rows[1]", "is not finite"]),
    "5000 digits": (row(f"[0, 0, {'9' * 5000}, 0]"), ["arm.yaml"]),
    "pi/0": (row("[0, 0, pi/0, 0]"), ["kinematics.rows[1]", "'pi/0' is not"]),
    "true": (row("[0, 0, true, 0]"), ["kinematics.rows[1]", "True is not a number"]),
    "unknown joint type": (row("[0, 0, 0, 0, ball]"), ["kinematics.rows[1]", "'ball'", "revolute, prismatic"]),
    "unknown convention": (ARM.replace("modified-dh", "modifed-dh"), ["kinematics.convention", "'modified-dh'"]),
    "no rows": (row(""), ["kinematics.rows: is empty"]),
    "no links": (yaml("links: 0"), ["links: is 0"]),
    "half a link": (yaml("links: 1.5"), ["links: must be a whole number"]),
    "parents in a loop": (row("[0, 0, 0, 0]", ", parents: [1]"), ["kinematics.parents[1]: is 1"]),
    "reversed limits": (yaml("limits: {position: [[1, -1], [0, 1]]}"), ["limits.position[1]: is reversed"]),
    "too few positions": (yaml("limits: {position: [[-1, 1]]}"), ["limits.position: has 1 entries for 2 joints"]),
    "too many velocities": (yaml("limits: {velocity: [1, 2, 3]}"), ["limits.velocity: has 3 entries for 2 joints"]),
    "zero gravity": (yaml("gravity: [0, 0, 0]"), ["gravity: has zero length", "`none`"]),
    "singular coupling": (
        yaml("drives: {coupling_matrix: [[1, 2], [2, 4]]}"),
        ["drives.coupling_matrix: is zero for a joint, or singular"],
    ),
    "negative rotor": (yaml("drives: {rotor_inertia: [1, -1]}"), ["drives.rotor_inertia[2]: is negative"]),
    "rotor axis of zero length": (yaml("drives: {axis: [[0, 0, 1], [0, 0, 0]]}"), ["drives.axis[2]: has zero length"]),
    "section that is a list": (yaml("limits: [1]"), ["limits: must be a mapping"]),
    "file that is missing": (
        "name: arm\nkinematics: {convention: urdf, file: gone.urdf}",
        ["arm.yaml", "kinematics.file", "gone.urdf", "which is not there"],
    ),
}

XML = {
    "binary": (b"\x00\xff\xfe\x80", ["is not a text file"]),
    "empty": ("", ["is not valid XML"]),
    "malformed": ("<robot><link></robot>", ["line 1, column", "is not valid XML"]),
    "entity bomb": (BOMB + "<robot>&b;</robot>", ["entities"]),
    "unknown encoding": ('<?xml version="1.0" encoding="nonsense"?><robot/>', ["encoding"]),
    "multi-byte encoding": ('<?xml version="1.0" encoding="big5"?><robot/>', ["encoding"]),
    "xacro": ('<robot xmlns:xacro="http://ros.org/wiki/xacro"><xacro:arm/></robot>', ["arm", "xacro", "expand"]),
    "other root": ("<sdf/>", ["<sdf>"]),
    "no links": ("<robot/>", ["<link>"]),
    "floating": (urdf("a b floating", "b c fixed"), ["joint 'j1'", "'floating'", "revolute, continuous, prismatic"]),
    "planar": (urdf("a b planar", "b c fixed"), ["joint 'j1'", "'planar'", "revolute, continuous, prismatic"]),
    "two parents": (urdf("a b revolute", "a c revolute", "c b revolute"), ["link 'b'", "two parent joints", "loop"]),
    "cycle": (urdf("a b revolute", "b c revolute", "c a revolute"), ["<joint>", "loop"]),
    "cycle beside the base": (urdf("b c revolute", "c b revolute"), ["link 'b'", "loop"]),
    "two roots": (urdf("a b revolute"), ["<link>", "several base links (a, c)"]),
    "nothing moves": (urdf("a b fixed", "b c fixed"), ["<joint>", "none can move"]),
    "missing link": (urdf("a b revolute", "b x revolute"), ["joint 'j2'", "'x' as its child"]),
    "same link twice": (urdf("a b revolute", links="abb"), ["link 'b'", "twice"]),
    "axis of zero length": (urdf('a b revolute <axis xyz="0 0 0"/>', "b c fixed"), ["joint 'j1'", "axis of zero"]),
    "two numbers": (urdf('a b revolute <axis xyz="0 1"/>', "b c fixed"), ["joint 'j1': xyz='0 1'", "has 2 numbers"]),
    "word": (urdf('a b revolute <origin xyz="0 up 1"/>', "b c fixed"), ["joint 'j1': xyz='0 up 1'", "not a list"]),
    "nan": (urdf('a b revolute <origin rpy="0 nan 1"/>', "b c fixed"), ["joint 'j1': rpy='0 nan 1'", "not finite"]),
    "reversed limits": (
        urdf('a b revolute <limit lower="1" upper="-1" effort="1" velocity="1"/>', "b c fixed"),
        ["joint 'j1'", "limits reversed"],
    ),
}

OPTIONS = {
    "too many links": ("rx60 --links 9", ["rx60: links: is 9", "1 to 6"]),
    "no links": ("rx60 --links 0", ["rx60: links: is 0"]),
    "unknown robot": ("po10", ["robot 'po10'", "did you mean 'pa10'?", "powerball"]),
    "very long name": ("a" * 5000, ["is not known"]),
    "wrong suffix": ("arm.stl", ["arm.stl", ".urdf"]),
    "unknown simplification": ("pa10 --simplify publishd", ["'publishd'", "did you mean 'published'?", "none"]),
    "unknown view": ("pa10 --view barycentrc", ["'barycentrc'", "did you mean 'barycentric'?", "appendix"]),
    "zero gravity": ("pa10 --gravity 0 0 0", ["gravity: has zero length", "`gravity: none`"]),
}

PAIRS = zip("abcdefg", "bcdefgh", strict=True)
MERGED = "a: &a {x: 1}\n" + "\n".join(f"{x}: &{x} {{<<: [{', '.join([f'*{w}'] * 10)}]}}" for w, x in PAIRS)
FORMULAS = [
    "Izz1 +",
    "Izz1*Izz2",
    "__import__('os')",
    "Izz1 + 5",
    "nonsense",
    "'a'",
    "\0",
    "Izz1 ** 99",
    pytest.param("-" * 5000 + "m1", id="deep"),
    pytest.param("1e999 * m1", id="infinite"),
]


def check(result, *words):
    """One line on standard error that holds the words; nothing on standard output."""
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("armid: error: ")
    assert result.err.count("\n") == 1, result.err
    for word in words:
        assert word in result.err
    assert len(result.err) < 20_000


@pytest.mark.parametrize("case", YAML)
def test_bad_robot_file(armid, tmp_path, case):
    """YAML that is broken or says something impossible."""
    content, words = YAML[case]
    path = tmp_path / "arm.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    check(armid("model", path), str(tmp_path), *words)


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
@pytest.mark.parametrize("case", XML)
def test_bad_urdf(armid, tmp_path, case, suffix):
    """XML that is broken, dangerous or not an arm, under either ending."""
    content, words = XML[case]
    path = tmp_path / f"arm{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    check(armid("model", path), str(path), *words)


@pytest.mark.parametrize(
    "content", ["<mujoco><worldbody></mujoco>", BOMB + "<mujoco>&b;</mujoco>", "<mujoco><a/></mujoco>"]
)
def test_bad_mjcf(armid, tmp_path, content):
    """MJCF that is broken, dangerous or unknown to MuJoCo."""
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(content)
    check(armid("model", tmp_path / "arm.xml"), str(tmp_path / "arm.xml"))


@pytest.mark.parametrize("command", ["model", "robots"])
@pytest.mark.parametrize("suffix", [".yaml", ".urdf", ".xml"])
def test_missing_files_and_folders(armid, tmp_path, command, suffix):
    """A file that is not there, and a folder in its place."""
    check(armid(command, tmp_path / f"gone{suffix}"), str(tmp_path / f"gone{suffix}"), "there is no such file")
    (tmp_path / f"folder{suffix}").mkdir()
    check(armid(command, tmp_path / f"folder{suffix}"), str(tmp_path / f"folder{suffix}"), "is a folder")


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options(armid, tmp_path, monkeypatch, case):
    """Options and names that mean nothing; near misses are recognised."""
    arguments, words = OPTIONS[case]
    (tmp_path / "arm.stl").write_text("solid")
    monkeypatch.chdir(tmp_path)
    check(armid("model", *arguments.split()), *words)


@pytest.mark.parametrize("formula", FORMULAS)
def test_bad_formulas(armid, tmp_path, formula):
    """A published formula that cannot be read is named with its file and set; it does no harm until it is viewed."""
    path = tmp_path / "arm.yaml"
    text = formula.replace("\0", "\\0").replace('"', '\\"')
    path.write_text(yaml(f'published: {{p: {{parameters: [{{name: x, value: 1, formula: "{text}"}}]}}}}'))
    assert armid("model", path).code == 0
    check(armid("model", path, "--view", "p"), str(path), "published.p", "formula")


def test_null_is_not_mistaken_for_a_misspelling(armid, tmp_path):
    """A required field without a value is missing; its own name is no suggestion."""
    (tmp_path / "arm.yaml").write_text(ARM.replace("arm", "null", 1))
    assert "did you mean" not in armid("model", tmp_path / "arm.yaml").err


def test_alias_bomb(armid, tmp_path):
    """Aliases that unfold to millions of entries are refused in a short line."""
    lines = ["name: arm", "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"{x}: &{x} [{', '.join([f'*{w}'] * 10)}]" for w, x in zip("abcde", "bcdef", strict=True)]
    (tmp_path / "arm.yaml").write_text("\n".join([*lines, "title: *f", MODIFIED + "[0, 0, 0, 0]]}"]))
    result = armid("model", tmp_path / "arm.yaml")
    check(result, "aliases that stand for millions")
    assert len(result.err) < 1000


@pytest.mark.parametrize(
    "text",
    [
        MERGED,
        "a: &a [*a]",
        "b: " + "[1, " * 300 + "1" + "]" * 300 + " " * 300_000,
        "b: 1:" + ":".join(["59"] * 20_000),
        'title: "a\\ud800"\n' + ARM,
    ],
    ids=["merged mappings", "itself", "length", "a number of 35 000 digits", "half a character"],
)
def test_other_bombs(armid, tmp_path, text):
    """Merged mappings, an alias of itself, long files, long numbers, halves of characters."""
    (tmp_path / "arm.yaml").write_text(text)
    check(armid("model", tmp_path / "arm.yaml"))
