"""The torque of a robot as estimated: base parameters, friction terms, and what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from armid.arrays import Array, Indices
from armid.dynamics.model import Model, Motion
from armid.robot.robot import Robot
from armid.torque.friction.term import FrictionTerm
from armid.torque.known import KnownTorque

Filter = Callable[[Array], Array]  # of samples (samples, ...), such as `Dataset.at_rows`
Kept = dict[Any, Array]  # columns along one motion that no parameter changes, from call to call


@lru_cache(maxsize=16)
def model_of(robot: Robot) -> Model:
    """The model of a robot, kept: its base parameters take a second to find."""
    return Model(robot)


class TorqueModel:
    """tau = W(q, qd, qdd) x + known torque, with x the base parameters followed by the coefficients of the terms.

    Attributes:
        robot: the robot, with what is known about it.
        model: its linear model.
        terms: friction terms beyond the model's own.
        load_values: values of the base parameters whose rigid-body torque is the load of load terms; None without.
        known: torque known beforehand; None without.
    """

    def __init__(
        self,
        robot: Robot,
        *,
        terms: Sequence[FrictionTerm] = (),
        load_values: Mapping[str, float] | None = None,
        known_torque: KnownTorque | None = None,
        model: Model | None = None,
    ) -> None:
        """Collect the parts; `model` saves making the robot's model again."""
        self.robot, self.terms = robot, tuple(terms)
        self.model = model_of(robot) if model is None else model
        self.load_values, self.known = load_values, known_torque

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns: base parameters, then terms."""
        return (*self.model.base.kept, *(name for term in self.terms for name in term.names))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns' parameters for people and files: a group carries an R, ``Izz1R``."""
        return (*self.model.base.labels, *(name for term in self.terms for name in term.names))

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units of the columns' parameters."""
        units = {parameter.name: parameter.unit for parameter in self.model.parameters}
        return (*(units[name] for name in self.model.base.kept), *(unit for term in self.terms for unit in term.units))

    @cached_property
    def joint_columns(self) -> tuple[Indices, ...]:
        """For each joint the columns that its rows have."""
        layout = self.model.columns(self.model.base.kept)
        first = len(self.model.base.kept)
        owners = [term.joint for term in self.terms for _ in term.names]
        result = []
        for joint in range(self.robot.n_joints):
            own = [first + k for k, j in enumerate(owners) if j == joint]
            base = np.flatnonzero(layout.position[joint] >= 0)
            result.append(np.concatenate([base, np.array(own, dtype=np.int64)]))
        return tuple(result)

    def regressor(self, motion: Motion, filtered: Filter = np.asarray, kept: Kept | None = None) -> Array:
        """The matrix W, (samples, joints, columns), `filtered` along the samples."""
        kept = {} if kept is None else kept
        if "base" not in kept:
            kept["base"] = filtered(self.model.regressor(*motion, self.model.base.kept))
        base = kept["base"]
        if not self.terms:
            return base
        result = np.zeros((*base.shape[:2], len(self.names)))
        result[:, :, : base.shape[2]] = base
        pairs = list(self._columns(motion, kept))
        todo = [(term, columns) for term, columns in pairs if (term, "filtered") not in kept]
        found = filtered(np.hstack([columns for _, columns in todo])) if todo else np.zeros((0, 0))
        parts = np.split(found, np.cumsum([columns.shape[1] for _, columns in todo])[:-1], axis=1) if todo else []
        made = {term: part for (term, _), part in zip(todo, parts, strict=True)}
        kept |= {(term, "filtered"): part for term, part in made.items() if term in kept}
        first = base.shape[2]
        for term, columns in pairs:
            last = first + columns.shape[1]
            result[:, term.joint, first:last] = made[term] if term in made else kept[term, "filtered"]
            first = last
        return result

    def total_torque(self, motion: Motion, values: Array) -> Array:
        """All of the torque (samples, joints) for parameter values: W x and what is known."""
        torque, known = self.linear_torque(motion, values), self.known_torque(motion)
        return torque if known is None else torque + known

    def linear_torque(self, motion: Motion, values: Array, kept: Kept | None = None) -> Array:
        """The product W x (samples, joints), known torque not included, without making W."""
        first = len(self.model.base.kept)
        result = self._base_torque(motion, values[:first])
        for term, columns in self._columns(motion, {} if kept is None else kept):
            result[:, term.joint] += columns @ values[first : first + columns.shape[1]]
            first += columns.shape[1]
        return result

    def load(self, motion: Motion) -> Array | None:
        """Rigid-body torque (samples, joints) that load terms go by; None where no load is stated."""
        if self.load_values is None:
            return None
        return self._base_torque(motion, self._inertial_load)

    def weight(self, motion: Motion) -> Array | None:
        """Torque (samples, joints) that holds the links against gravity; None where no load is stated."""
        if self.load_values is None:
            return None
        still = np.zeros_like(motion.q)
        return self._base_torque(Motion(motion.q, still, still), self._inertial_load)

    @cached_property
    def _inertial_load(self) -> Array:
        kinds = {parameter.name: parameter.kind for parameter in self.model.parameters}
        loads = self.load_values or {}
        return np.array([loads[name] if kinds[name] == "inertial" else 0.0 for name in self.model.base.kept])

    def _columns(self, motion: Motion, kept: Kept) -> Iterator[tuple[FrictionTerm, Array]]:
        """Each term and its columns (samples, coefficients) along a motion."""
        load = self.load(motion) if any(term.loaded for term in self.terms) else None
        weight = self.weight(motion) if any(term.formula.weighted for term in self.terms) else None
        for term in self.terms:
            if term not in kept:
                own = (None if one is None else one[:, term.joint] for one in (load, weight))
                columns = term.columns(motion.qd[:, term.joint], *own)
                if term.loaded or term.formula.weighted:
                    yield term, columns
                    continue
                kept[term] = columns
            yield term, kept[term]

    def _base_torque(self, motion: Motion, values: Array) -> Array:
        """Torque (samples, joints) of base parameters, all other parameters being zero."""
        vector = np.zeros(len(self.model.names))
        vector[self._places] = values
        return self.model.linear_torque(*motion, vector)

    @cached_property
    def _places(self) -> Indices:
        """Where the base parameters stand among all."""
        order = {name: place for place, name in enumerate(self.model.names)}
        return np.array([order[name] for name in self.model.base.kept], dtype=np.int64)

    def known_torque(self, motion: Motion) -> Array | None:
        """Torque of known parameters, counterbalances and what was known beforehand; None if there is none."""
        known = None
        if any(self.model.known.values()) or self.robot.counterbalances:
            known = self.model.inverse_dynamics(*motion, {})
        if self.known is not None:
            extra = self.known.torque(self.model, motion)
            known = extra if known is None else known + extra
        return known
