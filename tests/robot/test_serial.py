"""A robot survives the way through JSON."""

import json

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.errors import ArmidError
from armid.robot.serial import robot_from_data, robot_to_data


@pytest.mark.parametrize("name", ["rx60", "ir361", "kr15", "pa10", "er16", "powerball"])
def test_same_model_after_a_round_trip(name):
    """Names, known values and torque are the same."""
    robot = armid.load_robot(name)
    again = robot_from_data(json.loads(json.dumps(robot_to_data(robot))))
    one, two = Model(robot), Model(again)
    assert one.names == two.names
    assert one.known == two.known
    assert again.virtual is None
    rng = np.random.default_rng(0)
    motion = rng.normal(size=(3, 5, robot.n_joints))
    values = rng.normal(size=len(one.names))
    assert np.array_equal(one.inverse_dynamics(*motion, values), two.inverse_dynamics(*motion, values))
    assert np.array_equal(robot.limits.velocity, again.limits.velocity, equal_nan=True)
    assert one.base.kept == two.base.kept


@pytest.mark.parametrize("data", [{}, {"type": "Robot"}, {"type": "Nothing"}, {"array": [1, 2]}])
def test_damaged_data_are_refused(data):
    with pytest.raises(ArmidError, match="cannot be read"):
        robot_from_data(data)
