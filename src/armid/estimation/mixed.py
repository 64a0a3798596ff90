"""Friction as smooth random effects, in one problem with physical consistency (a linear mixed model).

    torque_j(t + delay_j) = W_j beta                        base parameters, linear friction
                          + sign(v) f_j(|v|) + g_j(|v|)     smooth friction, the same and different by direction
                          + l_j sign(v) |rigid torque_j|    Coulomb friction in proportion to the load
                          + a_j weight_j                    torque in proportion to the weight carried, PA-10 (19)
                          + noise

What is random has a variance for each kind, shared by all joints and found by REML: kinds that the data do not show
vanish. Nothing is chosen, so that no choice hangs on the last digit and the covariance knows of friction's shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armid.arrays import Array, Indices
from armid.estimation.consistent.conditions import Unknowns
from armid.estimation.consistent.log_det import ConsistentEstimate, consistent_estimate
from armid.estimation.estimator import Estimator
from armid.estimation.fit import Fit
from armid.estimation.linear import Solution
from armid.estimation.problem import Problem
from armid.estimation.random_effects import Grams, VarianceComponents, variance_components
from armid.notes import note
from armid.progress import report_progress
from armid.robot.robot import Robot
from armid.signals.dataset import Dataset
from armid.torque.friction.smooth import BEND, EVEN, ODD, prior_covariance
from armid.torque.friction.term import FrictionTerm

PASSES = 4  # after the linear one: load, delay and correlation of the residuals come from the pass before
DELAY_UNIT, LEAST_DELAY = 0.01, 1e-5  # [s] of the delay's coefficient; below the second, there is none
#: Typical standard deviation of each kind: friction in shares of the joint's friction level, delay in its unit.
SIZES = {"smooth": 0.3, "smooth-even": 0.15, "load": 0.1, "gain": 0.1, "delay": 0.5}
VANISHED = 1e-3  # standard deviation of a kind, in its unit, up to which it counts as nothing
USUAL_SPEED = 0.995  # quantile of a joint's speed that counts as its fastest
MOST_LAGS, UNCORRELATED, MOST_CORRELATED = 400, 0.05, 30.0


@dataclass(frozen=True, kw_only=True)
class MixedEffects(Estimator):
    """Smooth friction as random effects and a physically consistent arm, in one problem."""

    name: ClassVar[str] = "mixed"
    about: ClassVar[str] = "friction of any smooth form, physically consistent"
    friction: ClassVar[str] = "linear"
    finds_friction: ClassVar[bool] = True

    def fit(self, robot: Robot, data: Dataset | Sequence[Dataset]) -> Fit:
        """Estimate."""
        problem = self.problem(robot, data)
        problem.factor()  # refuses data without rows
        state = _Pass(problem)
        for turn in range(PASSES + 1):
            report_progress(f"friction as random effects, pass {turn + 1}", turn / (PASSES + 1))
            state.estimate()
            if turn < PASSES:
                state.prepare(first=turn == 0)
        return self._fit(state)

    def _fit(self, state: _Pass) -> Fit:
        found, (problem, places) = state.found, state.without_what_vanished()
        count = len(problem.names)
        covariance = state.covariance[np.ix_(places, places)]
        spread = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
        eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(spread, spread))
        factor = problem.factor()
        values = state.mean[places]
        solution = Solution(
            values=values,
            inverse=covariance,
            singular_values=1.0 / np.sqrt(np.maximum(eigenvalues, 1e-300)),
            directions=vectors.T,
            scale=1.0 / spread,
            rank=count,
            squares=np.zeros(problem.robot.n_joints),
            counts=np.array(factor.counts),
        )
        known = problem.torque_model.model.known
        given = dict(zip(found.names, found.x.tolist(), strict=True))
        standard = {name: given.get(name, known.get(name, 0.0)) for name in problem.torque_model.model.names}
        shares = {name: float(np.sqrt(variance)) for name, variance in state.components.groups.items()}
        notes = [
            note("estimation.random_effects", shares=shares),
            note("estimation.regularised", strength=found.strength, mass_factor=found.mass_factor),
        ]
        weights = 1.0 / (state.components.noise * state.correlated)
        return self.finished(
            problem, factor, solution, weights, covariance=covariance, notes=notes, standard_parameters=standard
        )


class _Pass:
    """The state between passes: what the last one found, and what the next one takes from it."""

    components: VarianceComponents
    found: ConsistentEstimate
    mean: Array
    covariance: Array

    def __init__(self, problem: Problem) -> None:
        self.problem, joints = problem, problem.robot.n_joints
        speeds = np.vstack([np.abs(dataset.qd[dataset.rows]) for dataset in problem.data])
        self.fastest = np.maximum(np.quantile(speeds, USUAL_SPEED, axis=0), 1e-6)
        self.level, self.correlated = np.ones(joints), np.ones(joints)
        self.slope: Array | None = None  # values whose torque, differentiated, makes the delay's column
        self.search: Array | None = None

    @property
    def labels(self) -> list[str]:
        """Kind of each column: parameters, coefficients of terms, delays."""
        tm = self.problem.torque_model
        kinds = [""] * len(tm.model.base.kept) + [term.law for term in tm.terms for _ in term.names]
        return kinds + (["delay"] * self.problem.robot.n_joints if self.slope is not None else [])

    def estimate(self) -> None:
        """Variances, then the consistent arm and the random effects."""
        grams, labels = self._grams().tempered(self.correlated), self.labels
        change = self._whitening(labels)
        grams = grams.transformed(change)
        self.components = variance_components(grams, labels, SIZES, self.search)
        self.search = self.components.search
        information = np.tensordot(1.0 / self.components.noise, grams.products, axes=1)
        right = (1.0 / self.components.noise) @ grams.right
        for k, kind in enumerate(labels):
            if kind:
                information[k, k] += 1.0 / self.components.groups.get(kind, 1e-12)
        self._consistent(
            information, right, labels.count(""), float(np.sqrt(grams.power @ (1.0 / self.components.noise)))
        )
        self.mean = change @ self.mean
        self.covariance = change @ self.covariance @ change.T

    def _consistent(self, information: Array, right: Array, base: int, size: float) -> None:
        """The arm with random effects marginalised, then these given the arm."""
        outer, cross, inner = information[:base, :base], information[base:, :base], information[base:, base:]
        spread = np.linalg.inv(inner) if len(inner) else inner
        gain = spread @ cross
        reduced = outer - cross.T @ gain
        unknowns = Unknowns(self.problem.torque_model.model)
        found = consistent_estimate(unknowns, 0.5 * (reduced + reduced.T), right[:base] - gain.T @ right[base:], size)
        own = unknowns.matrix @ found.covariance @ unknowns.matrix.T
        self.found = found
        self.mean = np.concatenate([found.values, spread @ right[base:] - gain @ found.values])
        self.covariance = np.block([[own, -own @ gain.T], [-gain @ own, spread + gain @ own @ gain.T]])

    def _whitening(self, labels: list[str]) -> Array:
        """Matrix from independent coefficients of unit size to those of the columns."""
        result = np.eye(len(labels))
        root, k = np.linalg.cholesky(prior_covariance() + 1e-9 * np.eye(len(ODD.columns))), labels.count("")
        for term in self.problem.torque_model.terms:
            count = len(term.names)
            if term.law in (ODD.name, EVEN.name):
                result[k : k + count, k : k + count] = self.level[term.joint] * root
            k += count
        return result

    def without_what_vanished(self) -> tuple[Problem, Indices]:
        """The problem without kinds of terms that the data do not show, and the places of its columns."""
        terms = [t for t in self.problem.torque_model.terms if self._shows(t.law)]
        kinds = self.labels[: len(self.problem.names)]
        places = np.array([k for k, kind in enumerate(kinds) if not kind or self._shows(kind)], dtype=np.int64)
        return self.problem.with_terms(terms), places

    def _shows(self, law: str) -> bool:
        return law not in SIZES or np.sqrt(self.components.groups.get(law, 0.0)) > VANISHED

    def _grams(self) -> Grams:
        problem, joints = self.problem, self.problem.robot.n_joints
        count = len(problem.names)
        grams = Grams.zero(joints, len(self.labels))
        for block in problem.blocks():
            late = None
            if self.slope is not None:
                torque = problem.torque_model.linear_torque(block.motion, self.slope)
                rate = DELAY_UNIT * problem.data[block.dataset].rate_hz
                late = block.part.at_rows(-rate * np.gradient(torque, axis=0))
            for joint, seen in enumerate(problem.torque_model.joint_columns):
                use = block.use[:, joint]
                columns, target = np.zeros((int(use.sum()), len(self.labels))), block.torque[use, joint]
                columns[:, seen] = block.regressor[use, joint][:, seen]
                if late is not None:
                    columns[:, count + joint] = late[use, joint]
                    target = target + late[use, joint] * problem.delay_s[joint] / DELAY_UNIT  # all of it is shrunk
                grams.add(joint, columns, target)
        return grams

    def prepare(self, *, first: bool) -> None:
        """What the next pass takes from this one."""
        problem, count = self.problem, len(self.problem.names)
        model, values = problem.torque_model.model, self.mean[:count]
        base = len(model.base.kept)
        loads = dict(zip(model.base.kept, values[:base].tolist(), strict=True))
        if first:
            self.level = np.maximum(self._friction_level(values), np.sqrt(self.components.noise))
            laws = [(ODD.name, True), (EVEN.name, True), ("load", False), ("gain", False)]
            terms = [
                FrictionTerm(law, joint, (BEND * float(self.fastest[joint]),) if shaped else ())
                for law, shaped in laws
                for joint in range(problem.robot.n_joints)
            ]
            self.problem = problem.with_terms((*problem.torque_model.terms, *terms), load_values=loads)
            self.search = None
            values = np.concatenate([values, np.zeros(len(self.problem.names) - count)])
        else:
            self.correlated = self._correlation(values)
            delay = problem.delay_s
            if self.slope is not None:
                delay = DELAY_UNIT * self.mean[count:]
                delay = np.where(delay > LEAST_DELAY, delay, 0.0)  # torque is reported late, never early
            self.problem = problem.with_terms(problem.torque_model.terms, load_values=loads, delay_s=delay)
        if all(d.measured is not None or d.kernel is None for d in problem.data):
            filtered = all(dataset.kernel is not None for dataset in problem.data)
            # Unfiltered, sign(v) has no slope; a filter gives it one, and reversals show delays best.
            smooth = [filtered or not name.startswith("fc") for name in model.base.kept]
            self.slope = np.zeros(len(values))
            self.slope[:base] = np.where(smooth, values[:base], 0.0)
            if filtered:
                self.slope[base:] = values[base:]

    def _friction_level(self, values: Array) -> Array:
        """Root mean square of each joint's linear friction [N m]."""
        problem = self.problem
        kinds = {parameter.name: parameter.kind for parameter in problem.torque_model.model.parameters}
        is_friction = [kinds.get(name) == "friction" for name in problem.names]
        friction = np.where(is_friction, values, 0.0)
        total, rows = np.zeros(problem.robot.n_joints), np.zeros(problem.robot.n_joints)
        for block in problem.blocks():
            torque = block.part.at_rows(problem.torque_model.linear_torque(block.motion, friction))
            total += np.sum(np.where(block.use, torque, 0.0) ** 2, axis=0)
            rows += block.use.sum(axis=0)
        return np.asarray(np.sqrt(total / np.maximum(rows, 1.0)))

    def _correlation(self, values: Array) -> Array:
        """How many rows of each joint tell as much as one: 1 + 2 sum(autocorrelation), up to where that is lost."""
        residuals: dict[int, list[Array]] = {}
        for block in self.problem.blocks():
            residuals.setdefault(block.dataset, []).append(block.residuals(values))
        series = [np.concatenate(parts) for parts in residuals.values()]
        result = np.ones(self.problem.robot.n_joints)
        for joint in range(len(result)):
            columns = [part[:, joint] for part in series]
            power = sum(float(e @ e) for e in columns)
            for lag in range(1, MOST_LAGS):
                share = sum(float(e[lag:] @ e[:-lag]) for e in columns) / max(power, 1e-300)
                if share < UNCORRELATED:
                    break
                result[joint] += 2.0 * share
        return np.minimum(result, MOST_CORRELATED)
