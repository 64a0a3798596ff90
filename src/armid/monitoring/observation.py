"""Contacts in logs: external torque, alarms, and the force that explains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid._version import __version__
from armid.arrays import Array, Mask
from armid.dynamics.kinematics import jacobian, link_frames
from armid.estimation.fit import Fit
from armid.figures import Block, Figure, Panel, band, level, line
from armid.files import plain
from armid.logs.log import Log
from armid.monitoring.detector import SELDOM, ContactLimits, Detected, Detector, alarm_rows, calibrate, describe
from armid.monitoring.observer import GAIN
from armid.monitoring.recordings import Samples, stretches
from armid.notes import Note, note
from armid.robot.robot import Robot
from armid.signals.problems import plural
from armid.theme import Picture

FORMAT = "armid observation 1"
SIGMAS = 3.0  # standard deviations that a limit stands for, when a force is judged
CLEAR = 0.5  # standard deviation of a force, as a share of it, up to which it is told
SINGULAR = 1e-9
ENOUGH = 0.9  # share that a force alone must explain, where a wrench could be told


@dataclass(frozen=True, eq=False)
class ContactForce:
    """A force, or a force and a moment (wrench), at the end of a link that explains an external torque.

    Attributes:
        newton: force in the base frame [N].
        moment: in the base frame [N m]; zero where a force explains enough, or the geometry tells no more.
        point: where it is taken to act, in the base frame [m].
        explained: share of the external torque, squared in units of the limits, that it explains.
    """

    newton: Array
    moment: Array
    point: Array
    explained: float


@dataclass(frozen=True, eq=False)
class Alarm:
    """ContactLimits passed, less than a second apart.

    Attributes:
        log: source.
        time: of the first sample beyond a limit, as in the log [s].
        until: of the last [s].
        joints: beyond their limits, by name.
        highest_link: number of the outermost link that must be loaded, from 1: the contact is there or further out.
        link: its name.
        torque: external torque when it was largest in units of the limits, (joints,) [N m].
        force: that explains it; None where the geometry does not tell.
    """

    log: str
    time: float
    until: float
    joints: tuple[str, ...]
    highest_link: int
    link: str
    torque: Array
    force: ContactForce | None


@dataclass(frozen=True, eq=False)
class ObservedLog:
    """Samples of a log without gaps, and what the detector says of them."""

    stretch: Samples
    detected: Detected
    limits: ContactLimits

    def hard(self, calibration: ContactLimits) -> Mask:
        """Where joints accelerate harder than contact-free recordings of one kind do, (samples, joints)."""
        acceleration = self.detected.stop + self.limits.usual_acceleration  # where it is beyond the usual
        return np.asarray(acceleration > calibration.harder * calibration.usual_acceleration)


@dataclass(frozen=True, eq=False)
class Observation:
    """What `observe` returns.

    Attributes:
        robot: name.
        alarms: of all logs.
        limits: from all contact-free logs; a log that is one of them was judged by limits from the others.
        parts: the logs in stretches without gaps.
        notes: what to know.
    """

    robot: str
    alarms: tuple[Alarm, ...]
    limits: ContactLimits
    parts: tuple[ObservedLog, ...]
    notes: tuple[Note, ...]

    @property
    def hours(self) -> float:
        """Length of the logs."""
        return sum(part.stretch.duration for part in self.parts) / 3600.0

    def states(self) -> dict[str, dict[str, float]]:
        """Share of the samples in which each joint stood still, was slow (dead zone) or fast, or stopped hard.

        A hard stop is an acceleration beyond what the contact-free recordings show of each other.
        """
        found = [part.detected for part in self.parts]
        seen = {
            "still": [one.still for one in found],
            "slow": [one.gate >= 1.0 for one in found],
            "fast": [np.abs(part.stretch.qd) > part.limits.usual_speed for part in self.parts],
            "stop": [part.hard(self.limits) for part in self.parts],
        }
        shares = {state: np.concatenate(masks).mean(axis=0).tolist() for state, masks in seen.items()}
        return {name: {state: share[j] for state, share in shares.items()} for j, name in enumerate(self.limits.joints)}

    @property
    def extrapolated(self) -> bool:
        """Whether the calibration does not show the stated rate: it is too short, or the logs move harder than it."""
        return self.limits.extrapolated or any(one.code == "monitoring.beyond" for one in self.notes)

    def to_data(self) -> dict[str, Any]:
        """Everything but the series, for JSON."""
        data = {
            "format": FORMAT,
            "armid": __version__,
            "robot": self.robot,
            "alarms": self.alarms,
            "limits": describe(self.limits),
            "rate_stated": self.limits.false_alarms,
            "rate_extrapolated": self.extrapolated,
            "rate_factor": None if self.extrapolated else self.limits.rate_factor,
            "calibration": {"hours": self.limits.hours, "alarms_left_out": self.limits.left_out},
            "hours": self.hours,
            "states": self.states(),
            "gain": self.limits.gain,
            "notes": self.notes,
        }
        return dict(plain(data))

    def columns(self) -> dict[str, Array]:
        """Named columns: time, then external torque, its standard deviation and limit of each joint."""
        result = {"time": np.concatenate([part.stretch.time for part in self.parts])}
        for key in ("torque", "sigma", "limit"):
            values = np.concatenate([getattr(part.detected, key) for part in self.parts])
            result |= {f"{key}.{name}": values[:, j] for j, name in enumerate(self.limits.joints)}
        return result

    def summary(self) -> str:
        """A page for people."""
        limits = self.limits
        told = "extrapolated" if self.extrapolated else f"known within a factor {limits.rate_factor:.2g}"
        lines = [
            f"{self.robot}: {plural(len(self.alarms), 'contact')} in {3600.0 * self.hours:.4g} s; limits for "
            f"{limits.false_alarms:g} false alarms an hour, {told}"
        ]
        for alarm in self.alarms:
            force = alarm.force
            told = "" if force is None else f"; {_size(force)} explain {force.explained:.0%}"
            lines.append(
                f"  {alarm.time:.3f} s  link {alarm.highest_link} ({alarm.link}) or beyond; {', '.join(alarm.joints)}"
                f"{told}"
            )
        lines.append("limit while moving evenly, least torque found in 100 ms, dead zone when slow [N m]:")
        width = max(map(len, limits.joints))
        for name, row in describe(limits).items():
            values = (row["limit"], row["sensitivity_100ms"], row["dead_zone"])
            lines.append(f"  {name:<{width}}  " + "  ".join(f"{value:>7.3g}" for value in values))
        return "\n".join([*lines, *map(str, self.notes)])

    def plot(self) -> Picture:
        """External torque of each joint with its limits and alarms; a matplotlib figure."""
        start, shown = 0.0, []
        for part in self.parts:  # one after the other, on one time axis
            shown.append(part.stretch.time - part.stretch.time[0] + start)
            start = float(shown[-1][-1]) + 1.0
        time = np.concatenate([np.append(t, np.nan) for t in shown])
        gap = np.full((1, len(self.limits.joints)), np.nan)
        torque, limit = (
            np.vstack([rows for p in self.parts for rows in (getattr(p.detected, key), gap)])
            for key in ("torque", "limit")
        )
        marks = [
            float(t[first])
            for p, t in zip(self.parts, shown, strict=True)
            for first, _ in alarm_rows(p.stretch.time, p.detected.over)
        ]
        blocks = []
        for j, name in enumerate(self.limits.joints):
            traces = [band("limit", time, -limit[:, j], limit[:, j]), line("residual", time, torque[:, j])]
            traces += [level(mark, "limit", vertical=True) for mark in marks]
            half = 1.1 * max(np.nanmax(np.abs(torque[:, j])), float(np.nanquantile(limit[:, j], 0.9)))
            panel = Panel("[N m]", traces, y_range=[-half, half], x_title="time [s]", name="external torque")
            blocks.append(Block(name.replace("_", " "), [[panel]], (110.0,)))
        found = f"{plural(len(marks), 'contact')} (red lines)" if marks else "No contact"
        where = "beyond" if marks else "within"
        return Figure("external-torque", blocks).draw(
            f"{found} in {3600.0 * self.hours:.3g} s: external torque (orange) {where} its limits (band), which are "
            "wider where joints are slow or stop hard. No safety function."
        )


def observe(
    fit: Fit, logs: Sequence[Log], *, quiet: Sequence[Log], false_alarms: float = 10.0, gain: float = GAIN
) -> Observation:
    """External torque and contacts of logs.

    Args:
        fit: the model.
        logs: to look for contacts in, as they were recorded: causally, with their own velocities.
        quiet: contact-free logs that the limits are calibrated on; one that is also in `logs` is left out for itself.
        false_alarms: stated rate, of the whole arm [1/h].
        gain: of the observer [1/s].
    """
    rest = [stretches(fit, log) for log in quiet]
    limits = calibrate(fit, rest, false_alarms=false_alarms, gain=gain)
    parts, alarms = [], []
    beyond = np.zeros(fit.robot.n_joints, dtype=bool)
    for log in logs:
        others = [recording for recording, one in zip(rest, quiet, strict=True) if not _same(one, log)]
        own = limits
        if 0 < len(others) < len(rest):
            own = calibrate(fit, others, false_alarms=false_alarms, gain=gain)
        hard = []
        for stretch in stretches(fit, log):
            detected = Detector(fit, own).run(stretch.dt, stretch.q, stretch.qd, stretch.tau)
            parts.append(ObservedLog(stretch, detected, own))
            hard.append(parts[-1].hard(limits))
            alarms += [_alarm(fit.robot, stretch, detected, *rows) for rows in alarm_rows(stretch.time, detected.over)]
        beyond |= np.concatenate(hard).mean(axis=0) > SELDOM
    notes = [note("monitoring.no_safety_function")]
    if limits.extrapolated:
        notes.append(note("monitoring.extrapolated", rate=false_alarms, hours=limits.hours))
    if limits.left_out:
        notes.append(
            note("monitoring.left_out", alarms=sum(limits.left_out.values()), logs=len(rest), hours=limits.hours)
        )
    if beyond.any():
        notes.append(note("monitoring.beyond", joints=[limits.joints[j] for j in np.flatnonzero(beyond)]))
    return Observation(fit.robot.name, tuple(alarms), limits, tuple(parts), tuple(notes))


def _same(one: Log, other: Log) -> bool:
    """Whether two logs hold the same samples; names do not tell, as all recordings of one arm may have the same."""
    alike = one.channels.keys() == other.channels.keys() and np.array_equal(one.time, other.time)
    return alike and all(np.array_equal(one[name], other[name], equal_nan=True) for name in one.channels)


def _alarm(robot: Robot, stretch: Samples, found: Detected, first: int, last: int) -> Alarm:
    rows = slice(first, last + 1)
    joints = np.flatnonzero(found.over[rows].any(axis=0))
    outer = int(max(joints, key=lambda j: (len(robot.path_to(int(j) + 1)), j)))
    score = np.abs(found.torque[rows]) / found.limit[rows]
    worst = first + int(score[:, joints].max(axis=1).argmax())
    return Alarm(
        log=stretch.source,
        time=float(stretch.time[first]),
        until=float(stretch.time[last]),
        joints=tuple(robot.joint_names[j] for j in joints),
        highest_link=outer + 1,
        link=robot.joints[outer].link_name,
        torque=found.torque[worst],
        force=contact_force(robot, stretch.q[worst], found.torque[worst], found.limit[worst], outer + 1),
    )


def contact_force(robot: Robot, q: Array, torque: Array, limit: Array, link: int) -> ContactForce | None:
    """The force at the far end of a link that explains an external torque best, in units of the limits.

    Where it does not explain enough, because the contact is elsewhere on the link or turns it, a wrench, which six
    joints tell. None where fewer than four joints carry the link, so that any torque is explained, or where the posture
    leaves the force uncertain.
    """
    carrying = list(robot.path_to(link))
    following = [joint.placement[:3, 3] for joint in robot.joints if joint.parent == link]
    point = robot.tool[:3, 3] if link == robot.n_joints or not following else following[0]
    frame = link_frames(robot, q[None])[0, link - 1]
    whole = (jacobian(robot, q[None], link, point)[0] / limit).T[carrying]
    wanted, found = (torque / limit)[carrying], None
    for components, least in ((3, 4), (6, 6)):
        if len(carrying) < least or (found is not None and found.explained >= ENOUGH):
            break
        inverse = np.linalg.pinv(whole[:, :components])
        newton, moment = np.split(np.pad(inverse @ wanted, (0, 6 - components)), 2)
        hidden = np.linalg.matrix_rank(whole[:, :components], rtol=SINGULAR) < components
        if hidden or np.linalg.norm(inverse[:3]) > SIGMAS * CLEAR * np.linalg.norm(newton):
            break
        left = wanted - whole[:, :components] @ (inverse @ wanted)
        explained = 1.0 - float(left @ left / (wanted @ wanted))
        found = ContactForce(newton, moment, frame[:3, :3] @ point + frame[:3, 3], explained)
    return found


def _size(force: ContactForce) -> str:
    moment = f" and {np.linalg.norm(force.moment):.3g} N m" if force.moment.any() else ""
    return f"{np.linalg.norm(force.newton):.3g} N{moment}"
