"""SDF: links and joints for Gazebo and Drake, with the same torque as the fit."""

from xml.etree import ElementTree

import numpy as np
import pytest

from armid.exporting import export
from armid.exporting.arm import arm_of, linear_friction
from tests.exporting.arms import library_fit, range_error, small_fit, states


@pytest.fixture(params=["sliding joints", "pa10"])
def fit(request, home):
    """A small arm with a sliding joint, and one of seven joints."""
    return small_fit(home) if request.param == "sliding joints" else library_fit(request.param)


def test_sdf_is_proved_and_says_what_it_cannot_hold(fit, tmp_path):
    """Pinocchio finds the fit's torque in it; rotors are named as left out, as in a URDF."""
    (file,) = export(fit, ["sdf"], tmp_path).files
    pytest.importorskip("pinocchio")
    assert file.proof.error < 1e-9
    (urdf,) = export(fit, ["urdf"], tmp_path / "urdf").files
    assert [row.what for row in file.cannot_hold] == [row.what for row in urdf.cannot_hold]


def test_every_link_has_its_mass_and_a_place(fit, tmp_path):
    """No link but the base is left with the format's 1 kg; each pose is relative to something that is there."""
    (file,) = export(fit, ["sdf"], tmp_path).files
    model = ElementTree.parse(tmp_path / file.file).getroot().find("model")
    assert [link.get("name") for link in model.findall("link") if link.find("inertial") is None] == ["base"]
    names = {node.get("name") for node in (*model.findall("link"), *model.findall("joint"))}
    places = {pose.get("relative_to") for pose in model.iter("pose")} - {None}
    assert places <= names
    assert len(model.findall("joint")) == fit.robot.n_joints + 1


def test_drake_finds_the_same_torque(fit, tmp_path):
    """Drake reads the file: inverse dynamics and damping are the fit's, without what no SDF holds."""
    pytest.importorskip("pydrake", reason="Drake is not installed")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant
    from pydrake.multibody.tree import MultibodyForces

    (file,) = export(fit, ["sdf"], tmp_path).files
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModels(str(tmp_path / file.file))
    plant.mutable_gravity_field().set_gravity_vector(fit.robot.gravity)
    plant.Finalize()
    context, motion, arm = plant.CreateDefaultContext(), states(fit.robot, 50, 3), arm_of(fit, complete=True)
    joints = [plant.GetJointByName(name) for name in fit.robot.joint_names]
    places = [joint.velocity_start() for joint in joints]
    found = np.empty_like(motion.q)
    for k, (q, qd, qdd) in enumerate(zip(*motion, strict=True)):
        full = np.zeros((3, plant.num_velocities()))
        full[:, places] = q, qd, qdd
        plant.SetPositions(context, full[0])
        plant.SetVelocities(context, full[1])
        forces = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        found[k] = plant.CalcInverseDynamics(context, full[2], forces)[places]
    links = arm.parts(motion)["links"]
    damping = [joint.default_damping() for joint in joints]
    assert np.allclose(damping, linear_friction(arm).damping)
    assert range_error(found, links + damping * motion.qd) < 1e-9
