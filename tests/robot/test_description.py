"""Every field of the robot file, starting from the example in docs/robot-file.md."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from armid import Model, link_frames, load_robot, tool_frame, view
from armid.errors import DescriptionError
from armid.robot.inertia import to_com

DOCS = Path(__file__).parents[2] / "docs" / "robot-file.md"
LINK = {"mass": 1.0, "com": [0, 0, 0], "inertia": {"xx": 1, "xy": 0, "xz": 0, "yy": 1, "yz": 0, "zz": 1}}


def example():
    """The documented example."""
    return yaml.safe_load(re.search(r"```yaml\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL).group(1))


@pytest.fixture
def load(tmp_path):
    """Writes fields to a robot file and loads it."""

    def write(fields, **options):
        path = tmp_path / "arm.yaml"
        path.write_text(yaml.safe_dump(fields))
        return load_robot(path, **options)

    return write


@pytest.fixture
def robot(load):
    return load(example())


def simple(**fields):
    """A robot file with three joints and nothing else but `fields`."""
    rows = [[0, 0, 0.3, 0], ["-pi/2", 0.1, 0, 0], [0, 0.3, 0, 0]]
    return {"name": "arm", "kinematics": {"convention": "modified-dh", "rows": rows}, **fields}


def test_documented_example_loads(robot):
    """The example of the documentation works; names, tool, gravity and limits are what it says."""
    assert (robot.name, robot.title) == ("example", "Example arm, 3 of 6 links")
    assert robot.joint_names == ("waist", "shoulder", "elbow")
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert robot.limits.lower.tolist() == [-3.1, -1.5, -2]
    assert robot.limits.upper.tolist() == [3.1, 1.5, 2]
    assert robot.limits.velocity.tolist() == [2, 2, 3]
    assert robot.limits.acceleration.tolist() == [10, 10, 15]
    assert robot.limits.torque.tolist() == [200, 200, 100]
    assert robot.limits.box.tolist() == [[-1, -1, 0], [1, 1, 1.5]]
    assert robot.limits.assumed == {"acceleration", "torque"}
    assert np.linalg.inv(link_frames(robot, np.zeros((1, 3)))[0, -1]) @ tool_frame(robot, np.zeros((1, 3)))[
        0
    ] == pytest.approx(np.block([[np.eye(3), np.array([[0], [0], [0.1]])], [0, 0, 0, 1]]), abs=1e-12)


def test_documented_drives_and_springs(robot):
    """Gear ratios, carriers, axes, coupling, polynomials of the current, springs and counterbalances."""
    assert [d.gear_ratio for d in robot.drives] == [100, 100, 80]
    assert [d.rotor_inertia for d in robot.drives] == [None] * 3
    assert [d.carrier for d in robot.drives] == [0, 1, 2]
    assert [d.axis.tolist() for d in robot.drives] == [[0, 0, 1], [0, 1, 0], [0, 0, 1]]
    assert all(d.coupled for d in robot.drives)
    assert robot.coupling.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0.5, 1]]
    assert robot.current_gain == ((0, 1.1), (0, 1.1), (0, 0.9))
    (spring,) = robot.springs
    assert (spring.joint, spring.a, spring.b, spring.phi) == (2, 0.2, 0.5, 0)
    (table,) = robot.counterbalances
    assert (table.joint, table.position.tolist(), table.torque.tolist()) == (2, [-1, 0, 1], [5, 0, -5])


def test_documented_sets_and_provenance(robot):
    """Simplifications, known values, published values and provenance."""
    assert robot.zero == {
        "mx1",
        "my1",
        "Ixy2",
        *(f"{n}3" for n in ["m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"]),
    }
    assert robot.simplifications["published"].note == "symmetry of the castings"
    assert robot.known == {"Im1": 1e-4}
    assert Model(robot).known["Im1"] == 1e-4
    first, second = robot.published["identified"]["parameters"]
    assert (first["name"], first["value"], second["printed"]) == ("I1zzR", 6.3376, -101.92)
    assert [(p.field, p.status, p.errata) for p in robot.provenance] == [
        ("kinematics", "printed", ()),
        ("limits.torque", "assumed", ()),
        ("friction", "corrected", ("PA-8",)),
    ]


def test_documented_formula_can_be_viewed(robot):
    """A set with its own gear ratio has one ratio for all joints, so that `kr` means something in its formulas."""
    model = Model(robot)
    shown = view(model, "identified")
    terms = {model.names[c]: shown.matrix[0, c] for c in shown.matrix[0].nonzero()[0]}
    assert terms == {"Izz1": 1.0, "Iyy2": 1.0, "Im1": 1.0}


def test_documented_virtual_arm(robot):
    """The truth of the simulation."""
    truth = robot.virtual
    mass, com, inertia = to_com(truth.inertia[0])
    assert (mass, com.tolist(), inertia.tolist()) == (1.0, [0, 0, 0], np.eye(3).tolist())
    assert truth.rotor_inertia.tolist() == [1e-4] * 3
    assert truth.coefficients == ({"fv": 1.0, "fc": 2.0},) * 3
    assert truth.springs == ((4000, 0.3), (20, 0.1))
    assert truth.load_loss.tolist() == [[0.1, 0], [0.1, 0], [0, 0]]
    assert truth.torque_noise.tolist() == [1, 1, 0.5]
    assert (truth.encoder_resolution, truth.payload[0]) == (1.7e-5, 9.579)


def test_only_name_and_kinematics_are_required(load):
    """Defaults: standard gravity, reflected rotors, Coulomb and viscous friction, nothing known of limits."""
    robot = load(simple())
    assert robot.gravity.tolist() == [0, 0, -9.81]
    assert robot.joint_names == ("joint1", "joint2", "joint3")
    assert all(not d.coupled and d.rotor_inertia is None for d in robot.drives)
    assert all(f.law == "coulomb-viscous" for f in robot.friction)
    assert np.isnan(robot.limits.torque).all()
    assert robot.virtual is None


@pytest.mark.parametrize("missing", ["name", "kinematics"])
def test_required_fields(load, missing):
    """The error names the file and the field that is not there."""
    fields = simple()
    del fields[missing]
    with pytest.raises(DescriptionError, match=rf"arm\.yaml: {missing}: is missing"):
        load(fields)


def test_links_in_the_file_and_as_an_option(load):
    """The file's `links` cuts every list; the option overrides it in both directions."""
    fields = {**example(), "links": 2}
    assert load(fields, links=3).n_joints == 3
    robot = load(fields)
    lists = (robot.joints, robot.limits.lower, robot.drives, robot.friction, robot.coupling, robot.current_gain)
    assert [len(entries) for entries in lists] == [2] * 6
    assert robot.coupling.shape == (2, 2)
    assert robot.zero == {"mx1", "my1", "Ixy2"}
    assert len(robot.virtual.inertia) == len(robot.virtual.coefficients) == len(robot.virtual.torque_noise) == 2
    assert load(fields, links=1).springs == load(fields, links=1).virtual.springs == ()


def test_four_joints_may_be_coupled(load):
    """A coupling of four joints is no frame."""
    coupling = np.eye(4)
    coupling[3, 2] = 1.0
    rows = [[0.0, 0.1, 0.0, 0.0]] * 4
    fields = simple(
        kinematics={"convention": "modified-dh", "rows": rows}, drives={"coupling_matrix": coupling.tolist()}
    )
    np.testing.assert_array_equal(load(fields).coupling, coupling)


def test_one_value_for_all_joints(load):
    """A field per joint takes a single value; numbers may be written as people write them."""
    robot = load(simple(limits={"velocity": "90 deg"}, drives={"gear_ratio": 50, "rotor_inertia": 1e-4}))
    assert robot.limits.velocity == pytest.approx([np.pi / 2] * 3)
    assert [(d.gear_ratio, d.rotor_inertia) for d in robot.drives] == [(50, 1e-4)] * 3


def test_weightless_arm(load):
    """`gravity: none` is the way to say that there is no gravity."""
    assert not load(simple(gravity="none")).gravity.any()


def test_current_polynomials(load):
    """A list of lists gives polynomials, lowest power first."""
    gains = [[0.1, 2.0, -0.01], 3.0, [0, 1]]
    assert load(simple(drives={"current_gain": gains})).current_gain == ((0.1, 2.0, -0.01), (0.0, 3.0), (0.0, 1.0))


@pytest.mark.parametrize("name", ["Izz2", "Im1", "fv1p", "fc3n", "ks1", "kl1"])
def test_any_parameter_can_be_known(load, name):
    """Every name that the documentation lists, friction per direction and springs included, is accepted and used."""
    springs = [{"type": "gravity-compensation", "joint": 2, "a": 0.2, "b": 0.5}]
    fields = simple(friction={"law": "coulomb-viscous", "per_direction": True}, springs=springs, known={name: 1.5})
    model = Model(load(fields))
    assert model.known == {name: 1.5}
    assert name not in model.unknown


def test_default_rotor_axis_is_the_joints(load):
    """A rotor on the joint's parent turns about the joint's axis; on an earlier link about the same line at zero."""
    robot = load(simple(drives={"carrier": [0, 1, 1]}))
    assert [d.axis.tolist() for d in robot.drives] == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]


def test_motor_side_friction_is_converted(load):
    """Torque coefficients of the motor side are multiplied by the gear ratio; velocities and shapes are not."""
    law = {"law": ["double-exponential", "stribeck", "hyperbolic"], "side": "motor"}
    names = ["f1", "f2", "f3", "f4", "f5", "f6", "fv", "fc", "fs", "vs", "g1", "g2", "g3", "g4", "g5"]
    fields = simple(
        drives={"gear_ratio": [10, 20, 30]},
        virtual={
            "links": [dict(LINK) for _ in range(3)],
            "friction": {**law, "coefficients": dict.fromkeys(names, 1.0)},
            "load_loss": {"side": "motor", "slope": 0.1, "offset": [1, 2, 3]},
        },
    )
    truth = load(fields).virtual
    own = [
        {name: c[name] for name in f.coefficient_names} for f, c in zip(truth.friction, truth.coefficients, strict=True)
    ]
    assert own == [
        {"f1": 10, "f2": 10, "f3": 10, "f4": 1, "f5": 10, "f6": 1},
        {"fv": 20, "fc": 20, "fs": 20, "vs": 1},
        {"g1": 30, "g2": 1, "g3": 30, "g4": 1, "g5": 30},
    ]
    assert truth.load_loss.tolist() == [[0.1, 10], [0.1, 40], [0.1, 90]]


def test_motor_side_friction_per_direction(load):
    """The shape coefficients of both directions stay as they are."""
    coefficients = {f"{name}{sign}": 1.0 for name in ["f1", "f2", "f3", "f4", "f5", "f6"] for sign in "pn"}
    friction = {"law": "double-exponential", "per_direction": True, "side": "motor", "coefficients": coefficients}
    virtual = {"links": [LINK], "friction": friction}
    truth = load(simple(links=1, drives={"gear_ratio": 50}, virtual=virtual)).virtual
    assert {name: value for name, value in truth.coefficients[0].items() if value == 1.0} == {
        f"{name}{sign}": 1.0 for name in ("f4", "f6") for sign in "pn"
    }


@pytest.mark.parametrize("convention", ["urdf", "mjcf"])
def test_file_beside_the_robot_file(load, tmp_path, convention):
    """URDF and MJCF are found relative to the robot file; its fields complete and override theirs."""
    if convention == "mjcf":
        pytest.importorskip("mujoco")
        inertial = '<inertial mass="2" pos="0 0 0" diaginertia="1 1 1"/><joint name="j" range="-1 1"/>'
        text = f'<mujoco><compiler angle="radian"/><worldbody><body>{inertial}</body></worldbody></mujoco>'
    else:
        limit = '<limit lower="-1" upper="1" velocity="2" effort="3"/>'
        ends = '<parent link="a"/><child link="b"/>'
        joint = f'<joint name="j" type="revolute">{ends}{limit}</joint>'
        text = f'<robot name="r"><link name="a"/><link name="b"/>{joint}</robot>'
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "arm.txt").write_text(text)
    kinematics = {"convention": convention, "file": "deep/arm.txt"}
    robot = load({"name": "mine", "kinematics": kinematics, "limits": {"velocity": 5}, "gravity": [9.81, 0, 0]})
    assert (robot.name, robot.joint_names) == ("mine", ("j",))
    assert (robot.limits.lower[0], robot.limits.upper[0], robot.limits.velocity[0]) == (-1, 1, 5)
    assert robot.gravity.tolist() == [9.81, 0, 0]
