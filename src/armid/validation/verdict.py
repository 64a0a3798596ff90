"""Good enough or not, by stated limits; and where not, what to change next, read off the error itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.estimation.fit import Fit
from armid.notes import Note, note
from armid.validation.metrics import JointMetrics
from armid.validation.residuals import ResidualAnalysis

TELLING = 0.15  # share of the squared error from which a cause is named
Cause = tuple[float, str, dict[str, Any]]  # how much it counts, the name of its note, the note's values
WARMING_S = 60.0  # a shorter record cannot show that grease warms up


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What counts as good.

    A joint is good when its error while moving is at most a tenth of the torque's spread (computed torque then leaves
    the feedback a tenth of the work), or at most twice the noise (where torque is small, noise is all one can ask for;
    Swevers' Table 1 has ratios up to 2).

    Attributes:
        nrms_moving: largest rms error over the torque's standard deviation, moving.
        noise_ratio: largest rms error over the noise; a joint needs one of the two.
        relative_error: largest error of all joints together over all torque, moving; None for no such limit.
    """

    nrms_moving: float = 0.10
    noise_ratio: float = 2.0
    relative_error: float | None = None


def failing(joints: Sequence[JointMetrics], limits: Thresholds) -> list[int]:
    """Indices of the joints that miss both limits; a joint that never moves is not judged."""
    return [
        index
        for index, joint in enumerate(joints)
        if np.isfinite(joint.nrms_moving)
        and joint.nrms_moving > limits.nrms_moving
        and not joint.noise_ratio <= limits.noise_ratio
    ]


def reasons_for(joints: Sequence[JointMetrics], limits: Thresholds, relative: float) -> list[Note]:
    """Why the verdict is what it is."""
    result = []
    for index in failing(joints, limits):
        joint = joints[index]
        noise = joint.noise_ratio if np.isfinite(joint.noise_ratio) else None
        given = {"nrms_moving": joint.nrms_moving, "limit": limits.nrms_moving, "noise_ratio": noise}
        result.append(note("validation.poor_joint", joint=joint.name, **given))
    if limits.relative_error is not None and not relative <= limits.relative_error:
        result.append(note("validation.poor_arm", relative_error=relative, limit=limits.relative_error))
    if not result:
        largest = max((joint.nrms_moving for joint in joints if np.isfinite(joint.nrms_moving)), default=None)
        given = {"limit": limits.nrms_moving, "noise_ratio": limits.noise_ratio, "largest": largest}
        result.append(note("validation.good", **given))
    return result


def advice_for(
    fit: Fit, joints: Sequence[JointMetrics], looks: Sequence[ResidualAnalysis], bad: Sequence[int]
) -> list[Note]:
    """What to change next (Swevers Fig. 2), the most telling cause of each failing joint first."""
    advice: list[Note] = []
    for index in bad:
        look = looks[index]
        causes = sorted(_causes(fit, joints[index], look, index), key=lambda cause: -cause[0])
        found = telling(causes) or [(0.0, "unexplained", {"memory_s": look.memory_s})]
        advice += [note(f"validation.{name}", joint=look.name, **values) for _, name, values in found]
    if bad and fit.identifiability.poor:
        advice.append(note("validation.poor_training", condition=fit.identifiability.condition))
    return advice


def telling(causes: Sequence[Cause]) -> list[Cause]:
    """The largest cause and the next, unless that is the smaller name of what the first explains already.

    Causes overlap: with 92 % a function of velocity, 24 % that also look like a payload are no second finding.
    """
    found = [cause for cause in causes if cause[0] >= TELLING][:2]
    if len(found) == 2 and found[1][0] > 1.0 - found[0][0] and found[1][0] < 0.5 * found[0][0]:
        del found[1]
    return found


def _causes(fit: Fit, joint: JointMetrics, look: ResidualAnalysis, index: int) -> list[Cause]:
    """What may explain the error."""
    richer = fit.options.get("friction") == "auto" or any(term.joint == index for term in fit.terms)
    offset = bool(fit.robot.friction) and fit.robot.friction[index].offset
    lasting = float(look.time_s[-1] - look.time_s[0]) >= WARMING_S
    at_reversals = look.reversal_rms > 1.5 * look.elsewhere_rms
    times = look.reversal_rms / max(look.elsewhere_rms, 1e-300)
    noise = min(joint.noise_ratio**-2, 1.0) if joint.noise_ratio > 0.0 else 0.0
    mass = look.payload_mass if np.isfinite(look.payload_mass) else None
    warm = look.temperature_share if np.isfinite(look.temperature_share) else 0.0
    return [
        (look.velocity_share - look.bias_share, "velocity", {"share": look.velocity_share, "richer": richer}),
        (look.load_share, "load", {"share": look.load_share}),
        (look.bias_share, "bias", {"share": look.bias_share, "bias": look.bias, "offset": offset}),
        (look.drift_share if lasting else 0.0, "drift", {"share": look.drift_share, "drift": look.drift}),
        (look.delay_share, "delay", {"share": look.delay_share, "delay_s": look.delay_s}),
        (look.parameter_share, "parameters", {"share": look.parameter_share}),
        (
            look.reversal_share - look.reversal_rows if at_reversals else 0.0,
            "reversals",
            {"share": look.reversal_share, "times": times},
        ),
        (noise, "noise", {"share": noise}),
        (look.payload_share, "payload", {"share": look.payload_share, "mass": mass}),
        (warm, "temperature", {"share": warm}),
    ]
