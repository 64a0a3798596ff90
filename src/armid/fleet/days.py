"""The arm-days of a fleet, read from the store when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from armid.fleet.day import ArmDay
from armid.fleet.store import Store

HELD = 5000  # arm-days that are kept in memory; of larger fleets they are read again when they are needed


class Days:
    """The arm-days of each arm, without recordings that are there twice; read when they are asked for.

    Attributes:
        keys: of the arm-days of each arm, by date.
        total: number of arm-days.
        facts: date, samples, seconds, usable and key of each arm-day, by arm.
        twice: problems: recordings that are there twice.
    """

    def __init__(self, keys: Mapping[str, Sequence[str]], store: Store) -> None:
        """Read all once."""
        self.keys, self._store = keys, store
        self.total = sum(len(some) for some in keys.values())
        self._held: dict[str, tuple[ArmDay, ...]] = {}
        self.twice: list[dict[str, Any]] = []
        seen: dict[str, str] = {}
        self._left_out: set[str] = set()
        self.facts: dict[str, list[dict[str, Any]]] = {}
        for name in keys:
            for day in self._read(name):
                self._note(day, seen)

    def _note(self, day: ArmDay, seen: dict[str, str]) -> None:
        for file, digest in day.about.get("files_sha256", {}).items():
            where = f"{day.robot} {day.date} {file}"
            if digest in seen and day.usable:
                reason = f"is the same file as {seen[digest]}, so the whole day is left out"
                self.twice.append({"robot": day.robot, "date": day.date, "file": file, "reason": reason})
                self._left_out.add(day.key)
            seen.setdefault(digest, where)
        self.facts.setdefault(day.robot, []).append(
            {"date": day.date, "samples": day.samples, "seconds": day.seconds, "usable": day.usable, "key": day.key}
        )

    def _read(self, name: str) -> tuple[ArmDay, ...]:
        if name not in self._held:
            days = tuple(self._store.get(key) for key in self.keys[name])
            if self.total > HELD:
                return days
            self._held[name] = days
        return self._held[name]

    def __call__(self, name: str) -> tuple[ArmDay, ...]:
        """The arm-days of one arm, by date."""
        return tuple(day for day in self._read(name) if day.key not in self._left_out)

    def usable(self, name: str) -> bool:
        """Whether anything can be estimated."""
        return any(fact["usable"] and fact["key"] not in self._left_out for fact in self.facts[name])
