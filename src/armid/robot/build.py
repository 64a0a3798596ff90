"""From the entries of a robot file to a Robot: what needs more than one section to be checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError, nearest
from armid.files import FieldError, is_file, shown
from armid.registry import friction_laws
from armid.robot.chain import Follows, with_dependent
from armid.robot.description import (
    Description,
    DHTable,
    DriveEntries,
    FrictionEntries,
    LimitEntries,
    LinearSpringEntries,
    MjcfFile,
    ModifiedDH,
    PublishedSet,
    SimplificationEntries,
    SpringEntries,
    TrueFriction,
    UrdfFile,
    VirtualEntries,
    read_description,
)
from armid.robot.geometry import dh_joints, from_rpy, placement
from armid.robot.mjcf import read_mjcf
from armid.robot.parts import Friction
from armid.robot.quantities import PerJoint, coupling_matrix
from armid.robot.robot import (
    STANDARD_GRAVITY,
    Capsule,
    Counterbalance,
    Drive,
    GravitySpring,
    Limits,
    LinearSpring,
    Robot,
    Simplification,
    Virtual,
    inertial_names,
    parameter_number,
)
from armid.robot.urdf import read_urdf

Value = TypeVar("Value")


def robot_from_yaml(text: str, source: str, folder: Path, links: int | None = None) -> Robot:
    """Robot from the text of a robot file; files it names are relative to `folder`, `links` overrides its number."""
    entries = read_description(text, source)
    try:
        robot = _robot(entries, source, folder)
    except FieldError as error:
        raise DescriptionError(source, error.field, error.problem) from None
    in_use = robot.n_joints if entries.links is None else entries.links
    return robot.first_links(in_use if links is None else links)


def reflected_drives(robot: Robot) -> tuple[Drive, ...]:
    """Drives of a bare URDF or MJCF: unknown reflected inertias on the joint side, without coupling."""
    return _drives(DriveEntries(coupled=PerJoint(False)), robot)


def _robot(entries: Description, source: str, folder: Path) -> Robot:
    robot = _kinematics(entries, source, folder)
    for index, capsule in enumerate(entries.capsules):
        if not 0 <= capsule.link <= len(robot.links):
            problem = f"is {capsule.link}; links are numbered 0 (base) to {len(robot.links)}"
            raise FieldError(f"capsules[{index + 1}].link", problem)
    capsules = [Capsule(c.link, np.array(c.start), np.array(c.end), float(c.radius)) for c in entries.capsules]
    gravity = np.zeros(3) if entries.gravity == "none" else robot.gravity
    robot = replace(
        robot,
        name=entries.name,
        source=source,
        title=entries.title,
        tool=placement(from_rpy(entries.tool.rpy), entries.tool.xyz),
        gravity=np.array(entries.gravity) if isinstance(entries.gravity, tuple) else gravity,
        limits=_limits(entries.limits, robot),
        drives=_drives(entries.drives, robot),
        passive=_passive(entries.drives, robot.n_joints),
        coupling=_coupling(entries.drives, robot.n_joints),
        current_gain=_current_gain(entries.drives, robot.n_joints),
        friction=_friction("friction", entries.friction, robot.n_joints),
        capsules=tuple(capsules) or robot.capsules,
        unread_shapes=() if capsules else robot.unread_shapes,
        published={name: _published(one) for name, one in entries.published.items()},
        provenance=tuple(entries.provenance),
    )
    robot = _with_springs(entries, robot)
    for name in entries.known:
        _check_parameter(f"known.{name}", name, robot)
    return replace(
        robot,
        simplifications={
            name: _simplification(f"simplify.{name}", one, robot) for name, one in entries.simplify.items()
        },
        known={name: float(value) for name, value in entries.known.items()},
        virtual=None if entries.virtual is None else _virtual(entries.virtual, robot),
    )


def _kinematics(entries: Description, source: str, folder: Path) -> Robot:
    """Joints, those that follow others apart."""
    said = entries.kinematics.dependent.items()
    follows = {name: Follows({o: float(r) for o, r in one.ratios.items()}, float(one.offset)) for name, one in said}
    return with_dependent(_tree(entries, source, folder), follows)


def _tree(entries: Description, source: str, folder: Path) -> Robot:
    kinematics = entries.kinematics
    if isinstance(kinematics, DHTable):
        rows = [entry.row for entry in kinematics.rows]
        joints, lengths = dh_joints(
            rows,
            modified=isinstance(kinematics, ModifiedDH),
            parents=kinematics.parents or range(len(rows)),
            names=kinematics.joint_names or [f"joint{i + 1}" for i in range(len(rows))],
        )
        return Robot(name="", source=source, joints=joints, lengths=lengths, gravity=np.array(STANDARD_GRAVITY))
    assert isinstance(kinematics, UrdfFile | MjcfFile)
    path = folder / kinematics.file
    if not is_file(path):
        problem = f"names {shown(str(path))}, which is not there; paths are relative to the robot file"
        raise FieldError("kinematics.file", problem)
    return (read_urdf if isinstance(kinematics, UrdfFile) else read_mjcf)(path, kinematics.chain)


def _numbers(field: str, values: PerJoint[Any], joints: int, least: float = -np.inf) -> Array:
    array = np.array(values.over(joints, field), dtype=float)
    if (array < least).any():
        raise FieldError(field, f"is negative ({array.min():g})")
    return array


def _limits(entries: LimitEntries, robot: Robot) -> Limits:
    n, known = robot.n_joints, robot.limits
    values: dict[str, Array] = {"lower": known.lower, "upper": known.upper}
    if entries.position is not None:
        if len(entries.position) != n:
            problem = f"has {len(entries.position)} entries for {n} joints; give [lower, upper] for each"
            raise FieldError("limits.position", problem)
        values["lower"], values["upper"] = np.array(entries.position, dtype=float).T
    for name in ("velocity", "acceleration", "torque"):
        stated = getattr(entries, name)
        values[name] = getattr(known, name) if stated is None else _numbers(f"limits.{name}", stated, n)
        for index in np.flatnonzero(values[name] <= 0.0):
            problem = f"is {values[name][index]:.6g} for joint {index + 1}; limits are positive"
            raise FieldError(f"limits.{name}", problem)
    box = None if entries.box is None else np.array(entries.box, dtype=float)
    speed, floor = (None if stated is None else float(stated) for stated in (entries.tool_speed, entries.floor))
    return Limits(**values, box=box, tool_speed=speed, floor=floor, assumed=frozenset(entries.assumed))


def _drives(entries: DriveEntries, robot: Robot) -> tuple[Drive, ...]:
    n = robot.n_joints
    ratios = _numbers("drives.gear_ratio", entries.gear_ratio, n)
    if not ratios.all():
        raise FieldError("drives.gear_ratio", f"is 0 for joint {int(np.argmin(np.abs(ratios))) + 1}")
    carriers = entries.carrier or [joint.parent for joint in robot.joints]
    for name, values in (("carrier", carriers), ("axis", entries.axis or carriers)):
        if len(values) != n:
            raise FieldError(f"drives.{name}", f"has {len(values)} entries for {n} joints")
    for index, carrier in enumerate(carriers):
        if not 0 <= carrier <= len(robot.links):
            problem = f"is {carrier}; links are numbered 0 (base) to {len(robot.links)}"
            raise FieldError(f"drives.carrier[{index + 1}]", problem)
    axes = [np.array(axis) for axis in entries.axis]
    axes = axes or [_default_axis(robot, index, carrier) for index, carrier in enumerate(carriers)]
    for index, axis in enumerate(axes):
        if np.linalg.norm(axis) < 1e-9:
            problem = "has zero length; give the rotor's direction in the carrier's frame"
            raise FieldError(f"drives.axis[{index + 1}]", problem)
    known = _numbers("drives.rotor_inertia", entries.rotor_inertia, n)
    inertias = [None if np.isnan(inertia) else float(inertia) for inertia in known]
    coupled = entries.coupled.over(n, "drives.coupled")
    return tuple(
        Drive(float(ratio), inertia, carrier, axis / np.linalg.norm(axis), couples)
        for ratio, inertia, carrier, axis, couples in zip(ratios, inertias, carriers, axes, coupled, strict=True)
    )


def _default_axis(robot: Robot, index: int, carrier: int) -> Array:
    """The joint's axis at zero position in the carrier's frame (exact when the carrier is the joint's parent)."""
    joint = robot.joints[index]
    if carrier == joint.parent:
        return joint.placement[:3, 2].copy()
    frames = {0: np.eye(4)}
    for link in robot.outward:
        other = robot.links[link]
        frames[link + 1] = frames[other.parent] @ other.placement @ other.link_frame
    axis = (frames[joint.parent] @ joint.placement)[:3, 2]
    return frames[carrier][:3, :3].T @ axis


def _coupling(entries: DriveEntries, n: int) -> Array | None:
    rows = entries.coupling_matrix
    return coupling_matrix("drives.coupling_matrix", rows, n) if rows else None


def _current_gain(entries: DriveEntries, n: int) -> tuple[tuple[float, ...], ...] | None:
    if entries.current_gain is None:
        return None
    gains = entries.current_gain.over(n, "drives.current_gain")
    return tuple(tuple(float(factor) for factor in gain) for gain in gains)


def _passive(entries: DriveEntries, n: int) -> tuple[bool, ...]:
    passive = entries.passive.over(n, "drives.passive")
    if all(passive):
        raise FieldError("drives.passive", "holds every joint; without a torque nothing tells the size of the masses")
    return tuple(passive) if any(passive) else ()


def _friction(field: str, entries: FrictionEntries, n: int) -> tuple[Friction, ...]:
    """Friction laws of `n` joints."""
    laws = entries.law.over(n, f"{field}.law")
    for law in laws:
        if law not in friction_laws:
            hint = nearest(law[:80], friction_laws)
            raise FieldError(f"{field}.law", f"is {shown(law)}{hint}; valid: {', '.join(friction_laws)}")
    offsets = entries.offset.over(n, f"{field}.offset")
    directions = entries.per_direction.over(n, f"{field}.per_direction")
    return tuple(Friction(law, o, d) for law, o, d in zip(laws, offsets, directions, strict=True))


def _with_springs(entries: Description, robot: Robot) -> Robot:
    springs, linear, tables = [], list(robot.linear_springs), []
    for index, spring in enumerate(entries.springs):
        if isinstance(spring, LinearSpringEntries):
            linear.append(LinearSpring(_along(f"springs[{index + 1}].along", spring.along, robot)))
            continue
        if not 1 <= spring.joint <= robot.n_joints:
            problem = f"is {spring.joint}; joints are numbered 1 to {robot.n_joints}"
            raise FieldError(f"springs[{index + 1}].joint", problem)
        if isinstance(spring, SpringEntries):
            springs.append(GravitySpring(spring.joint, float(spring.a), float(spring.b), float(spring.phi)))
        else:
            tables.append(Counterbalance(spring.joint, np.array(spring.position), np.array(spring.torque)))
    return replace(robot, springs=tuple(springs), linear_springs=tuple(linear), counterbalances=tuple(tables))


def _along(field: str, ratios: Mapping[str, float], robot: Robot) -> Array:
    """A direction in joint space from ratios by name of the joint."""
    for name in ratios:
        if name not in robot.joint_names:
            raise FieldError(field, f"names {shown(name)}; joints are {', '.join(robot.joint_names)}")
    return np.array([float(ratios.get(name, 0.0)) for name in robot.joint_names])


def _check_parameter(field: str, name: str, robot: Robot) -> None:
    if not 1 <= parameter_number(name) <= max(len(robot.links), len(robot.springs) + len(robot.linear_springs)):
        names = f"names look like Ixx3, my2, Im1 (1 to {len(robot.links)})"
        raise FieldError(field, f"{shown(name)} is no parameter of this robot; {names}")


def _simplification(field: str, entries: SimplificationEntries, robot: Robot) -> Simplification:
    for name in entries.zero:
        _check_parameter(f"{field}.zero", name, robot)
    for link in entries.neglect_links:
        if not 1 <= link <= len(robot.links):
            problem = f"holds {link}; links are numbered 1 to {len(robot.links)}"
            raise FieldError(f"{field}.neglect_links", problem)
    neglected = {name for link in entries.neglect_links for name in inertial_names(link)}
    return Simplification(frozenset(entries.zero) | neglected, entries.note)


def _published(entries: PublishedSet) -> Mapping[str, Any]:
    """A set from the literature as plain data, without what it does not state."""
    return {**_stated(entries), "parameters": [_stated(row) for row in entries.parameters]}


def _stated(entries: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(entries).items() if value is not None}


def _virtual(entries: VirtualEntries, robot: Robot) -> Virtual:
    """Ground truth for the first links of the robot, torques on the joint side."""
    count = len(entries.links)
    if not 1 <= count <= robot.n_joints:
        problem = f"has {count} entries; give one for each of the first links, at most {robot.n_joints}"
        raise FieldError("virtual.links", problem)
    if len(entries.springs) != (needed := len(robot.springs) + len(robot.linear_springs)):
        problem = f"has {len(entries.springs)} entries for {needed} springs, gravity-compensation ones first"
        raise FieldError("virtual.springs", problem)
    if entries.encoder_resolution < 0.0:
        raise FieldError("virtual.encoder_resolution", f"is negative ({entries.encoder_resolution:g})")
    ratios = np.array([drive.gear_ratio for drive in robot.drives[:count]])
    laws = _friction("virtual.friction", entries.friction, count)
    loss, factor = entries.load_loss, ratios if entries.load_loss.side == "motor" else np.ones(count)
    slope = _numbers("virtual.load_loss.slope", loss.slope, count)
    offset = _numbers("virtual.load_loss.offset", loss.offset, count)
    return Virtual(
        inertia=np.array([link.parameters for link in entries.links]),
        rotor_inertia=_numbers("virtual.rotor_inertia", entries.rotor_inertia, count, least=0.0),
        friction=laws,
        coefficients=_coefficients(entries.friction, laws, ratios),
        springs=tuple((float(spring.k), float(spring.l0)) for spring in entries.springs),
        load_loss=np.column_stack([slope, offset * factor]),
        torque_noise=_numbers("virtual.torque_noise", entries.torque_noise, count, least=0.0),
        encoder_resolution=float(entries.encoder_resolution),
        payload=None if entries.payload is None else entries.payload.parameters,
        note=entries.note,
    )


def _coefficients(entries: TrueFriction, laws: Sequence[Friction], ratios: Array) -> tuple[Mapping[str, float], ...]:
    """Friction coefficients of each joint on the joint side: torques of the motor side times the gear ratio."""
    field = "virtual.friction.coefficients"
    lists = {name: _numbers(f"{field}.{name}", value, len(laws)) for name, value in entries.coefficients.items()}
    result = []
    for index, law in enumerate(laws):
        missing = [name for name in law.coefficient_names if name not in lists]
        if missing:
            raise FieldError(field, f"lacks {', '.join(missing)} of the law {law.law!r}")
        shapes = {name for name in lists if (name.rstrip("pn") if law.per_direction else name) in law.formula.shapes}
        factor = ratios[index] if entries.side == "motor" else 1.0
        result.append({name: float(v[index] * (1.0 if name in shapes else factor)) for name, v in lists.items()})
    used = {name for law in laws for name in law.coefficient_names}
    for name in lists:
        if name not in used:
            hint = nearest(name, used) or f"; valid: {', '.join(sorted(used)) or 'none'}"
            raise FieldError(f"{field}.{name}", f"is no coefficient of the law{hint}")
    return tuple(result)
