"""Programmes: approach, run-in, whole periods, run-out, return, without a jump in position or velocity."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.excitation.polynomial import quintic, rest_to_rest_durations
from armid.excitation.trajectory import Trajectory, TrajectoryError, number, numbers, whole
from armid.robot.robot import Limits

PACE = 0.5  # share of the limits that approach and return use
DEFAULT_VELOCITY, DEFAULT_ACCELERATION = 0.5, 1.0  # of approach and return where no limit is known, SI units
RUN_IN_S = 2.0  # where no limits are given
RUN_IN_TRIALS_S = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)


@dataclass(frozen=True, eq=False)
class Repeated(Trajectory, type_name="repeated"):
    """Whole periods of a periodic trajectory.

    Attributes:
        trajectory: what is repeated.
        periods: how often.
    """

    trajectory: Trajectory
    periods: int

    def __post_init__(self) -> None:
        """Check the fields."""
        _need_periodic(self.trajectory)
        count = whole("periods", self.periods, 1)
        self._freeze(self.trajectory.joints, count * self.trajectory.duration, periods=count)

    def _motion(self, times: Array) -> Motion:
        return self.trajectory.at(times)


@dataclass(frozen=True, eq=False)
class Ramp(Trajectory, type_name="ramp"):
    """A periodic trajectory brought up to speed from rest, or to rest again, by stretching its time.

    Its clock s(t) runs with ds/dt = 3 u^2 - 2 u^3, u = t / length (rising), and ends at s = 0 with ds/dt = 1 and
    d2s/dt2 = 0: position, velocity and acceleration continue into the trajectory. Positions and velocities never leave
    the range of the trajectory; the acceleration gains at most 1.5 / length times the velocity.

    Attributes:
        trajectory: periodic.
        length: duration of the ramp [s].
        rising: from rest to the start of the trajectory; otherwise from its end to rest.
    """

    trajectory: Trajectory
    length: float
    rising: bool = True

    def __post_init__(self) -> None:
        """Check the fields."""
        _need_periodic(self.trajectory)
        length = number("length", self.length, above=0.0)
        self._freeze(self.trajectory.joints, length, length=length)

    def _motion(self, times: Array) -> Motion:
        u = times / self.length if self.rising else 1.0 - times / self.length
        clock = self.length * (u**3 - 0.5 * u**4 - 0.5)
        pace = (u * u * (3.0 - 2.0 * u))[:, None]
        gain = (6.0 * u * (1.0 - u) / self.length)[:, None]
        if not self.rising:
            clock, gain = -clock, -gain
        q, qd, qdd = self.trajectory.at(clock)
        return Motion(q, qd * pace, qdd * pace**2 + qd * gain)


@dataclass(frozen=True, eq=False)
class Programme(Trajectory, type_name="programme"):
    """Trajectories one after the other; positions and velocities must agree where they meet.

    Attributes:
        parts: in the order they are driven.
        main: index of the part to be measured.
    """

    parts: tuple[Trajectory, ...]
    main: int = 0

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        parts = tuple(self.parts) if isinstance(self.parts, tuple | list) else ()
        if not parts or not all(isinstance(part, Trajectory) for part in parts):
            raise TrajectoryError("parts", "must be trajectories, at least one")
        main = whole("main", self.main, 0)
        if main >= len(parts):
            raise TrajectoryError("main", f"is {main}; parts are counted from 0 to {len(parts) - 1}")
        self._freeze(parts[0].joints, float(sum(part.duration for part in parts)), parts=parts, main=main)
        for number_, (before, after) in enumerate(pairwise(parts), start=1):
            if before.joints != after.joints:
                raise TrajectoryError(
                    "parts", f"{number_} and {number_ + 1} move {before.joints} and {after.joints} joints"
                )
            end, start = before.at([before.duration]), after.at([0.0])
            for name, one, other in (("positions", end.q, start.q), ("velocities", end.qd, start.qd)):
                jump = np.abs(one - other)[0]
                if jump.max() > 1e-6 * max(1.0, float(np.abs(one).max())):
                    joint = int(jump.argmax()) + 1
                    meet = (
                        f"{number_} and {number_ + 1} do not meet: {name} of joint {joint} differ by {jump.max():.3g}"
                    )
                    raise TrajectoryError("parts", f"{meet}; use programme(), which adds what is missing")

    @property
    def window(self) -> tuple[float, float]:
        """Start and end [s] of the part to be measured, which holds the whole periods."""
        start = float(sum(part.duration for part in self.parts[: self.main]))
        return start, start + self.parts[self.main].duration

    def _motion(self, times: Array) -> Motion:
        lengths = np.array([part.duration for part in self.parts])
        starts = np.concatenate([[0.0], np.cumsum(lengths)[:-1]])
        which = np.clip(np.searchsorted(starts, times, side="right") - 1, 0, len(lengths) - 1)
        motion = Motion(*np.empty((3, len(times), self.joints)))
        for index, part in enumerate(self.parts):
            mine = which == index
            if np.any(mine):
                found = part.at(np.clip(times[mine] - starts[index], 0.0, lengths[index]))
                for whole_array, piece in zip(motion, found, strict=True):
                    whole_array[mine] = piece
        return motion


def programme(
    trajectory: Trajectory,
    *,
    home: ArrayLike | None = None,
    periods: int = 1,
    settle: int = 0,
    run_in_s: float | None = None,
    limits: Limits | None = None,
    rate_hz: float | None = None,
) -> Programme:
    """Everything that has to be driven around a trajectory to measure it.

    Where the trajectory does not start at rest, a run-in brings it up to speed (errata ER-14, PA-14): by stretching the
    time of a periodic one, which stays inside its own positions and velocities, or by a quintic that meets position,
    velocity and acceleration. With `limits` the shortest run-in that respects them is chosen; the other kind is tried
    if none does.

    Args:
        trajectory: what is to be measured.
        home: posture to come from and return to, by rest-to-rest quintics; without it there is no approach.
        periods: number M of measured periods.
        settle: periods driven before them, so that the transient dies out.
        run_in_s: length of run-in and run-out [s]; otherwise found from `limits`, or 2 s.
        limits: of positions, velocities and accelerations; unknown ones (NaN) are not looked at.
        rate_hz: sample rate; approach and run-in then take whole samples, so that the window starts on a sample.
    """
    if limits is not None and len(limits.lower) != trajectory.joints:
        raise TrajectoryError("limits", f"are for {len(limits.lower)} joints; the trajectory moves {trajectory.joints}")
    tick = None if rate_hz is None else 1.0 / number("rate_hz", rate_hz, above=0.0)
    if trajectory.periodic:
        count, warm = whole("periods", periods, 1), whole("settle", settle, 0)
        body: list[Trajectory] = [Repeated(trajectory, warm)] if warm else []
        body.append(Repeated(trajectory, count))
    elif periods != 1 or settle != 0:
        raise TrajectoryError("periods", "must be 1, without settling, for a trajectory that is not periodic")
    else:
        body = [trajectory]
    before = _run_in(trajectory, limits, run_in_s, tick, rising=True)
    after = _run_in(trajectory, limits, run_in_s, tick, rising=False)
    parts = [*([] if before is None else [before]), *body, *([] if after is None else [after])]
    main = len(parts) - 1 - (after is not None)
    if home is not None:
        rest = _checked_home(home, trajectory.joints, limits)
        approach = _move(rest, parts[0].at([0.0]).q[0], limits, tick)
        leave = _move(parts[-1].at([parts[-1].duration]).q[0], rest, limits, tick)
        main += approach is not None
        parts = [*([] if approach is None else [approach]), *parts, *([] if leave is None else [leave])]
    return Programme(tuple(parts), main)


def _run_in(
    trajectory: Trajectory, limits: Limits | None, length: float | None, tick: float | None, *, rising: bool
) -> Trajectory | None:
    """What joins the trajectory's start or end to rest; None if it rests there already."""
    state = trajectory.at([0.0 if rising else trajectory.duration])
    still = np.abs(state.qd).max() < 1e-9
    # A jump of acceleration alone is allowed, but a periodic trajectory can as well start without one.
    if still and (not trajectory.periodic or np.abs(state.qdd).max() < 1e-9):
        return None
    if limits is None or length is not None:
        chosen = number("run_in_s", RUN_IN_S if length is None else length, above=0.0)
        chosen = _rounded(chosen, tick)
        found = _candidate(trajectory, state, chosen, limits, stretched=trajectory.periodic, rising=rising)
        if limits is not None and (excess := _excess(found, limits)):
            raise TrajectoryError("run_in_s", f"of {chosen:g} s takes {excess}; leave it out to have one found")
        return found
    reasons = []
    for stretched in (True, False) if trajectory.periodic else (False,):
        for trial in RUN_IN_TRIALS_S:
            found = _candidate(trajectory, state, _rounded(trial, tick), limits, stretched=stretched, rising=rising)
            reason = _excess(found, limits)
            if not reason:
                return found
        reasons.append(reason)
    if itself := _excess(trajectory, limits):
        raise TrajectoryError("trajectory", f"takes {itself} even without run-in; make it slower or smaller")
    what = "run-in" if rising else "run-out"
    raise TrajectoryError(
        "limits", f"leave no room for a {what}, which takes {reasons[0]}; keep more distance from them"
    )


def _candidate(
    trajectory: Trajectory, state: Motion, length: float, limits: Limits | None, *, stretched: bool, rising: bool
) -> Trajectory:
    """A run-in or run-out of given length."""
    if stretched:
        return Ramp(trajectory, length, rising)
    rest = state.q - (0.5 if rising else -0.5) * length * state.qd
    if limits is not None:
        rest = np.fmin(np.fmax(rest, limits.lower), limits.upper)
    ends = [np.vstack([rest, state.q]), np.vstack([0 * rest, state.qd]), np.vstack([0 * rest, state.qdd])]
    q, qd, qdd = ends if rising else (end[::-1] for end in ends)
    return quintic(q, [length], qd, qdd)


def _excess(found: Trajectory, limits: Limits) -> str:
    """Which limit a motion exceeds, in words, or nothing; on 2001 points."""
    q, qd, qdd = found.at(np.linspace(0.0, found.duration, 2001))
    slack = 1e-9
    for name, over in (
        ("position", np.fmax(q - limits.upper, limits.lower - q) - slack),
        ("velocity", np.abs(qd) / limits.velocity - 1.0 - slack),
        ("acceleration", np.abs(qdd) / limits.acceleration - 1.0 - slack),
    ):
        beyond = np.max(np.nan_to_num(over, nan=-1.0), axis=0)
        if beyond.max() > 0.0:
            return f"joint {int(beyond.argmax()) + 1} over its {name} limit"
    return ""


def _move(start: Array, end: Array, limits: Limits | None, tick: float | None) -> Trajectory | None:
    """Rest-to-rest quintic at a moderate pace; None if there is no way to go."""
    points = np.vstack([start, end])
    if np.abs(end - start).max() < 1e-9:
        return None
    duration = float(rest_to_rest_durations(points, *paces(limits, len(start)))[0])
    return quintic(points, [_rounded(duration, tick)])


def paces(limits: Limits | None, joints: int, share: float = PACE) -> tuple[Array, Array]:
    """Moderate speeds and accelerations: a share of the limits, stand-ins where none are known."""
    known = Limits.unknown(joints) if limits is None else limits
    speed, bend = share * known.velocity, share * known.acceleration
    return (
        np.where(np.isnan(speed), DEFAULT_VELOCITY, speed),
        np.where(np.isnan(bend), DEFAULT_ACCELERATION, bend),
    )


def _checked_home(home: ArrayLike, joints: int, limits: Limits | None) -> Array:
    rest = numbers("home", home, 1, (joints,))
    if limits is not None:
        outside = np.nan_to_num(np.fmax(rest - limits.upper, limits.lower - rest), nan=-1.0)
        if outside.max() > 1e-9:
            joint = int(outside.argmax())
            reach = f"[{limits.lower[joint]:.4g}, {limits.upper[joint]:.4g}]"
            raise TrajectoryError("home", f"has joint {joint + 1} at {rest[joint]:.4g}, outside its limits {reach}")
    return rest


def _rounded(length: float, tick: float | None) -> float:
    """A length [s] rounded up to whole samples."""
    return length if tick is None else float(np.ceil(length / tick - 1e-9)) * tick


def _need_periodic(trajectory: Trajectory) -> None:
    if not isinstance(trajectory, Trajectory) or not trajectory.periodic:
        raise TrajectoryError("trajectory", "must be a periodic trajectory, such as a Fourier series")
