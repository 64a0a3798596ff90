"""An arm made of formulas: it follows every command at once, and its torque is gravity, friction, loss and noise."""

import numpy as np

from armid.dynamics import Model
from armid.excitation.constraints import prior_values
from armid.experiment.drive import Recording, State, Timing
from armid.logs.log import LogInfo


class FakeArm:
    """Implements the drive protocol without any dynamics, so that tests are fast and their truth is exact."""

    def __init__(self, robot, rate_hz=100.0, seed=0, noise=1.0, cold=0.0, time_constant_s=100.0, effort="joint torque"):
        self.robot, self.cycle_s = robot, 1.0 / rate_hz
        self.info = LogInfo(robot.joint_names, effort, rate_hz=rate_hz, robot=robot.name, source="fake arm")
        self.position, self.clock, self.mode = np.zeros(robot.n_joints), 0.0, "position"
        self.rng, self.noise = np.random.default_rng(seed), noise
        self.cold, self.time_constant_s = cold, time_constant_s
        self.model, self.driven = Model(robot), []
        self.values = prior_values(self.model)

    def set_mode(self, mode):
        self.mode = mode

    def state(self):
        zero = np.zeros(self.robot.n_joints)
        return State(self.clock, self.position.copy(), zero, zero, np.full_like(zero, np.nan))

    def command(self, values):
        self.stream(np.atleast_2d(values))
        return self.state()

    def stream(self, commands):
        self.driven.append((self.mode, commands))
        if self.mode == "velocity":
            q = self.position + np.vstack([np.zeros(commands.shape[1]), np.cumsum(commands, axis=0)]) * self.cycle_s
            self.position, q, qd = q[-1], q[:-1], commands
        else:
            before = np.vstack([self.position, commands])
            self.position, q, qd = commands[-1].copy(), before[:-1], np.diff(before, axis=0) / self.cycle_s
        time = self.clock + self.cycle_s * np.arange(len(commands))
        self.clock += self.cycle_s * len(commands)
        return Recording(time, q, qd, self._torque(time, q, qd), np.full_like(q, np.nan), commands)

    def timing(self):
        return Timing(0, self.cycle_s, self.cycle_s, 1.0)

    def friction(self, joint, speed):
        truth = self.robot.virtual
        return truth.friction[joint].torque(np.asarray(speed, dtype=float), truth.coefficients[joint])

    def _torque(self, time, q, qd):
        truth = self.robot.virtual
        load = self.model.gravity_torque(q, self.values)
        friction = np.column_stack([self.friction(j, qd[:, j]) for j in range(q.shape[1])])
        warm = 1.0 + self.cold * np.exp(-time / self.time_constant_s)
        noise = self.noise * truth.torque_noise * self.rng.normal(size=q.shape)
        loss = truth.load_loss
        lost = np.where(np.abs(load) > 0.0, loss[:, 0] * load + loss[:, 1], 0.0)
        return load + lost + friction * warm[:, None] + noise
