"""A commented robot file to start from."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError
from armid.escaping import comments
from armid.registry import friction_laws
from armid.robot.load import load_robot
from armid.robot.robot import Robot

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
    entries = {"name": _identifier(name), "joints": joints, "kinematics": kinematics, "gravity": gravity}
    laws = ", ".join(law for law in friction_laws if law != "coulomb-viscous")
    return Template(text).substitute(entries, limits=_limits(robot, joints), laws=laws)


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in name) or "arm"


def _limits(robot: Robot | None, joints: int) -> str:
    """Limits that the file states stand as comments (they are used as they are); missing ones are to be filled in."""
    limits = None if robot is None else robot.limits
    lines = []
    for field, unit in (("position", "rad"), ("velocity", "rad/s"), ("acceleration", "rad/s^2"), ("torque", "N m")):
        values: Array | None = None
        if limits is not None:
            values = np.column_stack([limits.lower, limits.upper]) if field == "position" else getattr(limits, field)
        if values is None or np.isnan(values).any():
            example = [[-3.0, 3.0]] * joints if field == "position" else [1.0] * joints
            lines.append(f"  # {field}: {example}   # {unit}; fill in\n")
        else:
            lines.append(f"  # {field}: {np.round(values, 4).tolist()}   # {unit}, from the file\n")
    return "".join(lines)
