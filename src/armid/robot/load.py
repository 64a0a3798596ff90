"""From a name or a path to a Robot."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np

from armid.errors import DescriptionError, UnknownNameError
from armid.files import parse_xml, plain, read_text
from armid.robot.build import reflected_drives, robot_from_yaml
from armid.robot.chain import Chain
from armid.robot.friction import Friction
from armid.robot.mjcf import read_mjcf
from armid.robot.robot import Robot
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
