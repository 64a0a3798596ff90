"""What the data leave open: which parameters, what is plausible of them, the most plausible of arms that move alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_triangular

from armid.arrays import Array
from armid.dynamics.threads import one_blas_thread
from armid.estimation.consistent.conditions import Unknowns, reach, reference_bodies
from armid.estimation.consistent.prior import Prior, deviation_rows, solid
from armid.estimation.fit import Fit
from armid.estimation.identifiability import DETERMINED
from armid.notes import Note, note
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


def regularising_rows(unknowns: Unknowns, reference: Array, scale: Array, prior: Prior | None) -> tuple[Array, Array]:
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


STEPS = 100  # of Newton's method, at most
DONE = 1e-6  # expected decrease of the cost at which it stops


def most_plausible(
    unknowns: Unknowns,
    x: Array,
    scale: Array,
    bodies: Array,
    weights: Sequence[float],
    slack: float,
    rows: tuple[Array, Array],
) -> Array:
    """Move along the null space of the base parameters to where links look most like given bodies.

    Minimises the sum of w (trace(P0^-1 P) - log det Q) over links, with P a link's pseudo-inertia, Q the same without
    the rotors it carries and P0 the body: a proper divergence of positive definite matrices (Lee, Wensing, Park 2020),
    which grows without bound towards the edge of the possible. Inequalities count by the logarithm of their slack.
    Newton's method; torque does not change.

    Args:
        unknowns: the parameters and their conditions.
        x: possible parameters, strictly inside.
        scale: typical size of each parameter.
        bodies: pseudo-inertias P0, (links, 4, 4).
        weights: w of each link.
        slack: weight of the logarithms of inequalities.
        rows: matrix A and target b of further squares ||A x - b||^2 / 2.

    Returns:
        The parameters; `x` itself where nothing is free.
    """
    with one_blas_thread():
        _, singular, directions = np.linalg.svd(unknowns.matrix * scale)
        free = scale[:, None] * directions[int(np.sum(singular > 1e-9 * singular[0])) :].T
        if not free.shape[1]:
            return x
        result: Array = x + free @ _newton(_Barrier(unknowns, x, free, bodies, weights, slack, rows))
        return result


class _Barrier:
    """The function to be minimised over movements n from x, with derivatives; infinite outside the possible."""

    def __init__(
        self,
        unknowns: Unknowns,
        x: Array,
        free: Array,
        bodies: Array,
        weights: Sequence[float],
        slack: float,
        rows: tuple[Array, Array],
    ) -> None:
        links = {f"link {i + 1}": pair for i, pair in enumerate(zip(weights, bodies, strict=True))}
        self.linear = np.zeros(free.shape[1])
        self.parts = []
        for condition in unknowns.conditions:
            slopes = np.tensordot(free.T, condition.slopes, axes=1)
            if np.abs(slopes).max() < 1e-12:
                continue
            weight, body = links.get(condition.name, (slack, None))
            if body is not None:
                whole = unknowns.pseudo_inertia(int(condition.name.split()[1]))
                pull = np.tensordot(whole.slopes, np.linalg.inv(body), axes=2)
                self.linear += weight * free.T @ pull
            self.parts.append((weight, condition.matrix(x), slopes))
        self.rows, self.target = rows[0] @ free, rows[1] - rows[0] @ x

    def value(self, n: Array) -> float:
        """Value; infinity outside."""
        total = float(self.linear @ n) + 0.5 * float(np.sum((self.rows @ n - self.target) ** 2))
        for weight, constant, slopes in self.parts:
            try:
                factor = np.linalg.cholesky(constant + np.tensordot(n, slopes, axes=1))
            except np.linalg.LinAlgError:
                return float("inf")
            total -= 2.0 * weight * float(np.log(np.diag(factor)).sum())
        return total

    def derivatives(self, n: Array) -> tuple[Array, Array]:
        """Gradient, and rows J with J' J the Hessian."""
        gradient = self.linear + self.rows.T @ (self.rows @ n - self.target)
        blocks = [self.rows]
        for weight, constant, slopes in self.parts:
            root = np.linalg.inv(np.linalg.cholesky(constant + np.tensordot(n, slopes, axes=1)))
            whitened = root @ slopes @ root.T
            gradient -= weight * np.trace(whitened, axis1=1, axis2=2)
            blocks.append(np.sqrt(weight) * whitened.reshape(len(n), -1).T)
        return gradient, np.vstack(blocks)


def _newton(function: _Barrier) -> Array:
    """Damped Newton steps; the Hessian's factor comes from its rows, so that its condition number is not squared."""
    n = np.zeros(len(function.linear))
    value = function.value(n)
    if not np.isfinite(value):
        return n
    for _ in range(STEPS):
        gradient, rows = function.derivatives(n)
        size = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
        upper = np.linalg.qr(rows / size, mode="r")
        half = solve_triangular(upper, gradient / size, trans="T")
        step = -solve_triangular(upper, half) / size
        descent = float(half @ half)
        if not np.isfinite(descent) or descent < DONE:
            break
        length = 1.0
        while (new := function.value(n + length * step)) > value - 0.1 * length * descent and length > 1e-10:
            length *= 0.5
        if length <= 1e-10:
            break
        n, value = n + length * step, new
    return n


HALF = 0.5  # share from which a parameter counts as determined by the data


def data_share(
    fit: Fit, unknowns: Unknowns, x: Array, scale: Array, data: Array, regularising: Array, prior: Prior | None
) -> Array:
    """How much of each parameter the data determine: 1 all, 0 nothing, from 0.5 on it counts as determined.

    Without a prior on it, a parameter is determined if it can be identified alone and its standard deviation is small:
    1 / (1 + (sigma / (0.3 size))^2), with size the larger of its value and, for links, what is typical of it; a product
    of inertia near zero can be well known. A parameter that torque shows only within groups has 0. With a prior on it
    the share is 1 - posterior variance / prior variance, if that is more.

    Args:
        fit: the unconstrained fit, whose standard deviations count.
        unknowns: the parameters.
        x: their values.
        scale: typical size of each.
        data: rows of unit variance for the unknowns.
        regularising: the same of prior and plausible arm.
        prior: what is known beforehand.
    """
    names = unknowns.names
    linkwise = {name for number in range(1, fit.robot.n_joints + 1) for name in inertial_names(number)}
    typical = np.where([name in linkwise for name in names], scale, 0.0)
    alone = {*unknowns.model.base.alone, *(name for term in unknowns.terms for name in term.names)}
    free = dict(zip(fit.columns, fit.identifiability.classes, strict=True))
    sigma = dict(zip(fit.columns, fit.sigma.tolist(), strict=True))
    share = np.zeros(len(names))
    for i, name in enumerate(names):
        size = DETERMINED * max(abs(float(x[i])), float(typical[i]))
        if name in alone and free.get(name, "undetermined") != "undetermined" and size > 0.0:
            share[i] = 1.0 / (1.0 + (sigma[name] / size) ** 2)
    return share if prior is None else np.maximum(share, _against(prior, unknowns, scale, data, regularising))


def _against(prior: Prior, unknowns: Unknowns, scale: Array, data: Array, regularising: Array) -> Array:
    """Part of the prior's variance that the data take away; 0 where the prior does not speak."""
    with one_blas_thread():
        rows = prior.rows(unknowns)[0] * scale
        told = np.linalg.norm(rows, axis=0) > 0.0
        before = np.sum(np.linalg.pinv(rows[:, told]) ** 2, axis=1)
        after = np.sum(np.linalg.pinv(np.vstack([data, regularising]) * scale) ** 2, axis=1)
    result = np.zeros(len(scale))
    result[told] = np.clip(1.0 - after[told] / before, 0.0, 1.0)
    return result


def determined(names: Sequence[str], share: Array, prior: Prior | None) -> Note:
    """How many parameters the data determine, and which the plausible arm or the prior does."""
    others = [name for name, part in zip(names, share, strict=True) if part < HALF]
    return note("estimation.determined", total=len(names), others=others, prior=prior is not None)
