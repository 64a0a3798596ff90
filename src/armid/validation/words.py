"""Sentences of validation's notes; advice names the joint first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armid.signals.problems import plural


def _joint(words: str) -> str:
    return "{joint}: " + words


def _plain(number: float, digits: int) -> str:
    """Some digits of a number, without powers of ten."""
    return f"{float(f'{number:.{digits}g}'):,.12g}"


def _poor_joint(joint: str, nrms_moving: float, limit: float, noise_ratio: float | None) -> str:
    noise = "its noise is unknown" if noise_ratio is None else f"{_plain(noise_ratio, 3)}× the noise"
    error = f"the error is {nrms_moving:.1%} of the torque's spread while moving, above {limit:.0%}"
    return f"{joint}: {error}, and {noise}."


def _good(limit: float, noise_ratio: float, largest: float | None) -> str:
    worst = "" if largest is None else f"; the largest is {largest:.1%}"
    head = f"Nothing speaks against the model; every joint's error is at most {limit:.0%} of its torque's spread"
    return f"{head} while moving, or {noise_ratio:g}× the noise{worst}."


def _velocity(joint: str, share: float, richer: bool) -> str:
    remedy = "let armid choose a richer friction law (--friction auto)"
    if richer:
        remedy = "its friction has changed since the training data; train on data of the same day, after a warm-up"
    return f"{joint}: {share:.0%} of the error is a function of velocity: {remedy}."


def _bias(joint: str, share: float, bias: float, offset: bool) -> str:
    remedy = "zero the sensors" if offset else "add an offset to the friction law"
    cause = f"{share:.0%} of the error is a constant {bias:+.3g} N m: the torque's zero or the payload differs"
    return f"{joint}: {cause}; {remedy}, or check what the arm carries."


def _delay(joint: str, share: float, delay_s: float) -> str:
    cause = f"{share:.0%} of the error is a delay of {1e3 * delay_s:+.3g} ms"
    return f"{joint}: {cause}: let armid estimate it (--friction auto), or shift the torque (step Shift)."


def _payload(joint: str, share: float, mass: float | None) -> str:
    what = "" if mass is None else f" of {mass:+.2g} kg"
    cause = f"{share:.0%} of the error is what another payload{what} at the flange would cause"
    return f"{joint}: {cause}: check what the arm carried in both records (armid payload FIT LOG estimates it)."


def _unexplained(joint: str, memory_s: float) -> str:
    slow = f"is correlated over {memory_s:.2g} s" if memory_s > 0.0 else "is white"
    return (
        f"{joint}: the error {slow} and follows neither velocity, load, time nor delay: check kinematics, gravity and "
        "springs of the description, or record a trajectory that moves this joint more."
    )


def _left_out(samples: int, start: int, end: int, inside: int, holes: int, reach_s: float) -> str:
    parts = [f"{start} at the start", f"{end} at the end"]
    parts += [f"{inside} around {plural(holes, 'hole')}"] if inside else []
    why = f"within {reach_s:.2g} s of an end or a hole the filter on the positions feels it"
    return f"Left out {samples} samples ({', '.join(parts)}): {why}."


def _nominal(joints: Sequence[tuple[str, float, float]]) -> str:
    each = ", ".join(f"{name} ({theirs:.1%} against {ours:.1%})" for name, ours, theirs in joints)
    return f"The nominal inertia, with friction of the same training data, predicts {each} better than the model."


def _other_payload(mass: float | None, share: float) -> str:
    what = "another payload" if mass is None else f"a payload of {mass:+.2g} kg"
    return f"At least {share:.0%} of each failing joint's error is {what}: the arm carried something else in training."


def _structure(joint: str, nrms_moving: float, noise_ratio: float, share: float, cause: str) -> str:
    goes = {"velocity": "is a function of velocity", "constant": "is a constant"}
    what = goes.get(cause, f"is in proportion to the {cause}")
    return (
        f"{joint}: the error is {nrms_moving:.1%} ({_plain(noise_ratio, 2)}× the noise), and {share:.0%} of it {what}."
    )


def _poor_training(condition: float, prior: bool = False) -> str:
    known = "a better prior" if prior else "a prior (--prior)"
    record = "record a trajectory designed for this robot (armid design --given FIT)"
    return f"The training data were poor (condition number {condition:.3g}): {record}, or give {known}."


WORDS: dict[str, Any] = {
    "poor_joint": _poor_joint,
    "training_data": "The model was made from some of these data, so that they prove nothing about other motion.",
    "unmoved": lambda joints: f"Nothing is proved of {', '.join(joints)}, which did not move or has no effort.",
    "at_reversals": _joint("around changes of direction the error is {rms:.3g} N m, above {limit:.2g} N m."),
    "at_standstill": _joint("at rest, {rms:.3g} N m are beyond what friction can hold, above {limit:.2g} N m."),
    "coverage": _joint(
        "{coverage:.0%} of the moving rows lie within the stated 95 % interval of a sample, below {limit:.0%}."
    ),
    "other_payload": _other_payload,
    "other_gain": _joint(
        "the measured torque is {gain:.2f} times the model's ({share:.0%} of the error): gains of the torque differ."
    ),
    "structure": _structure,
    "training_misfit": _joint(
        "the training data are predicted worse ({training:.3g} N m) than these ({rms:.3g} N m): check their torque."
    ),
    "weight_gain": _joint(
        "its torque is {gain:.2f} ± {half:.2f} times what the other joints say of the weight: check the torque's gain."
    ),
    "reference": "{name}: the reference {reference:.4g} lies outside of {value:.4g} ± {half:.2g}.",
    "nominal": _nominal,
    "friction_power": _joint("friction drives the joint ({torque:.2g} N m at {speed:.2g} rad/s), beyond its interval."),
    "friction_growth": _joint(
        "friction grows to {torque:.3g} N m towards rest; the slowest data ({slowest:.2g} rad/s) show {there:.2g} N m."
    ),
    "link_mass": "{link}: a mass of {value:.4g} kg is implausible for this arm; {plausible:.2g} kg would be usual.",
    "link_centre": "{link}: its centre of mass is {value:.2g} m from the link's middle; it may be {plausible:.2g} m.",
    "link_radius": "{link}: a radius of gyration of {value:.2g} m is implausible; it may be {plausible:.2g} m.",
    "total_mass": "The links weigh {mass:.3g} kg together, {nominal:.3g} kg by the description.",
    "outside": _joint("{share:.0%} of the rows are at positions that the training data do not have."),
    "faster": _joint("moves at up to {speed:.2g} rad/s here, but at {trained:.2g} rad/s in the training data."),
    "poor_arm": "The error of all joints is {relative_error:.1%} of their torque.",
    "good": _good,
    "velocity": _velocity,
    "load": _joint(
        "{share:.0%} of the error grows with the load along the motion: allow load-dependent friction (--friction "
        "auto), or check the torque's gain."
    ),
    "bias": _bias,
    "drift": _joint(
        "friction changes by {drift:+.3g} N m during the record ({share:.0%} of the error): warm the arm up first "
        "(armid warmup)."
    ),
    "delay": _delay,
    "parameters": _joint(
        "{share:.0%} of the error is expected from the parameters' own uncertainty: this motion needs parameters that "
        "the training data hardly show; design a new trajectory (armid design --given FIT)."
    ),
    "reversals": _joint(
        "the error is {times:.1f}× larger near changes of direction ({share:.0%} of it lies there): no static friction "
        "law follows those; use trajectories with fewer reversals, or judge the moving parts alone."
    ),
    "noise": _joint(
        "{share:.0%} of the error is the noise of the torque itself, which no model predicts: average more periods, or "
        "compare at a lower frequency (--low-pass)."
    ),
    "payload": _payload,
    "temperature": _joint(
        "{share:.0%} of the error goes with the temperature: train and validate on a warm arm (armid warmup)."
    ),
    "unexplained": _unexplained,
    "poor_training": _poor_training,
    "left_out": _left_out,
}
