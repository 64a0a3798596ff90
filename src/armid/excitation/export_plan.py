"""A plan in the form that a controller reads: CSV, ROS 2 JointTrajectory, URScript."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import yaml

from armid.arrays import Array
from armid.errors import ArmidError, UnknownNameError
from armid.escaping import comment, one_line
from armid.excitation.fourier import FourierSeries
from armid.excitation.plan import Plan
from armid.excitation.sequence import RUN_IN_TRIALS_S, Programme, Ramp, Repeated
from armid.excitation.trajectory import Trajectory, number, whole
from armid.files import write_text

#: Kind of export and how its file's name ends.
KINDS = {"csv": ".csv", "ros": ".ros.yaml", "urscript": ".script"}
UR_JOINTS = 6
_UR_RATE_HZ = 500.0
_ROS_RATES_HZ = (20.0, 100.0)  # controllers interpolate; more points only make the message long


def export_plan(plan: Plan, kinds: Sequence[str], stem: Path) -> list[Path]:
    """Write a plan in each of the `kinds`; returns the files, named `stem` plus .csv, .ros.yaml or .script.

    Raises:
        UnknownNameError: a kind is none of csv, ros, urscript. Nothing is written then.
    """
    check_kinds(kinds, len(plan.joint_names))
    writers = {"csv": to_csv, "ros": to_ros, "urscript": to_urscript}
    texts = {stem.with_name(stem.name + KINDS[kind]): writers[kind](plan) for kind in kinds}
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def check_kinds(kinds: Sequence[str], joints: int) -> None:
    """Raise unless an arm with so many joints can be exported as all `kinds`; cheap, so ask before a long design."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("kind of export", kind, KINDS)
    if "urscript" in kinds and joints != UR_JOINTS:
        raise ArmidError(f"urscript is for arms with {UR_JOINTS} joints, this one has {joints}; use csv or ros")


def to_csv(plan: Plan, rate_hz: float | None = None) -> str:
    """One period as a table: time [s], then position, velocity and acceleration of every joint (SI units).

    Lines with # before it say what was not checked.

    Args:
        plan: the plan.
        rate_hz: of the rows; the period must be a whole number of them (default: the plan's rate).
    """
    times, motion = plan.trajectory.sample(plan.rate_hz if rate_hz is None else rate_hz)
    out = io.StringIO()
    out.writelines(f"{line}\n" for line in _unchecked(plan))
    writer = csv.writer(out, lineterminator="\n")
    quantities = ("position", "velocity", "acceleration")
    writer.writerow(
        ["time", *(f"{quantity}.{name}" for quantity in quantities for name in map(one_line, plan.joint_names))]
    )
    writer.writerows([f"{value:.17g}" for value in row] for row in np.hstack([times[:, None], *motion]))
    return out.getvalue()


def to_ros(plan: Plan, rate_hz: float | None = None, *, periods: int = 1, run_in: bool = True) -> str:
    """The motion as a trajectory_msgs/JointTrajectory in YAML, for ``ros2 topic pub`` or any YAML reader.

    Args:
        plan: the plan.
        rate_hz: of the points (default: the plan's rate, divided by a whole number so that it is at most 100 Hz).
        periods: how often the trajectory is driven.
        run_in: bring the trajectory up to speed from rest, and to rest again, by stretching its time (see `Ramp`).
            Without it the points are those of the periods alone, which may start and end with velocity.
    """
    rate = _ros_rate(plan) if rate_hz is None else number("rate_hz", rate_hz, above=0.0)
    plan.trajectory.sample(rate)  # raises where the period is not a whole number of points
    driven, note = _driven(plan.trajectory, periods, run_in, rate)
    times = np.arange(1, round(driven.duration * rate) + 1) / rate
    q, qd, qdd = driven.at(times)
    start = ", ".join(f"{value:.6g}" for value in driven.at([0.0]).q[0])
    lines = [
        f"# Exciting trajectory for {comment(plan.robot)}, made by armid. {note}",
        *_unchecked(plan),
        f"# Move the arm to the start posture first and let it rest there: [{start}]",
        "# ros2 topic pub --once TOPIC trajectory_msgs/msg/JointTrajectory --yaml-file THIS_FILE",
        "header:",
        "  stamp: {sec: 0, nanosec: 0}",
        "  frame_id: ''",
        f"joint_names: {yaml.safe_dump(list(plan.joint_names), default_flow_style=True, width=10**6).strip()}",
        "points:",
    ]
    for time, *rows in zip(times, q, qd, qdd, strict=True):
        seconds, nanoseconds = divmod(round(float(time) * 10**9), 10**9)
        for word, row in zip(("- positions", "  velocities", "  accelerations"), rows, strict=True):
            lines.append(f"{word}: [{', '.join(_yaml_number(value) for value in row)}]")
        lines.append(f"  time_from_start: {{sec: {seconds}, nanosec: {nanoseconds}}}")
    return "\n".join(lines) + "\n"


def to_urscript(plan: Plan, rate_hz: float | None = None, *, periods: int = 1) -> str:
    """A complete URScript program that evaluates the Fourier series on the controller and follows it with servoj.

    It moves to the start posture, is brought up to speed by stretched time (see `Ramp`), drives the periods and comes
    to rest the same way.

    Args:
        plan: for an arm with six turning joints, its trajectory a Fourier series.
        rate_hz: of the servo loop (default: 500, an e-Series controller; 125 for CB3).
        periods: how often the trajectory is driven.
    """
    check_kinds(("urscript",), len(plan.joint_names))
    series = plan.trajectory
    if not isinstance(series, FourierSeries):
        raise ArmidError(f"urscript needs a Fourier series, the plan's trajectory is a {series.type_name}; use csv")
    rate = _UR_RATE_HZ if rate_hz is None else number("rate_hz", rate_hz, above=0.0)
    count = whole("periods", periods, 1)
    ramp = _run_in_s(series, rate)
    peak = np.abs(series.at(np.linspace(0.0, series.duration, 2001)).qd).max()
    text = (resources.files("armid.excitation") / "assets" / "urscript.txt").read_text("utf-8")
    return Template(text).substitute(
        robot=comment(plan.robot),
        unchecked="".join(f"{line}\n" for line in _unchecked(plan)),
        periods=count,
        period_text=f"{series.duration:.10g}",
        ramp_text=f"{ramp:.10g}",
        peak=f"{peak:.3g}",
        period=_plain(series.duration),
        ramp=_plain(ramp),
        step=_plain(1.0 / rate),
        turn=_plain(2.0 * np.pi),
        position="\n".join(_ur_position(series)),
    )


def _ur_position(series: FourierSeries) -> list[str]:
    """Lines of the script that evaluate the series, harmonic after harmonic so that they stay short."""
    joints = range(UR_JOINTS)
    lines = [f"    local q{j + 1} = {_plain(series.offset[j])}" for j in joints]
    for k, order in enumerate(series.harmonics):
        lines += [f"    si = sin({order} * x)", f"    co = cos({order} * x)"]
        lines += [
            f"    q{j + 1} = q{j + 1} {_signed(series.sine[j, k])} * si {_signed(series.cosine[j, k])} * co"
            for j in joints
        ]
    return [*lines, f"    return [{', '.join(f'q{j + 1}' for j in joints)}]"]


def _driven(trajectory: Trajectory, periods: int, run_in: bool, rate_hz: float) -> tuple[Trajectory, str]:
    """What is driven for `periods`, and a sentence about it."""
    if not trajectory.periodic:
        return trajectory, f"It lasts {trajectory.duration:.10g} s."
    repeated = Repeated(trajectory, periods)
    if not run_in:
        return repeated, f"{repeated.periods} x {trajectory.duration:.10g} s, without run-in."
    length = _run_in_s(trajectory, rate_hz)
    parts = (Ramp(trajectory, length), repeated, Ramp(trajectory, length, rising=False))
    window = f"{length:.10g} s to {length + repeated.duration:.10g} s"
    return Programme(parts, 1), f"{repeated.periods} x {trajectory.duration:.10g} s, whole periods from {window}."


def _run_in_s(trajectory: Trajectory, rate_hz: float) -> float:
    """Shortest run-in [s] of whole samples that needs no more acceleration than the trajectory itself."""
    allowed = _peak_acceleration(trajectory) * (1.0 + 1e-6) + 1e-9
    for trial in RUN_IN_TRIALS_S:
        length = float(np.ceil(trial * rate_hz - 1e-9)) / rate_hz
        ramps = (Ramp(trajectory, length), Ramp(trajectory, length, rising=False))
        if all(np.all(_peak_acceleration(ramp) <= allowed) for ramp in ramps):
            break
    return length


def _peak_acceleration(trajectory: Trajectory) -> Array:
    times = np.linspace(0.0, trajectory.duration, 2001)
    return np.asarray(np.abs(trajectory.at(times).qdd).max(axis=0))


def _ros_rate(plan: Plan) -> float:
    """The plan's rate divided by the smallest whole number that brings it into range and divides the samples."""
    low, high = _ROS_RATES_HZ
    samples = len(plan.trajectory.sample(plan.rate_hz)[0])
    fitting = (d for d in range(1, samples + 1) if samples % d == 0 and low <= plan.rate_hz / d <= high)
    return plan.rate_hz / next(fitting, 1)


def _yaml_number(value: float) -> str:
    """The shortest text that gives the same number; YAML 1.1 takes an exponent for a number only after a point."""
    text = repr(float(value))
    return text if "." in text else text.replace("e", ".0e")


def _plain(value: float) -> str:
    """A number without exponent."""
    return f"{float(value):.17f}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'} {_plain(abs(value))}"


def _unchecked(plan: Plan) -> list[str]:
    """Comments on what a program may break."""
    broken = [] if plan.certified else ["# LIMITS ARE BROKEN: do not run this"]
    return [*broken, *(f"# Not checked: {comment(what)}" for what in plan.unchecked)]
