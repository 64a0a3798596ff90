"""Notes: what was found or chosen on the way, as a code with values; the sentence is made where people read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Note:
    """One thing worth knowing.

    The sentences of a package stand in its module ``words``: a dictionary ``WORDS`` from the code's last part to a
    template for `str.format`, or to a function of the values that returns the sentence.

    Attributes:
        code: package and what it is, such as ``signals.averaged``.
        values: what fills the sentence, plain data with SI units; ``log`` names the log it is about, where there are
            several.
    """

    code: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def about(self, log: str) -> Note:
        """The note with the name of the log it is about."""
        return Note(self.code, {**self.values, "log": log})

    def __str__(self) -> str:
        """The sentence for people; the bare code and values where no sentence is known."""
        package, _, name = self.code.partition(".")
        if package == "notes":
            return str(self.values.get("text", ""))
        values = {key: value for key, value in self.values.items() if key != "log"}
        about = f"{self.values['log']}: " if "log" in self.values else ""
        try:
            words = import_module(f"armid.{package}.words").WORDS[name]
            return about + str(words(**values) if callable(words) else words.format(**values))
        except (ImportError, LookupError, TypeError, ValueError, AttributeError):
            given = ", ".join(f"{key} {value}" for key, value in values.items())
            return about + (f"{self.code}: {given}" if given else self.code)

    def to_plain(self) -> dict[str, Any]:
        """For JSON: code, values and the sentence for those who only read."""
        return {"code": self.code, "values": dict(self.values), "text": str(self)}


def as_note(said: Note | str | Mapping[str, Any]) -> Note:
    """A note from what `Note.to_data` made; a bare sentence becomes one without a code of its own."""
    if isinstance(said, Mapping):
        return Note(str(said.get("code", "")), dict(said.get("values", {})))
    return said if isinstance(said, Note) else Note("notes.text", {"text": said})


def note(code: str, **values: Any) -> Note:
    """Shorthand: ``note("signals.averaged", periods=16)``."""
    return Note(code, values)
