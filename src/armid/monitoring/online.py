"""A fit that stays right: friction levels, offsets, delay and load from ordinary motion, after a log or as it streams.

What the momentum observer leaves, r, is linear in what has changed:

    -r = filter(dc sign(qd) + dv qd + do + load's torque - dd tau'),    filter = gain / (s + gain)

The load's torque passes the same observer, so that no acceleration is needed. The estimate is Bayesian: the prior is
wider than what friction usually does between recordings, which the fit knows, and data fade from it with forgetting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.control.newton_euler import RigidTorque
from armid.errors import ArmidError, DataShapeError
from armid.estimation.fit import STANDSTILL, Fit
from armid.files import plain
from armid.logs.log import Log
from armid.monitoring.detector import usual_friction
from armid.monitoring.observer import GAIN, Observer, filtered, held
from armid.monitoring.recordings import stretches
from armid.notes import Note, note
from armid.payload.attach import attached, base_shift
from armid.robot.inertia import change_of_frame, from_com

WIDER = 15.0  # times what friction usually does between recordings: how far an update may go
LOAD_KG, LOAD_KGM, DELAY_S = 20.0, 5.0, 0.02  # standard deviations of load, its first moments, and a change of delay
BLOCK = 256  # samples of a stream that are worked off together
COLOURED_S = 0.2  # over which residuals are alike [s]
OPEN, REACH_M = 0.05, 0.2  # gate of a joint that moves; distance of a load's centre from the tool frame [m]
UNUSUAL = 2.0  # standard deviations
_LOAD = ("m", "mx", "my", "mz")


@dataclass(frozen=True)
class ParameterChange:
    """One quantity: its change, standard deviation, what it usually does, and whether this is more than usual."""

    name: str
    unit: str
    change: float
    sigma: float
    usual: float
    unusual: bool


@dataclass(frozen=True, eq=False)
class Update:
    """What `update` returns: the changes, the fit with them, and notes."""

    robot: str
    changes: tuple[ParameterChange, ...]
    fit: Fit
    seconds: float
    notes: tuple[Note, ...]

    def summary(self) -> str:
        """A table for people."""
        lines = [f"{self.robot}: changes found in {self.seconds:.4g} s of motion, 95 % intervals"]
        for c in self.changes:
            mark = "  more than usual" if c.unusual else ""
            lines.append(f"  {c.name:<6} {c.change:>+10.3g} ± {1.96 * c.sigma:<8.2g} {c.unit}{mark}")
        return "\n".join([*lines, *map(str, self.notes)])

    def to_data(self) -> dict[str, Any]:
        """Everything but the fit, for JSON."""
        return dict(plain({key: getattr(self, key) for key in ("robot", "changes", "seconds", "notes")}))


class Online:
    """The running estimate of what has changed since a fit, in constant memory.

    Attributes:
        fit: what it started from.
        names: of the quantities: friction ``fc2 fv2 fo2`` where the fit has them, ``delay2``, and the load's mass and
            first moments in the tool frame.
        forget_s: after this time data count 1/e; infinite keeps them all.
    """

    def __init__(self, fit: Fit, *, forget_s: float = float("inf"), gain: float = GAIN) -> None:
        """Start from the fit."""
        if not forget_s > 0.0:
            raise ArmidError(f"forget_s is {forget_s:g}; it must be above zero [s]")
        self.fit, self.forget_s, self.observer = fit, forget_s, Observer(fit, gain=gain)
        n, still = fit.robot.n_joints, fit.standstill[0]
        kinds = ("fc", "fv", "fo", "delay")
        usual = usual_friction(fit)
        own = [(k, j) for j in range(n) for k in kinds if k == "delay" or f"{k}{j + 1}" in fit.columns]
        self.names = (*(f"{kind}{joint + 1}" for kind, joint in own), *_LOAD)
        self.usual = np.array(
            [DELAY_S / WIDER if k == "delay" else usual[j, kinds.index(k)] for k, j in own] + [0.0] * 4
        )
        spread = np.where(self.usual > 0.0, WIDER * self.usual, [*np.zeros(len(own)), LOAD_KG, *[LOAD_KGM] * 3])
        self._prior = np.diag(spread**-2.0)
        self._own, self._slow = own, still / STANDSTILL
        self._unit = self._unit_loads()
        self._block, self._waiting = np.empty((BLOCK, 3 * n + 1)), 0
        self.reset()

    def reset(self) -> None:
        """Forget all samples and what they said."""
        self._waiting = 0
        self._information, self._right, self._seconds = np.zeros_like(self._prior), np.zeros(len(self.names)), 0.0
        self.restart()

    def restart(self) -> None:
        """Begin after a gap; the estimate stays."""
        self._settle()
        self.observer.reset()
        self._state: list[Array] | None = None

    @property
    def seconds(self) -> float:
        """How much motion the estimate rests on, with what has faded [s]."""
        self._settle()
        return self._seconds

    def _unit_loads(self) -> list[RigidTorque]:
        """Momentum of each of mass and first moments alone, on the last link."""
        model, n = self.fit.torque_model.model, self.fit.robot.n_joints
        loads = change_of_frame(self.fit.robot.tool)[:, :4].T
        last = [np.concatenate([np.zeros(10 * (n - 1)), load, np.zeros(len(model.names) - 10 * n)]) for load in loads]
        return [RigidTorque(model, vector) for vector in last]

    def step(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, dt: float) -> None:
        """Take in the next sample; it counts in all that is asked from now on."""
        row = np.concatenate((q, qd, tau, (dt,)))
        if row.shape != self._block[0].shape or not (np.isfinite(row).all() and dt > 0.0):
            raise DataShapeError(f"a sample has {len(self._block[0])} finite numbers, and takes time; not {row}")
        self._block[self._waiting] = row
        self._waiting += 1
        if self._waiting == BLOCK:
            self._settle()

    def _settle(self) -> None:
        """Work off samples that wait."""
        count, self._waiting = self._waiting, 0
        if count:
            *motion, dt = np.split(self._block[:count].copy(), [self._slow.size * k for k in (1, 2, 3)], axis=1)
            self.run(dt[:, 0], *map(np.ascontiguousarray, motion))

    def run(self, dt: Array, q: Array, qd: Array, tau: Array) -> None:
        """Take in samples (samples, joints), each `dt` (samples,) after the one before."""
        self._settle()
        seen, n = self.observer.run(dt, q, qd, tau), q.shape[1]
        inputs = [(np.zeros_like(q), -np.sign(qd)), (np.zeros_like(q), -qd), (np.zeros_like(q), -np.ones_like(q))]
        inputs += [(tau, np.zeros_like(q)), *((p, -bias) for p, bias in (unit.momentum(q, qd) for unit in self._unit))]
        first, slow = self._state is None, np.abs(qd) < self._slow
        steps = np.concatenate([[0.0], dt[1:]]) if first else dt
        start = [np.zeros(n) for _ in range(3 * len(inputs) + 1)] if self._state is None else self._state
        gate = held(steps, slow, self.observer.gain, start[-1])
        kept, columns = [], []
        for k, (x, u) in enumerate(inputs):
            before = (x[0], u[0]) if first else (start[3 * k], start[3 * k + 1])
            columns.append(filtered(steps, x, u, self.observer.gain, *before, start[3 * k + 2]))
            kept += [x[-1], u[-1], columns[-1][-1]]
        self._state = [*kept, gate[-1]]
        self._take(steps, seen.torque, columns, gate)

    def _take(self, dt: Array, torque: Array, columns: list[Array], gate: Array) -> None:
        """Add the information of samples, those before fading."""
        kinds = {"fc": columns[0], "fv": columns[1], "fo": columns[2], "delay": -columns[3]}
        age = np.cumsum(dt[::-1])[::-1] - dt
        fade = np.exp(-age / self.forget_s)
        lost = float(np.exp(-dt.sum() / self.forget_s))
        self._information, self._right = lost * self._information, lost * self._right
        noise = self._noise(dt)
        for joint in range(torque.shape[1]):
            rows = np.zeros((len(dt), len(self.names)))
            for k, (kind, own) in enumerate(self._own):
                if own == joint:
                    rows[:, k] = kinds[kind][:, joint]
            for k in range(4):
                rows[:, len(self._own) + k] = columns[4 + k][:, joint]
            weight = fade * dt * (gate[:, joint] < OPEN) / noise[:, joint]
            self._information += rows.T @ (rows * weight[:, None])
            self._right += rows.T @ (weight * -torque[:, joint])
        self._seconds = lost * self._seconds + float(dt @ fade)

    def _noise(self, dt: Array) -> Array:
        """Variance of a second's mean, (samples, joints) [N m squared]: coloured residuals and white noise."""
        taken = self.fit.history.get("taken_away_rms")
        white = 0.0 if taken is None else np.asarray(taken) ** 2
        return np.asarray(COLOURED_S * self.fit.residual_rms**2 + dt[:, None] * white)

    @property
    def covariance(self) -> Array:
        """Of the changes; a load's centre of mass lies within a hand's reach of the tool frame."""
        self._settle()
        vague = np.linalg.inv(self._information + self._prior)
        mass = max(abs(float(vague[-4] @ self._right)), float(np.sqrt(vague[-4, -4])))
        prior = self._prior.copy()
        prior[[-3, -2, -1], [-3, -2, -1]] = (REACH_M * mass) ** -2.0
        return np.asarray(np.linalg.inv(self._information + prior))

    def changes(self) -> tuple[ParameterChange, ...]:
        """What has changed, and whether it is more than usual."""
        covariance = self.covariance
        values, sigma = covariance @ self._right, np.sqrt(np.diag(covariance))
        loads = dict(zip(_LOAD, ("kg", "kg m", "kg m", "kg m"), strict=True))
        units = dict(zip(self.fit.columns, self.fit.torque_model.units, strict=True)) | loads
        return tuple(
            ParameterChange(
                name, units.get(name, "s"), float(x), float(s), float(u), bool(abs(x) > UNUSUAL * np.hypot(s, u))
            )
            for name, x, s, u in zip(self.names, values, sigma, self.usual, strict=True)
        )

    def updated(self) -> Fit:
        """The fit with the changes: new friction, delay and, where its mass is seen, load; the arm's inertia stays."""
        fit, found = self.fit, {change.name: change for change in self.changes()}
        covariance, order = self.covariance, {name: k for k, name in enumerate(self.names)}
        values, spread = fit.values.copy(), fit.covariance.copy()
        shared = [k for k, name in enumerate(fit.columns) if name in order]
        own = [order[fit.columns[k]] for k in shared]
        values[shared] += [found[fit.columns[k]].change for k in shared]
        spread[shared, :], spread[:, shared] = 0.0, 0.0
        spread[np.ix_(shared, shared)] = covariance[np.ix_(own, own)]
        delay = fit.delay_s.copy()
        for kind, joint in self._own:
            if kind == "delay":
                delay[joint] = max(delay[joint] + found[f"delay{joint + 1}"].change, 0.0)
        standard = dict(fit.standard_parameters or {})
        standard |= {n: standard[n] + found[n].change for n in standard if n in found and n not in _LOAD}
        made = replace(fit, delay_s=delay, standard_parameters=standard or None)
        if not found["m"].unusual or found["m"].change <= 0.0:
            return replace(made, values=values, covariance=spread)
        mass, moment = found["m"].change, np.array([found[name].change for name in _LOAD[1:]])
        load = from_com(mass, moment / mass, np.zeros((3, 3)))
        return attached(made, load, values + base_shift(fit, load), spread)


def update(fit: Fit, log: Log, *, gain: float = GAIN) -> Update:
    """Bring a fit up to date by a log of ordinary motion: friction levels, offsets, delay and load.

    Args:
        fit: the fit; its inertia stays.
        log: a few seconds of motion in which nothing touches the arm.
        gain: of the observer [1/s].
    """
    online = Online(fit, gain=gain)
    for part in stretches(fit, log):
        online.restart()
        online.run(part.dt, part.q, part.qd, part.tau)
    changes = online.changes()
    unusual = [change.name for change in changes if change.unusual]
    made = online.updated().with_notes(note("monitoring.updated", seconds=online.seconds, log=log.info.source))
    notes = (note("monitoring.unusual", names=unusual),) if unusual else (note("monitoring.usual"),)
    return Update(fit.robot.name, changes, made, online.seconds, notes)
