"""`armid model`: counts of base parameters known from the literature, and what is printed."""

import json
from importlib import resources

import pytest

KEYS = {
    "robot",
    "joints",
    "joint_names",
    "gravity",
    "standard_parameters",
    "base_parameters",
    "friction_parameters",
    "spring_parameters",
    "groups",
    "alone",
    "combined",
    "unidentifiable",
    "zero",
    "disagreement",
}
UPRIGHT = "--gravity 0 0 -9.81"
COUNTS = {  # arguments: base, friction, springs
    "rx60": (16, 0, 0),
    "rx60 --no-rotors": (15, 0, 0),
    "rx60 --links 6": (40, 0, 0),
    "rx60 --links 6 --no-rotors": (36, 0, 0),
    "rx60 --simplify alpha --no-rotors": (13, 0, 0),
    "ir361": (16, 6, 2),
    "ir361 --no-rotors": (15, 6, 2),
    "er16": (16, 6, 0),
    "er16 --no-rotors": (15, 6, 0),
    "er16 --links 6": (40, 12, 0),
    "er16 --links 6 --no-rotors": (36, 12, 0),
    "pa10": (21, 84, 0),
    "pa10 --simplify none": (50, 84, 0),
    f"pa10 --simplify none {UPRIGHT}": (48, 84, 0),
    "pa10 --simplify none --no-rotors": (45, 84, 0),
    "powerball": (23, 30, 0),
    "powerball --no-rotors": (19, 30, 0),
    "powerball --simplify none": (40, 30, 0),
    "powerball --simplify none --no-rotors": (36, 30, 0),
}


@pytest.mark.parametrize("arguments", COUNTS)
def test_counts_of_the_papers_arms(armid, arguments):
    """Base, friction and spring parameters, with and without rotors, links and symmetries."""
    result = armid("model", *arguments.split(), "--json", "--quiet")
    data = json.loads(result.out)
    found = tuple(data[f"{kind}_parameters"] for kind in ("base", "friction", "spring"))
    assert (result.code, result.err, found) == (0, "", COUNTS[arguments])
    assert len(data["groups"]) == data["base_parameters"]
    assert data["disagreement"] < 1e-9


def test_pa10_with_its_last_link(armid, tmp_path):
    """With link 7 not neglected, an edit of one line of the file, the PA-10 has 28 base parameters."""
    text = resources.files("armid.robot.library").joinpath("pa10.yaml").read_text("utf-8")
    line = "    neglect_links: [7]\n"
    assert line in text
    path = tmp_path / "pa10.yaml"
    path.write_text(text.replace(line, ""), encoding="utf-8")
    assert json.loads(armid("model", path, "--json").out)["base_parameters"] == 28


@pytest.mark.parametrize(("name", "count", "joints"), [("ur10e", 40, 6), ("xmate7p", 48, 7)])
def test_counts_of_real_arms(armid, data, name, count, joints):
    """Bare URDF files: rounded angles do not add parameters; each joint has three friction parameters."""
    result = armid("model", data / name / f"{name}.urdf", "--json")
    found = json.loads(result.out)
    assert (found["base_parameters"], found["friction_parameters"], found["joints"]) == (count, 3 * joints, joints)


def test_json_has_the_documented_keys(armid):
    """One object, whose lists sort every unknown inertial parameter into exactly one class."""
    data = json.loads(armid("model", "pa10", "--json").out)
    assert set(data) == KEYS
    assert (data["robot"], data["joints"], data["gravity"]) == ("pa10", 7, [0, -9.81, 0])
    assert data["standard_parameters"] == 77
    classes = [*data["alone"], *data["combined"], *data["unidentifiable"], *data["zero"]]
    assert len(classes) == len(set(classes)) == 77
    group = data["groups"][0]
    assert set(group) == {"name", "expression", "unit", "terms"}
    assert set(group["terms"][0]) == {"parameter", "coefficient"}


def test_text_states_the_counts(armid):
    """The first lines say what there is to identify; every group is listed."""
    result = armid("model", "ir361", "--quiet")
    assert (result.code, result.err) == (0, "")
    assert "16 base + 6 friction + 2 spring = 24 to identify" in result.out
    assert sum(line[:3].strip().isdigit() for line in result.out.splitlines()) == 16


@pytest.mark.parametrize("name", ["barycentric", "modified-newton-euler"])
def test_general_views(armid, name):
    """All parameters of all links; a change of parameters keeps the number of identifiable combinations."""
    text = armid("model", "pa10", "--no-rotors", "--view", name)
    data = json.loads(armid("model", "pa10", "--no-rotors", "--view", name, "--json").out)
    assert text.code == 0
    assert set(data) == {*KEYS, "view"}
    assert data["view"]["name"] == name
    assert data["view"]["identifiable_combinations"] == data["base_parameters"]
    assert len(text.out.splitlines()) == 1 + len(data["view"]["entries"]) == 71


def test_published_view(armid):
    """The appendix of the PA-10 paper lists 21 parameters, and all of them can be identified."""
    data = json.loads(armid("model", "pa10", "--view", "appendix", "--json").out)["view"]
    assert [entry["class"] for entry in data["entries"]] == ["alone"] * 21
    assert data["identifiable_combinations"] == 21


def test_published_view_without_rotors(armid):
    """A published list stays readable when the rotors are left out of the model."""
    assert armid("model", "pa10", "--view", "appendix", "--no-rotors").code == 0


def test_frames_of_any_arm_are_drawn(armid, tmp_path):
    outcome = armid("model", "er16", "--pictures", tmp_path / "drawn")
    assert outcome.code == 0
    assert "er16-frames.png" in outcome.out
    assert (tmp_path / "drawn" / "er16-frames.png").stat().st_size > 10_000


def test_model_with_nothing_to_identify(armid, tmp_path):
    """A description that leaves no unknown is answered in words, not by a crash."""
    path = tmp_path / "arm.yaml"
    rows = "{convention: modified-dh, rows: [[0, 0, 0, 0]]}"
    path.write_text(
        f"name: arm\nkinematics: {rows}\nfriction: {{law: none}}\nsimplify: {{published: {{neglect_links: [1]}}}}\n"
    )
    result = armid("model", path, "--no-rotors", "--json")
    assert result.code in (0, 2)
    if result.code == 0:
        assert json.loads(result.out)["base_parameters"] == 0
    else:
        assert result.err.startswith(f"armid: error: {path}")


def test_warnings_are_single_lines_and_can_be_silenced(armid, tmp_path):
    """Warnings go to standard error, one line each; --quiet leaves them out; the answer is the same."""
    ends = '<parent link="a"/><child link="b"/><origin rpy="1.5708 0 0"/>'
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="revolute">{ends}</joint></robot>'
    )
    loud, quiet = armid("model", path), armid("model", path, "--quiet")
    (line,) = [line for line in loud.err.splitlines() if "compiling" not in line]
    assert line.startswith(f"armid: warning: {path}: angles of j look rounded")
    assert (quiet.err, quiet.out) == ("", loud.out)
