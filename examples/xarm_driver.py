"""A driver for UFACTORY's xArm 7 by its own SDK: python examples/xarm_driver.py 192.168.1.185 arm.yaml (it moves!)."""

import sys
import time

import numpy as np

import armid
from armid.experiment import State, SteppedArm, Timing
from armid.logs import LogInfo


class XArm(SteppedArm):
    """State and command of one cycle; `SteppedArm` makes streams of them."""

    def __init__(self, address, rate_hz=100.0):
        from xarm.wrapper import XArmAPI  # pip install xarm-python-sdk

        self.sdk, self.cycle_s = XArmAPI(address, is_radian=True), 1.0 / rate_hz
        joints = tuple(f"joint{number}" for number in range(1, 8))
        self.info = LogInfo(joints, "joint torque", rate_hz=rate_hz, robot="xarm7", source=address)
        self.sdk.motion_enable(True)
        self.start, self.cycles = time.monotonic(), []

    def set_mode(self, mode):
        """Servo motion, in which each command is the next point."""
        if mode != "position":
            raise ValueError(f"this driver has no mode {mode!r}")
        self.sdk.set_mode(1)
        self.sdk.set_state(0)
        self.due = time.monotonic()

    def state(self):
        """The newest values."""
        code, (position, velocity, effort) = self.sdk.get_joint_states(is_radian=True)
        if code != 0:
            raise RuntimeError(f"the xArm reports code {code}")
        now = time.monotonic() - self.start
        return State(now, *map(np.array, (position, velocity, effort, self.sdk.temperatures)))

    def command(self, values):
        """One cycle, timed by the clock, so that small delays do not add up."""
        self.sdk.set_servo_angle_j(values.tolist(), is_radian=True)
        began, self.due = time.monotonic(), self.due + self.cycle_s
        time.sleep(max(0.0, self.due - began))
        self.cycles.append(time.monotonic() - began)
        return self.state()

    def timing(self):
        """How steady the cycles were."""
        took = np.array(self.cycles)
        return Timing(len(took), took.mean(), took.max(), np.mean(np.abs(took / self.cycle_s - 1.0) < 0.1))


if __name__ == "__main__":
    robot = armid.load_robot(sys.argv[2])
    plan = armid.design(robot, armid.Fourier(harmonics=3, period=10.0), rate_hz=100.0, starts=1)
    armid.write_log(armid.excite(XArm(sys.argv[1]), plan, periods=2, limits=robot.limits), "log.parquet")
