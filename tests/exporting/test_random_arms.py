"""Random trees with turning and sliding joints: every writer against Pinocchio's own model of the same arm."""

import runpy
import subprocess
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import armid
from armid.exporting.arm import IdentifiedArm, LinearFriction
from armid.exporting.c import c_header, compile_c, compiler
from armid.exporting.mjcf import mjcf
from armid.exporting.python import python_module
from armid.exporting.urdf import new_urdf
from armid.torque.model import TorqueModel
from tests.exporting.arms import library_fit, range_error, states
from tests.exporting.test_mjcf import inverse
from tests.exporting.test_urdf import pinocchio_torque

pin = pytest.importorskip("pinocchio")
mujoco = pytest.importorskip("mujoco")
from tests.dynamics.arms import pinocchio_model, random_robot, robots  # noqa: E402 (needs Pinocchio)

few = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@cache
def any_fit():
    return library_fit("ir361")


def arm_with(robot, inertia):
    """An arm of given links, without friction and rotors."""
    limits = armid.robot.robot.Limits.unknown(robot.n_joints)
    robot = replace(robot, limits=limits)
    columns = TorqueModel(robot).names
    fit = replace(
        any_fit(),
        robot=robot,
        standard_parameters={},
        terms=(),
        load_values=None,
        known_torque=None,
        columns=columns,
        values=np.zeros(len(columns)),
        delay_s=np.zeros(robot.n_joints),
    )
    return IdentifiedArm(fit, np.asarray(inertia, dtype=float).ravel(), True)


def none(arm):
    return LinearFriction(*np.zeros((2, arm.robot.n_joints)), np.zeros(arm.robot.n_joints, dtype=bool))


def expected(robot, inertia, motion):
    """Torque by Pinocchio, from a model built joint by joint."""
    model, data = pinocchio_model(robot, inertia)
    return np.array([pin.rnea(model, data, *(np.array(row) for row in rows)) for rows in zip(*motion, strict=True)])


def close(found, wanted):
    """1e-9 of each joint's range; ranges below a thousandth of the largest count as that much."""
    span = np.maximum(np.ptp(wanted, axis=0), 1e-3 * np.ptp(wanted, axis=0).max())
    return np.abs(found - wanted).max(axis=0) <= 1e-9 * span


@few
@given(robots("chain", "any"))
def test_urdf(tmp_path, case):
    """A new URDF, endless joints included."""
    arm, motion = arm_with(*case), states(case[0], 10, 0)
    (tmp_path / "a.urdf").write_bytes(new_urdf(arm, none(arm), ["a -- b"])[0])
    assert close(pinocchio_torque(tmp_path / "a.urdf", arm.robot, motion)[0], expected(*case, motion)).all()


@few
@given(robots("chain", "any"))
def test_mjcf(tmp_path, case):
    """An MJCF whose joints stand anywhere in their bodies' frames."""
    arm, motion = arm_with(*case), states(case[0], 10, 0)
    (tmp_path / "a.xml").write_bytes(mjcf(arm, none(arm), ["a -- b"])[0])
    assert close(inverse(tmp_path / "a.xml", arm.robot, motion), expected(*case, motion)).all()


@few
@given(robots("chain", "any"))
def test_python(tmp_path, case):
    """The Python module."""
    arm, motion = arm_with(*case), states(case[0], 10, 0)
    (tmp_path / "a.py").write_bytes(python_module(arm, ["a"]))
    functions = runpy.run_path(str(tmp_path / "a.py"))
    assert close(functions["inverse_dynamics"](*motion), expected(*case, motion)).all()


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("seed", range(3))
def test_c(tmp_path, seed):
    """The C header, on trees with sliding joints."""
    case = random_robot(seed, 6, "any", True)
    arm, motion = arm_with(*case), states(case[0], 50, 0)
    (tmp_path / "a.h").write_bytes(c_header(arm, ["a */ b".replace("*/", "* /")]))
    binary = compile_c(compiler(), tmp_path / "a.h", arm, tmp_path)
    run = subprocess.run([binary], input=np.hstack(list(motion)).tobytes(), capture_output=True, check=True)
    found = np.frombuffer(run.stdout).reshape(50, -1)[:, :6]
    assert close(found, expected(*case, motion)).all()
    assert range_error(found, expected(*case, motion)) < 1e-6
