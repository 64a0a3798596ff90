"""Following a reference on an arm, one torque per cycle; and the same path with several controllers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.control.control_model import ControlError, ControlModel, fit_model, nominal_model
from armid.control.controllers import PID, ComputedTorque, Controller, FeedForward, Gains, choose_gains
from armid.control.reference import Reference, path_reference, tool_path
from armid.control.tracking import Computing, Tracking, TrackingComparison
from armid.dynamics.kinematics import tool_frame
from armid.errors import UnknownNameError
from armid.estimation.fit import Fit
from armid.experiment.drive import Arm, Recording, State, Timing, check_arm, move_to
from armid.experiment.settings import Sensors
from armid.experiment.virtual import VirtualRobot, truth_of
from armid.logs.log import LogInfo
from armid.notes import Note, note
from armid.progress import progress_part, report_progress
from armid.robot.robot import Robot

STANDING = 40  # states whose mean effort is the torque that holds the arm
FAR = 0.5  # error [rad or m] at which a run is broken off
TOLD = 1000  # cycles between lines of progress


def track(
    arm: Arm,
    robot: Robot,
    reference: Reference,
    controller: Controller,
    gains: Gains,
) -> Tracking:
    """Drive an arm along a reference in torque mode.

    The arm goes to the start in position mode; from there on each cycle reads the state, computes a torque and holds
    it. A run whose error passes 0.5 rad is broken off, and the drives hold the arm again.

    Args:
        arm: what is driven; it must report joint torque.
        robot: its description.
        reference: what to follow, at the arm's cycle.
        controller: control law.
        gains: bandwidths.
    """
    check_arm(arm, robot)
    if abs(arm.cycle_s - reference.cycle_s) > 1e-9:
        raise ControlError(f"the reference has a cycle of {reference.cycle_s:g} s, the arm one of {arm.cycle_s:g} s")
    if arm.info.effort != "joint torque":
        raise ControlError(f"the arm reports {arm.info.effort!r}; controllers in torque mode need joint torque")
    move_to(arm, reference.motion.q[0], robot.limits)
    law = controller.begin(reference, gains, _holding(arm, reference.motion.q[0]))
    arm.set_mode("torque")
    rows = len(reference.tool)
    measured, torque, feedback = np.full((3, rows, robot.n_joints), np.nan)
    seconds = np.zeros(rows)
    state, done = arm.state(), 0
    for row in range(rows):
        began = time.perf_counter()
        torque[row], feedback[row] = law(row, state)
        seconds[row] = time.perf_counter() - began
        measured[row] = state.position
        done = row + 1
        if not np.all(np.abs(reference.motion.q[row] - state.position) < FAR) or not np.all(np.isfinite(torque[row])):
            break
        state = arm.command(torque[row])
        if done % TOLD == 0 or done == rows:
            report_progress(controller.title, done / rows)
    arm.set_mode("position")
    used = slice(0, done)
    return Tracking(
        controller=controller.name,
        title=controller.title,
        path=reference.name,
        joints=robot.joint_names,
        time=reference.time[used],
        desired=reference.motion.q[used],
        measured=measured[used],
        torque=torque[used],
        feedback=feedback[used],
        tool_desired=reference.tool[used],
        tool_measured=tool_frame(robot, measured[used]),
        window=reference.window,
        completed=done == rows,
        timing=arm.timing(),
        computing=Computing.of(seconds[used], reference.cycle_s),
    )


class NoisyDrives:
    """An arm whose drives do not produce exactly the torque they are told: white noise is added to torque commands.

    Implements the drive protocol around another arm, such as the virtual robot, whose own drives are exact.

    Attributes:
        info: what the arm's logs mean.
    """

    def __init__(self, arm: Arm, sigma: Array, seed: int = 0) -> None:
        """Wrap `arm`; `sigma` is the noise's standard deviation per joint [N m]."""
        self._arm, self._sigma = arm, np.asarray(sigma, dtype=float)
        self._rng = np.random.default_rng(seed)
        self._torque_mode = False
        self.info: LogInfo = arm.info

    @property
    def cycle_s(self) -> float:
        """Length of a command cycle [s]."""
        return self._arm.cycle_s

    def set_mode(self, mode: str) -> None:
        """Choose what commands mean."""
        self._torque_mode = mode == "torque"
        self._arm.set_mode(mode)
        self.info = self._arm.info

    def state(self) -> State:
        """The newest state."""
        return self._arm.state()

    def command(self, values: Array) -> State:
        """Hold a command for one cycle."""
        return self._arm.command(self._noisy(np.asarray(values, dtype=float)))

    def stream(self, commands: Array) -> Recording:
        """Send one command per cycle."""
        return self._arm.stream(self._noisy(np.asarray(commands, dtype=float)))

    def timing(self) -> Timing:
        """How steady the cycle was kept."""
        return self._arm.timing()

    def _noisy(self, values: Array) -> Array:
        return values + self._sigma * self._rng.normal(size=values.shape) if self._torque_mode else values


def _holding(arm: Arm, posture: Array) -> Array:
    """Mean torque that the drives report while they hold a posture."""
    efforts = [arm.command(posture).effort for _ in range(STANDING)]
    return np.asarray(np.mean(efforts, axis=0))


CONTROLLERS = ("pid", "feedforward", "computed-torque", "nominal")
CYCLE_S = 0.0025
ENCODER = 3e-5  # [rad] of an arm whose description states none: 12 bits at the motor behind a gear of 50


def compare_controllers(
    fit: Fit,
    robot: Robot,
    path: str,
    *,
    controllers: Sequence[str] | None = None,
    bandwidth_hz: Sequence[float] | None = None,
    cycle_s: float = CYCLE_S,
    laps: int = 1,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> TrackingComparison:
    """Drive the virtual robot along a path in torque mode, once with each controller at the same bandwidth.

    Controllers know the fit; the virtual robot has friction, losses and noise of its own.

    Args:
        fit: the identified model.
        robot: the arm to drive, with a truth of its own.
        path: name of a library path, or a CSV of tool poses.
        controllers: some of `CONTROLLERS`; all there can be, if not given.
        bandwidth_hz: one, or one per joint; graded by friction, if not given.
        cycle_s: of the controllers.
        laps: of a closed path.
        seed: of the virtual robot's noise.
        options: more about how it was made, kept with the result.
    """
    truth, model = truth_of(robot), fit_model(fit)
    sensors = Sensors(encoder_resolution=truth.encoder_resolution or ENCODER)
    chosen, notes = _controllers(controllers, model, robot)
    reference = path_reference(robot, tool_path(path), cycle_s=cycle_s, laps=laps, name=path, seed=seed)
    bandwidth = None if bandwidth_hz is None else np.array(bandwidth_hz)
    gains = choose_gains(model, reference.motion, cycle_s, bandwidth_hz=bandwidth, noise=truth.torque_noise)
    runs = []
    for number, controller in enumerate(chosen):
        virtual = VirtualRobot(robot, rate_hz=1.0 / cycle_s, seed=seed, sensors=sensors)
        arm = NoisyDrives(virtual, truth.torque_noise, seed=seed)
        with progress_part(number / len(chosen), (number + 1) / len(chosen)):
            runs.append(track(arm, virtual.robot, reference, controller, gains))
    settings = {
        "seed": seed,
        "laps": laps,
        "drive_noise": truth.torque_noise.tolist(),
        "encoder_resolution": sensors.encoder_resolution,
    }
    return TrackingComparison(
        robot.name, path, cycle_s, gains, tuple(runs), {**settings, **(options or {})}, tuple(notes)
    )


def _controllers(names: Sequence[str] | None, model: ControlModel, robot: Robot) -> tuple[list[Controller], list[Note]]:
    """The controllers asked for; the nominal one is left out where nothing nominal is stated and nobody asked."""
    makers: dict[str, Callable[[], Controller]] = {
        "pid": PID,
        "feedforward": lambda: FeedForward(model=model),
        "computed-torque": lambda: ComputedTorque(model=model),
        "nominal": lambda: ComputedTorque(model=nominal_model(robot)),
    }
    made, notes = [], []
    for name in names or CONTROLLERS:
        if name not in makers:
            raise UnknownNameError("controller", name, CONTROLLERS)
        try:
            made.append(makers[name]())
        except ControlError as error:
            if names:
                raise
            notes.append(note("control.no_nominal", reason=str(error)))
    return made, notes
