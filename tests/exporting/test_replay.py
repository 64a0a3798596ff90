"""The identified arm in MuJoCo, from its MJCF alone, follows the virtual robot's record better than the nominal one."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.estimation import identify
from armid.exporting import export
from armid.exporting.arm import arm_of, linear_friction
from armid.exporting.mjcf import mjcf
from armid.signals import process
from tests.exporting.arms import swing, virtual_description

mujoco = pytest.importorskip("mujoco")

WINDOW = 50  # rows after which a simulation is put back onto the record: one without feedback leaves any record


def nominal(fit, whole):
    """MJCF with the inertias that the robot's own description states; with its friction too if `whole`."""
    arm, robot = arm_of(fit, complete=True), fit.robot
    friction = linear_friction(arm)
    values = np.zeros(len(arm.values)) if whole else arm.values.copy()
    values[: 10 * robot.n_joints] = robot.nominal_inertia.ravel()
    if whole:
        friction = replace(friction, damping=robot.nominal_friction[:, 0], coulomb=robot.nominal_friction[:, 1])
    return mjcf(replace(arm, values=values), friction)[0].decode()


def distance(text, log):
    """Root mean square distance (joints,) from the record of an arm that its torque drives, and nothing else."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    dofs = [int(model.joint(name).dofadr[0]) for name in log.info.joints]
    position, velocity, effort = (log.channels[name] for name in ("position", "velocity", "effort"))
    steps = max(1, round(float(np.median(np.diff(log.time))) / model.opt.timestep))
    found = np.empty_like(position)
    for row in range(len(log.time)):
        if row % WINDOW == 0:
            mujoco.mj_resetData(model, data)
            data.qpos[dofs], data.qvel[dofs] = position[row], velocity[row]
        found[row] = data.qpos[dofs]
        after = effort[min(row + 1, len(effort) - 1)]
        for step in range(steps):
            share = (step + 0.5) / steps
            data.qfrc_applied[dofs] = (1.0 - share) * effort[row] + share * after
            mujoco.mj_step(model, data)
    return np.sqrt(np.mean((found - position) ** 2, axis=0))


def test_the_identified_arm_follows_the_record(tmp_path):
    """Every joint is much nearer than with nominal values, also where only the links differ; and near in itself."""
    from armid.experiment.virtual import VirtualRobot

    robot = armid.load_robot(virtual_description(tmp_path))
    log = VirtualRobot(robot, seed=0).run(swing(robot, 0), periods=3)
    other = VirtualRobot(robot, seed=1).run(swing(robot, 1), periods=1)
    fit = identify(robot, process(log, robot=robot), friction="linear")
    export(fit, ["mjcf"], tmp_path / "out")
    identified = distance((tmp_path / "out/small.xml").read_text("utf-8"), other)
    assert np.all(identified < 0.02 * distance(nominal(fit, whole=True), other))
    assert np.all(identified < 0.25 * distance(nominal(fit, whole=False), other))
    assert np.all(identified < 0.03 * np.std(other.channels["position"], axis=0))
