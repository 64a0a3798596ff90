"""The log doctor: one look at everything that can be wrong with a log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from armid.logs.log import Log, without_garbage
from armid.robot.robot import Robot
from armid.signals.doctor.channels import Channels, examine_channels, noise_level
from armid.signals.doctor.clock import TimeColumn, examine_clock
from armid.signals.doctor.finding import Examination, Facts, Finding, JointFacts, found, found_jump, sorted_findings
from armid.signals.doctor.motion import Repetition, Track, Travel, examine_period, find_repetition, track_of, travel_of
from armid.signals.doctor.range import (
    examine_amplitude,
    examine_standstill,
    examine_time_unit,
    examine_travel,
    examine_units,
    follows,
)
from armid.signals.doctor.robot import examine_dynamics, examine_limits, matched
from armid.signals.doctor.velocity import examine_velocity
from armid.signals.repair import (
    increasing_rows,
    recurring,
    stale_rows,
    with_clock_put_forward,
    without_passive,
    without_turns,
)

# Findings that make motion or effort something else than they are called; what would follow from them is not reported.
_ROOTS = (
    "time-unit",
    "position-jump",
    "degrees",
    "dead-channel",
    "mostly-zero",
    "saturated",
    "position-missing",
    "effort-missing",
)


def examine(log: Log, robot: Robot | None = None, *, dynamics: bool = True) -> Examination:
    """Look at a log as it was recorded, before anything is done to it.

    Checks build on each other: time first, then each channel on its own, then motion (period, transient, travel,
    velocity against position), then effort against the robot's model if there is a robot. A check whose basis is
    missing is left out silently; what follows from an earlier finding is not reported again. Thresholds are stated and
    justified where they are defined.

    Args:
        log: any log, also a broken one.
        robot: the arm it was recorded on; needed for joints that are exchanged or reversed, delays and limits.
        dynamics: whether effort is compared with the robot's model, which takes most of the time.

    Returns:
        Facts and findings, the worst first.
    """
    findings: list[Finding] = []
    log = without_garbage(log)
    if robot is not None:
        fitting, seen = matched(log, robot)
        findings += seen
        log, robot = (log, None) if fitting is None else (without_passive(fitting, robot), robot)
    log, seen = _without_jumps(log)
    findings += seen
    clock, seen = examine_clock(log)
    findings += seen
    if clock.step <= 0.0:
        return Examination(log.info.source, _facts(log, clock, None, None, None, None), sorted_findings(findings))
    channels, seen = examine_channels(_without_copy(log), clock)
    passive = set() if robot is None else {n for n, none in zip(log.joints, robot.passive, strict=False) if none}
    findings += [finding for finding in seen if finding.code != "effort-missing" or finding.joint not in passive]
    if log.info.effort == "none":
        findings.append(found("effort-missing", variant="log"))
    track = track_of(clock, channels)
    if track is None:
        missing = "position" not in log or not np.isfinite(log["position"]).any()
        code, variant = ("position-missing", "log") if missing else ("too-short", "")
        findings.append(found(code, variant=variant, rows=len(clock.rows)))
        return Examination(log.info.source, _facts(log, clock, channels, None, None, None), sorted_findings(findings))
    travel = travel_of(track)
    limits = None if robot is None else robot.limits
    held = {name for name, moves in zip(log.joints, travel.moving, strict=True) if not moves}
    findings = [finding for finding in findings if not _of_rest(finding, held)]
    dead = {finding.joint for finding in findings if finding.code == "dead-channel"}
    moved = examine_velocity(track, log.joints, travel.moving)
    factor, seen = examine_time_unit(log.info, clock, travel, limits, "velocity" in track.channels, moved)
    findings, moved = ([f for f in some if not follows(f, factor)] for some in (findings, moved))
    findings += seen
    truly = replace(travel, speed=travel.speed / factor)
    findings += [finding for finding in examine_travel(truly, log.joints, limits) if finding.joint not in dead]
    findings += examine_standstill(track, travel)
    units = list(examine_units(truly, log.joints, limits, log.info.side))
    findings += units + [finding for finding in moved if not (units and finding.code == "degrees")]
    findings += examine_amplitude(clock, channels, track, log.joints, travel.moving)
    repetition = find_repetition(track, travel.moving, log.info)
    findings += examine_period(track, log.joints, travel.moving, repetition)
    findings = [finding for finding in findings if not _recurs(finding, log, clock, repetition)]
    if robot is not None and not _spoiled(findings):
        wrong = list(examine_dynamics(log, robot, track, travel.far)) if dynamics else []
        findings += wrong
        if not any(finding.severity == "error" for finding in wrong):
            scaled = {finding.joint for finding in wrong if finding.code == "effort-scale"}
            beyond = examine_limits(log, robot, travel)
            findings += [f for f in beyond if f.code != "effort-out-of-range" or not scaled & {None, f.joint}]
    facts = _facts(log, clock, channels, track, travel, repetition, robot)
    return Examination(log.info.source, facts, sorted_findings(_once(findings)))


def _without_jumps(log: Log) -> tuple[Log, list[Finding]]:
    """The log with whole turns undone; where recordings were joined, the longest of them."""
    forward = with_clock_put_forward(log)[0]
    rows = np.flatnonzero(increasing_rows(forward.time))
    forward, jumps = without_turns(forward, rows[~stale_rows(forward.rows(rows))])
    if not jumps:
        return log, []
    edges = [0, *(jump.row for jump in jumps if jump.kind == "joined"), len(log)]
    first = int(np.argmax(np.diff(edges)))
    part = log.with_channels({"position": forward["position"]}).rows(slice(edges[first], edges[first + 1]))
    return part, [found_jump(log, jump) for jump in jumps]


def _spoiled(findings: Iterable[Finding]) -> bool:
    return any(finding.code in _ROOTS and finding.severity == "error" for finding in findings)


def _of_rest(finding: Finding, held: set[str]) -> bool:
    """Whether it is about blips in the motion of a joint that is held: nobody differentiates that."""
    return finding.code == "spikes" and finding.joint in held and finding.values["channel"] not in ("effort", "current")


def _recurs(finding: Finding, log: Log, clock: TimeColumn, repetition: Repetition | None) -> bool:
    """Whether it is about spikes most of which other periods have as well: a sharp part of the motion."""
    if finding.code != "spikes" or repetition is None:
        return False
    place = np.searchsorted(log.time[clock.rows], log.time[list(finding.where.rows)])
    column = log[finding.values["channel"]][clock.rows, log.joints.index(str(finding.joint))][:, None]
    marks = np.zeros(column.shape, dtype=bool)
    marks[place] = True
    return bool(recurring(log.time[clock.rows], column, marks, repetition.length_s).sum() > 0.5 * len(place))


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of the same kind and joint once, the surest; spikes and the like differ by channel."""
    best: dict[tuple[str, str | None, str], Finding] = {}
    for finding in findings:
        channel = "" if finding.code in ("sign-flipped", "swapped-joints") else str(finding.values.get("channel", ""))
        key = finding.code, finding.joint, channel
        if key not in best or finding.confidence > best[key].confidence:
            best[key] = finding
    return list(best.values())


def _without_copy(log: Log) -> Log:
    """The log without currents that the effort was computed from: the same faults need not be told twice."""
    if "effort" not in log or "current" not in log:
        return log
    a, b = log["effort"][:1000], log["current"][:1000]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = a / b
    ratio = ratio[:, np.isfinite(ratio).any(axis=0)]
    spread = np.nanpercentile(ratio, 90.0, axis=0) - np.nanpercentile(ratio, 10.0, axis=0)
    copied = ratio.size > 0 and bool((spread < 1e-6 * np.abs(np.nanmedian(ratio, axis=0))).all())
    return log.with_channels({"current": None}) if copied else log


def _facts(
    log: Log,
    clock: TimeColumn,
    channels: Channels | None,
    track: Track | None,
    travel: Travel | None,
    repetition: Repetition | None,
    robot: Robot | None = None,
) -> Facts:
    slides = robot is not None and any(joint.prismatic for joint in robot.joints)
    current = log.info.effort == "current"
    stamps = log.time[np.isfinite(log.time)]
    effort = None
    if channels is not None:
        effort = next((channels.values[name] for name in ("effort", "current") if name in channels.values), None)

    def number(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    joints = []
    for j, name in enumerate(log.joints):
        values = (np.nan,) * 3 if travel is None else (travel.lower[j], travel.upper[j], travel.speed[j])
        column = None if effort is None else effort[:, j]
        rms, noise = (np.nan, np.nan) if column is None else (float(np.std(column)), noise_level(column))
        joints.append(JointFacts(name, *(number(float(value)) for value in (*values, rms, noise))))
    return Facts(
        rows=len(log),
        duration_s=float(np.ptp(stamps)) if len(stamps) else 0.0,
        rate_hz=1.0 / clock.step if clock.step > 0.0 else None,
        period_s=None if repetition is None else repetition.length_s,
        periods=0 if repetition is None else repetition.repeats,
        channels=tuple(log.channels),
        joints=tuple(joints),
        position_unit="rad or m" if slides else "rad",
        effort_unit="A" if current else "N m or N" if slides else "N m",
    )
