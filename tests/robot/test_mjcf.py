"""MJCF files against MuJoCo's own dynamics."""

from pathlib import Path

import numpy as np
import pytest

from armid import Model, link_frames, load_robot
from armid.errors import ArmidWarning, DescriptionError, RoundedAngleWarning

mujoco = pytest.importorskip("mujoco")

INERTIA = '<inertial pos="0.05 -0.02 0.1" mass="{}" fullinertia="0.4 0.5 0.3 0.02 -0.03 0.01"/>'
KILOGRAM = INERTIA.format(1)
ARM = f"""
<mujoco model="small arm">
  <compiler angle="radian"/>
  <option gravity="0.5 -1 -9.7"/>
  <default><joint damping="0.6" frictionloss="0.9" armature="0"/>
    <default class="wrist"><joint damping="0.1" frictionloss="0" axis="0 1 0"/></default></default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="mount" pos="0 0 0.2" euler="0.1 0.2 0.3">{INERTIA.format(9)}
      <body name="turret" pos="0 0.1 0.3" quat="0.9 0.1 -0.2 0.3">{INERTIA.format(5)}
        <joint name="turn" axis="0.3 -0.5 0.8" pos="0.1 0.02 -0.05" range="-2 1.5" actuatorfrcrange="-70 80"/>
        <body name="boom" pos="0.3 0 0" euler="0 0.4 0.1">{INERTIA.format(4)}
          <joint name="lift" axis="0 1 0" ref="0.4"/>
          <joint name="reach" type="slide" axis="1 0 1" pos="0.1 0 0" ref="-0.1" range="-0.2 0.3"/>
          <body name="bracket" pos="0.2 0.1 0" euler="0 0 0.7">{INERTIA.format(1)}
            <body name="hand" pos="0 0 0.2">{INERTIA.format(2)}
              <joint name="roll" class="wrist" pos="0 0.1 0"/>
            </body>
          </body>
        </body>
        <body name="counterweight" pos="-0.3 0 0"><geom type="sphere" size="0.1" mass="3"/>
          <joint name="swing" axis="1 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes an MJCF file; MuJoCo's own log, if any, stays in the temporary folder."""
    monkeypatch.chdir(tmp_path)

    def file(text):
        path = tmp_path / "arm.xml"
        path.write_text(text)
        return path

    return file


def mujoco_torque(path, q, qd, qdd):
    """Inverse dynamics by MuJoCo without contact, limits and friction."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    data = mujoco.MjData(model)
    result = np.empty_like(q)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], qd[i], qdd[i]
        mujoco.mj_inverse(model, data)
        result[i] = data.qfrc_inverse
    return result


def nominal_torque(robot, *motion):
    """Torque of the inertia that the file states."""
    model = Model(robot)
    values = dict(zip(model.names, robot.nominal_inertia.ravel(), strict=False))
    return model.inverse_dynamics(*motion, values)


def test_torque_is_mujocos(write):
    """Defaults, hinges and slides off the origin, references, two joints in a body, welded bodies: same torque."""
    path = write(ARM)
    robot = load_robot(path)
    motion = np.random.default_rng(0).uniform(-2, 2, (3, 25, robot.n_joints))
    theirs = mujoco_torque(path, *motion)
    assert nominal_torque(robot, *motion) == pytest.approx(theirs, abs=1e-9)


def test_link_frames_are_mujocos(write):
    """The link frame is the body's frame for the last joint of each body."""
    path = write(ARM)
    robot = load_robot(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    q = np.random.default_rng(1).uniform(-1, 1, robot.n_joints)
    data.qpos[:] = q
    mujoco.mj_kinematics(model, data)
    frames = link_frames(robot, q[None])[0]
    for index, name in ((0, "turret"), (2, "boom"), (3, "hand"), (4, "counterweight")):
        assert frames[index][:3, 3] == pytest.approx(data.body(name).xpos, abs=1e-12)
        assert frames[index][:3, :3].ravel() == pytest.approx(data.body(name).xmat, abs=1e-12)


def test_joints_limits_friction_and_gravity_are_read(write):
    """Names, types, parents, ranges, the largest actuator force, damping and frictionloss through defaults."""
    robot = load_robot(write(ARM))
    nan = np.nan
    assert robot.name == "small_arm"
    assert robot.joint_names == ("turn", "lift", "reach", "roll", "swing")
    assert [j.prismatic for j in robot.joints] == [False, False, True, False, False]
    assert [j.parent for j in robot.joints] == [0, 1, 2, 3, 1]
    np.testing.assert_array_equal(robot.limits.lower, [-2, nan, -0.2, nan, nan])
    np.testing.assert_array_equal(robot.limits.upper, [1.5, nan, 0.3, nan, nan])
    np.testing.assert_array_equal(robot.limits.torque, [80, nan, nan, nan, nan])
    assert robot.nominal_friction == pytest.approx(np.array([[0.6, 0.9]] * 3 + [[0.1, 0.0], [0.6, 0.9]]))
    assert robot.gravity.tolist() == [0.5, -1, -9.7]


def test_disabled_gravity_is_no_gravity(write):
    """A model whose gravity is switched off by a flag is weightless, as it is in MuJoCo."""
    text = ARM.replace('<option gravity="0.5 -1 -9.7"/>', '<option><flag gravity="disable"/></option>')
    assert not load_robot(write(text)).gravity.any()


def test_missing_meshes_do_no_harm_where_inertia_is_stated(write):
    """Dynamics needs no meshes; with them dropped the torque is that of the file without geometry."""
    robot = load_robot(write(ARM))
    motion = np.random.default_rng(0).uniform(-2, 2, (3, 5, robot.n_joints))
    expected = nominal_torque(robot, *motion)
    asset = '<asset><mesh name="m" file="gone.stl"/></asset><worldbody>'
    geom = '<joint name="roll" class="wrist" pos="0 0.1 0"/><geom type="mesh" mesh="m"/>'
    text = ARM.replace("<worldbody>", asset).replace('<joint name="roll" class="wrist" pos="0 0.1 0"/>', geom)
    assert nominal_torque(load_robot(write(text)), *motion) == pytest.approx(expected, abs=1e-12)


def test_rounded_angles_do_not_add_parameters(write):
    """Right angles written with four decimals count as right angles where ranks are decided."""
    bodies = ""
    for angles in ("0 0 0", "1.5708 0 0", "0 0 0", "0 -1.5708 0"):
        bodies += f'<body pos="0.2 0 0.1" euler="{angles}">{INERTIA.format(3)}<joint axis="0 0 1"/>'
    text = f'<mujoco><compiler angle="radian"/><worldbody>{bodies}{"</body>" * 4}</worldbody></mujoco>'
    with pytest.warns(RoundedAngleWarning, match="rounded"):
        rounded = load_robot(write(text))
    exact = load_robot(write(text.replace("1.5708", "1.5707963267948966")))
    assert rounded.joints[1].placement[1, 1] == pytest.approx(np.cos(1.5708), rel=1e-6)
    assert Model(rounded).base.count == Model(exact).base.count


def test_constraints_are_reported_as_ignored(write):
    """Equality constraints that close loops are not modelled; it says so."""
    equality = '<equality><joint joint1="turn" joint2="roll" polycoef="0 1 0.2 0 0"/></equality></mujoco>'
    with pytest.warns(ArmidWarning, match="equality constraints other than linear ones between joints are ignored"):
        assert load_robot(write(ARM.replace("</mujoco>", equality))).n_joints == 5


def one(joint="", body=KILOGRAM, before=""):
    return f'<mujoco>{before}<worldbody><body name="b">{body}{joint}</body></worldbody></mujoco>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (one('<joint name="j" type="ball"/>'), "joint 'j'.*hinge and slide are supported"),
        (one('<freejoint name="j"/>'), "joint 'j'.*hinge and slide are supported"),
        (one(), "none can move"),
        (one('<joint name="j"/>', body=""), "MuJoCo cannot compile"),
        (one('<joint name="j" axis="nan 0 1"/>'), "jnt_axis.*not finite"),
        (one('<joint name="j"/><colour/>'), "MuJoCo cannot compile.*colour"),
        (one('<joint name="j"/>', before='<include file="gone.xml"/>'), "MuJoCo cannot compile.*gone.xml"),
        (
            one('<joint name="j"/><geom type="mesh" mesh="m"/>', "", '<asset><mesh name="m" file="gone.stl"/></asset>'),
            "MuJoCo cannot compile.*gone.stl",
        ),
        ("<mujoco><worldbody></mujoco>", "line 1, column .*not valid XML"),
        ("<model/>", "<model>.*neither"),
    ],
    ids=[
        "ball",
        "free",
        "fixed",
        "massless",
        "nan",
        "unknown element",
        "missing include",
        "missing mesh",
        "broken",
        "other",
    ],
)
def test_unusable_files_are_refused_with_a_reason(write, text, words, tmp_path, monkeypatch):
    """Whatever MuJoCo or armid cannot use ends in one DescriptionError of one line that names the file, and no log."""
    path = write(text)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(DescriptionError, match=f"arm.xml: .*{words}") as caught:
        load_robot(path)
    assert "\n" not in str(caught.value)
    assert not list(Path().iterdir())
