"""Recipes: a short YAML file that says what the numbers in somebody's files mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec
import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, UnknownNameError, nearest
from armid.files import FieldError, checked, convert, parse_yaml, shown
from armid.logs.log import CHANNELS, EFFORTS, LogError, LogInfo
from armid.logs.table import READERS, Table, Unit, checked_file, possible, unit, units_for
from armid.robot.description import Gain
from armid.robot.inertia import from_com
from armid.robot.quantities import Number, PerJoint, Vector, coupling_matrix

Kind = TypeVar("Kind")

_NUMBERS = re.compile(r"\s*\d+\s*(-\s*\d+\s*)?(,\s*\d+\s*(-\s*\d+\s*)?)*")
_BRACES = re.compile(r"\{(-?\d+)\.\.(-?\d+)\}")
_MOST = 1000
_MEANING = {
    "joint torque": "N m after the gear",
    "motor torque": "N m before the gear",
    "current": "A of the motor",
    "none": "neither torque nor current",
}
_WINDOWS = {
    "rows": (
        "first and the last row to keep, from 1, such as [635, 3510]",
        "the first row is 1, and the last must not come before the first",
    ),
    "seconds": (
        "start and end, from the first sample, such as [0.1, 7.5]",
        "the start is 0 or more, and the end comes after it",
    ),
}
_DELIMITERS = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";"}


class ColumnPlace:
    """Where a channel is: ``2-7``, ``[a, b, c]``, ``"actual_q_{0..5}"``, or a mapping with `file` and `columns`.

    Attributes:
        items: names, or numbers from 1; None for a joint without the channel.
        file: number of the file from 1, when files stand side by side.
    """

    def __init__(self, items: tuple[str | int | None, ...], file: int = 1) -> None:
        """Keep them."""
        self.items, self.file = items, file

    def __repr__(self) -> str:
        """What it says, for keys of what was made with it."""
        return f"ColumnPlace({self.items!r}, {self.file})"

    @classmethod
    def from_plain(cls, value: object) -> ColumnPlace:
        """Read it."""
        if not isinstance(value, dict):
            return cls(_items(value))
        place = convert(value, _FileColumns)
        if place.file < 1:
            raise FieldError("file", f"is {place.file}; files are numbered from 1")
        return cls(_items(place.columns), place.file)

    def indices(self, table: Table, field: str) -> list[int | None]:
        """Indices into the table, from 0; one name may stand for several columns."""
        found: list[int | None] = []
        for item in self.items:
            if item is None:
                found.append(None)
            elif isinstance(item, int):
                found.append(table.number(item, field))
            else:
                found += table.find(item, field)
        return found


class _Section(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, frozen=True):
    """A mapping of the file whose entries are all known."""


class _FileColumns(_Section, frozen=True):
    """Columns of one of several files side by side."""

    columns: Any
    file: int = 1


class _Tensor(_Section, frozen=True):
    """Inertia about the centre of mass [kg m^2]."""

    xx: Number = Number(0.0)
    xy: Number = Number(0.0)
    xz: Number = Number(0.0)
    yy: Number = Number(0.0)
    yz: Number = Number(0.0)
    zz: Number = Number(0.0)


class _Body(_Section, frozen=True):
    """Mass [kg], centre of mass [m] and inertia in the tool frame; what is not given is 0."""

    mass: Number
    com: Vector = (Number(0.0), Number(0.0), Number(0.0))
    inertia: _Tensor = _Tensor()

    def parameters(self) -> tuple[float, ...]:
        """Its ten inertial parameters."""
        i = self.inertia
        tensor = [[i.xx, i.xy, i.xz], [i.xy, i.yy, i.yz], [i.xz, i.yz, i.zz]]
        return tuple(from_com(self.mass, self.com, tensor).tolist())


class _ByChannel(_Section, Generic[Kind], frozen=True):
    """Something for time and for each channel."""

    time: Kind | None = None
    position: Kind | None = None
    velocity: Kind | None = None
    acceleration: Kind | None = None
    effort: Kind | None = None
    current: Kind | None = None
    temperature: Kind | None = None
    command: Kind | None = None

    def given(self) -> dict[str, Kind]:
        """What there is, by name."""
        entries = {name: getattr(self, name) for name in ("time", *CHANNELS)}
        return {name: entry for name, entry in entries.items() if entry is not None}


class _RecipeFile(_Section, frozen=True):
    """The entries of a recipe file; docs/logs.md explains them."""

    armid: int = 1
    joints: list[str] | None = None
    effort: Any = None
    format: str = ""
    robot: str = ""
    topic: str = ""
    files: tuple[str, ...] = ()
    join: Literal["time", "columns"] = "time"
    columns: _ByChannel[ColumnPlace] = _ByChannel[ColumnPlace]()
    units: _ByChannel[PerJoint[Any]] = _ByChannel[PerJoint[Any]]()
    side: Literal["joint", "motor"] = "joint"
    mode: Literal["position", "velocity", "torque"] = "position"
    rate: Number | None = None
    period: Number | None = None
    gravity: Vector | None = None
    payload: list[Number] | _Body | None = None
    delimiter: str = ""
    header: bool | None = None
    skip_lines: int = 0
    decimal: Literal[".", ","] | None = None
    samples: Literal["rows", "columns"] | None = None
    gear_ratio: PerJoint[Number] | None = None
    coupling_matrix: tuple[tuple[Number, ...], ...] = ()
    current_gain: PerJoint[Gain] | None = None
    gain_uncertainty: PerJoint[Number] | None = None
    sign: PerJoint[Number] = PerJoint(1.0)
    offset: PerJoint[Number] = PerJoint(0.0)
    rows: list[int | None] | None = None
    seconds: list[Number | None] | None = None


@dataclass(frozen=True)
class CsvStyle:
    """How a text table is written; None is found out from its first lines.

    Attributes:
        delimiter: between columns; a blank stands for any white space.
        header: whether the first line names the columns.
        skip_lines: lines before the header, or before the numbers.
        decimal: sign before the decimals, a point or a comma.
    """

    delimiter: str | None = None
    header: bool | None = None
    skip_lines: int = 0
    decimal: str | None = None


@dataclass(frozen=True, eq=False)
class Recipe:
    """What the numbers in files mean, and how they become a log in SI units.

    Attributes:
        source: file of the recipe.
        info: what the recorded numbers are, before they are brought to the joint side.
        columns: where `time` and the channels are; empty if the format's own names are used.
        units: of `time` (one) and of the channels, per joint.
        files: the files; empty if they are given by the caller.
        join: ``time`` for files one after the other, ``columns`` for files side by side.
        format: of the files, the name of one of `READERS`; empty to go by suffix and content.
        style: of text tables.
        samples_in_rows: of MATLAB fields; None to find out.
        topic: of joint states in a ROS bag; empty for the only one.
        ratio: R in q_motor = R q_joint, or None.
        current_gain: polynomial per joint from current [A] to joint torque [N m], lowest power first; or None.
        sign, offset: per joint, q_model = sign * q + offset [rad or m].
        rows: first and last row to keep, from 1, or None.
        seconds: start and end of the part to keep, from the first sample [s], or None.
    """

    source: str
    info: LogInfo
    columns: Mapping[str, ColumnPlace] = field(default_factory=dict)
    units: Mapping[str, tuple[Unit, ...]] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    join: str = "time"
    format: str = ""
    style: CsvStyle = field(default_factory=CsvStyle)
    samples_in_rows: bool | None = None
    topic: str = ""
    ratio: Array | None = None
    current_gain: tuple[tuple[float, ...], ...] | None = None
    sign: Array = field(default_factory=lambda: np.ones(1))
    offset: Array = field(default_factory=lambda: np.zeros(1))
    rows: tuple[int, int | None] | None = None
    seconds: tuple[float, float | None] | None = None

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe file, or one of armid's own by its name without suffix.

        Raises:
            LogError: the recipe cannot be used.
        """
        path = possible(path)
        try:
            if path.is_dir() and path.name not in recipe_names():
                raise LogError(str(path), "", "is a folder; name the recipe itself, a .yaml file")
            if path.suffix == "" and path.parent == Path() and not path.is_file():
                text, folder = _library_text(path.name), Path()
            else:
                text, folder = checked_file(path).read_text(encoding="utf-8"), path.parent
        except UnicodeDecodeError:
            raise LogError(str(path), "", "is not a text file; a recipe is a .yaml file") from None
        return cls.parse(text, str(path), folder)

    @classmethod
    def parse(cls, text: str, source: str = "recipe", folder: Path | None = None) -> Recipe:
        """Read a recipe from its text; file names in it are relative to `folder`."""
        try:
            return _made(checked(parse_yaml(text, source), _RecipeFile, source), source, folder or Path())
        except FieldError as error:
            raise LogError(source, error.field, error.problem) from None
        except DescriptionError as error:
            problem = error.problem if error.field else "is not a recipe; it needs at least joints and effort"
            raise LogError(error.source, error.field, problem) from None


def recipe_names() -> tuple[str, ...]:
    """Names of armid's own recipes."""
    names = (item.name for item in _library().iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml")))


def _library() -> Any:
    return resources.files("armid.logs") / "recipes"


def _library_text(name: str) -> str:
    if name not in recipe_names():
        raise UnknownNameError("recipe", name, recipe_names())
    return str((_library() / f"{name}.yaml").read_text("utf-8"))


def _refuse(wrong: object, field: str, problem: str) -> None:
    if wrong:
        raise FieldError(field, problem)


def _made(file: _RecipeFile, source: str, folder: Path) -> Recipe:
    """The recipe of a file, with what no type says checked; FieldError otherwise."""
    _refuse(file.armid != 1, "armid", "is the version of the format; 1 is the only one")
    valid = f"{nearest(file.format[:80], READERS)}; valid: {', '.join(READERS)}"
    _refuse(file.format and file.format not in READERS, "format", f"is {shown(file.format)}{valid}")
    joints = tuple(READERS[file.format].joints if file.joints is None and file.format else file.joints or ())
    _refuse(not joints and file.joints is None, "joints", "is missing")
    unique = joints and len(set(joints)) == len(joints)
    _refuse(not unique, "joints", "must be the robot's joint names in the order of the columns, each once")
    count = len(joints)
    signs = np.array(file.sign.over(count, "sign"), dtype=float)
    _refuse(np.any(np.abs(signs) != 1.0), "sign", "must be 1 or -1 for each joint")
    gains = None if file.current_gain is None else file.current_gain.over(count, "current_gain")
    recipe = Recipe(
        source=source,
        info=_info(file, joints),
        columns=file.columns.given(),
        units={name: _units(name, given, count, file.mode) for name, given in file.units.given().items()},
        files=tuple(folder / name for name in file.files),
        join=file.join,
        format=file.format,
        style=_style(file),
        samples_in_rows=None if file.samples is None else file.samples == "rows",
        topic=file.topic,
        ratio=_ratio(file, count),
        current_gain=None if gains is None else tuple(gains),
        sign=signs,
        offset=np.array(file.offset.over(count, "offset"), dtype=float),
        rows=_window("rows", file.rows),
        seconds=_window("seconds", file.seconds),
    )
    _check_together(recipe)
    return recipe


def _info(file: _RecipeFile, joints: tuple[str, ...]) -> LogInfo:
    said = "is missing" if file.effort is None else f"is {shown(file.effort)}"
    choices = ", ".join(f"{name!r} ({_MEANING[name]})" for name in EFFORTS[:-1])
    problem = f"{said}; say what was measured: {choices}, or 'none' ({_MEANING['none']})"
    _refuse(file.effort not in EFFORTS, "effort", problem)  # nothing is guessed: it would scale every parameter
    for name in ("rate", "period"):
        value = getattr(file, name)
        _refuse(value is not None and value <= 0.0, name, f"is {value or 0.0:g}; it must be positive")
    payload = file.payload.parameters() if isinstance(file.payload, _Body) else file.payload
    _refuse(payload is not None and len(payload) != 10, "payload", "must be a list of 10 numbers")
    stated = file.gain_uncertainty
    gains = () if stated is None else tuple(stated.over(len(joints), "gain_uncertainty"))
    wrong = not all(0.0 <= gain < 1.0 for gain in gains)
    _refuse(wrong, "gain_uncertainty", "is the standard deviation of a gain as a share, from 0 to less than 1")
    return LogInfo(
        joints,
        effort=file.effort,
        side=file.side,
        mode=file.mode,
        rate_hz=file.rate,
        period_s=file.period,
        gravity=file.gravity,
        payload=None if payload is None else tuple(payload),
        robot=file.robot,
        gain_uncertainty=gains,
    )


def _units(channel: str, given: PerJoint[Any], joints: int, mode: str) -> tuple[Unit, ...]:
    field, units = f"units.{channel}", []
    for value in given.over(1 if channel == "time" else joints, field):
        found = unit(value, channel, mode) if isinstance(value, str) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value):
            found = Unit(float(value))
        if found is None:
            valid = ", ".join(units_for(channel, mode))
            problem = f"{shown(value)} is not a unit of {channel}; use one of: {valid}; or its value in SI"
            raise FieldError(field, problem)
        units.append(found)
    return tuple(units)


def _style(file: _RecipeFile) -> CsvStyle:
    sign = _DELIMITERS.get(file.delimiter, file.delimiter)
    odd = sign and (len(sign) != 1 or sign in '"#\n\r.')
    _refuse(odd, "delimiter", f"is {shown(sign)}; use one character, tab or space")
    _refuse(file.skip_lines < 0, "skip_lines", f"is {file.skip_lines}; use 0 or more")
    _refuse(file.decimal == sign, "decimal", "is the same sign as the delimiter")
    return CsvStyle(sign or None, file.header, file.skip_lines, file.decimal)


def _ratio(file: _RecipeFile, joints: int) -> Array | None:
    rows, ratios = file.coupling_matrix, file.gear_ratio
    both = "is given beside gear_ratio; it holds the gear ratios itself, so give only one"
    _refuse(rows and ratios is not None, "coupling_matrix", both)
    if rows:
        return coupling_matrix("coupling_matrix", rows, joints)
    if ratios is None:
        return None
    return coupling_matrix("gear_ratio", np.diag(ratios.over(joints, "gear_ratio")).tolist(), joints)


def _window(key: str, value: list[Any] | None) -> tuple[Any, Any] | None:
    """First and last of what is kept; null stands for the end."""
    if value is None:
        return None
    what, rule = _WINDOWS[key]
    _refuse(len(value) != 2 or value[0] is None, key, f"must be the {what}; null for the end")
    first, last = value
    ends = last is None or (last >= first if key == "rows" else last > first)
    said = ", ".join("null" if item is None else f"{item:g}" for item in value)
    _refuse(first < (key == "rows") or not ends, key, f"is [{said}]; {rule}")
    return first, last


def _check_together(recipe: Recipe) -> None:
    """What must fit together."""
    effort, columns, info = recipe.info.effort, recipe.columns, recipe.info
    needed = {"current": "current", "none": ""}.get(effort, "effort")
    said = f"the effort is said to be {effort!r}"
    gains = recipe.current_gain is not None and effort != "current"
    _refuse(gains, "current_gain", f"is given, but {said}; say `effort: current`")
    missing = columns and needed and needed not in columns
    _refuse(missing, f"columns.{needed}", f"is missing, though {said}")
    other = "put the column under `current`" if effort == "current" else "say which effort it is"
    _refuse("effort" in columns and needed != "effort", "columns.effort", f"is given, though {said}; {other}")
    untimed = columns and "time" not in columns and info.rate_hz is None and recipe.format != "ros"
    _refuse(untimed, "rate", "is missing; without a column for time it is needed [Hz]")
    sides = recipe.join == "columns"
    _refuse(sides and not columns, "columns", "is missing; files side by side need columns with their file")
    for name, place in columns.items():
        problem = f"asks for file {place.file}; say `join: columns` for files side by side"
        _refuse(place.file > 1 and not sides, f"columns.{name}", problem)
    idle = recipe.ratio is not None and info.side == "joint" and effort != "motor torque"
    _refuse(idle, "gear_ratio", "is given, but neither side nor effort is the motor's; nothing would be converted")


def _items(value: object) -> tuple[str | int | None, ...]:
    """Columns: names, and numbers from 1."""
    if isinstance(value, list):
        parts = [_names(item) if isinstance(item, str) else [item] for item in value]
        flat = [item for part in parts for item in part]
    elif isinstance(value, str) and _NUMBERS.fullmatch(value):
        flat = [number for part in value.split(",") for number in _range(part)]
    elif isinstance(value, str):
        flat = list(_names(value))
    else:
        flat = [value]
    for item in flat:
        if isinstance(item, bool) or not isinstance(item, str | int | None) or (isinstance(item, int) and item < 1):
            raise ValueError("must be a number from 1, a range such as 2-7, a name, or a list of these")
    if not flat or all(item is None for item in flat):
        raise ValueError("names no column")
    return tuple(flat)


def _range(text: str) -> list[int]:
    first, _, last = text.partition("-")
    start, stop = int(first[:9]), int((last or first)[:9])
    if not 1 <= start <= stop or stop - start > _MOST:
        raise ValueError(f"{text.strip()[:40]!r} is not a range of columns; they are numbered from 1, as in 2-7")
    return list(range(start, stop + 1))


def _names(text: str) -> list[str]:
    """The name, or all names if it has braces such as {0..5}."""
    match = _BRACES.search(text)
    if match is None:
        return [text]
    start, stop = int(match.group(1)[:9]), int(match.group(2)[:9])
    if abs(stop - start) > _MOST:
        raise ValueError(f"{text[:40]!r} stands for more than {_MOST} columns")
    step = 1 if stop >= start else -1
    return [text[: match.start()] + str(i) + text[match.end() :] for i in range(start, stop + step, step)]
