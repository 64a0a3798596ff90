"""`armid identify` on logs of a small arm."""

import json

import pytest

import armid as library
from armid.estimation.fit import load_fit
from armid.logs import write_log
from armid.logs.log import Log, LogInfo
from tests.validation.arms import VALUES, swing, write_files


@pytest.fixture
def files(tmp_path):
    """A robot file and two logs of different motion."""
    return write_files(tmp_path)


def test_identify_with_defaults(armid, files):
    """It says what it found, writes a fit that is possible, and finds the truth."""
    result = armid("identify", files / "planar.yaml", files / "train.csv", "-o", files / "fit.json")
    assert result.code == 0, result.err
    assert "friction auto" in result.out
    assert "low-pass" in result.out.lower() or "averag" in result.out.lower()
    fit = load_fit(files / "fit.json")
    assert fit.method == "mixed"
    assert fit.standard_parameters is not None
    assert fit.options["friction"] == "auto"
    assert len(fit.history["files_sha256"]) == 2
    values = dict(zip(fit.columns, fit.values, strict=True))
    assert values["fc1"] == pytest.approx(VALUES["fc1"], rel=0.05)
    assert values["mx2"] == pytest.approx(VALUES["mx2"], rel=0.05)


@pytest.mark.parametrize("method", ["ols", "svd", "wls", "robust", "feasible"])
def test_methods(armid, files, method):
    """Each linear method gives JSON with the same parameters."""
    result = armid(
        "identify", files / "planar.yaml", files / "train.csv", "--method", method, "--friction", "linear", "--json"
    )
    data = json.loads(result.out)
    assert data["method"] == method
    assert data["counts"] == {"parameters": 13, "base": 7, "friction": 6, "spring": 0}
    by_name = {p["name"]: p for p in data["parameters"]}
    assert by_name["fv1"]["value"] == pytest.approx(2.0, rel=0.05)
    assert by_name["fv1"]["interval_95"][0] < 2.0 < by_name["fv1"]["interval_95"][1]


def test_options_change_the_estimate(armid, files):
    """Fixed parameters, chosen signals and chosen friction are used and recorded."""
    (files / "steps.yaml").write_text("- {step: LowPass, cutoff_hz: 3.0}\n")
    result = armid(
        "identify", files / "planar.yaml", files / "train.csv", "-o", files / "fit.json",
        "--fix", "fo1=0.5", "fo2=-0.2", "--signals", files / "steps.yaml", "--method", "wls",
        "--friction", "stribeck",
    )  # fmt: skip
    assert result.code == 0, result.err
    fit = load_fit(files / "fit.json")
    assert fit.robot.known == {"fo1": 0.5, "fo2": -0.2}
    assert "fo1" not in fit.names
    assert fit.pipeline[-1]["cutoff_hz"] == 3.0
    assert [term.law for term in fit.terms] == ["stribeck", "stribeck"]
    inline = armid(
        "identify", files / "planar.yaml", files / "train.csv", "--signals", "{step: LowPass, cutoff_hz: 3.0}",
        "--friction", "linear", "--json",
    )  # fmt: skip
    assert json.loads(inline.out)["pipeline"][-1]["cutoff_hz"] == 3.0


def test_friction_found_before(armid, files):
    """Friction of `armid friction` is subtracted, and no longer estimated."""
    joints = [
        {"number": n, "law": "coulomb-viscous", "per_direction": False,
         "coefficients": {"fv": VALUES[f"fv{n}"], "fc": VALUES[f"fc{n}"]}}
        for n in (1, 2)
    ]  # fmt: skip
    friction = {"format": "armid friction 1", "robot": "planar", "joints": joints}
    (files / "friction.json").write_text(json.dumps(friction))
    result = armid(
        "identify", files / "planar.yaml", files / "train.csv", "-o", files / "fit.json", "--given-friction",
        files / "friction.json", "--friction", "linear", "--method", "wls",
    )  # fmt: skip
    assert result.code == 0, result.err
    fit = load_fit(files / "fit.json")
    assert not {"fv1", "fc1", "fv2", "fc2"} & set(fit.names)
    values = dict(zip(fit.columns, fit.values, strict=True))
    assert values["mx2"] == pytest.approx(VALUES["mx2"], rel=0.03)
    assert armid("validate", files / "fit.json", files / "other.csv").code == 0
    (files / "friction.json").write_text(json.dumps({**friction, "joints": joints[:1]}))
    result = armid("identify", files / "planar.yaml", files / "train.csv", "--given-friction", files / "friction.json")
    assert result.code == 2
    assert "has no friction of joint joint2" in result.err
    (files / "friction.json").write_text(json.dumps({**friction, "joints": [{"number": 1}, {"number": 2}]}))
    result = armid("identify", files / "planar.yaml", files / "train.csv", "--given-friction", files / "friction.json")
    assert (result.code, "Error" in result.err) == (2, False)
    assert "law: is missing" in result.err


def test_notes_of_several_logs_name_them(armid, files):
    """With one log notes stand alone, with several each says of which it is; the slow rows are told with their rule."""
    result = armid("identify", files / "planar.yaml", files / "train.csv", "--friction", "linear", "--json")
    data = json.loads(result.out)
    assert not any("train.csv" in note["text"] for note in data["notes"])
    assert data["robot"] == "planar"
    assert not {"factor", "covariance", "weights"} & set(data)
    assert "estimation.rows_left_out" in {note["code"] for note in data["notes"]}
    both = ("identify", files / "planar.yaml", files / "train.csv", files / "other.csv", "--friction", "linear")
    notes = json.loads(armid(*both, "--json").out)["notes"]
    assert any(note["text"].startswith("train.csv: ") for note in notes)
    assert any(note["text"].startswith("other.csv: ") for note in notes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "wsl"), "did you mean 'wls'"),
        (("--friction", "stribek"), "did you mean 'stribeck'"),
        (("--friction", "stribeck,load"), "friction"),
        (("--friction", "auto", "--method", "wls"), "use mixed, or name a law"),
        (("--friction", "linear", "--method", "mixed"), "finds the form of friction itself"),
        (("--fix", "fc1"), "NAME=VALUE"),
        (("--fix", "fc1=1", "fc1=2"), "twice"),
        (("--fix", "fx9=1"), "fx9"),
        (("--signals", "LowPas"), "did you mean 'LowPass'"),
        (("--signals", "[1"), "YAML"),
        (("--given-friction", "planar.yaml"), "armid friction"),
        (("--prior", "nothing.yaml:0.05"), "nothing.yaml"),
        (("-o", "nowhere/fit.json"), "no folder"),
    ],
)
def test_bad_options(armid, files, monkeypatch, arguments, words):
    """One sentence that names the option and the way out, exit code 2."""
    monkeypatch.chdir(files)
    result = armid("identify", "planar.yaml", "train.csv", *arguments)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err


def test_bad_logs(armid, files):
    """A missing file, a log of another robot, a log that is too short."""
    assert "nothing.csv" in armid("identify", files / "planar.yaml", files / "nothing.csv").err
    result = armid("identify", "pa10", files / "train.csv")
    assert result.code == 2
    assert "robot: is 'planar', not 'pa10'" in result.err
    robot = library.load_robot(files / "planar.yaml")
    t, motion = swing()
    info = LogInfo(robot.joint_names, "joint torque", rate_hz=150.0)
    log = Log(t, {"position": motion.q, "effort": motion.q}, info)
    write_log(log.rows(slice(0, 6)), files / "short.csv")
    result = armid("identify", files / "planar.yaml", files / "short.csv")
    assert result.code == 2
    assert "samples" in result.err
