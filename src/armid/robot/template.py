"""A commented robot file to start from."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from armid.arrays import Array
from armid.errors import DescriptionError
from armid.robot.load import load_robot
from armid.robot.robot import Robot

_DH_ROWS = """\
  convention: modified-dh               # or standard-dh
  rows:                                 # [alpha, a, d, theta offset]; add `prismatic` for a sliding joint
    - [0, 0, 0.3, 0]                    # modified-dh: alpha_(i-1), a_(i-1), d_i, offset of theta_i
    - [-pi/2, 0, 0, 0]                  # angles: -pi/2, 90 deg or plain radians; lengths in metres
    - [0, 0.3, 0, 0]
"""


def description_for(source: Path, target: Path) -> str:
    """Text of a robot file for a URDF or MJCF file, or a template with a DH table for a .yaml name."""
    if source.suffix.lower() in (".yaml", ".yml"):
        return _text(source.stem, _DH_ROWS, None, 3)
    if source.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        problem = "is neither a .urdf nor an .xml file to describe nor a .yaml file to create"
        raise DescriptionError(str(source), "", problem)
    robot = load_robot(source)
    mjcf = source.suffix.lower() != ".urdf" and b"<mujoco" in source.read_bytes()
    relative = os.path.relpath(source.resolve(), target.resolve().parent)
    rows = (
        f"  convention: {'mjcf' if mjcf else 'urdf'}\n"
        f"  file: {json.dumps(relative, ensure_ascii=False)}\n"
        f"  # joints, in order: {', '.join(robot.joint_names)}\n"
    )
    return _text(robot.name or source.stem, rows, robot, robot.n_joints)


def _text(name: str, kinematics: str, robot: Robot | None, joints: int) -> str:
    gravity = [0.0, 0.0, -9.81] if robot is None else robot.gravity.tolist() if robot.gravity.any() else "none"
    return f"""\
# Description of {_identifier(name)}. Every field is explained in docs/robot-file.md. Units: m, rad, s, kg, N m.
armid: 1
name: {json.dumps(_identifier(name))}
title: {json.dumps(f"{_identifier(name)}, {joints} joints")}
# links: {joints}                             # use only the first links

kinematics:
{kinematics}
gravity: {gravity}            # in the base frame: another mounting is another vector

limits:                                 # needed to design experiments; from the data sheet
{_limits(robot, joints)}
drives:
  gear_ratio: 1                         # motor turns per joint turn, one value or one per joint
  rotor_inertia: unknown                # or the value on the motor side, when you know it
  coupled: false                        # true: the rotor sits on the link before its joint and feels its rotation;
                                        #       needs the real gear ratios
  # coupling_matrix: q_motor = R q_joint, for wrists with coupled motors
  # current_gain: N m per A, per joint, if the log holds currents

friction:
  law: coulomb-viscous                  # or: none, viscous, stribeck, double-exponential, hyperbolic
  offset: true                          # a constant torque per joint (sensor or current offset)

# springs:
#   - {{type: gravity-compensation, joint: 2, a: 0.2, b: 0.5, phi: 0}}
# known: {{Im1: 1.0e-4}}                  # parameters that need no estimation
"""


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
