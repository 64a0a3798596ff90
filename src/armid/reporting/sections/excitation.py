"""The excitation: motion against its limits, and what the certificate says."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.excitation.plan import Plan
from armid.reporting.evidence import Evidence
from armid.reporting.figure import Block, Figure, Panel, level, line
from armid.reporting.html import Cell, Column, Row, paragraph, table
from armid.reporting.numbers import exact, percent, short, span
from armid.reporting.section import Section, lacking
from armid.robot.robot import Robot

TITLE = "Excitation"
POINTS = 400
HEIGHT = 92.0
QUANTITIES = ("position", "velocity", "acceleration")


def excitation(evidence: Evidence) -> Section:
    """Three panels per joint, and a table of margins."""
    plan, robot = evidence.plan, evidence.fit.robot
    if plan is None:
        return lacking("excitation", TITLE, "The plan of the experiment fills this: armid report FIT --plan plan.json.")
    time = np.linspace(0.0, plan.trajectory.duration, POINTS)
    motion = [np.asarray(values) for values in plan.trajectory.at(time)]
    figure = Figure(
        name="excitation",
        blocks=[_block(robot, time, motion, j) for j in range(robot.n_joints)],
        caption="position, velocity and acceleration of each joint over one period, with their limits",
        legend={"predicted": "planned motion", "limit": "limit"},
    )
    c = plan.conditioning
    remark = (
        f"{plan.criterion} over {len(plan.parameters)} parameters: condition number {short(c.condition)} with scaled "
        f"columns, log det {short(c.log_det, 4)}; found in {plan.seconds:.1f} s, seed "
        f"{plan.options.get('seed', 'unknown')}."
    )
    margins = table(
        [
            Column("quantity", words=True),
            Column("nearest joint", words=True),
            Column("margin", "", "distance to the limit, as a share of its range or in mm"),
            Column("how it is known", words=True),
        ],
        _margins(plan),
        caption="certificate: margins to every limit",
    )
    body = figure.html() + paragraph(remark, "remark") + margins
    return Section("excitation", TITLE, _sentence(plan), body, (figure,))


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


def _block(robot: Robot, time: Array, motion: list[Array], j: int) -> Block:
    limits = robot.limits
    bounds = [
        (float(limits.lower[j]), float(limits.upper[j])),
        *((-float(limit[j]), float(limit[j])) for limit in (limits.velocity, limits.acceleration)),
    ]
    unit = "m" if robot.joints[j].prismatic else "rad"
    panels = []
    for values, (low, high), name, rate in zip(motion, bounds, QUANTITIES, ("", "/s", "/s²"), strict=True):
        mine = values[:, j]
        known = [bound for bound in (low, high) if np.isfinite(bound)]
        traces = [line("predicted", time, mine, name="planned"), *(level(bound) for bound in known)]
        panels.append(
            Panel(
                unit + rate, traces, name=name, corner=_used(mine, low, high),
                y_range=span(np.append(mine, known), 0.1), x_range=[0.0, float(time[-1])], x_title="time [s]",
            )
        )  # fmt: skip
    return Block(robot.joint_names[j], [panels], (HEIGHT,))


def _used(values: Array, low: float, high: float) -> str:
    """Share of the limit that is used, counted from the middle of its range."""
    if np.ptp(values) == 0.0:
        return "at rest"
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return "no limit known"
    return f"{percent(float(np.max(np.abs(values - 0.5 * (low + high)))) / (0.5 * (high - low)))} of limit"
