"""Controllers on the virtual robot: closed loops as designed, and what a model is worth."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lti, step

from armid.control import (
    PID,
    ComputedTorque,
    ControlError,
    FeedForward,
    NoisyDrives,
    Reference,
    TrackingComparison,
    choose_gains,
    fit_model,
    path_reference,
    read_tool_poses,
    track,
)
from armid.control.controllers import INTEGRAL
from armid.control.tracking import error_figure, path_figure, torque_figure
from armid.dynamics.model import Motion
from armid.errors import UnknownNameError
from armid.experiment.drive import State
from tests.control.arms import MIDDLE, circle_csv, fitted, small_arm

pytest.importorskip("mujoco")
from armid.experiment.settings import Elasticity, Sensors
from armid.experiment.virtual import VirtualRobot

CYCLE = 0.0025


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
    """Model, reference and gains along a circle."""
    folder = tmp_path_factory.mktemp("path")
    robot = small_arm(folder)
    model = fit_model(fitted(robot))
    poses = read_tool_poses(circle_csv(robot, folder / "circle.csv"))
    reference = path_reference(robot, poses, start=MIDDLE, name="circle")
    return model, reference, choose_gains(model, reference.motion, CYCLE)


def arm(robot, seed=0, **options):
    return VirtualRobot(robot, rate_hz=1.0 / CYCLE, seed=seed, **options)


@pytest.fixture(scope="module")
def runs(stand):
    """One run per controller, with the arm's own noise."""
    model, reference, gains = stand
    controllers = (PID(), FeedForward(model=model), ComputedTorque(model=model))
    found = tuple(track(arm(model.robot), model.robot, reference, one, gains) for one in controllers)
    return TrackingComparison("small", "circle", CYCLE, gains, found, notes=("a note",))


def test_a_model_is_worth_five_times_pid(runs):
    """At the same bandwidth, with friction: tool and joints at least five times nearer, little feedback left."""
    pid, ff, ct = runs.runs
    for run in (ff, ct):
        assert run.completed
        assert run.mean_tool_error < 0.2 * pid.mean_tool_error
        assert run.max_joint_error < 0.2 * pid.max_joint_error
        assert run.feedback_share < 0.2
    assert pid.feedback_share == 1.0


@pytest.mark.parametrize("hertz", [15.0, 30.0])
def test_gears_that_give_way_are_not_swung_up(stand, runs, hertz):
    """Motors far lighter than links behind soft gears: every controller is as near as on rigid ones."""
    model, reference, gains = stand
    motors = tuple(0.06 * gains.inertia)
    for rigid, one in zip(runs.runs, (PID(), FeedForward(model=model), ComputedTorque(model=model)), strict=True):
        soft = arm(model.robot, elasticity=Elasticity(hertz, motors=motors))
        run = track(soft, model.robot, reference, one, gains)
        assert run.completed
        assert run.max_joint_error < 1.3 * rigid.max_joint_error


def test_errors_are_what_they_say(runs):
    """The figures follow from the series, in the window only."""
    run = runs.runs[0]
    error = np.abs(run.desired - run.measured)[run.window.start : run.window.stop]
    assert run.max_joint_error == error.max()
    distance = np.linalg.norm((run.tool_desired - run.tool_measured)[run.window, :3, 3], axis=1)
    assert run.mean_tool_error == pytest.approx(distance.mean())
    assert run.max_tool_error == pytest.approx(distance.max())


def test_saved_file(runs, tmp_path):
    """JSON with all figures, thinned series, no NaN; the summary names each controller."""
    runs.save(tmp_path / "tracking.json")
    data = json.loads((tmp_path / "tracking.json").read_text())
    assert data["format"] == "armid tracking 1"
    first = data["runs"][0]
    assert first["max_joint_error"] == runs.runs[0].max_joint_error
    assert len(first["series"]["time"]) == pytest.approx(len(runs.runs[0].time) / 4, abs=1)
    assert np.shape(first["series"]["tool_desired"])[1] == 3
    runs.runs[0].save(tmp_path / "pid.json")
    assert json.loads((tmp_path / "pid.json").read_text())["controller"] == "pid"
    assert "PID along circle" in runs.runs[0].summary()
    text = runs.summary()
    assert all(run.title in text for run in runs.runs)
    assert "a note" in text


def test_pictures(runs):
    """Path, errors and torques are drawn."""
    pytest.importorskip("matplotlib")
    for figure in (path_figure(runs), error_figure(runs), torque_figure(runs.runs[-1])):
        figure.canvas.draw()
        assert figure.axes


def test_computed_torque_is_a_linear_loop(stand):
    """With the exact rigid body and no friction an offset dies out as (1 + w t) exp(-w t), whatever the posture."""
    model, _, _ = stand
    gains = choose_gains(model, Motion(MIDDLE[None], np.zeros((1, 3)), np.zeros((1, 3))), CYCLE, bandwidth_hz=2.0)
    bare = replace(model, rest=lambda motion: np.zeros_like(motion.q))
    steps, dt, offset = 3000, 2e-4, np.array([0.05, -0.03, 0.04])
    still = _still(steps)
    law = ComputedTorque(model=bare).begin(still, gains, np.zeros(3))
    q, v = MIDDLE - offset, np.zeros(3)
    error = []
    for row in range(steps):
        error.append(MIDDLE - q)
        torque, feedback = law(row, State(0.0, q, v, np.zeros(3), np.zeros(3)))
        mass = model.model.mass_matrix(q[None], model.values)[0]
        acceleration = np.linalg.solve(mass, torque - bare.rigid(q, v, np.zeros(3)))
        q, v = q + dt * v + 0.5 * dt**2 * acceleration, v + dt * acceleration
    t, w = dt * np.arange(steps)[:, None], gains.omega
    assert np.abs(np.array(error) - offset * (1.0 + w * t) * np.exp(-w * t)).max() < 1e-4
    assert np.abs(feedback).max() < np.abs(torque).max()


def _still(rows, cycle_s=CYCLE):
    """A reference that stays in one posture."""
    zero = np.zeros((rows, 3))
    motion = Motion(np.tile(MIDDLE, (rows, 1)), zero, zero)
    return Reference("still", cycle_s, motion, np.zeros((rows, 4, 4)), slice(0, rows))


def test_pid_loop(stand):
    """On a constant inertia an offset dies out with the poles of s^3 + 2 w s^2 + w^2 s + w^3 / 4, by SciPy."""
    _, _, gains = stand
    rows, dt, offset = 6000, 1e-4, 0.01
    law = PID().begin(_still(rows, dt), gains, np.zeros(3))
    q, v, found = MIDDLE - offset, np.zeros(3), []
    for row in range(rows):
        found.append(q - MIDDLE + offset)
        torque, feedback = law(row, State(0.0, q, v, np.zeros(3), np.zeros(3)))
        v = v + dt * torque / gains.inertia
        q = q + dt * v
    for joint, w in enumerate(gains.omega):
        # the reference stands still: its velocity does not jump, so the derivative makes no zero
        loop = lti([w * w, INTEGRAL * w**3], [1.0, 2.0 * w, w * w, INTEGRAL * w**3])
        _, expected = step(loop, T=dt * np.arange(rows))
        assert np.abs(np.array(found)[:, joint] - offset * expected).max() < 0.01 * offset
    assert np.array_equal(feedback, torque)


def test_a_lost_run_is_broken_off(stand):
    """A model with an absurd torque: the run ends early, says so, and the arm is held again."""
    model, reference, gains = stand
    wrong = replace(model, rest=lambda motion: np.full_like(motion.q, 2000.0))
    robot = arm(model.robot)
    run = track(robot, model.robot, reference, ComputedTorque(model=wrong), gains)
    assert not run.completed
    assert len(run.time) < len(reference.time)
    assert run.max_joint_error == np.inf
    assert run.figures()["max_joint_error"] is None
    assert robot.info.mode == "position"
    comparison = TrackingComparison("small", "circle", CYCLE, gains, (run,))
    assert "broken off" in comparison.summary()
    json.dumps(comparison.to_data(), allow_nan=False)


def test_noisy_drives(stand):
    """Noise of the stated size is added to torque commands, and to nothing else."""
    inner = arm(stand[0].robot, posture=MIDDLE, sensors=Sensors.perfect())
    noisy = NoisyDrives(inner, np.array([3.0, 2.0, 1.0]), seed=1)
    noisy.set_mode("position")
    assert np.abs(noisy.stream(np.tile(MIDDLE, (20, 1))).command - MIDDLE).max() == 0.0
    noisy.set_mode("torque")
    assert noisy.info.mode == "torque"
    holding = inner.state().effort
    sent = noisy.stream(np.tile(holding, (2000, 1))).command - holding
    assert sent.std(axis=0) == pytest.approx([3.0, 2.0, 1.0], rel=0.05)


def test_wrong_use(stand):
    """Another cycle, currents instead of torque, unknown options."""
    model, reference, gains = stand
    with pytest.raises(ControlError, match="cycle"):
        track(VirtualRobot(model.robot, rate_hz=200.0), model.robot, reference, PID(), gains)
    with pytest.raises(UnknownNameError, match="measurement"):
        ComputedTorque(model=model, rest="measured")


def test_measured_motion_as_source(stand):
    """F and S of the measured motion: as good, and the same law while there is no error."""
    model, reference, gains = stand
    run = track(arm(model.robot), model.robot, reference, ComputedTorque(model=model, rest="measurement"), gains)
    assert run.completed
    assert run.feedback_share < 0.2
