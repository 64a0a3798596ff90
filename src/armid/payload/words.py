"""Sentences of a payload's verdict, notes and advice."""

from __future__ import annotations

from typing import Any


def _listed(words: str) -> Any:
    return lambda names: words.format(names=", ".join(names))


def _rows(rows: int, lag: int) -> str:
    words = "white" if lag == 0 else f"correlated over about {lag} rows, which intervals account for"
    return f"{rows} rows; residuals are {words}."


def _shares(arm_share: float, gain: float, gain_share: float) -> str:
    return (
        f"Of the mass's variance the arm's own fit makes up {100 * arm_share:.0f} %, drive gains, taken to be "
        f"known to {100 * gain:g} %, {100 * gain_share:.0f} %."
    )


def _design(words: str) -> str:
    return words + " (armid design ROBOT --parameters payload --joints … --box …)"


WORDS: dict[str, Any] = {
    # reasons
    "negative": (
        "the arm carries less than in its own fit ({mass:.3g} ± {half:.2g} kg): was a tool taken off?"
    ),
    "none": "no payload is seen: the mass is {mass:.3g} ± {half:.2g} kg",
    "mass": lambda half, asked: f"the mass is known to ±{100 * half:.2g} %; {100 * asked:g} % is required",
    "com": lambda name, half_m, asked_m: (
        f"{name} is known to ±{1e3 * half_m:.2g} mm; {1e3 * asked_m:g} mm is required"
    ),
    "worse": (
        "a body on the last link makes the error of {joint} larger, {without:.2g} → {with_payload:.2g}: perhaps "
        "another link carries it; then identify and use the arm up to that link (--links, --joints)"
    ),
    "reference": "{name} is {sigmas:.1f} σ from its reference {reference:.4g} {unit}",
    # notes
    "nearest": "The estimate alone is not physically consistent; the nearest body that is consistent is given.",
    "undetermined": _listed("Not determined by these data: {names}."),
    "rows": _rows,
    "shares": _shares,
    "above_noise": (
        "The error of {joint} is {ratio:.2g} times the noise: friction or the arm's model dominate. What repeats with "
        "the motion is then in the payload too, and no interval knows of it."
    ),
    "arm_open": _listed("The arm's fit leaves {names} open; intervals do not count that."),
    "attached": "With a payload of {mass:.4g} kg attached; factor and identifiability are those of the arm alone.",
    # advice
    "gains": (
        "drive gains limit: find them with a known load (armid gains ROBOT LOG… --load LOAD LOG…), or say how well "
        "they are known (gain_uncertainty of the recipe, --gain)"
    ),
    "faster": _design("inertia shows when the payload turns fast: move the wrist faster"),
    "postures": _design("turn the payload into more postures against gravity"),
    "empty": "the arm's own fit limits: repeat the motion without payload (--empty LOG), or identify it better",
    "longer": "average more periods, or use several trajectories",
}  # fmt: skip
