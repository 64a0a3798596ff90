"""Confidence intervals keep their promise: on the virtual robot, 95 % of them contain the truth."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.dynamics.model import Motion
from armid.estimation.least_squares import WeightedLeastSquares
from armid.excitation import Fourier, FourierSeries, design
from armid.experiment.physics import Physics
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot
from armid.robot.parts import Friction
from armid.robot.robot import inertial_names
from armid.signals import PeriodicAverage, process

RATE_HZ, PERIOD_S = {"ir361": 150.0, "pa10": 400.0}, 10.0  # rates of the papers
POSITION_NOISE = 5e-6  # [rad] that of rounding to 1.7e-5 rad


def arm_of(name):
    """The virtual arm; PA-10 with friction that its linear model can express, and without load-proportional loss.

    Coverage is a promise about noise: with the richer truth of the PA-10 the linear model has no true values.
    """
    robot = armid.load_robot(name)
    if name == "pa10":
        law = (Friction("coulomb-viscous"),) * 7
        viscous, coulomb = (20, 14, 7, 3.3, 1.4, 2.4, 1.4), (40, 40, 18, 8, 5, 4, 3)
        coefficients = tuple({"fv": float(v), "fc": float(c)} for v, c in zip(viscous, coulomb, strict=True))
        truth = replace(robot.virtual, friction=law, coefficients=coefficients, load_loss=np.zeros((7, 2)))
        robot = replace(robot, friction=law, virtual=truth)
    return robot.simplified("none")


def true_values(robot, model):
    truth, values = robot.virtual, {}
    for i in range(robot.n_joints):
        values |= dict(zip(inertial_names(i + 1), truth.inertia[i], strict=True))
        values[f"Im{i + 1}"] = truth.rotor_inertia[i]
        values |= {f"{name}{i + 1}": value for name, value in truth.coefficients[i].items()}
    for number, (k, free) in enumerate(truth.springs, start=1):
        values |= {f"ks{number}": k, f"kl{number}": k * free}
    return np.array([values[name] for name in model.base.names])


def noise_free_torque(robot, motion):
    """By MuJoCo, with friction and springs written out."""
    physics, truth = Physics(robot, robot.virtual, None), robot.virtual
    torque = []
    for q, v, a in zip(*motion, strict=True):
        mass, bias = physics.joint_space(q, v)
        friction = [c["fv"] * s + c["fc"] * np.sign(s) for c, s in zip(truth.coefficients, v, strict=True)]
        row = mass @ a + bias + friction
        for spring, (k, free) in zip(robot.springs, truth.springs, strict=True):
            angle = q[spring.joint - 1] - spring.phi
            length = np.sqrt(spring.a**2 + spring.b**2 - 2 * spring.a * spring.b * np.cos(angle))
            row[spring.joint - 1] += k * spring.a * spring.b * np.sin(angle) * (1 - free / length)
        torque.append(row)
    return np.array(torque)


def other_motion(joints, rng, count=6):
    """A few instants of several smooth motions, none of them the one that was recorded."""
    parts = []
    for _ in range(count):
        series = FourierSeries(
            0.1, (1, 3), *rng.normal(scale=0.2, size=(2, joints, 2)), rng.normal(scale=0.5, size=joints)
        )
        parts.append(series.at(rng.uniform(0.0, 10.0, 20)))
    return Motion(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def coverage(name, draws, periods):
    """Share of 95 % intervals that contain the truth: inertial and rotor parameters, friction, predicted torque."""
    robot = arm_of(name)
    model = Model(robot)
    rate = RATE_HZ[name]
    plan = design(robot, Fourier(5, PERIOD_S), starts=1, seed=1, rate_hz=rate)
    arm = VirtualRobot(robot, rate_hz=rate, sensors=Sensors.perfect())
    clean = arm.run(plan, periods=periods)
    truth = model.base.matrix @ true_values(robot, model)
    rng = np.random.default_rng(7)
    motion = other_motion(robot.n_joints, rng)
    wanted = noise_free_torque(robot, motion)
    sigma = np.array(robot.virtual.torque_noise)
    hits, predicted = [], []
    for _ in range(draws):
        torque = clean["effort"] + sigma * rng.normal(size=clean["effort"].shape)
        position = clean["position"] + POSITION_NOISE * rng.normal(size=clean["position"].shape)
        log = clean.with_channels({"effort": torque, "position": position, "velocity": None})
        fit = WeightedLeastSquares().fit(robot, process(log, PeriodicAverage(), robot=robot))
        lower, upper = fit.interval()
        hits.append((lower < truth) & (truth < upper))
        prediction = fit.predict(motion)
        predicted.append(np.abs(prediction.torque - wanted) < 1.96 * prediction.sigma)
    kinds = {parameter.name: parameter.kind for parameter in model.parameters}
    friction = np.array([kinds[name] == "friction" for name in fit.columns])
    found = np.array(hits)
    return found[:, ~friction].mean(), found[:, friction].mean(), np.mean(predicted)


def test_intervals_of_a_few_draws():
    base, friction, torque = coverage("ir361", draws=12, periods=8)
    assert base > 0.85
    assert friction > 0.8
    assert torque > 0.8


@pytest.mark.prove
@pytest.mark.parametrize("name", ["ir361", "pa10"])
def test_intervals_of_two_hundred_draws(name):
    """Pooled over parameters or samples, 92-98 % of the intervals contain the truth."""
    shares = coverage(name, draws=200, periods=16)
    print(f"coverage {name}: base {shares[0]:.3f}, friction {shares[1]:.3f}, predicted torque {shares[2]:.3f}")
    for share in shares:
        assert 0.92 <= share <= 0.98
