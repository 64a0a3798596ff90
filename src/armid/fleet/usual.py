"""What is watched from day to day, and its usual changes, learnt from the whole fleet and robust to faults.

Watched are friction, offsets and load loss of each joint, and mass in the hand; what is usual is the effect of
temperature, and what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from armid.arrays import Array
from armid.dynamics.parameters import FRICTION
from armid.fleet.hierarchy import History
from armid.fleet.recording import payload_map
from armid.torque.friction.law import FrictionLaw, friction_law
from armid.torque.model import TorqueModel

MEDIAN = 0.4549  # of a squared standard normal
CUT, CUT_SIGMA = 1.5, 0.8  # standardised deviations beyond this count as this; then their squares scatter so much
OF_MEDIAN = 1.25  # standard error of a median over that of a mean
ROUNDS = 6
DOUBT = 50  # values that the belief in a scatter of 1 is worth
RESOLVED = 0.8  # share of a deviation that the day's own data decide, below which it is not used
LOOSE = 1.0  # prior standard deviation of a day's deviation: this share of the value; or of the arm's scale
WARM = 3.0  # span of temperatures [°C] without which their effect is not asked for
PAYLOAD = "payload"
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


def directions(watched: Sequence[Watched]) -> Array:
    """How the arm's parameters change with each watched quantity, (parameters, watched)."""
    return np.array([one.direction for one in watched]).T


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
    history: History, watched: Sequence[Watched], values: Array, covariance: Array, mean: Array, first: str = ""
) -> Deviations:
    """δ_d = (D'A_dD)⁻¹ D'(b_d - A_d x̂) of all days, and its variance, the error of x̂ included.

    That error has the day's own noise in it, but for days from the date `first` on, from which x̂ is not estimated.
    """
    scale = scales(watched, values, mean)
    D = directions(watched) * scale
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
    felt = np.array([day.temperature for day in history.days])
    good = resolved & (variance > 0.0)
    return Deviations(
        np.where(good, found, np.nan), np.where(good, variance, np.nan), temperatures(watched, felt), scale
    )


def learn_usual(parts: Sequence[Deviations], watched: Sequence[Watched]) -> Usual:
    """Effect of temperature and what changes beside it, from all arms."""
    values, variance, warmth = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("values", "variance", "warmth")
    )
    arm = np.concatenate([np.full(len(part.values), index) for index, part in enumerate(parts)])
    count = len(watched)
    reference, slope, error = (np.full(count, np.nan) for _ in range(3))
    extra = np.zeros(count)
    for k in range(count):
        known = np.isfinite(values[:, k])
        if known.sum() < 3:
            continue
        y, v, T, who = values[known, k], variance[known, k], warmth[known, k], arm[known]
        warm = np.isfinite(T)
        if warm.sum() >= 10 and np.ptp(np.percentile(T[warm], [5.0, 95.0])) > WARM:
            reference[k] = float(np.median(T[warm]))
            slope[k], error[k], extra[k] = _slope(y[warm], v[warm], T[warm], who[warm])
        else:
            extra[k] = _extra(y, v)
    return Usual(reference, slope, error, np.sqrt(extra))


def scatter_of(part: Deviations, usual: Usual) -> float:
    """By how much one arm's days scatter more than its noise and usual changes say; at least 1.

    Correlation in time cannot be seen in a few rows, and a model that is wrong at low speed is no noise; both show
    here. The median over days and quantities does not feel a single quantity that drifts. Few values count little.
    """
    z = (part.values - usual.expected(part.warmth)) / np.sqrt(part.variance + usual.spread(part.warmth) ** 2)
    z = z[np.isfinite(z)]
    if not len(z):
        return 1.0
    square = (DOUBT + len(z) * float(np.median(z**2)) / MEDIAN) / (DOUBT + len(z))
    return float(np.sqrt(max(1.0, square)))


def _slope(y: Array, v: Array, T: Array, who: Array) -> tuple[float, float, float]:
    """Common slope over temperature within arms, its standard error, and variance beyond the noise.

    The slope is the weighted median of the arms' own: arms that drift with the season do not move it.
    """
    slope, error, extra = 0.0, 0.0, _extra(y, v)
    for _ in range(ROUNDS):
        weight = 1.0 / (v + extra)
        t, level = T - _mean_by(T, who, weight), y - _mean_by(y, who, weight)
        size = int(who.max()) + 1
        told = np.asarray(np.bincount(who, weight * t**2, size), dtype=float)
        own = np.bincount(who, weight * t * level, size) / np.maximum(told, 1e-300)
        slope = _weighted_median(own[told > 0.0], told[told > 0.0])
        error = OF_MEDIAN / float(np.sqrt(told.sum()))
        extra = _extra(level - slope * t, v)
    return slope, error, extra


def _weighted_median(values: Array, weight: Array) -> float:
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][np.searchsorted(share, 0.5)])


def _mean_by(values: Array, who: Array, weight: Array) -> Array:
    """Weighted mean of each arm, at each of its days."""
    size = int(who.max()) + 1
    total, count = np.bincount(who, weight * values, size), np.bincount(who, weight, size)
    return np.asarray((total / np.maximum(count, 1e-300))[who])


def _extra(y: Array, v: Array) -> float:
    """Variance beyond the noise: it makes the mean of the standardised squares, cut at a limit, what it should be.

    It errs on the side of caution by one standard error: few days would else promise too much.
    """
    tail = float(norm.sf(CUT))
    usual = 1.0 - 2.0 * tail - 2.0 * CUT * float(norm.pdf(CUT)) + 2.0 * CUT**2 * tail

    caution = CUT_SIGMA / np.sqrt(len(y))

    def excess(extra: float) -> float:
        result: float = float(np.mean(np.minimum(y**2 / (v + extra), CUT**2))) - usual + caution
        return result

    if excess(0.0) <= 0.0:
        return 0.0
    return float(brentq(excess, 0.0, 100.0 * float(np.mean(y**2)) + 1e-300))


def as_usual(history: History, watched: Sequence[Watched], usual: Usual, found: Deviations) -> tuple[History, Array]:
    """The history at reference temperature, with days that count as little as their usual changes allow.

    A day's own deviation u ~ N(0, T) in the watched directions D is integrated out, which leaves
    A - A D (T⁻¹ + D'AD)⁻¹ D'A; written with the root of T, since T may be zero.

    Returns:
        The history, and what temperature did to the parameters on each day, (days, parameters).
    """
    D = directions(watched) * found.scale
    shift = usual.expected(found.warmth) @ D.T  # (days, parameters)
    vector = history.vector - np.einsum("dpq,dq->dp", history.matrix, shift)
    root = usual.spread(found.warmth)  # (days, watched)
    AD = (history.matrix @ D) * root[:, None, :]
    M = root[:, :, None] * np.einsum("pk,dpl->dkl", D, AD)
    inner = np.linalg.solve(np.eye(len(watched)) + M, np.transpose(AD, (0, 2, 1)))
    matrix = history.matrix - AD @ inner
    vector = vector - np.einsum("dkp,dk->dp", inner, root * (vector @ D))
    matrix = 0.5 * (matrix + np.transpose(matrix, (0, 2, 1)))
    return replace(history, matrix=matrix, vector=vector), shift
