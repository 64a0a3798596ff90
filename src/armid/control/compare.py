"""The same path with several controllers, on the virtual robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from armid.control.control_model import ControlModel, fit_model, nominal_model
from armid.control.controllers import PID, ComputedTorque, Controller, FeedForward
from armid.control.gains import choose_gains
from armid.control.problems import ControlError
from armid.control.reference import path_reference
from armid.control.tool_poses import tool_path
from armid.control.track import NoisyDrives, track
from armid.control.tracking import TrackingComparison
from armid.estimation.fit import Fit
from armid.experiment.settings import Sensors
from armid.experiment.truth import truth_of
from armid.experiment.virtual import VirtualRobot
from armid.progress import progress_part
from armid.robot.robot import Robot

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


def _controllers(names: Sequence[str] | None, model: ControlModel, robot: Robot) -> tuple[list[Controller], list[str]]:
    """The controllers asked for; the nominal one is left out where nothing nominal is stated and nobody asked."""
    makers: dict[str, Callable[[], Controller]] = {
        "pid": PID,
        "feedforward": lambda: FeedForward(model=model),
        "computed-torque": lambda: ComputedTorque(model=model),
        "nominal": lambda: ComputedTorque(model=nominal_model(robot)),
    }
    made, notes = [], []
    for name in names or CONTROLLERS:
        try:
            made.append(makers[name]())
        except ControlError as error:
            if names:
                raise
            notes.append(f"Without the nominal model: {error}.")
    return made, notes
