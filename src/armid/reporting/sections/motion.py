"""The motion: the plan against its limits with its certificate, and a stick figure that the page's script plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.dynamics.kinematics import all_frames
from armid.excitation.pictures import motion_panels
from armid.excitation.plan import Plan
from armid.figures import Figure, compact
from armid.reporting.evidence import Evidence, reach_of
from armid.reporting.html import Cell, Column, Row, Section, lacking, paragraph, table, text
from armid.reporting.numbers import exact, short
from armid.robot.robot import Robot

POINTS, FRAMES = 400, 240  # of the plan's curves, of the replay
LONGEST_S = 20.0  # of a log that is replayed


def excitation(evidence: Evidence) -> Section:
    """Three panels per joint, and a table of margins."""
    plan, title = evidence.plan, "Excitation"
    if plan is None:
        return lacking("excitation", title, "The plan of the experiment fills this: armid report FIT --plan plan.json.")
    return planned(plan, evidence.fit.robot)


def planned(plan: Plan, robot: Robot) -> Section:
    """A plan against the limits of its robot."""
    time = np.linspace(0.0, plan.trajectory.duration, POINTS)
    c = plan.conditioning
    remark = (
        f"{plan.criterion} over {len(plan.parameters)} parameters: condition number {short(c.condition)} with scaled "
        f"columns, log det {short(c.log_det, 4)}; found in {plan.seconds:.1f} s, seed "
        f"{plan.options.get('seed', 'unknown')}."
    )
    columns = [
        Column("quantity", words=True),
        Column("nearest joint", words=True),
        Column("margin", "", "distance to the limit, as a share of its range or in mm"),
        Column("how it is known", words=True),
    ]
    parts: list[str | Figure] = [
        motion_panels(robot, time, plan.trajectory.at(time)),
        paragraph(remark, "remark"),
        table(columns, _margins(plan), caption="certificate: margins to every limit"),
    ]
    return Section("excitation", "Excitation", _sentence(plan), parts, folded=True)


def _sentence(plan: Plan) -> str:
    duration = exact(plan.trajectory.duration)
    if not plan.certificate.margins:
        return f"One period lasts {duration} s; no limit was known, so nothing is certified."
    worst = plan.certificate.worst
    where = f" of {plan.joint_names[worst.joint - 1]}" if worst.joint else ""
    if not plan.certified:
        broken = [margin.quantity for margin in plan.certificate.margins if margin.margin < 0.0]
        return f"This plan breaks limits ({', '.join(broken)}), worst the {worst.quantity}{where}: do not run it again."
    return (
        f"All {len(plan.certificate.margins)} certified quantities stay inside their limits over the {duration} s "
        f"period; the {worst.quantity}{where} comes nearest, with {worst.text} to spare."
    )


def _margins(plan: Plan) -> list[Row]:
    rows = []
    tightest = min((m.margin for m in plan.certificate.margins), default=0.0)
    for margin in plan.certificate.margins:
        joint = plan.joint_names[margin.joint - 1] if margin.joint else "all"
        mark = "broken" if margin.margin < 0.0 else "the tightest" if margin.margin == tightest else ""
        cells = (
            Cell(margin.quantity),
            Cell(joint),
            Cell(margin.text, float(margin.margin) if np.isfinite(margin.margin) else 1e9),
            Cell(margin.guarantee),
        )
        rows.append(Row(cells, mark))
    return rows


def replay(evidence: Evidence) -> Section:
    """A scene with a scrubber."""
    found = _motion(evidence)
    if found is None:
        return lacking("replay", "Replay", "A plan or a log fills this: armid report FIT --plan plan.json --log LOG.")
    return replayed(evidence.fit.robot, *found)


def replayed(robot: Robot, time: Array, q: Array, source: str) -> Section:
    """A scene with a scrubber, of positions (frames, joints) at times [s] of what `source` names."""
    arm = stick_figure(robot, q)
    tool = arm.points[:, arm.tool]
    size = np.ptp(tool, axis=0)
    length = float(np.sum(np.linalg.norm(np.diff(tool, axis=0), axis=1)))
    sentence = (
        f"In {exact(float(time[-1] - time[0]))} s of {source} the tool travels {short(length, 2)} m through a space of "
        f"{size[0]:.2f} × {size[1]:.2f} × {size[2]:.2f} m."
    )
    scene = {
        "time": compact(time - time[0], 5),
        "points": np.round(arm.points, 4).tolist(),
        "links": [list(edge) for edge in arm.links],
        "axes": [list(edge) for edge in arm.axes],
        "tool": arm.tool,
        "up": _up(robot),
        "box": None if robot.limits.box is None else np.asarray(robot.limits.box).tolist(),
        "joints": list(robot.joint_names),
        "units": ["m" if joint.prismatic else "rad" for joint in robot.joints],
        "q": np.round(q, 3).tolist(),
    }
    return Section("replay", "Replay", sentence, _html(robot), data={"scene": scene})


def _motion(evidence: Evidence) -> tuple[Array, Array, str] | None:
    """Times [s], positions, and what moves."""
    if evidence.plan is not None:
        return planned_motion(evidence.plan)
    for log, data in evidence.training:
        shown = min(LONGEST_S, float(data.time[-1] - data.time[0]))
        time = data.time[0] + np.linspace(0.0, shown, FRAMES)
        q = np.column_stack([np.interp(time, data.time, column) for column in data.q.T])
        return time, q, f"the motion of {Path(log.info.source).name or 'a log'}"
    return None


def planned_motion(plan: Plan) -> tuple[Array, Array, str]:
    """Times [s] and positions of one period, and what moves."""
    time = np.linspace(0.0, plan.trajectory.duration, FRAMES)
    return time, np.asarray(plan.trajectory.at(time).q), "the planned motion"


@dataclass
class StickFigure:
    """Points that move, and which of them are joined.

    Attributes:
        points: (frames, points, 3) in the base frame [m].
        links: pairs of points, with the number of the link from 0 for the base.
        axes: pairs of points on a joint's axis.
        tool: index of the tool's point.
    """

    points: Array
    links: list[tuple[int, int, int]] = field(default_factory=list)
    axes: list[tuple[int, int]] = field(default_factory=list)
    tool: int = 0


def stick_figure(robot: Robot, q: Array) -> StickFigure:
    """An arm as lines: along the lengths of a DH description where there are any, else from joint to joint."""
    joint_frames, link_frames = all_frames(robot, q)
    columns: list[Array] = [np.zeros((len(q), 3))]
    arm = StickFigure(np.empty(0))

    def add(point: Array) -> int:
        columns.append(point)
        return len(columns) - 1

    def join(start: int, point: Array, link: int) -> int:
        if float(np.max(np.linalg.norm(point - columns[start], axis=1))) < 1e-6:
            return start
        end = add(point)
        arm.links.append((start, end, link))
        return end

    base = np.broadcast_to(np.eye(4), (len(q), 4, 4))
    ends = {0: 0}
    for j in robot.outward:
        joint = robot.links[j]
        parent = base if joint.parent == 0 else link_frames[:, joint.parent - 1]
        here = ends[joint.parent]
        for corner in _corners(robot, j):
            here = join(here, parent[:, :3, :3] @ corner + parent[:, :3, 3], joint.parent)
        here = join(here, joint_frames[:, j, :3, 3], joint.parent)
        arm.axes.append(_axis(joint_frames[:, j], add, 0.035 * reach_of(robot)))
        ends[j + 1] = join(here, link_frames[:, j, :3, 3], j + 1)
    tool = link_frames[:, robot.n_joints - 1] @ robot.tool
    arm.tool = join(ends[robot.n_joints], tool[:, :3, 3], robot.n_joints)
    arm.points = np.stack(columns, axis=1)
    return arm


def _axis(frames: Array, add: Callable[[Array], int], half: float) -> tuple[int, int]:
    along = half * frames[:, :3, 2]
    return add(frames[:, :3, 3] - along), add(frames[:, :3, 3] + along)


def _corners(robot: Robot, joint: int) -> list[Array]:
    """Points between a link's origin and the next joint, in its frame: one after each named length but the last."""
    parts = [p for p in robot.lengths if p.joint == joint and not p.in_link_frame and p.value != 0.0]
    corners, here = [], np.zeros(3)
    for part in parts[:-1]:
        here = here + part.value * part.direction
        corners.append(here)
    return corners


def _up(robot: Robot) -> list[float]:
    size = float(np.linalg.norm(robot.gravity))
    return (-robot.gravity / size).tolist() if size > 0.0 else [0.0, 0.0, 1.0]


def _html(robot: Robot) -> str:
    names = "".join(f'<span class="joint">{text(name)} <b>–</b></span>' for name in robot.joint_names)
    return (
        '<div class="replay"><canvas role="img" aria-label="stick figure of the arm; drag to turn it"></canvas>'
        '<div class="controls"><button type="button" class="play" aria-label="play">▶</button>'
        '<input type="range" class="scrubber" min="0" max="1000" value="0" step="1" aria-label="time">'
        '<output class="clock">0.00 s</output></div>'
        f'<div class="postures">{names}</div></div>'
    )
