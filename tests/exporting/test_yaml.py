"""The robot file: armid loads it again, computes the same torque, and can simulate the identified arm."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

import armid
from armid.dynamics.model import Model
from armid.exporting import export
from armid.exporting.yaml_file import dh_table
from armid.torque.friction.term import FrictionTerm
from tests.exporting.arms import library_fit, range_error, small_fit, states


def stated_torque(robot, motion):
    """Torque from the values that a robot file states as identified."""
    rows = robot.published["identified"]["parameters"]
    return Model(robot).inverse_dynamics(*motion, {row["name"]: row["value"] for row in rows})


@pytest.mark.parametrize("name", ["ir361", "pa10", "powerball", "kr15"])
def test_dh_robots(name, tmp_path):
    """A DH table again, with limits, drives, springs and friction; its torque is the fit's."""
    fit = library_fit(name)
    export(fit, ["yaml"], tmp_path)
    again = armid.load_robot(tmp_path / f"{name}.yaml")
    motion = states(fit.robot, 200, 3)
    assert range_error(stated_torque(again, motion), fit.predict(motion).torque) < 1e-9
    assert [length.name for length in again.lengths] == [length.name for length in fit.robot.lengths]
    np.testing.assert_array_equal(again.limits.torque, fit.robot.limits.torque)
    assert Model(again).unknown == Model(fit.robot).unknown
    assert not (tmp_path / f"{name}.urdf").exists()


@pytest.mark.parametrize("name", armid.library_names())
def test_tables_of_the_library_come_back(name):
    """The DH table recovered from the joints is the one in the library's file, up to full turns."""
    robot = armid.load_robot(name)
    convention, rows = dh_table(robot)
    from importlib import resources

    import yaml

    from armid.robot.quantities import number

    text = resources.files("armid.robot.library").joinpath(f"{name}.yaml").read_text("utf-8")
    stated = yaml.safe_load(text)["kinematics"]
    assert convention == stated["convention"]
    for found, row in zip(rows, stated["rows"], strict=False):
        want = [number(value) for value in row[:4]]
        np.testing.assert_allclose(found[1:3], want[1:3], atol=1e-12)
        for angle, other in ((found[0], want[0]), (found[3], want[3])):
            assert np.cos(angle - other) == pytest.approx(1.0, abs=1e-12)


def test_urdf_robots_take_their_urdf_along(home, tmp_path):
    """Kinematics are a file beside it, which is written too."""
    fit = small_fit(home)
    done = export(fit, ["yaml"], tmp_path)
    assert (tmp_path / "small.urdf").exists()
    again = armid.load_robot(tmp_path / "small.yaml")
    motion = states(fit.robot, 200, 3)
    assert range_error(stated_torque(again, motion), fit.predict(motion).torque) < 1e-9
    assert any("small.urdf" in str(note) for note in done.files[0].notes)


def test_the_identified_arm_can_be_simulated(tmp_path):
    """Its links are the truth of a virtual robot, whose torque is then the fit's."""
    pytest.importorskip("mujoco")
    from armid.experiment.virtual import VirtualRobot
    from tests.estimation.virtual_arms import mujoco_torque

    fit = library_fit("ir361")
    export(fit, ["yaml"], tmp_path)
    again = armid.load_robot(tmp_path / "ir361.yaml")
    VirtualRobot(again, seed=0).command(np.zeros(3))
    motion = states(fit.robot, 100, 3)
    assert range_error(mujoco_torque(again, motion), fit.predict(motion).torque) < 1e-9


def test_smooth_friction_is_simulated_as_it_was_found(tmp_path):
    """Curves that differ by direction, from the slowest speeds to beyond those of the data, are the virtual robot's."""
    pytest.importorskip("mujoco")
    from tests.estimation.virtual_arms import mujoco_torque

    plain, rng = library_fit("ir361"), np.random.default_rng(3)
    terms = tuple(FrictionTerm(law, j, (0.1 + j,)) for law in ("smooth", "smooth-even", "rest") for j in (0, 2))
    names = [name for term in terms for name in term.names]
    fit = replace(
        plain,
        terms=terms,
        columns=(*plain.columns, *names),
        values=np.append(plain.values, [0.0 if name.startswith("sr") else rng.normal() for name in names]),
        covariance=block_diag(plain.covariance, np.eye(len(names))),
        identifiability=replace(
            plain.identifiability, classes=(*plain.identifiability.classes, *["curve"] * len(names))
        ),
    )
    export(fit, ["yaml"], tmp_path)
    again, motion = armid.load_robot(tmp_path / "ir361.yaml"), states(fit.robot, 100, 3)
    wanted, found, truth = fit.predict(motion).torque, mujoco_torque(again, motion), again.virtual
    for joint in (0, 2):
        found[:, joint] += truth.friction[joint].torque(motion.qd[:, joint], truth.coefficients[joint])
    assert range_error(found, wanted) < 1e-9
    assert range_error(stated_torque(again, motion), wanted) > 1e-3  # the nearest line, which the set `identified` has
