"""Learning across arms: what is common to a type, how far its arms differ, and each arm in that light.

Arm a has parameters x_a ~ N(mean, spread), and its data say N(x_a, A_a^-1) about them: an empirical-Bayes model, fitted
by expectation and maximisation. A well excited arm keeps its own values; one that moves little takes over what its
motion does not show, with an interval as wide as the fleet's spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from armid.dynamics.threads import one_blas_thread
from armid.fleet.information import Information
from armid.robot.inertia import Array

LEAST_ARMS = 5  # below, a spread between arms cannot be told
MOST_ARMS = 400  # from which the type is learnt; more add little but time
ITERATIONS, CONVERGED = 400, 1e-6
FREEDOM = 6.0  # of the t distribution that makes single odd arms count less
ODD = 0.01  # chance, over the whole fleet, that a sound arm is called unusual


@dataclass(frozen=True, eq=False)
class ArmEstimate:
    """One arm in the light of the fleet.

    Attributes:
        values, covariance: of the parameters, with the fleet's knowledge.
        own_share: 1 - posterior over prior variance of each parameter: 1 where the arm's own data decided, 0 where the
            fleet did.
        deviation: distance of each parameter from the fleet's mean in standard deviations of spread and error.
        unusual: names of the parameters that make the arm stand out, the worst first.
    """

    values: Array
    covariance: Array
    own_share: Array
    deviation: Array
    unusual: tuple[str, ...]

    @property
    def sigma(self) -> Array:
        """Standard deviations."""
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, eq=False)
class FleetEstimate:
    """What arms of one type share.

    Attributes:
        names: parameters.
        mean: of the type.
        mean_covariance: how well the mean is known.
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


def learn(names: Sequence[str], arms: Mapping[str, Information]) -> FleetEstimate:
    """Fit the hierarchical model.

    Args:
        names: parameters.
        arms: what each arm's data say.
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
        count = len(keys) if told else 0
        found = {
            key: _arm(tuple(names), A[k], b[k], mean, mean_covariance, spread, count) for k, key in enumerate(keys)
        }
    back = np.outer(scale, scale)
    return FleetEstimate(
        tuple(names),
        mean * scale,
        mean_covariance * back,
        spread * back,
        told,
        {
            key: ArmEstimate(one.values * scale, one.covariance * back, one.own_share, one.deviation, one.unusual)
            for key, one in found.items()
        },
    )


def _scale(information: Sequence[Information]) -> Array:
    """Sizes that make parameters comparable: their error if the whole fleet were one arm, times the number of arms."""
    total = np.sum([part.matrix for part in information], axis=0)
    return np.asarray(np.sqrt(len(information) / np.maximum(np.diag(total), 1e-300)))


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


def _arm(
    names: tuple[str, ...], A: Array, b: Array, mean: Array, mean_covariance: Array, spread: Array, arms: int
) -> ArmEstimate:
    """One arm's posterior, the mean's own uncertainty included, and how it differs from the rest."""
    p = len(mean)
    values, covariance = (one[0] for one in _posteriors(A[None], b[None], mean, spread))
    pull = np.linalg.solve(np.eye(p) + spread @ A, np.eye(p))  # how the mean's error reaches the arm
    covariance = covariance + pull @ mean_covariance @ pull.T
    prior = np.diag(spread)
    own = np.clip(1.0 - np.diag(covariance) / prior, 0.0, 1.0)
    # What the data alone would move: under the model values - mean has the covariance spread - posterior.
    moved = np.sqrt(np.maximum(prior - np.diag(covariance) + np.diag(pull @ mean_covariance @ pull.T), 1e-300))
    deviation = np.where(own > 0.05, (values - mean) / moved, 0.0)
    # The spread is known from as many arms only, so that Student's tails count.
    limit = float(student.isf(0.5 * ODD / (p * arms), arms - 1)) if arms else np.inf
    odd = [i for i in np.argsort(-np.abs(deviation)) if abs(deviation[i]) > limit]
    return ArmEstimate(values, covariance, own, deviation, tuple(names[i] for i in odd))
