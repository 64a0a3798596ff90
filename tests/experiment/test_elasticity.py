"""Gears that give way: against MuJoCo with motors and springs of its own; stiff ones against rigid ones."""

import numpy as np
import pytest

from armid.errors import ArmidError
from armid.experiment.settings import Elasticity, Sensors
from armid.experiment.virtual import VirtualRobot
from armid.robot import load_robot

mujoco = pytest.importorskip("mujoco")

LINK = '<inertial><origin xyz="{x} 0 0"/><mass value="{m}"/><inertia ixx="0.02" iyy="{i}" izz="{i}" {no}/></inertial>'
NO = 'ixy="0" ixz="0" iyz="0"'
JOINT = (
    '<joint name="j{k}" type="revolute"><parent link="l{before}"/><child link="l{k}"/><origin xyz="{x} 0 0"/>'
    '<axis xyz="0 -1 0"/><limit lower="-3" upper="3" effort="500" velocity="10"/></joint>'
)
ARM = (
    '<robot name="two"><link name="l0"/>'
    f'<link name="l1">{LINK.format(x=0.2, m=3, i=0.06, no=NO)}</link>{JOINT.format(k=1, before=0, x=0)}'
    f'<link name="l2">{LINK.format(x=0.15, m=2, i=0.03, no=NO)}</link>{JOINT.format(k=2, before=1, x=0.4)}</robot>'
)
#: The same arm with each motor as a joint of its own; what the motors have, the links have not.
MOTORS = np.array([0.08, 0.02])
APART = (
    '<mujoco><option timestep="5e-5" integrator="RK4"/><worldbody>'
    '<body><inertial pos="0.2 0 0" mass="3" diaginertia="0.02 0.06 0.06"/><joint axis="0 -1 0"/>'
    '<body pos="0.4 0 0"><inertial pos="0.15 0 0" mass="2" diaginertia="0.02 0.03 0.03"/><joint axis="0 -1 0"/></body>'
    "</body>"
    + "".join(
        '<body><inertial pos="0 0 0" mass="1e-9" diaginertia="1e-9 1e-9 1e-9"/>'
        f'<joint axis="0 -1 0" armature="{inertia}"/></body>'
        for inertia in MOTORS
    )
    + "</worldbody></mujoco>"
)
STANDING = (0.3, -0.5)


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    path = tmp_path_factory.mktemp("elastic") / "two.urdf"
    path.write_text(ARM)
    return load_robot(path)


def made(robot, elasticity, rate_hz=8000.0):
    return VirtualRobot(robot, rate_hz=rate_hz, sensors=Sensors.perfect(), posture=STANDING, elasticity=elasticity)


def with_own_springs(torque, start, stiffness, damping, rate_hz):
    """Positions of links and motors, by MuJoCo alone."""
    model = mujoco.MjModel.from_xml_string(APART)
    model.dof_armature[:2] = -MOTORS
    data, found = mujoco.MjData(model), []
    data.qpos[:] = [*start, *STANDING]
    for row in torque:
        found.append(data.qpos.copy())
        for _ in range(round(1.0 / rate_hz / model.opt.timestep)):
            spring = stiffness * (data.qpos[2:] - data.qpos[:2]) + damping * (data.qvel[2:] - data.qvel[:2])
            data.qfrc_applied[:] = [*spring, *(row - spring)]
            mujoco.mj_step(model, data)
    return np.array(found)


def test_motors_and_links_move_as_in_mujoco(robot):
    """0.2 s of swinging torque: motors within 2 % of the springs' deflection, which are 10 mrad long."""
    rate, elasticity = 5000.0, Elasticity((8.0, 12.0), motors=tuple(MOTORS))
    arm = made(robot, elasticity, rate)
    omega, start, hold = 2.0 * np.pi * np.array([8.0, 12.0]), arm.link_position, arm.state().effort
    stiffness = hold / (np.array(STANDING) - start)
    time = np.arange(0.0, 0.2, 1.0 / rate)[:, None]
    torque = hold + [20.0, 6.0] * np.sin(2.0 * np.pi * time * [6.0, 9.0])
    arm.set_mode("torque")
    found = arm.stream(torque).position
    wanted = with_own_springs(torque, start, stiffness, 0.1 * stiffness / omega, rate)
    deflection = np.abs(wanted[:, 2:] - wanted[:, :2]).max(axis=0)
    assert deflection.min() > 0.01
    assert np.all(np.abs(found - wanted[:, 2:]).max(axis=0) < 0.02 * deflection)


def test_stiff_gears_are_rigid_ones(robot):
    """At 400 Hz motors move as those of a rigid arm, to 1e-4 rad, and links with them; at 10 Hz they do not."""
    time = np.arange(0.0, 0.5, 1e-3)[:, None]
    wanted = np.array(STANDING) + [0.2, -0.3] * (1.0 - np.cos(2.0 * np.pi * time))
    torques = []
    for elasticity in (None, Elasticity(400.0), Elasticity(10.0)):
        arm = made(robot, elasticity, 1000.0)
        torques.append(arm.stream(wanted).effort)
        if elasticity is None or elasticity.resonance_hz == 400.0:
            assert np.abs(arm.link_position - arm.state().position).max() < 1e-4
    rigid, stiff, soft = torques
    size = rigid.std(axis=0)
    assert np.all((stiff - rigid).std(axis=0) < 0.01 * size)
    assert np.all((soft - rigid).std(axis=0) > 0.01 * size)


def test_motors_that_leave_nothing_to_the_links_are_refused(robot):
    """Inertia of 10 kg m² is more than the arm has; resonances must be above zero."""
    with pytest.raises(ArmidError, match="leave some inertia"):
        made(robot, Elasticity(motors=10.0))
    with pytest.raises(ArmidError, match="above zero"):
        made(robot, Elasticity(0.0))
