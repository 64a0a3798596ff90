"""An arm within a larger file: the rest is locked with its inertia, and the model is MuJoCo's with the rest held."""

import numpy as np
import pytest

import armid
from armid.cli.main import main
from armid.errors import DescriptionError, UnknownNameError
from armid.robot.robot import inertial_names

mujoco = pytest.importorskip("mujoco")

INERTIAL = '<inertial pos="{} {} 0.1" mass="{}" diaginertia="0.02 0.03 0.025"/>'
HUMANOID = f"""<mujoco><worldbody><body name="torso"><freejoint name="floating"/>{INERTIAL.format(0.1, 0, 9)}
<body name="lift" pos="0 0 0.4"><joint name="lift" type="slide" axis="0 0 1"/>{INERTIAL.format(0, 0.1, 3)}
<body name="upper" pos="0.1 0.2 0.3" euler="0 20 10"><joint name="shoulder" axis="0 1 0"/>{INERTIAL.format(0.1, 0, 2)}
<body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 0 1"/>{INERTIAL.format(0.05, 0.1, 1)}
<body name="hand" pos="0.2 0 0"><joint name="wrist" axis="1 0 0"/>{INERTIAL.format(0, 0.02, 0.5)}
<body name="finger" pos="0.1 0 0" euler="30 0 0"><joint name="finger" axis="0 1 0"/>{INERTIAL.format(0.03, 0, 0.2)}
</body></body></body></body></body></body></worldbody></mujoco>"""
ARM = ("shoulder", "elbow", "wrist")


@pytest.fixture
def humanoid(tmp_path):
    path = tmp_path / "humanoid.xml"
    path.write_text(HUMANOID)
    return path


def by_mujoco(names, q, qd, qdd):
    """Torque of some joints while all others stand still at zero."""
    model = mujoco.MjModel.from_xml_string(HUMANOID)
    data, result = mujoco.MjData(model), np.empty_like(q)
    dofs = [int(model.joint(name).dofadr[0]) for name in names]
    for k in range(len(q)):
        mujoco.mj_resetData(model, data)
        for name, value in zip(names, q[k], strict=True):
            data.qpos[model.joint(name).qposadr[0]] = value
        data.qvel[dofs], data.qacc[dofs] = qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        result[k] = data.qfrc_inverse[dofs]
    return result


def torque(robot, motion):
    pairs = zip(range(1, robot.n_joints + 1), robot.nominal_inertia, strict=True)
    values = {name: v for k, phi in pairs for name, v in zip(inertial_names(k), phi, strict=True)}
    return armid.Model(robot).inverse_dynamics(*motion, values)


@pytest.mark.parametrize(
    "choice",
    [{"joints": ARM}, {"between": ("lift", "hand")}, {"joints": ("elbow", "finger")}, {"between": ("upper", None)}],
)
def test_chain_equals_mujoco(humanoid, choice):
    """Named joints or those between two links, locked ones before, between and after; a free joint is no obstacle."""
    robot = armid.load_robot(humanoid, **choice)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 30, robot.n_joints))
    expected = by_mujoco(robot.joint_names, q, qd, qdd)
    assert np.abs(torque(robot, (q, qd, qdd)) - expected).max() < 1e-9 * np.abs(expected).max()


def test_chain_of_a_urdf(humanoid, tmp_path):
    """The same arm in a URDF with a floating base, through a robot file and the command line too."""
    model = mujoco.MjModel.from_xml_path(str(humanoid))
    mass = {b: model.body(b).mass[0] for b in ("torso", "lift", "upper", "lower", "hand", "finger")}
    lines = ["<robot name='h'><link name='world'/>"]
    for name, value in mass.items():
        x, y, z = model.body(name).ipos
        lines.append(
            f"<link name='{name}'><inertial><origin xyz='{x} {y} {z}'/><mass value='{value}'/>"
            "<inertia ixx='0.02' iyy='0.03' izz='0.025' ixy='0' ixz='0' iyz='0'/></inertial></link>"
        )
    axes = {"floating": "floating", "lift": "prismatic", **dict.fromkeys((*ARM, "finger"), "revolute")}
    bodies, previous = list(mass), "world"
    for name, kind, body in zip(axes, axes.values(), bodies, strict=True):
        x, y, z = model.body(body).pos
        w, *vector = model.body(body).quat
        rpy = _rpy(w, *vector)
        axis = "0 0 1" if name == "floating" else " ".join(map(str, model.joint(name).axis))
        lines.append(
            f"<joint name='{name}' type='{kind}'><parent link='{previous}'/><child link='{body}'/>"
            f"<origin xyz='{x} {y} {z}' rpy='{rpy}'/><axis xyz='{axis}'/><limit lower='-2' upper='2'/></joint>"
        )
        previous = body
    urdf = tmp_path / "h.urdf"
    urdf.write_text("".join([*lines, "</robot>"]))
    with pytest.raises(DescriptionError, match=r"floating.*where the arm's joints are named"):
        armid.load_robot(urdf)
    (tmp_path / "arm.yaml").write_text("name: h\nkinematics: {convention: urdf, file: h.urdf, from: lift, to: hand}\n")
    motion = np.random.default_rng(1).normal(size=(3, 20, 3))
    expected = by_mujoco(ARM, *motion)
    for robot in (armid.load_robot(urdf, joints=ARM), armid.load_robot(tmp_path / "arm.yaml")):
        assert robot.joint_names == ARM
        assert np.abs(torque(robot, motion) - expected).max() < 1e-9 * np.abs(expected).max()
    assert main(["new", str(urdf), "--from", "lift", "--to", "hand", "-o", str(tmp_path / "new.yaml")]) == 0
    assert armid.load_robot(tmp_path / "new.yaml").joint_names == ARM


def _rpy(w, x, y, z):
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    return f"{roll} {np.arcsin(2 * (w * y - z * x))} {np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))}"


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"joints": ("shoulder", "elbo")}, "elbow"),
        ({"between": ("hand", "lift")}, "there are none from hand to lift"),
        ({"between": ("arm", None)}, "link of .* 'arm'"),
        ({"joints": ("elbow",), "between": ("lift", None)}, "give one of them"),
        ({"joints": ("floating",)}, "free or ball"),
    ],
)
def test_wrong_choice(humanoid, choice, said):
    """One sentence says what is wrong with a choice."""
    with pytest.raises((DescriptionError, UnknownNameError), match=said):
        armid.load_robot(humanoid, **choice)
    with pytest.raises(DescriptionError, match="are chosen from URDF and MJCF files"):
        armid.load_robot("pa10", joints=("joint1",))


def test_log_with_more_joints_than_the_arm(humanoid):
    """Columns of other joints are passed over, whatever their order."""
    robot = armid.load_robot(humanoid, joints=ARM)
    names = ("finger", "wrist", "lift", "shoulder", "elbow")
    time = np.arange(2000) / 100.0
    rng = np.random.default_rng(2)
    q = sum(a * np.sin(w * time[:, None] + p) for a, w, p in rng.uniform(0.3, 2.0, (3, 3, 5)))
    log = armid.Log(time, {"position": q, "effort": q + 1.0}, armid.LogInfo(names, "joint torque"))
    data = armid.process(log, robot=robot)
    assert data.joints == ARM
    whole = armid.process(log)
    assert np.allclose(data.torque, whole.torque[:, [3, 4, 1]])
