"""The papers' single-joint procedures on the virtual robot: sweep, load-proportional loss, warm-up."""

import numpy as np
import pytest

import armid
from armid.dynamics import Model
from armid.estimation.single_joint.curves import fit_curve
from armid.estimation.single_joint.friction_fit import better_law, fit_friction
from armid.estimation.single_joint.friction_points import friction_points
from armid.estimation.single_joint.load_friction import fit_load_friction
from armid.estimation.single_joint.warmup import cycle_means, fit_warmup
from armid.excitation.constraints import prior_values
from armid.experiment.friction_runs import friction_sweep, load_friction_run, powerball_speeds
from armid.experiment.gravity_free import gravity_free
from armid.experiment.settings import Thermal
from armid.experiment.warm_up import warm_up

pytest.importorskip("mujoco")
from armid.experiment.virtual import VirtualRobot

PA10, POWERBALL = armid.load_robot("pa10"), armid.load_robot("powerball")


def swept(robot, joint, rate_hz, **options):
    """Friction points of a joint in the posture and mounting proposed for it."""
    mounted = robot.with_gravity(gravity_free(robot, joint).gravity)
    run = friction_sweep(VirtualRobot(mounted, rate_hz=rate_hz, seed=joint), mounted, joint, **options)
    return friction_points(run.log, mounted, joint)


def unloaded(robot, joint, v):
    """What a sweep without load can see: friction, and the offset of the load-proportional loss."""
    truth = robot.virtual
    return truth.friction[joint - 1].torque(v, truth.coefficients[joint - 1]) + truth.load_loss[joint - 1, 1]


def test_small_sweep():
    """Five speeds of one joint, two seconds each: means within four standard errors of the truth."""
    points = swept(POWERBALL, 5, 200.0, speeds=[0.01, 0.05, 0.1, 0.3, 0.5], seconds=2.0)
    assert len(points) == 10
    assert np.all(np.abs(points.torque - unloaded(POWERBALL, 5, points.speed)) < 4.0 * points.error)


def test_small_load_friction_run():
    """Joint 4 of the PA-10, one pass: the slope of (19) within 2 %."""
    run = load_friction_run(VirtualRobot(PA10, rate_hz=400.0, seed=1), PA10, 4, seconds=5.0)
    fit = fit_load_friction(run.log, PA10, 4, values=prior_values(Model(PA10)))
    assert fit.slope == pytest.approx(0.1161, rel=0.02)


def test_small_warm_up():
    """A quickly warming arm: stops by itself, and the time constant is within 10 %."""
    arm = VirtualRobot(POWERBALL, rate_hz=100.0, seed=1, thermal=Thermal(time_constant_s=20.0))
    run = warm_up(arm, POWERBALL, [4], cycle_s=2.0)
    fit = fit_warmup("joint4", *cycle_means(run.log, POWERBALL, 4))
    assert run.warm
    assert fit.time_constant == pytest.approx(20.0, rel=0.1)


@pytest.mark.prove
@pytest.mark.parametrize("joint", range(1, 8))
def test_pa10_table_two(joint):
    """R6: both curves of a joint, 400 Hz, the paper's speeds and warm-up minute.

    Fitted curves are within four of their standard errors of the truth at every speed; the law beats Stribeck by an
    F-test, nested and not, where its fifth coefficient is not zero.
    """
    points = swept(PA10, joint, 400.0, warm_up_s=60.0)
    fit = fit_friction(points, prefer="double-exponential")
    assert (fit.law, fit.per_direction) == ("double-exponential", True)
    v = points.speed
    assert np.all(np.abs(fit.curve(v) - unloaded(PA10, joint, v)) < 4.0 * fit.standard_error(v))
    for sign in (1.0, -1.0):
        part = points.part(sign)
        full, plain, gauss = (
            fit_curve(name, part.speed, part.torque, part.error)
            for name in ("double-exponential", "single-exponential", "stribeck")
        )
        assert better_law(full, plain, len(part)).better == (joint != 6)
        assert joint == 6 or better_law(full, gauss, len(part)).better


@pytest.mark.prove
@pytest.mark.parametrize("joint", range(1, 7))
def test_powerball_table_two(joint):
    """R13: a joint's curve within four standard errors everywhere; slope and sum of the tanh terms within 2 %."""
    points = swept(POWERBALL, joint, 200.0, speeds=powerball_speeds(), seconds=20.0)
    fit = fit_friction(points, "hyperbolic")
    v = points.speed
    assert np.all(np.abs(fit.curve(v) - unloaded(POWERBALL, joint, v)) < 4.0 * fit.standard_error(v))
    true, found = POWERBALL.virtual.coefficients[joint - 1], fit.coefficients
    assert found["g5"] == pytest.approx(true["g5"], rel=0.02)
    assert found["g1"] + found["g3"] == pytest.approx(true["g1"] + true["g3"], rel=0.02)


@pytest.mark.prove
@pytest.mark.parametrize("joint", range(1, 7))
def test_stiffness_of_the_pa10(joint):
    """R7: slopes of joints 1 to 4 within 2 % and their offsets within four standard deviations; 5 and 6 near zero.

    Friction is that of Table II; a friction curve swept without load would hold the offset already.
    """
    run = load_friction_run(VirtualRobot(PA10, rate_hz=400.0, seed=joint), PA10, joint)
    truth = PA10.virtual
    law, coefficients = truth.friction[joint - 1], truth.coefficients[joint - 1]
    fit = fit_load_friction(
        run.log, PA10, joint, values=prior_values(Model(PA10)), friction=lambda v: law.torque(v, coefficients)
    )
    slope, offset = truth.load_loss[joint - 1]
    assert abs(fit.offset - offset / 50.0) < 4.0 * fit.offset_sigma
    if joint <= 4:
        assert fit.slope == pytest.approx(slope, rel=0.02)
    else:
        assert abs(fit.slope) < 4.0 * fit.slope_sigma
        assert abs(fit.slope) < 0.03


@pytest.mark.prove
def test_warm_up_of_the_powerball():
    """R12: joint 4, time constant 400 s: stops by itself, a drop of about 10 %, time constant within 10 %."""
    arm = VirtualRobot(POWERBALL, rate_hz=200.0, seed=0, thermal=Thermal())
    run = warm_up(arm, POWERBALL, [4])
    fit = fit_warmup("joint4", *cycle_means(run.log, POWERBALL, 4))
    assert run.warm
    assert 0.08 < fit.drop < 0.14
    assert fit.time_constant == pytest.approx(400.0, rel=0.1)


@pytest.mark.prove
def test_cold_and_warm_friction_differ():
    """The viscous part of joint 1 measured cold is visibly higher than after warming up."""
    speeds = [0.1, 0.2, 0.3, 0.4, 0.5]
    cold = VirtualRobot(POWERBALL, rate_hz=200.0, seed=0, thermal=Thermal(time_constant_s=4000.0))
    warm = VirtualRobot(POWERBALL, rate_hz=200.0, seed=0)
    fits = []
    for arm in (cold, warm):
        log = friction_sweep(arm, POWERBALL, 1, speeds=speeds, seconds=5.0).log
        fits.append(fit_friction(friction_points(log, POWERBALL, 1), "coulomb-viscous"))
    assert fits[0].coefficients["fv"] > 1.15 * fits[1].coefficients["fv"]
