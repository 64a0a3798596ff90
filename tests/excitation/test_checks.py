"""What a design keeps without being asked, what it says it could not check, and which limit it leans on."""

from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.errors import ArmidError
from armid.excitation import Checks, DOptimal, design
from armid.excitation.certificate import binding_limits
from armid.excitation.checks import known_limits
from armid.excitation.design import design_problem
from armid.excitation.problem import solve
from armid.excitation.search import random_start
from armid.robot.robot import UnreadShape


def told(robot, checks=Checks(), limits=None):  # noqa: B008 - immutable
    """Names of the constraints, and codes of the notes without their package."""
    found, notes = known_limits(armid.Model(robot), limits or robot.limits, checks)
    return [one.name for one in found], [note.code.removeprefix("excitation.") for note in notes]


def test_known_limits_of_the_library():
    """Everything that is known of an upright arm; on its side, the floor is not."""
    names, codes = told(armid.load_robot("kr15"))
    assert names == ["torque", "self-collision", "floor", "tool speed"]
    assert codes == ["assumed-limits", "assumed-shapes", "assumed-floor", "assumed-tool-speed"]
    names, codes = told(armid.load_robot("pa10"))
    assert "floor" not in names
    assert "unchecked-hangs" in codes


@pytest.mark.parametrize("angle", [0, 44, 46, 90, 180])
def test_an_arm_stands_up_to_45_degrees(angle):
    """Gravity tells: beyond 45 degrees from -z an arm hangs, and its floor is not known unless it is stated."""
    tilt = np.radians(angle)
    robot = armid.load_robot("kr15", gravity=(0.0, 9.81 * np.sin(tilt), -9.81 * np.cos(tilt)))
    assert ("floor" in told(robot)[0]) == (angle < 45)
    assert "floor" in told(robot, Checks(floor=-1.0))[0]
    assert "floor" in told(robot, limits=replace(robot.limits, floor=-1.0))[0]


def test_a_floor_that_no_posture_keeps_is_not_assumed():
    """An arm that begins below its base plane, as on a torso; a stated floor counts all the same."""
    robot = armid.load_robot("kr15")
    first, *others = robot.joints
    lowered = first.placement + np.outer([0.0, 0.0, -4.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    robot = replace(robot, joints=(replace(first, placement=lowered), *others))
    names, codes = told(robot)
    assert "floor" not in names
    assert "unchecked-below" in codes
    assert "floor" in told(robot, Checks(floor=0.0))[0]


def test_what_is_not_known_is_listed():
    """Torque limits of single joints and of all, inertia, shapes that could not be read, checks that were left out."""
    robot = armid.load_robot("kr15")
    some = replace(robot.limits, torque=np.where(np.arange(6) == 2, np.nan, robot.limits.torque))
    assert "unchecked-torque-limits" in told(robot, limits=some)[1]
    assert "torque" in told(robot, limits=some)[0]
    none = replace(robot.limits, torque=np.full(6, np.nan))
    assert "torque" not in told(robot, limits=none)[0]
    assert "unchecked-torque-inertia" in told(replace(robot, virtual=None))[1]
    assert "unchecked-shapes" in told(replace(robot, unread_shapes=(UnreadShape(2, "arm.dae"),)))[1]
    names, codes = told(robot, Checks(without=("floor", "tool speed")))
    assert names == ["torque", "self-collision"]
    assert codes.count("unchecked-off") == 2
    assert told(robot, None) == ([], ["unchecked-off"] * 4)
    with pytest.raises(ArmidError, match="did you mean 'floor'"):
        Checks(without=("flor",))


def test_a_plan_with_something_unchecked_never_says_all_limits():
    """Left out on request: the summary, the file and the line for notebooks say so."""
    robot = armid.load_robot("rx60")
    plan = design(robot, starts=1, workers=1, iterations=20, checks=Checks(without=("floor",)))
    assert plan.unchecked == ("floor: left out on request",)
    assert "all limits" not in plan.summary()
    assert "not checked: floor: left out on request" in plan.summary()
    assert plan.to_data()["unchecked"] == plan.unchecked
    old = replace(plan, notes=())
    assert old.unchecked == ("floor: no part of this design",)


def test_the_limit_in_the_way_is_named():
    """A floor above the arm, a torque limit that gravity breaks: one sentence with the name."""
    robot = armid.load_robot("rx60")
    with pytest.raises(ArmidError, match="the limit of floor"):
        design(robot, starts=1, workers=1, iterations=10, checks=Checks(floor=2.0))
    weak = replace(robot.limits, torque=np.full(3, 0.01))
    with pytest.raises(ArmidError, match="the limit of torque"):
        design(robot, starts=1, workers=1, iterations=10, limits=weak)


def test_multipliers_foresee_what_relaxing_brings():
    """The limit that would bring most, relaxed by 2 %, brings what its multiplier says to a third."""
    robot = armid.load_robot("rx60")
    problem = design_problem(robot, criterion=DOptimal())
    x, _ = solve(problem, random_start(problem, 1), iterations=300, deadline=np.inf)
    best = next(one for one in binding_limits(problem, x) if one.joint and one.quantity in ("velocity", "acceleration"))
    assert best.relaxation == 0.1
    assert "binds at" in str(best)
    assert "narrower" in str(best)
    wider = getattr(robot.limits, best.quantity).copy()
    wider[best.joint - 1] *= 1.02
    relaxed = design_problem(robot, criterion=DOptimal(), limits=replace(robot.limits, **{best.quantity: wider}))
    costs = []
    for one in (problem, relaxed):  # both go on from x, which need not be the very bottom
        y, _ = solve(one, x, iterations=300, deadline=np.inf)
        costs.append(one.cost_and_gradient(y)[0])
    gain = costs[0] - costs[1]
    assert gain == pytest.approx(0.2 * best.gain, rel=0.35)
