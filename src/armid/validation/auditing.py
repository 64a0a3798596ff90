"""The audit: can any arm have these parameters, and if not, why not, and which possible ones are nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.estimation.consistent.semidefinite import Condition, minimise
from armid.estimation.fit import Fit
from armid.robot.inertia import impossibility, pseudo_inertia
from armid.robot.robot import Robot, inertial_names
from armid.validation.audit_certificates import certificates
from armid.validation.audit_claims import (
    BodyClaim,
    Claim,
    claim_of_fit,
    claim_of_robot,
    claims_of_published,
    typical_sizes,
)
from armid.validation.audit_distance import (
    groups_of,
    indefinite,
    lengths,
    nearest,
    relative,
    separation,
    torque_rows,
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
        possible: whether an arm with these parameters can exist.
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

    def summary(self) -> str:
        """For people."""
        lines = [f"{self.title}: {'possible' if self.possible else 'impossible'}"]
        lines += [f"  - {words}" for words in self.certificates]
        if self.indefinite:
            lines.append(f"  - the mass matrix is not positive definite in {100.0 * self.indefinite:.3g} % of postures")
        if not self.possible:
            torque = "" if self.distance_torque is None else f", {100.0 * self.distance_torque:.2g} % of the torque"
            printed = "" if self.distance_printed is None else f" ({100.0 * self.distance_printed:.2g} % as printed)"
            parameters = f"{100.0 * self.distance_parameters:.2g} % of the parameters{printed}"
            lines.append(f"nearest possible set: {parameters} away{torque}")
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
        x = nearest(groups.rows, groups.values, unknowns, scale, TINY)
        distance = relative(groups.rows, groups.values, x)
        length = lengths(claim.matrix)
        stated = np.asarray(np.linalg.lstsq(claim.matrix / length, claim.values / length[:, 0])[0], dtype=np.float64)
        torque = torque_rows(claim, seed)
        target = torque @ stated
        in_torque = relative(torque, target, nearest(torque, target, unknowns, scale, TINY))
        near = nearest(torque, target, unknowns, scale, SMALL, INSIDE)
        printed = None
        if claim.printed and len(groups.rows) != len(claim.matrix):
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
        squares += float(np.sum((frobenius * (found.x - phi[4:])) ** 2))
        total += float(np.sum((frobenius * phi[4:]) ** 2))
        labels = ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        found_near |= {f"{name} {key}": float(value) for key, value in zip(labels, found.x, strict=True)}
        if mass is not None:
            found_near |= {
                f"{name} m": mass,
                **{f"{name} c_{axis}": float(c) for axis, c in zip("xyz", com, strict=True)},
            }
    distance = float(np.sqrt(squares / total))
    return Audit(claim.title, not reasons, tuple(reasons), distance if reasons else 0.0, None, None, None, found_near)


def _links(claim: Claim) -> list[str]:
    """Links that are stated in full and impossible by themselves."""
    stated = dict(zip(claim.entries, claim.values.tolist(), strict=True))
    result = []
    for number in range(1, claim.unknowns.model.robot.n_joints + 1):
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
