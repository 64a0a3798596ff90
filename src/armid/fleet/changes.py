"""Change detection: did something about an arm begin to differ, when, by how much, and how sure is that.

An arm's parameters are x before a change and x + g f(d) D after it, D the direction of a watched quantity and f a step
or a ramp that begins on a day: generalised likelihood ratios of all quantities, shapes and first days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from armid.arrays import Array, Indices, Mask
from armid.fleet.day import ArmDay
from armid.fleet.hierarchy import History, Information
from armid.fleet.type_model import root_of
from armid.fleet.usual import CENTRE, PAYLOAD, Watched, directions

ROUNDS = 3  # changes that are looked for in one arm
SWEEPS = 4  # over those found so far, when one more is known
ONSETS = 60  # first days that are tried; more of a long history lie closer together than they could be told apart
RECENT = 14  # of those, the last days, each of which is tried
NEARLY = 0.7  # share of the surest quantity's score from which on another of its joint may be what changed
ALONE = 0.45  # share of a course's variation that one day may have before it alone decides
VISIBLE = 0.02  # share of a change's information that is left when the arm's own parameters are unknown
BACK = 0.5  # share of a step that may be left when the next day takes it back
LEAST_DAYS = 4  # on which residuals at reversals are known


@dataclass(frozen=True, eq=False)
class CarriedMass:
    """What a step of the mass in the hand is; all negative if something was put down.

    Attributes:
        mass, sigma: and its standard deviation [kg].
        moment: first moments in the tool frame [kg m].
    """

    mass: float
    sigma: float
    moment: Array

    def weighed(self, gain: float, doubt: float) -> CarriedMass:
        """The same with a mass that drives take for heavier by a share, which has a standard deviation."""
        less = 1.0 / (1.0 + gain)
        error = float(np.hypot(self.sigma * less, self.mass * less**2 * doubt))
        return replace(self, mass=self.mass * less, sigma=error, moment=self.moment * less)


@dataclass(frozen=True, eq=False)
class Change:
    """One change of one arm.

    Attributes:
        watched: index of the quantity.
        shape: ``step`` or ``ramp``.
        onset: index of the first day, among the arm's days.
        size, sigma: of a step, or per day of a ramp: relative, or in the unit.
        score: size over sigma.
        days: that a ramp has risen; 1 for a step.
        since: date of the first day.
        carried: the payload, if the mass in the hand stepped.
        in_unit: whether the size is in the unit, although those of the quantity are shares: of what is not known.
    """

    watched: int
    shape: str
    onset: int
    size: float
    sigma: float
    score: float
    days: float = 1.0
    since: str = ""
    carried: CarriedMass | None = None
    in_unit: bool = False


@dataclass(frozen=True, eq=False)
class Shapes:
    """Candidates for the course of a change over an arm's days.

    Attributes:
        courses: (candidates, days).
        names: ``step`` or ``ramp``.
        onsets: index of the first day of each.
    """

    courses: Array
    names: tuple[str, ...]
    onsets: tuple[int, ...]

    @property
    def single(self) -> Mask:
        """Which of them one day decides, (candidates,): more than `ALONE` of what makes the course is on it."""
        away = self.courses - self.courses.mean(axis=1, keepdims=True)
        share = (away**2).max(axis=1, initial=0.0) / np.maximum((away**2).sum(axis=1), 1e-300)
        return np.asarray(share > ALONE)


def shapes_of(dates: tuple[str, ...], *, ramps: bool = True) -> Shapes:
    """Steps and ramps from each day but the first; a ramp has the value 1 on its first day and grows by 1 a day."""
    days = np.array([date.fromisoformat(one).toordinal() for one in dates], dtype=float)
    count = len(days)
    onsets = np.arange(1, count)
    if len(onsets) > ONSETS:
        early = np.linspace(1, count - RECENT - 1, ONSETS - RECENT).round().astype(int)
        onsets = np.unique(np.concatenate([early, np.arange(count - RECENT, count)]))
    made: list[tuple[Array, str, int]] = []
    for onset in onsets.tolist():
        after = np.arange(count) >= onset
        made.append((after.astype(float), "step", onset))
        if ramps and after.sum() >= 2:  # on one day a ramp is a step
            made.append((np.where(after, days - days[onset] + 1.0, 0.0), "ramp", onset))
    courses, names, first = zip(*made, strict=True) if made else ((), (), ())
    return Shapes(np.array(courses).reshape(len(names), count), names, first)


@dataclass(frozen=True, eq=False)
class Scan:
    """Scores of all candidates.

    Attributes:
        score: (candidates, watched); 0 where a candidate cannot be seen.
        size, sigma: (candidates, watched), in the scale of the deviations.
    """

    score: Array
    size: Array
    sigma: Array


class ArmChanges:
    """The search in one arm's history.

    Args:
        history: at reference temperature, usual changes integrated out.
        watched: the quantities.
        scale: what a deviation of 1 is, (watched,).
        prior: precision and values of a wide prior, for what the arm's data leave open, of parameters and modes.
        payload: (parameters, 10) what a payload adds, for the part of it that is no mass.
        shift: what temperature did to parameters and modes on each day, (days, parameters + modes).
        ramps: whether ramps are looked for, too.
    """

    def __init__(
        self,
        history: History,
        watched: tuple[Watched, ...],
        scale: Array,
        prior: Information,
        payload: Array,
        shift: Array,
        *,
        ramps: bool = True,
    ) -> None:
        self.history, self.watched, self.scale, self.shift = history, watched, scale, shift
        modes = len(history.found)
        self._payload = np.pad(payload, ((0, modes), (0, 0)))
        self._D = directions(watched, modes) * scale
        self._AD = history.matrix @ self._D
        self._seen = np.einsum("pk,dpk->dk", self._D, self._AD)
        self._prior = prior
        self.shapes = shapes_of(tuple(day.date for day in history.days), ramps=ramps)
        self.changes: list[Change] = []
        self._parts: list[list[tuple[Array, Array]]] = []  # of each change: courses (days,), directions (parameters,)

    def scan(self) -> Scan:
        """Scores of all candidates, changes found so far taken as unknown parts of the arm."""
        if not self.shapes.names:
            return Scan(*(np.zeros((0, len(self.watched))) for _ in range(3)))
        J, right, extra = self._normal()
        score = self.history.vector - np.einsum("dpq,dq->dp", self.history.matrix, self._daily(J, right, extra))
        F = self.shapes.courses
        U = F @ (score @ self._D)
        V0 = F**2 @ self._seen
        shared = np.einsum(
            "cd,dqk->cqk", F, np.concatenate([self._AD, np.swapaxes(extra, 1, 2) @ self._AD], axis=1), optimize=True
        )
        V = V0 - np.einsum("cqk,cqk->ck", shared, np.linalg.solve(J, shared))
        seen = VISIBLE * np.maximum(V0, 1e-300) < V
        safe = np.where(seen, V, 1.0)
        return Scan(np.where(seen, U / np.sqrt(safe), 0.0), U / safe, 1.0 / np.sqrt(safe))

    def fitted(self, *, changed: bool = True) -> Array:
        """The arm's parameters on each day, (days, parameters), with or without the changes found so far."""
        return self._daily(*self._normal(None if changed else []))

    def _daily(self, J: Array, right: Array, extra: Array) -> Array:
        """The solution on each day, (days, parameters)."""
        found = np.linalg.solve(J, right)
        p = extra.shape[1]
        return np.asarray(found[:p] + extra @ found[p:])

    def _normal(self, changes: list[tuple[Array, Array]] | None = None) -> tuple[Array, Array, Array]:
        """Information matrix and vector of arm and changes (those so far); how changes enter, (days, p, changes)."""
        A, b = self.history.matrix, self.history.vector
        chosen = [one for part in self._parts for one in part] if changes is None else changes
        extra = np.zeros((*b.shape, len(chosen)))
        for i, (course, direction) in enumerate(chosen):
            extra[:, :, i] = np.outer(course, direction)
        seen = A @ extra
        J = np.block(
            [
                [A.sum(axis=0) + self._prior.matrix, seen.sum(axis=0)],
                [seen.sum(axis=0).T, np.einsum("dpi,dpj->ij", extra, seen)],
            ]
        )
        right = np.concatenate([b.sum(axis=0) + self._prior.vector, np.einsum("dpi,dp->i", extra, b)])
        scale = np.sqrt(np.maximum(np.diag(J), 1e-300))
        J[np.arange(len(J)), np.arange(len(J))] += 1e-12 * scale**2
        return J, right, extra

    def search(self, threshold: float, spread: Array, least: Array, rounds: int = ROUNDS) -> None:
        """Find changes one after the other: the quantity of the surest, and of its courses the likeliest.

        With each that is found those before are looked at again: two steps of a load may have looked like a ramp.

        Args:
            threshold: score above which a change is told.
            spread: by which scores of each quantity scatter more than they should, (watched,) or
                (candidates, watched), at least 1.
            least: sizes below which a change is not worth telling, (watched,), over all days of the change.
            rounds: most changes to look for.
        """
        spread = np.broadcast_to(spread, (len(self.shapes.names), len(self.watched)))
        for _ in range(rounds):
            if not self._add(len(self.changes), threshold, spread, least):
                return
            self._settle(threshold, spread, least)

    def _settle(self, threshold: float, spread: Array, least: Array) -> None:
        """Look at each change again beside the others, until none is another; those no longer sure are dropped."""
        for _ in range(SWEEPS if len(self.changes) > 1 else 0):
            before = [(one.watched, one.shape, one.onset) for one in self.changes]
            for k in reversed(range(len(before))):
                del self._parts[k], self.changes[k]
                self._add(k, threshold, spread, least)
            if [(one.watched, one.shape, one.onset) for one in self.changes] == before:
                return

    def _add(self, place: int, threshold: float, spread: Array, least: Array) -> bool:
        """Find the change that is surest beside those known, and note it in that place; False if there is none."""
        found = self.scan()
        score = self._worth_telling(found, spread, least)
        if not score.size or score.max() <= threshold:
            return False
        c, k = self._likeliest(score, threshold, found, spread)
        course, directions = self.shapes.courses[c], [self._D[:, k]]
        if self.watched[k].name == PAYLOAD:  # its centre and inertia are unknown too
            directions = [column for column in self._payload.T if np.abs(column).max() > 1e-12]
        self._parts.insert(place, [(course, one) for one in directions])
        self.changes.insert(place, self._change(c, k, found, spread))
        return True

    def _worth_telling(self, found: Scan, spread: Array, least: Array) -> Array:
        """Scores over what they scatter; 0 where the change is too small, (candidates, watched)."""
        total = np.abs(found.size) * np.maximum(self.shapes.courses.max(axis=1, initial=0.0), 1.0)[:, None]
        return np.where(total >= least, np.abs(found.score) / spread, 0.0)

    def _likeliest(self, score: Array, threshold: float, found: Scan, spread: Array) -> tuple[int, int]:
        """Course and quantity of the surest; where others of its joint are nearly as sure, the one that explains most.

        Which day a change began on is another question than whether there is one: of all courses of a quantity of which
        one is sure it is the likeliest, also where scores of courses that one day decides scatter too much to be sure.

        Viscous and Coulomb friction look alike on slow and short motion: what a wrong one leaves shows in the other,
        or, where that can hardly be seen beside it, in how much less it explains by itself.
        """
        course = np.argmax(np.where(score > 0.0, np.abs(found.score), 0.0), axis=0)
        surest = score.max(axis=0)
        first = int(np.argmax(surest))
        near = np.flatnonzero(surest > max(threshold, NEARLY * surest[first]))
        near = near[[self.watched[k].joint == self.watched[first].joint for k in near]]
        if len(near) == 1:
            return int(course[first]), first
        alone = np.abs(found.score[course[near], near])
        wide = spread[course[near], near].max()
        left = np.sqrt(alone.max() ** 2 - alone**2) / wide
        for place, k in enumerate(near):
            self._parts.append([(self.shapes.courses[course[k]], self._D[:, k])])
            left[place] = max(left[place], (np.abs(self.scan().score) / spread)[:, near].max())
            self._parts.pop()
        chosen = int(near[np.argmin(left)])
        return int(course[chosen]), chosen

    def _change(self, c: int, k: int, found: Scan, spread: Array) -> Change:
        """What is known of a change of a course and quantity."""
        shape, onset, days = self.shapes.names[c], self.shapes.onsets[c], float(self.shapes.courses[c].max())
        score = float(abs(found.score[c, k]) / spread[c, k])
        return Change(k, shape, onset, float(found.size[c, k]), float(found.sigma[c, k] * spread[c, k]), score, days)

    @property
    def brief(self) -> list[int]:
        """Days on which alone something other than a load was another one, indices."""
        steps = [one for one in self.changes if one.shape == "step" and self.watched[one.watched].name != PAYLOAD]
        return [
            one.onset
            for one in steps
            for back in steps
            if (back.watched, back.onset) == (one.watched, one.onset + 1)
            and abs(one.size + back.size) < BACK * abs(one.size)
        ]

    @property
    def _own(self) -> Indices:
        """Places of the modes of the arm's friction curve among the unknowns."""
        every = len(self._D)
        return np.arange(every - len(self.history.found), every)

    @property
    def curve(self) -> Array:
        """How much of each mode makes the arm's friction curve: what its changes did is not the curve's, (modes,)."""
        J, right, _ = self._normal()
        return np.asarray(np.linalg.solve(J, right)[self._own])

    def healthy(self) -> Information:
        """What the history says about the arm before its changes, whatever those are, and errors of its curve."""
        J, right, _ = self._normal()
        own, every = self._own, len(self._D)
        curve, covariance = np.linalg.solve(J, right)[own], _inverse(J)[np.ix_(own, own)]
        of_type = covariance @ self.history.prior_error
        J[:every, :every] -= self._prior.matrix
        right[:every] -= self._prior.vector
        rest = np.delete(np.arange(len(J)), own)
        between, p = J[np.ix_(rest, own)], every - len(own)
        errors = between @ root_of(covariance), between @ of_type
        columns = np.column_stack([right[rest] - between @ curve, *errors])
        J = J[np.ix_(rest, rest)]
        size = np.sqrt(np.diag(J)[p:])
        H, G = J[p:, p:] / np.outer(size, size) + 1e-9 * np.eye(len(size)), J[:p, p:] / size
        columns = columns[:p] - G @ np.linalg.solve(H, columns[p:] / size[:, None])
        matrix = J[:p, :p] - G @ np.linalg.solve(H, G.T)
        return Information(matrix, columns[:, 0], columns[:, 1 : 1 + len(own)], columns[:, 1 + len(own) :])

    def payloads(self) -> dict[int, CarriedMass]:
        """Masses of all payload steps, by their place in `changes`, fitted together.

        Taken alone, a payload that is put down again would be taken for part of the arm on the days after it.
        """
        places = [k for k, one in enumerate(self.changes) if self._carries(one)]
        if not places:
            return {}
        courses = [(np.arange(len(self.history.days)) >= self.changes[k].onset).astype(float) for k in places]
        sizes = [abs(self.changes[k].size) for k in places]
        if len(places) > 1:  # each was found before it was known of those after it
            sizes = [abs(one.mass) for one in self._masses(courses, [max(sizes)] * len(sizes))]
        return dict(zip(places, self._masses(courses, sizes), strict=True))

    def _carries(self, change: Change) -> bool:
        return self.watched[change.watched].name == PAYLOAD and change.shape == "step"

    def _masses(self, courses: list[Array], sizes: list[float]) -> list[CarriedMass]:
        """Payloads of given courses, about that large [kg], with centres that are free within some decimetres.

        The arm's other changes are unknown beside them.
        """
        others = [part for part, change in zip(self._parts, self.changes, strict=True) if not self._carries(change)]
        beside = [one for part in others for one in part]
        p = self._D.shape[0] + len(beside)
        loads = [(course, column) for course in courses for column in self._payload[:, :4].T]
        J, right, _ = self._normal([*beside, *loads])
        centre = [1.0 / (CENTRE * max(size, 1e-6)) ** 2 for size in sizes]
        J[p:, p:] += np.diag([precision for one in centre for precision in (0.0, one, one, one)])
        inverse = _inverse(J)
        found = (inverse @ right)[p:].reshape(-1, 4)
        sigma = np.sqrt(np.maximum(np.diag(inverse)[p::4], 0.0))
        return [CarriedMass(float(row[0]), float(error), row[1:]) for row, error in zip(found, sigma, strict=True)]


def _inverse(matrix: Array) -> Array:
    """Inverse of an information matrix, whose unknowns have sizes of their own."""
    scale = 1.0 / np.sqrt(np.diag(matrix))
    return np.asarray(np.linalg.inv(matrix * np.outer(scale, scale)) * np.outer(scale, scale))


def reversal_search(days: Sequence[ArmDay]) -> ArmChanges:
    """The search for joints whose residuals at reversals have grown, in steps of the logarithm of `ArmDay.reversal`.

    Its error is not known beforehand: scores are to be compared with those of other arms.
    """
    ratio = np.array([day.reversal for day in days], dtype=float)
    known = (ratio > 0.0) & ((ratio > 0.0).sum(axis=0) >= LEAST_DAYS)
    (count, n), values = known.shape, np.log(np.where(known, ratio, 1.0))
    history = History("", tuple(days), known[:, :, None] * np.eye(n), values, np.ones(n), np.ones(n))
    joints = tuple(Watched(f"reversal{j + 1}", "reversal", "", j, "1", True, row) for j, row in enumerate(np.eye(n)))
    loose = Information(1e-9 * np.eye(n), np.zeros(n))
    return ArmChanges(history, joints, np.ones(n), loose, np.zeros((n, 10)), np.zeros((count, n)), ramps=False)
