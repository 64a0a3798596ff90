"""Variances of random effects by restricted maximum likelihood (REML), on Gram matrices alone.

The model is y_j = X_j c + e_j for each joint j, with independent rows of variance s_j^2 and coefficients c that are
free (base parameters), or normal in groups of one variance each, which are to be found. Patterson & Thompson 1971;
Searle, Casella & McCulloch, Variance Components, 1992.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from armid.arrays import Array, Mask
from armid.dynamics.threads import one_blas_thread

FLAT = 1e-10  # precision of free coefficients, as a share of what the data say
DEVIATIONS = np.geomspace(1e-3, 5.0, 14)  # of a group, in its size, over which its variance is averaged
LEAST, MOST = -16.0, 4.0  # logarithms of a variance component


@dataclass(eq=False)
class Grams:
    """All that the estimation needs to know of the rows: sums over them, per joint.

    Attributes:
        products: X' X, (joints, columns, columns).
        right: X' y, (joints, columns).
        power: y' y, (joints,).
        counts: rows, (joints,); divided by how many correlated rows are worth one where that is known.
    """

    products: Array
    right: Array
    power: Array
    counts: Array

    @classmethod
    def zero(cls, joints: int, columns: int) -> Grams:
        """No row yet."""
        shapes = ((joints, columns, columns), (joints, columns), (joints,), (joints,))
        return cls(*(np.zeros(shape) for shape in shapes))

    def add(self, joint: int, columns: Array, target: Array) -> None:
        """Count rows of a joint."""
        self.products[joint] += columns.T @ columns
        self.right[joint] += columns.T @ target
        self.power[joint] += float(target @ target)
        self.counts[joint] += len(target)

    def __add__(self, other: Grams) -> Grams:
        """Of the rows of both."""
        return Grams(*(getattr(self, name) + getattr(other, name) for name in ("products", "right", "power", "counts")))

    def without(self, other: Grams) -> Grams:
        """Of the rows that are not the other's."""
        return Grams(*(getattr(self, name) - getattr(other, name) for name in ("products", "right", "power", "counts")))

    def tempered(self, rows_per_one: Array) -> Grams:
        """The same if that many rows of each joint, being correlated, tell no more than one."""
        worth = 1.0 / rows_per_one
        return Grams(
            self.products * worth[:, None, None], self.right * worth[:, None], self.power * worth, self.counts * worth
        )

    def transformed(self, matrix: Array) -> Grams:
        """The same for coefficients c' with c = matrix c'."""
        return Grams(matrix.T @ self.products @ matrix, self.right @ matrix, self.power, self.counts)


@dataclass(frozen=True, eq=False)
class VarianceComponents:
    """What was found.

    Attributes:
        noise: variance of the rows per joint.
        groups: variance of each group's coefficients.
        spread: covariance of all coefficients that comes from not knowing the averaged variances.
        search: where the search ended; a good start for a similar problem.
    """

    noise: Array
    groups: Mapping[str, float]
    spread: Array = field(repr=False)
    search: Array = field(repr=False)


def variance_components(
    grams: Grams,
    labels: Sequence[str],
    sizes: Mapping[str, float],
    start: Array | None = None,
    averaged: Sequence[str] = (),
) -> VarianceComponents:
    """Maximise the restricted likelihood, less the standard deviation of each group over its size.

    The penalty makes a group vanish that the data do not ask for: half of all data sets without an effect ask for a
    little of it.

    Args:
        grams: of the rows.
        labels: group of each column; an empty string for those that are free.
        sizes: typical standard deviation of each group.
        start: `VarianceComponents.search` of a similar problem.
        averaged: groups whose variance is the mean over what the data and its size allow, not the most likely one:
            for effects that are hard to tell from free ones, whose most likely variance is none all too often.
    """
    names = np.array(labels)
    seen = np.einsum("jii->i", grams.products) > 0.0
    groups = [name for name in dict.fromkeys(labels) if name and bool(seen[names == name].any())]
    with one_blas_thread():
        problem = _Likelihood(grams, seen, names, groups, [1.0 / sizes[name] for name in groups])
        x = problem.start([sizes[name] for name in groups])
        bounds = [(u - 14.0, u + 8.0) for u in x[: problem.joints]] + [(LEAST, MOST)] * len(groups)
        first = x if start is None or len(start) != len(x) else np.clip(start, *np.array(bounds).T)
        found = minimize(problem.cost, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300})
        spread = np.zeros((len(names), len(names)))
        for name in [name for name in groups if name in averaged]:
            spread += problem.average(found.x, groups.index(name))
    variances = np.exp(found.x)
    own = dict(zip(groups, variances[problem.joints :].tolist(), strict=True))
    return VarianceComponents(variances[: problem.joints], own, spread, found.x)


def held_out_cost(folds: Sequence[Grams], labels: Sequence[str], sizes: Mapping[str, float], kept: Mask) -> float:
    """Minus twice the log likelihood of each fold as the others predict it, with some of the columns.

    Variances are those of all folds together: a few numbers, which no single fold decides.
    """
    parts = [
        Grams(g.products[:, kept][:, :, kept], g.right[:, kept], g.power, np.maximum(g.counts, 1e-9)) for g in folds
    ]
    own = [label for label, keep in zip(labels, kept, strict=True) if keep]
    total = sum(parts[1:], parts[0])
    found = variance_components(total, own, sizes)
    weights = 1.0 / found.noise
    prior = np.array([1.0 / found.groups.get(k, 1e-12) if k else 0.0 for k in own])
    prior += FLAT * np.diag(np.tensordot(weights, total.products, axes=1)) + 1e-300

    def cost(grams: Grams) -> float:
        matrix = np.tensordot(weights, grams.products, axes=1) + np.diag(prior)
        scale = 1.0 / np.sqrt(np.diag(matrix))
        factor = cho_factor(matrix * np.outer(scale, scale), lower=True)
        right = scale * (weights @ grams.right)
        value = weights @ grams.power - grams.counts @ np.log(weights) - right @ cho_solve(factor, right)
        return float(value + 2.0 * np.sum(np.log(np.diag(factor[0]) / scale)))

    return sum(cost(total) - cost(total.without(part)) for part in parts)


class _Likelihood:
    """Minus the penalised log likelihood over logarithms of variances, with its gradient."""

    def __init__(
        self,
        grams: Grams,
        seen: Mask,
        names: Array,
        groups: Sequence[str],
        rates: Sequence[float],
    ) -> None:
        self.joints, self.rates = len(grams.counts), rates
        self.power, self.counts = grams.power, grams.counts
        self.index = index = np.flatnonzero(seen)
        self.size = len(index)
        fixed = np.flatnonzero(names[index] == "")
        self.fixed = fixed
        self.members = [np.flatnonzero(names[index] == name) for name in groups]
        size = np.ones(len(index))
        size[fixed] = 1.0 / np.sqrt(np.einsum("jii->i", grams.products)[index[fixed]])
        self.scale = np.ones(len(seen))
        self.scale[index] = size
        self.own = [np.flatnonzero(np.diag(product)[index] > 0.0) for product in grams.products]
        self.products = [
            product[np.ix_(index[own], index[own])] * np.outer(size[own], size[own])
            for product, own in zip(grams.products, self.own, strict=True)
        ]
        self.right = [b[index[own]] * size[own] for b, own in zip(grams.right, self.own, strict=True)]

    def start(self, sizes: Sequence[float]) -> Array:
        """Noise of a tenth of the torque, effects of a third of their typical size."""
        noise = np.log(np.maximum(1e-2 * self.power / np.maximum(self.counts, 1.0), 1e-300))
        noise[self.counts == 0.0] = 0.0  # nobody has measured there
        return np.concatenate([noise, 2.0 * np.log(0.3 * np.array(sizes))]) if len(sizes) else noise

    def average(self, x: Array, group: int) -> Array:
        """Give a group its mean variance, the others as they are; return the covariance of all coefficients by it."""
        deviations = DEVIATIONS / self.rates[group]
        there, place, costs, means = x.copy(), self.joints + group, [], []
        for deviation in deviations:
            there[place] = 2.0 * np.log(deviation)
            costs.append(self.cost(there)[0])
            means.append(self.mean)
        weights = np.exp(min(costs) - np.array(costs)) * np.gradient(deviations)
        weights /= weights.sum()
        x[place] = np.log(weights @ deviations**2)
        self.cost(x)
        away = np.array(means) - self.mean
        return np.asarray((weights[:, None] * away).T @ away)

    def cost(self, x: Array) -> tuple[float, Array]:
        """Value and gradient."""
        n = self.joints
        weights = np.exp(-x[:n])
        matrix, right = np.zeros((self.size, self.size)), np.zeros(self.size)
        for weight, product, b, own in zip(weights, self.products, self.right, self.own, strict=True):
            matrix[own[:, None], own] += weight * product
            right[own] += weight * b
        diagonal = np.diag(matrix) * (1.0 + 1e-11)
        diagonal[self.fixed] += FLAT * weights.max()
        for member, log_variance in zip(self.members, x[n:], strict=True):
            diagonal[member] += np.exp(-log_variance)
        np.fill_diagonal(matrix, diagonal)
        try:
            factor = cho_factor(matrix, lower=True)
        except np.linalg.LinAlgError:
            return 1e12, np.zeros_like(x)
        inverse = cho_solve(factor, np.eye(len(matrix)))
        mean = inverse @ right
        self.mean = np.zeros(len(self.scale))
        self.mean[self.index] = self.scale[self.index] * mean
        gradient = np.zeros_like(x)
        value = float(self.counts @ x[:n]) + 2.0 * float(np.log(np.diag(factor[0])).sum())
        value += float(weights @ self.power) - float(right @ mean)
        for j, (product, b, own) in enumerate(zip(self.products, self.right, self.own, strict=True)):
            squares = self.power[j] - 2.0 * b @ mean[own] + mean[own] @ product @ mean[own]
            left = float(np.sum(product * inverse[own[:, None], own]))
            gradient[j] = self.counts[j] - weights[j] * (squares + left)
        for g, (member, rate) in enumerate(zip(self.members, self.rates, strict=True), start=n):
            deviation = float(np.exp(0.5 * x[g]))
            value += len(member) * x[g] + 2.0 * deviation * rate
            spread = float(np.sum(mean[member] ** 2 + np.diag(inverse)[member]))
            gradient[g] = len(member) - spread * np.exp(-x[g]) + deviation * rate
        return 0.5 * value, 0.5 * gradient
