"""Following a reference on an arm: one torque per cycle, from the state at its start."""

from __future__ import annotations

import time

import numpy as np

from armid.arrays import Array
from armid.control.controllers import Controller
from armid.control.gains import Gains
from armid.control.problems import ControlError
from armid.control.reference import Reference
from armid.control.tracking import Computing, Tracking
from armid.dynamics.kinematics import tool_frame
from armid.experiment.drive import Arm, Recording, State, Timing
from armid.experiment.driving import check_arm, move_to
from armid.logs.log import LogInfo
from armid.progress import report_progress
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
