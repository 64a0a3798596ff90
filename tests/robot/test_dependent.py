"""Joints that follow others: torque and mass matrix are those of MuJoCo's whole tree, projected on what moves."""

import warnings

import numpy as np
import pytest

import armid
from armid.dynamics.kinematics import jacobian, link_frames
from armid.errors import ArmidError, DescriptionError
from armid.robot.robot import inertial_names
from armid.signals import process
from armid.validation import compare

mujoco = pytest.importorskip("mujoco")


def body(name, joint, rng, inside, *, kind="hinge", axis=None):
    """An MJCF body with random place, inertia and, where none is given, axis."""
    x, y, z = rng.uniform(-0.3, 0.3, 3)
    c, i = rng.uniform(-0.1, 0.1, 3), rng.uniform(0.02, 0.03, 3)
    turn = " ".join(f"{angle:.3f}" for angle in rng.uniform(-180, 180, 3))
    axis = axis or " ".join(f"{part:.3f}" for part in rng.normal(size=3))
    return (
        f'<body name="{name}" pos="{x} {y} {z}" euler="{turn}"><joint name="{joint}" type="{kind}" axis="{axis}"/>'
        f'<inertial pos="{c[0]} {c[1]} {c[2]}" mass="{rng.uniform(1, 3)}" diaginertia="{i[0]} {i[1]} {i[2]}"/>'
        f"{inside}</body>"
    )


def tree(seed):
    """Two branches; followers at the tips, in the middle of the chain, of another branch, and of another follower."""
    rng = np.random.default_rng(seed)
    fingers = body("e", "f2", rng, "", kind="slide") + body("g", "j4", rng, "", kind="slide")
    middle = body("c", "f1", rng, body("d", "j3", rng, fingers))
    return body("a", "j1", rng, body("b", "j2", rng, middle) + body("p", "f3", rng, ""))


EQUALITY = """<equality><joint joint1="f1" joint2="j2" polycoef="0.3 -1 0 0 0"/>
<joint joint1="f2" joint2="j4" polycoef="0 -1 0 0 0"/>
<joint joint1="f3" joint2="f1" polycoef="0.1 -0.5 0 0 0"/></equality>"""


def mjcf(folder, seed, equality=EQUALITY):
    path = folder / f"tree{seed}.xml"
    path.write_text(f"<mujoco><worldbody>{tree(seed)}</worldbody>{equality}</mujoco>")
    return path


def stated(robot):
    pairs = enumerate(robot.nominal_inertia, start=1)
    return {name: float(v) for k, phi in pairs for name, v in zip(inertial_names(k), phi, strict=True)}


def projected(robot, path, q, qd, qdd):
    """Torque and mass matrix of MuJoCo's tree without constraints, moved as the robot says, projected by its ratios."""
    spec = mujoco.MjSpec.from_file(str(path))
    for equality in list(spec.equalities):
        spec.delete(equality)
    model = spec.compile()
    model.dof_damping[:], model.jnt_limited[:] = 0.0, 0
    data, a = mujoco.MjData(model), robot.ratios
    dofs = [int(model.joint(joint.name).dofadr[0]) for joint in robot.links]
    torque, mass, whole = np.empty_like(q), np.empty((*q.shape, q.shape[1])), np.zeros((model.nv, model.nv))
    places = np.empty((len(q), len(dofs), 3))
    for k, positions in enumerate(robot.all_positions(q)):
        data.qpos[dofs], data.qvel[dofs], data.qacc[dofs] = positions, a @ qd[k], a @ qdd[k]
        mujoco.mj_inverse(model, data)
        mujoco.mj_fullM(model, data, whole)
        torque[k], mass[k] = a.T @ data.qfrc_inverse[dofs], a.T @ whole[np.ix_(dofs, dofs)] @ a
        places[k] = [data.body(joint.link_name).xpos for joint in robot.links]
    return torque, mass, places


@pytest.mark.parametrize("seed", range(3))
def test_equality_equals_mujoco(tmp_path, seed):
    """Torque, regressor, factor, mass matrix, frames and Jacobian; base parameters group what moves together."""
    path = mjcf(tmp_path, seed)
    robot = armid.load_robot(path)
    assert robot.joint_names == ("j1", "j2", "j3", "j4")
    model, values = armid.Model(robot), stated(robot)
    q, qd, qdd = np.random.default_rng(seed).normal(size=(3, 150, 4))
    torque, mass, places = projected(robot, path, q, qd, qdd)
    scale = np.abs(torque).max()
    assert np.abs(model.inverse_dynamics(q, qd, qdd, values) - torque).max() < 1e-9 * scale
    assert np.abs(model.regressor(q, qd, qdd) @ model.vector(values) - torque).max() < 1e-9 * scale
    assert np.abs(model.mass_matrix(q, values) - mass).max() < 1e-9 * np.abs(mass).max()
    assert np.abs(link_frames(robot, q)[:, :, :3, 3] - places).max() < 1e-9
    factor = armid.compact_factor(model, q, qd, qdd, torque, model.unknown)
    known = np.array([values.get(name, 0.0) for name in model.unknown])
    left = np.array([factor.gram(j)[-1] @ np.append(-known[factor.columns[j]], 1.0) for j in range(4)])
    assert np.abs(left).max() < 1e-9 * scale**2 * len(q)
    assert model.base.disagreement() < 1e-12
    step, link = 1e-6, len(robot.links)
    ahead, behind = (link_frames(robot, q + sign * step * qd)[:, link - 1, :3, 3] for sign in (1.0, -1.0))
    speed = np.einsum("sij,sj->si", jacobian(robot, q, link, np.zeros(3))[:, :3], qd)
    assert np.abs(speed - (ahead - behind) / (2.0 * step)).max() < 1e-8


def test_mimic_equals_equality(tmp_path):
    """A gripper's mimic in a URDF: counted, with limits and friction, not locked."""
    links = "".join(
        f"<link name='{n}'><inertial><origin xyz='0.02 0.01 0.1'/><mass value='{m}'/><inertia ixx='0.02' iyy='0.03' "
        "izz='0.025' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        for n, m in (("base", 1), ("hand", 2), ("left", 0.4), ("right", 0.3))
    )
    joints = "".join(
        f"<joint name='{n}' type='{k}'><parent link='{p}'/><child link='{c}'/><origin xyz='0.1 0.2 0' rpy='0 0.3 0'/>"
        f"<axis xyz='{a}'/><limit lower='{low}' upper='1' velocity='2' effort='9'/><dynamics damping='0.5'/>"
        f"{extra}</joint>"
        for n, k, p, c, a, low, extra in (
            ("wrist", "revolute", "base", "hand", "0 0 1", -1, ""),
            ("left", "prismatic", "hand", "left", "0 1 0", -3, ""),
            ("right", "prismatic", "hand", "right", "0 1 0", 0, "<mimic joint='left' multiplier='-0.5' offset='0.1'/>"),
        )
    )
    path = tmp_path / "gripper.urdf"
    path.write_text(f"<robot name='g'>{links}{joints}</robot>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        robot = armid.load_robot(path)
    assert robot.joint_names == ("wrist", "left")
    assert robot.dependent[0].ratios.tolist() == [0.0, -0.5]
    assert np.allclose([robot.limits.lower[1], robot.limits.upper[1]], [(1.0 - 0.1) / -0.5, (0.0 - 0.1) / -0.5])
    assert np.allclose(robot.nominal_friction[:, 0], [0.5, 0.5 + 0.25 * 0.5])
    motion = np.random.default_rng(0).normal(size=(3, 50, 2))
    torque = projected(robot, path, *motion)[0]
    values = stated(robot)
    assert np.abs(armid.Model(robot).inverse_dynamics(*motion, values) - torque).max() < 1e-9 * np.abs(torque).max()
    alone = armid.load_robot(path, joints=("wrist", "right"))  # what it follows is locked, and so is the finger
    assert alone.joint_names == ("wrist",)
    assert [one.joint.name for one in armid.load_robot(path, joints=("left",)).dependent] == ["right"]


PALLETISER = """name: palletiser
kinematics:
  convention: modified-dh
  rows: [[0, 0, 0.5, 0], [-pi/2, 0.2, 0, 0], [0, 0.8, 0, 0], [0, 0.7, 0, 0], [-pi/2, 0.1, 0, 0], [-pi/2, 0.2, 0, 0]]
  parents: [0, 1, 2, 3, 4, 1]
  joint_names: [turn, arm, forearm, level, flange, bar]
  dependent: {level: {ratios: {arm: -1, forearm: -1}}, bar: {ratios: {arm: 1, forearm: 1}, offset: 90 deg}}
friction: {law: coulomb-viscous}
drives: {rotor_inertia: 0}
"""


def test_parallelogram(tmp_path):
    """A palletiser: the flange stays level whatever arm and forearm do, and the bar beside the arm turns with both."""
    (tmp_path / "p.yaml").write_text(PALLETISER)
    robot = armid.load_robot(tmp_path / "p.yaml")
    assert robot.joint_names == ("turn", "arm", "forearm", "flange")
    q = np.random.default_rng(1).normal(size=(20, 4))
    level = link_frames(robot, q)[:, 4]
    assert np.allclose(level[:, 2, :3], level[0, 2, :3])  # its axes keep their heights
    model = armid.Model(robot)
    assert model.base.disagreement() < 1e-12
    values = {name: 1.0 for name in model.names if name[0] == "m" or name[:3] in ("Ixx", "Iyy", "Izz")}
    qd = np.random.default_rng(2).normal(size=(20, 4))
    power = np.einsum("sj,sj->s", qd, model.coriolis_torque(q, qd, values))
    step = 1e-6  # the kinetic energy changes by what the Coriolis torque does not give back
    energy = [0.5 * np.einsum("si,sij,sj->s", qd, model.mass_matrix(q + s * step * qd, values), qd) for s in (1, -1)]
    assert np.allclose(power, (energy[0] - energy[1]) / (2 * step), rtol=1e-6, atol=1e-6)


def test_identified_as_well_as_a_plain_arm(tmp_path):
    """On another motion the error is a small share of the noise, and as large as the fit says, with and without."""
    plain = armid.load_robot(mjcf(tmp_path, 6, ""), joints=("j1", "j2", "j3", "j4"))
    for robot in (plain, armid.load_robot(mjcf(tmp_path, 5))):
        values = stated(robot) | {f"{name}{j}": 1.5 for name in ("fv", "fc") for j in range(1, 5)}
        model = armid.Model(robot)
        fit = armid.identify(robot, process(recorded(model, values, 0, noise=0.2), robot=robot))
        fit.save(tmp_path / "fit.json")
        data = process(recorded(model, values, 1, noise=0.0), robot=robot)
        found = compare(armid.load_fit(tmp_path / "fit.json"), data)
        assert np.sqrt(np.mean(found.error[20:-20] ** 2, axis=0)).max() < 0.15 * 0.2
        assert np.median(np.abs(found.error / found.sigma)[20:-20]) < 1.0  # of a normal distribution 0.67
    with pytest.raises(DescriptionError, match="follows other joints, so that this arm is exported only"):
        armid.export(fit, ["c"], tmp_path / "x")


def recorded(model, values, seed, noise):
    """A log of 15 s of random waves."""
    rng, time = np.random.default_rng(seed), np.arange(3000) / 200.0
    rate, phase, size = (rng.uniform(*span, (4, 5)) for span in ((0.5, 5.0), (0.0, 6.0), (0.1, 0.4)))
    angle = rate * time[:, None, None] + phase
    q, qd = (size * np.sin(angle)).sum(axis=2), (size * rate * np.cos(angle)).sum(axis=2)
    torque = model.inverse_dynamics(q, qd, -(size * rate**2 * np.sin(angle)).sum(axis=2), values)
    effort = torque + noise * rng.normal(size=q.shape)
    return armid.Log(time, {"position": q, "effort": effort}, armid.LogInfo(model.robot.joint_names, "joint torque"))


@pytest.mark.parametrize(
    ("dependent", "said"),
    [
        ("{level: {ratios: {flange: 1}}, flange: {ratios: {level: 1}}}", "follows itself"),
        ("{level: {ratios: {lever: 1}}}", "lever"),
        ("{level: {ratios: {arm: 0}}}", "follows no joint that moves"),
    ],
)
def test_wrong_dependence(tmp_path, dependent, said):
    """Loops, unknown names and nothing to follow are refused in a sentence."""
    text = PALLETISER.splitlines()
    text[6] = f"  dependent: {dependent}"
    (tmp_path / "p.yaml").write_text("\n".join(text))
    with pytest.raises(ArmidError, match=said):
        armid.load_robot(tmp_path / "p.yaml")
