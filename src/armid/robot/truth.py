"""The `friction` and `virtual` sections of a robot file: laws, and the truth when the arm is simulated."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.errors import nearest
from armid.robot.friction import LAWS, Friction
from armid.robot.inertia import from_com
from armid.robot.robot import Robot, Virtual
from armid.robot.schema import Fields


def read_friction(fields: Fields, n: int, default: str = "coulomb-viscous") -> tuple[Friction, ...]:
    """Friction laws of `n` joints."""
    laws = fields.per_joint("law", n, lambda key, v: fields.checked_choice(key, v, tuple(LAWS)), default)
    offsets = fields.per_joint("offset", n, fields.checked_flag, False)
    directions = fields.per_joint("per_direction", n, fields.checked_flag, False)
    fields.finish()
    return tuple(Friction(LAWS[law], o, d) for law, o, d in zip(laws, offsets, directions, strict=True))


def read_virtual(fields: Fields, robot: Robot) -> Virtual:
    """Ground truth for the first links of the robot, torques on the joint side."""
    inertia = np.array([_link_inertia(link) for link in fields.sections("links")])
    count = len(inertia)
    if not 1 <= count <= robot.n_joints:
        fields.fail("links", f"has {count} entries; give one for each of the first links, at most {robot.n_joints}")
    ratios = np.array([drive.gear_ratio for drive in robot.drives[:count]])
    section = fields.section("friction")
    side = _side(section, ratios)
    coefficient_fields = section.section("coefficients")
    laws = read_friction(section, count, default="none")
    names = coefficient_fields.names()
    lists = {name: coefficient_fields.numbers_per_joint(name, count) for name in names}
    coefficients = tuple(
        _joint_side(law, {n: float(lists[n][i]) for n in names}, float(side[i])) for i, law in enumerate(laws)
    )
    for index, law in enumerate(laws):
        missing = [name for name in law.coefficient_names if name not in coefficients[index]]
        if missing:
            section.fail("coefficients", f"lacks {', '.join(missing)} of the law {law.law.name!r}")
    used = {name for law in laws for name in law.coefficient_names}
    for name in names:
        if name not in used:
            hint = nearest(name, used) or f"; valid: {', '.join(sorted(used)) or 'none'}"
            coefficient_fields.fail(name, f"is no coefficient of the law{hint}")
    springs = tuple(_spring(spring) for spring in fields.sections("springs"))
    if len(springs) != len(robot.springs):
        fields.fail("springs", f"has {len(springs)} entries for {len(robot.springs)} gravity-compensation springs")
    loss = fields.section("load_loss")
    scale = _side(loss, ratios)
    slope, offset = loss.numbers_per_joint("slope", count, 0.0), loss.numbers_per_joint("offset", count, 0.0)
    loss.finish()
    virtual = Virtual(
        inertia=inertia,
        rotor_inertia=_not_negative(fields, "rotor_inertia", count),
        friction=laws,
        coefficients=coefficients,
        springs=springs,
        load_loss=np.column_stack([slope, offset * scale]),
        torque_noise=_not_negative(fields, "torque_noise", count),
        encoder_resolution=float(_not_negative(fields, "encoder_resolution", 1)[0]),
        payload=_link_inertia(fields.section("payload")) if "payload" in fields else None,
        note=fields.text("note"),
    )
    fields.take("payload")
    fields.finish()
    return virtual


def _spring(fields: Fields) -> tuple[float, float]:
    """Stiffness and free length."""
    values = fields.number("k"), fields.number("l0")
    fields.finish()
    return values


def _not_negative(fields: Fields, key: str, count: int) -> Array:
    values = fields.numbers_per_joint(key, count, 0.0)
    if (values < 0.0).any():
        fields.fail(key, f"is negative ({values.min():g})")
    return values


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
