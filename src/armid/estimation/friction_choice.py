"""Choosing the friction of each joint from ordinary logs: from simple to rich, by what held-out data say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import ClassVar

import numpy as np

from armid.arrays import Array
from armid.estimation.covariance import residuals_of
from armid.estimation.cross_validation import Candidate, CrossValidation, Delay
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.least_squares import WeightedLeastSquares
from armid.estimation.problem import Problem
from armid.notes import Note, note
from armid.progress import progress_part, report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.added import ADDED
from armid.torque.friction.term import FrictionTerm

STRIBECK_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # speeds vs tried, as shares of the joint's own speed
PRICE = 1.5  # held-out log-likelihood [nats] that each further coefficient has to bring
LEAST = 0.005  # share of the joint's held-out error that each further coefficient has to take away
TOO_POOR = 5000.0  # column-scaled condition number above which folds of the data tell nothing about each other
SLIGHT = 0.02  # share of a joint's friction that may be implausible: a part that is zero gets some sign
LONGEST_DELAY_S = 0.05
ROUNDS = 3  # of load torques and delays from the fit so far
SWEEPS = 3  # over the joints, at most


@dataclass(frozen=True, kw_only=True)
class FrictionSearch(Estimator):
    """Finds for each joint the friction terms and the torque delay that its data support, then fits all together.

    Candidates are, per joint: sub-linear viscous friction, Stribeck friction, viscous friction that differs by
    direction, Coulomb friction in proportion to the load, all their combinations, and a delay of the torque. For each
    joint in turn the combination is sought that predicts held-out folds of consecutive rows best, where each
    coefficient has to bring 1.5 nats of likelihood (correlated rows count once) and half a percent of the error, and
    friction must take energy from the slowest speed of the data on and have no negative viscous part, but for two
    percent of its torque; taken is the smallest one whose lag behind the best is within one standard error over the
    folds. What fails as friction also rules out what adds to it a term of no use of its own. The load torque comes from
    the fit so far; this is repeated.

    Attributes:
        estimator: what fits the chosen model; its terms and delays are replaced.
        kinds: which kinds of terms may be chosen.
        delays: whether delays may be chosen.
        dissipative: pass over what would drive a joint at some speed; not needed where the parameters are made possible
            afterwards, which keeps friction from that.
    """

    name: ClassVar[str] = "auto-friction"

    estimator: Estimator = field(default_factory=WeightedLeastSquares)
    kinds: tuple[str, ...] = tuple(ADDED)
    delays: bool = True
    dissipative: bool = True

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        fit = self.estimator.fit(robot, data)
        if fit.identifiability.condition > TOO_POOR:
            return fit.with_notes(note("estimation.friction_too_poor"))
        chosen: list[Candidate] = []
        delay_s = np.zeros(robot.n_joints)
        reasons: list[Note] = []
        for number in range(ROUNDS):
            terms = tuple(c for c in chosen if isinstance(c, FrictionTerm))
            problem = replace(self.estimator, terms=terms, delay_s=tuple(delay_s)).problem(robot, data)
            problem = problem.with_terms(terms, load_values=fit.load_values or _values(fit))
            with progress_part(number / ROUNDS, (number + 0.9) / ROUNDS):
                chosen, coefficients, reasons = self._chosen(problem, fit)
            moved = np.zeros(robot.n_joints)
            for candidate in chosen:
                if isinstance(candidate, Delay):
                    moved[candidate.joint] = coefficients[candidate]
            delay_s = np.clip(delay_s + moved, -LONGEST_DELAY_S, LONGEST_DELAY_S)
            fit = self._refit(robot, data, fit, chosen, delay_s)
        said = reasons or [note("estimation.friction_described")]
        if np.any(delay_s):
            said = [note("estimation.delay", delay_s=delay_s.tolist()), *said]
        return replace(fit, notes=(*fit.notes, *said))

    def _refit(
        self, robot: Robot, data: Dataset | Sequence[Dataset], fit: Fit, chosen: Sequence[Candidate], delay_s: Array
    ) -> Fit:
        terms = tuple(c for c in chosen if isinstance(c, FrictionTerm))
        loaded = any(term.loaded for term in terms)
        values = _values(fit)
        for _ in range(3 if loaded else 1):
            estimator = replace(
                self.estimator, terms=terms, delay_s=tuple(delay_s), load_values=values if loaded else None
            )
            fit = estimator.fit(robot, data)
            values = _values(fit)
        return fit

    def _chosen(self, problem: Problem, fit: Fit) -> tuple[list[Candidate], dict[Candidate, float], list[Note]]:
        """Search anew, since loads and delays have changed."""
        candidates = self._candidates(problem)
        folds = CrossValidation(problem, candidates, _values(fit))
        look = residuals_of(problem, fit.values)
        effective = 1.0 / (1.0 + 2.0 * float(np.maximum(look.autocorrelation[1 : look.lag + 1], 0.0).sum()))
        weights = 1.0 / np.maximum(look.rms, 1e-12) ** 2
        # Torque of all joints comes through the same electronics, so that their delays are judged together.
        delays: list[Candidate] = [c for c in candidates if isinstance(c, Delay)]
        gains = folds.scores(delays, weights).gains(folds.scores([], weights), effective)
        if gains.sum() - PRICE * len(delays) <= standard_error(gains):
            delays = []
        per_joint: list[tuple[Candidate, ...]] = [()] * problem.robot.n_joints
        for sweep in range(SWEEPS):
            before = list(per_joint)
            for joint, name in enumerate(problem.robot.joint_names):
                report_progress(f"choosing the friction of {name}", (sweep + joint / problem.robot.n_joints) / SWEEPS)
                others = [*delays, *(c for j, own in enumerate(per_joint) if j != joint for c in own)]
                combinations = self._combinations(candidates, joint)
                per_joint[joint] = _best(folds, joint, others, combinations, weights, effective, self.dissipative)
            weights = 1.0 / folds.fitted([*delays, *(c for own in per_joint for c in own)], weights)[1]
            if per_joint == before:
                break
        chosen = [*delays, *(c for own in per_joint for c in own)]
        reasons = _reasons(problem.robot, folds, chosen, per_joint, weights)
        return chosen, folds.fitted(chosen, weights)[0], reasons

    def _combinations(self, candidates: Sequence[Candidate], joint: int) -> list[tuple[Candidate, ...]]:
        """All sets of a joint's terms with at most one of each kind, the smaller first."""
        own = [c for c in candidates if isinstance(c, FrictionTerm) and c.joint == joint]
        choices = [[None, *(c for c in own if c.law == kind)] for kind in self.kinds]
        sets = [tuple(c for c in combination if c is not None) for combination in product(*choices)]
        return sorted(sets, key=len)

    def _candidates(self, problem: Problem) -> list[Candidate]:
        speed = np.max([np.quantile(np.abs(d.qd), 0.99, axis=0) for d in problem.data], axis=0)
        result: list[Candidate] = []
        for joint in range(problem.robot.n_joints):
            for kind in self.kinds:
                if ADDED[kind].shapes:
                    constants = [share * float(speed[joint]) for share in STRIBECK_SHARES]
                    result += [FrictionTerm(kind, joint, (constant,)) for constant in constants]
                else:
                    result.append(FrictionTerm(kind, joint))
            if self.delays:
                result.append(Delay(joint))
        return result


def _values(fit: Fit) -> dict[str, float]:
    return dict(zip(fit.columns, (float(v) for v in fit.values), strict=True))


def _best(
    folds: CrossValidation,
    joint: int,
    others: Sequence[Candidate],
    combinations: Sequence[tuple[Candidate, ...]],
    weights: Array,
    effective: float,
    dissipative: bool,
) -> tuple[Candidate, ...]:
    """The smallest combination that folds cannot tell from the one with the largest held-out likelihood.

    That is the rule of one standard error: if the best one's lead, less the price of its coefficients, is no larger
    than its standard error over the folds, the smaller one is taken. What is not plausible as friction is passed over,
    and so is what only adds to it a term that folds see no use in.
    """
    own = list(dict.fromkeys(c for combination in combinations for c in combination))
    plain, *scores = folds.compare(others, own, combinations, weights)
    gains = {combinations[0]: np.zeros(len(plain.squares))}
    for combination, found in zip(combinations[1:], scores, strict=True):
        if found.rms[joint] <= (1.0 - LEAST * len(combination)) * plain.rms[joint]:
            gains[combination] = found.gains(plain, effective)

    def net(combination: tuple[Candidate, ...]) -> float:
        return float(gains[combination].sum()) - PRICE * len(combination)

    def is_near(one: tuple[Candidate, ...], better: tuple[Candidate, ...]) -> bool:
        return net(better) - net(one) <= standard_error(gains[better] - gains[one])

    @cache
    def is_plausible(combination: tuple[Candidate, ...]) -> bool:
        chosen = [*others, *combination]
        return not combination or folds.implausibility(chosen, joint, weights, dissipative=dissipative) <= SLIGHT

    def is_allowed(combination: tuple[Candidate, ...]) -> bool:
        smaller = (c for c in gains if set(c) < set(combination))
        return is_plausible(combination) and not any(not is_plausible(c) and is_near(c, combination) for c in smaller)

    best = next(c for c in sorted(gains, key=net, reverse=True) if is_allowed(c))
    return next(c for c in sorted(gains, key=lambda c: (len(c), -net(c))) if is_near(c, best) and is_allowed(c))


def standard_error(parts: Array) -> float:
    """Standard error of the sum of parts that are independent of each other."""
    return float(np.sqrt(len(parts)) * np.std(parts, ddof=1))


def _reasons(
    robot: Robot,
    folds: CrossValidation,
    chosen: Sequence[Candidate],
    per_joint: Sequence[tuple[Candidate, ...]],
    weights: Array,
) -> list[Note]:
    """For each joint with more than plain friction: what, and by how much held-out data are predicted better."""
    reasons = []
    full = folds.scores(chosen, weights).rms
    for joint, own in enumerate(per_joint):
        if own:
            without = folds.scores([c for c in chosen if c not in own], weights).rms
            what = "; ".join(c.formula.title for c in own if isinstance(c, FrictionTerm))
            errors = {"before": float(without[joint]), "after": float(full[joint])}
            name = robot.joint_names[joint]
            reasons.append(note("estimation.friction_chosen", joint=name, what=what, **errors))
    return reasons
