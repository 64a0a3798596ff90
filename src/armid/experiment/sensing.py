"""From what happens in the virtual robot to what its sensors say."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from armid.arrays import Array
from armid.errors import ArmidError
from armid.experiment import stepping
from armid.experiment.settings import Sensors, Thermal, per_joint
from armid.robot.robot import Robot, Virtual


class Sensing:
    """Sensors of the virtual robot. They remember the last instants, for delays and coloured noise."""

    def __init__(
        self,
        robot: Robot,
        truth: Virtual,
        sensors: Sensors,
        thermal: Thermal | None,
        *,
        effort: str,
        cycle_s: float,
        step_s: float,
        seed: int,
        standing: Array,
    ) -> None:
        """Set up; `standing` is the record's row of the arm at rest, where it has been for a while."""
        n = robot.n_joints
        self._sensors, self._thermal, self._cycle, self._step = sensors, thermal, cycle_s, step_s
        self._rng = np.random.default_rng(seed)
        self._gains = _gains(robot, effort)
        given = truth.encoder_resolution if sensors.encoder_resolution is None else sensors.encoder_resolution
        self._resolution = float(given)
        self._delay = np.array(per_joint("effort_delay_s", sensors.effort_delay_s, n)) / step_s
        noise = tuple(truth.torque_noise) if sensors.torque_noise is None else sensors.torque_noise
        self._torque_noise = np.array(per_joint("torque_noise", noise, n))
        self._encoder_noise = np.array(per_joint("encoder_noise", sensors.encoder_noise, n))
        speed = 0.1 * self._resolution / cycle_s if sensors.velocity_noise is None else sensors.velocity_noise
        self._velocity_noise = np.array(per_joint("velocity_noise", speed, n))
        bound = np.inf if sensors.effort_range is None else sensors.effort_range
        self._range = np.array(per_joint("effort_range", bound, n))
        self._memory = np.zeros(n)
        rows = int(np.ceil(self._delay.max() + 2.0 * cycle_s / step_s)) + 2
        self._tail = np.repeat(standing[None], rows, axis=0)

    def snapshot(self, row: Array, time: float) -> dict[str, Array]:
        """What is reported at the instant `row`, at `time` [s]."""
        history = np.concatenate([self._tail, row[None]])
        return self._reported(history, np.array([len(self._tail)], dtype=float), np.array([time]))

    def readings(self, record: Array, after: Array, times: Array) -> dict[str, Array]:
        """What is reported at `times`, one cycle apart; rows of `record` are one step apart, from `times[0]` on.

        Lost samples are left out; `row` tells which are left. `after` is the instant following the record.
        """
        history = np.concatenate([self._tail, record, after[None]])
        stamps = times
        if self._sensors.jitter_s > 0.0:
            most = 0.45 * self._cycle
            stamps = times + np.clip(self._rng.normal(0.0, self._sensors.jitter_s, len(times)), -most, most)
        index = len(self._tail) + (stamps - times[0]) / self._step
        found = self._reported(history, index, stamps)
        self._tail = history[-1 - len(self._tail) : -1]
        kept = self._rng.random(len(times)) >= self._sensors.drop_probability
        found["row"] = np.arange(len(times), dtype=np.float64)
        return {name: values[kept] for name, values in found.items()}

    def _reported(self, history: Array, index: Array, stamps: Array) -> dict[str, Array]:
        rng, joints = self._rng, range(history.shape[2])
        q = _at(history[:, stepping.R_Q], index)
        q = q + self._encoder_noise * rng.normal(size=q.shape)
        if self._resolution > 0.0:
            q = np.round(q / self._resolution) * self._resolution
        v = _at(history[:, stepping.R_V], index)
        late = [_at(history[:, stepping.R_TAU, j : j + 1], index - self._delay[j]) for j in joints]
        effort = np.clip(np.hstack(late) + self._noise(len(index)), -self._range, self._range)
        temperature = np.full_like(q, np.nan)
        if self._thermal is not None:
            warmth = _at(history[:, stepping.R_WARMTH], index)
            temperature = np.round(self._thermal.ambient + self._thermal.rise * warmth, 1)
        return {
            "time": stamps,
            "position": q,
            "velocity": v + self._velocity_noise * rng.normal(size=v.shape),
            "effort": effort / self._gains,
            "temperature": temperature,
        }

    def _noise(self, count: int) -> Array:
        """Torque noise (count, joints), white or with a correlation time."""
        white = self._rng.normal(size=(count, len(self._memory)))
        if self._sensors.noise_time_constant_s <= 0.0:
            return self._torque_noise * white
        keep = float(np.exp(-self._cycle / self._sensors.noise_time_constant_s))
        coloured, _ = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0, zi=keep * self._memory[None])
        self._memory = coloured[-1]
        result: Array = self._torque_noise * coloured
        return result


def _gains(robot: Robot, effort: str) -> Array:
    """What joint torque is divided by to give the reported effort."""
    if effort == "joint torque":
        return np.ones(robot.n_joints)
    if effort != "current":
        raise ArmidError(f"effort is {effort!r}; the virtual robot reports 'joint torque' or 'current'")
    if robot.current_gain is None or any(len(p) != 2 or p[0] != 0.0 or p[1] == 0.0 for p in robot.current_gain):
        raise ArmidError(f"{robot.source}: drives.current_gain must be one number per joint to simulate currents")
    return np.array([polynomial[1] for polynomial in robot.current_gain])


def _at(history: Array, index: Array) -> Array:
    """Rows of `history` (rows, joints) at fractional indices, linear in between."""
    low = np.clip(np.floor(index + 1e-6).astype(np.int64), 0, len(history) - 1)
    high = np.minimum(low + 1, len(history) - 1)
    share = np.clip(index - low, 0.0, 1.0)[:, None]
    share[share < 1e-6] = 0.0
    return history[low] * (1.0 - share) + history[high] * share
