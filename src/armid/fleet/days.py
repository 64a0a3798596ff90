"""The arm-days of a fleet, read from the store when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armid.fleet.day import ArmDay
from armid.fleet.store import Store

NO_NOISE = 1e-150  # [N m] of a joint that has no row on any day: where nothing is known, weights do not matter
HELD = 5000  # arm-days that are kept in memory; of larger fleets they are read again when they are needed


class Days:
    """The arm-days of each arm, without recordings that are there twice; read when they are asked for.

    Attributes:
        keys: of the arm-days of each arm, by date.
        total: number of arm-days.
        facts: date, samples, seconds, usable and key of each arm-day, by arm.
        twice: problems: recordings that are there twice, and folders that are of no day.
    """

    def __init__(self, keys: Mapping[str, Sequence[str]], store: Store) -> None:
        """Read all once."""
        self.keys, self._store = keys, store
        self.total = sum(len(some) for some in keys.values())
        self._held: dict[str, tuple[ArmDay, ...]] = {}
        self.twice: list[dict[str, Any]] = []
        seen: dict[str, tuple[str, str]] = {}
        self._left_out: set[str] = set()
        self.facts: dict[str, list[dict[str, Any]]] = {name: [] for name in keys}
        for name in keys:
            for day in self._read(name):
                self._note(day, seen)

    def _note(self, day: ArmDay, seen: dict[str, tuple[str, str]]) -> None:
        if not day.date:  # what is wrong with the folder of an arm
            self.twice += [{"robot": day.robot, "date": "", **problem} for problem in day.problems]
            self._left_out.add(day.key)
            self.total -= 1
            return
        hashes = day.about.get("files_sha256", {})
        copies = {file: seen[digest] for file, digest in hashes.items() if digest in seen}
        if copies and day.usable:
            # A file of another arm spoils the day. One of another day of the same arm only counts twice in its sums.
            whole = len(copies) == len(hashes) or any(robot != day.robot for robot, _ in copies.values())
            then = "so the whole day is left out" if whole else "and counts on both days; remove one of them"
            for file, (_, where) in copies.items():
                reason = f"is the same file as {where}, {then}"
                self.twice.append({"robot": day.robot, "date": day.date, "file": file, "reason": reason})
            if whole:
                self._left_out.add(day.key)
        for file, digest in hashes.items():
            seen.setdefault(digest, (day.robot, f"{day.robot} {day.date} {file}"))
        self.facts[day.robot].append(
            {"date": day.date, "samples": day.samples, "seconds": day.seconds, "usable": day.usable, "key": day.key}
        )

    def _read(self, name: str) -> tuple[ArmDay, ...]:
        if name not in self._held:
            days = _with_noise([self._store.get(key) for key in self.keys[name]])
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


def _with_noise(days: Sequence[ArmDay]) -> tuple[ArmDay, ...]:
    """The days, where a joint has no rows with the usual residual of the other days: it says nothing about noise."""
    rms = np.array([day.rms for day in days if day.usable])
    if not len(rms) or np.isfinite(rms).all():
        return tuple(days)
    known = np.isfinite(rms).any(axis=0)
    usual = np.nanmedian(np.where(known, rms, NO_NOISE), axis=0)
    return tuple(
        replace(day, rms=np.where(np.isfinite(day.rms), day.rms, usual)) if day.usable else day for day in days
    )
