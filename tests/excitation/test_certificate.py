"""The certificate: never better than the truth, close to it, and honest about how it knows."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.dynamics.model import Motion
from armid.errors import ArmidError
from armid.excitation import (
    Certificate,
    Floor,
    FourierSeries,
    KeepOutBox,
    SelfCollision,
    ToolBox,
    TorqueLimit,
    link_capsules,
)
from armid.excitation.certificate import _MOST_POINTS, Margin, certify, nonlinear_margin
from armid.excitation.constraints import MotionConstraint, prior_values
from armid.robot.robot import Counterbalance


def random_series(joints, seed, size=0.3):
    rng = np.random.default_rng(seed)
    return FourierSeries(0.1, (1, 2, 3, 5), *(size * rng.normal(size=(2, joints, 4))), 0.5 * rng.normal(size=joints))


def geometric(robot, series, seed):
    """Every kind of geometric constraint, some kept and some broken by the trajectory."""
    rng = np.random.default_rng(seed)
    start = armid.tool_frame(robot, series.at([0.0]).q)[0, :3, 3]
    capsules = link_capsules(robot)
    return (
        ToolBox(robot, start - rng.uniform(0.1, 2.0, 3), start + rng.uniform(0.1, 2.0, 3)),
        KeepOutBox(robot, start + 0.1, start + 0.5, clearance=0.02),
        SelfCollision(robot, capsules),
        Floor(robot, capsules, -0.3),
    )


def least(constraint, motion):
    """Smallest distance to a bound over all samples, as margins state it; infinite where there is nothing bounded."""
    values = constraint.values(motion)
    return np.min(np.minimum(values - constraint.lower, constraint.upper - values) / constraint.size, initial=np.inf)


@pytest.mark.parametrize("name", ["pa10", "kr15"])
@pytest.mark.parametrize("seed", range(4))
def test_proved_margins(name, seed):
    """Below the margin seen at 50 000 random instants, and within 5 % or 10 µm of it."""
    robot = armid.load_robot(name)
    series = random_series(robot.n_joints, seed)
    motion = series.at(np.random.default_rng(seed).uniform(0.0, 10.0, 50_000))
    for constraint in geometric(robot, series, seed):
        found, seen = nonlinear_margin(series, constraint), least(constraint, motion)
        assert found.guarantee.startswith("proved on ")
        assert found.joint == 0
        assert found.margin <= seen
        assert seen - found.margin <= 1.1e-5 + 0.051 * abs(seen) + 1e-4


@pytest.mark.parametrize("seed", range(6))
def test_planted_violations_between_points(seed):
    """A wall 20 µm inside the tool's furthest reach is found broken, one 20 µm outside is proved to hold."""
    robot = armid.load_robot("ir361")
    series = random_series(3, seed)
    times = np.linspace(0.0, 10.0, 200_001)
    tool = armid.tool_frame(robot, series.at(times).q)[:, :3, 3]
    far, axis = tool.max(axis=0), seed % 3
    for shift, holds in ((-2e-5, False), (2e-5, True)):
        upper = far + 1.0
        upper[axis] = far[axis] + shift
        box = ToolBox(robot, upper - 3.0, upper)
        assert (nonlinear_margin(series, box).margin >= 0.0) == holds


def test_flat_distances_end_the_refinement():
    """Where a distance stays at its limit all the time, the proof stops at its most points, on the safe side."""
    robot = armid.load_robot("kr15", gravity=(0.0, 0.0, -9.81))
    sine = np.zeros((6, 1))
    sine[0] = 1.0  # only the vertical axis turns: heights do not change
    series = FourierSeries(0.1, (1,), sine, np.zeros((6, 1)), np.zeros(6))
    floor = Floor(robot, link_capsules(robot))
    height = floor.values(series.at([0.0])).min()
    found = nonlinear_margin(series, replace(floor, height=height - floor.clearance - 1e-4))
    points = int(found.guarantee.split()[2])
    assert points <= _MOST_POINTS
    assert -1e-3 < found.margin < 1e-4


def test_torque_has_its_true_friction():
    """At a reversal torque jumps by twice the Coulomb friction; a limit between smooth and true torque is broken."""
    robot = armid.load_robot("ir361")
    model = armid.Model(robot)
    values = prior_values(model)
    series = random_series(3, 1)
    motion = series.at(np.sort(np.random.default_rng(1).uniform(0.0, 10.0, 100_000)))
    peak = np.abs(model.inverse_dynamics(*motion, values)).max(axis=0)
    assert not certify(series, robot.limits, (TorqueLimit(model, values, peak, share=1.0),)).margins[-1].margin > 0.0
    wide = certify(series, robot.limits, (TorqueLimit(model, values, 1.01 * peak, share=1.0),)).margins[-1]
    assert 0.0 < wide.margin < 0.005
    assert wide.guarantee.startswith("sampled on ")
    assert wide.joint in (1, 2, 3)


def test_torque_range_covers_all_laws_of_friction():
    """Continuous part plus range of friction encloses the sharp torque everywhere around a sample."""
    robot = armid.load_robot("ir361")
    law = replace(robot.friction[0], offset=True, per_direction=True)
    robot = replace(robot, friction=(law,) * 3, coupling=np.array([[1.0, 0, 0], [0.3, 1.0, 0], [0, 0, 1.0]]))
    model = armid.Model(robot)
    rng = np.random.default_rng(2)
    constraint = TorqueLimit(model, rng.normal(size=len(model.names)), np.full(3, 1e3))
    series = random_series(3, 2)
    times = np.linspace(0.0, 10.0, 500)
    swing = np.full(3, 0.05)
    steady, low, high = constraint.parts(series.at(times), swing)
    assert np.all(low <= high)
    friction = [p.kind == "friction" for p in model.parameters]
    only = np.where(friction, constraint.parameters, 0.0)
    still = np.zeros_like(steady)
    for _ in range(20):
        near = series.at(times).qd + swing * rng.uniform(-1.0, 1.0, steady.shape)
        torque = model.inverse_dynamics(still, near, still, only)
        assert np.all((torque >= low - 1e-12) & (torque <= high + 1e-12))
    motion = series.at(times)
    rest = model.inverse_dynamics(*motion, constraint.parameters) - model.inverse_dynamics(*motion, only)
    assert np.allclose(steady, rest)


def test_torque_includes_counterbalances():
    """A tabulated counterbalance is part of the torque that is limited, and of its slopes."""
    table = Counterbalance(2, np.array([-2.0, 0.0, 2.0]), np.array([300.0, 0.0, -100.0]))
    robot = replace(armid.load_robot("ir361"), counterbalances=(table,))
    model = armid.Model(robot)
    constraint = TorqueLimit(model, prior_values(model), robot.limits.torque)
    motion = Motion(*np.random.default_rng(3).uniform(-1.5, 1.5, (3, 50, 3)))
    plain = TorqueLimit(
        armid.Model(replace(robot, counterbalances=())), constraint.parameters, robot.limits.torque
    ).values(motion)
    assert np.allclose(constraint.values(motion) - plain, model.counterbalance_torque(motion.q))
    step = 1e-6 * np.array([0.0, 1.0, 0.0])
    ahead, behind = (constraint.values(motion._replace(q=motion.q + sign * step)) for sign in (1, -1))
    for joint, slope in enumerate(((ahead - behind) / 2e-6).T):
        bar = np.zeros_like(motion.q)
        bar[:, joint] = 1.0
        assert np.allclose(slope, constraint.pull_back(motion, bar).q[:, 1], rtol=1e-5, atol=1e-4)


def test_unknown_torque_limits_are_named():
    """A limit that is not known is never taken for none."""
    robot = armid.load_robot("ir361")
    model = armid.Model(robot)
    with pytest.raises(ArmidError, match=r"limits\.torque of joint2 is not known"):
        TorqueLimit(model, prior_values(model), np.array([1.0, np.nan, 1.0]))


def test_constraints_of_ones_own_are_sampled():
    """A constraint without proved rates gets the sampled check."""

    class Sum(MotionConstraint):
        name, lower, upper = "sum", np.array([-9.0]), np.array([9.0])

        def values(self, motion):
            return motion.q.sum(axis=1, keepdims=True)

        def pull_back(self, motion, bar):
            raise NotImplementedError

    series = random_series(3, 0)
    found = nonlinear_margin(series, Sum())
    seen = least(Sum(), series.at(np.linspace(0.0, 10.0, 30_000)))
    assert found.guarantee.startswith("sampled on 20000 points")
    assert seen - 1e-3 < found.margin < seen


def test_words():
    """Distances are told in mm, shares in percent; a constraint without quantities is told to be one."""
    assert Margin("floor", 0, 0.01234, "", "m").text == "12.34 mm"
    assert Margin("velocity", 1, 0.05, "").text == "5.00 %"
    robot = armid.load_robot("powerball")
    empty = nonlinear_margin(random_series(6, 0), SelfCollision(robot, link_capsules(robot)))
    assert (empty.text, empty.guarantee) == ("none", "nothing there to check")
    assert Certificate((empty,)).holds


@pytest.mark.parametrize(
    ("change", "words"),
    [({"opposite": np.zeros(3)}, "is no box"), ({"clearance": -0.1}, "clearance -0.1")],
)
def test_keep_out_boxes_are_boxes(change, words):
    robot = armid.load_robot("ir361")
    with pytest.raises(ArmidError, match=words):
        replace(KeepOutBox(robot, np.zeros(3), np.ones(3)), **change)
