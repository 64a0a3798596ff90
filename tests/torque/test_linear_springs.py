"""Springs along a joint, a difference of joints or a tendon: MuJoCo's, identified, simulated and exported."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import DescriptionError
from armid.excitation import Fourier, design
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.exporting import export
from armid.robot.robot import inertial_names
from armid.signals import process

mujoco = pytest.importorskip("mujoco")

SPRUNG = """<mujoco><compiler angle="radian"/><worldbody>
<body><joint name="a" axis="0 1 0" range="-2 2" actuatorfrcrange="-99 99"/>
<inertial pos="0.1 0.02 0.1" mass="3" diaginertia="0.05 0.06 0.04"/>
<body pos="0.4 0 0" euler="0.3 0 0"><joint name="b" axis="0 1 0" stiffness="6" springref="0.4" range="-2 2"/>
<inertial pos="0.15 0 0.03" mass="2" diaginertia="0.02 0.03 0.025"/>
<body pos="0.3 0 0"><joint name="c" axis="1 0 0" range="-2 2"/>
<inertial pos="0.05 0.06 0.03" mass="1" diaginertia="0.01 0.012 0.011"/></body></body></body></worldbody>
<tendon><fixed stiffness="4" springlength="0.3"><joint joint="a" coef="1"/><joint joint="c" coef="-0.5"/></fixed>
</tendon></mujoco>"""


@pytest.fixture
def sprung(tmp_path):
    path = tmp_path / "sprung.xml"
    path.write_text(SPRUNG)
    return path


def stated(robot):
    """What the file says of links and springs."""
    pairs = enumerate(robot.nominal_inertia, start=1)
    values = {name: float(v) for k, phi in pairs for name, v in zip(inertial_names(k), phi, strict=True)}
    for k, spring in enumerate(robot.linear_springs, start=1):
        values |= {f"ks{k}": spring.stiffness, f"kl{k}": spring.stiffness * spring.rest}
    return values


def test_springs_of_a_file_equal_mujoco(sprung):
    """Joint stiffness and a fixed tendon are read; torque to 1e-9 of MuJoCo's inverse dynamics."""
    robot = armid.load_robot(sprung)
    assert [spring.ratios.tolist() for spring in robot.linear_springs] == [[0.0, 1.0, 0.0], [1.0, 0.0, -0.5]]
    model, data = mujoco.MjModel.from_xml_string(SPRUNG), None
    model.jnt_limited[:] = 0
    data = mujoco.MjData(model)
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 40, 3))
    torque = np.empty_like(q)
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        torque[k] = data.qfrc_inverse
    found = armid.Model(robot).inverse_dynamics(q, qd, qdd, stated(robot))
    assert np.abs(found - torque).max() < 1e-9 * np.abs(torque).max()


def test_identified_simulated_and_exported(sprung, tmp_path):
    """Stiffness and rest within their intervals, on the virtual robot; every format gives the fit's torque."""
    robot = armid.load_robot(sprung)
    limits = replace(robot.limits, velocity=np.full(3, 2.0), acceleration=np.full(3, 8.0), torque=np.full(3, 60.0))
    friction = np.tile([0.5, 0.3], (3, 1))
    robot = replace(robot, limits=limits, nominal_friction=friction)
    noisy = replace(robot, virtual=replace(truth_of(robot), torque_noise=np.full(3, 0.05)))
    plan = design(robot, Fourier(4, 8.0), starts=1, checks=None)
    fit = armid.identify(robot, process(VirtualRobot(noisy, seed=1).run(plan, periods=3), robot=robot))
    truth = stated(robot)
    for name in ("ks1", "kl1", "ks2"):
        k = fit.columns.index(name)
        assert abs(fit.values[k] - truth[name]) < 3.0 * fit.sigma[k] + 1e-3
        assert fit.sigma[k] < 0.1 * truth[name]
    done = export(fit, ["urdf", "mjcf", "c", "python", "yaml"], tmp_path / "out")
    assert not done.refused
    again = armid.load_robot(next((tmp_path / "out").glob("*.xml")))
    assert sorted(np.count_nonzero(spring.ratios) for spring in again.linear_springs) == [1, 2]


def test_spring_of_a_robot_file(tmp_path):
    """Along a joint or a difference, by name; a wrong name is refused; its parameters have names and units."""
    text = """name: arm
kinematics: {convention: modified-dh, rows: [[0, 0, 0.3, 0], [-pi/2, 0, 0, 0], [0, 0.3, 0, 0]]}
springs: [{type: linear, along: {joint2: 1}}, {type: linear, along: {joint2: 1, joint3: -1}}]
"""
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    model = armid.Model(armid.load_robot(path))
    units = {p.name: p.unit for p in model.parameters if p.kind == "spring"}
    assert units == {"ks1": "N m/rad", "kl1": "N m", "ks2": "N m/rad", "kl2": "N m"}
    q = np.random.default_rng(0).normal(size=(5, 3))
    still = np.zeros_like(q)
    torque = model.inverse_dynamics(q, still, still, {"ks2": 3.0, "kl2": 0.6})
    expected = (3.0 * (q[:, 1] - q[:, 2]) - 0.6)[:, None] * [0.0, 1.0, -1.0]
    assert np.allclose(torque, expected, atol=1e-12)
    path.write_text(text.replace("joint3: -1", "elbow: -1"))
    with pytest.raises(DescriptionError, match="along: names 'elbow'; joints are joint1"):
        armid.load_robot(path)
