"""A plausible arm: what decides parameters that neither data nor prior do, and how large parameters typically are."""

from __future__ import annotations

import numpy as np

from armid.arrays import Array
from armid.estimation.fit import Fit
from armid.estimation.possible.consistency import Unknowns, reach, reference_bodies
from armid.estimation.possible.prior import Prior, deviation_rows, solid
from armid.robot.inertia import impossibility, pseudo_inertia
from armid.robot.robot import inertial_names

VAGUE = 30.0  # relative standard deviation of the plausible arm


def plausible_bodies(fit: Fit, prior: Prior | None) -> Array:
    """Pseudo-inertias (links, 4, 4) of a plausible arm: the prior's, nominal ones, or of the arm's proportions."""
    bodies = reference_bodies(fit.robot)
    stated = fit.robot.nominal_inertia
    if stated is not None:
        possible = [phi[0] > 0.0 and impossibility(phi) is None for phi in stated]
    else:
        possible = [False] * len(bodies)
    believed = {} if prior is None else {number: pseudo_inertia(prior.link(number)) for number in prior.links}
    for index, good in enumerate(possible):
        if good and stated is not None:
            believed.setdefault(index + 1, pseudo_inertia(stated[index]))
    if believed:
        known = [number - 1 for number in believed if number <= len(bodies)]
        mass = sum(believed[i + 1][3, 3] for i in known) / sum(bodies[i, 3, 3] for i in known)
    else:
        mass = _typical_mass(fit)
    return np.array([solid(believed.get(i + 1, mass * body)) for i, body in enumerate(bodies)])


def _typical_mass(fit: Fit) -> float:
    """Mass of a link [kg] that explains the largest first moment, or moment of inertia, that the data determine."""
    length = max(reach(fit.robot), 0.05)
    for unit, power in (("kg m", 1), ("kg m^2", 2), ("kg", 0)):
        sizes = [
            abs(value) / length**power
            for value, own, kind in zip(fit.values, fit.torque_model.units, fit.identifiability.classes, strict=True)
            if own == unit and kind == "determined"
        ]
        if sizes and max(sizes) > 0.0:
            return float(max(sizes))
    return 1.0


def typical_sizes(unknowns: Unknowns, reference: Array, matrix: Array, target: Array) -> Array:
    """Typical size of each unknown: for links that of the plausible arm, else what would explain all torque."""
    column = np.linalg.norm(matrix, axis=0)
    scale = np.where(column > 0.0, np.linalg.norm(target) / np.where(column > 0.0, column, 1.0), 1.0)
    for number, body in enumerate(reference, start=1):
        radius = np.sqrt(max(float(np.trace(body[:3, :3])) / body[3, 3], 1e-6))
        sizes = body[3, 3] * np.array([1.0, *[radius] * 3, *[radius**2] * 6])
        for name, size in zip(inertial_names(number), sizes, strict=True):
            if name in unknowns.names:
                scale[unknowns.names.index(name)] = size
    return np.where(scale > 0.0, scale, 1.0)


def belief_rows(unknowns: Unknowns, reference: Array, scale: Array, prior: Prior | None) -> tuple[Array, Array]:
    """Rows for the prior, and vague ones for the plausible arm."""
    rows, target = other_rows(unknowns, scale, prior)
    blocks, targets = [rows], [target]
    for number, body in enumerate(reference, start=1):
        rows, target = deviation_rows(unknowns.pseudo_inertia(number), body)
        if rows.any():
            blocks.append(rows / VAGUE)
            targets.append(target / VAGUE)
    if prior is not None:
        rows, target = prior.link_rows(unknowns)
        blocks.append(rows)
        targets.append(target)
    return np.vstack(blocks), np.concatenate(targets)


def other_rows(unknowns: Unknowns, scale: Array, prior: Prior | None) -> tuple[Array, Array]:
    """The same for rotors, friction and springs, which are small rather than large where nothing is said."""
    inertial = {name for number in range(1, unknowns.model.robot.n_joints + 1) for name in inertial_names(number)}
    other = [i for i, name in enumerate(unknowns.names) if name not in inertial]
    rows, target = np.eye(len(scale))[other] / scale / VAGUE, np.zeros(len(other))
    if prior is None:
        return rows, target
    more, wanted = prior.other_rows(unknowns)
    return np.vstack([rows, more]), np.concatenate([target, wanted])
