"""Sentences of the notes that signal processing leaves, from notes.yaml; the doctor's are in doctor/findings.yaml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from string import Formatter
from typing import Any

import yaml

from armid.errors import UnknownNameError
from armid.notes import Note
from armid.signals.problems import plural

SHOWN = 10  # numbers of periods that a note lists


class _Words(Formatter):
    """`str.format` with more kinds of fields, for sentences about numbers.

    ``{x:n sample}`` is "1 sample" or "3 samples"; ``{x:is|are}`` the first word for 1 and true, else the second;
    ``{x:ms.3g}`` the magnitude in milliseconds; ``{x:plain}`` three digits (``plain2``: two) without powers of ten;
    ``{x:list}`` items with commas between them, ``{x:vector}`` numbers with blanks; ``{x:told}`` the sentence of a
    note.
    """

    def format_field(self, value: Any, format_spec: str) -> str:
        """One field."""
        if format_spec.startswith("n "):
            return plural(value, format_spec[2:])
        if "|" in format_spec:
            return format_spec.split("|")[0 if value == 1 else 1]
        if format_spec.startswith("ms"):
            return f"{float(format(1e3 * abs(value), format_spec[2:])):.12g}"  # 180, not 1.8e+02
        if format_spec.startswith("plain"):
            return f"{float(format(value, f'.{format_spec[5:] or 3}g')):.12g}"
        if format_spec == "list":
            return ", ".join(map(str, value))
        if format_spec == "vector":
            return " ".join(f"{number:g}" for number in value)
        return _told(value) if format_spec == "told" else str(super().format_field(value, format_spec))


def sentence(template: str, /, **values: Any) -> str:
    """A template with its fields filled in; see `_Words`."""
    return _Words().vformat(template, (), values)


def _told(inner: Note | Mapping[str, Any]) -> str:
    """The sentence of a note inside a note, which is plain data once it has been in a file."""
    return str(inner if isinstance(inner, Note) else Note(inner["code"], inner["values"]))


def _other_period(stated_s: float, reason: Any, found: Any) -> str:
    other = "" if found is None else f"; {_told(found)}"
    return f"the log states a period of {stated_s:g} s, but with that {_told(reason)}{other}"


def _low_pass(
    cutoff_hz: float, bandwidth_hz: float | None, step: int, motion_cutoff_hz: float, clean_hz: float | None = None
) -> str:
    because = "" if bandwidth_hz is None else f", because 99 % of the velocity's power lies below {bandwidth_hz:.3g} Hz"
    because += "" if clean_hz is None else f" and accelerations are noisy above {clean_hz:.2g} Hz"
    every = f"; every {_ordinal(step)} row is kept" if step > 1 else ""
    return (
        f"Torque and regressor are low-passed alike at {cutoff_hz:.3g} Hz (zero-phase Butterworth){because}{every}. "
        f"Positions are low-passed at {motion_cutoff_hz:.3g} Hz before they are differentiated."
    )


def _ordinal(number: int) -> str:
    """2nd, 3rd, 4th, 11th, 21st."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _periods_left_out(numbers: Sequence[int], periods: int) -> str:
    if len(numbers) == 1:
        return f"Period {numbers[0]} of {periods} has missing samples or values and is left out."
    shown = ", ".join(map(str, numbers[:SHOWN])) + (", …" if len(numbers) > SHOWN else "")
    return f"{len(numbers)} of {periods} periods have missing samples or values and are left out (number {shown})."


def _transient_periods(periods: int, left_out: bool) -> str:
    which = "first period differs" if periods == 1 else f"first {periods} periods differ"
    end = ": left out." if left_out else ", but too few would remain without."
    return f"The {which} from the rest (transient){end}"


def _chosen_low_pass(because: str, **values: Any) -> str:
    return f"Chosen because {sentence(_TEMPLATES[f'not averaged, {because}'], **values)}: low-pass."


def _unsettled(until_s: float, cut_s: float, needed: int) -> str:
    left = f": the first {cut_s:.4g} s are left out."
    kept = f", but without it fewer than {needed} periods would be left: kept."
    end = left if cut_s else kept
    return f"The start of the motion has not settled (finding transient, until {until_s:.4g} s){end}"


def _uneven(finding: Any) -> str:
    if finding is None:
        return "Samples are not equidistant: resampled."
    return f"{_told(finding)[:-1]} (finding {_code(finding)}): resampled."


def _code(finding: Note | Mapping[str, Any]) -> str:
    values = finding.values if isinstance(finding, Note) else finding["values"]
    return str(values["finding"])


def finding_entry(code: str, variant: str = "", part: str = "severity") -> str:
    """`severity`, or the template of `what` or `advice`, of one of the doctor's findings."""
    if code not in _findings():
        raise UnknownNameError("finding", code, _findings())
    entry = _findings()[code]
    return str(entry.get("variants", {}).get(variant, {}).get(part, entry[part]))


@cache
def _findings() -> dict[str, Any]:
    return _data("doctor/findings.yaml")


def _data(name: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load((resources.files("armid.signals") / name).read_text("utf-8"))
    return table


def _resampled(rate_hz: float, gaps: int, longest_s: float) -> str:
    stay = "stays" if gaps == 1 else "stay"
    rest = f"; {plural(gaps, 'gap')} of up to {longest_s:.3g} s {stay} open" if gaps else ""
    return f"Resampled to {rate_hz:.6g} Hz{rest}."


def _spikes_replaced(channel: str, joints: Mapping[str, int]) -> str:
    counts = ", ".join(f"{joint} {count}" for joint, count in joints.items())
    return f"Replaced {plural(sum(joints.values()), 'spike')} in {channel} ({counts})."


_TEMPLATES: dict[str, str] = _data("notes.yaml")
WORDS: dict[str, Callable[..., str]] = {
    **{name: partial(sentence, template) for name, template in _TEMPLATES.items()},
    "other_period": _other_period,
    "spikes_replaced": _spikes_replaced,
    "resampled": _resampled,
    "shifted": lambda delay_s: (
        f"Moved the torque {', '.join(f'{1e3 * value:.3g}' for value in delay_s)} ms ahead to meet the motion."
    ),
    "low_pass": _low_pass,
    "long": lambda samples, pieces: (
        f"A log of {samples} samples was processed in {pieces} pieces; what was chosen follows from the first."
    ),
    "periods_left_out": _periods_left_out,
    "transient_periods": _transient_periods,
    "chosen_low_pass": _chosen_low_pass,
    "unsettled": _unsettled,
    "uneven": _uneven,
    "beware": lambda finding: f"Beware (finding {_code(finding)}): {_told(finding)}",
    "finding": lambda finding, variant, **values: sentence(finding_entry(finding, variant, "what"), **values),
}
