"""What a payload estimate says to people: summary, verdict, notes and advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armid.robot.inertia import impossibility

if TYPE_CHECKING:
    from armid.payload.estimate import PayloadEstimate, Quantity

ABOVE_NOISE = 3.0  # times the noise that an error is before it is called the model's
ARM_LIMITS = 0.5  # share of the mass's variance above which the arm's fit is what limits
DISAGREES = 3.0  # standard deviations from the reference that are more than chance


def summary(payload: PayloadEstimate) -> str:
    """A page."""
    lines = [f"{payload.robot}: payload in the tool frame, 95 % intervals"]
    told = {row.name: row for row in payload.reference}
    for quantity in payload.quantities:
        line = _line(quantity)
        if quantity.name in told:
            row = told[quantity.name]
            line += f"   reference {row.reference:.4g}: {row.sigmas:.1f} σ" + ("" if row.within_2_sigma else "  ✗")
        lines.append(line)
    lines.append("inertia Ixx … Iyz is about the centre of mass; about the tool frame:")
    lines += [_line(quantity) for quantity in payload.about_frame[4:]]
    if told:
        inside = sum(row.within_2_sigma for row in payload.reference)
        lines.append(f"{inside} of {len(told)} reference values are within 2 σ")
    lines.append("error of torque while moving [N m], arm alone → with payload:")
    width = max(len(joint.name) for joint in payload.joints)
    for joint in payload.joints:
        if not joint.moved:
            lines.append(f"  {joint.name:<{width}}  at rest, took no part")
            continue
        noise = "" if np.isnan(joint.noise) else f"   noise {joint.noise:.3g}"
        lines.append(f"  {joint.name:<{width}}  {joint.rms_without:.3g} → {joint.rms_with:.3g}{noise}")
    lines += [*payload.notes, f"verdict: {'good' if payload.good else 'poor'}"]
    lines += [f"  {reason}" for reason in payload.reasons]
    lines += [f"advice: {line}" for line in payload.advice]
    return "\n".join(lines)


def _line(quantity: Quantity) -> str:
    if not np.isfinite(quantity.sigma):
        return f"  {quantity.name:<4} not to be told"
    interval = f"{_short(quantity.lower)} … {_short(quantity.upper)}"
    mark = "" if quantity.determined else "   not determined by these data"
    return f"  {quantity.name:<4} {quantity.value:>10.4g} {quantity.unit:<7} {interval:<20}{mark}"


def _short(value: float) -> str:
    return f"{value:.4g}"


def reasons_for(payload: PayloadEstimate) -> tuple[str, ...]:
    """Why the verdict is poor; empty for a good one."""
    mass = payload.quantities[0]
    sigma = float(np.sqrt(payload.covariance[0, 0]))
    free = float(payload.free[0])
    if free < -2.0 * sigma:
        return (f"the arm carries less than in its own fit ({free:.3g} ± {2 * sigma:.2g} kg): was a tool taken off?",)
    if free <= 2.0 * sigma:
        return (f"no payload is seen: the mass is {free:.3g} ± {2 * sigma:.2g} kg",)
    reasons = []
    half = 0.5 * (mass.upper - mass.lower)
    if half > payload.requirement.mass * mass.value:
        reasons.append(
            f"the mass is known to ±{100 * half / mass.value:.2g} %, and {100 * payload.requirement.mass:g} % are asked"
        )
    for quantity in payload.quantities[1:4]:
        half = 0.5 * (quantity.upper - quantity.lower)
        if half > payload.requirement.com_m:
            asked = f"{1e3 * payload.requirement.com_m:g} mm are asked"
            reasons.append(f"{quantity.name} is known to ±{1e3 * half:.2g} mm, and {asked}")
    for row in payload.reference:
        if row.sigmas > DISAGREES and not _near(payload, row.name, abs(row.value - row.reference)):
            reasons.append(f"{row.name} is {row.sigmas:.1f} σ from its reference {row.reference:.4g} {row.unit}")
    return tuple(reasons)


def _near(payload: PayloadEstimate, name: str, away: float) -> bool:
    """Whether a difference from the reference is small enough for what the payload is needed for."""
    if name == "m":
        return away <= payload.requirement.mass * payload.mass
    if name.startswith("c_"):
        return away <= payload.requirement.com_m
    # Inertia: what a centre of mass that is just good enough does to it.
    return away <= 2.0 * payload.mass * payload.requirement.com_m * max(float(np.linalg.norm(payload.com)), 0.1)


def notes_for(payload: PayloadEstimate, *, lag: int, rows: int, undetermined: Sequence[str]) -> tuple[str, ...]:
    """What was found."""
    notes = []
    changed = impossibility(payload.free) is not None
    if changed:
        notes.append("The estimate alone is no body that can exist; the nearest one that can is given.")
    open_ = [quantity.name for quantity in payload.quantities if not quantity.determined]
    if open_:
        notes.append(f"Not determined by these data: {', '.join(open_)}.")
    words = "white" if lag == 0 else f"correlated over about {lag} rows, which intervals account for"
    notes.append(f"{rows} rows; residuals are {words}.")
    scale = (payload.gain * payload.free[0]) ** 2 / max(float(payload.covariance[0, 0]), 1e-300)
    notes.append(
        f"Of the mass's variance the arm's own fit makes up {100 * payload.arm_share:.0f} %, the torque's scale, taken "
        f"to be known to {100 * payload.gain:g} %, {100 * scale:.0f} %."
    )
    loud = [j for j in payload.joints if j.moved and j.noise > 0.0 and j.rms_with > ABOVE_NOISE * j.noise]
    if loud:
        worst = max(loud, key=lambda joint: joint.rms_with / joint.noise)
        notes.append(
            f"The error of {worst.name} is {worst.rms_with / worst.noise:.2g} times the noise: friction or the arm's "
            "model dominate. What repeats with the motion is then in the payload too, and no interval knows of it."
        )
    if undetermined:
        names = ", ".join(undetermined[:5])
        notes.append(f"The arm's fit leaves {names} open; intervals do not count that.")
    return tuple(notes)


def advice_for(payload: PayloadEstimate, had_empty: bool) -> tuple[str, ...]:
    """What would help, where something is missing."""
    advice = []
    open_ = [quantity.name for quantity in payload.quantities if not quantity.determined]
    design = f"armid design {payload.robot} --parameters payload --joints … --box …"
    if any(name.startswith("I") for name in open_):
        advice.append(f"inertia shows when the payload turns fast: move the wrist faster ({design})")
    if any(name.startswith("c_") or name == "m" for name in open_):
        advice.append(f"turn the payload into more postures against gravity ({design})")
    if payload.reasons and not had_empty and payload.arm_share > ARM_LIMITS:
        advice.append(
            "the arm's own fit limits: repeat the motion without payload (--empty LOG), or identify it better"
        )
    elif payload.reasons and not open_:
        advice.append("average more periods, or use several trajectories")
    return tuple(advice)


WORDS = {
    "attached": "With a payload of {mass:.4g} kg attached; factor and identifiability are those of the arm alone.",
}
