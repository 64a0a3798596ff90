"""The robot file: from checked YAML fields to a Robot. The format is explained in docs/robot-file.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.files import shown
from armid.robot.dh import DHRow, dh_joints
from armid.robot.drives import with_drives
from armid.robot.geometry import from_rpy, placement
from armid.robot.mjcf import read_mjcf
from armid.robot.robot import (
    STANDARD_GRAVITY,
    Capsule,
    Counterbalance,
    GravitySpring,
    Limits,
    Provenance,
    Robot,
    Simplification,
    inertial_names,
    parameter_number,
)
from armid.robot.schema import Fields, read_fields
from armid.robot.truth import read_friction, read_virtual
from armid.robot.urdf import read_urdf

FORMAT = 1
_CONVENTIONS = ("modified-dh", "standard-dh", "urdf", "mjcf")
_STATUSES = ("printed", "corrected", "assumed", "third-party", "derived")


def robot_from_yaml(text: str, source: str, folder: Path, links: int | None = None) -> Robot:
    """Robot from the text of a robot file; files it names are relative to `folder`, `links` overrides its number."""
    fields = read_fields(text, source)
    version = fields.take("armid", FORMAT)
    if version != FORMAT:
        fields.fail("armid", f"is {shown(version)}; this version of armid reads format {FORMAT}")
    name = fields.require("name")
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        fields.fail("name", f"is {shown(name)}; use letters, digits, - and _")
    fields.require("kinematics")
    robot = _kinematics(fields.section("kinematics"), folder)
    robot = replace(
        robot,
        name=name,
        source=source,
        title=fields.text("title"),
        tool=_tool(fields.section("tool")),
        gravity=_gravity(fields, robot.gravity),
    )
    robot = replace(robot, limits=_limits(fields.section("limits"), robot))
    robot = with_drives(fields, robot)
    robot = replace(robot, friction=read_friction(fields.section("friction"), robot.n_joints))
    robot = _with_springs(fields, robot)
    capsules = tuple(_capsule(section, robot) for section in fields.sections("capsules"))
    robot = replace(robot, capsules=capsules or robot.capsules)
    simplifications = {
        key: _simplification(section, robot) for key, section in fields.named_sections("simplify").items()
    }
    robot = replace(
        robot,
        simplifications=simplifications,
        known=_known(fields.section("known"), robot),
        published={key: _published(section) for key, section in fields.named_sections("published").items()},
        virtual=read_virtual(fields.section("virtual"), robot) if "virtual" in fields else None,
        provenance=tuple(_provenance(section) for section in fields.sections("provenance")),
    )
    in_use = fields.integer("links") if "links" in fields else robot.n_joints
    for key in ("links", "virtual"):
        fields.take(key)
    fields.finish()
    return robot.first_links(in_use if links is None else links)


def _kinematics(fields: Fields, folder: Path) -> Robot:
    convention = fields.choice("convention", _CONVENTIONS)
    if convention in ("urdf", "mjcf"):
        path = folder / str(fields.require("file"))
        if not path.is_file():
            fields.fail("file", f"names {shown(str(path))}, which is not there; paths are relative to the robot file")
        fields.finish()
        return read_urdf(path) if convention == "urdf" else read_mjcf(path)
    rows = [_row(fields, f"rows[{i + 1}]", row) for i, row in enumerate(fields.items("rows"))]
    if not rows:
        fields.fail("rows", "is empty, so there are no links; give one row [alpha, a, d, theta offset] per joint")
    parents = [fields.checked_integer(f"parents[{i + 1}]", p) for i, p in enumerate(fields.items("parents"))]
    parents = parents or list(range(len(rows)))
    names = fields.texts("joint_names") or [f"joint{i + 1}" for i in range(len(rows))]
    for key, values in (("parents", parents), ("joint_names", names)):
        if len(values) != len(rows):
            fields.fail(key, f"has {len(values)} entries for {len(rows)} rows")
    for index, parent in enumerate(parents):
        if not 0 <= parent <= index:
            fields.fail(
                f"parents[{index + 1}]", f"is {parent}; a parent is 0 (base) or an earlier link, so loops are out"
            )
    if len(set(names)) != len(names):
        fields.fail("joint_names", "holds a name twice")
    fields.finish()
    joints, lengths = dh_joints(rows, modified=convention == "modified-dh", parents=parents, names=names)
    return Robot(name="", source=fields.source, joints=joints, lengths=lengths)


def _row(fields: Fields, key: str, row: object) -> DHRow:
    if not isinstance(row, list) or len(row) not in (4, 5):
        size = f"has {len(row)} entries" if isinstance(row, list) else "is not a list"
        fields.fail(key, f"{size}; a DH row is [alpha, a, d, theta offset] or [alpha, a, d, theta offset, prismatic]")
    kind = fields.checked_choice(key, row[4], ("revolute", "prismatic")) if len(row) == 5 else "revolute"
    alpha, a, d, theta = (fields.checked_number(key, value) for value in row[:4])
    return DHRow(alpha, a, d, theta, kind == "prismatic")


def _tool(fields: Fields) -> Array:
    xyz, rpy = fields.vector("xyz", 3, (0, 0, 0)), fields.vector("rpy", 3, (0, 0, 0))
    fields.finish()
    return placement(from_rpy(rpy), xyz)


def _gravity(fields: Fields, default: Array) -> Array:
    value = fields.take("gravity")
    if value is None:
        return default if default is not None else np.array(STANDARD_GRAVITY)
    if value == "none":
        return np.zeros(3)
    gravity = fields.checked_vector("gravity", value, 3)
    if not np.any(gravity):
        fields.fail("gravity", "has zero length, so gravity parameters cannot be found; write `none` if that is meant")
    return gravity


def _limits(fields: Fields, robot: Robot) -> Limits:
    n, base = robot.n_joints, robot.limits if len(robot.limits.lower) else Limits.unknown(robot.n_joints)
    lower, upper = base.lower.copy(), base.upper.copy()
    if "position" in fields:
        pairs = fields.items("position")
        if len(pairs) != n:
            fields.fail("position", f"has {len(pairs)} entries for {n} joints; give [lower, upper] for each")
        lower, upper = np.array([fields.checked_vector(f"position[{i + 1}]", p, 2) for i, p in enumerate(pairs)]).T
        for index in np.flatnonzero(lower >= upper):
            found = f"lower {lower[index]:.6g}, upper {upper[index]:.6g}"
            fields.fail(f"position[{index + 1}]", f"is reversed or empty ({found}); write [lower, upper]")
    values = {"lower": lower, "upper": upper}
    for key in ("velocity", "acceleration", "torque"):
        given = fields.numbers_per_joint(key, n)
        for index in np.flatnonzero(given <= 0.0):
            fields.fail(key, f"is {given[index]:.6g} for joint {index + 1}; limits are positive")
        values[key] = np.where(np.isnan(given), getattr(base, key), given)
    box = None
    if "box" in fields:
        corners = fields.items("box")
        if len(corners) != 2:
            fields.fail("box", "must be two corners, [[x, y, z], [x, y, z]]")
        box = np.array([fields.checked_vector(f"box[{i + 1}]", corner, 3) for i, corner in enumerate(corners)])
        if np.any(box[0] >= box[1]):
            fields.fail("box", "is reversed; give the lower corner first")
    assumed = fields.texts("assumed")
    for name in assumed:
        fields.checked_choice("assumed", name, ("position", "velocity", "acceleration", "torque", "box"))
    fields.finish()
    return Limits(**values, box=box, assumed=frozenset(assumed))


def _joint_number(fields: Fields, robot: Robot) -> int:
    joint = fields.integer("joint")
    if not 1 <= joint <= robot.n_joints:
        fields.fail("joint", f"is {joint}; joints are numbered 1 to {robot.n_joints}")
    return joint


def _with_springs(parent: Fields, robot: Robot) -> Robot:
    springs, tables = [], []
    for fields in parent.sections("springs"):
        kind = fields.choice("type", ("gravity-compensation", "table"))
        joint = _joint_number(fields, robot)
        if kind == "gravity-compensation":
            a, b = fields.number("a"), fields.number("b")
            for key, value in (("a", a), ("b", b)):
                if value <= 0.0:
                    fields.fail(key, f"is {value:g}; distances of the spring's ends from the axis are positive")
            if a == b:
                fields.fail("b", "equals a, so that the spring's length can become zero; make them differ")
            springs.append(GravitySpring(joint, a, b, fields.number("phi", 0.0)))
        else:
            position = np.array([fields.checked_number("position", v) for v in fields.items("position")])
            torque = np.array([fields.checked_number("torque", v) for v in fields.items("torque")])
            if len(position) < 2 or len(position) != len(torque) or np.any(np.diff(position) <= 0.0):
                fields.fail("position", "must rise and have as many entries (at least 2) as torque")
            tables.append(Counterbalance(joint, position, torque))
        fields.finish()
    return replace(robot, springs=tuple(springs), counterbalances=tuple(tables))


def _capsule(fields: Fields, robot: Robot) -> Capsule:
    link, radius = fields.integer("link"), fields.number("radius")
    if not 0 <= link <= robot.n_joints:
        fields.fail("link", f"is {link}; links are numbered 0 (base) to {robot.n_joints}")
    if radius <= 0.0:
        fields.fail("radius", f"is {radius:g}; a radius is positive")
    capsule = Capsule(link, fields.vector("from", 3), fields.vector("to", 3), radius)
    fields.finish()
    return capsule


def _parameter_name(fields: Fields, key: str, name: object, robot: Robot) -> str:
    if not 1 <= parameter_number(str(name)) <= max(robot.n_joints, len(robot.springs)):
        fields.fail(
            key, f"{shown(name)} is no parameter of this robot; names look like Ixx3, my2, Im1 (1 to {robot.n_joints})"
        )
    return str(name)


def _simplification(fields: Fields, robot: Robot) -> Simplification:
    zero = {_parameter_name(fields, "zero", name, robot) for name in fields.items("zero")}
    for link in fields.items("neglect_links"):
        if not 1 <= fields.checked_integer("neglect_links", link) <= robot.n_joints:
            fields.fail("neglect_links", f"holds {link}; links are numbered 1 to {robot.n_joints}")
        zero.update(inertial_names(link))
    note = fields.text("note")
    fields.finish()
    return Simplification(frozenset(zero), note)


def _known(fields: Fields, robot: Robot) -> dict[str, float]:
    return {_parameter_name(fields, name, name, robot): fields.number(name) for name in fields.names()}


def _published(fields: Fields) -> Mapping[str, Any]:
    """A set from the literature: kept as it is, its keys checked."""
    parameters = []
    for row in fields.sections("parameters"):
        entry = {
            "name": row.require("name"),
            "value": row.number("value"),
            **{
                key: row.take(key)
                for key in ("id", "formula", "printed", "printed_formula", "unit", "std", "experiments")
            },
            **{key: row.take(key) for key in ("known", "scope", "errata", "note")},
        }
        row.finish()
        parameters.append({key: value for key, value in entry.items() if value is not None})
    result = {key: fields.take(key) for key in ("title", "convention", "note", "friction", "load_loss")}
    if "rotors" in fields:
        result["rotors"] = fields.checked_flag("rotors", fields.take("rotors"))
    result["simplify"] = fields.take("simplify")
    result["gear_ratio"] = fields.number("gear_ratio") if "gear_ratio" in fields else fields.take("gear_ratio")
    constants = fields.section("constants")
    result["constants"] = {name: constants.number(name) for name in constants.names()}
    fields.finish()
    return {**{key: value for key, value in result.items() if value is not None}, "parameters": parameters}


def _provenance(fields: Fields) -> Provenance:
    entry = Provenance(
        field=fields.text("field"),
        status=fields.choice("status", _STATUSES),
        source=fields.text("source"),
        note=fields.text("note"),
        errata=tuple(fields.texts("errata")),
    )
    fields.finish()
    return entry
