"""What is foreseen before measuring: friction in both directions, what files state."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.excitation.constraints import prior_values


def named(robot):
    model = armid.Model(robot)
    return dict(zip(model.names, prior_values(model), strict=True))


def test_the_heavier_direction_counts():
    """PA-10, whose friction differs between directions: the linear stand-in meets the greater torque at full speed."""
    robot = armid.load_robot("pa10")
    values = named(robot)
    for j in range(7):
        law, coefficients = robot.virtual.friction[j], robot.virtual.coefficients[j]
        speed = robot.limits.velocity[j]
        greatest = max(abs(law.torque(np.array([v]), coefficients)[0]) for v in (speed, -speed))
        assert values[f"fv{j + 1}"] * speed + values[f"fc{j + 1}"] == pytest.approx(greatest)


def test_directions_and_offset():
    """A linear law with two directions and an offset is taken over as it is."""
    robot = armid.load_robot("ir361")
    law = replace(robot.virtual.friction[0], offset=True, per_direction=True)
    truth = {"fvp": 3.0, "fcp": 5.0, "fvn": 2.0, "fcn": 7.0, "fo": 0.5}
    virtual = replace(robot.virtual, friction=(law,) * 3, coefficients=(truth,) * 3)
    values = named(replace(robot, friction=(law,) * 3, virtual=virtual))
    found = {name: values[f"{name[:2]}2{name[2:]}"] for name in truth}
    assert found == pytest.approx(truth)


def test_what_a_file_states(tmp_path):
    """Damping and friction of a URDF count where the model has friction."""
    limit = '<limit lower="-2" upper="2" velocity="2" effort="30"/><axis xyz="0 1 0"/>'
    body = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "arm.urdf").write_text(
        f'<robot name="r"><link name="a"/><link name="b">{body}</link><joint name="j" type="revolute">'
        f'<parent link="a"/><child link="b"/>{limit}<dynamics damping="0.7" friction="0.4"/></joint></robot>'
    )
    values = named(armid.load_robot(tmp_path / "arm.urdf"))
    assert (values["m1"], values["fv1"], values["fc1"]) == (2.0, 0.7, 0.4)


def test_nothing_known():
    robot = replace(armid.load_robot("ir361"), virtual=None)
    with pytest.raises(ArmidError, match="torques cannot be foreseen"):
        prior_values(armid.Model(robot))
