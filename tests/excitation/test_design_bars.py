"""Full-size designs against published and measured bars; run by `make prove`."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.base import _choose, random_motion
from armid.excitation import (
    AOptimal,
    ConditionNumber,
    Fourier,
    FourierSeries,
    SelfCollision,
    ToolBox,
    TorqueLimit,
    design,
    link_capsules,
)
from armid.excitation.certificate import certify
from armid.excitation.constraints import prior_values
from armid.excitation.design import with_default_limits
from armid.excitation.profiles import er16_beta_1
from tests.excitation.replay import replay

pytestmark = pytest.mark.prove


def full_pa10():
    return armid.load_robot("pa10", rotors=False, simplify="none")


def full_xmate(data):
    """The xMate7p with the limits of its data sheet, accelerations five times the speed per second."""
    with pytest.warns(armid.errors.RoundedAngleWarning):
        robot = armid.load_robot(data / "xmate7p" / "xmate7p.urdf", rotors=False)
    span = np.radians([170, 120, 170, 120, 170, 120, 360])
    speed = np.array([2.175] * 4 + [2.61] * 3)
    limits = replace(robot.limits, lower=-span, upper=span, velocity=speed, acceleration=5 * speed)
    return replace(robot, limits=limits)


def log_det_from_the_last_link(robot, trajectory):
    """log det(W'W / 512) with base columns picked greedily from the last column of the last link to the first."""
    model = armid.Model(robot.for_rank())
    names = [p.name for p in model.parameters if p.kind == "inertial"]
    W = model.regressor(*random_motion(robot, 200, np.random.default_rng(0)), names).reshape(-1, len(names))
    size = np.linalg.norm(W, axis=0)
    alive = [i for i in reversed(range(len(names))) if size[i] > 1e-11 * size.max()]
    kept = [alive[k] for k in _choose(W[:, alive] / size[alive], list(range(len(alive))))[0]]
    _, motion = trajectory.sample(51.2)
    V = armid.Model(robot).regressor(*motion, [names[i] for i in kept]).reshape(-1, len(kept))
    return np.linalg.slogdet(V.T @ V / 512)[1]


def test_pa10_condition():
    plan = design(full_pa10(), parameters="inertial", criterion=ConditionNumber(), starts=2, checks=None)
    print("PA-10, 45 parameters: scaled condition number", plan.conditioning.condition)
    assert len(plan.parameters) == 45
    assert plan.certified
    assert plan.conditioning.condition <= 8


def test_xmate_condition(data):
    plan = design(full_xmate(data), parameters="inertial", criterion=ConditionNumber(), starts=2, checks=None)
    print("xMate7p, 43 parameters: scaled condition number", plan.conditioning.condition)
    assert len(plan.parameters) == 43
    assert plan.certified
    assert plan.conditioning.condition <= 7


def test_pa10_d_optimal():
    plan = design(full_pa10(), parameters="inertial", starts=10, checks=None)
    value = log_det_from_the_last_link(full_pa10(), plan.trajectory)
    print("PA-10: log det", value, "scaled condition number", plan.conditioning.condition)
    assert value >= 217.8


def test_xmate_d_optimal(data):
    robot = full_xmate(data)
    plan = design(robot, parameters="inertial", starts=10, checks=None)
    value = log_det_from_the_last_link(robot, plan.trajectory)
    print("xMate7p: log det", value, "scaled condition number", plan.conditioning.condition)
    assert value >= 204.3


def test_er16_beats_beta_1():
    """Inside the ranges and speeds that the published trajectory uses: raw condition <= 60, scaled <= 6.1 together."""
    robot = armid.load_robot("er16", rotors=False)
    used = er16_beta_1().extrema()
    limits = replace(
        robot.limits, lower=used.lower, upper=used.upper, velocity=used.velocity, acceleration=used.acceleration
    )
    plan = design(robot, Fourier(5, 20.0), criterion=AOptimal(), limits=limits, margin=0.99, starts=6, checks=None)
    print("ER-16: raw", plan.conditioning.condition_raw, "scaled", plan.conditioning.condition)
    assert plan.certified
    assert plan.conditioning.condition_raw <= 60
    assert plan.conditioning.condition <= 6.1


def test_certificates_of_200_random_trajectories():
    """What is certified holds on 100 000 points; violations planted between samples are all found."""
    robot = armid.load_robot("pa10")
    rng = np.random.default_rng(1)
    times = np.linspace(0.0, 10.0, 100_000)
    limits = robot.limits
    for trial in range(200):
        sine, cosine = rng.normal(size=(2, 7, 5)) / np.arange(1, 6)
        series = FourierSeries(0.1, (1, 2, 3, 4, 5), sine, cosine, 0.5 * (limits.lower + limits.upper))
        worst = min(margin.margin for margin in certify(series, limits).margins)
        # Shrink until the trajectory touches a limit from inside, then a hair beyond it.
        low, high = 0.0, 1.0 / max(1e-3, 1.0 - min(worst, 0.999))
        for _ in range(60):
            middle = 0.5 * (low + high)
            scaled = replace(series, sine=middle * sine, cosine=middle * cosine)
            low, high = (middle, high) if certify(scaled, limits).holds else (low, middle)
        inside = replace(series, sine=0.999999 * low * sine, cosine=0.999999 * low * cosine)
        beyond = replace(series, sine=1.0001 * low * sine, cosine=1.0001 * low * cosine)
        assert certify(inside, limits).holds, trial
        motion = inside.at(times)
        assert np.all((motion.q >= limits.lower) & (motion.q <= limits.upper))
        assert np.all(np.abs(motion.qd) <= limits.velocity)
        assert np.all(np.abs(motion.qdd) <= limits.acceleration)
        assert not certify(beyond, limits).holds, trial


def constrained(robot, tightness):
    """Torque, tool box and self-collision, each tighter than what a free design uses."""
    model = armid.Model(robot)
    values = prior_values(model)
    free = design(robot, starts=2, workers=2, checks=None)
    _, motion = free.trajectory.sample(100.0)
    peak = np.abs(model.inverse_dynamics(*motion, values)).max(axis=0)
    tool = armid.tool_frame(robot, motion.q)[:, :3, 3]
    middle, half = 0.5 * (tool.min(axis=0) + tool.max(axis=0)), 0.5 * (tool.max(axis=0) - tool.min(axis=0))
    capsules = link_capsules(robot, 0.05)
    return values, (
        TorqueLimit(model, values, tightness * peak, share=1.0),
        ToolBox(robot, middle - tightness * half, middle + tightness * half),
        SelfCollision(robot, capsules, clearance=0.02),
    )


@pytest.mark.parametrize("arm", ["pa10", "ur10e"])
def test_torque_box_and_collision_together(arm, request):
    """With all three active the plan is feasible, verified by MuJoCo's inverse dynamics and geometry."""
    if arm == "pa10":
        robot = armid.load_robot("pa10", rotors=False)
    else:
        robot = armid.load_robot(request.getfixturevalue("data") / "ur10e" / "ur10e.urdf", rotors=False)
        robot = replace(robot, limits=with_default_limits(robot.limits)[0])
    values, constraints = constrained(robot, 0.85)
    plan = design(robot, starts=4, constraints=constraints, checks=None)
    print(arm, plan.summary())
    assert plan.certified
    _, motion = plan.trajectory.sample(200.0)
    torque, tip, gaps = replay(robot, values, motion, constraints[2].capsules, constraints[2].pairs)
    assert np.all(np.abs(torque) <= constraints[0].limit * (1 + 1e-9))
    assert np.all((tip >= constraints[1].lower) & (tip <= constraints[1].upper))
    assert gaps.min() > 0.0
