"""How often a fleet without any change would raise an alarm, learnt from the fleet's own scores, before any is raised.

Most arms have not changed, so that the bulk of all scores shows what they are without a change, Efron's empirical null:
normal, or with the tails of Student's t where those are heavier, with a scale for each quantity and one number of
degrees of freedom. Model errors widen the scale and make tails heavy; few values leave room for heavy tails. Both widen
what counts as one standard deviation of a score, or end the promise. Arms that have changed make tails heavy, too;
those that stand out are set aside first, a tenth of the fleet beside the extreme ones at most, by a forward search
(Atkinson and Riani 2000). Changes that one day decides are judged by their own tails, which are heavier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from armid.arrays import Array, Mask
from armid.notes import Note

ANCHOR, TAIL = 1.1503, 0.25  # scores beyond the first, in units of their scale, are that share of all
FARTHEST = 10.0  # an arm that has a larger score, in units of its scale, does not show the null
ASIDE = 0.1  # largest share of the other arms that are set aside
BEYOND = 0.01  # scores expected beyond the limit from which on arms are set aside, in the whole fleet
ROUNDS = 20
INVERSE = np.linspace(0.005, 0.495, 50)  # 1 / degrees of freedom
USUAL_INVERSE = 0.05  # mean of their prior
SURE = 0.9  # probability that tails are no heavier than is assumed
INSTEAD = (2e-3, 5e-3, 1e-2, 2e-2)  # rates that may be promised in the place of one that cannot
FEW = 100.0  # independent scores without which nothing is promised
WIDEST = 3.0  # times that a score may scatter more than it should, in the median quantity, before nothing is promised
RESERVE = 0.5  # share of the promised false alarms that changes may take; the rest is for odd days and unusual arms
MISFIT = 3.0, 10.0  # times the noise that residuals may be before a day is said not to fit: on any fleet, at most
MOST = 0.05  # largest chance of a false alarm for one arm, however long it is watched


@dataclass(frozen=True, eq=False)
class Null:
    """Scores of an arm that has not changed.

    Attributes:
        scale: of each quantity.
        freedom: degrees of freedom of the tails, at the cautious end of what the scores allow.
        values: independent scores that tell so.
    """

    scale: Array
    freedom: float
    values: float

    def spread(self, chance: float, least: float = 1.0) -> Array:
        """What counts as one standard deviation of each quantity's score where a given chance of an excess is meant.

        Args:
            chance: of a score of either sign, to be compared with `limit`.
            least: of a score as it should be; 0 for one whose size is not known beforehand.
        """
        return np.asarray(np.maximum(least, self.scale * max(self.reach(chance) / limit(chance), 1.0)))

    def reach(self, chance: float) -> float:
        """Size that a score of either sign, in units of its scale, exceeds with a given chance."""
        return float(student.isf(0.5 * chance, self.freedom) * ANCHOR / student.isf(0.5 * TAIL, self.freedom))


def limit(chance: float) -> float:
    """Size that a standard normal score of either sign exceeds with a given chance."""
    return float(norm.isf(0.5 * chance))


def null_of(scores: Sequence[Array], independent: Sequence[float]) -> Null:
    """The null that all arms' scores show.

    Args:
        scores: of each arm, (candidates, quantities); 0 where there is none.
        independent: of each arm, how many of its candidates are worth an independent score.
    """
    pooled, lengths = np.abs(np.concatenate(scores)), [len(one) for one in scores]
    told = pooled > 0.0
    worth = np.repeat(np.array(independent) / np.maximum(lengths, 1), lengths)
    count = float(sum(worth[column].sum() for column in told.T))
    high = [np.quantile(v[ok], 1.0 - TAIL) if ok.any() else 0.0 for v, ok in zip(pooled.T, told.T, strict=True)]
    scale = np.maximum(np.array(high) / ANCHOR, 1e-9)
    z = pooled / scale
    ends = np.cumsum([0, *lengths])
    peak = np.array([z[first:last].max(initial=0.0) for first, last in pairwise(ends)])
    least = cut = max(2.0 * ANCHOR, float(np.quantile([0.0, *peak[peak < FARTHEST]], 1.0 - ASIDE)))
    for _ in range(ROUNDS):
        shown = told & (z > ANCHOR) & np.repeat(peak <= cut, lengths)[:, None]
        null = Null(scale, _freedom(z[shown], (worth[:, None] * told)[shown], cut), count)
        wider = float(np.clip(null.reach(min(BEYOND / max(count, 1.0), TAIL)), least, FARTHEST))
        if wider <= cut:
            break
        cut = wider
    return null


def nulls_of(scores: Sequence[Array], independent: Sequence[int], single: Sequence[Mask]) -> tuple[Null, Null]:
    """Nulls of courses that many days make, and of those that one day decides: means over days have lighter tails.

    Where there are few scores of either, all of them together stand for it.

    Args:
        scores: of each arm, (candidates, quantities); 0 where there is none.
        independent: of each arm, how many of its candidates are worth an independent score.
        single: of each arm, which of its candidates are of the second kind, (candidates,).
    """
    whole, found = null_of(scores, independent), []
    for kind in (False, True):
        parts = [one[own == kind] for one, own in zip(scores, single, strict=True)]
        worth = [
            count * len(part) / max(len(one), 1) for count, part, one in zip(independent, parts, scores, strict=True)
        ]
        own = null_of(parts, worth) if sum(map(len, parts)) else whole
        found.append(own if own.values >= FEW else whole)
    return found[0], found[1]


def _freedom(z: Array, weight: Array, cut: float) -> float:
    """Degrees of freedom of scores between anchor and a cut, at the cautious end of their posterior.

    Where all scores of an arm beyond the cut leave with the arm, those that stay are as if none could lie there.
    """
    edges = np.linspace(ANCHOR, cut, 41)
    counts, _ = np.histogram(z, edges, weights=weight)
    stretch = [student.isf(0.5 * TAIL, 1.0 / g) / ANCHOR for g in INVERSE]
    inside = np.array([-np.diff(student.sf(edges * s, 1.0 / g)) for g, s in zip(INVERSE, stretch, strict=True)])
    inside = inside / inside.sum(axis=1, keepdims=True)
    log_density = np.log(np.maximum(inside, 1e-300)) @ counts - INVERSE / USUAL_INVERSE
    mass = np.cumsum(np.exp(log_density - log_density.max()))
    return float(1.0 / INVERSE[min(int(np.searchsorted(mass, SURE * mass[-1])), len(INVERSE) - 1)])


def most_misfit(times: Sequence[Array], chance: float) -> Array:
    """How many times its noise a joint's residuals may be on a day, (joints,), so that a sound day rarely exceeds it.

    Args:
        times: what they are, (days, joints) of each arm; 0 where it is not known.
        chance: that a sound day exceeds a limit.
    """
    sizes = np.concatenate(times)
    middle = np.array([np.median(np.log(one[one > 0.0])) if one.any() else 0.0 for one in sizes.T])
    far = [np.where(one > 0.0, np.log(np.where(one > 0.0, one, 1.0)) - middle, 0.0) for one in times]
    sound = [one for one in far if np.all(np.median(one, axis=0) < np.log(MISFIT[0]))] or far  # not unfit as a whole
    null = null_of(sound, [len(one) for one in sound])
    return np.asarray(np.clip(np.exp(middle + null.reach(chance) * null.scale), *MISFIT))


class Promise(msgspec.Struct, frozen=True):
    """What is promised about false alarms, and whether it can be kept on this fleet.

    Attributes:
        asked: false alarms per arm and day that were asked for.
        holds: whether that can be kept; if not, no change is reported.
        code: why, or why not; one of `armid.fleet.words`.
        instead: rate that could be kept where the one that was asked for cannot; None where none can.
        threshold: score above which a change of the longest history is reported; None where none is.
        freedom: degrees of freedom of the scores' tails; the smaller, the heavier.
        scores: independent ones that tell so.
        needed: of those.
        spread: by how much errors count more than noise and usual changes explain, in the median quantity.
    """

    asked: float
    holds: bool
    code: str
    instead: float | None = None
    threshold: float | None = None
    freedom: float | None = None
    scores: int = 0
    needed: int = int(FEW)
    spread: float = 1.0

    @property
    def sentence(self) -> str:
        """For people."""
        return str(Note(f"fleet.{self.code}", msgspec.structs.asdict(self)))


def chance_of(rate: float, days: int, tests: int) -> float:
    """Chance of a false alarm in one test of one arm, of as many as it takes over so many days."""
    return min(RESERVE * rate * days, MOST) / max(tests, 1)


def promise_of(null: Null, rate: float, days: int, tests: int) -> Promise:
    """Whether a rate of false alarms can be promised.

    Args:
        null: of the fleet.
        rate: false alarms per arm and day that were asked for.
        days: longest history.
        tests: of one arm over that time: quantities times candidates.
    """
    scores, freedom = round(null.values), round(null.freedom, 1)
    if days < 2 or null.values < FEW:
        return Promise(rate, False, "too-few-scores", freedom=freedom, scores=scores)
    wide = {one: float(np.median(null.spread(chance_of(one, days, tests)))) for one in (rate, *INSTEAD)}
    about: dict[str, Any] = {"freedom": freedom, "scores": scores, "spread": round(wide[rate], 3)}
    if wide[rate] <= WIDEST:
        threshold = round(limit(chance_of(rate, days, tests)), 3)
        return Promise(rate, True, "promised", threshold=threshold, **about)
    could = next((one for one in INSTEAD if one > rate and wide[one] <= WIDEST), None)
    return Promise(rate, False, "heavy-tails", could, **about)
