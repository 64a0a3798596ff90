"""`armid robots [NAME]`, `armid new FILE` and `armid model ROBOT`: the arms there are, and their parameters."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import armid
from armid.cli.arguments import arg
from armid.cli.options import ARM_CHOICE, PICTURES, ROBOTS, arm_choice, command, finish, robot_arguments, robot_from
from armid.errors import ArmidError

_LIMITS = ("lower", "upper", "velocity", "acceleration", "torque")


@command(
    "robots",
    "list or describe the built-in robots",
    "List the built-in robots, or describe one: joints, limits, drives, and where each number is from.",
    arg("name [ROBOT]", "library name or a description file", values=ROBOTS),
)
def robots(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.name is not None:
        robot = armid.load_robot(options.name)
        return finish(options, _as_data(robot), _describe(robot))
    robots = [armid.load_robot(name) for name in armid.library_names()]
    width = max(len(robot.name) for robot in robots)
    lines = [f"{robot.name:<{width}}  {robot.title}" for robot in robots]
    lines += ["", "`armid robots NAME` describes one; `armid model NAME` shows its base parameters."]
    return finish(
        options, {"robots": [{"name": r.name, "title": r.title, "joints": r.n_joints} for r in robots]}, lines
    )


@command(
    "new",
    "start a description for your own arm",
    "Write a commented robot file to start from: for a URDF or MJCF file, or with a DH table.",
    arg("file FILE", "arm.urdf or arm.xml to describe, or arm.yaml for a DH template"),
    arg("-o --output FILE", "file to write (default: FILE with the ending .yaml)"),
    arg("--force", "overwrite an existing file"),
    *ARM_CHOICE,
)
def new(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.files import write_text
    from armid.robot.load import description_for

    source = Path(options.file)
    if not source.name:
        raise ArmidError(f"{options.file!r} is no file name; give arm.urdf, arm.xml or arm.yaml")
    target = Path(options.output) if options.output else source.with_suffix(".yaml")
    if source.suffix.lower() not in (".yaml", ".yml") and target.resolve() == source.resolve():
        raise ArmidError(f"{target}: is the file to be described; choose another name with -o")
    if os.path.lexists(target) and not options.force:
        raise ArmidError(f"{target}: exists already; choose another name with -o or overwrite it with --force")
    write_text(target, description_for(source, target, **arm_choice(options)))
    text = f"wrote {target}; edit it, then: armid model {shlex.quote(str(target))}"
    return finish(options, {"file": str(target)}, text)


def _as_data(robot: armid.Robot) -> dict[str, Any]:
    limits = robot.limits
    return {
        "name": robot.name,
        "title": robot.title,
        "source": robot.source,
        "joints": [
            {
                "name": joint.name,
                "type": "prismatic" if joint.prismatic else "revolute",
                "parent": joint.parent,
                **{name: getattr(limits, name)[i] for name in _LIMITS},
                "gear_ratio": robot.drives[i].gear_ratio if robot.drives else None,
                "friction": robot.friction[i].law,
            }
            for i, joint in enumerate(robot.joints)
        ],
        "gravity": robot.gravity,
        "assumed_limits": sorted(limits.assumed),
        "published": list(robot.published),
        "virtual": robot.virtual is not None,
        "provenance": robot.provenance,
    }


def _describe(robot: armid.Robot) -> Iterable[str]:
    yield f"{robot.name}: {robot.title}" if robot.title else robot.name
    yield f"gravity {' '.join(map('{:g}'.format, robot.gravity))} m/s²"
    yield ""
    sliding = any(joint.prismatic for joint in robot.joints)
    units = "position, rad/m   per s    per s²     N m/N" if sliding else "position, rad      rad/s    rad/s²      N m"
    yield f"joint                 type       {units}   gear  friction"
    limits = robot.limits
    for i, joint in enumerate(robot.joints):
        kind = "prismatic" if joint.prismatic else "revolute"
        span = f"{_plain(limits.lower[i])} … {_plain(limits.upper[i])}"
        gear = _plain(robot.drives[i].gear_ratio) if robot.drives else "-"
        yield (
            f"{i + 1} {joint.name:<19} {kind:<10} {span:<16} {_plain(limits.velocity[i]):>7} "
            f"{_plain(limits.acceleration[i]):>9} {_plain(limits.torque[i]):>8} {gear:>6}  {robot.friction[i].law}"
        )
    for number, one in enumerate(robot.dependent, start=robot.n_joints + 1):
        parts = (f"{ratio:+.4g} {robot.joint_names[j]}" for j, ratio in enumerate(one.ratios) if ratio)
        yield f"{number} {one.joint.name:<19} follows {' '.join(parts)} {one.offset:+.4g}"
    if robot.passive:
        names = (name for name, passive in zip(robot.joint_names, robot.passive, strict=True) if passive)
        yield f"without a motor: {', '.join(names)}"
    if limits.assumed:
        yield f"assumed limits: {', '.join(sorted(limits.assumed))}"
    for spring in robot.springs:
        ends = f"ends {spring.a:g} and {spring.b:g} m from the axis"
        yield f"spring on joint {spring.joint}: {ends}, phi {spring.phi:.4g} rad"
    for number, linear in enumerate(robot.linear_springs, start=len(robot.springs) + 1):
        parts = (f"{ratio:+.4g} {robot.joint_names[j]}" for j, ratio in enumerate(linear.ratios) if ratio)
        yield f"linear spring {number} along {' '.join(parts)}"
    for table in robot.counterbalances:
        yield f"known counterbalance on joint {table.joint}"
    if robot.coupling is not None:
        yield f"motor coupling matrix: {robot.coupling.tolist()}"
    for name, simplification in robot.simplifications.items():
        yield f"simplification {name}: {len(simplification.zero)} zeros; {simplification.note}"
    for name, rows in robot.published.items():
        kind = "a view too" if any("formula" in row for row in rows["parameters"]) else "values only"
        yield f"published set {name}: {rows.get('title', '')} ({len(rows['parameters'])} values, {kind})"
    if robot.virtual is not None:
        yield f"virtual robot: {robot.virtual.note}"
    if robot.provenance:
        yield ""
        yield "where the numbers come from"
    for entry in robot.provenance:
        details = "; ".join(part for part in (entry.source, entry.note, ", ".join(entry.errata)) if part)
        yield f"  {entry.status:<12} {entry.field}{': ' + details if details else ''}"


def _plain(value: float) -> str:
    return "-" if value != value else f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


@command(
    "model",
    "show the base parameters of a robot, in words",
    "Show which parameters can be identified alone, which only in combination, which not at all.",
    *robot_arguments(),
    *ARM_CHOICE,
    arg(
        "--view NAME",
        "another list of parameters: barycentric, modified-newton-euler, or a published set",
        values="armid.dynamics.views:GENERAL",
    ),
    PICTURES,
)
def model(options: argparse.Namespace) -> int:
    """Run the command."""
    model = armid.Model(robot_from(options))
    other = armid.view(model, options.view) if options.view else None
    data = _model_data(model) if options.json else {}
    files = [_draw_frames(model, options.pictures)] if options.pictures else None
    if other is not None:
        return finish(options, {**data, "view": _view_data(other)}, _describe_view(other), files)
    return finish(options, data, _describe_model(model), files)


def _draw_frames(model: armid.Model, folder: str) -> Path:
    from armid import theme
    from armid.escaping import file_name
    from armid.papers.frames import frames_figure

    return theme.save(frames_figure(model.robot), Path(folder) / f"{file_name(model.robot.name)}-frames.png")


def _standard(model: armid.Model) -> int:
    return sum(parameter.kind in ("inertial", "rotor") for parameter in model.parameters)


def _friction_count(model: armid.Model) -> int:
    """Unknown coefficients of the described laws, which need not be linear, and of coupled drives."""
    friction = {parameter.name for parameter in model.parameters if parameter.kind == "friction"}
    coupled = sum(name[2] == "c" for name in friction)
    known = len(friction & set(model.known))
    return coupled - known + sum(len(friction.coefficient_names) for friction in model.robot.friction)


def _springs(model: armid.Model) -> int:
    return len(model.base.groups_of("spring"))


def _model_data(model: armid.Model) -> dict[str, Any]:
    base = model.base
    inertial = {p.name for p in model.parameters if p.kind in ("inertial", "rotor")}
    return {
        "robot": model.robot.name,
        "joints": model.robot.n_joints,
        "joint_names": list(model.robot.joint_names),
        "gravity": model.robot.gravity,
        "standard_parameters": _standard(model),
        "base_parameters": base.count,
        "friction_parameters": _friction_count(model),
        "spring_parameters": _springs(model),
        "groups": [
            {"name": group.name, "expression": group.expression, "unit": group.unit, "terms": _terms(group.terms)}
            for group in base.groups_of("inertial", "rotor")
        ],
        "alone": [name for name in base.alone if name in inertial],
        "combined": [name for name in base.combined if name in inertial],
        "unidentifiable": list(base.no_effect),
        "zero": sorted(model.robot.zero),
        "disagreement": base.disagreement(),
    }


def _terms(pairs: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"parameter": name, "coefficient": value} for name, value in pairs]


def _describe_model(model: armid.Model) -> Iterable[str]:
    robot, base = model.robot, model.base
    yield f"{robot.name}: {robot.title}" if robot.title else robot.name
    friction, springs = _friction_count(model), _springs(model)
    total = base.count + friction + springs
    parts = f"{base.count} base + {friction} friction"
    yield (
        f"{robot.n_joints} joint{'s' if robot.n_joints > 1 else ''}, {_standard(model)} standard parameters, {parts}"
        + (f" + {springs} spring" if springs else "")
        + f" = {total} to identify"
    )
    if robot.zero:
        yield f"{len(robot.zero)} parameters are taken as zero (--simplify none keeps them)"
    yield ""
    groups = base.groups_of("inertial", "rotor")
    width = max((len(group.name) for group in groups), default=0)
    for number, group in enumerate(groups, start=1):
        words = f"= {group.expression}" if len(group.terms) > 1 else "  alone"
        yield f"{number:>3}  {group.name:<{width}} {words}"
    yield ""
    yield f"no effect on any torque: {', '.join(base.no_effect) or 'none'}"
    springs_absorbed = [name for name in base.combined if name.startswith(("ks", "kl"))]
    if springs_absorbed:
        yield f"springs that gravity hides: {', '.join(springs_absorbed)} (they belong to groups above)"
    yield (
        f"grouped and full model agree to {base.disagreement():.0e}; weakest column kept {base.weakest_kept:.1e}, "
        f"strongest absorbed {base.strongest_absorbed:.0e}"
    )


def _view_data(view: armid.View) -> dict[str, Any]:
    names = view.model.names
    classes = view.classes()
    return {
        "name": view.name,
        "identifiable_combinations": view.identifiable_combinations(),
        "entries": [
            {
                "name": entry,
                "unit": view.units[i],
                "class": classes[i],
                "terms": _terms((names[c], view.matrix[i, c]) for c in view.matrix[i].nonzero()[0]),
            }
            for i, entry in enumerate(view.entries)
        ],
    }


def _describe_view(view: armid.View) -> Iterable[str]:
    classes = view.classes()
    combinations = view.identifiable_combinations()
    count = f"{len(view.entries)} parameters, {combinations} combinations identifiable"
    yield f"{view.model.robot.name}, {view.name}: {count}"
    width = max(len(entry) for entry in view.entries)
    for i, entry in enumerate(view.entries):
        terms = [(view.model.names[c], view.matrix[i, c]) for c in view.matrix[i].nonzero()[0]]
        yield f"  {entry:<{width}}  {classes[i]:<9}  {_sum(terms)}"


def _sum(terms: Sequence[tuple[str, float]]) -> str:
    """Terms as people write a sum."""
    text = ""
    for name, value in terms:
        size = "" if abs(value) == 1.0 else f"{abs(value):.6g} "
        sign = " − " if value < 0.0 else " + " if text else ""
        text += f"{sign}{size}{name}"
    return text.lstrip() or "0"
