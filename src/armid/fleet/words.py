"""Sentences about fleets: what is wrong with an arm, by code, and how numbers, sizes and days are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from armid.signals.problems import plural

WORTH_AN_ERROR = 0.1  # of a mass, from which on its standard deviation is in the sentence
SHOWN = 4  # parameters that the sentence about an unusual arm names
#: Parameters of links and rotors, by what their names begin with; longer beginnings first.
PARAMETERS = {
    "Im": "rotor inertia of joint",
    "I": "inertia of link",
    **dict.fromkeys(("mx", "my", "mz"), "first moment of link"),
    "m": "mass of link",
}


def when(since: str, until: str | None) -> str:
    """Days from the first to the last."""
    return f"since {since}" if until is None else f"on {since}" if until == since else f"from {since} to {until}"


def two_digits(value: float) -> str:
    """Two significant digits: 360, not 3.6e+02."""
    return f"{float(f'{value:.2g}'):g}"


def _amount(size: float, unit: str) -> str:
    return f"{two_digits(100.0 * abs(size))} %" if unit == "1" else f"{two_digits(abs(size))} {unit}"


def _step(what: str, size: float, unit: str, **_: Any) -> str:
    return f"{what} is {_amount(size, unit)} {'higher' if size > 0.0 else 'lower'}"


def _ramp(what: str, size: float, unit: str, **_: Any) -> str:
    return f"{what} {'rises' if size > 0.0 else 'falls'} by {_amount(size, unit)} a day"


def _mass(size: float, sigma: float | None) -> str:
    """With its standard deviation, where that matters."""
    error = "" if sigma is None or sigma < WORTH_AN_ERROR * abs(size) else f" ± {two_digits(sigma)}"
    return f"{two_digits(abs(size))}{error} kg"


def _payload(size: float, size_sigma: float | None = None, put_down: bool = False, **_: Any) -> str:
    if size > 0.0:
        return f"{'carried' if put_down else 'carries'} about {_mass(size, size_sigma)} of unreported payload"
    return f"is about {_mass(size, size_sigma)} lighter in the hand than before"


def _payload_ramp(size: float, size_sigma: float | None = None, **_: Any) -> str:
    return f"mass in the hand {'grows' if size > 0.0 else 'shrinks'} by {_mass(size, size_sigma)} a day"


def _reversal(joint: int, size: float, **_: Any) -> str:
    times = f"{1.0 + size:.2g} times what they were"
    return f"residuals of joint {joint} just after reversals are {times} (play in the gear?)"


def _times(size: float | None, days: int) -> str:
    return "" if size is None else f" ({'up to ' if days != 1 else ''}{size:.2g} times the noise)"


def _misfit(joint: int, size: float | None = None, days: int = 1, **_: Any) -> str:
    return f"torque of joint {joint} does not fit the arm's own model{_times(size, days)}"


def _clock(days_off: int, **_: Any) -> str:
    return f"the recorder's clock is {plural(abs(days_off), 'day')} {'behind' if days_off < 0 else 'ahead'}"


def in_words(name: str) -> str:
    """What a parameter is: ``Izz2R`` is an inertia of link 2; empty if there are no words for it."""
    found = re.fullmatch(r"([A-Za-z]+)(\d+)R?", name)
    starts = () if found is None else (words for start, words in PARAMETERS.items() if found[1].startswith(start))
    return next((f"{words} {found[2]}" for words in starts if found), "")


def _unusual(names: Sequence[str], deviations: Sequence[float], watched: Mapping[str, str], **_: Any) -> str:
    parts = []
    for name, far in zip(names, deviations, strict=True):
        words, size = watched.get(name) or in_words(name), f"{far:+.1f} standard deviations"
        parts.append(f"{words} ({name}, {size})" if words else f"{name} ({size})")
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return f"is unlike the other arms in {', '.join(parts[:SHOWN])}{more}"


def _same_file(robot: str, date: str, file: str, whole: bool) -> str:
    then = "so the whole day is left out" if whole else "and counts on both days; remove one of them"
    return f"is the same file as {robot} {date} {file}, {then}"


PLAIN = (
    "Listed all the same, without that promise: wrong signs, dead channels, bad recordings, and days that do not fit "
    "their arm, where with few days the others may be the odd ones."
)


def one_in(rate: float) -> str:
    """A rate of false alarms as people say it."""
    return f"one false alarm in {1.0 / rate:.0f} arm-days"


def _promised(asked: float, threshold: float, freedom: float, scores: int, spread: float, **_: Any) -> str:
    wide = f"; errors count {spread:.2g} times what noise and usual changes explain" if spread > 1.1 else ""
    return (
        f"At most {one_in(asked)}: {scores} independent scores of this fleet show tails no heavier than those of "
        f"Student's t with {freedom:.3g} degrees of freedom{wide}. A change is reported from {threshold:.2g} "
        "standard deviations."
    )


def _too_few(asked: float, scores: int, needed: int, **_: Any) -> str:
    return (
        f"At most {one_in(asked)} cannot be promised yet, so no change is reported: {scores} independent scores do not "
        f"tell how far sound arms scatter, {needed} are needed; more days or more arms give them. {PLAIN}"
    )


def _heavy_tails(asked: float, freedom: float, spread: float, instead: float | None, **_: Any) -> str:
    what = (
        f"tails of its scores may be as heavy as Student's t with {freedom:.2g} degrees of freedom, so that errors "
        f"count {spread:.2g} times what noise and usual changes explain"
    )
    could = f" At most {one_in(instead)} could be: --false-alarms {instead:g}." if instead else ""
    return f"At most {one_in(asked)} cannot be promised on this fleet, so no change is reported: {what}.{could} {PLAIN}"


#: By code; the codes with a hyphen are those of the log doctor.
WORDS = {
    "step": _step,
    "ramp": _ramp,
    "payload": _payload,
    "payload_ramp": _payload_ramp,
    "reversal": _reversal,
    "sign": "torque of joint {joint} has the wrong sign",
    "dead": "torque of joint {joint} is dead",
    "exchanged": lambda names, **_: f"torques of {' and '.join(names)} look exchanged",
    "motion": lambda names, **_: f"positions and velocities of {' and '.join(names)} look exchanged",
    "misfit": _misfit,
    "unfit": "half of its days or more do not fit one model of the arm (torque of joint {joint}: up to {size:.2g} "
    "times the noise)",
    "loud": "its model fits far worse than those of the other arms (residuals of joint {joint} are {size:.2g} times "
    "theirs)",
    "unusual": _unusual,
    "dead-channel": "{channel} of joint {joint} is dead",
    "mostly-zero": "{channel} of joint {joint} is zero most of the time",
    "degrees": "positions are in degrees, not in radians",
    "time-unit": "time is in another unit",
    "rate-differs": "the stated rate contradicts the timestamps",
    "clock-jump": _clock,
    "copied-file": "{file} is a copy of {original} and does not count",
    "same-file": _same_file,
    "days": "{days} days, {first} to {last}; intervals account for residuals that are correlated in time and for what "
    "usually changes from day to day.",
    "left-out": "Days from {since} on are left out: {what} changed on that day.",
    "not-consistent": "No physically consistent fit: {error}.",
    "promised": _promised,
    "too-few-scores": _too_few,
    "heavy-tails": _heavy_tails,
    "no-effect": "no {kind} faults are planted: they would have no effect",
}
