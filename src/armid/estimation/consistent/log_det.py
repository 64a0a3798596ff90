"""Physically consistent parameters by a log-det regularisation: the arm nearest to the data that looks like an arm.

What is minimised over standard parameters x is

    (B x - m)' A (B x - m) / 2 + lambda sum_i (tr(P0_i^-1 P_i) - log det Q_i) + kappa sum_i (m_i / m0_i - log m_i)

with base parameters B x, the data's information A and estimate m, pseudo-inertias P_i, the same without the rotors they
carry Q_i (Wensing, Kim, Slotine 2018; Lee, Wensing, Park 2020), and the bodies P0_i of a plausible arm times one mass
factor, which is fitted: the result does not depend on the units of torque. lambda is as large as the data do not feel.
What a prior states counts as further data; its links are the bodies P0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import null_space
from scipy.linalg.lapack import dposv

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.consistent.conditions import Unknowns, reference_bodies
from armid.estimation.consistent.prior import Prior, solid
from armid.estimation.consistent.semidefinite import Condition, minimise
from armid.estimation.problem import EstimationError
from armid.robot.inertia import from_pseudo_inertia, impossibility, pseudo_inertia
from armid.robot.robot import Robot, inertial_names

WEAKEST, STEP = 1e-8, 10.0**-0.5  # lambda at the end of the path from the plausible arm to the data, and its steps
FELT = 0.25  # rise of the data's cost [nats] from which they feel the regularisation
STRONGEST = 1.0  # lambda at most: what one observation of each link would say
MASS = 2.0  # kappa: a mass is within a factor of about three of its guess
ROTOR, OTHER = 0.3, 1e-3  # weight of the logarithms of rotor inertias and of other inequalities, times lambda
ROTOR_SHARE = 0.05  # of a link's second moments that its reflected rotor typically has
GROUPED = 1e-9  # of a direction in which no torque changes, from which a parameter is part of a group
DETERMINED = 0.3  # standard deviation of a first moment, as a share of the largest, up to which it tells the mass
STEPS, DONE = 200, 1e-6  # of Newton's method, at most; expected decrease of the cost at which it stops [nats]
MARGIN = 1e-3  # of a start inside bounds and known values that the plausible arm breaks, as a share of typical sizes


class NotConsistentError(EstimationError):
    """No physically consistent parameters exist with what is known."""


@dataclass(frozen=True, eq=False)
class ConsistentEstimate:
    """What was found.

    Attributes:
        names: of the standard parameters that were unknown.
        x: their values.
        covariance: of x, by the curvature of the cost (Laplace): data and regularisation.
        values: base parameters.
        share: of each of x that the data tell: 1 all, 0 nothing (the rest is regularisation or prior), as of what shows
            in groups only.
        strength: lambda.
        mass_factor: by which the plausible arm is multiplied [kg of a mean link].
    """

    names: tuple[str, ...]
    x: Array
    covariance: Array
    values: Array
    share: Array
    strength: float
    mass_factor: float


def plausible_arm(robot: Robot, prior: Prior | None = None) -> Array:
    """Pseudo-inertias (links, 4, 4) with a mean mass of 1 kg: the prior's, nominal ones, else of the geometry.

    A link of no length, such as a wrist that ends in its own axis, is given half the length of a typical one.
    """
    bodies = reference_bodies(robot, least=0.5)
    nominal = robot.nominal_inertia
    stated = {} if nominal is None else {i: phi for i, phi in enumerate(nominal) if phi[0] > 0.0}
    stated = {i: phi for i, phi in stated.items() if impossibility(phi) is None}
    if prior is not None:
        stated |= {number - 1: prior.link(number) for number in prior.links if number <= len(robot.links)}
    if stated:
        bodies *= np.mean([phi[0] / bodies[i, 3, 3] for i, phi in stated.items()])
        bodies[list(stated)] = [solid(pseudo_inertia(phi)) for phi in stated.values()]
    return np.asarray(bodies / bodies[:, 3, 3].mean())


def consistent_estimate(
    unknowns: Unknowns, information: Array, right: Array, size: float, prior: Prior | None = None
) -> ConsistentEstimate:
    """Minimise the cost above.

    Args:
        unknowns: the standard parameters and their conditions.
        information: A, of the base parameters.
        right: A m.
        size: norm of the weighted torque, for the typical size of friction.
        prior: what is known beforehand.

    Raises:
        NotConsistentError: known values or bounds contradict each other.
    """
    with one_blas_thread():
        cost = _Cost(unknowns, information, right, size, prior)
        # At first regularisation weighs as much as the data: started later, Newton's method jams at the edge.
        best = 0.5 * float(cost.right @ np.linalg.lstsq(cost.matrix, cost.right)[0])
        strength, x, path = max(10.0, (cost.misfit(cost.start) + best) / cost.conditions), cost.start, []
        while strength > WEAKEST:
            x, hessian = newton(cost, x, strength, DONE * max(strength, 1.0))
            path.append((strength, x, hessian, cost.misfit(x)))
            if strength < STRONGEST and path[-2][3] - path[-1][3] < 0.01 * FELT:
                break
            strength *= STEP
        least = min(misfit for *_, misfit in path)
        allowed = [step for step in path if step[0] <= STRONGEST and step[3] <= least + FELT]
        strength, x, hessian, _ = allowed[0] if allowed else path[-1]
        covariance = _inverse(hessian)
        told = np.einsum("ij,jk,ki->i", covariance, cost.data, covariance)
        share = np.clip(told / np.maximum(np.diag(covariance), 1e-300), 0.0, 1.0)
        share[np.abs(null_space(unknowns.matrix)).max(axis=1, initial=0.0) > GROUPED] = 0.0
    values = unknowns.matrix @ x
    return ConsistentEstimate(unknowns.names, x, covariance, values, share, float(strength), cost.mass_factor)


class _Cost:
    """The cost and its derivatives; infinite outside what is consistent."""

    def __init__(self, unknowns: Unknowns, information: Array, right: Array, size: float, prior: Prior | None) -> None:
        self.data = self.matrix = unknowns.matrix.T @ information @ unknowns.matrix
        self.right = unknowns.matrix.T @ right
        if prior is not None:
            rows, target = prior.rows(unknowns)
            self.matrix, self.right = self.matrix + rows.T @ rows, self.right + rows.T @ target
        bodies = plausible_arm(unknowns.model.robot, prior)
        start = np.zeros(len(unknowns.names))
        place = {name: k for k, name in enumerate(unknowns.names)}
        for index in [int(c.name.split()[1]) - 1 for c in unknowns.conditions if c.name.startswith("link ")]:
            for name, value in zip(inertial_names(index + 1), from_pseudo_inertia(bodies[index]), strict=True):
                if name in place:
                    start[place[name]] = value
        self.mass_factor = self._mass_factor(unknowns, start, information, right)
        start *= self.mass_factor
        kinds = {parameter.name: parameter for parameter in unknowns.model.parameters}
        self.linear = np.zeros(len(start))
        links: list[Condition] = []
        scalars: list[tuple[float, bool, float, Array]] = []  # weight, whether fixed, constant, slopes
        for condition in unknowns.conditions:
            if condition.name.startswith("link "):
                index = int(condition.name.split()[1]) - 1
                whole = unknowns.pseudo_inertia(index + 1)
                body = self.mass_factor * bodies[index]
                self.linear += np.tensordot(whole.slopes, np.linalg.inv(body), axes=2)
                links.append(condition)
                if whole.slopes[:, 3, 3].any():
                    mass = whole.constant[3, 3] / body[3, 3], whole.slopes[:, 3, 3] / body[3, 3]
                    scalars.append((MASS, True, *mass))
                continue
            constant, slopes = float(condition.constant[0, 0]), condition.slopes[:, 0, 0]
            k = int(np.argmax(np.abs(slopes)))
            parameter = kinds.get(unknowns.names[k])
            if parameter is not None and parameter.kind == "rotor":
                ratio = unknowns.model.robot.drives[parameter.number - 1].gear_ratio
                spread = float(np.trace(bodies[parameter.number - 1, :3, :3]))
                start[k] = ROTOR_SHARE * self.mass_factor * spread / ratio**2
                self.linear[k] += ROTOR / start[k]
                scalars.append((ROTOR, False, constant, slopes))
            else:
                if start[k] == 0.0:  # friction and stiffness; of what no row shows, nearly none
                    shown = self.matrix[k, k] > 0.0
                    start[k] = 1e-3 * (size / np.sqrt(self.matrix[k, k]) if shown else 1.0)
                    self.linear[k] += 0.0 if shown else OTHER / start[k]
                scalars.append((OTHER, False, constant, slopes))
        self.conditions, self._last = len(links) + len(scalars), (np.zeros(0), np.zeros(0))
        self._stack(links, scalars)
        while not np.isfinite(self.value(start, 1.0)) and np.abs(start).max() > 0.0:  # rotors too large for their links
            rotors = [place[name] for name, parameter in kinds.items() if parameter.kind == "rotor" and name in place]
            start[rotors] *= 0.3
            if not len(rotors) or start[rotors].max() < 1e-30:
                break
        self.start = start if np.isfinite(self.value(start, 1.0)) else _inside(unknowns, start)

    def _mass_factor(self, unknowns: Unknowns, arm: Array, information: Array, right: Array) -> float:
        """By what to multiply an arm so that its first moments are of the size that the data show.

        Without gravity on any joint: so that its torque fits best, which takes rotors for links.
        """
        shown = np.flatnonzero(np.diag(information) > 0.0)
        covariance = _inverse(information[np.ix_(shown, shown)] * (1.0 + 1e-12 * np.eye(len(shown))))
        names = [*unknowns.model.base.kept, *unknowns.names[len(unknowns.model.unknown) :]]
        moments = [k for k, place in enumerate(shown) if names[place].startswith(("mx", "my", "mz"))]
        found, sigma = (covariance @ right[shown])[moments], np.sqrt(np.diag(covariance))[moments]
        own = (unknowns.matrix @ arm)[shown][moments]
        seen = sigma < DETERMINED * np.abs(found).max(initial=0.0)
        if np.any(own[seen] != 0.0):
            return float(np.linalg.norm(found[seen]) / np.linalg.norm(own[seen]))
        power = float(arm @ self.matrix @ arm)
        return max(float(self.right @ arm) / power, 1e-9) if power > 0.0 else 1.0

    def misfit(self, x: Array) -> float:
        """The data's cost, up to a constant."""
        return float(0.5 * x @ self.matrix @ x - self.right @ x)

    def _stack(self, links: list[Condition], scalars: list[tuple[float, bool, float, Array]]) -> None:
        """All 4 x 4 conditions, with the parameters that each of them holds, and all inequalities, as arrays."""
        holds = [np.flatnonzero(link.slopes.any(axis=(1, 2))) for link in links]
        most = max(map(len, holds), default=0)
        self.place, self.slopes = np.zeros((len(links), most), dtype=np.int64), np.zeros((len(links), most, 4, 4))
        self.constant = np.array([link.constant for link in links]).reshape(-1, 4, 4)
        for index, (link, held) in enumerate(zip(links, holds, strict=True)):
            self.place[index, : len(held)], self.slopes[index, : len(held)] = held, link.slopes[held]
        self.weights = np.array([weight for weight, *_ in scalars])
        self.fixed = np.array([fixed for _, fixed, *_ in scalars], dtype=bool)
        self.level = np.array([constant for *_, constant, _ in scalars])
        self.rows = np.array([row for *_, row in scalars]).reshape(-1, len(self.linear))

    def _weights(self, strength: float) -> Array:
        """Of the inequalities' logarithms on the way: small ones shrink to theirs at the end only, or Newton jams."""
        moving = strength * np.maximum(self.weights, min(1.0, strength))
        return np.asarray(np.where(self.fixed, np.maximum(self.weights, strength), moving))

    def _roots(self, x: Array) -> Array:
        """Cholesky factors of the 4 x 4 conditions, those of the last x remembered."""
        if not np.array_equal(self._last[0], x):
            sums = x[self.place][:, None] @ self.slopes.reshape(*self.place.shape, 16)
            self._last = x.copy(), np.asarray(np.linalg.cholesky(self.constant + sums.reshape(-1, 4, 4)), dtype=float)
        return self._last[1]

    def value(self, x: Array, strength: float) -> float:
        """The cost; infinity outside."""
        inside = self.level + self.rows @ x
        if not np.all(inside > 0.0):
            return float("inf")
        try:
            roots = self._roots(x)
        except np.linalg.LinAlgError:
            return float("inf")
        own = self._weights(strength)
        logarithms = 2.0 * strength * np.log(np.einsum("kii->ki", roots)).sum() + own @ np.log(inside)
        return float(self.misfit(x) + strength * self.linear @ x - logarithms + own[self.fixed] @ inside[self.fixed])

    def derivatives(self, x: Array, strength: float) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        inside, own, roots = self.level + self.rows @ x, self._weights(strength), np.linalg.inv(self._roots(x))
        slope = own * (self.fixed - 1.0 / inside)
        gradient = self.matrix @ x - self.right + strength * self.linear + slope @ self.rows
        bent = self.rows * (np.sqrt(own) / inside)[:, None]
        hessian = self.matrix + bent.T @ bent
        whitened = roots[:, None] @ self.slopes @ roots[:, None].swapaxes(-1, -2)
        np.add.at(gradient, self.place, -strength * np.einsum("kpii->kp", whitened))
        flat = whitened.reshape(*self.place.shape, 16)
        pairs = self.place[:, :, None], self.place[:, None]
        np.add.at(hessian, pairs, strength * flat @ flat.swapaxes(1, 2))
        return gradient, hessian


def _inside(unknowns: Unknowns, start: Array) -> Array:
    """The point nearest to a start that meets all conditions: known values or bounds keep the plausible arm out."""
    scale = np.maximum(np.abs(start), 1e-3 * np.abs(start).max() + 1e-12)
    found = minimise(np.diag(1.0 / scale), start / scale, unknowns.conditions, scale, margin=MARGIN)
    if not found.good:
        raise NotConsistentError(
            f"no physically consistent parameters were found (solver: {found.status}): known values and bounds "
            "contradict each other, or are out of proportion; free some of them, or use `armid audit` on the "
            "description"
        )
    return found.x


class BarrierCost(Protocol):
    """A convex cost that is infinite outside of what is physically consistent."""

    def value(self, x: Array, strength: float) -> float:
        """The cost for one strength of its logarithms."""

    def derivatives(self, x: Array, strength: float) -> tuple[Array, Array]:
        """Gradient and Hessian."""


def newton(cost: BarrierCost, x: Array, strength: float, done: float) -> tuple[Array, Array]:
    """The minimum for one strength, from a point inside, up to a decrease of `done`, and the Hessian there."""
    value = cost.value(x, strength)
    gradient, hessian = cost.derivatives(x, strength)
    for _ in range(STEPS):
        step = -_solve(hessian, gradient)
        descent = -float(gradient @ step)
        if not np.isfinite(descent) or descent < done:
            break
        length = 1.0
        while (new := cost.value(there := x + length * step, strength)) > value - 0.1 * length * descent:
            length *= 0.5
            if length <= 1e-8:
                return x, hessian
        x, value = there, new
        gradient, hessian = cost.derivatives(x, strength)
    return x, hessian


def _solve(matrix: Array, right: Array) -> Array:
    """Product of the inverse of a positive definite matrix, see `_inverse`, and a vector or matrix."""
    diagonal = np.diag(matrix)
    size = np.sqrt(np.where(diagonal > 1e-200, diagonal, 1.0))
    scaled, target = matrix / np.outer(size, size) + 1e-13 * np.eye(len(matrix)), (right.T / size).T
    _, found, failed = dposv(scaled, target)
    return np.asarray(((np.linalg.solve(scaled, target) if failed else found).T / size).T)


def _inverse(matrix: Array) -> Array:
    """Inverse of a positive definite matrix, with its rows and columns scaled to a unit diagonal; of zeros, 1e13."""
    return _solve(matrix, np.eye(len(matrix)))
