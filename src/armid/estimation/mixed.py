"""Friction as smooth random effects, in one problem with physical consistency (a linear mixed model).

    torque_j(t + delay_j) = W_j beta                        base parameters, linear friction
                          + sign(v) f_j(|v|) + g_j(|v|)     smooth friction, the same and different by direction
                          + l_j sign(v) |rigid torque_j|    Coulomb friction in proportion to the load
                          + a_j weight_j                    torque in proportion to the weight carried, PA-10 (19)
                          + levels of each recording        Coulomb, viscous, offset
                          + lag_j at changes of direction   sides changed late, as by a joint that sticks
                          + noise

What is random has a variance for each kind, shared by all joints and found by REML: kinds that the data do not show
vanish, and all of friction beyond linear goes where held-out folds are predicted clearly better without. Torque in
proportion to the weight stays: the arm without payload looks the same with it and with other masses, a payload's mass
does not. No term is chosen, so that no choice hangs on the last digit and the covariance knows of friction's shape.
Below the slowest speed of the data friction may differ by a share of its level that is stated, not found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag
from scipy.stats import t as student

from armid.arrays import Array, Indices
from armid.estimation.consistent.conditions import Bounds, Unknowns
from armid.estimation.consistent.feasible import (
    ConsistentEstimator,
    check_known,
    consistency_notes,
    shares,
    standard_parameters,
)
from armid.estimation.consistent.log_det import ConsistentEstimate, consistent_estimate
from armid.estimation.consistent.prior import Prior
from armid.estimation.fit import Fit
from armid.estimation.linear import Solution
from armid.estimation.problem import Problem, Rows
from armid.estimation.random_effects import (
    CONVERGED,
    FLAT,
    ROUGHLY,
    Grams,
    VarianceComponents,
    held_out_cost,
    held_out_misfit,
    variance_components,
)
from armid.notes import note
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.smooth import BEND, EVEN, ODD, REST, prior_covariance
from armid.torque.friction.term import FrictionTerm

PASSES = 3  # after the linear one: load, delay, correlation and reversals come from the pass before
DELAY_UNIT, LEAST_DELAY = 0.01, 1e-5  # [s] of the delay's coefficient; below the second, there is none
LEVELS = ("recording-coulomb", "recording-viscous", "recording-offset")
#: Typical standard deviation of each kind: friction in shares of the joint's friction level, delay in its unit.
SIZES = {"smooth": 0.3, "smooth-even": 0.15, "load": 0.1, "gain": 0.1, "delay": 0.5, "lag": 0.5}
SIZES |= dict.fromkeys(LEVELS, 0.2)
REST_SPEED = 0.7  # of the slowest data: from there down friction may do something else
REST_SHARE, REST_DEPARTURES = 0.25, 1.5  # and differ by that of its level at most, by that of its departure above
ENOUGH_ROWS, SPEED_STEPS = 5.0, 100  # rows that make the slowest data; steps in which they are counted
ASSUMED = 0.02  # spread of Coulomb and viscous friction between recordings where there is only one
BELIEVED = 3.0  # observations that this assumption counts for where there are several
FOUND = ("smooth", "smooth-even", "load")  # kinds of friction beyond linear
FOLDS, CLEARLY = 5, 2.0  # of neighbouring rows, by which it is judged; minus twice the log likelihood that tells
TOLD = 0.5  # misfit in held-out parts, in standard deviations of the noise, from which it is told
ALIKE = 0.5  # share of the variance of gains that is common to all joints
VANISHED = 1e-3  # standard deviation of a kind, in its unit, up to which it counts as nothing
USUAL_SPEED = 0.995  # quantile of a joint's speed that counts as its fastest
MOST_LAGS, UNCORRELATED, MOST_CORRELATED = 400, 0.05, 30.0
REVERSAL = (0.05, 0.3, 25.0)  # variance of when friction changes sides [samples^2]: least, at first, most


@dataclass(frozen=True, kw_only=True)
class MixedEffects(ConsistentEstimator):
    """Smooth friction as random effects and a physically consistent arm, in one problem."""

    name: ClassVar[str] = "mixed"
    about: ClassVar[str] = "friction of any smooth form, physically consistent"
    finds_friction: ClassVar[bool] = True

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        problem.factor()  # refuses data without rows
        state = _Pass(problem, self.prior, self.bounds)
        for turn in range(PASSES + 1):
            report_progress(f"friction as random effects, pass {turn + 1}", turn / (PASSES + 1))
            state.estimate(last=turn == PASSES)
            if turn < PASSES:
                state.prepare(first=turn == 0)
        return self._fit(state)

    def _fit(self, state: _Pass) -> Fit:
        found, (problem, places, covariance) = state.found, state.without_what_vanished()
        spread = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
        factor = problem.factor()
        solution = Solution(
            values=np.concatenate([state.mean[places], np.zeros(len(covariance) - len(places))]),
            inverse=covariance,
            singular_values=1.0 / np.sqrt(np.maximum(eigenvalues, 1e-300)),
            directions=vectors.T,
            scale=np.where(np.diag(factor.normal_equations()[0]) > 0.0, 1.0 / spread, 0.0),
            rank=len(covariance),
            squares=np.zeros(problem.robot.n_joints),
            counts=np.array(factor.counts),
        )
        kinds = {name: float(np.sqrt(variance)) for name, variance in state.components.groups.items()}
        assumed = len(problem.data) == 1
        half = float(np.sqrt(0.5)) * ASSUMED  # of Coulomb and of viscous friction: at usual speeds, one as the other
        between = (half, half, 0.0) if assumed else tuple(state.between(kinds.get(name, 0.0)) for name in LEVELS)
        notes = [
            note("estimation.random_effects", shares=kinds),
            note("estimation.recordings", spread=list(between), count=len(problem.data)),
            *consistency_notes(found, state.unknowns, self.prior),
        ]
        large = np.flatnonzero(state.misfit > TOLD * np.sqrt(state.components.noise)).tolist()
        if large:
            off = {problem.robot.joint_names[joint]: float(state.misfit[joint]) for joint in large}
            notes.append(note("estimation.misfit", off=off))
        fit = self.finished(
            problem,
            factor,
            solution,
            1.0 / (state.components.noise * state.correlated),
            covariance=covariance,
            gain_effects=np.vstack(
                [state.gain_effects[places], np.zeros((len(covariance) - len(places), len(state.level)))]
            ),
            notes=notes,
            standard_parameters=standard_parameters(problem.torque_model.model.names, state.unknowns, found),
        )
        level = state.friction if assumed else state.level
        recording = level[:, None] * np.array(between) / np.column_stack([level**0, state.usual, level**0])
        lag = state.lag() if "lag" in kinds and kinds["lag"] > VANISHED else None
        options = {**fit.options, "data_share": shares(found)}
        return replace(fit, friction_lag_s=lag, recording=recording, misfit=state.misfit, options=options)


class _Pass:
    """The state between passes: what the last one found, and what the next one takes from it."""

    components: VarianceComponents
    found: ConsistentEstimate
    mean: Array
    covariance: Array
    gain_effects: Array
    misfit: Array  # in parts of the data that are predicted from the others, beyond what noise and covariance explain

    def __init__(self, problem: Problem, prior: Prior | None, bounds: Bounds | None) -> None:
        self.problem, self.prior, joints = problem, prior, problem.robot.n_joints
        self.unknowns = Unknowns(problem.torque_model.model, (), bounds)
        check_known(self.unknowns)
        speeds = np.vstack([np.abs(dataset.qd[dataset.rows]) for dataset in problem.data])
        self.fastest = np.maximum(np.quantile(speeds, USUAL_SPEED, axis=0), 1e-6)
        self.usual = np.maximum(np.sqrt(np.mean(speeds**2, axis=0)), 1e-6)
        self.friction, self.slowest = np.zeros(joints), self.fastest  # level of linear friction [N m], slowest data
        self.level, self.correlated, self.reversal = np.ones(joints), np.ones(joints), np.full(joints, REVERSAL[1])
        self.slope: Array | None = None  # values whose torque, differentiated, makes the delay's column
        self.search: Array | None = None
        self.recordings = 0  # whose levels are columns

    @property
    def labels(self) -> list[str]:
        """Kind of each column: parameters, coefficients of terms, delays, levels of recordings."""
        tm, joints = self.problem.torque_model, self.problem.robot.n_joints
        kinds = [""] * len(tm.model.base.kept) + [term.law for term in tm.terms for _ in term.names]
        delays = [kind for kind in ("delay", "lag") for _ in range(joints)] if self.slope is not None else []
        return kinds + delays + [kind for _ in range(self.recordings * joints) for kind in LEVELS]

    def estimate(self, *, last: bool) -> None:
        """Variances, then the arm and the random effects: a consistent arm in the first and the last pass.

        Args:
            last: whether to search to the end, and to drop friction beyond linear where held-out data are predicted
                better without.
        """
        labels, change = self._whitening(self.labels)
        folds = self._grams()
        if last and self._linear_is_better(folds, change, labels):
            self.problem = self.problem.with_terms([t for t in self.problem.torque_model.terms if t.law not in FOUND])
            self.slope = self.search = None
            self.estimate(last=True)
            return
        grams = sum(folds[1:], folds[0]).tempered(self.correlated).transformed(change)
        averaged, end = (("gain",), CONVERGED) if last else ((), ROUGHLY)
        self.components = variance_components(grams, labels, SIZES, self.search, averaged, end)
        self.search = self.components.search
        information = np.tensordot(1.0 / self.components.noise, grams.products, axes=1)
        right = (1.0 / self.components.noise) @ grams.right
        for k, kind in enumerate(labels):
            if kind:
                information[k, k] += 1.0 / self.components.groups.get(kind, 1e-12)
        if self.slope is not None and not last:  # torque alone is wanted of this pass
            own = np.diag(information)
            scale = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
            scaled = information * np.outer(scale, scale) + FLAT * np.eye(len(scale))
            self.mean = change @ (scale * np.linalg.solve(scaled, scale * right))
            return
        if last:
            precision = np.array([1.0 / self.components.groups.get(kind, 1e-12) if kind else 0.0 for kind in labels])
            folds = [fold.transformed(change) for fold in folds]
            self.misfit = np.sqrt(held_out_misfit(folds, precision, self.components.noise, self.correlated))
        size = float(np.sqrt(grams.power @ (1.0 / self.components.noise)))
        self._consistent(information, right, labels.count(""), size)
        self.mean = change @ self.mean
        self.gain_effects = change @ self.covariance @ (grams.right.T / self.components.noise)
        self.covariance = change @ (self.covariance + self.components.spread) @ change.T

    def _linear_is_better(self, folds: Sequence[Grams], change: Array, labels: list[str]) -> bool:
        """Whether folds are predicted clearly better from the others without friction beyond linear."""
        beyond = np.array([kind in FOUND for kind in labels])
        if not beyond.any():
            return False
        folds = [fold.tempered(self.correlated).transformed(change) for fold in folds]
        costs = [held_out_cost(folds, labels, SIZES, kept) for kept in (~beyond, np.ones_like(beyond))]
        return costs[0] < costs[1] - CLEARLY

    def _consistent(self, information: Array, right: Array, base: int, size: float) -> None:
        """The arm with random effects marginalised, then these given the arm."""
        outer, cross, inner = information[:base, :base], information[base:, :base], information[base:, base:]
        spread = np.linalg.inv(inner) if len(inner) else inner
        gain = spread @ cross
        reduced = outer - cross.T @ gain
        wanted = right[:base] - gain.T @ right[base:]
        found = consistent_estimate(self.unknowns, 0.5 * (reduced + reduced.T), wanted, size, self.prior)
        own = self.unknowns.matrix @ found.covariance @ self.unknowns.matrix.T
        self.found = found
        self.mean = np.concatenate([found.values, spread @ right[base:] - gain @ found.values])
        self.covariance = np.block([[own, -own @ gain.T], [-gain @ own, spread + gain @ own @ gain.T]])

    def _whitening(self, labels: list[str]) -> tuple[list[str], Array]:
        """Kinds of independent coefficients of unit size, and the matrix from these to the coefficients of the columns.

        Half of the variance of what joints take from the weight is common to all: drives of one arm are alike.
        """
        result = np.eye(len(labels))
        k = labels.count("")
        for term in self.problem.torque_model.terms:
            count = len(term.names)
            if term.law in (ODD.name, EVEN.name):
                root = np.linalg.cholesky(prior_covariance(count) + 1e-9 * np.eye(count))
                result[k : k + count, k : k + count] = self.level[term.joint] * root
            k += count
        gains = np.array([kind == "gain" for kind in labels])
        if gains.any():
            result[gains] *= np.sqrt(1.0 - ALIKE)
            result = np.column_stack([result, np.sqrt(ALIKE) * gains])
            labels = [*labels, "gain"]
        return labels, result

    def without_what_vanished(self) -> tuple[Problem, Indices, Array]:
        """The problem without kinds of terms that the data do not show, the places of its columns, and covariance.

        At its end stands what friction may do below the slowest data: zero, with a spread that is stated; hardly any
        where friction is linear above.
        """
        terms = [t for t in self.problem.torque_model.terms if self._shows(t.law)]
        kinds = self.labels[: len(self.problem.names)]
        places = np.array([k for k, kind in enumerate(kinds) if not kind or self._shows(kind)], dtype=np.int64)
        found = sum(self.components.groups.get(kind, 0.0) for kind in (ODD.name, EVEN.name))
        share = float(np.clip(REST_DEPARTURES * np.sqrt(found), VANISHED, REST_SHARE))
        rubbing = np.flatnonzero(self.friction > 0.0)
        terms += [FrictionTerm(REST.name, int(joint), (REST_SPEED * float(self.slowest[joint]),)) for joint in rubbing]
        spread = np.diag((share * self.friction[rubbing]) ** 2)
        covariance = block_diag(self.covariance[np.ix_(places, places)], spread)
        return self.problem.with_terms(terms), places, covariance

    def lag(self) -> Array:
        """How much later than the motion friction changes sides, per joint [s]."""
        first = len(self.problem.names) + len(self.level)
        return np.asarray(DELAY_UNIT * np.maximum(self.mean[first : first + len(self.level)], 0.0))

    def _shows(self, law: str) -> bool:
        return law not in SIZES or np.sqrt(self.components.groups.get(law, 0.0)) > VANISHED

    def between(self, found: float) -> float:
        """Standard deviation between recordings that makes 95 % intervals hold, from one that few recordings gave."""
        told = len(self.level) * (len(self.problem.data) - 1)
        variance = (told * found**2 + BELIEVED * ASSUMED**2) / (told + BELIEVED)
        return float(np.sqrt(variance) * student.ppf(0.975, told + BELIEVED) / 1.96)

    def _grams(self) -> list[Grams]:
        """Of the rows, in folds of neighbouring ones."""
        problem, joints = self.problem, self.problem.robot.n_joints
        count, labels = len(problem.names), self.labels
        grams = [Grams.zero(joints, len(labels)) for _ in range(FOLDS)]
        first = len(labels) - 3 * joints * self.recordings
        for block in problem.blocks():
            late, lag = self._late(block), self._lag(block)
            levels = self._levels(block) if self.recordings else None
            root = np.sqrt(self._weights(block))
            fold = FOLDS * np.arange(block.which.start, block.which.stop) // len(problem.data[block.dataset])
            for joint, seen in enumerate(problem.torque_model.joint_columns):
                use, places = block.use[:, joint], [seen]
                columns, target = [block.regressor[use, joint][:, seen]], block.torque[use, joint]
                if late is not None:
                    columns += [late[use, joint, None], lag[use, joint, None]]
                    places.append(count + joint + np.array([0, joints]))
                    target = target + late[use, joint] * problem.delay_s[joint] / DELAY_UNIT  # all of it is shrunk
                if levels is not None:
                    columns.append(levels[use, joint])
                    places.append(first + 3 * (block.dataset * joints + joint) + np.arange(3))
                stacked, target = np.hstack(columns) * root[use, joint, None], target * root[use, joint]
                edges = np.searchsorted(fold[use], np.arange(FOLDS + 1))
                for own, (low, high) in zip(grams, pairwise(edges), strict=True):
                    own.add(joint, stacked[low:high], target[low:high], np.concatenate(places))
        return grams

    def _late(self, block: Rows) -> Array | None:
        """Column of each joint's delay, (rows, joints)."""
        if self.slope is None:
            return None
        torque = block.linear_torque(self.slope)
        rate = DELAY_UNIT * self.problem.data[block.dataset].rate_hz
        return block.part.at_rows(-rate * np.gradient(torque, axis=0))

    def _lag(self, block: Rows) -> Array:
        """Column of each joint's late change of sides, (rows, joints): what friction's jump loses by it."""
        rate = DELAY_UNIT * self.problem.data[block.dataset].rate_hz
        return np.asarray(-rate * self._jump(block, signed=True))

    def _levels(self, block: Rows) -> Array:
        """Columns of a recording's own Coulomb, viscous and offset level, (rows, joints, 3)."""
        v = block.motion.qd
        parts = np.stack([np.sign(v), v / self.usual, np.ones_like(v)], axis=-1)
        return block.part.at_rows(self.level[:, None] * parts)

    def _weights(self, block: Rows) -> Array:
        """Weight of each row, (rows, joints), by how well it is known what a change of direction did to its torque."""
        if not self.friction.any():  # none, or not known yet
            return np.ones(block.torque.shape)
        return np.asarray(1.0 / (1.0 + self.reversal * self._jump(block) ** 2 / self.components.noise))

    def _jump(self, block: Rows, *, signed: bool = False) -> Array:
        """Error of a row if friction changed sides one sample later than the motion tells [N m], (rows, joints).

        Filtered, a jump of friction is smeared over the filter's length. Unfiltered, the acceleration that it causes is
        known up to half the sample rate only, and rings as 1 / (pi n) over n samples.
        """
        way, part = np.sign(block.motion.qd), block.part
        turns = np.zeros_like(way)
        turns[1:] = 0.5 * np.diff(way, axis=0)
        if part.kernel is not None:
            jump = 2.0 * self.friction * part.at_rows(turns)
            return np.asarray(jump if signed else np.abs(jump))
        if signed:  # known to a sample: nothing to tell
            return np.zeros(block.torque.shape)
        shares = np.zeros(block.torque.shape)
        for joint, turn in enumerate(turns.T):
            places = np.concatenate([[-np.inf], np.flatnonzero(turn) - 0.5, [np.inf]])
            after = np.searchsorted(places, part.rows)
            shares[:, joint] = 1.0 / (np.pi * np.minimum(part.rows - places[after - 1], places[after] - part.rows))
        return 2.0 * self.friction * shares

    def prepare(self, *, first: bool) -> None:
        """What the next pass takes from this one."""
        problem, count = self.problem, len(self.problem.names)
        model, values = problem.torque_model.model, self.mean[:count]
        base = len(model.base.kept)
        loads = dict(zip(model.base.kept, values[:base].tolist(), strict=True))
        if first:
            self.friction = self._friction_level(values)
            self.level = np.maximum(self.friction, np.sqrt(self.components.noise))
            self.problem = problem.with_terms((*problem.torque_model.terms, *self._terms()), load_values=loads)
            self.recordings = len(problem.data) if len(problem.data) > 1 else 0
            self.search = None
            values = np.concatenate([values, np.zeros(len(self.problem.names) - count)])
        else:
            delay = problem.delay_s
            if self.slope is not None:
                delay = DELAY_UNIT * self.mean[count : count + problem.robot.n_joints]
                delay = np.where(delay > LEAST_DELAY, delay, 0.0)  # torque is reported late, never early
            self.problem = problem.with_terms(problem.torque_model.terms, delay_s=delay)
            self._look_at_residuals(values)
            self.problem = self.problem.with_terms(problem.torque_model.terms, load_values=loads)
        if all(d.measured is not None or d.kernel is None for d in problem.data):
            filtered = all(dataset.kernel is not None for dataset in problem.data)
            # Unfiltered, sign(v) has no slope; a filter gives it one, and reversals show delays best.
            smooth = [filtered or not name.startswith("fc") for name in model.base.kept]
            self.slope = np.zeros(len(values))
            self.slope[:base] = np.where(smooth, values[:base], 0.0)
            if filtered:
                self.slope[base:] = values[base:]

    def _terms(self) -> list[FrictionTerm]:
        """The random effects of friction, for all joints."""
        known = self.problem.torque_model.known
        laws = [(ODD.name, True), (EVEN.name, True), ("load", False)]
        if known is None or known.load_loss is None:  # which is a gain of the weight that is known
            laws.append(("gain", False))
        return [
            FrictionTerm(law, joint, (BEND * float(self.fastest[joint]),) if shaped else ())
            for law, shaped in laws
            for joint in np.flatnonzero(~self.problem.silent).tolist()
        ]

    def _friction_level(self, values: Array) -> Array:
        """Root mean square of each joint's linear friction [N m]."""
        problem = self.problem
        kinds = {parameter.name: parameter.kind for parameter in problem.torque_model.model.parameters}
        is_friction = [kinds.get(name) == "friction" for name in problem.names]
        friction = np.where(is_friction, values, 0.0)
        total, rows = np.zeros(problem.robot.n_joints), np.zeros(problem.robot.n_joints)
        for block in problem.blocks():
            torque = block.part.at_rows(block.linear_torque(friction))
            total += np.sum(np.where(block.use, torque, 0.0) ** 2, axis=0)
            rows += block.use.sum(axis=0)
        return np.asarray(np.sqrt(total / np.maximum(rows, 1.0)))

    def _look_at_residuals(self, values: Array) -> None:
        """How far the rows are correlated, how well the moments of reversals are known, and the slowest data."""
        series: dict[int, list[Array]] = {}
        steps = np.geomspace(1e-3, 1.0, SPEED_STEPS)
        rows = np.zeros((len(steps) + 1, len(self.level)))
        noise, excess, power = self.components.noise, np.zeros(len(self.level)), np.zeros(len(self.level))
        for block in self.problem.blocks():
            residuals, weights = block.residuals(values), np.where(block.use, self._weights(block), 0.0)
            if "lag" in self.labels:
                first = len(self.problem.names) + len(self.level)
                residuals = residuals - self._lag(block) * self.mean[first : first + len(self.level)]
            series.setdefault(block.dataset, []).append(residuals * np.sqrt(weights))
            place = np.searchsorted(steps, np.abs(block.velocity) / self.fastest)
            for joint in range(len(self.level)):
                rows[:, joint] += np.bincount(place[:, joint], weights[:, joint], minlength=len(rows))
            square = np.where(block.use, self._jump(block) ** 2, 0.0)
            excess += np.sum(square * (residuals**2 - noise), axis=0)
            power += np.sum(square**2, axis=0)
        found = np.where(power > 0.0, excess / np.maximum(power, 1e-300), REVERSAL[1])
        self.reversal = np.clip(found, REVERSAL[0], REVERSAL[2])
        self.correlated = _correlation([np.concatenate(parts) for parts in series.values()])
        enough = np.cumsum(rows / self.correlated, axis=0) >= ENOUGH_ROWS
        self.slowest = self.fastest * np.append(steps, 1.0)[np.argmax(enough, axis=0)]


def _correlation(series: Sequence[Array]) -> Array:
    """How many rows of each joint tell as much as one: 1 + 2 sum(autocorrelation), up to where that is lost."""
    result = np.ones(series[0].shape[1])
    for joint in range(len(result)):
        columns = [part[:, joint] for part in series]
        power = sum(float(e @ e) for e in columns)
        for lag in range(1, MOST_LAGS):
            share = sum(float(e[lag:] @ e[:-lag]) for e in columns) / max(power, 1e-300)
            if share < UNCORRELATED:
                break
            result[joint] += 2.0 * share
    return np.minimum(result, MOST_CORRELATED)
