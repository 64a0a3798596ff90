"""A robot survives the way through JSON."""

import json

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.errors import ArmidError
from armid.files import checked, plain
from armid.robot import Robot


@pytest.mark.parametrize("name", ["rx60", "ir361", "kr15", "pa10", "er16", "powerball"])
def test_same_model_after_a_round_trip(name):
    """Names, known values and torque are the same."""
    robot = armid.load_robot(name)
    again = checked(json.loads(json.dumps(plain(robot))), Robot, "fit.json")
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"joints": None}, "joints: must be a list"),
        ({"gravity": [0, 0]}, r"gravity: has an array of shape \(2,\)"),
        ({"friction": [{"law": 3}]}, r"friction\[1\]\.law: must be text"),
        ({"drives": []}, ""),
        ({"limits": {"lower": "x"}}, r"limits\.lower: must be a list of numbers"),
    ],
)
def test_damaged_data_are_refused(change, words):
    """The entry is named; a robot may be without drives."""
    data = {**plain(armid.load_robot("rx60")), **change}
    if not words:
        assert checked(data, Robot, "fit.json").drives == ()
        return
    with pytest.raises(ArmidError, match=f"fit.json: {words}"):
        checked(data, Robot, "fit.json")
