"""MJCF: MuJoCo's inverse dynamics of the written file are the fit's."""

from dataclasses import replace

import numpy as np
import pytest

from armid.exporting import export
from armid.exporting.mjcf import quaternion
from armid.robot.geometry import from_rpy
from tests.exporting.arms import fitted, library_fit, range_error, rich_fit, small_fit, states

mujoco = pytest.importorskip("mujoco")


def inverse(path, robot, motion):
    """Torque of mj_inverse with friction as MuJoCo applies it; only joint ranges are switched off."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags = mujoco.mjtDisableBit.mjDSBL_LIMIT
    data = mujoco.MjData(model)
    dofs = [int(model.joint(name).dofadr[0]) for name in robot.joint_names]
    result = np.empty_like(motion.q)
    for row, (q, v, a) in enumerate(zip(*motion, strict=True)):
        data.qpos[dofs], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(model, data)
        result[row] = data.qfrc_inverse[dofs]
    return result


def test_small_arm(home, tmp_path):
    """Links, damping and frictionloss: mj_inverse is what the fit predicts, to the last digits."""
    fit = small_fit(home)
    done = export(fit, ["mjcf"], tmp_path)
    motion = states(fit.robot, 200, 4)
    assert range_error(inverse(tmp_path / "small.xml", fit.robot, motion), fit.predict(motion).torque) < 1e-9
    assert done.files[0].cannot_hold == ()


@pytest.mark.parametrize("name", ["ir361", "pa10", "powerball"])
def test_library_arms(name, tmp_path):
    """Rotors as armature, springs as tendons, both DH conventions; with the coupling of rotors nothing is left over."""
    fit = library_fit(name)
    done = export(fit, ["mjcf"], tmp_path)
    motion = states(fit.robot, 200, 4)
    torque = inverse(tmp_path / f"{name}.xml", fit.robot, motion)
    uncoupled = replace(fit.robot, drives=tuple(replace(drive, coupled=False) for drive in fit.robot.drives))
    from armid.dynamics import Model

    assert range_error(torque, Model(uncoupled).inverse_dynamics(*motion, fit.standard_parameters)) < 1e-9
    assert [row.what for row in done.files[0].cannot_hold] == ["coupling of rotors with the links they sit on"]
    lost = done.files[0].cannot_hold[0].largest
    assert 0.0 < np.abs(fit.predict(motion).torque - torque).max() < 10.0 * lost.max()


def test_motors_that_move_several_joints(tmp_path):
    """Tendons carry their inertia and friction exactly: with the rest taken out, mj_inverse is the fit's torque."""
    robot = replace(rich_fit().robot, counterbalances=(), springs=rich_fit().robot.springs)
    plain = tuple(replace(law, offset=False, per_direction=False, law=robot.friction[0].law) for law in robot.friction)
    drives = tuple(replace(drive, coupled=False) for drive in robot.drives)
    fit = fitted(replace(robot, friction=plain, drives=drives))
    assert any(name.startswith("Imc") for name in fit.standard_parameters)
    done = export(fit, ["mjcf"], tmp_path)
    motion = states(fit.robot, 200, 4)
    assert done.files[0].cannot_hold == ()
    assert range_error(inverse(tmp_path / "kr15.xml", fit.robot, motion), fit.predict(motion).torque) < 1e-9


def test_what_is_lost_and_held_make_the_whole(tmp_path):
    """An arm with everything: MuJoCo's torque and what the sidecar names add up to the fit's prediction."""
    from armid.exporting import Job, exporters
    from armid.exporting.arm import arm_of, linear_friction, random_states
    from armid.exporting.exporter import left_out

    fit = rich_fit()
    done = export(fit, ["mjcf"], tmp_path)
    arm, motion = arm_of(fit, complete=True), random_states(fit.robot, 100, 8)
    lost = [
        row.torque
        for row in left_out(exporters["mjcf"](), Job(arm, motion, linear_friction(arm)))
        if row.torque is not None
    ]
    torque = inverse(tmp_path / "kr15.xml", fit.robot, motion) + sum(lost)
    assert range_error(torque, fit.predict(motion).torque) < 1e-9
    words = " ".join(row.sentence() for row in done.files[0].cannot_hold)
    for cause in ("coupling of rotors", "offset", "counterbalance", "load", "smooth", "rest", "lags motion"):
        assert cause in words


def test_limits_motors_and_gravity(tmp_path):
    """Ranges, torque limits and gravity are the description's."""
    fit = library_fit("pa10", gravity=(0.0, -9.81, 0.0))
    export(fit, ["mjcf"], tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "pa10.xml"))
    np.testing.assert_array_equal(model.jnt_range, np.column_stack([fit.robot.limits.lower, fit.robot.limits.upper]))
    np.testing.assert_array_equal(model.opt.gravity, fit.robot.gravity)
    assert model.nu == fit.robot.n_joints


@pytest.mark.parametrize("seed", range(8))
def test_quaternions(seed):
    """The rotation comes back from MuJoCo, also for half turns."""
    angles = np.random.default_rng(seed).uniform(-np.pi, np.pi, 3) if seed > 3 else np.pi * np.eye(4, 3)[seed]
    rotation, found = from_rpy(angles), np.empty(9)
    mujoco.mju_quat2Mat(found, quaternion(rotation))
    np.testing.assert_allclose(found.reshape(3, 3), rotation, atol=1e-14)
