"""Learning across arms: what arm-days say about parameters, what is common to a type, and each arm in that light.

Arm a has parameters x_a ~ N(mean, spread), and its data say N(x_a, A_a^-1) about them: an empirical-Bayes model, fitted
by expectation and maximisation. A well excited arm keeps its own values; one that moves little takes over what its
motion does not show, with an interval as wide as the fleet's spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import block_diag
from scipy.stats import t as student

from armid.arrays import Array, Mask
from armid.dynamics.threads import one_blas_thread
from armid.errors import ArmidError
from armid.fleet.day import ArmDay
from armid.fleet.type_model import TypeModel

SPARE_ROWS = 20  # beyond the number of parameters, without which a day does not tell a joint's noise
LOUD = 1.5  # times its arm's usual residual from which on a day counts by its own
CORRELATED = 4.0  # times its arm's usual variance of a day, as correlated residuals have it, from which on it counts
LEAST_ARMS = 5  # below, a spread between arms cannot be told
MOST_ARMS = 400  # from which the type is learnt; more add little but time
UNSEEN = 1e6  # standard deviation of a parameter that no arm's motion shows, in its own unit
ITERATIONS, CONVERGED = 400, 1e-6
FREEDOM = 6.0  # of the t distribution that makes single odd arms count less
ODD = 0.01  # chance, over the whole fleet, that a sound arm is called unusual
ONE_BY_ONE = 30  # arms up to which each is compared with what the others alone say; in larger fleets one weighs little
RELEARN, RELEARNT = 60, 1e-3  # rounds of that, and relative change at which it ends


@dataclass(frozen=True, eq=False)
class Information:
    """Quadratic log-likelihood of the parameters x: -(x' A x - 2 b' x) / 2.

    Attributes:
        matrix: A, (parameters, parameters).
        vector: b.
        own: change of b per error of the arm's own friction curve, (parameters, errors); of unit size, independent.
        shared: the same for errors of the type's curve, which all arms share; None without. Signs do not matter.
    """

    matrix: Array
    vector: Array
    own: Array | None = None
    shared: Array | None = None

    def __add__(self, other: Information) -> Information:
        """Both together."""
        return Information(self.matrix + other.matrix, self.vector + other.vector)

    def solved(self) -> tuple[Array, Array]:
        """Values and their covariance."""
        scale = 1.0 / np.sqrt(np.diag(self.matrix))
        back = np.outer(scale, scale)
        covariance = np.linalg.inv(self.matrix * back) * back
        return covariance @ self.vector, 0.5 * (covariance + covariance.T)


@dataclass(frozen=True, eq=False)
class History:
    """One arm over its usable days.

    Beside its parameters an arm has a friction curve of its own, the same on all days. It is the type's curve, which is
    taken off, and so many times each of its modes, which are N(0, 1) a priori: unknowns behind the parameters.

    Attributes:
        name: of the arm.
        days: the arm-days, by date.
        matrix: A of each day, (days, parameters + modes, parameters + modes).
        vector: b of each day, (days, parameters + modes).
        noise: usual rms of the residuals per joint [N m].
        inflation: by how much their correlation in time enlarges variances, per joint.
        fixed: values of all columns that are taken off, the type's curve, (columns,).
        change: values of all columns beside those, from parameters and modes, (columns, parameters + modes).
        found: what all days together say of the modes, (modes,).
        prior_error: change of the modes' mean a priori per error of the type's curve, (modes, errors).
    """

    name: str
    days: tuple[ArmDay, ...]
    matrix: Array
    vector: Array
    noise: Array
    inflation: Array
    fixed: Array = field(default_factory=lambda: np.zeros(0))
    change: Array = field(default_factory=lambda: np.zeros((0, 0)))
    found: Array = field(default_factory=lambda: np.zeros(0))
    prior_error: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def known_curve(self) -> History:
        """The same for the parameters alone, with the arm's own curve taken off as all days together show it."""
        p = self.vector.shape[1] - len(self.found)
        vector = self.vector[:, :p] - self.matrix[:, :p, p:] @ self.found
        fixed, matrix = self.fixed + self.change[:, p:] @ self.found, self.matrix[:, :p, :p]
        change, none = self.change[:, :p], np.s_[:0]
        known = replace(self, matrix=matrix, vector=vector, fixed=fixed, change=change)
        return replace(known, found=self.found[none], prior_error=self.prior_error[none])

    @property
    def nbytes(self) -> int:
        """What it holds in memory beside its days."""
        return sum(one.nbytes for one in (self.matrix, self.vector, self.change, self.prior_error))

    @property
    def temperature(self) -> Array:
        """Of each day and joint, (days, joints) [°C]; NaN without a sensor."""
        return np.array([day.temperature for day in self.days])

    def with_curve(self, values: Array) -> Array:
        """Values of all columns from those of parameters and modes, (days, …)."""
        return np.asarray(self.fixed + values @ self.change.T)

    @property
    def total(self) -> Information:
        """All days together, always summed in the order of their dates."""
        return Information(self.matrix.sum(axis=0), self.vector.sum(axis=0))

    def only(self, keep: Mask) -> History:
        """Some of the days."""
        days = tuple(day for day, yes in zip(self.days, keep, strict=True) if yes)
        return replace(self, days=days, matrix=self.matrix[keep], vector=self.vector[keep])

    def scaled(self, scatter: float) -> History:
        """The same with errors that many times larger."""
        square = scatter**2
        matrix, vector = self.matrix / square, self.vector / square
        return replace(self, matrix=matrix, vector=vector, inflation=self.inflation * square)


def told_noise(days: Sequence[ArmDay], model: TypeModel) -> Array:
    """Residuals' rms of each day and joint, (days, joints) [N m]; NaN where so few rows fit whatever they are."""
    result = []
    for day in days:
        assert day.factor is not None
        rows = np.array(day.factor.counts) - [len(columns) for columns in model.followed.joint_columns]
        result.append(np.where((rows >= SPARE_ROWS) & (day.rms > 0.0), day.rms, np.nan))
    return np.array(result)


def median_over_days(values: Array) -> Array:
    """Median over days, per joint; NaN where no day has a number."""
    known = np.isfinite(values).any(axis=0)
    return np.where(known, np.nanmedian(np.where(known, values, 0.0), axis=0), np.nan)


def history_of(
    name: str, days: Sequence[ArmDay], model: TypeModel, counted: Mask | None = None, typical: Array | None = None
) -> History:
    """An arm's usable days as information.

    Noise and inflation are medians over the arm's days: one day tells them too badly, and a bad day does not move them.

    Args:
        name: of the arm.
        days: its arm-days.
        model: of the type.
        counted: which of the usable ones, by date, tell the noise; all, if it is None or none of them does.
        typical: noise of other arms, for joints that have moved too little to tell theirs.
    """
    kept = tuple(sorted((day for day in days if day.usable), key=lambda day: day.date))
    if not kept:
        raise ArmidError(f"{name}: no day is usable")
    quiet = [day for day, yes in zip(kept, counted, strict=True) if yes] if counted is not None else []
    noise = median_over_days(told_noise(quiet or kept, model))
    if typical is not None:
        noise = np.where(np.isfinite(noise), noise, typical)
    plain = median_over_days(np.array([np.where(day.rms > 0.0, day.rms, np.nan) for day in quiet or kept]))
    noise = np.where(np.isfinite(noise), noise, plain)
    noise = np.where(np.isfinite(noise), noise, 1.0)  # of a joint without any row, whose weight does not matter
    inflation = np.median([day.inflation for day in quiet or kept], axis=0)
    matrices, vectors = [], []
    with one_blas_thread():
        total = reduce(add, [day.factor for day in quiet or kept if day.factor is not None])
        weights = 1.0 / (noise**2 * inflation)
        curve = model.own_curve(total, weights)
        modes, found, prior_error = model.modes(total, weights, curve)
        count = len(total.names) - len(curve)
        whole = model.change(count)
        change, fixed = whole @ block_diag(np.eye(count), modes), whole[:, count:] @ model.curve
        for day in kept:
            assert day.factor is not None
            own, usual = day.rms**2 * day.inflation, noise**2 * inflation
            variance = np.where(day.rms > LOUD * noise, day.rms**2 * inflation, usual)
            variance = np.where(own > CORRELATED * usual, np.maximum(own, variance), variance)
            matrix, vector, _ = day.factor.normal_equations(1.0 / variance)
            matrices.append(change.T @ matrix @ change)
            vectors.append(change.T @ (vector - matrix @ fixed))
    information = np.array(matrices), np.array(vectors)
    return History(name, kept, *information, noise, inflation, fixed, change, found, prior_error)


@dataclass(frozen=True, eq=False)
class ArmEstimate:
    """One arm in the light of the fleet.

    Attributes:
        values, covariance: of the parameters, with the fleet's knowledge, as if the friction curve were known.
        own_share: 1 - posterior over prior variance of each parameter: 1 where the arm's own data decided, 0 where the
            fleet did.
        deviation: distance of each parameter from the fleet's mean in standard deviations of spread and error; in
            small fleets, of mean and spread of the other arms.
        unusual: names of the parameters that make the arm stand out, the worst first.
        doubt: variances that come from friction curves, which are the same on all days and hide no change.
    """

    values: Array
    covariance: Array
    own_share: Array
    deviation: Array
    unusual: tuple[str, ...]
    doubt: Array | float = 0.0

    @property
    def sigma(self) -> Array:
        """Standard deviations, the doubt in the friction curve included."""
        return np.sqrt(np.diag(self.covariance) + self.doubt)


@dataclass(frozen=True, eq=False)
class FleetEstimate:
    """What arms of one type share.

    Attributes:
        names: parameters.
        mean: of the type.
        mean_covariance: how well the mean is known, as if friction curves were.
        mean_doubt: variances of the mean that come from friction curves.
        spread: covariance between arms; a mere guess, wide, if `told` is False.
        told: whether there were enough arms to tell the spread.
        arms: by name.
    """

    names: tuple[str, ...]
    mean: Array
    mean_covariance: Array
    spread: Array
    told: bool
    arms: Mapping[str, ArmEstimate]
    mean_doubt: Array | float = 0.0

    def as_prior(self, times: float, modes: int = 0) -> Information:
        """What is known about an arm before its data, with a spread that many times wider, and modes of its curve."""
        spread = times**2 * (self.spread + self.mean_covariance)
        size = np.sqrt(np.diag(spread))
        matrix = np.linalg.inv(spread / np.outer(size, size)) / np.outer(size, size)
        return Information(block_diag(matrix, np.eye(modes)), np.pad(matrix @ self.mean, (0, modes)))


def learn(
    names: Sequence[str],
    arms: Mapping[str, Information],
    *,
    compare: bool = True,
) -> FleetEstimate:
    """Fit the hierarchical model.

    Args:
        names: parameters.
        arms: what each arm's data say. Errors of friction curves that all arms share make none unlike the others.
        compare: whether to look for unusual arms in a small fleet, which costs a fit for each.
    """
    keys = sorted(arms)
    information = [arms[key] for key in keys]
    scale = _scale(information)
    A = np.array([part.matrix * np.outer(scale, scale) for part in information])
    b = np.array([part.vector * scale for part in information])
    chosen = np.unique(np.linspace(0, len(keys) - 1, min(len(keys), MOST_ARMS)).round().astype(int))
    told = len(keys) >= LEAST_ARMS
    with one_blas_thread():
        mean, spread = _start(A, b)
        weight = np.ones(len(chosen))
        for _ in range(ITERATIONS if told else 0):
            before = mean, spread
            mean, spread, weight = _step(A[chosen], b[chosen], mean, spread)
            change = np.abs(mean - before[0]).max() + np.abs(np.diag(spread) - np.diag(before[1])).max()
            if change < CONVERGED * (1.0 + np.abs(mean).max()):
                break
        mean_covariance = _mean_covariance(A[chosen], spread, weight)
        # The spread is known from as many arms only, so that Student's tails count.
        limit = float(student.isf(0.5 * ODD / (len(mean) * len(keys)), len(keys) - 1)) if told else np.inf
        back, found = np.outer(scale, scale), {}
        of_arms = np.zeros(len(keys))  # weights of arms in the mean
        of_arms[chosen] = weight
        own_doubt, type_doubt = _doubts(A, spread, scale, of_arms, information)
        for k, (key, doubt) in enumerate(zip(keys, own_doubt[1:], strict=True)):
            own = one = _arm(A[k], b[k], mean, mean_covariance, spread, doubt)
            if told and compare and len(keys) <= ONE_BY_ONE:
                one = _arm(A[k], b[k], *_others(A, b, k, mean, spread), doubt)
                limit = float(student.isf(0.5 * ODD / (len(mean) * len(keys)), len(keys) - 2))
            far = np.abs(one.deviation)
            unusual = tuple(names[i] for i in np.argsort(-far) if far[i] > limit)
            values, covariance = own.values * scale, own.covariance * back
            doubt = scale**2 * (doubt + type_doubt[1 + k])
            found[key] = ArmEstimate(values, covariance, own.own_share, one.deviation, unusual, doubt)
    about = scale**2 * (own_doubt[0] + type_doubt[0])
    return FleetEstimate(tuple(names), mean * scale, mean_covariance * back, spread * back, told, found, about)


def _scale(information: Sequence[Information]) -> Array:
    """Sizes that make parameters comparable: their error if the whole fleet were one arm, times the number of arms."""
    total = np.diag(np.sum([part.matrix for part in information], axis=0))
    return np.asarray(np.minimum(np.sqrt(len(information) / np.maximum(total, 1e-300)), UNSEEN))


def _start(A: Array, b: Array) -> tuple[Array, Array]:
    """The fleet as one arm, and a wide spread around it."""
    mean = np.linalg.lstsq(A.sum(axis=0), b.sum(axis=0), rcond=1e-12)[0]
    return mean, np.diag(np.maximum(1.0, 0.3 * np.abs(mean)) ** 2)


def _posteriors(A: Array, b: Array, mean: Array, spread: Array) -> tuple[Array, Array]:
    """Values and covariances of all arms; written so that a singular information matrix does no harm."""
    p = A.shape[1]
    gain = np.linalg.solve(np.eye(p) + spread @ A, np.broadcast_to(spread, A.shape))
    covariance = 0.5 * (gain + gain.transpose(0, 2, 1))
    values = mean + np.einsum("apq,aq->ap", covariance, b - A @ mean)
    return values, covariance


def _step(A: Array, b: Array, mean: Array, spread: Array) -> tuple[Array, Array, Array]:
    """One round of expectation and maximisation; arms far out count less."""
    values, covariance = _posteriors(A, b, mean, spread)
    p, count = A.shape[1], len(A)
    away = values - mean
    distance = np.einsum("ap,ap->a", away, np.linalg.solve(spread, away.T).T)
    weight = (FREEDOM + p) / (FREEDOM + np.maximum(distance, 0.0))
    weight = np.minimum(weight, 1.0)
    new_mean = weight @ values / weight.sum()
    away = values - new_mean
    wide = np.einsum("a,ap,aq->pq", weight, away, away) / weight.sum()
    wide = wide + np.einsum("a,apq->pq", weight, covariance) / weight.sum()
    shrink = p / (p + 2.0 * count)  # few arms cannot tell many correlations
    wide = (1.0 - shrink) * wide + shrink * np.diag(np.diag(wide))
    floor = 1e-10 * (1.0 + np.abs(new_mean)) ** 2
    return new_mean, wide + np.diag(floor), weight


def _mean_covariance(A: Array, spread: Array, weight: Array) -> Array:
    """Covariance of the mean: from each arm the information its data and the spread together give."""
    p = A.shape[1]
    total = np.zeros((p, p))
    for one, trust in zip(A, weight, strict=True):
        total += trust * np.linalg.solve(np.eye(p) + one @ spread, one)
    return np.asarray(np.linalg.pinv(0.5 * (total + total.T), rcond=1e-12))


def _arm(A: Array, b: Array, mean: Array, mean_covariance: Array, spread: Array, doubt: Array) -> ArmEstimate:
    """One arm's posterior, the mean's own uncertainty included, and how it differs from the rest.

    What its friction curve leaves open, variances `doubt`, makes no arm unusual.
    """
    values, covariance = (one[0] for one in _posteriors(A[None], b[None], mean, spread))
    gain, prior = covariance @ A, np.diag(spread)
    kept = np.eye(len(mean)) - gain  # how the mean's error reaches the arm
    # What the data alone would move: under the model values - mean has the covariance spread - posterior.
    moved = prior - np.diag(covariance) + np.diag(gain @ mean_covariance @ gain.T)
    covariance = covariance + kept @ mean_covariance @ kept.T
    own = np.clip(1.0 - np.diag(covariance) / prior, 0.0, 1.0)
    deviation = np.where(own > 0.05, (values - mean) / np.sqrt(np.maximum(moved, 1e-300) + doubt), 0.0)
    return ArmEstimate(values, covariance, own, deviation, ())


def _doubts(A: Array, spread: Array, scale: Array, weight: Array, arms: Sequence[Information]) -> tuple[Array, Array]:
    """Variances of the mean's values, then of each arm's, from errors of friction curves: of their own, of the type's.

    They shift what an arm's data say, and the mean, which it takes over where its data say little.

    Args:
        A: information of each arm.
        spread: between arms.
        scale: of the parameters.
        weight: of each arm in the mean.
        arms: the same information, not scaled, with the errors; all have those that they share, or none.
    """
    p = len(scale)
    none = np.zeros((p, 0))
    own, shared = (
        [scale[:, None] * (none if one is None else one) for one in some]
        for some in ([one.own for one in arms], [one.shared for one in arms])
    )
    reach = np.linalg.solve(np.eye(p) + A @ spread, np.broadcast_to(np.eye(p), A.shape))
    total = np.einsum("a,apq,aqr->pr", weight, reach, A, optimize=True)
    to_mean = np.linalg.pinv(0.5 * (total + total.T), rcond=1e-12) @ (weight[:, None, None] * reach)
    alone = [part @ one for part, one in zip(to_mean, own, strict=True)]  # what each arm's errors do to the mean
    together = sum((part @ one for part, one in zip(to_mean, shared, strict=True)), np.zeros((p, 1)))
    of_mean = sum((one @ one.T for one in alone), np.zeros((p, p)))
    of_own, of_type = [np.diag(of_mean)], [np.sum(together**2, axis=1)]
    for k, mean in enumerate(alone):
        covariance = spread @ reach[k]
        kept = np.eye(p) - covariance @ A[k]  # how the mean's error reaches the arm
        moved, of_others = covariance @ own[k] + kept @ mean, of_mean - mean @ mean.T
        others = np.maximum(np.sum((kept @ of_others) * kept, axis=1), 0.0)
        of_own.append(np.sum(moved**2, axis=1) + others)
        of_type.append(np.sum((covariance @ shared[k] + kept @ together) ** 2, axis=1))
    return np.array(of_own), np.array(of_type)


def _others(A: Array, b: Array, k: int, mean: Array, spread: Array) -> tuple[Array, Array, Array]:
    """Mean, its covariance and spread of all arms but one, which cannot hide in a spread that it made itself.

    Against n - 1 others, a sound arm's distance follows Student's t with n - 2 degrees of freedom.
    """
    others = np.arange(len(A)) != k
    count = int(others.sum())
    weight = np.ones(count)
    for _ in range(RELEARN):
        before = np.diag(spread)
        mean, spread, weight = _step(A[others], b[others], mean, spread)
        if np.abs(np.diag(spread) / before - 1.0).max() < RELEARNT:
            break
    spread = spread * count / (count - 1.0)  # the maximum of the likelihood is too narrow
    return mean, _mean_covariance(A[others], spread, weight), spread
