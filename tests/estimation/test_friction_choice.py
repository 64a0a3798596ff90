"""The friction search: adds what is there, leaves out what is not, and says why."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation import FrictionSearch, FrictionTerm, Problem, WeightedLeastSquares
from armid.estimation.cross_validation import CrossValidation, Delay
from armid.experiment import Sensors, VirtualRobot
from armid.robot.friction import Friction
from armid.signals import LowPass, process
from armid.signals.filters import decimated_rows, filtered, low_pass_kernel
from tests.estimation.test_coverage import true_values
from tests.estimation.test_problem import dataset, linear_torque, motion_of


@pytest.fixture(scope="module")
def arm():
    robot = armid.load_robot("ir361")
    model = Model(robot)
    return robot, model, model.base.matrix @ true_values(robot, model)


KERNEL = low_pass_kernel(100.0, 6.0, tail=1e-4)


def noisy(robot, torque, delay=0.0, seed=0):
    """Sixty seconds, low-passed at 6 Hz, reported late."""
    data = dataset(robot, torque, seconds=60.0, seed=seed)
    rng = np.random.default_rng(seed + 10)
    late = np.column_stack([np.interp(data.time - delay, data.time, column) for column in data.measured.T])
    measured = late + np.array([3.0, 3.0, 1.0]) * rng.normal(size=late.shape)
    rows = decimated_rows(len(measured), KERNEL, 5)
    return replace(data, torque=filtered(measured, KERNEL, rows), rows=rows, kernel=KERNEL, measured=measured)


def planted(arm, terms, coefficients):
    robot, model, values = arm
    named = dict(zip(model.base.kept, values, strict=True))
    problem = Problem(robot, dataset(robot, linear_torque(model, values)), terms=terms, load_values=named)
    return lambda motion: problem.torque_model.regressor(motion) @ np.append(values, coefficients)


def test_nothing_is_added_to_coulomb_and_viscous_friction(arm):
    """Where the truth is linear, the search keeps it so, or adds nothing that shows."""
    robot, model, values = arm
    train, test = (noisy(robot, linear_torque(model, values), seed=seed) for seed in (0, 1))
    found = FrictionSearch().fit(robot, train)
    plain = WeightedLeastSquares().fit(robot, train)
    assert len(found.terms) <= 1
    assert np.abs(found.delay_s).max() < 2e-3
    assert held_out(found, test) < 1.05 * held_out(plain, test)


def test_planted_terms_and_delay_are_found(arm):
    """Load-dependent friction on joint 2, Stribeck friction on joint 1, and a delay of 12 ms."""
    robot = arm[0]
    terms = (FrictionTerm("load", 1), FrictionTerm("stribeck-excess", 0, (0.15,)))
    torque = planted(arm, terms, [0.12, 40.0])
    train, test = (noisy(robot, torque, 0.012, seed) for seed in (0, 1))
    found = FrictionSearch().fit(robot, train)
    kinds = {(term.law, term.joint) for term in found.terms}
    assert ("load", 1) in kinds
    assert {("stribeck-excess", 0), ("root", 0)} & kinds
    assert np.allclose(found.delay_s, 0.012, atol=3e-3)
    load = dict(zip(found.columns, found.values, strict=True))["fl2"]
    assert np.isclose(load, 0.12, rtol=0.15)
    assert held_out(found, test) < 0.6 * held_out(WeightedLeastSquares().fit(robot, train), test)
    assert any("in proportion to the load" in note.values.get("what", "") for note in found.notes)
    assert "estimation.delay" in {note.code for note in found.notes}


def held_out(fit, data):
    """RMS error on other data, prediction delayed and filtered as the torque was."""
    torque = fit.predict(data.motion, sigma=False).torque
    late = np.column_stack([np.interp(data.time - d, data.time, c) for d, c in zip(fit.delay_s, torque.T, strict=True)])
    error = data.torque - filtered(late, data.kernel, data.rows)
    use = Problem(fit.robot, data).used(data)
    return float(np.sqrt(np.mean(error[use] ** 2)))


def test_stribeck_friction_of_the_virtual_robot():
    """MuJoCo's arm with a Stribeck law it was not fitted with: the search predicts another motion better."""
    robot = armid.load_robot("er16").first_links(3)
    law = (Friction("stribeck"),) * 3
    coefficients = tuple({"fv": 40.0, "fc": 30.0, "fs": 60.0, "vs": 0.15} for _ in range(3))
    truth = replace(robot.virtual, friction=law, coefficients=coefficients, payload=None)
    virtual = replace(robot, virtual=truth, limits=replace(robot.limits, torque=np.full(3, np.nan)))
    data = []
    for seed in (0, 1):
        _, motion = motion_of(robot, seconds=40.0, seed=seed)
        simulated = VirtualRobot(
            virtual, rate_hz=100, seed=seed, sensors=Sensors(torque_noise=2.0), posture=motion.q[0]
        )
        recording = simulated.stream(motion.q)
        channels = {"position": recording.position, "effort": recording.effort}
        data.append(process(armid.Log(recording.time, channels, simulated.info), LowPass(cutoff_hz=6.0), robot=robot))
    found, plain = FrictionSearch().fit(robot, data[0]), WeightedLeastSquares().fit(robot, data[0])
    assert found.terms
    assert held_out(found, data[1]) < 0.8 * held_out(plain, data[1])


def test_shared_elimination_equals_separate_fits(arm):
    """`compare` gives the scores that fitting each combination by itself gives."""
    robot, model, values = arm
    data = noisy(robot, linear_torque(model, values))
    fit = WeightedLeastSquares().fit(robot, data)
    own = [FrictionTerm("root", 1), FrictionTerm("load", 1), FrictionTerm("stribeck-excess", 1, (0.1,))]
    other = Delay(0)
    named = dict(zip(fit.columns, fit.values, strict=True))
    bench = CrossValidation(Problem(robot, data), [*own, other], named)
    combinations = [(), (own[0],), (own[1], own[2]), tuple(own)]
    together = bench.compare([other], own, combinations, fit.weights)
    for scores, combination in zip(together, combinations, strict=True):
        alone = bench.scores([other, *combination], fit.weights)
        assert np.allclose(scores.squares, alone.squares, rtol=1e-6)
