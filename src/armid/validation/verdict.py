"""Good enough or not, by stated limits; and where not, what to change next, read off the error itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from armid.estimation.fit import Fit
from armid.validation.metrics import JointMetrics
from armid.validation.residuals import ResidualAnalysis

TELLING = 0.15  # share of the squared error from which a cause is named
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

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def failing(joints: Sequence[JointMetrics], limits: Thresholds) -> list[int]:
    """Indices of the joints that miss both limits; a joint that never moves is not judged."""
    return [
        index
        for index, joint in enumerate(joints)
        if np.isfinite(joint.nrms_moving)
        and joint.nrms_moving > limits.nrms_moving
        and not joint.noise_ratio <= limits.noise_ratio
    ]


def reasons_for(joints: Sequence[JointMetrics], limits: Thresholds, relative: float) -> list[str]:
    """Why the verdict is what it is, in sentences."""
    bad = failing(joints, limits)
    result = []
    for index in bad:
        joint = joints[index]
        noise = "its noise is unknown" if not np.isfinite(joint.noise_ratio) else f"{joint.noise_ratio:.1f}× the noise"
        result.append(
            f"{joint.name}: the error is {joint.nrms_moving:.1%} of the torque's spread while moving, above "
            f"{limits.nrms_moving:.0%}, and {noise}."
        )
    if limits.relative_error is not None and not relative <= limits.relative_error:
        result.append(f"The error of all joints is {relative:.1%} of their torque, above {limits.relative_error:.1%}.")
    if not result:
        moving = [joint.nrms_moving for joint in joints if np.isfinite(joint.nrms_moving)]
        worst = f"; the largest is {max(moving):.1%}" if moving else ""
        result.append(
            f"The error of every joint is at most {limits.nrms_moving:.0%} of its torque's spread while moving, or "
            f"{limits.noise_ratio:g}× the noise{worst}."
        )
    return result


def advice_for(
    fit: Fit, joints: Sequence[JointMetrics], looks: Sequence[ResidualAnalysis], bad: Sequence[int]
) -> list[str]:
    """What to change next (Swevers Fig. 2), the most telling cause of each failing joint first."""
    advice: list[str] = []
    for index in bad:
        look = looks[index]
        causes = [*_causes(fit, look, index), *_circumstances(joints[index], look)]
        causes = sorted(causes, key=lambda cause: -cause[0])
        for words in _named(causes) or [_unexplained(look)]:
            advice.append(f"{look.name}: {words}")
    if bad and fit.identifiability.poor:
        advice.append(
            f"The training data were poor (condition number {fit.identifiability.condition:.3g}): record a trajectory "
            "designed for this robot (armid design --given FIT), or give a prior (--prior)."
        )
    return advice


def _named(causes: Sequence[tuple[float, str]]) -> list[str]:
    """Words of the largest cause and of the next, unless that is the smaller name of what the first explains already.

    Causes overlap: with 92 % a function of velocity, 24 % that also look like a payload are no second finding.
    """
    telling = [cause for cause in causes if cause[0] >= TELLING][:2]
    if len(telling) == 2 and telling[1][0] > 1.0 - telling[0][0] and telling[1][0] < 0.5 * telling[0][0]:
        del telling[1]
    return [words for _, words in telling]


def _causes(fit: Fit, look: ResidualAnalysis, joint: int) -> list[tuple[float, str]]:
    """Pairs of the share explained and what to do about it."""
    richer = any(term.joint == joint for term in fit.terms)
    law = (
        "its friction has changed since the training data; train on data of the same day, after a warm-up"
        if richer or fit.options.get("friction") == "auto"
        else "let armid choose a richer friction law (--friction auto)"
    )
    excess = look.reversal_share - look.reversal_rows
    remedy = "zero the sensors" if _has_offset(fit, joint) else "add an offset to the friction law"
    lasting = float(look.time_s[-1] - look.time_s[0]) >= WARMING_S
    return [
        (
            look.velocity_share - look.bias_share,
            f"{look.velocity_share:.0%} of the error is a function of velocity: {law}.",
        ),
        (
            look.load_share,
            f"{look.load_share:.0%} of the error grows with the load along the motion: allow load-dependent friction "
            "(--friction auto), or check the torque's gain.",
        ),
        (
            look.bias_share,
            f"{look.bias_share:.0%} of the error is a constant {look.bias:+.3g} N m: the torque's zero or the payload "
            f"differs; {remedy}, or check what the arm carries.",
        ),
        (
            look.drift_share if lasting else 0.0,
            f"friction changes by {look.drift:+.3g} N m during the record ({look.drift_share:.0%} of the error): warm "
            "the arm up first (armid warmup).",
        ),
        (
            look.delay_share,
            f"{look.delay_share:.0%} of the error is a delay of {1e3 * look.delay_s:+.3g} ms: let armid estimate it "
            "(--friction auto), or shift the torque (step Shift).",
        ),
        (
            look.parameter_share,
            f"{look.parameter_share:.0%} of the error is expected from the parameters' own uncertainty: this motion "
            "needs parameters that the training data hardly show; design a new trajectory (armid design --given FIT).",
        ),
        (
            excess if look.reversal_rms > 1.5 * look.elsewhere_rms else 0.0,
            f"the error is {look.reversal_rms / max(look.elsewhere_rms, 1e-300):.1f}× larger near changes of direction "
            f"({look.reversal_share:.0%} of it lies there): no static friction law follows those; use trajectories "
            "with fewer reversals, or judge the moving parts alone.",
        ),
    ]


def _circumstances(joint: JointMetrics, look: ResidualAnalysis) -> list[tuple[float, str]]:
    """The same for what is not the model's: noise, payload, temperature."""
    noise = min(joint.noise_ratio**-2, 1.0) if joint.noise_ratio > 0.0 else 0.0
    mass = f" of {look.payload_mass:+.2g} kg" if np.isfinite(look.payload_mass) else ""
    warm = look.temperature_share if np.isfinite(look.temperature_share) else 0.0
    return [
        (
            noise,
            f"{noise:.0%} of the error is the noise of the torque itself, which no model predicts: average more "
            "periods, or compare at a lower frequency (--low-pass).",
        ),
        (
            look.payload_share,
            f"{look.payload_share:.0%} of the error is what another payload{mass} at the flange would cause: check "
            "what the arm carried in both records (armid payload FIT LOG tells it).",
        ),
        (
            warm,
            f"{warm:.0%} of the error goes with the temperature: train and validate on a warm arm (armid warmup).",
        ),
    ]


def _has_offset(fit: Fit, joint: int) -> bool:
    return bool(fit.robot.friction) and fit.robot.friction[joint].offset


def _unexplained(look: ResidualAnalysis) -> str:
    slow = f"lasts {look.memory_s:.2g} s" if look.memory_s > 0.0 else "is white"
    return (
        f"the error {slow} and follows neither velocity, load, time nor delay: check kinematics, gravity and springs "
        "of the description, or record a trajectory that moves this joint more."
    )
