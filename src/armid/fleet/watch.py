"""The watch list: which arms to look at, and why, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import hypot
from typing import Any

from armid.fleet.changes import Change, Payload
from armid.fleet.result import plain
from armid.fleet.watched import PAYLOAD, Watched, in_words

ORDER = ("sign", "dead", "payload", "misfit", "data", "friction", "load", "offset", "reversal", "unusual")
WRONG = {"sign": "torque of joint {} has the wrong sign", "dead": "torque of joint {} is dead"}
SHOWN = 4  # parameters that the sentence about an unusual arm names
PUT_DOWN, PUT_DOWN_SIGMA = 0.2, 3.0  # of a mass that is left; or of its standard deviation: then it was put down again


@dataclass(frozen=True)
class Watch:
    """One reason to look at one arm.

    Attributes:
        arm: its name.
        kind: see `armid.fleet.result`.
        sentence: for people.
        since, until: dates; `until` is None if it lasts.
        joint: number, from 1; None if it is of no single joint.
        parameter: watched quantity; None if it is of none.
        shape: ``step`` or ``ramp``; None if it is of neither.
        size, size_sigma: of a step, or per day of a ramp; None if there is none.
        unit: of the size; ``1`` for a share.
        score: how sure, in standard deviations; None where that has no meaning.
    """

    arm: str
    kind: str
    sentence: str
    since: str | None = None
    until: str | None = None
    joint: int | None = None
    parameter: str | None = None
    shape: str | None = None
    size: float | None = None
    size_sigma: float | None = None
    unit: str | None = None
    score: float | None = None

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        numbers = {name: getattr(self, name) for name in ("size", "size_sigma", "score")}
        return {**asdict(self), **{name: None if one is None else plain(one, 4) for name, one in numbers.items()}}


def ordered(entries: Sequence[Watch]) -> list[Watch]:
    """The most pressing first: what makes data wrong, then changes by how sure they are."""
    return sorted(entries, key=lambda one: (ORDER.index(one.kind), -(one.score or 0.0), one.arm, one.since or ""))


def change_entries(
    arm: str, changes: Sequence[tuple[Change, str, Payload | None]], watched: Sequence[Watched], dates: Sequence[str]
) -> list[Watch]:
    """All changes of an arm; a payload that is put down again is one entry, with its last day."""
    entries = [change_entry(arm, one, watched[one.watched], since, payload) for one, since, payload in changes]
    loads = sorted(
        (one for one in entries if one.kind == PAYLOAD and one.shape == "step"), key=lambda one: str(one.since)
    )
    for up, down in pairwise(loads):
        if up in entries and _put_down(up, down):
            last = max(date for date in dates if date < str(down.since))
            words = f"carried about {up.size:.2g} kg that nobody told of {_when(str(up.since), last)}"
            entries[entries.index(up)] = replace(up, sentence=words, until=last)
            entries.remove(down)
    return entries


def _put_down(up: Watch, down: Watch) -> bool:
    """Whether about nothing is left of a payload after the second change."""
    first, second, errors = (float(one or 0.0) for one in (up.size, down.size, up.size_sigma))
    errors = float(hypot(errors, down.size_sigma or 0.0))
    return first > 0.0 > second and abs(first + second) < max(PUT_DOWN * first, PUT_DOWN_SIGMA * errors)


def change_entry(arm: str, change: Change, one: Watched, since: str, payload: Payload | None) -> Watch:
    """A change of a watched quantity; the mass of a payload is better known than the change says."""
    size, sigma = (change.size, change.sigma) if payload is None else (payload.mass, payload.sigma)
    unit = "1" if one.relative else one.unit
    if one.name == PAYLOAD:
        sentence = _payload(size, change.shape, since)
    else:
        sentence = f"{one.what} {_course(size, change.shape, one)} since {since}"
    joint = None if one.joint is None else one.joint + 1
    return Watch(
        *(arm, one.kind, sentence, since, None, joint, one.name),
        *(change.shape, size, sigma, unit, change.score),
    )


def reversal_entry(arm: str, change: Change, since: str) -> Watch:
    """Residuals at reversals that have grown."""
    sentence = (
        f"residuals of joint {change.watched + 1} just after reversals are {1.0 + change.size:.2g} times what they "
        f"were since {since}: play in the gear?"
    )
    return Watch(
        *(arm, "reversal", sentence, since, None, change.watched + 1, f"reversal{change.watched + 1}"),
        *("step", change.size, change.sigma, "1", change.score),
    )


def torque_entries(arm: str, found: dict[tuple[str, int], list[str]], dates: Sequence[str]) -> list[Watch]:
    """Torques with the wrong sign, or dead: dates by kind and joint."""
    return [
        Watch(arm, kind, f"{WRONG[kind].format(joint + 1)} {_when(since, until)}", since, until, joint + 1)
        for (kind, joint), on in found.items()
        for since, until in runs(on, dates)
    ]


def finding_entries(arm: str, found: dict[tuple[str, int | None, str], list[str]], dates: Sequence[str]) -> list[Watch]:
    """What the log doctor said."""
    return [
        Watch(arm, kind, f"{words} {_when(since, until)}", since, until, None if joint is None else joint + 1)
        for (kind, joint, words), on in found.items()
        for since, until in runs(on, dates)
    ]


def exchanged_entries(arm: str, joints: Sequence[str], on: Sequence[str], dates: Sequence[str]) -> list[Watch]:
    """Days on which torques are one another's."""
    return [
        Watch(arm, "misfit", f"{exchanged_words(joints)} {_when(since, until)}", since, until)
        for since, until in runs(on, dates)
    ]


def exchanged_words(joints: Sequence[str]) -> str:
    """Which torques look exchanged, by the names of their joints."""
    return f"torques of {' and '.join(joints)} look exchanged"


def misfit_entries(arm: str, found: Mapping[str, tuple[int, float]], dates: Sequence[str]) -> list[Watch]:
    """Days that nothing else explains: joint and times the noise by date; days in a row are told together."""
    entries = []
    for since, until in runs(list(found), dates):
        last = dates[-1] if until is None else until
        joint, times = max((one for date, one in found.items() if since <= date <= last), key=lambda one: one[1])
        upto = "" if last == since else "up to "
        sentence = f"{misfit_words(joint)} {_when(since, until)} ({upto}{times:.2g} times the noise)"
        entries.append(Watch(arm, "misfit", sentence, since, until, joint + 1, size=times, unit="1"))
    return entries


def misfit_words(joint: int) -> str:
    """What is wrong on a day that nothing explains."""
    return f"torque of joint {joint + 1} does not fit the arm's own model"


def unfit_entry(arm: str, joint: int, times: float) -> Watch:
    """An arm that no one model fits: its days count all the same, since none is better than the others."""
    sentence = (
        f"more than half of its days do not fit one model of the arm (torque of joint {joint + 1}: up to {times:.2g} "
        "times the noise)"
    )
    return Watch(arm, "misfit", sentence, joint=joint + 1, size=times, unit="1")


def unusual_entry(arm: str, names: Sequence[str], deviations: Sequence[float]) -> Watch:
    """An arm that is not like the others."""
    parts = [_part(name, f"{far:+.1f} standard deviations") for name, far in zip(names, deviations, strict=True)]
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    sentence = f"is unlike the other arms in {', '.join(parts[:SHOWN])}{more}"
    return Watch(arm, "unusual", sentence, parameter=names[0], score=abs(deviations[0]))


def _part(name: str, far: str) -> str:
    words = in_words(name)
    return f"{words} ({name}, {far})" if words else f"{name} ({far})"


def runs(on: Sequence[str], dates: Sequence[str]) -> list[tuple[str, str | None]]:
    """Stretches of days of an arm on which something holds: first day, and last day or None if it lasts."""
    marked = [day in set(on) for day in dates]
    found: list[tuple[str, str | None]] = []
    for index, day in enumerate(dates):
        if marked[index] and (index == 0 or not marked[index - 1]):
            last = next((i for i in range(index, len(dates)) if not marked[i]), len(dates)) - 1
            found.append((day, None if last == len(dates) - 1 else dates[last]))
    return found


def _when(since: str, until: str | None) -> str:
    return f"since {since}" if until is None else f"on {since}" if until == since else f"from {since} to {until}"


def _two_digits(value: float) -> str:
    """Two significant digits: 360, not 3.6e+02."""
    return f"{float(f'{value:.2g}'):g}"


def _course(size: float, shape: str, one: Watched) -> str:
    amount = f"{_two_digits(100.0 * abs(size))} %" if one.relative else f"{_two_digits(abs(size))} {one.unit}"
    if shape == "ramp":
        return f"{'rises' if size > 0.0 else 'falls'} by {amount} a day"
    return f"is {amount} {'higher' if size > 0.0 else 'lower'}"


def _payload(size: float, shape: str, since: str) -> str:
    if shape == "ramp":
        return f"mass in the hand {'grows' if size > 0.0 else 'shrinks'} by {abs(size):.2g} kg a day since {since}"
    if size > 0.0:
        return f"carries about {size:.2g} kg that nobody told of since {since}"
    return f"has been about {-size:.2g} kg lighter in the hand since {since} than before"
