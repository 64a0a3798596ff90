"""Grouping in closed form for chains of revolute joints in modified DH, independent of the numerical rank decision."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.robot.robot import Robot, inertial_names


def closed_form_grouping(robot: Robot) -> tuple[tuple[str, ...], Array]:
    """Regroup Iyy, mz and m of each link into the link before it, from the last link to the first.

    PA-10 (15), for tensor elements and with M_jz for the misprinted N_jz (errata PA-3, PA-4). Parameters of link 1 that
    never act are not removed; for consecutive parallel axes further groupings exist that this rule does not know.

    Returns:
        Names of all inertial parameters and the matrix (10 n, 10 n) that maps their values to regrouped values.
    """
    n = robot.n_joints
    names = tuple(name for link in range(1, n + 1) for name in inertial_names(link))
    index = {name: i for i, name in enumerate(names)}
    matrix = np.eye(10 * n)
    for j in range(n, 0, -1):
        row = {key: index[f"{key}{j}"] for key in ("m", "mz", "Ixx", "Iyy")}
        yy, mz, m = (matrix[row[key]].copy() for key in ("Iyy", "mz", "m"))
        matrix[row["Ixx"]] -= yy
        if j > 1:
            for key, gain in _passed_on(robot, j, yy, mz, m).items():
                matrix[index[f"{key}{j - 1}"]] += gain
        for key in ("Iyy", "mz", "m"):
            matrix[row[key]] = 0.0
    return names, matrix


def _passed_on(robot: Robot, j: int, yy: Array, mz: Array, m: Array) -> dict[str, Array]:
    """What link j adds to the parameters of link j - 1."""
    placement = robot.joints[j - 1].placement
    c, s = placement[2, 2], -placement[1, 2]
    a = placement[0, 3]
    d = -s * placement[1, 3] + c * placement[2, 3]
    turned = yy + 2.0 * d * mz + d * d * m
    return {
        "Ixx": turned,
        "Ixy": a * s * (mz + d * m),
        "Ixz": -a * c * (mz + d * m),
        "Iyy": c * c * turned + a * a * m,
        "Iyz": c * s * turned,
        "Izz": s * s * turned + a * a * m,
        "mx": a * m,
        "my": -s * (mz + d * m),
        "mz": c * (mz + d * m),
        "m": m,
    }
