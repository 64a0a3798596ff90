"""URDF files against Pinocchio's reading of them."""

import warnings

import numpy as np
import pytest

from armid import Model, link_frames, load_robot
from armid.errors import ArmidWarning, DescriptionError, ImpossibleInertiaWarning, RoundedAngleWarning
from armid.robot.inertia import impossibility

BODY = '<inertial><origin xyz="{1}" rpy="0.2 -0.1 0.3"/><mass value="{0}"/>{2}</inertial>'
TENSOR = '<inertia ixx="0.4" ixy="0.02" ixz="-0.03" iyy="0.5" iyz="0.01" izz="0.3"/>'


def link(name, mass=None, com="0.1 -0.05 0.2", tensor=TENSOR):
    return f'<link name="{name}">{BODY.format(mass, com, tensor) if mass else ""}</link>'


def joint(name, kind, parent, child, inside="", origin='xyz="0 0 0"'):
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}"><origin {origin}/>{ends}{inside}</joint>'


# Names are against the alphabet on purpose: Pinocchio visits children in alphabetical order, armid in the file's.
TREE = "".join(
    [
        '<robot name="tree" xmlns:xacro="http://www.ros.org/wiki/xacro">',
        link("world") + link("base", 50) + link("trunk", 12) + link("box", 3, "0.3 0.1 -0.2") + link("wing", 5),
        link("hand", 2) + link("slider", 4) + link("finger", 1.5, "0.02 0.03 -0.01") + link("plate", 0.7) + link("tcp"),
        joint("z_weld", "fixed", "world", "base", origin='xyz="0.1 0.2 0.3" rpy="0.3 -0.2 0.5"'),
        joint(
            "z_turn",
            "revolute",
            "base",
            "trunk",
            '<axis xyz="0.3 -0.5 0.8"/><limit lower="-2" upper="1.5" velocity="3" effort="80"/>'
            '<dynamics damping="0.7" friction="1.2"/>',
            origin='xyz="0 0.1 0.4" rpy="0.4 0 -0.3"',
        ),
        joint("a_box", "fixed", "trunk", "box", origin='xyz="-0.2 0.1 0.3" rpy="1 2 3"'),
        joint("y_spin", "continuous", "box", "wing", '<axis xyz="0 -1 0"/>', origin='xyz="0.3 0 0.1" rpy="0 0.6 0"'),
        joint(
            "b_slide",
            "prismatic",
            "trunk",
            "slider",
            '<axis xyz="1 1 0"/><limit lower="-0.1" upper="0.4" velocity="0.5" effort="300"/>',
            origin='xyz="0 -0.2 0.2" rpy="-0.7 0.1 0.2"',
        ),
        joint("c_hand", "fixed", "wing", "hand", origin='xyz="0.4 0 0" rpy="0 0.2 0"'),
        joint("x_plate", "fixed", "hand", "plate", origin='xyz="0 0 0.1" rpy="0.5 0 0"'),
        joint(
            "a_grip",
            "revolute",
            "plate",
            "finger",
            '<limit lower="0" upper="1" velocity="2" effort="5"/>',
            origin='xyz="0 0.1 0" rpy="0.1 0.2 0.3"',
        ),
        joint("d_tcp", "fixed", "finger", "tcp", origin='xyz="0 0 0.2"'),
        '<transmission name="t"/></robot>',
    ]
)


@pytest.fixture
def load(tmp_path):
    """Writes a URDF and loads it."""

    def write(text, **options):
        path = tmp_path / "arm.urdf"
        path.write_text(text)
        return load_robot(path, **options)

    return write


def chain(*joints):
    """A URDF of a base and one link per joint, each with some inertia."""
    count = len(joints)
    return f'<robot name="r">{link("l0")}{"".join(link(f"l{i + 1}", 1) for i in range(count))}{"".join(joints)}</robot>'


def nominal_torque(robot, q, qd, qdd):
    """Torque of the inertia that the file states."""
    model = Model(robot)
    values = dict(zip(model.names, robot.nominal_inertia.ravel(), strict=False))
    return model.inverse_dynamics(q, qd, qdd, values)


def pinocchio_torque(pin, text, names, q, qd, qdd):
    """Torque by Pinocchio for joints in the order `names`; its continuous joints hold cosine and sine."""
    model = pin.buildModelFromXML(text)
    data = model.createData()
    joints = [model.joints[model.getJointId(name)] for name in names]
    result = np.empty_like(q)
    for sample in range(len(q)):
        position, velocity, acceleration = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        for j, item in enumerate(joints):
            angle = q[sample, j]
            position[item.idx_q : item.idx_q + item.nq] = angle if item.nq == 1 else (np.cos(angle), np.sin(angle))
            velocity[item.idx_v], acceleration[item.idx_v] = qd[sample, j], qdd[sample, j]
        torque = pin.rnea(model, data, position, velocity, acceleration)
        result[sample] = [torque[item.idx_v] for item in joints]
    return result


def random_motion(joints, samples=25):
    return np.random.default_rng(2).uniform(-2, 2, (3, samples, joints))


def test_torque_of_a_tree_with_fixed_links_is_pinocchios(load):
    """Merged fixed links, oblique axes, sliding and continuous joints in a tree give Pinocchio's torque."""
    pin = pytest.importorskip("pinocchio")
    robot = load(TREE)
    motion = random_motion(robot.n_joints)
    theirs = pinocchio_torque(pin, TREE, robot.joint_names, *motion)
    assert nominal_torque(robot, *motion) == pytest.approx(theirs, abs=1e-11 * np.abs(theirs).max())


@pytest.mark.parametrize("name", ["ur10e", "xmate7p", "tx40"])
def test_torque_of_real_arms_is_pinocchios(name, data):
    """The makers' files give Pinocchio's torque, with their rounded angles as they are."""
    pin = pytest.importorskip("pinocchio")
    path = data / name / f"{name}.urdf"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmidWarning)
        robot = load_robot(path)
    motion = random_motion(robot.n_joints)
    theirs = pinocchio_torque(pin, path.read_text(), robot.joint_names, *motion)
    assert nominal_torque(robot, *motion) == pytest.approx(theirs, abs=1e-11 * np.abs(theirs).max())


def test_frames_are_pinocchios(load):
    """Link frames are those of the file, also behind fixed joints."""
    pin = pytest.importorskip("pinocchio")
    robot = load(TREE)
    model = pin.buildModelFromXML(TREE)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    ours = link_frames(robot, np.zeros((1, robot.n_joints)))[0]
    for frame, item in zip(ours, robot.joints, strict=True):
        theirs = data.oMf[model.getFrameId(item.link_name)].homogeneous
        assert frame == pytest.approx(theirs, abs=1e-13)


def test_joints_limits_and_friction_are_read(load):
    """Order of the file, parents, types, limits (NaN where none) and nominal friction; base inertia has no effect."""
    robot = load(TREE)
    nan = np.nan
    assert robot.joint_names == ("z_turn", "y_spin", "a_grip", "b_slide")
    assert [j.parent for j in robot.joints] == [0, 1, 2, 1]
    assert [j.prismatic for j in robot.joints] == [False, False, False, True]
    np.testing.assert_array_equal(robot.limits.lower, [-2, nan, 0, -0.1])
    np.testing.assert_array_equal(robot.limits.upper, [1.5, nan, 1, 0.4])
    np.testing.assert_array_equal(robot.limits.velocity, [3, nan, 2, 0.5])
    np.testing.assert_array_equal(robot.limits.torque, [80, nan, 5, 300])
    assert robot.nominal_friction.tolist() == [[0.7, 1.2], [0, 0], [0, 0], [0, 0]]
    assert robot.nominal_inertia[:, 0] == pytest.approx([15, 7.7, 1.5, 4])
    assert robot.name == "tree"
    assert robot.nominal_joints is None


def test_placeholder_limits_are_no_limits(load):
    """Zeros that exporters write into <limit> are unknown, not a joint that cannot move."""
    limit = '<limit lower="0" upper="0" velocity="0" effort="0"/>'
    robot = load(chain(joint("j", "revolute", "l0", "l1", limit)))
    limits = robot.limits
    assert np.isnan([limits.lower[0], limits.upper[0], limits.velocity[0], limits.torque[0]]).all()


def test_missing_axis_is_x(load):
    """URDF's default axis is x."""
    frame = load(chain(joint("j", "revolute", "l0", "l1"))).joints[0].placement
    assert frame[:3, 2].tolist() == [1, 0, 0]


def test_rounded_angles_are_kept_for_torques_and_mended_for_ranks(load):
    """1.5708 is reported, used as it is in the kinematics, and taken as a right angle where ranks are decided."""
    axis = '<axis xyz="0 0 1"/>'
    text = chain(
        joint("j1", "revolute", "l0", "l1", axis),
        joint("j2", "revolute", "l1", "l2", axis, origin='xyz="0 0 0.3" rpy="1.5708 0 0"'),
        joint("j3", "revolute", "l2", "l3", axis, origin='xyz="0.3 0 0" rpy="-1.5708 0 0"'),
    )
    with pytest.warns(RoundedAngleWarning, match="j2, j3 look rounded"):
        robot = load(text)
    assert robot.joints[1].placement[1, 1] == pytest.approx(np.cos(1.5708), rel=1e-12)
    assert robot.nominal_joints[1].placement[1, 1] == 0.0
    exact = load(text.replace("1.5708", "1.5707963267948966"))
    assert exact.nominal_joints is None
    assert Model(robot).base.count == Model(exact).base.count


def test_impossible_inertia_is_reported_with_its_reason(load):
    """A body that cannot exist is loaded, and named in a warning."""
    bad = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.5"/>'
    text = f'<robot name="r">{link("l0")}{link("l1", 1, tensor=bad)}{joint("j", "revolute", "l0", "l1")}</robot>'
    with pytest.warns(ImpossibleInertiaWarning, match=r"link 'l1' is impossible: .*triangle"):
        robot = load(text)
    assert impossibility(robot.nominal_inertia[0]) is not None


def test_mimic_joint_follows(load):
    """A mimic joint is no joint of its own but moves its link as the file says; it must name one."""
    text = chain(
        joint("j1", "revolute", "l0", "l1"),
        joint("j2", "revolute", "l1", "l2", '<mimic joint="j1" multiplier="-1"/>'),
    )
    robot = load(text)
    assert robot.joint_names == ("j1",)
    assert robot.ratios.tolist() == [[1.0], [-1.0]]
    assert robot.nominal_inertia[:, 0].tolist() == [1.0, 1.0]
    with pytest.warns(ArmidWarning, match=r"mimic names 'j9', which is no joint of the file; it is locked"):
        assert not load(text.replace('mimic joint="j1"', 'mimic joint="j9"')).dependent
    with pytest.raises(DescriptionError, match="follows itself"):
        load(text.replace('mimic joint="j1"', 'mimic joint="j2"'))


def test_bare_file_gets_reflected_rotors_and_friction(load):
    """What a URDF does not say: unknown reflected rotors, Coulomb and viscous friction with an offset."""
    robot = load(TREE)
    assert all(d.rotor_inertia is None and not d.coupled and d.gear_ratio == 1 for d in robot.drives)
    assert all(f.coefficient_names == ("fv", "fc", "fo") for f in robot.friction)
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert not any(name.startswith("Im") for name in Model(load(TREE, rotors=False)).names)
    assert load(TREE, links=2).joint_names == ("z_turn", "y_spin")
    assert load(TREE, gravity=(9.81, 0, 0)).gravity.tolist() == [9.81, 0, 0]
