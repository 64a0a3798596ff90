"""`armid robots`: the list and one robot."""

import json

import pytest

from armid import library_names


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
