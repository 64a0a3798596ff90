"""Options that several commands share."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from armid.errors import ArmidError

if TYPE_CHECKING:
    from armid.robot import Robot


def add_robot_options(command: argparse.ArgumentParser, *, also: str = "") -> None:
    """ROBOT and the options that change it; `also` is what else may stand there."""
    command.add_argument(
        "robot", metavar="ROBOT", help=f"library name (see `armid robots`) or a .yaml, .urdf, .xml file{also}"
    )
    command.add_argument("--links", type=int, metavar="N", help="use only the first N links")
    command.add_argument("--no-rotors", action="store_true", help="leave rotor inertias out")
    command.add_argument(
        "--gravity", nargs=3, type=float, metavar=("X", "Y", "Z"), help="gravity in the base frame, m/s^2 (mounting)"
    )
    command.add_argument(
        "--simplify", metavar="SET", help="zeros by symmetry: published (default where there are any) or none"
    )


def add_json_option(command: argparse.ArgumentParser) -> None:
    """--json."""
    command.add_argument("--json", action="store_true", help="one JSON object on standard output")


def robot_from(options: argparse.Namespace) -> Robot:
    """The robot that the options describe."""
    from armid.robot import load_robot

    if options.gravity is not None and not any(options.gravity):
        raise ArmidError(
            "--gravity 0 0 0: has zero length, so gravity parameters cannot be found; "
            "if that is meant, write `gravity: none` in a robot file"
        )
    return load_robot(
        options.robot,
        links=options.links,
        rotors=not options.no_rotors,
        gravity=options.gravity,
        simplify=options.simplify,
    )


def print_json(data: dict[str, Any]) -> None:
    """Write one JSON object."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
