"""Effort against the masses that the description states: a wrong unit or gain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from armid.arrays import Array
from armid.dynamics.model import Model
from armid.dynamics.threads import one_blas_thread
from armid.robot.robot import inertial_names
from armid.signals.doctor.finding import Finding, Where
from armid.signals.doctor.fit import Rows, friction_columns

# A description's masses are off by a factor of two or three where they are guesses, and rotors may multiply inertia;
# wrong units and gains start at 100.
_OFF = 20.0
_HEAVY = 0.1  # stated torque over the largest of all joints, moving or held; below, friction and rotors decide
_WEIGHT = 0.3  # share of gravity in it, from which on rotors that nobody has stated cannot multiply it
_LEFT = 0.2  # of the stated torque's deviation that must be left when what friction could explain is taken off
_ALIKE = 0.5  # correlation with the stated torque that an effort far larger than it must have
_ROWS = 2000


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Effort and stated torque of each joint, what friction could explain taken off, (joints,) each.

    Attributes:
        stated: standard deviation of the stated torque itself [N m or N].
        left: the same, with friction taken off.
        effort: standard deviation of the effort, with friction taken off.
        alike: correlation of the two.
    """

    stated: Array
    left: Array
    effort: Array
    alike: Array


def examine_scale(model: Model, rows: Rows, moving: NDArray[np.bool_]) -> Iterator[Finding]:
    """Effort that is far smaller or larger than the inertias stated by a URDF or MJCF file call for.

    Light joints are left out: their effort is friction and rotors, which such files seldom state. So are joints without
    gravity where the effort is large.

    Args:
        model: of the robot; without stated inertias nothing is said.
        rows: motion and joint torque.
        moving: joints to look at.
    """
    nominal = model.robot.nominal_inertia
    if nominal is None or not np.any(nominal):
        return
    values = {
        name: float(value)
        for link, phi in enumerate(nominal, start=1)
        for name, value in zip(inertial_names(link), phi, strict=True)
    }
    few = rows.thinned(_ROWS)
    stated = model.inverse_dynamics(few.q, few.qd, few.qdd, values)
    sizes = _sizes(few, stated)
    most = float(np.sqrt(np.mean(stated**2, axis=0)).max())
    heavy = moving & (sizes.stated > _HEAVY * most) & (sizes.left > _LEFT * sizes.stated)
    weighs = model.gravity_torque(few.q, values).std(axis=0) > _WEIGHT * sizes.stated
    ratio = sizes.effort / np.maximum(sizes.left, 1e-300)
    small = heavy & (ratio * _OFF < 1.0)
    large = heavy & weighs & (ratio * sizes.alike > _OFF) & (sizes.alike > _ALIKE)
    for off in (small, large):
        if 2 * off.sum() > heavy.sum():
            yield _finding(model, None, float(np.median(ratio[off])))
            return
    for joint in np.flatnonzero(small | large):
        yield _finding(model, int(joint), float(ratio[joint]))


def _sizes(rows: Rows, stated: Array) -> _Sizes:
    friction = friction_columns(rows.qd)
    found = np.zeros((4, rows.q.shape[1]))
    with one_blas_thread():
        for joint in range(rows.q.shape[1]):
            keep = rows.keep[:, joint]
            if keep.sum() < 20:
                continue
            both = np.column_stack([stated[keep, joint], rows.effort[keep, joint]])
            left = both - friction[keep, joint] @ np.linalg.lstsq(friction[keep, joint], both, rcond=None)[0]
            size = np.sqrt(np.mean(left**2, axis=0))
            alike = abs(np.mean(left[:, 0] * left[:, 1])) / max(size[0] * size[1], 1e-300)
            found[:, joint] = both[:, 0].std(), size[0], size[1], alike
    return _Sizes(*found)


def _finding(model: Model, joint: int | None, ratio: float) -> Finding:
    robot = model.robot
    times, word = (1.0 / max(ratio, 1e-12), "smaller") if ratio < 1.0 else (ratio, "larger")
    whose = "all joints" if joint is None else robot.joint_names[joint]
    return Finding(
        "effort-scale",
        "warning",
        None if joint is None else robot.joint_names[joint],
        Where(),
        float(np.clip(1.0 - _OFF / times * 0.5, 0.5, 0.95)),
        f"The effort of {whose} is about {float(f'{times:.1g}'):.0f} times {word} than the masses and inertias in the "
        "description call for.",
        "Check unit (such as kN m or mN m), gain and kind (joint torque, motor torque, current) of the effort in the "
        "recipe; if they are right, the masses in the description are wrong.",
        {"factor": ratio},
    )
