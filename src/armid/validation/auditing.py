"""The audit: can any arm have these parameters, and if not, why not, and which consistent ones are nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.arrays import Array
from armid.display import short
from armid.dynamics.model import Motion
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.semidefinite import Condition, minimise
from armid.estimation.fit import Fit
from armid.estimation.problem import EstimationError
from armid.robot.inertia import impossibility, pseudo_inertia
from armid.robot.robot import Robot, inertial_names
from armid.validation.audit_claims import (
    BodyClaim,
    Claim,
    certificates,
    claim_of_fit,
    claim_of_robot,
    claims_of_published,
    typical_sizes,
)

TOLERANCE = 1e-4  # relative distance up to which values count as possible: printed numbers are rounded
TINY = 1e-6  # weight of parameters' own size against the distance: masses of no effect must not run away
SMALL = 1e-3  # the same for the nearest set, which should look like an arm
INSIDE = 1e-6  # how far inside the possible the nearest set stays


@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes:
        title: what was audited.
        possible: whether the parameters are physically consistent.
        certificates: reasons why not, each checkable by hand; empty if it can.
        distance_parameters: least relative change of the groups of base parameters that makes them possible; rotors
            count on the joint side.
        distance_torque: least relative change of torque (RMS over random states) that goes with it; None where there is
            no arm to move.
        distance_printed: the same as `distance_parameters`, of the numbers as they are printed; None if they are groups
            of base parameters themselves.
        indefinite: share of random postures where the mass matrix is not positive definite; None without an arm.
        nearest: a possible set of all parameters, near in torque.
    """

    title: str
    possible: bool
    certificates: tuple[str, ...]
    distance_parameters: float
    distance_torque: float | None
    distance_printed: float | None
    indefinite: float | None
    nearest: Mapping[str, float]

    def to_data(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "certificates": list(self.certificates), "nearest": dict(self.nearest)}

    def __repr__(self) -> str:
        return short(self, self.summary().splitlines()[0], *self.certificates)

    def summary(self) -> str:
        """For people."""
        lines = [f"{self.title}: {'' if self.possible else 'not '}physically consistent"]
        lines += [f"  - {words}" for words in self.certificates]
        if self.indefinite:
            lines.append(f"  - the mass matrix is not positive definite in {100.0 * self.indefinite:.3g} % of postures")
        if not self.possible:
            torque = "" if self.distance_torque is None else f", {100.0 * self.distance_torque:.2g} % of the torque"
            printed = "" if self.distance_printed is None else f" ({100.0 * self.distance_printed:.2g} % as printed)"
            parameters = f"{100.0 * self.distance_parameters:.2g} % of the parameters{printed}"
            lines.append(f"nearest consistent set: {parameters} away{torque}")
        return "\n".join(lines)


def audit(what: Fit | Robot, *, published: bool = False, name: str | None = None, seed: int = 0) -> tuple[Audit, ...]:
    """Audit a fit, the inertias a robot's file states, or its published sets.

    Args:
        what: a fit or a robot.
        published: audit the published sets of a robot's description.
        name: only the one called so (implies `published`).
        seed: of the random states.
    """
    if isinstance(what, Fit):
        if published or name is not None:
            raise ArmidError("a fit has no published sets; give a robot with --published")
        return (audit_claim(claim_of_fit(what), seed=seed),)
    if not published and name is None:
        return (audit_claim(claim_of_robot(what), seed=seed),)
    claims = claims_of_published(what, name)
    return tuple(audit_claim(c, seed=seed) if isinstance(c, Claim) else audit_bodies(c) for c in claims)


def audit_claim(claim: Claim, *, seed: int = 0) -> Audit:
    """Audit values of combinations of an arm's parameters."""
    unknowns = claim.unknowns
    with one_blas_thread():
        groups, scale = groups_of(claim), typical_sizes(claim)
        x = nearest(*groups[1:], unknowns, scale, TINY)
        distance = relative(*groups[1:], x)
        length = lengths(claim.matrix)
        stated = np.asarray(np.linalg.lstsq(claim.matrix / length, claim.values / length[:, 0])[0], dtype=np.float64)
        torque = torque_rows(claim, seed)
        target = torque @ stated
        in_torque = relative(torque, target, nearest(torque, target, unknowns, scale, TINY))
        near = nearest(torque, target, unknowns, scale, SMALL, INSIDE)
        printed = None
        if claim.printed and len(groups[0]) != len(claim.matrix):
            literal = nearest(claim.matrix, claim.values, unknowns, scale, TINY)
            printed = relative(claim.matrix, claim.values, literal)
    reasons = [*_links(claim), *certificates(claim, unknowns.matrix), *_friction(claim)]
    close = distance < TOLERANCE or claim.witnessed()
    if not close and not reasons:
        reasons = [separation(groups, x)]
    full = unknowns.model.known | dict(zip(unknowns.names, near.tolist(), strict=True))
    return Audit(
        title=claim.title,
        possible=close and not reasons,
        certificates=tuple(dict.fromkeys(reasons)),
        distance_parameters=0.0 if close else distance,
        distance_torque=0.0 if close else in_torque,
        distance_printed=printed,
        indefinite=indefinite(unknowns.model.robot, unknowns, stated, seed),
        nearest={name: full[name] for name in unknowns.model.names},
    )


def audit_bodies(claim: BodyClaim) -> Audit:
    """Audit bodies given by mass, centre of mass and inertia; the distance is that of the inertia tensors."""
    reasons: list[str] = []
    found_near: dict[str, float] = {}
    squares = total = 0.0
    frobenius = np.sqrt([1.0, 2.0, 1.0, 2.0, 2.0, 1.0])
    body = Condition("body", np.zeros((4, 4)), np.array([pseudo_inertia(unit) for unit in np.eye(10)]))
    second = Condition("body", np.zeros((3, 3)), body.slopes[4:, :3, :3])
    for name, (mass, com, tensor) in claim.bodies.items():
        weight = 1.0 if mass is None else mass
        phi = np.array([weight, 0.0, 0.0, 0.0, *tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
        reason = impossibility(phi)
        if reason is not None:
            reasons.append(f"{name}: {reason}")
        scale = np.full(6, max(float(np.abs(tensor).max()), 1e-9))
        found = minimise(np.diag(frobenius), frobenius * phi[4:], (second,), scale)
        if not found.good:
            raise EstimationError(f"the inertia nearest to that of {name} was not found (solver: {found.status})")
        squares += float(np.sum((frobenius * (found.x - phi[4:])) ** 2))
        total += float(np.sum((frobenius * phi[4:]) ** 2))
        labels = ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        found_near |= {f"{name} {key}": float(value) for key, value in zip(labels, found.x, strict=True)}
        if mass is not None:
            found_near[f"{name} m"] = mass
            found_near |= {f"{name} c_{axis}": float(c) for axis, c in zip("xyz", com, strict=True)}
    distance = float(np.sqrt(squares / total))
    return Audit(claim.title, not reasons, tuple(reasons), distance if reasons else 0.0, None, None, None, found_near)


def _links(claim: Claim) -> list[str]:
    """Links that are stated in full and impossible by themselves."""
    stated = dict(zip(claim.entries, claim.values.tolist(), strict=True))
    result = []
    for number in range(1, len(claim.unknowns.model.robot.links) + 1):
        if claim.full and all(name in stated for name in inertial_names(number)):
            reason = impossibility([stated[name] for name in inertial_names(number)])
            if reason is not None:
                result.append(f"link {number}: {reason}")
    return result


def _friction(claim: Claim) -> list[str]:
    """Stated friction laws that drive a joint instead of braking it."""
    result = []
    limits = claim.unknowns.model.robot.limits.velocity
    for joint, (law, coefficients) in enumerate(claim.friction):
        fastest = 0.6 * float(limits[joint]) if joint < len(limits) and np.isfinite(limits[joint]) else 1.0
        for sign in (1.0, -1.0):
            velocity = sign * np.linspace(0.001 * fastest, fastest, 400)
            torque = sign * law.torque(velocity, coefficients)
            if torque.min() < 0.0:
                at = velocity[int(np.argmin(torque))]
                result.append(f"friction of joint {joint + 1} drives it: {torque.min():.3g} at {at:.3g} rad/s")
    return result


STATES = 1000  # random states of the torque distance
POSTURES = 500  # random postures at which the mass matrix is looked at


#: Combinations that show in torque and that a claim determines: names, rows over the unknowns (rotors count on the
#: joint side) and values as claimed.
Groups = tuple[tuple[str, ...], Array, Array]


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
    return kept, rows * rotor[:, None], weights @ claim.values * rotor


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
    names, rows, values = groups
    away = rows @ x - values
    order = np.argsort(-np.abs(away))
    count = int(np.sum(np.abs(away[order]) > 0.02 * np.abs(away).max()))
    parts = [f"{away[i] / away[order[0]]:+.3g} {names[i]}" for i in order[:count]]
    size = abs(float(away[order[0]]))
    sign = "≥ 0" if away[order[0]] > 0.0 else "≤ 0"
    return (
        f"{' '.join(parts).removeprefix('+')} = {np.sign(away[order[0]]) * float(away @ values) / size:.3g} (in "
        f"groups of base parameters, parts below 2 % left out), but must be {sign} for every consistent arm"
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
