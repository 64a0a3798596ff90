"""The user's own URDF or MJCF: where it is, whether it is of the same robot, and which of its numbers change."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.errors import ArmidError, ArmidWarning, DescriptionError
from armid.exporting.arm import ExportError
from armid.exporting.xml_edit import Node
from armid.files import is_file, read_text
from armid.robot.description import read_description
from armid.robot.geometry import inverse
from armid.robot.inertia import tensor
from armid.robot.mjcf import read_mjcf
from armid.robot.robot import Joint, Robot
from armid.robot.urdf import read_urdf

SAME = 1e-9  # [m, rad] by which the geometry of the same robot may differ
NOISE = 1e-12  # share of a link's size below which a number is round-off, and by which equal numbers may differ
READERS: Mapping[str, Callable[[Path], Robot]] = {"urdf": read_urdf, "mjcf": read_mjcf}


def own_file(robot: Robot, kind: str, given: str | Path | None) -> Path | None:
    """The file that a robot was read from; None for a robot that did not come from one of this kind, or only in part.

    Args:
        robot: the robot of the fit.
        kind: ``urdf`` or ``mjcf``.
        given: where the file is, if not where the fit read it.

    Raises:
        ExportError: it came from one that is not to be found, or `given` is of another robot.
    """
    if given is not None:
        path = Path(given)
        _check_same(robot, read_quietly(path, kind), path)
        return path
    if robot.nominal_inertia is None or (robot.nominal_rotors is None) != (kind == "urdf"):
        return None
    path = _stated_source(robot)
    if not is_file(path):
        raise ExportError(
            f"{path}: the {kind.upper()} that {robot.name} was read from is not there; name it with --{kind} FILE, so "
            "that it can be completed"
        )
    try:
        other = read_quietly(path, kind)
    except DescriptionError:
        return None  # it holds more than the arm, which cannot be read
    if other.n_joints > robot.n_joints:
        return None  # the fit is of its first links, or of a part: it takes a new file to say so
    _check_same(robot, other, path)
    return path


def _stated_source(robot: Robot) -> Path:
    """The file behind a robot, directly or through its robot file."""
    path = Path(robot.source)
    if path.suffix.lower() not in (".yaml", ".yml") or not is_file(path):
        return path
    try:
        return path.parent / str(getattr(read_description(read_text(path), str(path)).kinematics, "file", ""))
    except ArmidError:
        return path.with_suffix(".urdf")


def read_quietly(path: Path, kind: str) -> Robot:
    """The robot of a file whose warnings were given when the fit was made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ArmidWarning)
        return READERS[kind](path)


def _check_same(robot: Robot, other: Robot, path: Path) -> None:
    if other.joint_names != robot.joint_names:
        raise ExportError(
            f"{path}: is of another robot: its joints are {', '.join(other.joint_names)}; the fit's are "
            f"{', '.join(robot.joint_names)}"
        )
    if not np.array_equal(robot.ratios, other.ratios):
        raise ExportError(f"{path}: is of another robot: other joints follow others than in the fit")
    for one, two in zip(robot.links, other.links, strict=True):
        same = one.parent == two.parent and one.prismatic == two.prismatic and one.link_name == two.link_name
        if not same or _gap(one, two) > SAME:
            raise ExportError(
                f"{path}: is of another robot: joint {one.name!r} has another place, kind or link than in the fit; "
                "give the file that the fit was made with"
            )


def _gap(one: Joint, two: Joint) -> float:
    """By how much two joints differ in where their link is at zero and in the line of their axis, seen from there."""
    axes = [inverse(joint.link_frame) for joint in (one, two)]
    apart = axes[0][:3, 3] - axes[1][:3, 3]
    gaps = (
        one.placement @ one.link_frame - two.placement @ two.link_frame,
        axes[0][:3, 2] - axes[1][:3, 2],
        np.zeros(3) if one.prismatic else np.cross(axes[0][:3, 2], apart),
    )
    return max(float(np.abs(gap).max()) for gap in gaps)


def unchanged_links(links: Array, path: Path, kind: str) -> list[bool]:
    """Whether each link's identified inertia is what the file says already, with all that is fixed to it."""
    stated = read_quietly(path, kind).nominal_inertia
    if stated is None:
        return [False] * len(links)
    return [_equal(new, old) for new, old in zip(links, stated, strict=True)]


def _equal(new: Array, old: Array) -> bool:
    """Whether two links are the same but for round-off; each quantity against the link's own size."""
    mass, inertia = abs(float(old[0])), float(np.trace(tensor(old)))
    moment = max(float(np.abs(old[1:4]).max()), math.sqrt(mass * max(inertia, 0.0)))
    return bool((np.abs(new - old) <= NOISE * np.repeat([mass, moment, abs(inertia)], [1, 3, 6])).all())


def without_round_off(mass: float, com: Array, about: Array) -> tuple[Array, Array]:
    """Centre of mass and inertia about it, zero where they are below round-off of the link's size."""
    trace = float(np.trace(about))
    size = max(float(np.abs(com).max()), math.sqrt(max(trace, 0.0) / mass) if mass > 0.0 else 0.0)
    return (
        np.where(np.abs(com) <= NOISE * size, 0.0, com),
        np.where(np.abs(about) <= NOISE * abs(trace), 0.0, about),
    )


def changed(node: Node, values: Mapping[str, str]) -> dict[str, str]:
    """Those of the values that say another number than the file does; a row keeps the file's own words for the rest."""
    result = {}
    for name, text in values.items():
        new, old = text.split(), node.attributes.get(name, "").split()
        if len(new) != len(old):
            result[name] = text
        elif not all(map(_same, old, new)):
            result[name] = " ".join(one if _same(one, two) else two for one, two in zip(old, new, strict=True))
    return result


def _same(old: str, new: str) -> bool:
    try:
        return math.isclose(float(old), float(new), rel_tol=NOISE)
    except ValueError:
        return False
