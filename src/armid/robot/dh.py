"""Denavit-Hartenberg tables, modified (Craig) and standard."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armid.robot.geometry import about_x, about_z, cos_sin, placement
from armid.robot.robot import Joint, Length


class DHRow(NamedTuple):
    """One row: alpha, a, d, theta of the convention; `theta` is the offset of a revolute joint.

    For a prismatic joint `theta` is the constant angle and the displacement is added to `d`.
    """

    alpha: float
    a: float
    d: float
    theta: float
    prismatic: bool = False


def dh_joints(
    rows: Sequence[DHRow], *, modified: bool, parents: Sequence[int], names: Sequence[str]
) -> tuple[tuple[Joint, ...], tuple[Length, ...]]:
    """Joints and named lengths of a DH table.

    Modified: frame i in frame i-1 is Rx(alpha) Tx(a) Rz(theta + q) Tz(d) (PA-10 (1)); link and joint frame coincide.
    Standard: Rz(theta + q) Tz(d) Tx(a) Rx(alpha) (Powerball (1)); the link frame sits at the far end of the link.
    """
    joints, lengths = [], []
    for index, (row, parent, name) in enumerate(zip(rows, parents, names, strict=True)):
        c, s = cos_sin(row.alpha)
        near, far = np.eye(4), np.eye(4)
        if modified:
            directions = {"a": np.array([1.0, 0.0, 0.0]), "d": np.array([0.0, -s, c])}
            near = placement(about_x(row.alpha) @ about_z(row.theta), row.a * directions["a"] + row.d * directions["d"])
        else:
            ct, st = cos_sin(row.theta)
            directions = {"a": np.array([ct, st, 0.0]), "d": np.array([0.0, 0.0, 1.0])}
            far = placement(about_z(row.theta) @ about_x(row.alpha), row.a * directions["a"] + row.d * directions["d"])
        joints.append(Joint(name, f"link{index + 1}", parent, row.prismatic, near, far))
        numbers = {"a": index if modified else index + 1, "d": index + 1}
        for letter, value in (("a", row.a), ("d", row.d)):
            if value != 0.0:
                constant = f"{letter}{numbers[letter]}"
                lengths.append(Length(constant, value, index, not modified, directions[letter]))
    return tuple(joints), tuple(lengths)
