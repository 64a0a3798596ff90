"""Friction curves, with what the held-out data leave for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.figures import Block, Figure, Panel, band, line, span, thinned
from armid.reporting.evidence import Evidence, units_of
from armid.reporting.html import Section, lacking, paragraph
from armid.reporting.numbers import short
from armid.validation.comparison import friction_curve

TITLE = "Friction"
POINTS = 500
GRID = 121
HEIGHT = 150.0


@dataclass(frozen=True, eq=False)
class FrictionCurve:
    """Friction of one joint over velocity, with the interval that follows from its coefficients."""

    velocity: Array
    torque: Array
    reach: Array


def friction(evidence: Evidence) -> Section | None:
    """One panel per joint; points are the measured torque less everything else the model predicts."""
    fit, check = evidence.fit, evidence.check
    if not fit.friction_columns().any() and fit.known_torque is None:
        return lacking("friction", TITLE, "The description states no friction law (armid identify --friction auto).")
    reach = _speeds(evidence)
    curves = [curve(fit, j, speed) for j, speed in enumerate(reach)]
    blocks = [_block(evidence, curves[j], j) for j in range(fit.robot.n_joints)]
    legend = {"predicted": "identified friction, 95 %"}
    if check is not None:
        kind = "training data" if check.same_as_training else "held-out"
        legend["measured dots"] = f"measured torque less all the rest of the model ({kind})"
    if evidence.truth is not None:
        legend["nominal"] = "true friction of the virtual arm, warm"
    figure = Figure(
        name="friction", blocks=blocks, caption="friction torque of each joint over its velocity", legend=legend,
        held_out=check is not None and not check.same_as_training, across=3,
    )  # fmt: skip
    parts: list[str | Figure] = [figure]
    loads = [name for term in fit.terms if term.loaded for name in term.names]
    if loads:
        remark = f"Friction in proportion to the load ({', '.join(loads)}) depends on posture; it is left out of the "
        parts.append(paragraph(f"{remark}curves and of the points.", "remark"))
    if fit.friction_lag_s is not None and np.any(fit.friction_lag_s):
        late = int(np.argmax(fit.friction_lag_s))
        lag = f"{short(1e3 * float(fit.friction_lag_s[late]), 2)} ms ({fit.robot.joint_names[late]})"
        parts.append(paragraph(f"At reversals friction changes sides up to {lag} after the motion does.", "remark"))
    return Section("friction", TITLE, _sentence(fit, curves), parts)


def curve(fit: Fit, joint: int, speed: float) -> FrictionCurve:
    """Friction of a joint at velocities up to `speed` either way, without what depends on the load."""
    half = np.linspace(1e-3, 1.0, GRID // 2) ** 1.5 * speed  # dense at low speed, where it bends
    velocity = np.concatenate([-half[::-1], half])
    torque, sigma = friction_curve(fit, joint, velocity)
    return FrictionCurve(velocity, torque, 1.96 * sigma)


def _speeds(evidence: Evidence) -> list[float]:
    """Greatest speed of each joint that is shown [rad/s]."""
    robot, check = evidence.fit.robot, evidence.check
    if check is not None:
        seen = np.abs(check.series.velocity).max(axis=0)
        return [float(value) if value > 0.0 else 1.0 for value in seen]
    return [float(value) if np.isfinite(value) else 1.0 for value in robot.limits.velocity]


def _sentence(fit: Fit, curves: list[FrictionCurve]) -> str:
    middle = len(curves[0].velocity) // 2
    low = [0.5 * float(c.torque[middle] - c.torque[middle - 1]) for c in curves]
    high = [0.5 * float(c.torque[-1] - c.torque[0]) for c in curves]
    most = int(np.argmax(high))
    name, (unit, speed) = fit.robot.joint_names, units_of(fit.robot, most)
    words = (
        f"{name[most]} loses most to friction, {short(high[most])} {unit} at "
        f"{short(float(curves[most].velocity[-1]), 2)} {speed}, of which {short(low[most])} {unit} remain at the "
        "lowest speeds"
    )
    falling = [name[j] for j in range(len(curves)) if _falls(curves[j])]
    return f"{words}; it falls with speed at first in {', '.join(falling)}." if falling else f"{words}."


def _falls(c: FrictionCurve) -> bool:
    """Whether friction has a minimum at some speed (Stribeck)."""
    positive = c.torque[len(c.torque) // 2 :]
    lowest = int(np.argmin(positive))
    return lowest > 0 and bool(positive[0] - positive[lowest] > c.reach.max())


def _block(evidence: Evidence, c: FrictionCurve, j: int) -> Block:
    fit, check = evidence.fit, evidence.check
    traces = [band("predicted", c.velocity, c.torque - c.reach, c.torque + c.reach)]
    shown = [c.torque]
    if check is not None:
        rows = thinned(len(check.series.time), POINTS)
        velocity = check.series.velocity[rows, j]
        error = (check.series.measured - check.series.predicted)[rows, j]
        points = np.interp(velocity, c.velocity, c.torque) + error
        traces.append(line("measured", velocity, points, mode="markers", size=2.5, faint=True))
        shown.append(points)
    traces.append(line("predicted", c.velocity, c.torque, name="identified friction"))
    if evidence.truth is not None:
        law, coefficients = evidence.truth.friction[j]
        traces.append(line("nominal", c.velocity, law.torque(c.velocity, coefficients), name="true friction"))
    unit, speed = units_of(fit.robot, j)
    panel = Panel(
        unit, traces, y_range=span(np.concatenate(shown)), x_range=span(c.velocity, 0.02),
        x_title=f"velocity [{speed}]",
    )  # fmt: skip
    return Block(fit.robot.joint_names[j], [[panel]], (HEIGHT,))
