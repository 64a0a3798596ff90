"""A friction law that is not part of armid goes through every command, from a program or an installed package."""

import json

import numpy as np
import pytest

from armid import load_robot
from armid.cli import main
from armid.estimation import load_fit
from armid.excitation import FourierSeries
from armid.excitation.trajectory import save_trajectory
from armid.registry import friction_laws
from armid.torque.friction.law import FrictionLaw, bending_speed
from tests.plugins import armid_with_plugins, install

PLUGIN = """
from armid.torque.friction.law import FrictionLaw, bending_speed

LAW = FrictionLaw(
    name="lorentzian",
    title="fv v + fc + fd / (1 + (v / vd)^2)",
    columns={"fv": "v", "fc": "1", "fd": "1 / (1 + (v / vd) ** 2)"},
    shapes={"vd": bending_speed},
    units={"fv": "N m s/rad", "vd": "rad/s"},
    contains=("coulomb-viscous",),
)
"""
TRUTH = {"fv": [3.0, 2.0], "fc": [4.0, 3.0], "fd": [3.0, 2.0], "vd": [0.15, 0.2]}
ROBOT = f"""
armid: 1
name: planar
kinematics: {{convention: modified-dh, rows: [[0, 0, 0, 0], [0, 0.4, 0, 0]]}}
gravity: [0, -9.81, 0]
limits: {{position: [[-2.5, 2.5], [-2.5, 2.5]], velocity: [3, 3], acceleration: [15, 15], torque: [200, 200]}}
friction: {{law: lorentzian}}
virtual:
  links:
    - {{mass: 4.0, com: [0.2, 0.01, 0], inertia: {{xx: 0.01, xy: 0, xz: 0, yy: 0.06, yz: 0, zz: 0.06}}}}
    - {{mass: 2.5, com: [0.15, -0.02, 0], inertia: {{xx: 0.01, xy: 0, xz: 0, yy: 0.03, yz: 0, zz: 0.03}}}}
  friction: {{law: lorentzian, coefficients: {json.dumps(TRUTH)}}}
  torque_noise: 0.02
"""


@pytest.fixture
def files(tmp_path):
    """A description whose law is the new one, and two motions."""
    (tmp_path / "planar.yaml").write_text(ROBOT)
    for name, seed in (("train", 1), ("other", 2)):
        sine, cosine = np.random.default_rng(seed).normal(scale=0.25, size=(2, 2, 4))
        save_trajectory(FourierSeries(0.1, (1, 2, 3, 5), sine, cosine, np.zeros(2)), tmp_path / f"{name}.json")
    return tmp_path


@pytest.fixture
def law():
    """The law as a program adds it, and takes it away again."""
    space = {"FrictionLaw": FrictionLaw, "bending_speed": bending_speed}
    exec(PLUGIN, space)
    yield friction_laws.add("lorentzian")(space["LAW"])
    del friction_laws._things["lorentzian"]


def test_from_description_to_report(files, law, capsys):
    """Simulated, measured, identified, validated, exported with a proof at 1e-10, and reported, by the command line."""
    pytest.importorskip("mujoco")

    def call(*words):
        capsys.readouterr()
        assert main([str(word) for word in words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    robot, fit = files / "planar.yaml", files / "fit.json"
    for name in ("train", "other"):
        call("simulate", robot, files / f"{name}.json", "-o", files / f"{name}.csv", "--rate", 100, "--periods", 2)
    sweep = ("--law", "lorentzian", "--grid", "powerball", "--seconds", 2, "--rate", 100)
    data = json.loads(call("friction", robot, *sweep, "-o", files / "friction.json", "--json"))
    for number, joint in enumerate(data["joints"]):
        assert joint["coefficients"]["fd"] == pytest.approx(TRUTH["fd"][number], rel=0.1)
    given = ("--given-friction", files / "friction.json", "--friction", "linear", "--method", "wls")
    call("identify", robot, files / "train.csv", *given, "-o", files / "given.json")
    assert load_fit(files / "given.json").known_torque.friction[0][0].law == "lorentzian"
    call("identify", robot, files / "train.csv", "--friction", "lorentzian", "-o", fit)
    found = load_fit(fit)
    assert [term.law for term in found.terms] == ["lorentzian"] * 2
    v = np.array([0.15, 0.3, 0.8])  # within what the data show
    for joint, term in enumerate(found.terms):
        values = [found.values[found.columns.index(name)] for name in term.names]
        truth = law.torque(v, {name: TRUTH[name][joint] for name in law.coefficients})
        assert term.columns(v, None) @ values == pytest.approx(truth, rel=0.05)
    assert "relative_error" in call("validate", fit, files / "other.csv", "--json", "-o", files / "check.json")
    for one, folder in ((fit, "law"), (files / "given.json", "given")):
        call("export", one, "--to", "c,python,yaml", "-o", files / folder)
        proofs = json.loads((files / folder / "EXPORT.json").read_text())["files"]
        assert all(file["proof"]["error"] < 1e-10 for file in proofs if file["proof"])
        assert "lorentzian" in (files / folder / "planar_dynamics.h").read_text()
    assert load_robot(files / "law" / "planar.yaml").virtual.friction[1].law == "lorentzian"
    call("report", fit, "--validation", files / "check.json", "-o", files / "report.html")
    assert "fd1" in (files / "report.html").read_text()
    assert "lorentzian" in call("robots", robot)


def test_by_entry_point(files):
    """An installed package adds the law: help lists it, and a description may name it."""
    install(files, "armid.friction", "lorentzian = armid_lorentz:LAW", PLUGIN)
    commands = (("friction", "--help"), ("identify", "--help"), ("robots", "planar.yaml"))
    for one in armid_with_plugins(files, *commands):
        assert one.code == 0, one.err
        assert "lorentzian" in one.out
