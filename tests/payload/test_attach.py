"""The arm with the payload attached predicts what MuJoCo does."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.estimation.consistent.feasible import consistent_fit
from armid.estimation.fit import load_fit
from armid.payload import identify_payload
from armid.robot.inertia import change_of_frame, impossibility
from armid.robot.robot import inertial_names
from tests.payload.stand import BODY, MORE_FRICTION, Draws, arm, swing, torque


def test_prediction_on_other_motion(tmp_path):
    """A motion that neither fit has seen: exact without noise, also after a round through a file."""
    draws = Draws("kr15")
    fit = draws.fit(0.0)
    loaded = identify_payload(fit, draws.loaded(0.0)).apply(fit)
    other = swing(draws.robot, 7)
    wanted = torque(draws.robot, other, BODY, MORE_FRICTION)
    loaded.save(tmp_path / "loaded.json")
    for model in (loaded, load_fit(tmp_path / "loaded.json")):
        np.testing.assert_allclose(model.predict(other).torque, wanted, atol=0.02)


def test_intervals_of_predictions():
    """Predictions for another motion scatter as their intervals say: errors of arm and payload are related."""
    draws = Draws("kr15")
    other = swing(draws.robot, 7)
    other = type(other)(*(array[::50] for array in other))
    wanted = torque(draws.robot, other, BODY, MORE_FRICTION)
    scores = []
    for _ in range(15):
        fit = draws.fit()
        found = identify_payload(fit, draws.loaded()).apply(fit).predict(other)
        scores.append((found.torque - wanted) / found.sigma)
    assert 0.8 < np.sqrt(np.mean(np.square(scores))) < 1.25


def test_links_stay_possible():
    """A possible arm with a possible payload is possible; links and values mean the same."""
    pytest.importorskip("clarabel")
    draws = Draws("kr15")
    fit = consistent_fit(draws.fit())
    found = identify_payload(fit, draws.loaded())
    loaded = found.apply(fit)
    names = inertial_names(6)
    last = np.array([loaded.standard_parameters[name] for name in names])
    assert impossibility(last) is None
    np.testing.assert_allclose(last - [fit.standard_parameters[name] for name in names], found.parameters, atol=1e-12)
    model = loaded.torque_model.model
    values = model.base.matrix @ np.array([loaded.standard_parameters[name] for name in model.base.names])
    moved = [change.name for change in found.friction]
    inertial = [i for i, name in enumerate(loaded.columns) if name not in moved]
    np.testing.assert_allclose(loaded.values[inertial], values[inertial], rtol=1e-6, atol=1e-6)


def test_a_neglected_link_carries_it():
    """Where the description takes the last link for nothing, the payload is what is known about it."""
    robot = arm("pa10", "published")
    draws = Draws("pa10", simplify="published")
    fit = replace(draws.fit(), robot=robot)
    found = identify_payload(fit, draws.loaded())
    loaded = found.apply(fit)
    held = [name for name in inertial_names(7) if name in robot.zero]
    assert held
    in_link = dict(zip(inertial_names(7), change_of_frame(robot.tool) @ found.parameters, strict=True))
    for name in held:
        assert loaded.robot.known[name] == pytest.approx(in_link[name])
        assert name not in loaded.robot.zero
    assert loaded.names == fit.names


def test_only_on_its_own_fit():
    """A payload belongs to the fit it was found with."""
    draws = Draws("kr15")
    found = identify_payload(draws.fit(), draws.loaded())
    with pytest.raises(ArmidError, match="another fit"):
        found.apply(draws.fit())


def test_on_a_description():
    """The virtual arm carries it, nominal inertias hold it."""
    draws = Draws("kr15")
    found = identify_payload(draws.fit(), draws.loaded())
    robot = armid.load_robot("kr15")
    nominal = replace(robot, nominal_inertia=robot.virtual.inertia)
    made = found.apply_to_robot(nominal)
    np.testing.assert_allclose(made.virtual.payload, found.parameters)
    np.testing.assert_allclose(made.nominal_inertia[-1] - nominal.nominal_inertia[-1], found.parameters)
