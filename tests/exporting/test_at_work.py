"""Exported code at work: the observer on a stream, gravity compensation of a virtual arm that a hand pushes."""

import runpy
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.exporting import export
from armid.monitoring import stretches
from tests.monitoring import stand

SHARE = 0.9


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Fit and exported Python module of a small arm."""
    folder = tmp_path_factory.mktemp("export")
    fit = replace(stand.fitted("er16"), friction_lag_s=np.array([0.05, 0.03, 0.0]))
    export(fit, ["python"], folder)
    return fit, runpy.run_path(str(folder / "er16_dynamics.py"))


def test_observer_of_the_module_is_that_of_armid(module):
    """Motion with reversals at which friction changes sides late, sample by sample: equal to 1e-9."""
    fit, functions = module
    (part,) = stretches(fit, stand.recording("er16", 6.0, 4, [stand.Push(2.0, 0.5, 2, np.array([50.0, 80.0, 0.0]))]))
    wanted = armid.Observer(fit).run(part.dt, part.q, part.qd, part.tau).torque
    observer = functions["Observer"]()
    found = np.array([observer.step(*row) for row in zip(part.q, part.qd, part.tau, part.dt, strict=True)])
    assert np.abs(found - wanted).max() <= 1e-9 * np.abs(wanted).max()


def driven(functions, push, seconds):
    """A virtual arm under gravity compensation that a hand pushes: torque for a fifth of a second. Velocities."""
    robot = stand.truth("er16")[0]
    arm = armid.VirtualRobot(robot, rate_hz=500.0, posture=[0.3, -1.2, 0.4])
    arm.set_mode("torque")
    state, speeds, start = arm.state(), [], arm.state().position
    for k in range(int(500.0 * seconds)):
        hand = push if 50 <= k < 150 else 0.0
        torque = functions["gravity_compensation"](state.position, state.velocity, SHARE)
        state = arm.command(torque + hand)
        speeds.append(state.velocity)
    return np.array(speeds), state.position - start


def test_an_arm_hangs_where_it_is(module):
    """Without a hand it does not move, though nine tenths of its friction are compensated."""
    speeds, moved = driven(module[1], np.zeros(3), 1.0)
    assert np.abs(moved).max() < 1e-3
    assert np.abs(speeds[-1]).max() < 1e-3


def test_a_pushed_arm_moves_and_comes_to_rest(module):
    """A push of twice the friction moves it; let go, it only becomes slower, and it stops: nothing drives it."""
    fit, functions = module
    push = np.array([2.5, 0.0, 0.0]) * fit.standstill[1]
    speeds, moved = driven(functions, push, 4.0)
    assert abs(moved[0]) > 0.02
    free = np.abs(speeds[160:, 0])
    assert np.all(free[50:] <= free[:-50] + 1e-3)
    assert free[-1] < 0.05 * np.abs(speeds[:, 0]).max()


def test_compensation_is_smooth_at_rest_and_scaled(module):
    """Proportional to the share, zero at rest, without a jump through it, never against the motion."""
    functions = module[1]
    v = np.linspace(-0.2, 0.2, 2001)[:, None] * np.ones(3)
    q = np.zeros_like(v)
    weight = functions["gravity_compensation"](q, 0.0 * v, 1.0)
    whole, half = (functions["gravity_compensation"](q, v, share) - weight for share in (1.0, 0.5))
    assert np.allclose(half, 0.5 * whole)
    assert np.allclose(whole[1000], 0.0)
    assert np.all(whole * v >= 0.0)
    assert np.abs(np.diff(whole, axis=0)).max() < 0.05 * np.abs(whole).max()
    friction = functions["friction"](q, v, 0.0 * v)
    assert np.all(np.abs(whole) <= np.abs(0.5 * (friction - friction[::-1])).max(axis=0) + 1e-9)
    none, below = (functions["feed_forward"](q, v, 0.0 * v, share) for share in (0.0, -1.0))
    assert np.allclose(none, below)
