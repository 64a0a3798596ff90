"""From a name or a path to a Robot, and a commented robot file to start from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from armid.errors import DescriptionError, UnknownNameError
from armid.escaping import comments, file_name
from armid.files import parse_xml, plain, read_text
from armid.registry import friction_laws
from armid.robot.build import reflected_drives, robot_from_yaml
from armid.robot.chain import Chain
from armid.robot.mjcf import read_mjcf
from armid.robot.parts import Friction
from armid.robot.robot import Limits, Robot
from armid.robot.urdf import read_urdf

_SUFFIXES = (".yaml", ".yml", ".urdf", ".xml", ".mjcf")


def library_names() -> tuple[str, ...]:
    """Names of the robots that come with armid."""
    folder = resources.files("armid.robot.library")
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def load_robot(
    robot: str | Path,
    *,
    links: int | None = None,
    rotors: bool = True,
    gravity: Sequence[float] | None = None,
    simplify: str | None = None,
    joints: Sequence[str] = (),
    between: tuple[str | None, str | None] = (None, None),
) -> Robot:
    """Load a robot from the library or from a ``.yaml``, ``.urdf`` or MJCF ``.xml`` file.

    Args:
        robot: library name or path.
        links: use only the first links (default: as described).
        rotors: False leaves rotor inertias out.
        gravity: gravity in the base frame [m/s^2] (default: as described).
        simplify: named set of zero parameters, or ``none`` (default: ``published`` where the description has it).
        joints: names of the arm's joints in a URDF or MJCF file of more than the arm; the others are locked where they
            are, and their links count as part of those they hang on.
        between: links from and to which the arm's joints lie, instead; None for the file's first link, and for its
            tips.

    Returns:
        The robot with these choices applied.
    """
    result = _read(str(robot), links, Chain(tuple(joints), *between))
    if simplify is None:
        simplify = "published" if "published" in result.simplifications else "none"
    result = result.simplified(simplify)
    if gravity is not None:
        if not any(gravity):
            problem = "has zero length, so gravity parameters cannot be found; if that is meant, write `gravity: none`"
            raise DescriptionError(result.source, "gravity", f"{problem} in a robot file")
        result = result.with_gravity(gravity)
    return result if rotors else result.without_rotors()


def robot_digest(robot: Robot) -> str:
    """SHA-256 of all of a robot, its truth and published values included, wherever they were read from."""
    parts = plain([robot, robot.virtual, dict(robot.published)])
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _read(name: str, links: int | None, chain: Chain) -> Robot:
    if chain and Path(name).suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        raise DescriptionError(name, "joints", "are chosen from URDF and MJCF files, or in a robot file's kinematics")
    if name in library_names():
        folder = resources.files("armid.robot.library")
        return robot_from_yaml(folder.joinpath(f"{name}.yaml").read_text("utf-8"), name, Path(), links)
    path = Path(name)
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES and not _exists(path):
        raise UnknownNameError("robot", name, (*library_names(), "FILE.yaml", "FILE.urdf", "FILE.xml"))
    if suffix in (".yaml", ".yml"):
        return robot_from_yaml(read_text(path), name, path.parent, links)
    if suffix in (".urdf", ".xml", ".mjcf"):
        root = parse_xml(path).tag
        if root not in ("mujoco", "robot"):
            raise DescriptionError(name, f"<{root}>", "is neither a URDF (<robot>) nor an MJCF (<mujoco>)")
        bare = read_mjcf(path, chain) if root == "mujoco" else read_urdf(path, chain)
        full = _with_defaults(bare)
        return full if links is None else full.first_links(links)
    problem = f"has the ending {suffix!r}" if suffix else "has no ending that says what it is"
    if path.is_dir():
        problem = "is a folder; name the file that describes the robot"
    raise DescriptionError(name, "", f"{problem}; armid reads {', '.join(_SUFFIXES)}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _with_defaults(robot: Robot) -> Robot:
    """What a bare URDF or MJCF file does not say: reflected rotors, Coulomb and viscous friction with an offset."""
    sprung = [s.ratios for s in robot.linear_springs if np.count_nonzero(s.ratios) == 1]  # the rest is an offset
    offsets = ~np.any(sprung, axis=0) if sprung else np.ones(robot.n_joints, dtype=bool)
    friction = tuple(Friction("coulomb-viscous", offset=bool(offset)) for offset in offsets)
    return replace(robot, drives=reflected_drives(robot), friction=friction)


_DH_ROWS = """\
  convention: modified-dh               # or standard-dh
  rows:                                 # [alpha, a, d, theta offset]; add `prismatic` for a sliding joint
    - [0, 0, 0.3, 0]                    # modified-dh: alpha_(i-1), a_(i-1), d_i, offset of theta_i
    - [-pi/2, 0, 0, 0]                  # angles: -pi/2, 90 deg or plain radians; lengths in metres
    - [0, 0.3, 0, 0]
"""


def description_for(source: Path, target: Path, **arm: Any) -> str:
    """Text of a robot file for a URDF or MJCF file, or a template with a DH table for a .yaml name.

    `arm` chooses joints of the file, as in `load_robot`.
    """
    if source.suffix.lower() in (".yaml", ".yml"):
        return _text(source.stem, _DH_ROWS, None, 3)
    if source.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        problem = "is neither a .urdf nor an .xml file to describe nor a .yaml file to create"
        raise DescriptionError(str(source), "", problem)
    robot = load_robot(source, **arm)
    mjcf = source.suffix.lower() != ".urdf" and b"<mujoco" in source.read_bytes()
    relative = os.path.relpath(source.resolve(), target.resolve().parent)
    rows = (
        f"  convention: {'mjcf' if mjcf else 'urdf'}\n"
        f"  file: {json.dumps(relative, ensure_ascii=False)}\n"
        + (f"  joints: {json.dumps(robot.joint_names, ensure_ascii=False)}\n" if _chosen(arm) else "")
        + f"  # joints, in order: {comments(robot.joint_names)}\n"
    )
    return _text(robot.name or source.stem, rows, robot, robot.n_joints)


def _chosen(arm: Mapping[str, Any]) -> bool:
    return bool(arm.get("joints")) or any(arm.get("between", ()))


def _text(name: str, kinematics: str, robot: Robot | None, joints: int) -> str:
    gravity = [0.0, 0.0, -9.81] if robot is None else robot.gravity.tolist() if robot.gravity.any() else "none"
    text = (resources.files("armid.robot") / "assets" / "template.yaml").read_text("utf-8")
    entries = {"name": file_name(name), "joints": joints, "kinematics": kinematics, "gravity": gravity}
    laws = ", ".join(law for law in friction_laws if law != "coulomb-viscous")
    return Template(text).substitute(entries, limits=_limits(robot, joints), laws=laws)


def _limits(robot: Robot | None, joints: int) -> str:
    """Limits that the file states stand as comments (they are used as they are); missing ones are to be filled in."""
    limits = Limits.unknown(joints) if robot is None else robot.limits
    lines = []
    for field, unit in (("position", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"), ("torque", "N m")):
        values = np.column_stack([limits.lower, limits.upper]) if field == "position" else getattr(limits, field)
        if np.isnan(values).any():
            example = [[-3.0, 3.0]] * joints if field == "position" else [1.0] * joints
            lines.append(f"  # {field}: {example}   # {unit}; fill in\n")
        else:
            lines.append(f"  # {field}: {np.round(values, 4).tolist()}   # {unit}, from the file\n")
    return "".join(lines)
