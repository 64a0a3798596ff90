"""`armid payload`: from a fit and a log to a body, with exit codes and files."""

import json

import pytest

from armid.cli import main
from armid.estimation.fit import load_fit
from armid.logs import write_log
from armid.logs.log import Log, LogInfo
from armid.payload import load_payload
from tests.payload.stand import RATE_HZ, Draws


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """fit.json of the KR 15, logs with and without payload, the truth, and a wrong reference."""
    folder = tmp_path_factory.mktemp("payload")
    draws = Draws("kr15", joints=(2, 3, 4, 5), noise=0.01)
    fit = draws.fit()
    fit.save(folder / "fit.json")
    info = LogInfo(draws.robot.joint_names, "joint torque", rate_hz=RATE_HZ, robot="kr15")
    data = draws.loaded()
    write_log(Log(data.time, {"position": data.q, "effort": data.torque}, info), folder / "loaded.csv")
    (folder / "truth.yaml").write_text(
        "mass: 5.0\ncom: [0.03, 0.05, 0.12]\ninertia: {xx: 0.05, yy: 0.06, zz: 0.03, xy: 0.005, xz: 0, yz: 0.002}\n"
    )
    (folder / "wrong.yaml").write_text("mass: 7.0\n")
    return folder


@pytest.fixture
def run(capsys):
    """Runs the command and returns exit code and standard output."""

    def command(*arguments):
        capsys.readouterr()
        code = main(["payload", *(str(argument) for argument in arguments)])
        return code, capsys.readouterr().out

    return command


def test_a_good_payload(run, files):
    """Exit code 0, stable keys, files that can be read again."""
    code, out = run(
        *(files / "fit.json", files / "loaded.csv", "--reference", files / "truth.yaml", "--json"),
        *("-o", files / "payload.json", "--loaded", files / "loaded.json", "--pictures", files / "pictures"),
    )
    data = json.loads(out)
    assert (code, data["verdict"]) == (0, "good")
    assert data["mass"] == pytest.approx(5.0, rel=0.03)
    keys = {"mass", "com", "inertia", "inertia_about_frame", "quantities", "joints", "friction", "reference", "advice"}
    assert keys <= set(data)
    assert [q["name"] for q in data["quantities"]] == [
        "m",
        "c_x",
        "c_y",
        "c_z",
        "Ixx",
        "Iyy",
        "Izz",
        "Ixy",
        "Ixz",
        "Iyz",
    ]
    assert {"name", "value", "sigma", "interval_95", "determined", "unit"} == set(data["quantities"][0])
    assert data["within_2_sigma"][1] == 10
    assert load_payload(files / "payload.json").mass == data["mass"]
    assert load_fit(files / "loaded.json").robot.name == "kr15"
    assert len(data["files"]) == 3
    assert (files / "pictures" / "payload-torque.png").stat().st_size > 10_000
    assert len(data["history"]["files_sha256"]) == 3


def test_words(run, files):
    """The page names values, joints that took no part, and the verdict."""
    code, out = run(files / "fit.json", files / "loaded.csv")
    assert code == 0
    assert "at rest, took no part" in out
    assert "verdict: good" in out


def test_poor_verdicts(run, files):
    """A contradiction to the reference, or more asked than there is: exit code 1 and why."""
    code, out = run(files / "fit.json", files / "loaded.csv", "--reference", files / "wrong.yaml")
    assert code == 1
    assert "from its reference 7 kg" in out
    code, out = run(files / "fit.json", files / "loaded.csv", "--mass-within", "1e-5", "--com-within", "1e-6")
    assert code == 1
    assert "is required" in out


def test_bad_input(run, files):
    """Output over an input, a missing fit, an impossible scale."""
    for arguments in (
        (files / "fit.json", files / "loaded.csv", "-o", files / "loaded.csv"),
        (files / "none.json", files / "loaded.csv"),
        (files / "fit.json", files / "loaded.csv", "--gain", "-1"),
        (files / "fit.json", files / "none.csv"),
    ):
        assert run(*arguments) == (2, "")
