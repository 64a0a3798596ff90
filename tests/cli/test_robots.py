"""`armid robots`: the list and one robot; `armid new`: the file it writes works at once and is never half there."""

import json
import os

import pytest

from armid import library_names

LINKS = "".join(f'<link name="l{i}"/>' for i in range(3))
JOINT = '<joint name="j{0}" type="{1}"><parent link="l{2}"/><child link="l{0}"/>{3}</joint>'
LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/><origin xyz="0.1 0.2 0.3" rpy="0.5 0 0"/>'
URDF = f'<robot name="r">{LINKS}{JOINT.format(1, "revolute", 0, LIMIT)}{JOINT.format(2, "prismatic", 1, LIMIT)}</robot>'
BODY = '<inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/><joint name="j{}" type="{}"/>'
MJCF = (
    f'<mujoco><option gravity="0 0 -1.62"/><worldbody><body>{BODY.format(1, "hinge")}'
    f'<body pos="0.1 0.2 0.3">{BODY.format(2, "slide")}</body></body></worldbody></mujoco>'
)


def model(armid, path):
    """What `armid model` says about a file, less its name."""
    result = armid("model", path, "--json")
    assert result.code == 0, result.err
    return {key: value for key, value in json.loads(result.out).items() if key != "robot"}


@pytest.mark.parametrize("suffix", [".urdf", ".xml"])
def test_description_of_a_file_means_the_same_as_the_file(armid, tmp_path, suffix):
    """The written robot file has the joints, gravity, groups and counts of the bare file, from any folder."""
    if suffix == ".xml":
        pytest.importorskip("mujoco")
    source = tmp_path / f"arm{suffix}"
    source.write_text(URDF if suffix == ".urdf" else MJCF)
    (tmp_path / "sub").mkdir()
    for target, options in (
        (tmp_path / "arm.yaml", ()),
        (tmp_path / "sub" / "b.yaml", ("-o", tmp_path / "sub/b.yaml")),
    ):
        result = armid("new", source, *options)
        assert (result.code, result.err) == (0, "")
        assert result.out == f"wrote {target}; edit it, then: armid model {target}\n"
        assert model(armid, target) == model(armid, source)


def test_template_with_a_dh_table(armid, tmp_path):
    """The template for a .yaml name loads as it is."""
    assert armid("new", tmp_path / "mine.yaml").code == 0
    found = model(armid, tmp_path / "mine.yaml")
    assert (found["joints"], found["friction_parameters"]) == (3, 9)


def test_limits_of_the_file_are_shown(armid, tmp_path):
    """What the file states stands in comments, what it lacks is to be filled in."""
    (tmp_path / "arm.urdf").write_text(URDF)
    armid("new", tmp_path / "arm.urdf")
    text = (tmp_path / "arm.yaml").read_text()
    assert "# velocity: [2.0, 2.0]   # rad/s, from the file" in text
    assert "# acceleration: [1.0, 1.0]   # rad/s^2; fill in" in text


@pytest.mark.parametrize("stem", ["123", "true", "1e5", "my arm", "arm #1", "arm: left", "é", "-", "null"])
def test_any_file_name_gives_a_file_that_loads(armid, tmp_path, stem):
    """Names that mean something else in YAML do not break the description."""
    (tmp_path / f"{stem}.urdf").write_text(URDF)
    assert armid("new", tmp_path / f"{stem}.urdf").code == 0
    assert model(armid, tmp_path / f"{stem}.yaml")["joints"] == 2


def test_weightless_file_gives_a_description_that_loads(armid, tmp_path):
    """An MJCF without gravity becomes `gravity: none`, not a vector that armid itself refuses."""
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(MJCF.replace("0 0 -1.62", "0 0 0"))
    assert armid("new", tmp_path / "arm.xml").code == 0
    assert model(armid, tmp_path / "arm.yaml")["gravity"] == [0, 0, 0]


def test_existing_file_is_kept_unless_forced(armid, tmp_path):
    """Nothing is overwritten without --force."""
    target = tmp_path / "arm.yaml"
    target.write_text("precious")
    refused = armid("new", target)
    assert (refused.code, refused.out, target.read_text()) == (2, "", "precious")
    assert refused.err == (
        f"armid: error: {target}: exists already; choose another name with -o or overwrite it with --force\n"
    )
    assert armid("new", target, "--force").code == 0
    assert model(armid, target)["joints"] == 3


def refused(armid, tmp_path, *arguments):
    """Run a command that must fail without leaving or changing any file."""
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = armid("new", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("armid: error: ")
    assert result.err.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    return result.err


def test_nothing_is_written_for_a_file_that_cannot_be_read(armid, tmp_path):
    """A broken source leaves no description behind."""
    (tmp_path / "arm.urdf").write_text("<robot>")
    assert "arm.urdf" in refused(armid, tmp_path, tmp_path / "arm.urdf")
    assert "gone.urdf" in refused(armid, tmp_path, tmp_path / "gone.urdf")
    assert "arm.stl" in refused(armid, tmp_path, tmp_path / "arm.stl")


@pytest.mark.parametrize("folder", ["missing", "file", "target"])
def test_nothing_is_left_behind_where_writing_fails(armid, tmp_path, folder):
    """A missing folder, a file in its place, a folder in the target's place: one error, no temporary files."""
    target = tmp_path / folder / "arm.yaml"
    if folder == "file":
        target.parent.write_text("")
    if folder == "target":
        target.mkdir(parents=True)
    assert str(target) in refused(armid, tmp_path, target, "--force")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for this user")
def test_nothing_is_left_behind_in_a_read_only_folder(armid, tmp_path):
    """The error names the file, and the folder stays empty."""
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert str(folder) in refused(armid, tmp_path, folder / "arm.yaml")


def test_forced_write_replaces_the_file_at_once(armid, tmp_path, monkeypatch):
    """When the disk fills up while writing, the old file is still there and no temporary one."""
    target = tmp_path / "arm.yaml"
    target.write_text("precious")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in refused(armid, tmp_path, target, "--force")


def test_the_source_is_never_overwritten(armid, tmp_path):
    """Not even with --force; and a name that is none gets a sentence."""
    source = tmp_path / "arm.urdf"
    source.write_text('<robot name="r"><link name="a"/></robot>')
    result = armid("new", source, "-o", source, "--force")
    assert (result.code, source.read_text()[:6]) == (2, "<robot")
    for name in ("", "."):
        assert armid("new", name).code == 2
    assert armid("new", "x.yaml", "-o", tmp_path / ("y" * 300 + ".yaml")).code == 2


def test_json_names_the_file(armid, tmp_path):
    """--json answers with the file that was written."""
    result = armid("new", tmp_path / "arm.yaml", "--json")
    assert (result.code, json.loads(result.out)) == (0, {"file": str(tmp_path / "arm.yaml")})


def test_list(armid):
    """One line per robot, then a hint."""
    result = armid("robots")
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert tuple(line.split()[0] for line in lines[:6]) == library_names()
    assert "armid model NAME" in lines[-1]


def test_list_as_json(armid):
    """Name, title and number of joints."""
    robots = json.loads(armid("robots", "--json").out)["robots"]
    assert [robot["name"] for robot in robots] == list(library_names())
    assert {robot["name"]: robot["joints"] for robot in robots}["pa10"] == 7
    assert all(robot["title"] for robot in robots)


@pytest.mark.parametrize("name", library_names())
def test_one_robot(armid, name):
    """Joints with their limits, and where each number comes from; text and JSON tell the same story."""
    result = armid("robots", name)
    data = json.loads(armid("robots", name, "--json").out)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{name}: {data['title']}\n")
    assert [joint["type"] for joint in data["joints"]] == ["revolute"] * len(data["joints"])
    assert all(joint["lower"] < joint["upper"] and joint["torque"] > 0 for joint in data["joints"])
    assert data["virtual"]
    for entry in data["provenance"]:
        assert f"{entry['status']:<12} {entry['field']}" in result.out


def test_numbers_are_those_of_the_description(armid):
    """Known numbers of the PA-10 file."""
    data = json.loads(armid("robots", "pa10", "--json").out)
    assert data["gravity"] == [0, -9.81, 0]
    assert [joint["velocity"] for joint in data["joints"]][:4] == [1, 1, 2, 2]
    assert {joint["gear_ratio"] for joint in data["joints"]} == {50}
    assert {joint["friction"] for joint in data["joints"]} == {"double-exponential"}
    assert data["assumed_limits"] == ["acceleration", "torque"]
    assert data["published"] == ["appendix"]


def test_unknown_limits_are_null(armid, tmp_path):
    """JSON has no NaN: what a file does not state is null, and a dash in the text."""
    path = tmp_path / "arm.yaml"
    path.write_text("name: arm\nkinematics: {convention: modified-dh, rows: [[0, 0, 0, 0, prismatic]]}\n")
    data = json.loads(armid("robots", path, "--json").out, parse_constant=lambda text: pytest.fail(text))
    (joint,) = data["joints"]
    assert (joint["type"], joint["lower"], joint["torque"]) == ("prismatic", None, None)
    assert not data["virtual"]
    assert " - … - " in armid("robots", path).out


def test_local_folder_does_not_hide_a_library_robot(armid, tmp_path, monkeypatch):
    """`armid robots pa10` works in a folder that holds another folder called pa10."""
    (tmp_path / "pa10").mkdir()
    monkeypatch.chdir(tmp_path)
    assert armid("robots", "pa10").code == 0
