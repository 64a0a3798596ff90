"""`armid audit`: exit codes, JSON and what is said."""

import json

import pytest

KEYS = {"possible", "certificates", "distance_parameters", "distance_torque", "nearest"}
URDF = """<robot name="two"><link name="base"/>
<link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="2"/>
<inertia ixx="0.02" iyy="0.03" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="10" velocity="1"/></joint></robot>"""


@pytest.mark.parametrize("name", ["pa10", "er16", "powerball", "rx60"])
def test_published_sets_are_impossible(armid, name):
    result = armid("audit", name, "--published", "--json")
    data = json.loads(result.out)
    assert (result.code, result.err) == (1, "")
    assert set(data) >= KEYS
    assert data["possible"] is False
    assert data["certificates"]


def test_one_set(armid):
    """The reference payload is possible, the mean of ten is not; without a name the impossible one decides."""
    assert armid("audit", "kr15", "--published", "--set", "payload-reference").code == 0
    result = armid("audit", "kr15", "--set", "payload-mean")
    assert result.code == 1
    assert "0.07602 + 0.6212 < 0.7218" in result.out
    result = armid("audit", "kr15", "--published", "--json")
    data = json.loads(result.out)
    assert (result.code, data["possible"], len(data["sets"])) == (1, False, 2)


def test_says_why_and_how_far(armid):
    out = armid("audit", "pa10", "--published").out
    assert "I4xxR - I4zzR = 0.2155, but must be ≤ 0" in out
    assert "16 % of the parameters away, 4.8 % of the torque" in out


def test_urdf(armid, tmp_path):
    """A URDF that breaks the triangle inequality is impossible, one that does not is possible."""
    path = tmp_path / "two.urdf"
    path.write_text(URDF.format(izz=0.04), encoding="utf-8")
    assert armid("audit", path, "--quiet").code == 0
    path.write_text(URDF.format(izz=0.4), encoding="utf-8")
    result = armid("audit", path, "--quiet", "-o", tmp_path / "audit.json")
    assert result.code == 1
    assert "link 1: its principal moments of inertia break the triangle inequality" in result.out
    assert json.loads((tmp_path / "audit.json").read_text("utf-8"))["possible"] is False
    assert f"wrote {tmp_path / 'audit.json'}" in result.out
    assert armid("audit", path, "-o", path).code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pa10", "--set", "table-9"], "appendix"),
        (["ir361", "--published"], "has no published sets"),
        (["gone.json"], "there is no such file"),
        (["gone.json", "--links", "2"], "has its robot with it"),
        (["pa10", "-o", "nowhere/audit.json"], "there is no folder"),
        (["gone.urdf"], "there is no such file"),
        (["nothing"], "is not known"),
    ],
)
def test_bad_input(armid, arguments, words):
    result = armid("audit", *arguments)
    assert result.code == 2
    assert words in result.err


def test_damaged_fit(armid, tmp_path):
    path = tmp_path / "fit.json"
    path.write_text('{"format": "armid fit 1"}', encoding="utf-8")
    result = armid("audit", path)
    assert result.code == 2
    assert "is missing" in result.err
