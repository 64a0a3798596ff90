"""Strict reading of YAML: every field is checked, unknown keys are refused, errors name file and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, DescriptionError, in_words, nearest
from armid.files import parse_yaml, read_text, shown
from armid.robot.quantities import number

Result = TypeVar("Result")


def read_result(
    path: str | Path, what: str, form: str, command: str, build: Callable[[dict[str, Any]], Result]
) -> Result:
    """What `build` makes of a JSON file that armid wrote.

    Args:
        path: the file.
        what: what it holds, for messages: a fit.
        form: its entry ``format``.
        command: what writes such files: armid identify.
        build: makes the result from the file's data.
    """
    text = read_text(Path(path))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArmidError(f"{path}: is not JSON ({error}); write it with {command}") from None
    if not isinstance(data, dict) or data.get("format") != form:
        raise ArmidError(f'{path}: is not {what} with format "{form}"; write it with {command}')
    try:
        return build(data)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ArmidError(f"{path}: is damaged ({in_words(error)}); write it anew with {command}") from None


def read_fields(text: str, source: str) -> Fields:
    """Parse YAML text into checked fields."""
    return Fields(parse_yaml(text, source), source)


class Fields:
    """A mapping whose entries are taken one by one; `finish` refuses what was not taken."""

    def __init__(self, data: dict[Any, Any], source: str, path: str = "") -> None:
        """Wrap `data`, found at `path` of `source`."""
        self._data, self.source, self.path = {str(key): value for key, value in data.items()}, source, path
        self._taken: set[str] = set()

    def __contains__(self, key: str) -> bool:
        """Whether the key is there (and not null)."""
        return self._data.get(key) is not None

    def where(self, key: str) -> str:
        """Path of an entry, on one line."""
        short = key if key.isprintable() and len(key) < 80 else shown(key)
        return f"{self.path}.{short}" if self.path else short

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise an error about an entry."""
        raise DescriptionError(self.source, self.where(key), problem)

    def take(self, key: str, default: Any = None) -> Any:
        """The raw entry, or `default`."""
        self._taken.add(key)
        value = self._data.get(key)
        return default if value is None else value

    def require(self, key: str) -> Any:
        """The raw entry, which must be there."""
        if key not in self:
            self._taken.add(key)
            self.fail(key, f"is missing{nearest(key, (other for other in self._data if other != key))}")
        return self.take(key)

    def finish(self) -> None:
        """Refuse entries that were never asked for."""
        for key in self._data:
            if key not in self._taken:
                hint = nearest(key, self._taken) or f"; valid: {', '.join(sorted(self._taken))}"
                self.fail(key, f"is not a known key{hint}")

    def section(self, key: str) -> Fields:
        """A nested mapping, empty if absent."""
        value = self.take(key, {})
        if not isinstance(value, dict):
            self.fail(key, "must be a mapping of names to values")
        return Fields(value, self.source, self.where(key))

    def sections(self, key: str) -> list[Fields]:
        """A list of mappings, empty if absent."""
        items = self.items(key)
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                self.fail(f"{key}[{index + 1}]", "must be a mapping of names to values")
        return [Fields(item, self.source, f"{self.where(key)}[{i + 1}]") for i, item in enumerate(items)]

    def names(self) -> list[str]:
        """All keys."""
        return list(self._data)

    def named_sections(self, key: str) -> dict[str, Fields]:
        """A mapping from names to mappings."""
        section = self.section(key)
        return {name: section.section(name) for name in section.names()}

    def items(self, key: str) -> list[Any]:
        """A list, empty if absent."""
        value = self.take(key, [])
        if not isinstance(value, list):
            self.fail(key, "must be a list")
        return value

    def text(self, key: str, default: str = "") -> str:
        """A string."""
        value = self.take(key, default)
        if not isinstance(value, str):
            self.fail(key, f"must be text, not {shown(value)}")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        values = self.items(key)
        for index, value in enumerate(values):
            if not isinstance(value, str):
                self.fail(f"{key}[{index + 1}]", f"must be text, not {shown(value)}")
        return values

    def choice(self, key: str, valid: Sequence[str], default: str | None = None) -> str:
        """One of the `valid` strings."""
        value = self.require(key) if default is None else self.take(key, default)
        return self.checked_choice(key, value, valid)

    def checked_choice(self, key: str, value: object, valid: Sequence[str]) -> str:
        """`value`, which must be one of the `valid` strings."""
        if not isinstance(value, str) or value not in valid:
            self.fail(key, f"is {shown(value)}{nearest(str(value)[:80], valid)}; valid: {', '.join(valid)}")
        return value

    def checked_flag(self, key: str, value: object) -> bool:
        """`value`, which must be true or false."""
        if not isinstance(value, bool):
            self.fail(key, f"must be true or false, not {shown(value)}")
        return value

    def integer(self, key: str) -> int:
        """A whole number."""
        return self.checked_integer(key, self.require(key))

    def checked_integer(self, key: str, value: object) -> int:
        """`value`, which must be a whole number."""
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"must be a whole number, not {shown(value)}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        return self.checked_number(key, self.require(key) if default is None else self.take(key, default))

    def checked_number(self, key: str, value: object) -> float:
        """`value` as a finite number."""
        try:
            return number(value)
        except ValueError as error:
            self.fail(key, f"{shown(value)} {error}")

    def vector(self, key: str, length: int, default: Sequence[float] | None = None) -> Array:
        """A list of `length` numbers."""
        value = self.require(key) if default is None else self.take(key, list(default))
        return self.checked_vector(key, value, length)

    def checked_vector(self, key: str, value: object, length: int) -> Array:
        """`value` as `length` finite numbers."""
        if not isinstance(value, list) or len(value) != length:
            self.fail(key, f"must be a list of {length} numbers")
        return np.array([self.checked_number(f"{key}[{i + 1}]", item) for i, item in enumerate(value)])

    def per_joint(self, key: str, joints: int, read: Callable[[str, object], Any], default: object = None) -> list[Any]:
        """One value for all joints, or a list with one for each; `read(key, value)` checks a value."""
        value = self.take(key, default)
        if not isinstance(value, list):
            return [read(key, value)] * joints
        if len(value) != joints:
            self.fail(key, f"has {len(value)} entries for {joints} joints; give one value or one for each joint")
        return [read(f"{key}[{i + 1}]", item) for i, item in enumerate(value)]

    def numbers_per_joint(self, key: str, joints: int, default: float = np.nan) -> Array:
        """Numbers, one per joint."""
        if key not in self:
            self.take(key)
            return np.full(joints, default)
        return np.array(self.per_joint(key, joints, self.checked_number))
