"""Robot files that must be refused: values that mean nothing, and keys that would be silently ignored."""

import pytest
import yaml

from armid import load_robot
from armid.errors import DescriptionError

ROWS = [[0, 0, 0.3, 0], ["-pi/2", 0.1, 0, 0]]
KINEMATICS = {"convention": "modified-dh", "rows": ROWS}
INERTIA = {"xx": 1, "xy": 0, "xz": 0, "yy": 1, "yz": 0, "zz": 1}
LINK = {"mass": 1, "com": [0, 0, 0], "inertia": INERTIA}
SPRING = {"type": "gravity-compensation", "joint": 2, "a": 0.2, "b": 0.5}
TABLE = {"type": "table", "joint": 2, "position": [0, 1], "torque": [0, 1]}


@pytest.fixture
def load(tmp_path):
    def write(fields):
        path = tmp_path / "arm.yaml"
        path.write_text(yaml.dump({"name": "arm", "kinematics": KINEMATICS, **fields}, Dumper=yaml.SafeDumper))
        return load_robot(path)

    return write


def virtual(**changes):
    return {"virtual": {"links": [LINK], **changes}}


REFUSED = {
    "armid": ({"armid": 2}, "armid: is 2"),
    "name": ({"name": "two words"}, "name: is 'two words'"),
    "title": ({"title": 5}, "title: must be text"),
    "parents": ({"kinematics": {**KINEMATICS, "parents": [0]}}, r"kinematics\.parents: has 1 entries for 2 rows"),
    "joint_names": ({"kinematics": {**KINEMATICS, "joint_names": ["a", "a"]}}, r"joint_names: holds a name twice"),
    "tool": ({"tool": {"xyz": [1, 2]}}, r"tool\.xyz: must be a list of 3"),
    "gravity": ({"gravity": "down"}, "gravity: must be a list of 3"),
    "position": ({"limits": {"position": [[-1, 1], [1, 1]]}}, r"limits\.position\[2\]: is reversed or empty"),
    "velocity": ({"limits": {"velocity": [1, -1]}}, r"limits\.velocity: is -1 for joint 2"),
    "box": ({"limits": {"box": [[0, 0, 0], [1, 1, 0]]}}, r"limits\.box: is reversed"),
    "assumed": ({"limits": {"assumed": ["torqe"]}}, r"limits\.assumed\[1\]: is 'torqe', did you mean 'torque'"),
    "gear": ({"drives": {"gear_ratio": [0, 1]}}, r"drives\.gear_ratio: is 0 for joint 1"),
    "carrier": ({"drives": {"carrier": [0, 7]}}, r"drives\.carrier\[2\]: is 7"),
    "coupled": ({"drives": {"coupled": "yes, please"}}, r"drives\.coupled: must be true or false"),
    "coupling": ({"drives": {"coupling_matrix": [[1, 0]]}}, r"drives\.coupling_matrix: has 1 rows for 2 joints"),
    "law": ({"friction": {"law": "coulomb-viscos"}}, r"friction\.law: .*did you mean 'coulomb-viscous'"),
    "spring type": ({"springs": [{**SPRING, "type": "rubber"}]}, r"springs\[1\]\.type: is 'rubber'"),
    "spring joint": ({"springs": [{**SPRING, "joint": 3}]}, r"springs\[1\]\.joint: is 3"),
    "spring a": ({"springs": [{**SPRING, "a": 0}]}, r"springs\[1\]\.a: is 0"),
    "table": ({"springs": [{**TABLE, "position": [1, 0]}]}, r"springs\[1\]\.position: must rise"),
    "zero": ({"simplify": {"s": {"zero": ["Ixx3"]}}}, r"simplify\.s\.zero: 'Ixx3' is no parameter"),
    "neglect": ({"simplify": {"s": {"neglect_links": [3]}}}, r"simplify\.s\.neglect_links: holds 3"),
    "known": ({"known": {"Ixx9": 1}}, r"known\.Ixx9: 'Ixx9' is no parameter"),
    "value": ({"published": {"p": {"parameters": [{"name": "a", "value": "x"}]}}}, r"p\.parameters\[1\]\.value: 'x'"),
    "constants": ({"published": {"p": {"constants": 5, "parameters": []}}}, r"published\.p\.constants"),
    "constant": ({"published": {"p": {"constants": {"c": "x"}, "parameters": []}}}, r"published\.p\.constants\.c"),
    "set's gear": ({"published": {"p": {"gear_ratio": "abc", "parameters": []}}}, r"published\.p\.gear_ratio"),
    "virtual links": (virtual(links=[LINK] * 3), r"virtual\.links: has 3 entries"),
    "virtual mass": (virtual(links=[{**LINK, "mass": None}]), r"virtual\.links\[1\]\.mass: is missing"),
    "virtual springs": (virtual(springs=[{"k": 1, "l0": 1}]), r"virtual\.springs: has 1 entries for 0"),
    "coefficients": (
        virtual(friction={"law": "viscous", "coefficients": {"fc": 1}}),
        r"virtual\.friction\.coefficients: lacks fv",
    ),
    "current gain": ({"drives": {"current_gain": [[], 1]}}, r"drives\.current_gain\[1\]"),
    "virtual rotor": (virtual(rotor_inertia=-1), r"virtual\.rotor_inertia"),
    "virtual noise": (virtual(torque_noise=-1), r"virtual\.torque_noise"),
    "virtual encoder": (virtual(encoder_resolution=-1), r"virtual\.encoder_resolution"),
    "status": ({"provenance": [{"field": "name", "status": "guessed"}]}, r"provenance\[1\]\.status: is 'guessed'"),
}

IGNORED = {
    "section": ({"limits": {"speed": 1}}, r"limits\.speed: is not a known key"),
    "spring": ({"springs": [{**SPRING, "c": 1}]}, r"springs\[1\]\.c: is not a known key"),
    "virtual": (virtual(nois=1), r"virtual\.nois: is not a known key"),
    "virtual friction": (virtual(friction={"law": "none", "lw": 1}), r"virtual\.friction\.lw: is not a known key"),
    "virtual coefficient": (
        virtual(friction={"law": "viscous", "coefficients": {"fv": 1, "fcc": 1}}),
        r"virtual\.friction\.coefficients\.fcc",
    ),
    "virtual spring": (
        {"springs": [SPRING], **virtual(springs=[{"k": 1, "l0": 1, "l1": 2}])},
        r"virtual\.springs\[1\]\.l1: is not a known key",
    ),
    "virtual payload": (virtual(payload={**LINK, "name": "box"}), r"virtual\.payload\.name: is not a known key"),
    "published": ({"published": {"p": {"params": []}}}, r"published\.p\.params: is not a known key"),
    "published row": (
        {"published": {"p": {"parameters": [{"name": "a", "value": 1, "formla": "m1"}]}}},
        r"published\.p\.parameters\[1\]\.formla: is not a known key, did you mean 'formula'",
    ),
    "file beside rows": ({"kinematics": {**KINEMATICS, "file": "arm.urdf"}}, r"kinematics\.file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_without_meaning_are_refused(load, case):
    """The error names the file and the field."""
    fields, words = REFUSED[case]
    with pytest.raises(DescriptionError, match=rf"arm\.yaml: .*{words}"):
        load(fields)


@pytest.mark.parametrize("case", IGNORED)
def test_unknown_keys_are_refused_at_any_depth(load, case):
    """A key that armid would not use is an error, wherever it stands."""
    fields, words = IGNORED[case]
    with pytest.raises(DescriptionError, match=rf"arm\.yaml: .*{words}"):
        load(fields)


def test_numbers_as_names_are_not_ignored(load):
    """A set called 2007, which YAML reads as a number, keeps its contents."""
    robot = load({"simplify": {2007: {"zero": ["mx1"]}}})
    assert robot.simplifications["2007"].zero == {"mx1"}


def test_folders_and_files_without_ending_are_refused(tmp_path):
    """A folder is called one, not a file with the ending ''."""
    (tmp_path / "arm").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(DescriptionError, match="arm: is a folder; name the file that describes the robot"):
        load_robot(tmp_path / "arm")
    with pytest.raises(DescriptionError, match=r"file: has no ending that says what it is; armid reads \.yaml"):
        load_robot(tmp_path / "file")


def test_messages_stay_short(load):
    """A large value in the wrong place is not printed in full: aliases could make it endless."""
    value = ["lol"] * 10
    for _ in range(3):
        value = [value] * 10
    with pytest.raises(DescriptionError, match="title") as caught:
        load({"title": value})
    assert len(str(caught.value)) < 1000
