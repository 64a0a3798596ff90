"""The robot file: from checked YAML fields to a Robot. The format is explained in docs/robot-file.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from armid.robot.dh import DHRow, dh_joints
from armid.robot.friction import LAWS, Friction
from armid.robot.geometry import from_rpy, placement
from armid.robot.inertia import Array, from_com
from armid.robot.mjcf import read_mjcf
from armid.robot.robot import (
    STANDARD_GRAVITY,
    Counterbalance,
    Drive,
    GravitySpring,
    Limits,
    Provenance,
    Robot,
    Simplification,
    Virtual,
    inertial_names,
)
from armid.robot.schema import Fields, parse_yaml
from armid.robot.urdf import read_urdf

FORMAT = 1
_CONVENTIONS = ("modified-dh", "standard-dh", "urdf", "mjcf")
_STATUSES = ("printed", "corrected", "assumed", "third-party", "derived")
_PARAMETER = re.compile(r"(?:mx|my|mz|m|Ixx|Ixy|Iyy|Ixz|Iyz|Izz|Im|fv|fc|fo)(\d+)")


def robot_from_yaml(text: str, source: str, folder: Path, links: int | None = None) -> Robot:
    """Robot from the text of a robot file; files it names are relative to `folder`, `links` overrides its number."""
    fields = parse_yaml(text, source)
    version = fields.take("armid", FORMAT)
    if version != FORMAT:
        fields.fail("armid", f"is {version!r}; this version of armid reads format {FORMAT}")
    name = fields.require("name")
    if not isinstance(name, str) or not re.fullmatch(r"[\w-]+", name):
        fields.fail("name", f"is {name!r}; use letters, digits, - and _")
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
    robot = _with_drives(fields, robot)
    robot = replace(robot, friction=tuple(_friction(fields.section("friction"), robot.n_joints)))
    robot = _with_springs(fields, robot)
    simplifications = {
        key: _simplification(section, robot) for key, section in fields.named_sections("simplify").items()
    }
    robot = replace(
        robot,
        simplifications=simplifications,
        known=_known(fields.section("known"), robot),
        published={key: _published(section) for key, section in fields.named_sections("published").items()},
        virtual=_virtual(fields.section("virtual"), robot) if "virtual" in fields else None,
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
        path = Path(str(fields.require("file")))
        if not path.is_absolute():
            path = folder / path
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
    return DHRow(*(fields.checked_number(key, value) for value in row[:4]), kind == "prismatic")


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
            values = f"lower {lower[index]:.6g}, upper {upper[index]:.6g}"
            fields.fail(f"position[{index + 1}]", f"is reversed or empty ({values}); write [lower, upper]")
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


def _with_drives(parent: Fields, robot: Robot) -> Robot:
    """The robot with its drives; without a section every rotor is a reflected inertia."""
    n = robot.n_joints
    given = "drives" in parent
    fields = parent.section("drives")
    ratios = fields.numbers_per_joint("gear_ratio", n, 1.0)
    for index in np.flatnonzero(ratios == 0.0):
        fields.fail("gear_ratio", f"is 0 for joint {index + 1}")
    inertias = fields.per_joint("rotor_inertia", n, lambda key, v: _rotor_inertia(fields, key, v), "unknown")
    carriers = [fields.checked_integer(f"carrier[{i + 1}]", c) for i, c in enumerate(fields.items("carrier"))]
    carriers = carriers or [joint.parent for joint in robot.joints]
    axes = [fields.checked_vector(f"axis[{i + 1}]", axis, 3) for i, axis in enumerate(fields.items("axis"))]
    axes = axes or [_default_axis(robot, index, carrier) for index, carrier in enumerate(carriers)]
    coupled = fields.per_joint("coupled", n, lambda key, v: _flag(fields, key, v), given)
    for key, values in (("carrier", carriers), ("axis", axes)):
        if len(values) != n:
            fields.fail(key, f"has {len(values)} entries for {n} joints")
    for index, carrier in enumerate(carriers):
        if not 0 <= carrier <= n:
            fields.fail(f"carrier[{index + 1}]", f"is {carrier}; links are numbered 0 (base) to {n}")
        if np.linalg.norm(axes[index]) < 1e-9:
            fields.fail(f"axis[{index + 1}]", "has zero length; give the rotor's direction in the carrier's frame")
    coupling = _coupling(fields, n)
    gain = (
        fields.per_joint("current_gain", n, lambda key, v: _polynomial(fields, key, v))
        if "current_gain" in fields
        else None
    )
    fields.finish()
    drives = tuple(
        Drive(float(ratio), inertia, carrier, axis / np.linalg.norm(axis), couples)
        for ratio, inertia, carrier, axis, couples in zip(ratios, inertias, carriers, axes, coupled, strict=True)
    )
    return replace(robot, drives=drives, coupling=coupling, current_gain=None if gain is None else tuple(gain))


def reflected_drives(robot: Robot) -> tuple[Drive, ...]:
    """Drives of a bare URDF or MJCF: unknown reflected inertias on the joint side, without coupling."""
    axes = [_default_axis(robot, index, joint.parent) for index, joint in enumerate(robot.joints)]
    return tuple(Drive(1.0, None, joint.parent, axis, False) for joint, axis in zip(robot.joints, axes, strict=True))


def _default_axis(robot: Robot, index: int, carrier: int) -> Array:
    """The joint's axis at zero position in the carrier's frame (exact when the carrier is the joint's parent)."""
    joint = robot.joints[index]
    if carrier == joint.parent:
        return joint.placement[:3, 2].copy()
    frames = [np.eye(4)]
    for other in robot.joints:
        frames.append(frames[other.parent] @ other.placement @ other.link_frame)
    axis = (frames[joint.parent] @ joint.placement)[:3, 2]
    return frames[min(carrier, robot.n_joints)][:3, :3].T @ axis


def _rotor_inertia(fields: Fields, key: str, value: object) -> float | None:
    if value == "unknown":
        return None
    inertia = fields.checked_number(key, value)
    if inertia < 0.0:
        fields.fail(key, f"is negative ({inertia:g}); write `unknown` if it is to be estimated")
    return inertia


def _flag(fields: Fields, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        fields.fail(key, f"must be true or false, not {value!r}")
    return value


def _polynomial(fields: Fields, key: str, value: object) -> tuple[float, ...]:
    """A gain, or a polynomial with the lowest power first."""
    if isinstance(value, list):
        return tuple(fields.checked_number(key, item) for item in value)
    return 0.0, fields.checked_number(key, value)


def _coupling(fields: Fields, n: int) -> Array | None:
    rows = fields.items("coupling_matrix")
    if not rows:
        return None
    if len(rows) != n:
        fields.fail("coupling_matrix", f"has {len(rows)} rows for {n} joints")
    matrix = np.array([fields.checked_vector(f"coupling_matrix[{i + 1}]", row, n) for i, row in enumerate(rows)])
    if np.any(np.diag(matrix) == 0.0) or np.linalg.cond(matrix) > 1e12:
        fields.fail("coupling_matrix", "is singular or has a zero on its diagonal; every motor must move its own joint")
    return matrix


def _friction(fields: Fields, n: int, default: str = "coulomb-viscous") -> Sequence[Friction]:
    laws = fields.per_joint("law", n, lambda key, v: fields.checked_choice(key, v, tuple(LAWS)), default)
    offsets = fields.per_joint("offset", n, lambda key, v: _flag(fields, key, v), False)
    directions = fields.per_joint("per_direction", n, lambda key, v: _flag(fields, key, v), False)
    fields.finish()
    return [Friction(LAWS[law], o, d) for law, o, d in zip(laws, offsets, directions, strict=True)]


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
            springs.append(GravitySpring(joint, a, b, fields.number("phi", 0.0)))
        else:
            position = np.array([fields.checked_number("position", v) for v in fields.items("position")])
            torque = np.array([fields.checked_number("torque", v) for v in fields.items("torque")])
            if len(position) < 2 or len(position) != len(torque) or np.any(np.diff(position) <= 0.0):
                fields.fail("position", "must rise and have as many entries (at least 2) as torque")
            tables.append(Counterbalance(joint, position, torque))
        fields.finish()
    return replace(robot, springs=tuple(springs), counterbalances=tuple(tables))


def _parameter_name(fields: Fields, key: str, name: object, robot: Robot) -> str:
    match = _PARAMETER.fullmatch(str(name))
    if match is None or not 1 <= int(match.group(1)) <= robot.n_joints:
        fields.fail(
            key, f"{name!r} is no parameter of this robot; names look like Ixx3, my2, Im1 (1 to {robot.n_joints})"
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
    keys = ("title", "convention", "note", "gear_ratio", "constants", "friction", "load_loss")
    result = {key: fields.take(key) for key in keys}
    fields.finish()
    return {**{key: value for key, value in result.items() if value is not None}, "parameters": parameters}


def _virtual(fields: Fields, robot: Robot) -> Virtual:
    inertia = np.array([_link_inertia(link) for link in fields.sections("links")])
    count = len(inertia)
    if not 1 <= count <= robot.n_joints:
        fields.fail("links", f"has {count} entries; give one for each of the first links, at most {robot.n_joints}")
    ratios = np.array([drive.gear_ratio for drive in robot.drives[:count]])
    section = fields.section("friction")
    side = _side(section, ratios)
    coefficient_fields = section.section("coefficients")
    laws = _friction(section, count, default="none")
    names = coefficient_fields.names()
    lists = {name: coefficient_fields.numbers_per_joint(name, count) for name in names}
    coefficients = tuple(
        _joint_side(law, {n: float(lists[n][i]) for n in names}, float(side[i])) for i, law in enumerate(laws)
    )
    for index, law in enumerate(laws):
        missing = [name for name in law.coefficient_names if name not in coefficients[index]]
        if missing:
            section.fail("coefficients", f"lacks {', '.join(missing)} of the law {law.law.name!r}")
    springs = tuple((spring.number("k"), spring.number("l0")) for spring in fields.sections("springs"))
    if len(springs) != len(robot.springs):
        fields.fail("springs", f"has {len(springs)} entries for {len(robot.springs)} gravity-compensation springs")
    loss = fields.section("load_loss")
    scale = _side(loss, ratios)
    slope, offset = loss.numbers_per_joint("slope", count, 0.0), loss.numbers_per_joint("offset", count, 0.0)
    loss.finish()
    virtual = Virtual(
        inertia=inertia,
        rotor_inertia=fields.numbers_per_joint("rotor_inertia", count, 0.0),
        friction=tuple(laws),
        coefficients=coefficients,
        springs=springs,
        load_loss=np.column_stack([slope, offset * scale]),
        torque_noise=fields.numbers_per_joint("torque_noise", count, 0.0),
        encoder_resolution=fields.number("encoder_resolution", 0.0),
        payload=_link_inertia(fields.section("payload")) if "payload" in fields else None,
        note=fields.text("note"),
    )
    fields.take("payload")
    fields.finish()
    return virtual


def _side(fields: Fields, ratios: Array) -> Array:
    """Factor from the stated side to the joint side."""
    return ratios if fields.choice("side", ("joint", "motor"), "joint") == "motor" else np.ones(len(ratios))


# Coefficients that are velocities or shapes, not torques: they do not change with the side of the gear.
_SHAPES = ("vs", "f4", "f6", "g2", "g4")


def _joint_side(friction: Friction, coefficients: dict[str, float], factor: float) -> dict[str, float]:
    """Coefficients on the joint side; torque coefficients are multiplied by the gear ratio."""
    names = {name: name.rstrip("pn") if friction.per_direction else name for name in coefficients}
    return {name: value * (1.0 if names[name] in _SHAPES else factor) for name, value in coefficients.items()}


def _link_inertia(fields: Fields) -> Array:
    mass, com = fields.number("mass"), fields.vector("com", 3)
    section = fields.section("inertia")
    xx, xy, xz, yy, yz, zz = (section.number(key) for key in ("xx", "xy", "xz", "yy", "yz", "zz"))
    section.finish()
    fields.finish()
    return from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


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
