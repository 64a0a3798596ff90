"""How far stated parameters are from possible ones, in parameters and in torque."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armid.arrays import Array
from armid.dynamics.model import Motion
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.semidefinite import minimise
from armid.estimation.problem import EstimationError
from armid.robot.robot import Robot
from armid.validation.audit_claims import Claim

STATES = 1000  # random states of the torque distance
POSTURES = 500  # random postures at which the mass matrix is looked at


@dataclass(frozen=True, eq=False)
class Groups:
    """Combinations that show in torque and that a claim determines.

    Attributes:
        names: of the groups.
        rows: over the unknowns, (groups, unknowns); rotors count on the joint side.
        values: as claimed.
    """

    names: tuple[str, ...]
    rows: Array
    values: Array


def groups_of(claim: Claim) -> Groups:
    """Base groups of links and rotors that the claim determines; all entries of one that states links in full."""
    unknowns = claim.unknowns
    if claim.full:
        rows, kept = claim.matrix, claim.entries
        weights = np.eye(len(rows))
    else:
        length = lengths(claim.matrix)
        weights = np.linalg.lstsq((claim.matrix / length).T, unknowns.matrix.T)[0].T / length[:, 0]
        error = np.abs(weights @ claim.matrix - unknowns.matrix).max(axis=1)
        told = error <= 1e-8 * np.abs(unknowns.matrix).max(axis=1)
        # Friction is another kind of quantity; its signs are looked at elsewhere.
        names = (*unknowns.model.base.kept, *(name for term in unknowns.terms for name in term.names))
        inertial = np.array([name[0] in "mI" for name in names])
        told &= inertial if (told & inertial).any() else True
        rows, weights = unknowns.matrix[told], weights[told]
        kept = tuple(name for name, one in zip(names, told, strict=True) if one)
    ratio = {f"Im{i + 1}": drive.gear_ratio**2 for i, drive in enumerate(unknowns.model.robot.drives)}
    rotor = np.array([ratio.get(name, 1.0) for name in kept])
    return Groups(kept, rows * rotor[:, None], weights @ claim.values * rotor)


def lengths(matrix: Array) -> Array:
    """Lengths of the rows, (rows, 1); 1 for empty ones."""
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.where(length > 0.0, length, 1.0)


def nearest(rows: Array, target: Array, unknowns: Unknowns, scale: Array, tiny: float, margin: float = 0.0) -> Array:
    """Possible parameters whose `rows` come nearest to the target, `tiny` keeping those of no effect small."""
    size = float(np.linalg.norm(rows * scale, 2)) if rows.size else 1.0
    for more in (1.0, 10.0, 100.0):
        own = more * tiny * size * np.diag(1.0 / scale)
        together = np.vstack([rows, own]), np.concatenate([target, np.zeros(len(scale))])
        found = minimise(*together, unknowns.conditions, scale, margin=margin)
        if found.good:
            return found.x
    raise EstimationError(
        f"the nearest possible set was not found (solver: {found.status}); known values of the description may be "
        "impossible by themselves"
    )


def relative(rows: Array, target: Array, x: Array) -> float:
    """Relative distance of `rows` @ x from the target."""
    return float(np.linalg.norm(rows @ x - target) / max(float(np.linalg.norm(target)), 1e-300))


def torque_rows(claim: Claim, seed: int) -> Array:
    """Triangular factor of torque per unknown over random states: q anywhere, |qd| < 1, |qdd| < 2; links and rotors."""
    model = claim.unknowns.model
    rng = np.random.default_rng(seed)
    shape = (STATES, model.robot.n_joints)
    span = np.where([joint.prismatic for joint in model.robot.joints], 1.0, np.pi)
    motion = Motion(span * rng.uniform(-1.0, 1.0, shape), rng.uniform(-1.0, 1.0, shape), rng.uniform(-2.0, 2.0, shape))
    names = [name for name in model.unknown if name[0] in "mI"]
    columns = np.zeros((STATES * model.robot.n_joints, len(claim.unknowns.names)))
    found = model.regressor(*motion, names).reshape(len(columns), -1)
    columns[:, [claim.unknowns.names.index(name) for name in names]] = found
    return np.asarray(np.linalg.qr(columns, mode="r"))


def separation(groups: Groups, x: Array) -> str:
    """A combination that is not negative for any arm: the direction to the nearest possible values."""
    away = groups.rows @ x - groups.values
    order = np.argsort(-np.abs(away))
    count = int(np.sum(np.abs(away[order]) > 0.02 * np.abs(away).max()))
    parts = [f"{away[i] / away[order[0]]:+.3g} {groups.names[i]}" for i in order[:count]]
    size = abs(float(away[order[0]]))
    sign = "≥ 0" if away[order[0]] > 0.0 else "≤ 0"
    return (
        f"{' '.join(parts).removeprefix('+')} = {np.sign(away[order[0]]) * float(away @ groups.values) / size:.3g} (in "
        f"groups of base parameters, parts below 2 % left out), but must be {sign} for every possible arm"
    )


def indefinite(robot: Robot, unknowns: Unknowns, stated: Array, seed: int) -> float | None:
    """Share of random postures with a mass matrix that is not positive definite."""
    model = unknowns.model
    values = dict(zip(unknowns.names, stated.tolist(), strict=True))
    span = np.where([joint.prismatic for joint in robot.joints], 1.0, np.pi)
    postures = span * np.random.default_rng(seed).uniform(-1.0, 1.0, (POSTURES, robot.n_joints))
    matrices = model.mass_matrix(postures, {name: values[name] for name in model.unknown})
    least = np.linalg.eigvalsh(0.5 * (matrices + matrices.transpose(0, 2, 1)))[:, 0]
    return float(np.mean(least < -1e-9 * np.abs(matrices).max()))
