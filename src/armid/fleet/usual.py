"""What is watched from day to day, and its usual changes, learnt from the whole fleet and robust to faults.

Watched are friction, offsets and load loss of each joint, and mass in the hand; what is usual is the effect of
temperature, and what is left.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from armid.arrays import Array, Mask
from armid.dynamics.parameters import FRICTION
from armid.fleet.hierarchy import FleetEstimate, History, Information
from armid.fleet.recording import payload_map
from armid.torque.friction.law import FrictionLaw, friction_law
from armid.torque.model import TorqueModel

MEDIAN = 0.4549  # of a squared standard normal
OF_MEDIAN = 1.25  # standard error of a median over that of a mean
ROUNDS, SWEEPS = 3, 30
STEEP, UNTOLD = 0.05, 0.9  # largest likely effect [1/°C]; share of it by which one that is not told is unknown
LEAST_WARM = 10  # days from which on the effect of temperature is asked for
DOUBT = 50  # values that the belief in a scatter of 1 is worth
RESOLVED = 0.8  # share of a deviation that the day's own data decide, below which it is not used
LOOSE = 1.0  # prior standard deviation of a day's deviation: this share of the value; or of the arm's scale
WARM = 1.0  # span of temperatures [°C] without which their effect is not asked for
WIDE = 3.0  # the fleet's spread counts this many times wider when an arm's own changes are looked for
PAYLOAD = "payload"
CENTRE = 0.15  # prior standard deviation of a payload's centre about the tool's origin [m]
DIRECTIONS = {"p": " in positive direction", "n": " in negative direction"}
OFFSET = "fo"  # of the description's friction, which no law has


@dataclass(frozen=True, eq=False)
class Watched:
    """One quantity that is followed.

    Attributes:
        name: of the parameter, or ``payload``.
        kind: of a change in it: ``friction``, ``offset``, ``load`` or ``payload``.
        what: words, with the joint.
        joint: index; None for the payload.
        unit: of the quantity.
        relative: whether changes are told as a share of the arm's own value.
        direction: how the arm's parameters change with it, (parameters,).
    """

    name: str
    kind: str
    what: str
    joint: int | None
    unit: str
    relative: bool
    direction: Array


def watched_of(model: TorqueModel) -> tuple[Watched, ...]:
    """All that is watched on this type of arm: each friction coefficient, as its law describes it, and the payload."""
    known = {}  # joint, law, coefficient and direction of each column
    linear = friction_law("coulomb-viscous")
    for one in model.model.parameters:
        if one.kind == FRICTION:
            known[one.name] = one.number, linear, one.name[:2], DIRECTIONS.get(one.name[2:3], "")
    for term in model.terms:
        for name, coefficient in zip(term.names, term.formula.columns, strict=True):
            known[name] = term.joint + 1, term.formula, coefficient, ""
    found = []
    for index, (name, unit) in enumerate(zip(model.names, model.units, strict=True)):
        if name in known:
            joint, law, coefficient, way = known[name]
            kind, words, relative = _described(law, coefficient)
            direction = np.eye(len(model.names))[index]
            found.append(Watched(name, kind, f"{words} of joint {joint}{way}", joint - 1, unit, relative, direction))
    mass = payload_map(model)[:, 0]
    if np.abs(mass).max(initial=0.0) > 1e-9:
        words = "mass in the hand (as if at the tool's origin)"
        found.append(Watched(PAYLOAD, PAYLOAD, words, None, "kg", False, mass))
    return tuple(found)


def _described(law: FrictionLaw, coefficient: str) -> tuple[str, str, bool]:
    """Kind and words of a coefficient, and whether its changes are shares: an even part has no size of its own."""
    if coefficient == OFFSET:
        return "offset", "torque offset", False
    if law.loaded:
        return "load", "load-proportional friction", True
    formula = law.columns[coefficient]
    if formula in ("v", "1") and not law.even:
        return "friction", "viscous friction" if formula == "v" else "Coulomb friction", True
    return "friction", f"{law.name} friction", not law.even


def directions(watched: Sequence[Watched], modes: int = 0) -> Array:
    """How the arm's parameters, and behind them modes of its curve, change with each quantity, (…, watched)."""
    return np.pad(np.array([one.direction for one in watched]).T, ((0, modes), (0, 0)))


def scales(watched: Sequence[Watched], values: Array, mean: Array) -> Array:
    """Sizes of which changes are shares: the arm's own value, not below a fifth of the type's; 1 where absolute."""
    own, usual = (np.abs(directions(watched).T @ one) for one in (values, mean))
    return np.where([one.relative for one in watched], np.maximum(own, 0.2 * usual), 1.0)


def temperatures(watched: Sequence[Watched], felt: Array) -> Array:
    """Temperature that concerns each watched quantity, (days, watched), from that of the joints; NaN for none."""
    concerned = [one.joint if one.kind in ("friction", "load") else None for one in watched]
    columns = [np.full(len(felt), np.nan) if joint is None else felt[:, joint] for joint in concerned]
    return np.array(columns).T.reshape(len(felt), len(watched))


@dataclass(frozen=True, eq=False)
class Deviations:
    """How one arm's days deviate from its own value over all days, all watched quantities at once.

    Attributes:
        values: (days, watched), as a share of the arm's value where that is how it is told; NaN where the day cannot
            tell.
        variance: of those, from the noise.
        warmth: temperature that concerns each, (days, watched) [°C]; NaN where there is none.
        scale: what a deviation of 1 is in the quantity's unit, (watched,).
    """

    values: Array
    variance: Array
    warmth: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Usual:
    """What changes from day to day without anything being wrong.

    Attributes:
        reference: temperature that all values refer to, (watched,) [°C]; NaN without.
        per_degree, per_degree_sigma: relative change with temperature, and how well that is known, (watched,) [1/°C];
            NaN where it is not known.
        day_to_day: standard deviation of what remains, (watched,), relative or in the unit.
    """

    reference: Array
    per_degree: Array
    per_degree_sigma: Array
    day_to_day: Array

    def spread(self, warmth: Array) -> Array:
        """Standard deviation of each day's usual change, the doubt in the effect of temperature included."""
        doubt = self.per_degree_sigma * (warmth - self.reference)
        return np.hypot(self.day_to_day, np.where(np.isfinite(doubt), doubt, 0.0))

    def expected(self, warmth: Array) -> Array:
        """Deviation that temperature explains."""
        effect = np.where(np.isfinite(self.per_degree), self.per_degree, 0.0) * (warmth - self.reference)
        return np.where(np.isfinite(effect), effect, 0.0)


def deviations(
    history: History, watched: Sequence[Watched], values: Array, covariance: Array, scale: Array, first: str = ""
) -> Deviations:
    """δ_d = (D'A_dD)⁻¹ D'(b_d - A_d x̂) of all days, and its variance, the error of x̂ included.

    That error has the day's own noise in it, but for days from the date `first` on, from which x̂ is not estimated.
    """
    D = directions(watched, len(history.found)) * scale
    score = history.vector - history.matrix @ values
    AD = history.matrix @ D
    M = np.einsum("pk,dpl->dkl", D, AD)
    loose = np.array([LOOSE if one.relative else np.inf for one in watched])
    sizes = np.diagonal(M, axis1=1, axis2=2)
    size = np.median(sizes, axis=0)
    size = np.where(size > 0.0, size, sizes.max(axis=0))  # of a joint that rests on most days
    prior = np.diag(np.where(np.isfinite(loose), 1.0 / loose**2, 1e-6 * np.where(size > 0.0, size, 1.0)))
    inverse = np.linalg.inv(M + prior)
    apart = np.array([1.0 if first and day.date >= first else -1.0 for day in history.days])
    middle = M + apart[:, None, None] * np.einsum("dpk,pq,dql->dkl", AD, covariance, AD, optimize=True)
    found = np.einsum("dkl,dl->dk", inverse, score @ D)
    variance = np.einsum("dkl,dlm,dkm->dk", inverse, middle, inverse, optimize=True)
    resolved = np.einsum("dkl,dlk->dk", inverse, M) > RESOLVED
    good = resolved & (variance > 0.0)
    warmth = temperatures(watched, history.temperature)
    return Deviations(np.where(good, found, np.nan), np.where(good, variance, np.nan), warmth, scale)


def own_deviations(
    history: History, watched: Sequence[Watched], usual: Usual, first: FleetEstimate
) -> tuple[Deviations, Information]:
    """How an arm's days deviate from its own value, the effect of temperature taken off; and its prior."""
    known = history.known_curve.total + first.as_prior(WIDE)
    scale = scales(watched, known.solved()[0], first.mean)
    prior = first.as_prior(WIDE, len(history.found))
    _, covariance = (history.total + prior).solved()
    shift = _shift(history, watched, usual, scale)
    level = replace(history, vector=history.vector - np.einsum("dpq,dq->dp", history.matrix, shift))
    values = covariance @ (level.total + prior).vector
    return deviations(level, watched, values, covariance, scale), prior


def learn_usual(arms: Callable[[], Iterable[History]], watched: Sequence[Watched], first: FleetEstimate) -> Usual:
    """Effect of temperature and what changes beside it, from all arms; one is found in the light of the other.

    The effect is a change of torque in proportion to temperature, beside each arm's own parameters and friction curve:
    what these could take for themselves of it is not counted.

    Args:
        arms: gives each arm's history.
        watched: the quantities.
        first: estimate of type and arms.
    """
    reference = _reference([temperatures(watched, one.temperature) for one in arms()])
    none = np.where(np.isfinite(reference), 0.0, np.nan)
    usual, error = Usual(reference, none, none, np.zeros(len(watched))), none
    for _ in range(ROUNDS):
        scores, information, parts = [], [], []
        for history in arms():
            part, prior = own_deviations(history, watched, usual, first)
            score, told = _effect(history, watched, usual, prior, part)
            parts.append(part)
            scores.append(score)
            information.append(told)
        change, error = _slopes(np.array(scores), np.array(information), np.isfinite(reference))
        extra = [
            _extra([part.values[:, k] for part in parts], [part.variance[:, k] for part in parts])
            for k in range(len(watched))
        ]
        usual = replace(usual, per_degree=usual.per_degree + change, day_to_day=np.sqrt(extra))
    return replace(usual, reference=np.where(np.isfinite(usual.per_degree), reference, np.nan), per_degree_sigma=error)


def _reference(warmth: Sequence[Array]) -> Array:
    """Median temperature that concerns each quantity, (watched,); NaN where it hardly changes within arms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a quantity that no temperature concerns
        away = np.concatenate([one - np.nanmean(one, axis=0) for one in warmth])
        span = np.ptp(np.nanpercentile(away, [5.0, 95.0], axis=0), axis=0)
        middle = np.nanmedian(np.concatenate(warmth), axis=0)
    told = (np.isfinite(away).sum(axis=0) >= LEAST_WARM) & (span > WARM)
    return np.where(told, middle, np.nan)


def _effect(
    history: History, watched: Sequence[Watched], usual: Usual, prior: Information, found: Deviations
) -> tuple[Array, Array]:
    """Score and information of further effects per degree, (watched,) and (watched, watched).

    The arm's own parameters and curve are eliminated, since they are estimated from the same days.
    """
    level, _ = as_usual(history, watched, usual, found)
    warmer = found.warmth - usual.reference
    F = np.where(np.isfinite(warmer), warmer, 0.0)  # (days, watched)
    D = directions(watched, len(history.found)) * found.scale
    total = level.total + prior
    AD = level.matrix @ D
    score = level.vector - level.matrix @ np.linalg.solve(total.matrix, total.vector)
    shared = np.einsum("dk,dpk->pk", F, AD)
    own = np.einsum("dk,pk,dpl,dl->kl", F, D, AD, F, optimize=True)
    return np.sum(F * (score @ D), axis=0), own - shared.T @ np.linalg.solve(total.matrix, shared)


def _slopes(scores: Array, information: Array, known: Mask) -> tuple[Array, Array]:
    """Common effects per degree, and their standard errors, from what each arm says; NaN where it is not known.

    Each is the weighted median of the arms' own, given the others: arms that drift with the season do not move it.
    """
    doubt = np.full(len(known), np.inf)
    total = information.sum(axis=0)[known][:, known]
    doubt[known] = np.sqrt(np.diag(np.linalg.inv(total + np.eye(len(total)) / STEEP**2)))
    known = known & (doubt < UNTOLD * STEEP)
    U, V = scores[:, known], information[:, known][:, :, known]
    found, told = np.zeros(U.shape[1]), np.einsum("akk->ak", V)
    for _ in range(SWEEPS):
        for k, weight in enumerate(told.T):
            good = weight > 0.0
            left = (U[:, k] - V[:, k] @ found)[good]
            found[k] += _weighted_median(left / weight[good], weight[good])
    slope, error = (np.full(len(known), np.nan) for _ in range(2))
    slope[known], error[known] = found, OF_MEDIAN * doubt[known]
    return slope, error


def _weighted_median(values: Array, weight: Array) -> float:
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][np.searchsorted(share, 0.5)])


def scatter_of(part: Deviations, usual: Usual) -> float:
    """By how much one arm's days, temperature taken off, scatter more than noise and usual changes say; at least 1.

    Correlation in time cannot be seen in a few rows, and a model that is wrong at low speed is no noise; both show
    here. The median over days and quantities does not feel a single quantity that drifts. Few values count little.
    """
    z = part.values / np.sqrt(part.variance + usual.spread(part.warmth) ** 2)
    z = z[np.isfinite(z)]
    if not len(z):
        return 1.0
    square = (DOUBT + len(z) * float(np.median(z**2)) / MEDIAN) / (DOUBT + len(z))
    return float(np.sqrt(max(1.0, square)))


def _extra(values: Sequence[Array], variances: Sequence[Array]) -> float:
    """Variance beyond the noise that makes the days of the median arm scatter as they should.

    An arm's days deviate from their own mean: the squares of n days are worth n - 1. Arms that have changed move the
    median little. It errs on the side of caution by one standard error: few arms would else promise too much.
    """
    known = [np.isfinite(one) for one in values]
    arms = [(y[ok] ** 2, v[ok]) for y, v, ok in zip(values, variances, known, strict=True) if ok.sum() > 1]
    if not arms:
        return 0.0
    aim = 0.5 - min(0.5 / math.sqrt(len(arms)), 0.25)
    days = np.array([len(square) for square, _ in arms])

    def excess(extra: float) -> float:
        squares = np.array([np.sum(square / (variance + extra)) for square, variance in arms])
        return float(np.median(chi2.cdf(squares * (days - 1) / days, days - 1))) - aim

    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, 1e4 * max(float(square.max()) for square, _ in arms)))


def as_usual(history: History, watched: Sequence[Watched], usual: Usual, found: Deviations) -> tuple[History, Array]:
    """The history at reference temperature, with days that count as little as their usual changes allow.

    A day's own deviation u ~ N(0, T) in the watched directions D is integrated out, which leaves
    A - A D (T⁻¹ + D'AD)⁻¹ D'A; written with the root of T, since T may be zero.

    Returns:
        The history, and what temperature did to parameters and modes on each day, (days, parameters + modes).
    """
    D = directions(watched, len(history.found)) * found.scale
    shift = _shift(history, watched, usual, found.scale)
    vector = history.vector - np.einsum("dpq,dq->dp", history.matrix, shift)
    root = usual.spread(found.warmth)  # (days, watched)
    AD = (history.matrix @ D) * root[:, None, :]
    M = root[:, :, None] * np.einsum("pk,dpl->dkl", D, AD)
    inner = np.linalg.solve(np.eye(len(watched)) + M, np.transpose(AD, (0, 2, 1)))
    matrix = history.matrix - AD @ inner
    vector = vector - np.einsum("dkp,dk->dp", inner, root * (vector @ D))
    matrix = 0.5 * (matrix + np.transpose(matrix, (0, 2, 1)))
    return replace(history, matrix=matrix, vector=vector), shift


def _shift(history: History, watched: Sequence[Watched], usual: Usual, scale: Array) -> Array:
    """What temperature did to parameters and modes on each day, (days, parameters + modes)."""
    expected = usual.expected(temperatures(watched, history.temperature))
    return np.asarray(expected @ (directions(watched, len(history.found)) * scale).T)
