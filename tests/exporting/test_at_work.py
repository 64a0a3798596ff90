"""Exported code at work: observer and detector on a stream, gravity compensation of an arm that a hand pushes."""

import ctypes
import json
import runpy
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import armid
from armid.cli import main
from armid.errors import ArmidError
from armid.exporting import export
from armid.exporting.arm import arm_of
from armid.exporting.c import compiler
from armid.monitoring import calibrate, stretches
from tests.monitoring import stand

SHARE = 0.9
LAGS = np.array([0.05, 0.03, 0.0])  # [s]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Fit and exported Python module of a small arm."""
    folder = tmp_path_factory.mktemp("export")
    fit = replace(stand.fitted("er16"), friction_lag_s=LAGS)
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


@pytest.fixture(scope="module")
def watching(tmp_path_factory):
    """A fit with delays and friction lags, limits of contacts, and a folder with both programs that hold them."""
    fit = replace(stand.fitted("er16"), friction_lag_s=LAGS, delay_s=np.array([0.0, 0.004, 0.01]))
    quiet = [stretches(fit, stand.recording("er16", 60.0, 1))]
    limits = calibrate(fit, quiet, false_alarms=30.0, gain=30.0)
    folder = tmp_path_factory.mktemp("detector")
    done = export(fit, ["c", "python"], folder, limits=limits)
    assert not done.refused, done.refused
    assert all("limit of contacts" in file.proof.note for file in done.files if file.proof.error is not None)
    return fit, limits, folder


def pushed(fit):
    """A recording with reversals, stops and pushes, at irregular steps."""
    pushes = [stand.Push(2.0 + k, 0.2, 2, (0.5 + k) * stand._scale("er16")) for k in range(4)]
    (part,) = stretches(fit, stand.recording("er16", 8.0, 4, pushes))
    return part, part.dt * np.random.default_rng(0).uniform(0.2, 1.8, len(part.dt))


def test_detector_of_the_module_is_that_of_armid(watching):
    """External torque, limit and alarms of a stream with pushes: equal to 1e-9, sample by sample."""
    fit, limits, folder = watching
    part, dt = pushed(fit)
    wanted = armid.Detector(fit, limits).run(dt, part.q, part.qd, part.tau)
    detector = runpy.run_path(str(folder / "er16_dynamics.py"))["Detector"]()
    rows = [detector.step(*row) for row in zip(part.q, part.qd, part.tau, dt, strict=True)]
    torque, limit, over = (np.array(column) for column in zip(*rows, strict=True))
    assert np.abs(torque - wanted.torque).max() <= 1e-9 * np.abs(wanted.torque).max()
    assert np.abs(limit - wanted.limit).max() <= 1e-9 * wanted.limit.max()
    assert np.array_equal(over, wanted.over)
    assert 0 < over.any(axis=1).sum() < len(over)


@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
def test_detector_of_the_header_is_that_of_armid(watching, tmp_path):
    """The same by the compiled header, whose only state is the caller's structure."""
    fit, limits, folder = watching
    part, dt = pushed(fit)
    wanted = armid.Detector(fit, limits).run(dt, part.q, part.qd, part.tau)
    (tmp_path / "arm.c").write_text(
        '#include "er16_dynamics.h"\nint size(void) { return sizeof(er16_detector); }\n'
        "void reset(er16_detector *d) { er16_detector_reset(d); }\n"
        "int step(er16_detector *d, const double *q, const double *v, const double *t, double dt, double *e, double *l)"
        " { return er16_detector_step(d, q, v, t, dt, e, l); }\n"
    )
    command = [compiler(), "-shared", "-fPIC", "-O2", f"-I{folder}", "arm.c", "-o", "arm.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "arm.so"))
    state, place = ctypes.create_string_buffer(library.size()), np.ctypeslib.ndpointer(dtype=float)
    library.step.argtypes = [ctypes.c_char_p, place, place, place, ctypes.c_double, place, place]
    library.reset(state)
    torque, limit = np.empty_like(part.q), np.empty_like(part.q)
    rows = zip(part.q, part.qd, part.tau, dt, torque, limit, strict=True)
    over = [library.step(state, *row) for row in rows]
    assert np.abs(torque - wanted.torque).max() <= 1e-9 * np.abs(wanted.torque).max()
    assert np.abs(limit - wanted.limit).max() <= 1e-9 * wanted.limit.max()
    assert np.array_equal(over, wanted.over.sum(axis=1))


@pytest.mark.prove
@pytest.mark.skipif(compiler() is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", ["er16", "powerball"])
def test_a_step_takes_less_than_two_microseconds(name, tmp_path):
    """Observer, and detector with its limits, of three and of six joints."""
    pytest.importorskip("pinocchio", reason="the benchmark compares with it")
    from benchmarks.export import time_c

    fit = stand.fitted(name)
    limits = calibrate(fit, [stretches(fit, stand.recording(name, 60.0, 1))])
    for given in (None, limits):
        export(fit, ["c"], tmp_path, limits=given)
        _, seconds = time_c(tmp_path / f"{name}_dynamics.h", arm_of(fit, complete=True))
        print(name, "detector" if given else "observer", 1e6 * seconds)
        assert seconds < 2e-6


def test_limits_on_the_command_line(watching, tmp_path, capsys):
    """`export --limits` says in the sidecar that they were compared; formats without a program refuse them."""
    fit, limits, _ = watching
    fit.save(tmp_path / "fit.json")
    limits.save(tmp_path / "limits.json")
    words = ["export", str(tmp_path / "fit.json"), "--limits", str(tmp_path / "limits.json"), "-o", str(tmp_path / "o")]
    assert main([*words, "--to", "python", "--json"]) == 0
    assert "limit of contacts" in json.loads(capsys.readouterr().out)["proofs"][0]["note"]
    assert main([*words, "--to", "yaml"]) == 2
    assert "cannot hold limits of contacts" in capsys.readouterr().err
    other = replace(limits, joints=("a", "b", "c"))
    with pytest.raises(ArmidError, match="calibrate with this fit"):
        export(fit, ["python"], tmp_path / "other", limits=other)
    without = runpy.run_path(str(export(fit, ["python"], tmp_path / "none").folder / "er16_dynamics.py"))
    with pytest.raises(ValueError, match="export --limits"):
        without["Detector"]()


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
