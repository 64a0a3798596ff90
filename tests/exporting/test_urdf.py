"""URDF: Pinocchio finds the fit's torque in it, and nothing but inertias and friction has changed."""

import re
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.model import Motion
from armid.errors import ArmidWarning, DescriptionError
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.exporting import ExportError, export
from armid.exporting.arm import IdentifiedArm, LinearFriction
from armid.exporting.urdf import patched, to_rpy
from armid.logs import read_log
from armid.logs.public import public_log
from armid.robot.geometry import from_rpy
from armid.robot.inertia import from_com, to_com
from armid.robot.robot import inertial_names
from armid.signals import process
from tests.exporting.arms import URDF, fitted, library_fit, range_error, small_fit, states, written

INERTIAL = re.compile(rb"\s*<inertial>.*?</inertial>", re.DOTALL)
DYNAMICS = re.compile(rb"\s*<dynamics [^>]*damping[^>]*/>")


def outside(content):
    """A file without inertial and dynamics elements; an element that they were put into reads like an empty one."""
    rest = DYNAMICS.sub(b"", INERTIAL.sub(b"", content))
    return rest.replace(b'<link name="ram">\n  </link>', b'<link name="ram"/>').replace(
        b'<link name="ram">\r\n  </link>', b'<link name="ram"/>'
    )


def pinocchio_torque(path, robot, motion):
    """Rigid-body torque and friction as Pinocchio reads them, joints by name."""
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromUrdf(str(path))
    model.gravity.linear = robot.gravity
    data = model.createData()
    joints = [model.joints[model.getJointId(name)] for name in robot.joint_names]
    rigid, friction = np.empty_like(motion.q), np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        full = pinocchio.neutral(model)
        velocity, acceleration = np.zeros((2, model.nv))
        for k, joint in enumerate(joints):
            full[joint.idx_q : joint.idx_q + joint.nq] = [np.cos(q[k]), np.sin(q[k])] if joint.nq == 2 else [q[k]]
            velocity[joint.idx_v], acceleration[joint.idx_v] = v[k], a[k]
        torque = pinocchio.rnea(model, data, full, velocity, acceleration)
        lost = model.damping * velocity + model.friction * np.sign(velocity)
        rigid[row] = [torque[joint.idx_v] for joint in joints]
        friction[row] = [lost[joint.idx_v] for joint in joints]
    return rigid, friction


def test_small_arm_round_trip(home, tmp_path):
    """Everything a URDF can hold: oblique, sliding and endless joints, fixed links, rotated inertial frames."""
    fit = small_fit(home)
    done = export(fit, ["urdf"], tmp_path)
    motion = states(fit.robot, 300, 9)
    torque = sum(pinocchio_torque(tmp_path / "small.urdf", fit.robot, motion))
    assert range_error(torque, fit.predict(motion).torque) < 1e-9
    assert done.files[0].cannot_hold == ()
    assert done.files[0].proof.error < 1e-9


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_only_inertial_and_dynamics_change(home, tmp_path, ends):
    """All other bytes of the file are the user's, whatever its line ends."""
    fit = small_fit(home)
    path = written(tmp_path, URDF.replace("\n", ends))
    export(fit, ["urdf"], tmp_path / "out", urdf=path)
    before, after = path.read_bytes(), (tmp_path / "out/small.urdf").read_bytes()
    assert outside(before) == outside(after)
    assert before != after
    assert after.count(b"<dynamics") == 5  # four joints, and one that only looks like it
    assert b'<dynamics damping="not ours"/>' in after
    assert b"<!-- from CAD, version 3 -->" in after
    assert (b"\r" in after) == (ends == "\r\n")
    assert after.count(b"\n") == after.count(ends.encode())


def test_what_has_not_changed_keeps_its_bytes(home, tmp_path):
    """Links that equal the file's own but for round-off keep every byte, with what is fixed to them; one that changed
    in mass alone keeps the words of its other numbers, and no 1e-17 stands where the file has 0."""
    path = written(tmp_path)
    robot = armid.load_robot(path, rotors=False)
    fit = small_fit(home)
    links = robot.nominal_inertia.copy()
    links[1] = from_com(2.5, [0.2, 0.0, 0.0], np.diag([0.01, 0.04, 0.04]))
    values = np.concatenate([(links * (1.0 + 5e-15 * np.random.default_rng(0).normal(size=links.shape))).ravel()])
    values = np.concatenate(
        [values, [fit.standard_parameters[name] for name in fit.torque_model.model.names[values.size :]]]
    )
    arm = IdentifiedArm(replace(fit, robot=robot), values, True)
    after, notes = patched(
        arm, LinearFriction(np.array([0.1, 1, 2, 0]), np.array([0.5, 1, 2, 3]), np.zeros(4, bool)), path
    )
    before = path.read_bytes()
    assert notes == []
    assert after.count(b"<inertial") == before.count(b"<inertial")  # none was taken out or put in
    old = (
        b'<mass value="2.0"/><origin xyz="0.2 0 0"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.04" iyz="0" izz="0.04"/>'
    )
    new = re.search(rb"\t<inertial>(.*?)</inertial>", after).group(1)
    assert old in before
    assert float(re.search(rb'mass value="([^"]*)"', new).group(1)) == pytest.approx(2.5, rel=1e-12)
    assert new.split(b"<origin")[1] == old.split(b"<origin")[1]
    assert INERTIAL.findall(after)[-1] == INERTIAL.findall(before)[-1]  # of the flange, fixed to the hand
    assert b'<dynamics friction=\'0.5\' damping="0.1" drake:extra="7"/>' in after
    assert b"e-1" not in after


def test_fixed_links_are_counted_once(home, tmp_path):
    """The moving link has the whole; what is fixed to it has lost its inertial, and the sidecar says so."""
    fit = small_fit(home)
    done = export(fit, ["urdf"], tmp_path)
    robot = armid.load_robot(tmp_path / "small.urdf", rotors=False)
    for number, phi in enumerate(robot.nominal_inertia, start=1):
        mass, com, _ = to_com(phi)
        assert mass == pytest.approx(fit.standard_parameters[f"m{number}"], rel=1e-12)
        assert mass * com == pytest.approx(
            [fit.standard_parameters[f"m{axis}{number}"] for axis in "xyz"], rel=1e-9, abs=1e-12
        )
    text = (tmp_path / "small.urdf").read_text("utf-8")
    assert "<inertial>" not in text[text.index('name="flange"') : text.index('name="mount"')]
    assert '<link name="base"><inertial><mass value="9"/>' in text
    assert any("flange" in str(note) for note in done.files[0].notes)


@pytest.mark.filterwarnings("ignore::armid.errors.ArmidWarning")
def test_ur10e_round_trip(data, tmp_path):
    """The real file and a fit to the real log: Pinocchio's torque is the fit's, the rest of the file is untouched."""
    entry = public_log("ur10e")
    robot = armid.load_robot(entry.robot_path(data))
    log = read_log(data / "ur10e" / entry.of_use("train")[0], entry.recipe)
    fit = consistent_fit(WeightedLeastSquares().fit(robot, process(log, robot=robot)))
    done = export(fit, ["urdf"], tmp_path)
    before, after = (folder.read_bytes() for folder in (entry.robot_path(data), tmp_path / "ur10e.urdf"))
    assert outside(before) == outside(after)
    changed = sum(a != b for a, b in zip(before.splitlines(), after.splitlines(), strict=True))
    assert 6 <= changed <= 24  # per link at most four lines
    motion = states(robot, 300, 5)
    rigid, friction = pinocchio_torque(tmp_path / "ur10e.urdf", robot, motion)
    # What a URDF cannot hold, taken from the fit's own parameters: reflected rotors and offsets.
    inertia = np.array([fit.standard_parameters[f"Im{j}"] * robot.drives[j - 1].gear_ratio ** 2 for j in range(1, 7)])
    offset = np.array([fit.standard_parameters[f"fo{j}"] for j in range(1, 7)])
    whole = rigid + friction + inertia * motion.qdd + offset
    assert range_error(whole, fit.predict(motion).torque) < 1e-9
    assert [row.what for row in done.files[0].cannot_hold] == [
        "rotor inertia",
        "constant torque (offset of friction or sensor)",
    ]


@pytest.mark.parametrize("name", ["pa10", "powerball"])
def test_new_file_for_dh_robots(name, tmp_path):
    """Modified and standard DH: a new file with the same dynamics, ranges and names."""
    fit = library_fit(name, rotors=False)
    done = export(fit, ["urdf"], tmp_path)
    motion = states(fit.robot, 200, 3)
    rigid, friction = pinocchio_torque(tmp_path / done.files[0].file, fit.robot, motion)
    assert range_error(rigid + friction, fit.predict(motion).torque) < 1e-9
    again = armid.load_robot(tmp_path / done.files[0].file)
    assert again.joint_names == fit.robot.joint_names
    np.testing.assert_array_equal(again.limits.lower, fit.robot.limits.lower)


def test_first_links_make_a_new_file(home, tmp_path):
    """A fit of some links cannot complete a file that has more."""
    robot = armid.load_robot(written(home), rotors=False).first_links(2)
    fit = fitted(robot)
    done = export(fit, ["urdf"], tmp_path)
    assert armid.load_robot(tmp_path / done.files[0].file).n_joints == 2
    with pytest.raises(ExportError, match="another robot"):
        export(fit, ["urdf"], tmp_path / "b", urdf=home / "small.urdf")


def test_joints_that_mimic_move_along(tmp_path):
    """The file's torque, with the joint moved as it mimics, is the fit's; formats that cannot say so are refused."""
    mimic = '<axis xyz="0 1 0"/><limit effort="1" velocity="1" lower="-1" upper="1"/><mimic joint="roll"/></joint>'
    text = URDF.replace('<joint name="mount" type="fixed">', '<joint name="mount" type="revolute">')
    head, tail = text.split('rpy="0.1 0.2 0.3"/></joint>')
    path = written(tmp_path, f'{head}rpy="0.1 0.2 0.3"/>{mimic}{tail}')
    robot = armid.load_robot(path, rotors=False)
    assert [follower.joint.name for follower in robot.dependent] == ["mount"]
    fit = fitted(replace(robot, friction=tuple(replace(law, offset=False) for law in robot.friction)))
    export(fit, ["urdf"], tmp_path / "out")
    again = armid.load_robot(tmp_path / "out/small.urdf", rotors=False)
    np.testing.assert_allclose(again.nominal_inertia, fit_links(fit), rtol=0.0, atol=1e-12)
    motion = states(robot, 100, 2)
    whole = Motion(robot.all_positions(motion.q), motion.qd @ robot.ratios.T, motion.qdd @ robot.ratios.T)
    every = armid.Robot("every", "", robot.links)
    torque = sum(pinocchio_torque(tmp_path / "out/small.urdf", every, whole)) @ robot.ratios
    assert range_error(torque, fit.predict(motion).torque) < 1e-9
    with pytest.raises(DescriptionError, match="follows other joints, so that this arm is exported only to urdf"):
        export(fit, ["urdf", "c"], tmp_path / "b")


def fit_links(fit):
    values = [fit.standard_parameters[name] for k in range(len(fit.robot.links)) for name in inertial_names(k + 1)]
    return np.array(values).reshape(-1, 10)


def test_rounded_angles_are_said(tmp_path):
    """Base parameters belong to the exact angle, the file keeps the rounded one: the difference stands in the notes."""
    path = written(tmp_path, URDF.replace("1.5707963267948966", "1.5708"))
    with pytest.warns(ArmidWarning, match="rounded"):
        robot = armid.load_robot(path, rotors=False)
    done = export(fitted(robot), ["urdf", "c"], tmp_path / "out")
    assert 1e-9 < done.history["full_against_base_parameters"] < 1e-4
    assert any("rounded" in str(note) for note in done.notes)


def test_another_robot_is_refused(home, tmp_path):
    """Other joints, or the same names in another place."""
    fit = small_fit(home)
    for change, problem in (
        (('name="pan"', 'name="yaw"'), "its joints are"),
        (('xyz="0 0 0.2"', 'xyz="0 0 0.25"'), "joint 'pan' has another place"),
    ):
        path = written(tmp_path, URDF.replace(*change), "other.urdf")
        with pytest.raises(ExportError, match=problem):
            export(fit, ["urdf"], tmp_path / "out", urdf=path)
    assert not (tmp_path / "out").exists()


def test_a_file_that_has_moved_is_asked_for(tmp_path):
    """Without the original there is nothing to complete; the error says how to name it."""
    fit = small_fit(tmp_path)
    (tmp_path / "small.urdf").rename(tmp_path / "moved.urdf")
    with pytest.raises(ExportError, match="--urdf FILE"):
        export(fit, ["urdf"], tmp_path / "out")
    done = export(fit, ["urdf"], tmp_path / "out", urdf=tmp_path / "moved.urdf")
    assert done.files[0].file == "moved.urdf"


def test_the_original_is_never_replaced(home):
    """Writing into the folder of the file that is read is refused."""
    content = (home / "small.urdf").read_bytes() if (home / "small.urdf").exists() else None
    fit = small_fit(home)
    with pytest.raises(ExportError, match="cannot be written too"):
        export(fit, ["urdf"], home)
    assert content is None or (home / "small.urdf").read_bytes() == content


def test_a_description_finds_its_urdf(home, tmp_path):
    """A robot file that names a URDF leads to it."""
    written(tmp_path)
    (tmp_path / "arm.yaml").write_text("name: small\nkinematics: {convention: urdf, file: small.urdf}\n")
    robot = armid.load_robot(tmp_path / "arm.yaml", rotors=False)
    fit = replace(small_fit(home), robot=replace(small_fit(home).robot, source=robot.source))
    done = export(fit, ["urdf"], tmp_path / "out")
    assert outside((tmp_path / "out/small.urdf").read_bytes()) == outside(URDF.encode())
    assert done.history["urdf"] == str(tmp_path / "small.urdf")


@pytest.mark.parametrize("pitch", [0.0, 0.7, np.pi / 2, -np.pi / 2, 3.0])
def test_angles_of_a_rotation(pitch):
    """Roll, pitch and yaw give the rotation back, also where two of them turn about one axis."""
    rotation = from_rpy([0.4, pitch, -2.1])
    np.testing.assert_allclose(from_rpy(to_rpy(rotation)), rotation, atol=1e-15)
