"""Instrumental variables: no bias where encoder noise is in the regressor and, through the loop, in the torque."""

from dataclasses import replace

import numpy as np
import pytest

from armid.dynamics.model import Motion
from armid.estimation.instruments import InstrumentalVariables, commanded_motion, tracked_motion
from armid.estimation.least_squares import OrdinaryLeastSquares, WeightedLeastSquares
from armid.estimation.problem import EstimationError
from armid.experiment.settings import DriveLoop, Sensors
from armid.experiment.virtual import VirtualRobot
from armid.logs.log import Log
from armid.signals import LowPass, PeriodicAverage, process
from tests.estimation.virtual_arms import (
    arm,
    dataset,
    errors,
    excitation,
    mujoco_torque,
    noisy_loop,
    prediction_error,
    sampled,
    true_values,
)

LIGHT = LowPass(cutoff_hz=30.0, motion_cutoff_hz=60.0, decimate=1, rest_speed=0.0)  # next to plain differentiation
MODERATE = LowPass(cutoff_hz=10.0, decimate=1, rest_speed=0.0)
BANDWIDTH_HZ = 4.0


def compared(seeds, seconds, pipeline=LIGHT, noise=3e-4, simulate=True):
    """Prediction errors, parameter errors and coverage (seeds, 3, estimators) of OLS, WLS, IV, simulated IV."""
    robot = arm("ir361")
    truth, judge = true_values(robot), prediction_error(robot)
    motion = excitation(robot, seed=3, period=seconds, share=0.8 * seconds / 10.0)
    result = []
    for seed in seeds:
        log = noisy_loop(
            robot, motion, rate_hz=500.0, noise=noise, seconds=seconds, seed=seed, bandwidth_hz=BANDWIDTH_HZ
        )
        data = process(log, pipeline)
        command = commanded_motion(log, data)
        estimators = [OrdinaryLeastSquares(), WeightedLeastSquares(), InstrumentalVariables(command=command)]
        if simulate:
            estimators.append(InstrumentalVariables(command=command, loop=DriveLoop(BANDWIDTH_HZ)))
        fits = [estimator.fit(robot, data) for estimator in estimators]
        result.append(
            [
                [judge(fit.values) for fit in fits],
                [np.median(errors(fit.values, truth)) for fit in fits],
                [np.mean(np.abs(fit.values - truth) < 1.96 * fit.sigma) for fit in fits],
            ]
        )
    return np.array(result)


def test_less_bias_than_least_squares_under_encoder_noise_and_feedback():
    found = np.median(compared(range(2), 5.0, simulate=False), axis=0)
    ordinary, weighted, instruments = found[0]
    assert instruments < 0.7 * min(ordinary, weighted)


@pytest.mark.prove
@pytest.mark.parametrize("pipeline", [LIGHT, MODERATE], ids=["light", "moderate"])
def test_less_bias_over_many_runs(pipeline):
    found = compared(range(9), 10.0, pipeline)
    middle = np.median(found, axis=0)
    print(f"OLS WLS IV simulated IV at {pipeline.cutoff_hz} Hz, medians of 9:", middle, found[:, 2].mean(axis=0))
    assert np.all(middle[0, 2:] < middle[0, 0])
    assert np.all(middle[1, 2:] < middle[1, 0])
    if pipeline is LIGHT:
        assert np.all(middle[0, 2:] < 0.5 * middle[0, 0])


def test_simulated_motion_is_that_of_the_virtual_arm():
    """The relaxation over the whole motion, against MuJoCo's arm stepped in time with the same loop."""
    robot = arm("ir361")
    path = excitation(robot, seed=3, share=0.6)
    machine = VirtualRobot(
        robot, rate_hz=200.0, loop=DriveLoop(6.0), sensors=Sensors.perfect(), posture=path.at(np.zeros(1)).q[0]
    )
    log = machine.run(path, periods=1)
    moved = replace(robot, virtual=None)
    times = np.arange(len(log)) / 200.0 - 2.0 / 200.0  # the drives interpolate commands, two cycles late
    command = Motion(*(np.ascontiguousarray(array) for array in path.at(times % path.duration)))
    data = dataset(moved, command, log["effort"], 200.0, periods=1)
    problem = OrdinaryLeastSquares().problem(moved, data)
    simulated = tracked_motion(problem, data, command, DriveLoop(6.0), true_values(robot))
    lag = np.sqrt(np.mean((log["position"] - command.q) ** 2, axis=0))
    left = np.sqrt(np.mean((log["position"] - simulated.q) ** 2, axis=0))
    assert np.all(left < 0.5 * lag)  # the gains of the arm follow its inertia at the start, those here the mean


def test_instruments_of_a_periodic_log_come_from_its_command():
    robot = arm("ir361")
    path = excitation(robot, seed=3, share=0.6, period=5.0)
    machine = VirtualRobot(robot, rate_hz=200.0, seed=1, posture=path.at(np.zeros(1)).q[0])
    log = machine.run(path, periods=3)
    data = process(log, PeriodicAverage(), robot=robot)
    command = commanded_motion(log, data, robot)
    np.testing.assert_allclose(command.qdd, sampled(path, 200.0).qdd, atol=1e-6)
    fit = InstrumentalVariables(command=command).fit(robot, data)
    assert "commanded motion" in " ".join(map(str, fit.notes))
    assert fit.options["command"] == "given"


def test_with_its_own_motion_it_is_weighted_least_squares():
    robot = arm("er16")
    motion = sampled(excitation(robot), 50.0)
    torque = mujoco_torque(robot, motion)
    data = dataset(robot, motion, torque + 5.0 * np.random.default_rng(0).normal(size=torque.shape), 50.0)
    iv, wls = InstrumentalVariables(command=motion).fit(robot, data), WeightedLeastSquares().fit(robot, data)
    np.testing.assert_allclose(iv.values, wls.values, atol=1e-2 * wls.sigma.min())
    np.testing.assert_allclose(iv.sigma, wls.sigma, rtol=0.2)


def test_it_says_what_it_needs():
    robot = arm("er16")
    motion = sampled(excitation(robot), 50.0)
    data = dataset(robot, motion, mujoco_torque(robot, motion), 50.0)
    with pytest.raises(EstimationError, match="commanded_motion"):
        InstrumentalVariables().fit(robot, data)
    with pytest.raises(EstimationError, match="shape"):
        InstrumentalVariables(command=Motion(*(a[1:] for a in motion))).fit(robot, data)
    other = sampled(excitation(robot, seed=5), 50.0)
    with pytest.raises(EstimationError, match="another log"):
        InstrumentalVariables(command=other).fit(robot, data)
    with pytest.raises(EstimationError, match="2 commanded motions"):
        InstrumentalVariables(command=(motion, motion)).fit(robot, data)
    log = Log(data.time, {"position": motion.q, "effort": data.torque}, VirtualRobot(robot).info)
    with pytest.raises(EstimationError, match="no commanded positions"):
        commanded_motion(log, data)
