"""armid robots: list or describe the built-in robots."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from armid.cli.options import add_json_option, print_json

if TYPE_CHECKING:
    from armid.robot import Robot


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Add the command."""
    command: argparse.ArgumentParser = commands.add_parser(
        "robots",
        help="list or describe the built-in robots",
        description="List the built-in robots, or describe one: joints, limits, drives, and where each number is from.",
    )
    command.add_argument("name", nargs="?", metavar="NAME", help="library name or a description file")
    add_json_option(command)
    return command


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from armid.robot import library_names, load_robot

    if options.name is None:
        robots = [load_robot(name) for name in library_names()]
        if options.json:
            print_json({"robots": [{"name": r.name, "title": r.title, "joints": r.n_joints} for r in robots]})
        else:
            width = max(len(robot.name) for robot in robots)
            sys.stdout.writelines(f"{robot.name:<{width}}  {robot.title}\n" for robot in robots)
            sys.stdout.write("\n`armid robots NAME` describes one; `armid model NAME` shows its base parameters.\n")
        return 0
    robot = load_robot(options.name)
    if options.json:
        print_json(_as_data(robot))
    else:
        sys.stdout.write("\n".join(_describe(robot)) + "\n")
    return 0


def _as_data(robot: Robot) -> dict[str, Any]:
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
                "lower": _number(limits.lower[i]),
                "upper": _number(limits.upper[i]),
                "velocity": _number(limits.velocity[i]),
                "acceleration": _number(limits.acceleration[i]),
                "torque": _number(limits.torque[i]),
                "gear_ratio": robot.drives[i].gear_ratio if robot.drives else None,
                "friction": robot.friction[i].law,
            }
            for i, joint in enumerate(robot.joints)
        ],
        "gravity": robot.gravity.tolist(),
        "assumed_limits": sorted(limits.assumed),
        "published": list(robot.published),
        "virtual": robot.virtual is not None,
        "provenance": [
            {"field": p.field, "status": p.status, "source": p.source, "note": p.note, "errata": list(p.errata)}
            for p in robot.provenance
        ],
    }


def _number(value: float) -> float | None:
    return None if value != value else float(value)


def _describe(robot: Robot) -> Iterable[str]:
    yield f"{robot.name}: {robot.title}" if robot.title else robot.name
    yield f"gravity {_vector(robot.gravity)} m/s²"
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
    if limits.assumed:
        yield f"assumed limits: {', '.join(sorted(limits.assumed))}"
    for spring in robot.springs:
        ends = f"ends {spring.a:g} and {spring.b:g} m from the axis"
        yield f"spring on joint {spring.joint}: {ends}, phi {spring.phi:.4g} rad"
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


def _vector(values: Iterable[float]) -> str:
    return " ".join(f"{value:g}" for value in values)
