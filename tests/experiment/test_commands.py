"""armid warmup, friction and load-friction: on the virtual robot and on logs, texts, JSON, files, refusals."""

import json

import numpy as np
import pytest

import armid
from armid.cli.main import parser
from armid.experiment.friction_runs import friction_sweep, load_friction_run
from armid.experiment.warm_up import warm_up
from armid.logs import write_log
from tests.experiment.fake_arm import FakeArm

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")


def run(*words):
    """Run a command as the program does, errors as they are raised."""
    options = parser().parse_args([str(word) for word in words])
    return options.run(options)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Logs of the three experiments, as a user would have them."""
    folder = tmp_path_factory.mktemp("logs")
    arm = FakeArm(POWERBALL, rate_hz=100.0)
    write_log(friction_sweep(arm, POWERBALL, 4, seconds=3.0).log, folder / "friction.csv")
    cold = FakeArm(POWERBALL, rate_hz=50.0, cold=1.0 / 9.0, time_constant_s=60.0)
    write_log(warm_up(cold, POWERBALL, [4], cycle_s=4.0).log, folder / "warmup.csv")
    write_log(load_friction_run(FakeArm(PA10, rate_hz=100.0), PA10, 3, seconds=30.0).log, folder / "stiffness.csv")
    rows = "kinematics: {convention: modified-dh, rows: [[0, 0, 0.3, 0], [pi/2, 0, 0, 0]]}"
    (folder / "bare.yaml").write_text(f"armid: 1\nname: bare\n{rows}\n")
    return folder


def test_friction_from_a_log(logs, capsys, tmp_path):
    """Text names joint, law and reason; the file holds version, options and a curve that can be read back."""
    assert run("friction", "powerball", logs / "friction.csv", "--law", "hyperbolic", "-o", tmp_path / "f.json") == 0
    text = capsys.readouterr().out
    assert "joint 4: hyperbolic, both directions together" in text
    assert "why this law: it was asked for" in text
    assert "joint 1" not in text
    data = json.loads((tmp_path / "f.json").read_text())
    assert data["armid"] == armid.__version__
    assert data["options"]["law"] == "hyperbolic"
    assert data["joints"][0]["number"] == 4
    from armid.estimation.single_joint.friction_fit import friction_from_data

    v = np.array([0.05, 0.3])
    truth = POWERBALL.virtual.friction[3].torque(v, POWERBALL.virtual.coefficients[3])
    assert friction_from_data(data["joints"][0]).curve(v) == pytest.approx(truth, rel=0.02)


def test_friction_json_and_picture(logs, capsys, tmp_path):
    """--json prints one object; --pictures writes the picture and names it."""
    pytest.importorskip("matplotlib")
    assert run("friction", "powerball", logs / "friction.csv", "--joint", 4, "--json", "--pictures", tmp_path) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["joints"][0]["law"] in ("hyperbolic", "double-exponential")
    assert data["files"] == [str(tmp_path / "powerball-friction.png")]
    assert (tmp_path / "powerball-friction.png").exists()


def test_warmup_from_a_log(logs, capsys):
    """Drop and time constant of the moved joint, with the cycle found in the log."""
    assert run("warmup", "powerball", logs / "warmup.csv", "--json") == 0
    (joint,) = json.loads(capsys.readouterr().out)["joints"]
    assert joint["number"] == 4
    assert joint["drop"] == pytest.approx(0.1, abs=0.015)
    assert joint["time_constant_s"] == pytest.approx(60.0, rel=0.1)
    assert run("warmup", "powerball", logs / "warmup.csv") == 0
    assert "drop [%]" in capsys.readouterr().out


def test_load_friction_from_a_log(logs, capsys, tmp_path):
    """The slope from the log alone; the offset only with a friction result of the same arm."""
    assert run("stiffness", "pa10", logs / "stiffness.csv", "--joint", 3) == 0  # the old names are understood
    text = capsys.readouterr().out
    assert "needs --friction" in text
    assert "present" in text
    (tmp_path / "other.json").write_text('{"format": "armid friction 1", "robot": "powerball", "joints": []}')
    with pytest.raises(armid.ArmidError, match="is about 'powerball', not 'pa10'"):
        run("load-friction", "pa10", logs / "stiffness.csv", "--friction", tmp_path / "other.json")
    (tmp_path / "none.json").write_text('{"format": "armid friction 1", "robot": "pa10", "joints": []}')
    for arguments in ((logs / "stiffness.csv",), ("--joints", 3)):
        with pytest.raises(armid.ArmidError, match="has no friction of joint"):
            run("load-friction", "pa10", *arguments, "--friction", tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("[]")
    with pytest.raises(armid.ArmidError, match="is not a result of"):
        run("load-friction", "pa10", logs / "stiffness.csv", "--friction", tmp_path / "bad.json")


def test_on_the_virtual_robot(capsys):
    """Without a log the commands experiment: posture, mounting and duration are told."""
    pytest.importorskip("mujoco")
    assert run("friction", "powerball", "--joint", "2", "--seconds", "0.3", "--rate", "100", "--quiet") == 0
    text = capsys.readouterr().out
    assert "base horizontal, x0 up" in text
    assert "s of motion" in text
    assert run("warmup", "powerball", "--joint", 4, "--cycle", 2, "--longest", 30, "--rate", 50, "--json") == 1
    assert json.loads(capsys.readouterr().out)["warm"] is False
    assert run("load-friction", "pa10", "--joints", 7, "--seconds", 1, "--rate", 100, "--json") == 0
    (joint,) = json.loads(capsys.readouterr().out)["joints"]
    assert joint["slope"] is None
    assert "payload" in joint["note"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("friction", "pa10", "--joint", "9"), "numbered 1 to 7"),
        (("friction", "pa10", "--joint", "joint9"), "is not known"),
        (("friction", "pa10", "--law", "coulomb"), "did you mean 'coulomb-viscous'"),
        (("friction", "pa10", "--seconds", "0"), "--seconds 0"),
        (("friction", "pa10", "-o", "/no/such/folder/x.json"), "no folder"),
        (("friction", "pa10", "--pictures", "LOGS/bare.yaml"), "is a file"),
        (("friction", "LOGS/bare.yaml"), "give a LOG"),
        (("warmup", "LOGS/bare.yaml"), "give a LOG"),
        (("stiffness", "LOGS/bare.yaml"), "give a LOG"),
        (("friction", "powerball", "nothing.csv"), "nothing.csv"),
        (("friction", "powerball", "LOGS/warmup.csv", "--joint", "1"), "drive it up and down alone"),
        (("stiffness", "powerball", "LOGS/warmup.csv"), "never moves alone"),
        (("friction", "pa10", "LOGS/friction.csv"), "joint7"),
        (("warmup", "powerball", "LOGS/warmup.csv", "--cycle", "60"), "at least 8"),
    ],
)
def test_bad_input(words, message, logs):
    """One sentence that names the thing and the way out."""
    with pytest.raises(armid.ArmidError, match=message):
        run(*(str(word).replace("LOGS", str(logs)) for word in words))
