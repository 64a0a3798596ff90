"""`armid design`: a certified plan in a file, its exports and pictures beside it, one sentence for every mistake."""

import io
import json
import os
import re
import sys

import numpy as np
import pytest

from armid import load_robot, tool_frame
from armid.excitation import load_plan

FAST = ("ir361", "--starts", 1)
LIMIT = '<limit lower="-2" upper="2" velocity="2" effort="30"/><axis xyz="0 1 0"/><origin xyz="0.1 0 0.3"/>'
BODY = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
URDF = (
    '<robot name="r"><link name="l0"/>'
    + "".join(f'<link name="l{i}">{BODY}</link>' for i in (1, 2))
    + "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i - 1}"/><child link="l{i}"/>{LIMIT}</joint>'
        for i in (1, 2)
    )
    + "</robot>"
)


def test_json(armid):
    """One object with the figures that scripts read; nothing on standard error."""
    result = armid("design", *FAST, "--json")
    assert (result.code, result.err) == (0, "")
    data = json.loads(result.out)
    wanted = "criterion value condition_number condition_number_raw sigma_min certified margins seconds"
    assert set(wanted.split()) <= set(data)
    assert (data["criterion"], data["certified"], data["files"]) == ("d-optimal", True, [])
    assert data["condition_number_raw"] >= data["condition_number"] >= 1.0
    known = {"position", "velocity", "acceleration", "torque", "self-collision", "floor", "tool speed"}
    assert {margin["quantity"] for margin in data["margins"]} == known
    assert data["unchecked"] == []
    assumed = {"excitation.assumed-limits", "excitation.assumed-shapes", "excitation.assumed-floor"}
    assert {note["code"] for note in data["notes"]} == {*assumed, "excitation.assumed-tool-speed"}
    assert all(margin["margin"] >= 0.0 for margin in data["margins"])


def test_everything_is_written_beside_the_plan(armid, tmp_path):
    """The plan can be read again; exports and pictures share its name, and each file is told."""
    pytest.importorskip("matplotlib")
    target = tmp_path / "run 1.json"
    result = armid("design", *FAST, "-o", target, "--to", "csv,ros", "--pictures", "--quiet")
    assert (result.code, result.err) == (0, "")
    names = ["run 1.json", "run 1.csv", "run 1.ros.yaml"]
    names += [f"run 1-{name}.png" for name in ("motion", "tool-path", "spectrum", "singular-values")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert [line[6:] for line in result.out.splitlines() if line.startswith("wrote ")] == [
        str(tmp_path / name) for name in names
    ]
    plan = load_plan(target)
    assert plan.certified
    table = np.loadtxt(tmp_path / "run 1.csv", delimiter=",", skiprows=1)
    assert np.array_equal(table[:, 1:4], plan.trajectory.sample(150.0)[1].q)


def test_urscript_and_progress(armid, tmp_path):
    """A six-joint arm gets its script; the name of the plan need not end in .json; progress goes to standard error."""
    result = armid(
        "design", "powerball", "--starts", 1, "--budget", 2, "-o", tmp_path / "plan.csv", "--to", "urscript,csv"
    )
    assert result.code == 0
    told = re.fullmatch(r"start 1/1, best so far: (log det \S+), (condition number \S+)  100 %  \d+ s\n", result.err)
    assert told is not None, result.err
    assert told[1] in result.out
    assert told[2] in result.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.csv", "plan.csv.csv", "plan.csv.script"]
    assert load_plan(tmp_path / "plan.csv").robot == "powerball"


def test_stand_ins_for_unknown_limits(armid, tmp_path):
    """A URDF states no accelerations: refused with the way out, which works and is told."""
    (tmp_path / "arm.urdf").write_text(URDF)
    refused = armid("design", tmp_path / "arm.urdf", "--starts", 1)
    assert (refused.code, refused.out) == (2, "")
    assert "limits.acceleration of j1, j2 is not known" in refused.err
    assert "--default-limits" in refused.err
    result = armid("design", tmp_path / "arm.urdf", "--starts", 1, "--default-limits", "--json")
    assert result.code == 0
    assert result.err == "armid: stand-ins are used for unknown limits: acceleration of joint 1, 2\n"
    assert json.loads(result.out)["certified"]


BAD = {  # options, words of the sentence
    "criterion": (["--criterion", "b-optimal"], ["criterion 'b-optimal' is not known, did you mean"]),
    "period": (["--period", "10.001"], ["10.001", "whole number", "use "]),
    "Nyquist": (["--harmonics", "800"], ["harmonic 800 is 80 Hz", "half the rate of 150 Hz"]),
    "resonance": (["--resonance", "0.4"], ["harmonic 5 is 0.5 Hz", "resonance of 0.4 Hz"]),
    "posture": (["--posture", "9", "0", "0"], ["posture of joint 1 is 9, outside its limits"]),
    "short posture": (["--posture", "0"], ["posture has 1 numbers; 3 are needed"]),
    "joints": (["--joints", "4"], ["1 to 3"]),
    "joints that are words": (["--joints", "one"], ["joint 'one' is not known"]),
    "harmonics that are words": (["--harmonics", "few"], ["--harmonics few: not whole numbers"]),
    "parameters": (["--parameters", "inertal"], ["did you mean 'inertial'?"]),
    "starts": (["--starts", "0"], ["starts is 0", "at least 1"]),
    "too many starts": (["--starts", "1000000000"], ["starts is 1000000000", "at most"]),
    "too many harmonics": (["--harmonics", "1000000000"], ["harmonics is 1000000000", "at most"]),
    "too many samples": (["--rate", "1e6", "--period", "1000"], ["1e+06 Hz", "samples"]),
    "noise of two joints": (["--noise", "1", "2"], ["noise has 2 numbers; 3 are needed"]),
    "noise of nothing": (["--noise", "1", "2", "0"], ["noise is [1.0, 2.0, 0.0]", "positive and finite"]),
    "flat keep-out box": (["--keep-out", *"110120"], ["the keep-out box from", "is no box"]),
    "everything kept out": (["--keep-out", *"888999", "--keep-out", *["-9"] * 3, *"999"], ["keep-out box 2"]),
    "radius": (["--collisions", "0"], ["the radius of links", "must be positive"]),
    "unseen": (["--joints", "1"], ["the motion cannot tell", "let more joints move"]),
    "folder": (["-o", "."], ["is a folder; name a file"]),
    "box out of reach": (["--box", "5", "5", "5", "6", "6", "6"], ["no trajectory keeps all limits", "tool box"]),
    "exports without plan": (["--to", "csv"], ["--to needs -o PLAN"]),
    "pictures without plan": (["--pictures"], ["--pictures needs -o PLAN"]),
    "kind of export": (["-o", "plan.json", "--to", "csv,rso"], ["'rso' is not known, did you mean 'ros'?"]),
    "empty kind": (["-o", "plan.json", "--to", ""], ["'' is not known; there are: csv, ros, urscript"]),
    "script for three joints": (["-o", "plan.json", "--to", "urscript"], ["6 joints, this one has 3"]),
    "no folder": (["-o", "gone/plan.json"], ["gone/plan.json: cannot be written"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(armid, tmp_path, monkeypatch, name):
    """Each mistake: exit code 2, one line, the way out, no file."""
    monkeypatch.chdir(tmp_path)
    options, words = BAD[name]
    result = armid("design", *FAST, "--quiet", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("armid: error: ")
    assert result.err.count("\n") == 1
    assert all(word in result.err for word in words), result.err
    assert list(tmp_path.iterdir()) == []


def test_places_without_permission(armid, tmp_path, monkeypatch):
    """Found out before the search: a folder, or a file in it, that may not be written."""
    import armid.excitation as excitation

    def never(*arguments, **options):
        raise AssertionError("the search began")

    monkeypatch.setattr(excitation, "design", never)
    target = tmp_path / "plan.json"
    target.write_text("{}")
    allowed = os.access
    for denied in (tmp_path, target):
        monkeypatch.setattr(
            os, "access", lambda path, mode, denied=denied, **more: path != denied and allowed(path, mode, **more)
        )
        result = armid("design", *FAST, "-o", target)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"armid: error: {target}: cannot be written (you may not ")
        assert f"{denied})" in result.err
        assert result.err.count("\n") == 1


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def test_interruption_on_a_terminal(armid, monkeypatch):
    """The first start is told at once, the line is cleared, and the result says that the search was stopped."""
    import armid.excitation.search as search

    real, calls = search.solve, []

    def interrupted(*arguments, **options):
        calls.append(screen.getvalue())
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    screen = Terminal()
    monkeypatch.setattr(search, "solve", interrupted)
    monkeypatch.setattr(search, "available_threads", lambda: 1)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "50")
    result = armid("design", "ir361", "--starts", 6)
    assert result.code == 0
    assert calls[0].startswith("\r\x1b[Kstart 1/11  0 %")
    assert re.fullmatch(r"start 3/11, best so far: .*", calls[2].split("\r\x1b[K")[-1])
    assert screen.getvalue().endswith("\r\x1b[K")
    assert "the search was stopped after 2 of 11 starts" in result.out


def test_pictures_without_matplotlib(armid, tmp_path, monkeypatch):
    """The extra is named before the search begins."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = armid("design", *FAST, "-o", tmp_path / "plan.json", "--pictures")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "armid: error: the extra 'report' is needed for pictures; install it with: pip install 'armid[report]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_keep_out_boxes_and_noise(armid, tmp_path):
    """Several boxes keep the tool out, proved; the plan's file tells boxes and noise."""
    target = tmp_path / "plan.json"
    boxes = ("--keep-out", 0.2, 0.2, 0.2, 1, 1, 1, "--keep-out", -0.2, -0.2, 0.5, -0.5, -0.5, 0)
    result = armid("design", *FAST, *boxes, "--noise", 13.2, 18.4, 6, "-o", target)
    assert result.code == 0
    assert "keep-out box 2 margin " in result.out
    data = json.loads(target.read_text())
    assert data["options"]["noise"] == [13.2, 18.4, 6.0]
    told = data["options"]["constraints"][-1]
    assert (told["name"], told["corner"], told["opposite"]) == ("keep-out box 2", [-0.5, -0.5, 0], [-0.2, -0.2, 0.5])
    margins = {margin["quantity"]: margin for margin in data["margins"]}
    assert margins["keep-out box 1"]["unit"] == "m"
    assert margins["keep-out box 1"]["guarantee"].startswith("proved on ")
    plan = load_plan(target)
    tool = tool_frame(load_robot("ir361"), plan.trajectory.sample(1000.0)[1].q)[:, :3, 3]
    for corners in ([[0.2] * 3, [1.0] * 3], [[-0.5, -0.5, 0.0], [-0.2, -0.2, 0.5]]):
        assert not np.any(np.all((tool > corners[0]) & (tool < corners[1]), axis=1))


def test_progress_without_a_feasible_plan(armid):
    """What is broken, and by how much, is told while the search goes on."""
    result = armid("design", *FAST, "--box", 5, 5, 5, 6, 6, 6)
    assert result.code == 2
    assert re.match(r"start 1/1, nothing feasible yet, limits broken by ", result.err)


def test_collisions_floor_and_given(armid, tmp_path):
    """Links keep apart and above the floor; a second plan is designed for what the first leaves unknown."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    common = ("design", "ir361", "--starts", "1", "--quiet")
    assert armid(*common, "-o", first, "--collisions", "0.05", "--floor", "0").code == 0
    names = [margin["quantity"] for margin in json.loads(first.read_text())["margins"]]
    assert names[3:] == ["torque", "self-collision", "floor", "tool speed"]
    assert armid(*common, "-o", second, "--given", first).code == 0
    assert json.loads(second.read_text())["options"]["given"] == "as given"
    result = armid("design", "er16", "--starts", "1", "--given", first)
    assert (result.code, "not for er16" in result.err) == (2, True)
