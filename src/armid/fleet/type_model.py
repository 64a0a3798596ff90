"""The torque model of a type of arm: what its arms have in common before any of them is estimated.

The model is that of `armid identify`: base parameters, and friction of any smooth form as random effects. The type has
a friction curve beyond viscous and Coulomb friction; an arm's own curve differs from it by a share of its size, and by
a share of the Coulomb friction between the directions, where the type's own difference is a mean over arms and says
nothing about one of them. That is a prior, which stands beside the data as a few more rows. What is followed from day
to day is what comes before: viscous and Coulomb friction (and offset) there are those that come closest to all of the
friction, curve included, on the recordings that the type was learnt from. Taken beside the curve they would be any
numbers where a curve can look like them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import block_diag

from armid.arrays import Array, Indices
from armid.dynamics.factor import CompactFactor, triangle
from armid.dynamics.parameters import FRICTION
from armid.estimation.fit import Fit
from armid.estimation.linear import residual_squares, solve
from armid.estimation.mixed import SIZES
from armid.robot.robot import Robot
from armid.torque.friction.smooth import BELLS, EVEN, ODD, REST, prior_covariance
from armid.torque.friction.term import GAIN, FrictionTerm
from armid.torque.model import TorqueModel, model_of

SMOOTH = (ODD.name, EVEN.name, REST.name)  # terms of a friction curve that depend on the speed alone
CURVES = (*SMOOTH, GAIN.name)  # terms that make the curve
DIFFERS = 0.3  # standard deviation of an arm's curve from the type's, as a share of its size
EXPLAINED = 0.25  # squared residual over squared torque: 1 if they have nothing in common, 4 if a sign is wrong
LEAST_SIZE = 1e-3  # of a curve [N m]
RANK = 1e-9
NARROWEST = 0.05  # times `DIFFERS` that curves differ at least
FAR = 3.0  # standard deviations of its sum of squares from which on an arm's curve counts no more
WIDENINGS, WIDENED = 100, 5e-3  # rounds, and relative change at which they end
TOLD = 0.1  # of a prior's precision that data add to what they say of a curve, below which it is left out


@dataclass(frozen=True, eq=False)
class TypeModel:
    """What arms of one type have in common before any of them is estimated.

    Attributes:
        robot: description of the type.
        terms: friction terms beyond the description's; those of the curve come last.
        load_values: base parameters that make the load of load terms; None without such terms.
        delay_s: by which torque lags motion, per joint.
        curve: coefficients of the terms that make the curve, the last columns.
        values: of all columns; None where they are not known.
        widths: how much arms' curves differ from the type's, over what `DIFFERS` says, per term of the curve.
        linear: linear friction that comes closest to each term of the curve, (columns before the curve, curve); None
            without a fit of the type.
        error: root of the covariance of the curve's coefficients, (curve, errors); None where they are exact.
        factor, weights: of the recordings that the type was learnt from; None where there are none.
    """

    robot: Robot
    terms: tuple[FrictionTerm, ...]
    load_values: dict[str, float] | None
    delay_s: Array
    curve: Array
    values: Array | None = None
    widths: tuple[float, ...] | None = None
    linear: Array | None = None
    error: Array | None = None
    factor: CompactFactor | None = None
    weights: Array | None = None

    @classmethod
    def of(cls, robot: Robot, fit: Fit | None) -> TypeModel:
        """The type that a fit describes; without one, with the description's friction alone."""
        if fit is None:
            return cls(robot, (), None, np.zeros(robot.n_joints), np.zeros(0))
        values = dict(zip(fit.columns, fit.values.tolist(), strict=True))
        terms = sorted(fit.terms, key=lambda term: term.law in CURVES)
        curve = [values[name] for term in terms if term.law in CURVES for name in term.names]
        load = None if fit.load_values is None else dict(fit.load_values)
        made = cls(robot, tuple(terms), load, fit.delay_s, np.array(curve))
        known = np.array([values[name] for name in made.torque.names])
        places = [fit.columns.index(name) for name in made.torque.names[len(made.torque.names) - len(curve) :]]
        error = root_of(fit.covariance[np.ix_(places, places)])
        made = replace(made, factor=fit.factor, weights=fit.weights)
        return replace(made, values=known, linear=made.linear_part(fit.factor), error=error)

    @cached_property
    def torque(self) -> TorqueModel:
        """All columns."""
        return TorqueModel(self.robot, terms=self.terms, load_values=self.load_values, model=model_of(self.robot))

    @cached_property
    def followed(self) -> TorqueModel:
        """The columns before the curve: what arms are compared by."""
        terms = [term for term in self.terms if term.law not in CURVES]
        return TorqueModel(self.robot, terms=terms, load_values=self.load_values, model=model_of(self.robot))

    @cached_property
    def numbers_sha256(self) -> str:
        """Hash of what the type's fit says; what is computed from it may differ in the last digits from run to run."""
        arrays = (self.delay_s, self.curve, self.values, self.widths)
        known = [None if one is None else np.asarray(one).tobytes().hex() for one in arrays]
        return hashlib.sha256(repr(known).encode()).hexdigest()

    @property
    def linear_names(self) -> set[str]:
        """Of the description's friction, but for that of couplings, which several joints feel."""
        seen = [self.torque.names[k] for columns in self.torque.joint_columns for k in columns]
        friction = {one.name for one in self.torque.model.parameters if one.kind == FRICTION}
        return {name for name in friction if seen.count(name) == 1}

    def change(self, count: int) -> Array:
        """Values of all columns, from `count` that are followed and a curve without linear friction."""
        change = np.eye(count + len(self.curve))
        if self.linear is not None:
            change[:count, count:] = -self.linear
        return change

    def linear_part(self, factor: CompactFactor) -> Array:
        """Linear friction that comes closest to each term of the curve on the rows of a factor, in whatever order.

        Returns:
            (columns before the curve, curve); zero but for linear friction and terms in the speed of the same joint.
        """
        place = {name: k for k, name in enumerate(self.torque.names)}
        count = len(place) - len(self.curve)
        linear = np.zeros((count, len(self.curve)))
        smooth = {name for term, _ in self._places if term.law in SMOOTH for name in term.names}
        for joint, columns in enumerate(factor.columns):
            names = [factor.names[k] for k in columns]
            lines, bells = ([k for k, name in enumerate(names) if name in some] for some in (self.linear_names, smooth))
            gram = factor.gram(joint)
            size = np.sqrt(np.maximum(np.diag(gram)[lines], 1e-300))
            inner = np.linalg.pinv(gram[np.ix_(lines, lines)] / np.outer(size, size), rcond=RANK, hermitian=True)
            into = np.ix_([place[names[k]] for k in lines], [place[names[k]] - count for k in bells])
            linear[into] = inner @ (gram[np.ix_(lines, bells)] / size[:, None]) / size[:, None]
        return linear

    def weight_gain(self, direction: Array) -> tuple[float, float]:
        """Share by which a load looks heavier than it is, since drives lose of its weight, and its standard deviation.

        The torque of each joint says so with its own gain, as much as it counts on the type's recordings.

        Args:
            direction: change of the parameters, (columns before the curve,), with the load.
        """
        gains = [(term.joint, places) for term, places in self._places if term.law == GAIN.name]
        if not gains or self.factor is None or self.weights is None:
            return 0.0, 0.0
        change = dict(zip(self.torque.names, direction.tolist(), strict=False))
        moved = np.array([change.get(name, 0.0) for name in self.factor.names])
        parts = [
            moved[columns] @ self.factor.gram(k)[:-1, :-1] @ moved[columns]
            for k, columns in enumerate(self.factor.columns)
        ]
        counts = self.weights * parts
        share = np.zeros(len(self.curve))
        for joint, places in gains:
            share[places] = counts[joint] / max(float(counts.sum()), 1e-300)
        root = self._spread if self.error is None else np.column_stack([self._spread, self.error])
        return float(share @ self.curve), float(np.linalg.norm(share @ root))

    def explains(self, factor: CompactFactor) -> bool:
        """Whether the type's torque is that of all joints that have rows, but for what arms differ by."""
        if self.values is None:
            return False
        error, power = (residual_squares(factor, one) for one in (self.values, np.zeros_like(self.values)))
        return bool(np.all((error <= EXPLAINED * power) | (np.array(factor.counts) == 0)))

    def without_curve(self, factor: CompactFactor, curve: Array) -> CompactFactor:
        """The factor of the columns before the curve, its torque taken off."""
        if not len(curve):
            return factor
        count, columns, matrices = len(factor.names) - len(curve), [], []
        for seen, matrix in zip(factor.columns, factor.matrices, strict=True):
            own = seen < count
            torque = matrix[:, -1] - matrix[:, :-1][:, ~own] @ curve[seen[~own] - count]
            matrices.append(triangle(np.column_stack([matrix[:, :-1][:, own], torque])))
            columns.append(seen[own])
        return replace(factor, names=factor.names[:count], columns=tuple(columns), matrices=tuple(matrices))

    def with_prior(self, factor: CompactFactor, weights: Array) -> CompactFactor:
        """The factor and what the type says about the arm's curve, as rows beside the data's, which are weighted."""
        first, matrices = len(factor.names) - len(self.curve), list(factor.matrices)
        for joint, (places, root) in self._roots.items():
            columns, scale = factor.columns[joint], 1.0 / np.sqrt(weights[joint])
            rows = np.zeros((len(root), len(columns) + 1))
            rows[:, np.searchsorted(columns, first + places)] = scale * root
            rows[:, -1] = scale * root @ self.curve[places]
            matrices[joint] = triangle(np.vstack([matrices[joint], rows]))
        return replace(factor, matrices=tuple(matrices))

    def own_curve(self, factor: CompactFactor, weights: Array) -> Array:
        """Coefficients of an arm's friction curve: what its data say, in the light of the type's."""
        if not len(self.curve):
            return self.curve
        count = len(factor.names) - len(self.curve)
        return solve(self.with_prior(factor, weights), weights, rank_tolerance=RANK).values[count:]

    @cached_property
    def _error(self) -> Array:
        """Errors of the type's curve, as an arm's prior has them: in standard deviations of it, (curve, errors)."""
        if self.error is None:
            return np.zeros((len(self.curve), 0))
        return np.asarray(np.linalg.solve(self._spread, self.error))

    @property
    def prior_error(self) -> Array:
        """Change of the right side of an arm's normal equations per error of the type's curve, (curve, errors)."""
        return np.asarray(np.linalg.solve(self._spread.T, self._error))

    def modes(self, factor: CompactFactor, weights: Array, curve: Array) -> tuple[Array, Array, Array]:
        """Changes of the curve's coefficients that an arm's data can tell, each N(0, 1) a priori.

        Args:
            factor: of all its days.
            weights: of each joint's rows.
            curve: of the arm.

        Returns:
            The modes, (coefficients, modes), how much of each makes the arm's curve of the type's, and how their mean
            a priori changes with each error of the type's curve, (modes, errors).
        """
        count = len(factor.names) - len(self.curve)
        beside = self.change(count)[:, count:]
        information = beside.T @ factor.normal_equations(weights)[0] @ beside
        told, vectors = np.linalg.eigh(self._spread.T @ information @ self._spread)
        vectors = vectors[:, told > TOLD]
        found = vectors.T @ np.linalg.solve(self._spread, curve - self.curve)
        return self._spread @ vectors, found, vectors.T @ self._error

    def widened(self, arms: Sequence[tuple[CompactFactor, Array]]) -> TypeModel:
        """The type with the widths that arms show, by expectation and maximisation.

        An arm that is far out, as one with a wrong day is, counts as one at the edge of what is likely; two or three
        arms cannot say which of them that is.

        Args:
            arms: factor of all days of each, and weights of each joint's rows.
        """
        if not len(self.curve):
            return self
        data = [self._told(*one) for one in arms]
        counts = np.array([len(places) for _, places in self._places])
        width = np.ones(len(counts))
        for _ in range(WIDENINGS):
            prior = np.zeros(len(self.curve))
            for w, (_, places) in zip(width, self._places, strict=True):
                prior[places] = 1.0 / w**2
            square = np.zeros(len(width))
            for matrix, vector in data:
                covariance = np.linalg.inv(matrix + np.diag(prior))
                found, left = (covariance @ vector) ** 2, np.diag(covariance)
                sums, rest = (np.array([one[places].sum() for _, places in self._places]) for one in (found, left))
                told = np.maximum(counts - rest / width**2, 0.0)  # coefficients that the arm's data determine
                square += rest + np.minimum(sums, width**2 * (told + FAR * np.sqrt(2.0 * told)))
            last, width = width, np.sqrt(square / (counts * len(data)))
            width = np.maximum(width, NARROWEST)
            if np.abs(width / last - 1.0).max() < WIDENED:
                break
        return replace(self, widths=tuple(width.tolist()))

    def _told(self, factor: CompactFactor, weights: Array) -> tuple[Array, Array]:
        """What an arm's data say of the modes of its curve, whatever its parameters are: information and vector."""
        matrix, vector, _ = factor.normal_equations(weights)
        count = len(matrix) - len(self.curve)
        vector = vector - matrix[:, count:] @ self.curve
        size = np.sqrt(np.maximum(np.diag(matrix)[:count], 1e-300))
        inner = np.linalg.pinv(matrix[:count, :count] / np.outer(size, size), rcond=RANK, hermitian=True)
        between = (matrix[:count, count:] / size[:, None]) @ self._spread
        own = self._spread.T @ matrix[count:, count:] @ self._spread - between.T @ inner @ between
        return own, self._spread.T @ vector[count:] - between.T @ (inner @ (vector[:count] / size))

    @cached_property
    def _places(self) -> list[tuple[FrictionTerm, Indices]]:
        """Terms of the curve, and the places of their coefficients in it."""
        found, place = [], 0
        for term in (term for term in self.terms if term.law in CURVES):
            found.append((term, np.arange(place, place + len(term.names))))
            place += len(term.names)
        return found

    @cached_property
    def _spread(self) -> Array:
        """Root of the prior covariance of an arm's curve, (coefficients, coefficients)."""
        root = np.zeros((len(self.curve), len(self.curve)))
        for places, part in self._roots.values():
            root[places[:, None], places] = np.linalg.inv(part)
        return root

    def _coulomb(self, joint: int) -> float:
        """Coulomb friction of a joint of the type, the larger of both directions [N m]; 0 where it is not known."""
        if self.values is None:
            return 0.0
        own = [one.name for one in self.torque.model.parameters if one.kind == FRICTION and one.number == joint + 1]
        count = len(self.values) - len(self.curve)
        line = self.values[:count] if self.linear is None else self.values[:count] + self.linear @ self.curve
        known = zip(self.torque.names, line, strict=False)
        return max((abs(float(value)) for name, value in known if name in own and name[:2] == "fc"), default=0.0)

    @cached_property
    def _roots(self) -> dict[int, tuple[Indices, Array]]:
        """For each joint the places of its coefficients in the curve, and the root of their prior's precision."""
        parts: dict[int, list[tuple[Indices, Array]]] = {}
        widths = self.widths or (1.0,) * len(self._places)
        for (term, places), width in zip(self._places, widths, strict=True):
            count = len(places)
            values, shape = self.curve[places], prior_covariance(count) if count >= BELLS else np.eye(count)
            size = max(float(np.sqrt(values @ np.linalg.solve(shape, values) / count)), LEAST_SIZE)
            if term.law == EVEN.name:
                size = max(size, self._coulomb(term.joint))
            if term.law == GAIN.name:  # hardly told from mass by one arm, less so by several that differ
                size = max(size, SIZES[GAIN.name] / DIFFERS)
            root = np.linalg.inv(np.linalg.cholesky(shape + 1e-9 * np.eye(len(shape)))) / (width * DIFFERS * size)
            parts.setdefault(term.joint, []).append((places, root))
        return {joint: _joined(some) for joint, some in parts.items()}


def root_of(covariance: Array) -> Array:
    """A matrix whose product with its transpose is a covariance."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _joined(parts: Sequence[tuple[Indices, Array]]) -> tuple[Indices, Array]:
    return np.concatenate([places for places, _ in parts]), block_diag(*(root for _, root in parts))
