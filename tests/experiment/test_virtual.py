"""The virtual robot: its dynamics against Pinocchio, its energy, friction, drives and sensors."""

import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import armid
from armid.dynamics import Model
from armid.errors import ArmidError, DataShapeError, UnknownNameError
from armid.excitation import FourierSeries
from armid.experiment.physics import Physics, mujoco_functions
from armid.experiment.settings import DriveLoop, Presliding, Sensors, Thermal
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.robot.parts import Friction
from armid.signals import PeriodicAverage, process
from tests.dynamics.arms import pinocchio_model, random_robot, values_of

ROBOTS = ("rx60", "ir361", "kr15", "pa10", "er16", "powerball")


def library_arm(name):
    robot = armid.load_robot(name)
    return robot.first_links(len(robot.virtual.inertia))


def with_truth(robot, **changes):
    return replace(robot, virtual=replace(truth_of(robot), **changes))


def bare(robot):
    """No friction, rotors, springs, losses or payload."""
    n = robot.n_joints
    robot = replace(robot, springs=(), counterbalances=()).without_rotors()
    return with_truth(
        replace(robot, virtual=replace(robot.virtual, springs=())),
        friction=(Friction(),) * n,
        coefficients=({},) * n,
        load_loss=np.zeros((n, 2)),
        payload=None,
    )


def with_friction(robot, law, coefficients):
    n = robot.n_joints
    return with_truth(robot, friction=(Friction(law),) * n, coefficients=(coefficients,) * n)


def waves(arm, seconds, amplitude=0.3, hertz=0.3):
    """Smooth commands from rest, different for each joint."""
    t = np.arange(0.0, seconds, arm.cycle_s)
    start = arm.state().position
    rates = 2.0 * np.pi * hertz * (1.0 + 0.3 * np.arange(len(start)))
    u = np.minimum(t / 2.0, 1.0)[:, None]
    return start + amplitude * (1.0 - np.cos(rates * t[:, None])) * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)


@pytest.mark.parametrize("name", ROBOTS)
def test_bare_arm_obeys_pinocchio(name):
    """The simulator's own q, q̇, q̈ and torque satisfy Pinocchio's rnea to 1e-6 of the torque's range."""
    robot = bare(library_arm(name))
    arm = VirtualRobot(robot, rate_hz=250, sensors=Sensors.perfect())
    arm.stream(waves(arm, 6.0))
    model, data = pinocchio_model(robot, robot.virtual.inertia)
    true = arm.truth
    torque = np.array([pin.rnea(model, data, *row) for row in zip(true.q, true.qd, true.qdd, strict=True)])
    assert np.abs(torque - true.torque).max() < 1e-6 * np.ptp(torque, axis=0).max()
    assert np.ptp(true.q, axis=0).min() > 0.4


def energy_of(physics, q, v):
    """Kinetic and potential energy of links, rotors and payload [J], as MuJoCo adds them up."""
    physics.place(q, v)
    for step in (mujoco.mj_fwdPosition, mujoco.mj_energyPos, mujoco.mj_energyVel):
        step(physics.model, physics.data)
    return float(physics.data.energy.sum() + 0.5 * v @ physics.reflected @ v)


@pytest.mark.parametrize("name", ["rx60", "kr15", "pa10"])
def test_energy_balance_closes(name):
    """Work of the drives equals the gain of energy, the better the smaller the time step."""
    robot = bare(library_arm(name))
    errors = []
    for rate in (2000.0, 8000.0):
        arm = VirtualRobot(robot, rate_hz=rate, sensors=Sensors.perfect())
        arm.stream(waves(arm, 3.0))
        true, physics = arm.truth, Physics(robot, robot.virtual, None)
        # Above 2 kHz there is one time step per cycle, during which the drives hold their torque.
        work = np.concatenate([[0.0], np.cumsum(np.sum(true.torque[:-1] * np.diff(true.q, axis=0), axis=1))])
        energy = np.array([energy_of(physics, q, v) for q, v in zip(true.q[::50], true.qd[::50], strict=True)])
        errors.append(np.abs(energy - energy[0] - work[::50]).max() / np.ptp(energy))
    assert errors[1] < 1e-3
    assert errors[1] < 0.6 * errors[0]


@pytest.mark.parametrize("name", ["ir361", "kr15", "pa10", "powerball"])
def test_rotor_coupling_is_that_of_rotor_bodies_in_pinocchio(name):
    """Explicit rotors, q_rotor = k_r q: Pinocchio's mass matrix and bias, projected, equal the simulator's."""
    robot = library_arm(name)
    truth = robot.virtual
    gear = [drive.gear_ratio for drive in robot.drives]
    inertia = truth.inertia.copy()
    from armid.robot.geometry import along, placement
    from armid.robot.inertia import change_of_frame

    model, _ = pinocchio_model(robot, inertia)
    projection = [np.eye(robot.n_joints)]
    for index, drive in enumerate(robot.drives):
        im = truth.rotor_inertia[index]
        pose = placement(along(drive.axis))
        rotor = np.array([1e-9, 0, 0, 0, im / 2, 0, im / 2, 0, 0, im])
        row = np.zeros((1, robot.n_joints))
        row[0, index] = gear[index]
        projection.append(row)
        parent = drive.carrier
        joint = model.addJoint(parent, pin.JointModelRZ(), _in_parent(robot, parent, pose), f"rotor{index}")
        model.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(rotor), pin.SE3.Identity())
        if parent > 0:
            carried = change_of_frame(robot.joints[parent - 1].link_frame @ pose) @ rotor
            body = model.inertias[parent].toDynamicParameters() - carried
            model.inertias[parent] = pin.Inertia.FromDynamicParameters(body)
    # Pinocchio numbers joints as they were added: links first, then rotors, as in the projection.
    t = np.vstack(projection)
    data, physics = model.createData(), Physics(robot, truth, None)
    rng = np.random.default_rng(3)
    for _ in range(20):
        q, v = rng.normal(size=(2, robot.n_joints))
        mass, bias = physics.joint_space(q, v)
        full_q, full_v = np.concatenate([q, np.zeros(robot.n_joints)]), t @ v
        columns = [pin.rnea(model, data, full_q, full_v, t[:, i]) for i in range(robot.n_joints)]
        still = pin.rnea(model, data, full_q, full_v, np.zeros(model.nv))
        expected = np.column_stack([t.T @ (column - still) for column in columns])
        assert np.allclose(bias, t.T @ still, atol=1e-9 * np.abs(still).max())
        assert np.allclose(mass, expected, atol=1e-9 * np.abs(expected).max())


def _in_parent(robot, parent, pose):
    frame = np.eye(4) if parent == 0 else robot.joints[parent - 1].link_frame
    matrix = frame @ pose
    return pin.SE3(matrix[:3, :3], matrix[:3, 3])


@pytest.mark.parametrize("seed", range(5))
def test_random_trees_equal_the_estimators_model(seed):
    """Any tree, with prismatic joints and odd frames: MuJoCo's torque equals the regressor's."""
    robot, inertia = random_robot(seed, 5, "any", True)
    drives = tuple(armid.robot.robot.Drive(1.0, None, 0, np.array([0.0, 0.0, 1.0]), False) for _ in range(5))
    robot = replace(robot, drives=drives, rotors=False, friction=(Friction(),) * 5, nominal_inertia=inertia)
    model = Model(robot)
    physics = Physics(robot, truth_of(robot), None)
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, 5))
    mass, bias = physics.joint_space(q, v)
    expected = model.inverse_dynamics(q[None], v[None], a[None], values_of(model, inertia))[0]
    assert np.allclose(mass @ a + bias, expected, atol=1e-10 * np.abs(expected).max())


def test_payload_hangs_at_the_tool():
    """The static torque of a point mass at the tool is the Jacobian's."""
    robot = bare(library_arm("powerball"))
    payload = np.array([2.0, 0, 0, 0.2, 0.03, 0, 0.03, 0, 0, 0.01])
    q = np.array([0.3, -0.5, 0.8, 0.2, 0.4, -0.3])
    _, without = Physics(robot, robot.virtual, None).joint_space(q, np.zeros(6))
    _, loaded = Physics(robot, robot.virtual, payload).joint_space(q, np.zeros(6))

    def height(x):
        return (armid.tool_frame(robot, x[None])[0] @ [0.0, 0.0, 0.1, 1.0])[:3] @ robot.gravity

    slope = [(height(q + 1e-6 * e) - height(q - 1e-6 * e)) / 2e-6 for e in np.eye(6)]
    assert np.allclose(loaded - without, -2.0 * np.array(slope), atol=1e-6)


def test_stuck_joints_stand_still():
    """Coulomb friction holds a joint whose drive pushes too little, exactly; pushed harder it moves."""
    robot = with_friction(bare(library_arm("rx60")), "coulomb-viscous", {"fv": 1.0, "fc": 5.0})
    robot = robot.with_gravity([0.0, 0.0, 0.0])
    arm = VirtualRobot(robot, rate_hz=500, sensors=Sensors.perfect())
    arm.set_mode("torque")
    arm.stream(np.tile([4.9, 0.0, 0.0], (500, 1)))
    assert np.array_equal(arm.state().velocity, np.zeros(3))
    arm.stream(np.tile([5.5, 0.0, 0.0], (500, 1)))
    assert arm.state().velocity[0] > 0.05


@pytest.mark.parametrize(
    ("law", "coefficients"),
    [
        ("viscous", {"fv": 3.0}),
        ("coulomb-viscous", {"fv": 3.0, "fc": 4.0}),
        ("stribeck", {"fv": 3.0, "fc": 4.0, "fs": 6.0, "vs": 0.02}),
        ("makkar", {"g1": 2.0, "g2": 300.0, "g3": 30.0, "g4": 3.0, "g5": 200.0, "g6": 3.0}),
        ("double-exponential", {"f1": 20.0, "f2": 40.0, "f3": 22.0, "f4": 0.06, "f5": 25.0, "f6": 17.0}),
        ("double-exponential", {"f1": 2.0, "f2": 4.0, "f3": 2.0, "f4": 0.02, "f5": 0.0, "f6": 0.0}),
        ("hyperbolic", {"g1": 2.0, "g2": 40.0, "g3": 3.0, "g4": 9.0, "g5": 6.0}),
    ],
)
def test_steady_friction_is_the_law(law, coefficients):
    """At constant velocity the drive's torque is the friction law's, which the description evaluates."""
    robot = with_friction(bare(library_arm("rx60")), law, coefficients).with_gravity([0.0, 0.0, 0.0])
    for velocity in (-0.4, -0.03, 0.05, 0.3):
        arm = VirtualRobot(robot, rate_hz=500, sensors=Sensors.perfect())
        arm.set_mode("velocity")
        arm.stream(np.tile([velocity, 0.0, 0.0], (2000, 1)))
        expected = Friction(law).torque(np.array([velocity]), coefficients)[0]
        assert np.isclose(arm.state().velocity[0], velocity, rtol=1e-4)
        assert np.isclose(arm.state().effort[0], expected, rtol=1e-3)


def test_friction_identity_of_the_record():
    """Drive torque = inverse dynamics with rotors, springs, load loss + recorded friction, for the full arms."""
    for name in ("ir361", "pa10"):
        robot = library_arm(name)
        arm = VirtualRobot(robot, rate_hz=250, sensors=Sensors.perfect())
        arm.stream(waves(arm, 4.0))
        model, true = Model(replace(robot, friction=(Friction(),) * robot.n_joints)), arm.truth
        values = dict(zip(model.names, values_of(model, robot.virtual.inertia), strict=True))
        values |= {f"Im{i + 1}": v for i, v in enumerate(robot.virtual.rotor_inertia) if f"Im{i + 1}" in model.names}
        for number, (k, free) in enumerate(robot.virtual.springs, start=1):
            values |= {f"ks{number}": k, f"kl{number}": k * free}
        rigid = model.inverse_dynamics(true.q, true.qd, true.qdd, values)
        loss = robot.virtual.load_loss
        weight = model.gravity_torque(true.q, values)
        expected = rigid + loss[:, 0] * weight + loss[:, 1] + true.friction
        assert np.abs(expected - true.torque).max() < 1e-8 * np.abs(true.torque).max()
        moving = np.abs(true.qd) > 0.05
        law = np.column_stack(
            [
                one.torque(true.qd[:, j], c)
                for j, (one, c) in enumerate(zip(robot.virtual.friction, robot.virtual.coefficients, strict=True))
            ]
        )
        scale = np.abs(law).max(axis=0)
        assert np.abs(np.where(moving, true.friction - law, 0.0) / scale).max() < 0.02


def test_presliding_rounds_the_reversal():
    """With bristles, friction passes through zero gradually and reaches the same level away from reversals."""
    robot = with_friction(bare(library_arm("rx60")), "coulomb-viscous", {"fv": 1.0, "fc": 5.0})
    robot = robot.with_gravity([0.0, 0.0, 0.0])
    jumps = []
    for presliding in (None, Presliding(deflection=2e-3)):
        arm = VirtualRobot(robot, rate_hz=1000, sensors=Sensors.perfect(), presliding=presliding)
        arm.stream(waves(arm, 6.0))
        true = arm.truth
        jumps.append(np.abs(np.diff(true.friction[:, 0])).max())
        fast = np.abs(true.qd[:, 0]) > 0.2
        level = 1.0 * true.qd[fast, 0] + 5.0 * np.sign(true.qd[fast, 0])
        assert np.abs(true.friction[fast, 0] - level).max() < 0.1
    assert jumps[1] < 0.3 * jumps[0]


def test_cold_grease_warms_up():
    """Viscous friction falls from its cold value with the stated time constant, while moving."""
    robot = with_friction(bare(library_arm("rx60")), "viscous", {"fv": 10.0}).with_gravity([0.0, 0.0, 0.0])
    thermal = Thermal(excess=0.5, time_constant_s=5.0)
    arm = VirtualRobot(robot, rate_hz=250, sensors=Sensors.perfect(), thermal=thermal)
    arm.set_mode("velocity")
    recording = arm.stream(np.tile([0.2, 0.0, 0.0], (2500, 1)))
    t = recording.time[250:]
    expected = 2.0 * (1.0 + 0.5 * np.exp(-t / 5.0))
    assert np.abs(recording.effort[250:, 0] / expected - 1.0).max() < 0.01
    assert recording.temperature[0, 0] == 22.0
    assert recording.temperature[-1, 0] > 33.0
    assert recording.temperature[-1, 1] == 22.0


def test_noise_is_as_described():
    """White torque noise of the stated size; coloured noise with the stated correlation time and the same size."""
    robot = bare(library_arm("pa10"))
    quiet = VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect())
    commands = np.repeat(quiet.state().position[None], 20000, axis=0)
    still = quiet.stream(commands).effort
    white = VirtualRobot(robot, rate_hz=200, seed=5).stream(commands).effort - still
    sigma = np.array([2.0, 2.0, 1.0, 1.0, 0.3, 0.3, 0.3])
    assert np.allclose(white.std(axis=0), sigma, rtol=0.03)
    assert np.abs([np.corrcoef(w[1:], w[:-1])[0, 1] for w in white.T]).max() < 0.03
    sensors = Sensors(noise_time_constant_s=0.05)
    coloured = VirtualRobot(robot, rate_hz=200, seed=5, sensors=sensors).stream(commands).effort - still
    assert np.allclose(coloured.std(axis=0), sigma, rtol=0.1)
    assert np.allclose([np.corrcoef(w[1:], w[:-1])[0, 1] for w in coloured.T], np.exp(-0.1), atol=0.02)


def test_sensor_faults():
    """Rounding, delay, saturation, jitter and loss do what they say."""
    robot = bare(library_arm("powerball"))
    perfect = VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect())
    clean = perfect.stream(waves(perfect, 5.0))

    def with_sensors(**options):
        values = {"torque_noise": 0.0, "encoder_resolution": 0.0, "velocity_noise": 0.0, **options}
        arm = VirtualRobot(robot, rate_hz=200, sensors=Sensors(**values))
        return arm.stream(waves(arm, 5.0))

    rounded = with_sensors(encoder_resolution=0.01).position
    assert np.allclose(rounded, np.round(clean.position / 0.01) * 0.01, atol=1e-12)
    late = with_sensors(effort_delay_s=(0.01, 0, 0, 0, 0, 0)).effort
    assert np.allclose(late[2:, 0], clean.effort[:-2, 0])
    assert np.allclose(late[:, 1:], clean.effort[:, 1:])
    assert np.abs(with_sensors(effort_range=5.0).effort).max() == 5.0
    jittered = with_sensors(jitter_s=5e-4)
    assert 3e-4 < np.std(np.diff(jittered.time)) < 1.2e-3
    at = np.array([np.interp(jittered.time, clean.time, column) for column in clean.position.T]).T
    assert np.abs(jittered.position - at)[:-1].max() < 1e-4
    lost = with_sensors(drop_probability=0.1)
    assert 0.05 < 1.0 - len(lost.time) / len(clean.time) < 0.15
    assert np.allclose(lost.command, clean.command[np.isin(clean.time, lost.time)])


def test_same_seed_same_log():
    robot = library_arm("er16")
    motion = FourierSeries(5.0, (1, 2), np.full((3, 2), 0.05), np.full((3, 2), 0.05), np.full(3, 0.2))
    one, two, other = (VirtualRobot(robot, rate_hz=100, seed=seed).run(motion, periods=2) for seed in (3, 3, 4))
    assert np.array_equal(one["effort"], two["effort"])
    assert not np.array_equal(one["effort"], other["effort"])
    assert one.info.history["seed"] == 3


def test_measured_is_not_commanded():
    """The loop has finite bandwidth: a softer one follows worse."""
    robot = library_arm("powerball")
    worst = []
    for bandwidth in (2.0, 20.0):
        arm = VirtualRobot(robot, rate_hz=200, loop=DriveLoop(bandwidth_hz=bandwidth), sensors=Sensors.perfect())
        recording = arm.stream(waves(arm, 6.0))
        worst.append(np.abs(recording.position[2:] - recording.command[:-2]).max())  # two cycles of interpolation
    assert worst[0] > 5.0 * worst[1] > 0.0


def test_drives_saturate_at_the_torque_limit():
    robot = bare(library_arm("powerball"))
    limited = replace(robot, limits=replace(robot.limits, torque=np.full(6, 3.0)))
    arm = VirtualRobot(limited.with_gravity([0.0, 0.0, 0.0]), rate_hz=200, sensors=Sensors.perfect())
    recording = arm.stream(arm.state().position + np.concatenate([np.zeros((10, 6)), np.full((100, 6), 0.5)]))
    assert np.abs(recording.effort).max() == 3.0


def test_stepping_equals_streaming():
    """Commands one at a time and all at once move the arm alike."""
    robot = library_arm("rx60")
    one, two = (VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect()) for _ in range(2))
    commands = waves(one, 1.0)
    streamed = one.stream(commands)
    states = [two.state()] + [two.command(values) for values in commands[:-1]]
    assert np.array_equal(streamed.position, [state.position for state in states])
    assert np.allclose(streamed.time, [state.time for state in states])
    assert two.timing().cycles == len(commands) - 1


def test_current_is_torque_over_gain():
    robot = replace(bare(library_arm("rx60")), current_gain=((0.0, 2.0), (0.0, 4.0), (0.0, 0.5)))
    torque, current = (
        VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect(), effort=kind) for kind in ("joint torque", "current")
    )
    assert np.allclose(torque.state().effort, current.state().effort * [2.0, 4.0, 0.5])
    assert current.info.effort == "current"
    with pytest.raises(ArmidError, match="current_gain"):
        VirtualRobot(library_arm("rx60"), effort="current")


def test_arm_of_a_urdf_can_be_simulated(tmp_path):
    """Inertias and friction of a URDF are the truth where a description has no virtual section."""
    text = """<robot name="two"><link name="base"/><link name="a"><inertial><mass value="2"/><origin xyz="0.2 0 0"/>
      <inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="j" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
      <limit lower="-2" upper="2" velocity="2" effort="50"/><dynamics damping="0.5" friction="1.5"/></joint></robot>"""
    path = tmp_path / "two.urdf"
    path.write_text(text)
    arm = VirtualRobot(armid.load_robot(path), sensors=Sensors.perfect())
    assert np.isclose(abs(arm.state().effort[0]), 2.0 * 9.81 * 0.2)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert np.isclose(arm.state().effort[0], data.qfrc_bias[0])
    usual = VirtualRobot(armid.load_robot(path)).stream(np.zeros((2000, 1)))
    assert 0.5 < usual.effort.std() / (0.01 * 2.0 * 9.81 * 0.2) < 2.0  # sensors that no file states
    assert np.ptp(usual.position) < 1e-4


def test_bad_input():
    robot = library_arm("rx60")
    with pytest.raises(ArmidError, match="virtual: is missing"):
        VirtualRobot(replace(robot, virtual=None))
    with pytest.raises(ArmidError, match="posture must be 3"):
        VirtualRobot(robot, posture=[0.0])
    with pytest.raises(ArmidError, match="rate_hz"):
        VirtualRobot(robot, rate_hz=0.0)
    arm = VirtualRobot(robot)
    with pytest.raises(UnknownNameError, match="position, velocity, torque"):
        arm.set_mode("speed")
    with pytest.raises(DataShapeError, match=r"\(cycles, 3\)"):
        arm.stream(np.zeros((4, 2)))
    with pytest.raises(DataShapeError, match="not finite"):
        arm.stream(np.full((4, 3), np.nan))
    with pytest.raises(ArmidError, match="torque_noise has 2 values"):
        VirtualRobot(robot, sensors=Sensors(torque_noise=(1.0, 2.0)))


def test_loops_are_stable_where_the_inertia_is_small():
    """The first joint of this arm has 36 times less inertia folded than stretched out, as it stands at the start."""
    robot = armid.load_robot(Path(__file__).parents[2] / "examples" / "arm.urdf")
    arm = VirtualRobot(robot, rate_hz=200.0, sensors=Sensors.perfect())
    folded = np.array([0.0, 1.57, 2.3, 0.0])
    arm.stream(np.linspace(np.zeros(4), folded, 600))
    turn = folded + np.sin(np.linspace(0.0, 2.0 * np.pi, 400))[:, None] * np.array([0.6, 0.0, 0.0, 0.0])
    recording = arm.stream(turn)
    assert np.abs(recording.position[2:, 0] - turn[:-2, 0]).max() < 0.02
    # After the jerk of the start; a loop that oscillates reaches the limit of 90.
    assert np.abs(recording.effort[40:, 0]).max() < 10.0


def test_velocity_mode_does_not_distort_inertia():
    """Torque at the sampling instants is that of the sampled motion; commands that jump would add to the inertia."""
    arm = VirtualRobot(armid.load_robot("rx60"), rate_hz=100.0, sensors=Sensors.perfect())
    arm.set_mode("velocity")
    commands = np.zeros((800, 3))
    commands[:, 0] = 0.5 * np.sin(2.0 * np.pi * np.arange(800) / 100.0)  # an upright axis: no gravity
    arm.stream(commands)
    truth, rows = arm.truth, slice(300, 790)
    acceleration = np.gradient(truth.qd[:, 0], 0.01)[rows]
    inertia = np.polyfit(acceleration, (truth.torque - truth.friction)[rows, 0], 1)[0]
    expected = arm._physics.joint_space(truth.q[400], np.zeros(3))[0][0, 0]
    np.testing.assert_allclose(inertia, expected, rtol=0.03)


@pytest.mark.parametrize("name", ["rx60", "er16"])
def test_differentiated_positions_explain_the_torque(name):
    """Torque is reported at the instant of the position: the model, fed with derivatives of the log, gives it.

    A simulation of first order reports it half a step early and misses it by 0.07 to 0.09 % of its size on these arms.
    """
    robot = library_arm(name).simplified("none").without_rotors()
    series = FourierSeries(0.2, (1, 2, 3), *np.random.default_rng(3).normal(scale=0.15, size=(2, 3, 3)), np.zeros(3))
    robot = replace(with_friction(robot, "viscous", {"fv": 2.0}), friction=(Friction("viscous"),) * 3)
    log = VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect()).run(series, periods=3, settle=2)
    data = process(log, PeriodicAverage(), robot=robot)
    model = Model(robot)
    values = dict(zip(model.names, values_of(model, robot.virtual.inertia), strict=True))
    values |= {f"fv{i}": 2.0 for i in (1, 2, 3)}
    torque = model.inverse_dynamics(*data.motion, values)[data.rows]
    assert np.all(np.std(torque - data.torque, axis=0) < 1e-5 * np.std(torque, axis=0))


def test_loops_do_not_chatter_where_coupling_leaves_little_inertia():
    """A loop tuned for its joint's own inertia meets far less where other joints give way; it must not oscillate."""
    robot = bare(library_arm("powerball"))
    arm = VirtualRobot(robot, rate_hz=200, sensors=Sensors.perfect())
    arm.stream(waves(arm, 5.0))
    assert np.abs(arm.truth.qdd).max() < 50.0


def chain(folder, joints, efforts):
    """A long chain of light links, whose joints meet very different inertias from posture to posture."""
    parts, way = ['<link name="l0"/>'], "0 0 1"
    for k in range(joints):
        mass, length = 10.0 * 0.85**k, 0.25 * 0.95**k
        turned = mass * (length**2 / 12.0 + 0.003)
        parts.append(
            f'<link name="l{k + 1}"><inertial><origin xyz="{length / 2} 0 0.02"/><mass value="{mass}"/><inertia '
            f'ixx="{0.003 * mass}" iyy="{turned}" izz="{turned}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="{way}"/>'
            f'<origin xyz="{length if k else 0} 0 0"/><limit lower="-2" upper="2" velocity="2" effort="{efforts[k]}"/>'
            "</joint>"
        )
        way = ("0 1 0", "1 0 0", "0 1 0", "0 0 1")[k % 4]
    path = folder / "chain.urdf"
    path.write_text(f'<robot name="chain">{"".join(parts)}</robot>')
    return armid.load_robot(path)


def test_loops_of_a_long_chain_are_stable(tmp_path):
    """Twelve joints follow their motion: the torque is that of the motion and the noise asked for, limits or not."""
    found = []
    efforts = np.full(12, 1e4)
    for _ in range(2):
        robot = chain(tmp_path, 12, efforts)
        arm = VirtualRobot(robot, rate_hz=200, sensors=Sensors(torque_noise=0.3))
        wanted = waves(arm, 4.0)
        record = arm.stream(wanted)
        assert np.abs(arm.truth.qd).max() < 1.5 * np.abs(np.gradient(wanted, arm.cycle_s, axis=0)).max()
        assert np.std(record.effort - arm.truth.torque, axis=0) == pytest.approx(0.3, rel=0.15)
        found.append(arm.truth.torque)
        efforts = 1.2 * np.abs(arm.truth.torque).max(axis=0) + 0.1
    assert np.abs(found[1] - found[0]).max(axis=0) == pytest.approx(0.0, abs=1e-9)
    data = [arm.truth.q, arm.truth.qd, arm.truth.qdd]
    model = Model(robot)
    torque = model.inverse_dynamics(*data, values_of(model, robot.nominal_inertia))
    assert np.abs(torque - arm.truth.torque).max() < 1e-3 * np.ptp(torque, axis=0).max()


def test_too_little_torque_is_reported(tmp_path, caplog):
    """An arm whose drives cannot hold it says so."""
    arm = VirtualRobot(chain(tmp_path, 4, np.full(4, 10.0)), rate_hz=200, sensors=Sensors.perfect())
    arm.stream(waves(arm, 1.0))
    assert re.search(r"drive of j1 is at its torque limit for \d+ % of the time", caplog.text)
    assert np.abs(arm.truth.torque).max() == pytest.approx(10.0, rel=1e-6)


def test_ripple_goes_with_the_angle():
    """At rest the drive of joint 2 gives what the waves take, 2 N m sin(7 (q + 1)) beside the weight."""
    robot, posture = armid.load_robot("ir361"), [0.1, 0.4, 0.2]
    plain, rough = (
        VirtualRobot(robot, posture=posture, sensors=Sensors.perfect(), ripple=ripple)
        for ripple in ((), [(2, 2.0, 7.0)])
    )
    added = rough.state().effort - plain.state().effort
    assert added == pytest.approx([0.0, 2.0 * np.sin(7.0 * 1.4), 0.0], abs=1e-9)


def test_another_mujoco_is_refused_before_it_is_called(tmp_path, monkeypatch):
    """Compiled code calls MuJoCo's C functions: one that is declared otherwise must not be called at all."""
    header = (Path(mujoco.HEADERS_DIR) / "mujoco.h").read_text("utf-8")
    (tmp_path / "mujoco.h").write_text(header.replace("mj_fullM(const mjModel* m, const mjData* d", "mj_fullM(int d"))
    monkeypatch.setattr(mujoco, "HEADERS_DIR", str(tmp_path))
    with pytest.raises(ArmidError, match="another mj_fullM"):
        mujoco_functions.__wrapped__()
