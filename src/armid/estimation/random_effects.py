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

from armid.arrays import Array, Indices, Mask
from armid.dynamics.threads import one_blas_thread

FLAT = 1e-10  # precision of free coefficients, as a share of what the data say
DEVIATIONS = np.geomspace(1e-3, 5.0, 14)  # of a group, in its size, over which its variance is averaged
LEAST, MOST = -16.0, 4.0  # logarithms of a variance component
CONVERGED, ROUGHLY = 1e-12, 1e-7  # relative change of the likelihood's logarithm at which a search ends


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

    def add(self, joint: int, columns: Array, target: Array, seen: Indices | None = None) -> None:
        """Count rows of a joint, which has all columns or those `seen`."""
        seen = np.arange(columns.shape[1]) if seen is None else seen
        self.products[joint, seen[:, None], seen] += columns.T @ columns
        self.right[joint, seen] += columns.T @ target
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
        products = np.zeros((len(self.products), matrix.shape[1], matrix.shape[1]))
        for product, result in zip(self.products, products, strict=True):
            own = np.flatnonzero(product.any(axis=0))
            made = np.flatnonzero(matrix[own].any(axis=0))
            part = matrix[own[:, None], made]
            result[made[:, None], made] = part.T @ product[own[:, None], own] @ part
        return Grams(products, self.right @ matrix, self.power, self.counts)


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
    converged: float = CONVERGED,
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
        converged: relative change of the likelihood's logarithm at which the search ends.
    """
    names = np.array(labels)
    seen = np.einsum("jii->i", grams.products) > 0.0
    groups = [name for name in dict.fromkeys(labels) if name and bool(seen[names == name].any())]
    with one_blas_thread():
        problem = _Likelihood(grams, seen, names, groups, [1.0 / sizes[name] for name in groups])
        x = problem.start([sizes[name] for name in groups])
        bounds = [(u - 14.0, u + 8.0) for u in x[: problem.joints]] + [(LEAST, MOST)] * len(groups)
        first = x if start is None or len(start) != len(x) else np.clip(start, *np.array(bounds).T)
        x = problem.minimum(first, np.array(bounds), converged)
        spread = np.zeros((len(names), len(names)))
        for name in [name for name in groups if name in averaged]:
            spread += problem.average(x, groups.index(name))
    variances = np.exp(x)
    own = dict(zip(groups, variances[problem.joints :].tolist(), strict=True))
    return VarianceComponents(variances[: problem.joints], own, spread, x)


def held_out_cost(folds: Sequence[Grams], labels: Sequence[str], sizes: Mapping[str, float], kept: Mask) -> float:
    """Minus twice the log likelihood of each fold as the others predict it, with some of the columns.

    Variances are those of all folds together: a few numbers, which no single fold decides.
    """
    parts = [
        Grams(g.products[:, kept][:, :, kept], g.right[:, kept], g.power, np.maximum(g.counts, 1e-9)) for g in folds
    ]
    own = [label for label, keep in zip(labels, kept, strict=True) if keep]
    total = sum(parts[1:], parts[0])
    found = variance_components(total, own, sizes, converged=ROUGHLY)
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


def held_out_misfit(folds: Sequence[Grams], precision: Array, noise: Array, rows_per_one: Array) -> Array:
    """Mean square per joint by which folds, predicted from the others, are off beyond what is foretold.

    Foretold are noise and the covariance of coefficients found without the fold: nothing is left where the model holds.

    Args:
        folds: of the rows.
        precision: 1 / variance of each coefficient; 0 for those that are free.
        noise: variance of the rows.
        rows_per_one: how many correlated rows are worth one.
    """
    weights = 1.0 / (noise * rows_per_one)
    information = [np.tensordot(weights, fold.products, axes=1) for fold in folds]
    everything, right = sum(information) + np.diag(precision), sum(weights @ fold.right for fold in folds)
    size = np.diag(everything)
    scale = np.where(size > 0.0, 1.0 / np.sqrt(np.maximum(size, 1e-300)), 0.0)  # nothing of what no row shows
    beyond, counts = np.zeros(len(noise)), np.zeros(len(noise))
    for fold, own in zip(folds, information, strict=True):
        scaled = (everything - own) * np.outer(scale, scale) + FLAT * np.eye(len(scale))
        spread = np.linalg.inv(scaled) * np.outer(scale, scale)
        mean = spread @ (right - weights @ fold.right)
        squares = fold.power - 2.0 * fold.right @ mean + np.einsum("i,jik,k->j", mean, fold.products, mean)
        beyond += squares - fold.counts * noise - np.einsum("jik,ik->j", fold.products, spread)
        counts += fold.counts
    return np.maximum(beyond / np.maximum(counts, 1.0), 0.0)


class _Likelihood:
    """Minus the penalised log likelihood over logarithms of variances, with its gradient.

    Random effects that one joint alone has (inner columns) are eliminated joint by joint; what is left are the free
    coefficients and effects that several joints share (outer columns). Their matrices are stacked over the joints, the
    inner ones filled up with effects of unit variance that nobody has measured.
    """

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
        diagonals = np.einsum("jii->ji", grams.products)
        alone = seen & (names != "") & (np.count_nonzero(diagonals, axis=0) == 1)
        self.outer = outer = np.flatnonzero(seen & ~alone)
        own = [np.flatnonzero(alone & (diagonal > 0.0)) for diagonal in diagonals]
        self.inner = np.full((self.joints, max(map(len, own))), -1)
        for row, columns in zip(self.inner, own, strict=True):
            row[: len(columns)] = columns
        there, joint = self.inner >= 0, np.arange(self.joints)[:, None]
        rows = joint[:, :, None], self.inner[:, :, None]
        kinds = {name: number for number, name in enumerate(groups)}
        kind = np.array([kinds.get(name, -1) for name in names])
        self.kinds = np.where(there, kind[self.inner], -1), kind[outer]
        self.free, self.filled = kind[outer] < 0, ~there
        self.scale = np.ones(len(outer))
        self.scale[self.free] = 1.0 / np.sqrt(diagonals.sum(axis=0)[outer[self.free]])
        self.inside = grams.products[*rows, self.inner[:, None]] * (there[:, :, None] & there[:, None])
        self.between = grams.products[*rows, outer] * self.scale * there[:, :, None]
        self.outside = grams.products[:, outer[:, None], outer] * np.outer(self.scale, self.scale)
        self.right = grams.right[joint, self.inner] * there, grams.right[:, outer] * self.scale
        self.size = len(seen)

    def start(self, sizes: Sequence[float]) -> Array:
        """Noise of a tenth of the torque, effects of a third of their typical size."""
        noise = np.log(np.maximum(1e-2 * self.power / np.maximum(self.counts, 1.0), 1e-300))
        noise[self.counts == 0.0] = 0.0  # nobody has measured there
        return np.concatenate([noise, 2.0 * np.log(0.3 * np.array(sizes))]) if len(sizes) else noise

    def minimum(self, start: Array, bounds: Array, converged: float) -> Array:
        """Where the cost is least, found over logarithms in units of what their number of observations tells."""
        members = [sum(np.count_nonzero(kinds == g) for kinds in self.kinds) for g in range(len(self.rates))]
        unit = np.sqrt(2.0 / np.maximum(np.concatenate([self.counts, members]), 1.0))

        def scaled(u: Array) -> tuple[float, Array]:
            value, gradient = self.cost(unit * u)
            return value, unit * gradient

        limits = list(zip(*(bounds.T / unit), strict=True))
        options = {"maxiter": 300, "ftol": converged}
        return np.asarray(
            unit * minimize(scaled, start / unit, jac=True, method="L-BFGS-B", bounds=limits, options=options).x
        )

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
        weights, precision = np.exp(-x[:n]), np.append(np.exp(-x[n:]), 0.0)  # the last one of what is free
        inner, outer = precision[self.kinds[0]], precision[self.kinds[1]] + FLAT * weights.max() * self.free
        inner += 1e-11 * weights[:, None] * np.einsum("jii->ji", self.inside) + self.filled
        outer += 1e-11 * weights @ np.einsum("jii->ji", self.outside)
        inside = weights[:, None, None] * self.inside + inner[:, :, None] * np.eye(inner.shape[1])
        try:
            root = np.linalg.cholesky(inside)
            lower = np.linalg.inv(root)
            passed = lower @ (weights[:, None, None] * self.between)
            flat = passed.reshape(-1, len(outer))
            last = np.linalg.cholesky(np.tensordot(weights, self.outside, axes=1) + np.diag(outer) - flat.T @ flat)
        except np.linalg.LinAlgError:
            return 1e12, np.zeros_like(x)
        half = _times(lower, weights[:, None] * self.right[0])
        spread = np.linalg.inv(last)
        spread = spread.T @ spread
        right = weights @ self.right[1] - half.ravel() @ flat
        mean = spread @ right
        own = _times(lower.swapaxes(1, 2), half - passed @ mean)
        self.mean = np.zeros(self.size)
        self.mean[self.outer] = self.scale * mean
        self.mean[self.inner[~self.filled]] = own[~self.filled]
        value = float(self.counts @ x[:n] + weights @ self.power - np.sum(half**2) - right @ mean)
        value += 2.0 * float(np.log(np.diag(last)).sum() + np.log(np.einsum("jii->ji", root)).sum())
        # Covariance of the effects, and what that of all coefficients adds to the squares of the residuals.
        turned = passed @ spread
        gain, wide = lower.swapaxes(1, 2) @ passed, lower.swapaxes(1, 2) @ turned
        variance, more = np.sum(lower**2, axis=1), np.sum(wide * gain, axis=2)
        told = weights * np.einsum("jab,ab->j", self.outside, spread) - np.sum(passed * turned, axis=(1, 2))
        told += np.sum(1.0 - inner * (variance + more), axis=1)
        fitted = _times(self.inside, own) + 2.0 * (self.between @ mean - self.right[0])
        squares = self.power + np.sum(own * fitted, axis=1) + (self.outside @ mean - 2.0 * self.right[1]) @ mean
        gradient = np.append(self.counts - weights * squares - told, np.zeros(len(self.rates)))
        effects = own**2 + variance + more, mean**2 + np.diag(spread)
        for g, rate in enumerate(self.rates):
            members = [kinds == g for kinds in self.kinds]
            deviation, count = float(np.exp(0.5 * x[n + g])), sum(int(member.sum()) for member in members)
            value += count * x[n + g] + 2.0 * deviation * rate
            power = sum(float(effect[member].sum()) for effect, member in zip(effects, members, strict=True))
            gradient[n + g] = count - power * precision[g] + deviation * rate
        return 0.5 * value, 0.5 * gradient


def _times(matrices: Array, vectors: Array) -> Array:
    """Products of matrices and vectors, one for each joint."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])
