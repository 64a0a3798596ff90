"""Joints without effort: passive ones and those that nobody measured. Their rows are left out, the others tell."""

import numpy as np
import pytest

import armid
from armid.errors import DescriptionError
from armid.estimation.problem import EstimationError
from armid.excitation import Fourier, design
from armid.experiment.virtual import VirtualRobot
from armid.signals import process_logs

mujoco = pytest.importorskip("mujoco")

PENDULUM = """<mujoco><option timestep="0.001" integrator="implicit"/><worldbody>
<body><joint name="arm" axis="0 0 1" damping="0.05"/><inertial pos="0.1 0 0" mass="1.2" diaginertia="0.004 0.01 0.01"/>
<body pos="0.3 0 0"><joint name="swing" axis="1 0 0" damping="0.01"/>
<inertial pos="0.02 0 -0.2" mass="0.4" diaginertia="0.006 0.006 0.0005"/></body></body>
</worldbody><actuator><motor joint="arm"/></actuator></mujoco>"""
ROBOT = """name: furuta
kinematics: {convention: mjcf, file: furuta.xml}
friction: {law: viscous}
drives: {rotor_inertia: 0, passive: PASSIVE}
"""


def furuta(folder, passive="[false, true]"):
    """The rotary pendulum: a motor turns the arm, the pendulum on it swings."""
    (folder / "furuta.xml").write_text(PENDULUM)
    (folder / "furuta.yaml").write_text(ROBOT.replace("PASSIVE", passive))
    return armid.load_robot(folder / "furuta.yaml")


def swung(seed, noise=0.005, seconds=20.0):
    """A log of the pendulum in MuJoCo: the motor follows a random sum of waves, the pendulum swings freely."""
    model = mujoco.MjModel.from_xml_string(PENDULUM)
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    data.qpos[1] = 0.8
    phase, rate, rows = rng.uniform(0.0, 6.0, 4), rng.uniform(2.0, 9.0, 4), []
    for step in range(round(1000 * seconds)):
        wanted = 0.5 * np.sin(rate * data.time + phase).sum()
        data.ctrl[0] = 0.4 * (wanted - data.qpos[0]) - 0.05 * data.qvel[0]
        if step % 5 == 0:
            rows.append([data.time, *data.qpos, data.ctrl[0]])
        mujoco.mj_step(model, data)
    time, first, second, torque = np.array(rows).T
    q = np.column_stack([first, second])
    effort = np.column_stack([torque + noise * rng.normal(size=len(time)), np.zeros(len(time))])
    info = armid.LogInfo(("arm", "swing"), "joint torque", source=f"furuta{seed}")
    return armid.Log(time, {"position": q, "effort": effort}, info)


def test_passive_joint(tmp_path):
    """The motor's torque on another motion is predicted to its noise; no trivial solution with all parameters zero."""
    robot = furuta(tmp_path)
    fit = armid.identify(robot, process_logs([swung(0)], None, robot))
    assert "swing" in next(str(n) for n in fit.notes if n.code == "signals.silent_joints")
    assert not any(n.code == "signals.beware" for n in fit.notes)
    assert not armid.examine(swung(0), robot).at_least("warning")  # a motor that is not there is no dead channel
    (other,) = process_logs([swung(1, noise=0.0)], list(fit.pipeline), robot)
    use = slice(50, -50)
    measured, predicted = other.torque[use, 0], other.at_rows(fit.predict(other.motion).torque)[use, 0]
    assert np.sqrt(np.mean((measured - predicted) ** 2)) < 0.02 * measured.std()
    check = armid.validate(fit, [other])
    assert np.isnan(check.joints[1].rms)  # nothing is claimed of the pendulum


def test_a_dead_effort_is_refused_where_nobody_says_passive(tmp_path):
    """A zero effort of a joint that moves is a fault unless the description says that there is no motor."""
    robot = furuta(tmp_path, "false")
    data = process_logs([swung(0, seconds=3.0)], None, robot)
    with pytest.raises(armid.ArmidError, match=r"effort\.swing: is 0 in all rows .*`null`.*drives\.passive"):
        armid.identify(robot, data)


def test_what_needs_drives_refuses_passive_joints(tmp_path):
    """Design and virtual robot say why in a sentence; so does a description without any motor."""
    robot = furuta(tmp_path)
    for call in (lambda: design(robot, Fourier(2, 5.0)), lambda: VirtualRobot(robot)):
        with pytest.raises(DescriptionError, match=r"drives\.passive: holds swing, so that"):
            call()
    with pytest.raises(DescriptionError, match=r"passive.*holds every joint"):
        furuta(tmp_path, "true")


@pytest.fixture(scope="module")
def motions():
    """An arm and two motions."""
    robot = armid.load_robot("ir361")
    shapes = Fourier(4, 8.0), Fourier(3, 8.0)
    return robot, *(design(robot, shape, starts=1, seed=seed) for seed, shape in enumerate(shapes, start=1))


@pytest.mark.parametrize("periods", [1, 4])
def test_unmeasured_joint(motions, periods):
    """The others are predicted about as well as with all efforts, averaged or filtered; its own friction stays open."""
    robot, plan, another = motions
    log = VirtualRobot(robot, seed=2).run(plan, periods=periods)
    other = VirtualRobot(robot, seed=3).run(another)
    without = log.with_channels({"effort": np.where([True, False, True], log["effort"], np.nan)})
    errors = []
    for one in (log, without):
        fit = armid.identify(robot, process_logs([one], None, robot))
        (data,) = process_logs([other], [{"step": "LowPass", "cutoff_hz": 10.0}], robot)
        left = data.torque - data.at_rows(fit.predict(data.motion).torque)
        errors.append(np.sqrt(np.mean(left**2, axis=0))[[0, 2]])
    assert (errors[1] < 1.25 * errors[0]).all()
    classes = dict(zip(fit.columns, fit.identifiability.classes, strict=True))
    assert classes["fv2"] == classes["fc2"] == "undetermined"
    with pytest.raises(EstimationError, match=r"combinations of parameters free: .*fc2"):
        armid.identify(robot, process_logs([without], None, robot), method="wls")
