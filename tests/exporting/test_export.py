"""What an export says of itself, what it refuses, and that a failed proof leaves nothing behind."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.exporting import ExportError, ProofError, export, exporters
from armid.exporting import c as c_module
from armid.exporting import exporter as proofs
from armid.exporting.arm import IdentifiedArm, arm_of, linear_friction, random_states
from armid.exporting.exporter import Job, left_out
from tests.exporting.arms import library_fit, rich_fit, small_fit, states

FORMATS = tuple(exporters)


def test_the_sidecar(home, tmp_path):
    """For each file its hash, proof, what it holds and what not; origin by hashes and seed."""
    done = export(small_fit(home), FORMATS, tmp_path, seed=3)
    data = json.loads((tmp_path / "EXPORT.json").read_text("utf-8"))
    assert [file["format"] for file in data["files"]] == list(FORMATS)
    for file in data["files"]:
        assert file["sha256"] == hashlib.sha256((tmp_path / file["file"]).read_bytes()).hexdigest()
        assert file["proof"]["error"] <= file["proof"]["tolerance"]
        assert file["proof"]["states"] == 200
    assert data["history"]["seed"] == 3
    source = (home / "small.urdf").read_bytes()
    assert data["history"]["urdf_sha256"] == hashlib.sha256(source).hexdigest()
    text = (tmp_path / "EXPORT.md").read_text("utf-8")
    assert text == done.summary() + "\n"
    assert all(file["file"] in text for file in data["files"])
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("decided", "words"),
    [
        ([], "No link's mass is determined by the data: the masses in these files are one choice"),
        ([2], "Only of {1} the mass is determined by the data: the other masses are one choice"),
        ([1, 2, 3, 4], "The mass of every link is determined by the data."),
    ],
)
def test_which_masses_are_measured(home, tmp_path, monkeypatch, decided, words):
    """EXPORT.md says which masses the data determine, by the fit's own list."""
    fit = small_fit(home)
    links = [joint.link_name for joint in fit.robot.joints]
    monkeypatch.setattr(type(fit), "determined", frozenset(f"m{number}" for number in decided))
    export(fit, ["yaml"], tmp_path)
    assert words.format(*links) in (tmp_path / "EXPORT.md").read_text("utf-8")


def test_only_what_the_arm_has_is_held(home):
    """Springs stand among what a file holds only for an arm with springs, delays only where there are any."""
    plain, sprung = arm_of(small_fit(home), complete=True), arm_of(library_fit("ir361"), complete=True)
    assert not plain.robot.springs
    for form in FORMATS:
        assert "spring" not in exporters[form]().holds(plain)
        assert ("spring" in exporters[form]().holds(sprung)) == (form in ("mjcf", "c", "python"))
    late = replace(plain, fit=replace(plain.fit, delay_s=np.full(plain.robot.n_joints, 0.002)))
    assert ("delays" in exporters["c"]().holds(plain), "delays" in exporters["c"]().holds(late)) == (
        bool(np.any(plain.fit.delay_s)),
        True,
    )


def test_the_same_fit_gives_the_same_bytes(home, tmp_path):
    """Nothing depends on time or place."""
    for folder in ("a", "b"):
        export(small_fit(home), FORMATS, tmp_path / folder)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_sizes_of_what_is_lost():
    """The torque that a URDF loses is that of the causes it names, in root mean square and share."""
    fit = library_fit("ir361")
    arm, motion = arm_of(fit, complete=True), random_states(fit.robot, 300, 1)
    rows = {row.what: vars(row) for row in left_out(exporters["urdf"](), Job(arm, motion, linear_friction(arm)))}
    spring = fit.robot.springs[0]
    angle = motion.q[:, spring.joint - 1] - spring.phi
    length = np.sqrt(spring.a**2 + spring.b**2 - 2 * spring.a * spring.b * np.cos(angle))
    torque = (
        spring.a * spring.b * np.sin(angle) * (fit.standard_parameters["ks1"] - fit.standard_parameters["kl1"] / length)
    )
    assert rows["springs"]["rms"][spring.joint - 1] == pytest.approx(np.sqrt(np.mean(torque**2)), rel=1e-9)
    whole = fit.predict(motion).torque[:, spring.joint - 1]
    assert rows["springs"]["share"][spring.joint - 1] == pytest.approx(np.sqrt(np.mean(torque**2) / np.mean(whole**2)))


def test_causes_add_up_to_the_prediction():
    """An arm with everything: the torque by cause is what the fit predicts."""
    fit = rich_fit()
    motion = states(fit.robot, 300, 1)
    torque = arm_of(fit, complete=True).torque(motion)
    np.testing.assert_allclose(torque, fit.predict(motion).torque, rtol=0, atol=1e-9 * np.abs(torque).max())


def test_nearest_linear_friction():
    """Where friction is curved, the two numbers are SciPy's non-negative least squares; elsewhere the fit's own."""
    from scipy.optimize import nnls

    arm = arm_of(rich_fit(), complete=True)
    found = linear_friction(arm, seed=4)
    motion = random_states(arm.robot, 2000, 4)
    for joint, name in ((0, "smooth"), (1, "direction"), (2, "law")):
        ahead = arm.friction(motion)[:, joint]
        back = arm.friction(motion._replace(qd=-motion.qd))[:, joint]
        speed = np.abs(motion.qd[:, joint])
        odd = 0.5 * (ahead - back) * np.sign(motion.qd[:, joint])
        want = nnls(np.column_stack([speed, np.ones_like(speed)]), odd)[0]
        np.testing.assert_allclose([found.damping[joint], found.coulomb[joint]], want, rtol=1e-6, err_msg=name)
    assert found.curved.tolist() == [True, True, True, True, True, False]
    assert found.damping[5] == arm.by_name["fv6"]


def test_negative_coefficients_are_not_written(home):
    """A curve whose linear part is negative by itself still gives damping and friction that brake."""
    fit = small_fit(home)
    links = {**fit.standard_parameters, "fc1": -1.0}
    found = linear_friction(arm_of(replace(fit, standard_parameters=links), complete=True))
    assert found.damping.min() >= 0.0
    assert found.coulomb[0] == 0.0
    assert found.curved[0]


def test_a_failed_proof_keeps_the_others(home, tmp_path, monkeypatch):
    """One wrong digit in a file: it is named with the reason and not there; the others are, and the sidecar tells."""
    right = c_module.c_header

    def wrong(arm, *more):
        return right(replace(arm, values=arm.values * (1.0 + 1e-9)), *more)

    monkeypatch.setattr(c_module, "c_header", wrong)
    if c_module.compiler() is None:
        pytest.skip("needs a C compiler")
    with pytest.raises(ProofError, match=r"small_dynamics\.h: was not kept"):
        export(small_fit(home), ["c"], tmp_path / "new" / "deep")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    done = export(small_fit(home), FORMATS, tmp_path / "out")
    names = ["small.urdf", "small.xml", "small_dynamics.py", "small.yaml", "small.sdf"]
    assert [file.file for file in done.files] == names
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted([*names, "EXPORT.json", "EXPORT.md"])
    (refused,) = json.loads((tmp_path / "out/EXPORT.json").read_text("utf-8"))["refused"]
    assert (refused["file"], refused["format"]) == ("small_dynamics.h", "c")
    assert "finds another" in refused["reason"]
    assert refused["reason"] in (tmp_path / "out/EXPORT.md").read_text("utf-8")


def test_a_file_goes_with_the_one_it_names(home, tmp_path, monkeypatch):
    """A robot file whose URDF fails is not kept either; a URDF that is there for it alone leaves with it."""
    with monkeypatch.context() as patch:
        patch.setattr("armid.exporting.urdf.patched", lambda arm, friction, path: (path.read_bytes(), []))
        done = export(small_fit(home), ["yaml", "urdf", "python"], tmp_path / "a")
        assert [file.file for file in done.files] == ["small_dynamics.py"]
        assert {file.format for file in done.refused} == {"urdf", "yaml"}
        assert sorted(path.name for path in (tmp_path / "a").iterdir())[2:] == ["small_dynamics.py"]
    monkeypatch.setattr("armid.exporting.yaml_file.robot_file", lambda *rest, **options: b"name: [")
    done = export(small_fit(home), ["yaml", "python"], tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "b").iterdir())[2:] == ["small_dynamics.py"]


def test_the_tolerance_follows_terms_that_cancel(tmp_path):
    """Links whose huge parameters cancel in the torque: a right program passes, one wrong in the 7th digit does not.

    Without the terms' sizes the right program would fail: its difference is round-off of what cancels.
    """
    if c_module.compiler() is None:
        pytest.skip("needs a C compiler")
    fit = library_fit("pa10")
    motion = random_states(fit.robot, 100, 0)
    plain = arm_of(fit, complete=True)
    regressor = plain.model.regressor(*random_states(fit.robot, 300, 5)).reshape(-1, len(plain.values))
    _, sizes, rows = np.linalg.svd(regressor, full_matrices=False)
    free = rows[sizes < 1e-10 * sizes[0]]
    ill = IdentifiedArm(fit, plain.values + 1e5 * np.random.default_rng(0).normal(size=len(free)) @ free, False)
    job, exact = Job(ill, motion, linear_friction(plain)), Job(ill, motion, linear_friction(plain))
    vars(exact)["sizes"] = {}
    path = tmp_path / "ill.h"
    path.write_bytes(c_module.c_header(ill, ["x"]))
    proof = c_module.C().prove(path, job, job.torque)
    assert proofs.TIGHT < proof.error < proof.tolerance
    with pytest.raises(ProofError, match="1e-10 allowed"):
        c_module.C().prove(path, exact, job.torque)
    path.write_bytes(c_module.c_header(replace(ill, values=ill.values * (1.0 + 1e-7)), ["x"]))
    with pytest.raises(ProofError, match="finds another"):
        c_module.C().prove(path, job, job.torque)


def test_old_files_survive_a_failed_proof(home, tmp_path, monkeypatch):
    """What an earlier export wrote is still complete."""
    export(small_fit(home), ["python"], tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("armid.exporting.python.python_module", lambda *_: b"raise ValueError('no')\n")
    with pytest.raises(ProofError, match="not kept and not run"):
        export(small_fit(home), ["python"], tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_interrupted_export_is_cleared_away(home, tmp_path, monkeypatch):
    """Killed while files are moved: no sidecar vouches for them; the next export leaves only its own files."""
    export(small_fit(home), ["python"], tmp_path / "out")
    moved = Path.replace

    def killed(self, target):
        if Path(target) == tmp_path / "out/EXPORT.json":
            raise KeyboardInterrupt
        return moved(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            export(small_fit(home), ["python"], tmp_path / "out")
    assert not (tmp_path / "out/EXPORT.json").exists()
    (tmp_path / "out/.export.old").mkdir()
    export(small_fit(home), ["python"], tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["EXPORT.json", "EXPORT.md", "small_dynamics.py"]


def test_refusals(home, tmp_path):
    """Unknown formats, no formats, no links, impossible links; each with the way out, nothing written."""
    fit = small_fit(home)
    impossible = replace(fit, standard_parameters={**fit.standard_parameters, "m1": -1.0})
    cases = [
        (fit, ["udf"], "did you mean 'urdf'"),
        (fit, [], "no format is named"),
        (small_fit(home, possible=False), ["urdf"], "armid identify --method feasible"),
        (small_fit(home, possible=False), ["yaml", "mjcf"], "armid identify --method feasible"),
        (impossible, ["c"], "mass is negative .*`armid identify --method feasible"),
    ]
    for given, names, problem in cases:
        with pytest.raises(ArmidError, match=problem):
            export(given, names, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_links_that_do_not_belong_to_the_fit(home, tmp_path):
    """Links edited by hand give another torque than the fit's base parameters: refused."""
    fit = small_fit(home)
    with pytest.raises(ExportError, match="another torque"):
        export(
            replace(fit, standard_parameters={**fit.standard_parameters, "m4": fit.standard_parameters["m4"] + 1.0}),
            ["c"],
            tmp_path,
        )


def test_a_folder_that_cannot_be_written(home, tmp_path):
    """One sentence with the folder's name."""
    tmp_path.chmod(0o500)
    everywhere = os.access(tmp_path, os.W_OK)  # the superuser may write anywhere but there
    folder = Path("/proc/nowhere") if everywhere else tmp_path / "out"
    try:
        with pytest.raises(ExportError, match=f"{folder}: cannot be written"):
            export(small_fit(home), ["python"], folder)
    finally:
        tmp_path.chmod(0o700)


def test_a_file_where_the_folder_should_be(home, tmp_path):
    """Also as a parent."""
    (tmp_path / "out").write_text("")
    for folder in (tmp_path / "out", tmp_path / "out" / "more"):
        with pytest.raises(ExportError, match="cannot be written"):
            export(small_fit(home), ["python"], folder)


def test_without_a_compiler(home, tmp_path, monkeypatch):
    """The file is written, and says that it was not proved and why."""
    monkeypatch.setattr(c_module, "compiler", lambda: None)
    done = export(small_fit(home), ["c"], tmp_path)
    assert done.files[0].proof.error is None
    assert "no C compiler" in done.summary()


def test_without_pinocchio_and_mujoco(home, tmp_path, monkeypatch):
    """A URDF is read back by armid and says that nobody else did; an MJCF says what to install."""
    import sys

    for name in ("pinocchio", "mujoco"):
        monkeypatch.setitem(sys.modules, name, None)
    done = export(small_fit(home), ["urdf", "mjcf"], tmp_path)
    assert "pip install pin" in done.files[0].proof.note
    assert done.files[0].proof.error < 1e-9
    assert done.files[1].proof.error is None
    assert "armid[sim]" in done.files[1].proof.note


def test_errors_are_measured_against_the_range():
    """Per column, with a floor for columns that hardly move; NaN is never good."""
    wanted = np.array([[0.0, 0.0], [10.0, 0.0]])
    assert proofs.relative_error(np.array([[0.0, 0.0], [11.0, 0.0]]), wanted) == pytest.approx(0.1)
    assert proofs.relative_error(np.array([[0.0, 1e-3], [10.0, 0.0]]), wanted) == pytest.approx(0.1)
    assert proofs.relative_error(wanted * np.nan, wanted) == np.inf
