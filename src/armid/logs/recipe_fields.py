"""The fields of a recipe: reading and checking them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.files import shown
from armid.logs.columns import read_columns
from armid.logs.csv_file import RTDE_JOINTS, CsvStyle
from armid.logs.log import CHANNELS, EFFORTS, MODES, SIDES, LogInfo
from armid.logs.recipe import FORMATS, Recipe
from armid.logs.units import Unit, unit, units_for
from armid.robot.inertia import from_com
from armid.robot.schema import Fields

_MEANING = {
    "joint torque": "N m after the gear",
    "motor torque": "N m before the gear",
    "current": "A of the motor",
    "none": "neither torque nor current",
}


def recipe_from_fields(fields: Fields, folder: Path) -> Recipe:
    """The recipe that the fields of a YAML file describe; file names in it are relative to `folder`."""
    if "armid" in fields and fields.integer("armid") != 1:
        fields.fail("armid", "is the version of the format; 1 is the only one")
    fields.take("armid")
    layout = fields.choice("format", FORMATS, "") if "format" in fields else fields.text("format")
    joints = _joints(fields, layout)
    info = _info(fields, joints)
    section = fields.section("columns")
    columns = {name: read_columns(section, name) for name in section.names() if name in ("time", *CHANNELS)}
    for name in ("time", *CHANNELS):
        section.take(name)
    section.finish()
    recipe = Recipe(
        source=fields.source,
        info=info,
        columns=columns,
        units=_units(fields.section("units"), len(joints), info.mode),
        files=tuple(folder / name for name in fields.texts("files")),
        join=fields.choice("join", ("time", "columns"), "time"),
        format=layout,
        style=_style(fields),
        samples_in_rows=_samples_in_rows(fields),
        topic=fields.text("topic"),
        ratio=_ratio(fields, len(joints)),
        current_gain=_gains(fields, len(joints)),
        sign=_signs(fields, len(joints)),
        offset=fields.numbers_per_joint("offset", len(joints), 0.0),
        rows=_rows(fields),
        seconds=_seconds(fields),
    )
    fields.finish()
    _check(fields, recipe)
    return recipe


def _joints(fields: Fields, layout: str) -> tuple[str, ...]:
    if layout == "rtde" and "joints" not in fields:
        fields.take("joints")
        return RTDE_JOINTS
    fields.require("joints")
    joints = tuple(fields.texts("joints"))
    if not joints or len(set(joints)) != len(joints):
        fields.fail("joints", "must be the robot's joint names in the order of the columns, each once")
    return joints


def _info(fields: Fields, joints: tuple[str, ...]) -> LogInfo:
    gravity = tuple(fields.vector("gravity", 3).tolist()) if "gravity" in fields else None
    fields.take("gravity")
    return LogInfo(
        joints,
        effort=_effort(fields),
        side=fields.choice("side", SIDES, "joint"),
        mode=fields.choice("mode", MODES, "position"),
        rate_hz=_positive(fields, "rate"),
        period_s=_positive(fields, "period"),
        gravity=gravity,
        payload=_payload(fields),
        robot=fields.text("robot"),
    )


def _effort(fields: Fields) -> str:
    """What was measured; nothing is guessed, since a wrong guess scales every parameter."""
    value = fields.take("effort")
    if not isinstance(value, str) or value not in EFFORTS:
        said = "is missing" if value is None else f"is {shown(value)}"
        choices = ", ".join(f"{name!r} ({_MEANING[name]})" for name in EFFORTS[:-1])
        fields.fail("effort", f"{said}; say what was measured: {choices}, or 'none' ({_MEANING['none']})")
    return value


def _positive(fields: Fields, key: str) -> float | None:
    if key not in fields:
        fields.take(key)
        return None
    value = fields.number(key)
    if value <= 0.0:
        fields.fail(key, f"is {value:g}; it must be positive")
    return value


def _payload(fields: Fields) -> tuple[float, ...] | None:
    """Ten parameters, from a list or from mass, centre of mass and inertia about it."""
    value = fields.take("payload")
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(fields.checked_vector("payload", value, 10).tolist())
    section = fields.section("payload")
    mass, com = section.number("mass"), section.vector("com", 3, (0.0, 0.0, 0.0))
    tensor = section.section("inertia")
    xx, xy, xz, yy, yz, zz = (tensor.number(key, 0.0) for key in ("xx", "xy", "xz", "yy", "yz", "zz"))
    tensor.finish()
    section.finish()
    return tuple(from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).tolist())


def _units(fields: Fields, joints: int, mode: str) -> dict[str, tuple[Unit, ...]]:
    units = {}
    for channel in ("time", *CHANNELS):
        if channel in fields:
            read = _unit_reader(fields, channel, mode)
            units[channel] = tuple(fields.per_joint(channel, 1 if channel == "time" else joints, read))
        fields.take(channel)
    fields.finish()
    return units


def _unit_reader(fields: Fields, channel: str, mode: str) -> Callable[[str, object], Unit]:
    def read(key: str, value: object) -> Unit:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return Unit(fields.checked_number(key, value))
        found = unit(value, channel, mode) if isinstance(value, str) else None
        if found is None:
            valid = ", ".join(units_for(channel, mode))
            fields.fail(key, f"{shown(value)} is not a unit of {channel}; use one of: {valid}; or its value in SI")
        return found

    return read


def _style(fields: Fields) -> CsvStyle:
    delimiter = fields.text("delimiter") or None
    if delimiter is not None:
        delimiter = {"tab": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '"#\n\r.':
            fields.fail("delimiter", f"is {shown(delimiter)}; use one character, tab or space")
    header = fields.take("header")
    skip = fields.checked_integer("skip_lines", fields.take("skip_lines", 0))
    if skip < 0:
        fields.fail("skip_lines", f"is {skip}; use 0 or more")
    decimal = fields.choice("decimal", (".", ","), ".")
    if decimal == delimiter:
        fields.fail("decimal", "is the same sign as the delimiter")
    return CsvStyle(delimiter, None if header is None else fields.checked_flag("header", header), skip, decimal)


def _samples_in_rows(fields: Fields) -> bool | None:
    if "samples" not in fields:
        fields.take("samples")
        return None
    return fields.choice("samples", ("rows", "columns")) == "rows"


def _ratio(fields: Fields, joints: int) -> Array | None:
    rows = fields.items("coupling_matrix")
    ratios = fields.numbers_per_joint("gear_ratio", joints) if "gear_ratio" in fields else None
    fields.take("gear_ratio")
    if rows and ratios is not None:
        fields.fail("coupling_matrix", "is given beside gear_ratio; it holds the gear ratios itself, so give only one")
    if rows and len(rows) != joints:
        fields.fail("coupling_matrix", f"has {len(rows)} rows for {joints} joints")
    if not rows and ratios is None:
        return None
    key = "coupling_matrix" if rows else "gear_ratio"
    given = [fields.checked_vector(f"coupling_matrix[{i + 1}]", row, joints) for i, row in enumerate(rows)]
    matrix = np.array(given) if ratios is None else np.diag(ratios)
    if np.any(np.diag(matrix) == 0.0) or np.linalg.cond(matrix) > 1e12:
        fields.fail(key, "is zero for a joint, or singular; every motor must move its own joint")
    return matrix


def _gains(fields: Fields, joints: int) -> tuple[tuple[float, ...], ...] | None:
    if "current_gain" not in fields:
        fields.take("current_gain")
        return None
    return tuple(fields.per_joint("current_gain", joints, lambda key, value: _polynomial(fields, key, value)))


def _polynomial(fields: Fields, key: str, value: object) -> tuple[float, ...]:
    if not isinstance(value, list):
        return 0.0, fields.checked_number(key, value)
    if not value:
        fields.fail(key, "is an empty polynomial; give a gain or coefficients, lowest power first")
    return tuple(fields.checked_number(key, item) for item in value)


def _signs(fields: Fields, joints: int) -> Array:
    signs = fields.numbers_per_joint("sign", joints, 1.0)
    if not np.all(np.abs(signs) == 1.0):
        fields.fail("sign", "must be 1 or -1 for each joint")
    return signs


def _rows(fields: Fields) -> tuple[int, int | None] | None:
    if "rows" not in fields:
        fields.take("rows")
        return None
    value = fields.items("rows")
    if len(value) != 2:
        fields.fail("rows", "must be the first and the last row to keep, from 1, such as [635, 3510]; null for the end")
    first = fields.checked_integer("rows[1]", value[0])
    last = None if value[1] is None else fields.checked_integer("rows[2]", value[1])
    if first < 1 or (last is not None and last < first):
        fields.fail("rows", f"is {shown(value)}; the first row is 1, and the last must not come before the first")
    return first, last


def _seconds(fields: Fields) -> tuple[float, float | None] | None:
    if "seconds" not in fields:
        fields.take("seconds")
        return None
    value = fields.items("seconds")
    if len(value) != 2:
        fields.fail("seconds", "must be start and end, from the first sample, such as [0.1, 7.5]; null for the end")
    start = fields.checked_number("seconds[1]", value[0])
    end = None if value[1] is None else fields.checked_number("seconds[2]", value[1])
    if start < 0.0 or (end is not None and end <= start):
        fields.fail("seconds", f"is {shown(value)}; the start is 0 or more, and the end comes after it")
    return start, end


def _check(fields: Fields, recipe: Recipe) -> None:
    """What must fit together."""
    effort, columns = recipe.info.effort, recipe.columns
    if recipe.current_gain is not None and effort != "current":
        fields.fail("current_gain", f"is given, but the effort is said to be {effort!r}; say `effort: current`")
    if columns:
        needed = {"current": "current", "none": None}.get(effort, "effort")
        if needed is not None and needed not in columns:
            fields.fail(f"columns.{needed}", f"is missing, though the effort is said to be {effort!r}")
        if "effort" in columns and needed != "effort":
            other = "put the column under `current`" if effort == "current" else "say which effort it is"
            fields.fail("columns.effort", f"is given, though the effort is said to be {effort!r}; {other}")
        if "time" not in columns and recipe.info.rate_hz is None and recipe.format != "ros":
            fields.fail("rate", "is missing; without a column for time it is needed [Hz]")
    if recipe.join == "columns" and not columns:
        fields.fail("columns", "is missing; files side by side need columns with their file")
    for name, place in columns.items():
        if place.file > 1 and recipe.join != "columns":
            fields.fail(f"columns.{name}", f"asks for file {place.file}; say `join: columns` for files side by side")
    if recipe.ratio is not None and recipe.info.side == "joint" and effort != "motor torque":
        fields.fail("gear_ratio", "is given, but neither side nor effort is the motor's; nothing would be converted")
